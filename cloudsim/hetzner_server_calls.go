package cloudsim

import (
	"net/http"
	"time"
)

func (h hetzner) listServers() error {
	var all []listed
	for _, s := range sorted(h.project.servers) {
		if h.now.Before(s.hiddenUntil) {
			continue
		}
		all = append(all, listed{
			id: s.id, name: s.name, labels: s.labels, created: s.created, has: map[string]string{"status": s.state},
			show: func() any { return h.server(s) },
		})
	}
	return h.list("servers", all)
}

// nameTaken tells whether a server has the name, or had it until just now.
func (h hetzner) nameTaken(name string) bool {
	return h.project.serverNamed(name) != nil || h.now.Before(h.project.taken[name])
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
		case h.nameTaken(*b.Name):
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
	a := h.hold(s, "delete_server", hetznerDeleteTakes+h.sim.stuckFor(s), func(now time.Time) { h.forget(s, now) })
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
	for _, f := range p.rules {
		delete(f.attached, s.id)
	}
	for _, id := range s.volumes {
		if v := p.volumes[id]; v != nil {
			v.server = nil
		}
	}
	h.sim.endGuest(s)
}
