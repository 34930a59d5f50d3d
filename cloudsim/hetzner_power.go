package cloudsim

import (
	"net/http"
	"time"
)

// Actions on servers.

var hetznerServerCommands = map[string]string{
	"poweron": "start_server", "poweroff": "stop_server", "shutdown": "shutdown_server", "reboot": "reboot_server",
	"reset": "reset_server", "change_protection": "change_protection",
}

func (h hetzner) actOnServer() error {
	s, err := h.findServer()
	if err != nil {
		return err
	}
	verb := h.r.PathValue("action")
	command, known := hetznerServerCommands[verb]
	switch {
	case !known:
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	case s.running != nil:
		return hetznerFail(http.StatusLocked, "locked", "server is locked by another action")
	}
	var do func(now time.Time)
	switch verb {
	case "poweron":
		do = func(now time.Time) {
			if s.state == stateOff {
				h.sim.powerOn(s, now)
			}
		}
	case "poweroff", "shutdown":
		do = func(time.Time) {
			h.sim.powerOff(s)
			s.state = stateOff
		}
	case "reboot", "reset":
		if s.state != stateRunning {
			return hetznerFail(http.StatusUnprocessableEntity, "unsupported_error", "server is not running")
		}
		do = func(now time.Time) { h.sim.restart(s, now) }
	case "change_protection":
		var b struct {
			Delete  *bool `json:"delete"`
			Rebuild *bool `json:"rebuild"`
		}
		if err := h.read(&b); err != nil {
			return err
		}
		if b.Delete == nil || b.Rebuild == nil || *b.Delete != *b.Rebuild {
			return hetznerField("delete", "delete and rebuild must have the same value")
		}
		do = func(time.Time) { s.protected = *b.Delete }
	}
	h.send(http.StatusCreated, map[string]any{"action": h.action(h.hold(s, command, hetznerActTakes, do))})
	return nil
}
