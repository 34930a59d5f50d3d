package cloudsim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Droplets: everything but the create.

func (d digitalOcean) listDroplets() error {
	q := d.r.URL.Query()
	tag, name := q.Get("tag_name"), q.Get("name")
	if tag != "" && (name != "" || q.Get("type") != "") {
		return doBad("tag_name can not be combined with name or type")
	}
	var all []map[string]any
	for _, s := range sorted(d.account.droplets) {
		switch {
		case d.now.Before(s.hiddenUntil), q.Get("type") == "gpus":
		case tag != "" && !slices.Contains(s.tags, tag), name != "" && !strings.EqualFold(name, s.name):
		default:
			all = append(all, d.droplet(s))
		}
	}
	return doPage(d, "droplets", all)
}

func (d digitalOcean) findDroplet() (*doDroplet, error) {
	if s := d.account.droplets[d.pathID()]; s != nil {
		return s, nil
	}
	return nil, doNotFound()
}

func (d digitalOcean) getDroplet() error {
	s, err := d.findDroplet()
	if err != nil {
		return err
	}
	d.send(http.StatusOK, map[string]any{"droplet": d.droplet(s)})
	return nil
}

func (d digitalOcean) deleteDroplet() error {
	s, err := d.findDroplet()
	if err != nil {
		return err
	}
	if s.running != nil {
		if s.state == stateDeleting { // once more is fine
			return d.done()
		}
		return errDOPending
	}
	d.destroy(s)
	return d.done()
}

// deleteDroplets deletes everything with a tag.
func (d digitalOcean) deleteDroplets() error {
	tag := d.r.URL.Query().Get("tag_name")
	if tag == "" {
		return doFail(http.StatusBadRequest, "bad_request", "tag_name is required")
	}
	for _, s := range sorted(d.account.droplets) {
		if slices.Contains(s.tags, tag) && s.running == nil {
			d.destroy(s)
		}
	}
	return d.done()
}

// destroy takes the power away at once; the Droplet is gone a moment later,
// and what was attached to it stays.
func (d digitalOcean) destroy(s *doDroplet) {
	s.state = stateDeleting
	d.sim.powerOff(s.server)
	account, p := d.account, d.project
	d.hold(s, "destroy", doDeleteTakes+d.sim.stuckFor(s.server), func(now time.Time) {
		delete(account.droplets, s.id)
		delete(p.servers, s.id)
		s.entry.DeletedAt = now
		for _, v := range account.volumes {
			if slices.Contains(v.DropletIDs, s.id) {
				v.DropletIDs, v.entry.Server = []int64{}, ""
			}
		}
		for _, f := range account.firewalls {
			f.DropletIDs = slices.DeleteFunc(f.DropletIDs, func(id int64) bool { return id == s.id })
		}
		d.sim.endGuest(s.server)
	})
}

// Actions.

func (d digitalOcean) action(a *action) map[string]any {
	o := map[string]any{
		"id": a.id, "status": "in-progress", "type": a.command, "started_at": a.started.UTC().Format(time.RFC3339), "completed_at": nil,
		"resource_id": a.resources[0].id, "resource_type": a.resources[0].kind, "region": nil, "region_slug": nil,
	}
	if s := d.project.servers[a.resources[0].id]; s != nil {
		o["region"], o["region_slug"] = doRegionOf(s.region), s.region
	}
	if !a.finished.IsZero() {
		o["status"], o["completed_at"] = "completed", a.finished.UTC().Format(time.RFC3339)
		if a.failCode != "" {
			o["status"] = a.failCode
		}
	}
	return o
}

func (d digitalOcean) actionLink(a *action) string {
	u := *d.r.URL
	u.Path, u.RawQuery, u.Host, u.Scheme = "/v2/actions/"+itoa(a.id), "", d.r.Host, "http"
	if d.r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

func (d digitalOcean) getAction() error {
	id, _ := strconv.ParseInt(d.r.PathValue("action"), 10, 64)
	a := d.project.actions[id]
	if a == nil || d.r.PathValue("id") != "" && itoa(a.resources[0].id) != d.r.PathValue("id") {
		return doNotFound()
	}
	d.send(http.StatusOK, map[string]any{"action": d.action(a)})
	return nil
}

func (d digitalOcean) listActions() error { return d.actions(func(*action) bool { return true }) }

func (d digitalOcean) listDropletActions() error {
	s, err := d.findDroplet()
	if err != nil {
		return err
	}
	return d.actions(func(a *action) bool { return a.resources[0] == resource{"droplet", s.id} })
}

// actions are listed youngest first.
func (d digitalOcean) actions(which func(*action) bool) error {
	var all []map[string]any
	for _, a := range slices.Backward(sorted(d.project.actions)) {
		if which(a) {
			all = append(all, d.action(a))
		}
	}
	return doPage(d, "actions", all)
}

func (d digitalOcean) actOnDroplet() error {
	s, err := d.findDroplet()
	if err != nil {
		return err
	}
	var b struct {
		Type string `json:"type"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	if s.running != nil {
		return errDOPending
	}
	var do func(now time.Time)
	switch b.Type {
	case "power_on":
		if s.state == stateRunning {
			return doBad("Droplet is already powered on.")
		}
		do = func(now time.Time) { d.sim.powerOn(s.server, now) }
	case "power_off", "shutdown":
		if s.state != stateRunning {
			return doBad("Droplet is already powered off.")
		}
		do = func(time.Time) {
			d.sim.powerOff(s.server)
			s.state = stateOff
		}
	case "reboot", "power_cycle":
		if s.state != stateRunning {
			return doBad("Droplet is powered off.")
		}
		do = func(now time.Time) { d.sim.restart(s.server, now) }
	default:
		return doBad("%q is not an action of the simulated cloud", b.Type)
	}
	d.send(http.StatusCreated, map[string]any{"action": d.action(d.hold(s, b.Type, doActTakes, do))})
	return nil
}
