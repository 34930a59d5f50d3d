package cloudsim

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Actions: what takes its time.

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

// listedAction is an action as lists sort and filter it.
func (h hetzner) listedAction(a *action) listed {
	shown := h.action(a)
	return listed{
		id: a.id, name: a.command, created: a.started, has: map[string]string{"id": itoa(a.id), "status": shown.Status},
		show: func() any { return shown },
	}
}

func (h hetzner) sendAction(a *action) error {
	if a == nil {
		return hetznerNotFound("action", h.r.PathValue("id"))
	}
	h.send(http.StatusOK, map[string]any{"action": h.action(a)})
	return nil
}

func (h hetzner) getAction() error { return h.sendAction(h.project.actions[h.pathID()]) }

// listActions answers for ids alone: listing all actions is no longer part of
// the API.
func (h hetzner) listActions() error {
	if !h.r.URL.Query().Has("id") {
		return &hetznerError{
			status: http.StatusGone, code: "deprecated_api_endpoint", message: "listing actions without ids was removed",
			details: map[string]string{"announcement": "https://docs.hetzner.cloud/changelog"},
		}
	}
	return h.actions(func(*action) bool { return true })
}

// kindActions lists the actions on all things of a kind.
func (h hetzner) kindActions(kind string) error {
	return h.actions(func(a *action) bool {
		return slices.ContainsFunc(a.resources, func(r resource) bool { return r.kind == kind })
	})
}

// thingActions answers /{id}/actions and /actions/{id} of a kind.
func (h hetzner) thingActions(kind string) error {
	id, rest := h.r.PathValue("id"), h.r.PathValue("rest")
	switch {
	case id == "actions":
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			n = -1
		}
		return h.sendAction(h.project.actions[n])
	case rest != "actions":
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	case !h.exists(kind, h.pathID()):
		return hetznerNotFound(kind, id)
	}
	return h.actions(func(a *action) bool { return slices.Contains(a.resources, resource{kind, h.pathID()}) })
}

func (h hetzner) exists(kind string, id int64) bool {
	switch kind {
	case "server":
		return h.project.servers[id] != nil
	case "firewall":
		return h.project.rules[id] != nil
	case "primary_ip":
		return h.project.ips[id] != nil
	}
	return h.project.volumes[id] != nil
}

// actions lists those that fit. Ids that are asked for are looked up, since a
// project has many actions.
func (h hetzner) actions(fits func(*action) bool) error {
	var from []*action
	if ids := h.r.URL.Query()["id"]; len(ids) > 0 {
		for _, id := range ids {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return hetznerField("id", "must be a number")
			}
			if a := h.project.actions[n]; a != nil && !slices.Contains(from, a) {
				from = append(from, a)
			}
		}
		slices.SortFunc(from, func(a, b *action) int { return int(a.id - b.id) })
	} else {
		from = sorted(h.project.actions)
	}
	var all []listed
	for _, a := range from {
		if fits(a) {
			all = append(all, h.listedAction(a))
		}
	}
	return h.list("actions", all)
}
