package cloudsim

import (
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

func (h hetzner) listServers() error {
	q := h.r.URL.Query()
	sel, err := h.selector()
	if err != nil {
		return err
	}
	var found []*server
	for _, s := range sorted(h.project.servers) {
		if h.now.Before(s.hiddenUntil) || !selects(sel, s.labels) {
			continue
		}
		if n := q.Get("name"); n != "" && n != s.name {
			continue
		}
		if q.Has("status") && !slices.Contains(q["status"], s.state) {
			continue
		}
		found = append(found, s)
	}
	if err := sortServers(found, q["sort"]); err != nil {
		return err
	}
	var all []any
	for _, s := range found {
		all = append(all, h.server(s))
	}
	return h.page("servers", all)
}

// sortServers sorts by "field", "field:asc" or "field:desc"; the first counts
// most.
func sortServers(list []*server, by []string) error {
	slices.Reverse(by)
	for _, b := range by {
		field, order, _ := strings.Cut(b, ":")
		var less func(a, b *server) bool
		switch field {
		case "id":
			less = func(a, b *server) bool { return a.id < b.id }
		case "name":
			less = func(a, b *server) bool { return a.name < b.name }
		case "created":
			less = func(a, b *server) bool { return a.created.Before(b.created) }
		default:
			return hetznerField("sort", "must be id, name or created")
		}
		sort.SliceStable(list, func(i, j int) bool {
			if order == "desc" {
				return less(list[j], list[i])
			}
			return less(list[i], list[j])
		})
	}
	return nil
}

func (h hetzner) findServer() (*server, error) {
	if s := h.project.servers[h.pathID()]; s != nil {
		return s, nil
	}
	return nil, hetznerNotFound("server", h.r.PathValue("id"))
}

func (h hetzner) getServer() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"server": h.server(s)})
	return nil
}

func (h hetzner) updateServer() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	var b struct {
		Name   *string            `json:"name"`
		Labels *map[string]string `json:"labels"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, s.labels)
	if err != nil {
		return err
	}
	if b.Name != nil && *b.Name != s.name {
		switch {
		case !hetznerHost.MatchString(*b.Name):
			return hetznerField("name", "must be a valid hostname as per RFC 1123")
		case h.project.serverNamed(*b.Name) != nil:
			return hetznerFail(http.StatusConflict, "uniqueness_error", "server name is already used")
		}
		s.name = *b.Name
	}
	s.labels = labels
	h.send(http.StatusOK, map[string]any{"server": h.server(s)})
	return nil
}

func (h hetzner) deleteServer() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	switch {
	case s.protected:
		return hetznerFail(http.StatusForbidden, "protected", "server deletion is protected")
	case s.running != nil:
		return hetznerFail(http.StatusLocked, "locked", "server is locked by another action")
	}
	s.state = stateDeleting
	h.sim.powerOff(s)
	a := h.hold(s, "delete_server", hetznerDeleteTakes+s.stuckDelete, func(now time.Time) { h.forget(s, now) })
	h.send(http.StatusOK, map[string]any{"action": h.action(a)})
	return nil
}

// forget ends a server with all that goes with it.
func (h hetzner) forget(s *server, now time.Time) {
	p := h.project
	delete(p.servers, s.id)
	p.taken[s.name] = now.Add(hetznerNameHeld)
	s.entry.DeletedAt = now
	for _, ip := range []*publicIP{s.ipv4, s.ipv6} {
		switch {
		case ip == nil:
		case ip.autoDelete:
			delete(p.ips, ip.id)
			ip.entry.DeletedAt = now
		default:
			ip.server, ip.entry.Server = nil, ""
		}
	}
	for _, id := range s.rules {
		if f := p.rules[id]; f != nil {
			delete(f.attached, s.id)
		}
	}
	for _, id := range s.volumes {
		if v := p.volumes[id]; v != nil {
			v.server = nil
		}
	}
	h.sim.endGuest(s)
}

func (h hetzner) actOnServer() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	verb := h.r.PathValue("action")
	if s.running != nil {
		return hetznerFail(http.StatusLocked, "locked", "server is locked by another action")
	}
	var do func(now time.Time)
	command := map[string]string{
		"poweron": "start_server", "poweroff": "stop_server", "shutdown": "shutdown_server", "reboot": "reboot_server",
		"reset": "reset_server", "change_protection": "change_protection",
	}[verb]
	switch verb {
	case "poweron":
		do = func(now time.Time) {
			if s.state == stateOff {
				h.sim.powerOn(s, now)
			}
		}
	case "poweroff", "shutdown":
		do = func(time.Time) { h.sim.powerOff(s); s.state = stateOff }
	case "reboot", "reset":
		if s.state != stateRunning && verb == "reboot" {
			return hetznerFail(http.StatusUnprocessableEntity, "server_not_running", "server is not running")
		}
		do = func(now time.Time) { h.sim.powerOff(s); h.sim.powerOn(s, now) }
	case "change_protection":
		var b struct {
			Delete *bool `json:"delete"`
		}
		if err := h.read(&b); err != nil {
			return err
		}
		do = func(time.Time) {
			if b.Delete != nil {
				s.protected = *b.Delete
			}
		}
	default:
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	}
	h.send(http.StatusCreated, map[string]any{"action": h.action(h.hold(s, command, hetznerActTakes, do))})
	return nil
}

type hetznerAction struct {
	ID        int64                `json:"id"`
	Command   string               `json:"command"`
	Status    string               `json:"status"`
	Progress  int                  `json:"progress"`
	Started   time.Time            `json:"started"`
	Finished  *time.Time           `json:"finished"`
	Resources []hetznerResource    `json:"resources"`
	Error     *hetznerActionFailed `json:"error"`
}

type hetznerResource struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

type hetznerActionFailed struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (h hetzner) action(a *action) hetznerAction {
	o := hetznerAction{ID: a.id, Command: a.command, Status: "running", Progress: a.progress(h.now), Started: a.started, Resources: []hetznerResource{}}
	if !a.finished.IsZero() {
		o.Status, o.Finished = "success", &a.finished
		if a.failCode != "" {
			o.Status, o.Error = "error", &hetznerActionFailed{a.failCode, a.failText}
		}
	}
	for _, r := range a.resources {
		o.Resources = append(o.Resources, hetznerResource{r.id, r.kind})
	}
	return o
}

func (h hetzner) getAction() error {
	a := h.project.actions[h.pathID()]
	if a == nil {
		return hetznerNotFound("action", h.r.PathValue("id"))
	}
	h.send(http.StatusOK, map[string]any{"action": h.action(a)})
	return nil
}

// listActions answers for ids alone: listing all actions is no longer part of
// the API.
func (h hetzner) listActions() error {
	ids := h.r.URL.Query()["id"]
	if len(ids) == 0 {
		return &hetznerError{status: http.StatusGone, code: "deprecated_api_endpoint", message: "listing actions without ids was removed",
			details: map[string]string{"announcement": "https://docs.hetzner.cloud/changelog"}}
	}
	var all []any
	for _, a := range sorted(h.project.actions) {
		if slices.Contains(ids, strconv.FormatInt(a.id, 10)) {
			all = append(all, h.action(a))
		}
	}
	return h.page("actions", all)
}

func (h hetzner) listServerActions() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	var all []any
	for _, a := range sorted(h.project.actions) {
		if slices.Contains(a.resources, resource{"server", s.id}) {
			all = append(all, h.action(a))
		}
	}
	return h.page("actions", all)
}
