package cloudsim

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type hetznerRule struct {
	Direction   string   `json:"direction"`
	Sources     []string `json:"source_ips"`
	Targets     []string `json:"destination_ips"`
	Protocol    string   `json:"protocol"`
	Port        *string  `json:"port"`
	Description *string  `json:"description"`
}

type hetznerTarget struct {
	Type   string `json:"type"`
	Server *struct {
		ID int64 `json:"id"`
	} `json:"server,omitempty"`
	Selector *struct {
		Selector string `json:"selector"`
	} `json:"label_selector,omitempty"`
	Applied []hetznerTarget `json:"applied_to_resources,omitempty"`
}

func hetznerServerTarget(id int64) hetznerTarget {
	return hetznerTarget{Type: "server", Server: &struct {
		ID int64 `json:"id"`
	}{id}}
}

type hetznerFirewall struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Created   time.Time         `json:"created"`
	Rules     []hetznerRule     `json:"rules"`
	AppliedTo []hetznerTarget   `json:"applied_to"`
}

func (h hetzner) firewall(f *firewall) hetznerFirewall {
	o := hetznerFirewall{ID: f.id, Name: f.name, Labels: f.labels, Created: f.created, Rules: []hetznerRule{}, AppliedTo: []hetznerTarget{}}
	for _, r := range f.rules {
		w := hetznerRule{Direction: "out", Sources: orEmpty(r.sources), Targets: orEmpty(r.targets), Protocol: r.protocol}
		if r.in {
			w.Direction = "in"
		}
		if r.port != "" {
			w.Port = &r.port
		}
		if r.note != "" {
			w.Description = &r.note
		}
		o.Rules = append(o.Rules, w)
	}
	for _, s := range sorted(h.project.servers) {
		if _, ok := f.attached[s.id]; ok {
			o.AppliedTo = append(o.AppliedTo, hetznerServerTarget(s.id))
		}
	}
	for _, sel := range f.selectors {
		t := hetznerTarget{Type: "label_selector", Selector: &struct {
			Selector string `json:"selector"`
		}{sel.selector}}
		for _, s := range f.selected(h.project, sel.selector) {
			t.Applied = append(t.Applied, hetznerServerTarget(s.id))
		}
		o.AppliedTo = append(o.AppliedTo, t)
	}
	return o
}

var hetznerPort = regexp.MustCompile(`^[0-9]{1,5}(-[0-9]{1,5})?$`)

func readRules(in []hetznerRule) ([]rule, error) {
	var out []rule
	for i, r := range in {
		field := fmt.Sprintf("rules.%d", i)
		inbound := r.Direction == "in"
		if !inbound && r.Direction != "out" {
			return nil, hetznerField(field+".direction", "must be in or out")
		}
		if !slices.Contains([]string{"tcp", "udp", "icmp", "esp", "gre"}, r.Protocol) {
			return nil, hetznerField(field+".protocol", "must be tcp, udp, icmp, esp or gre")
		}
		ported := r.Protocol == "tcp" || r.Protocol == "udp"
		if ported != (r.Port != nil && *r.Port != "") {
			return nil, hetznerField(field+".port", "is needed with tcp and udp, and not allowed with others")
		}
		w := rule{in: inbound, protocol: r.Protocol, sources: r.Sources, targets: r.Targets}
		if ported {
			if !hetznerPort.MatchString(*r.Port) {
				return nil, hetznerField(field+".port", "must be a port or a range of ports")
			}
			for _, n := range strings.Split(*r.Port, "-") {
				if v, _ := strconv.Atoi(n); v < 1 || v > 65535 {
					return nil, hetznerField(field+".port", "must be from 1 to 65535")
				}
			}
			w.port = *r.Port
		}
		ips, side := r.Sources, ".source_ips"
		if !inbound {
			ips, side = r.Targets, ".destination_ips"
		}
		if len(ips) == 0 {
			return nil, hetznerField(field+side, "must not be empty")
		}
		for _, ip := range ips {
			if p, err := netip.ParsePrefix(ip); err != nil || p != p.Masked() {
				return nil, hetznerField(field+side, fmt.Sprintf("%s is not a network in CIDR form", ip))
			}
		}
		if r.Description != nil {
			w.note = *r.Description
		}
		out = append(out, w)
	}
	if len(out) > 50 {
		return nil, hetznerField("rules", "at most 50")
	}
	return out, nil
}

func (h hetzner) checkFirewallName(name string) error {
	if name == "" || len(name) > 128 {
		return hetznerField("name", "must have from 1 to 128 characters")
	}
	if slices.ContainsFunc(sorted(h.project.rules), func(f *firewall) bool { return f.name == name }) {
		return hetznerFail(http.StatusConflict, "uniqueness_error", "name is already used")
	}
	return nil
}

func (h hetzner) createFirewall() error {
	var b struct {
		Name    string             `json:"name"`
		Labels  *map[string]string `json:"labels"`
		Rules   []hetznerRule      `json:"rules"`
		ApplyTo []hetznerTarget    `json:"apply_to"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	if err := h.checkFirewallName(b.Name); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	rules, err := readRules(b.Rules)
	if err != nil {
		return err
	}
	f := &firewall{id: h.sim.world.id(hetznerName, "firewall"), name: b.Name, labels: labels, created: h.now, rules: rules, attached: map[int64]time.Time{}}
	actions := []any{h.action(h.sim.begin(h.project, h.now, "set_firewall_rules", 0, nil, resource{"firewall", f.id}))}
	applied, err := h.apply(f, b.ApplyTo)
	if err != nil {
		return err
	}
	h.project.rules[f.id] = f
	h.send(http.StatusCreated, map[string]any{"firewall": h.firewall(f), "actions": append(actions, applied...)})
	return nil
}

func (h hetzner) firewallAction(command string, f *firewall, server int64) any {
	return h.action(h.sim.begin(h.project, h.now, command, hetznerApplyTakes, nil, resource{"server", server}, resource{"firewall", f.id}))
}

// attach puts the firewall on a server.
func (f *firewall) attach(s *server, now time.Time) { f.attached[s.id] = now }

// selected are the servers that a selector means.
func (f *firewall) selected(p *project, selector string) []*server {
	rs, err := parseSelector(selector)
	if err != nil {
		return nil // checked when it was set
	}
	var out []*server
	for _, s := range sorted(p.servers) {
		if selects(rs, s.labels) {
			out = append(out, s)
		}
	}
	return out
}

// statusOn is what the firewall is on a server: applied, pending, or nothing.
// One that is named in the create is there before the server starts; one that
// a selector brings comes a moment later.
func (f *firewall) statusOn(s *server, now time.Time) string {
	since, ok := f.attached[s.id]
	for _, sel := range f.selectors {
		if ok {
			break
		}
		if rs, err := parseSelector(sel.selector); err == nil && selects(rs, s.labels) {
			since, ok = sel.since, true
			if s.created.After(since) {
				since = s.created.Add(hetznerCreateTakes)
			}
		}
	}
	switch {
	case !ok:
		return ""
	case s.state == stateInitializing || now.Before(since.Add(hetznerApplyTakes)):
		return "pending"
	}
	return "applied"
}

// apply attaches a firewall to targets.
func (h hetzner) apply(f *firewall, targets []hetznerTarget) ([]any, error) {
	var actions []any
	for _, t := range targets {
		switch {
		case t.Type == "server" && t.Server != nil:
			s := h.project.servers[t.Server.ID]
			if s == nil {
				return nil, hetznerFail(http.StatusUnprocessableEntity, "firewall_resource_not_found", "server with ID '%d' not found", t.Server.ID)
			}
			if _, ok := f.attached[s.id]; ok {
				return nil, hetznerFail(http.StatusUnprocessableEntity, "firewall_already_applied", "firewall is already applied on server '%d'", s.id)
			}
			f.attach(s, h.now)
			actions = append(actions, h.firewallAction("apply_firewall", f, s.id))
		case t.Type == "label_selector" && t.Selector != nil:
			if _, err := parseSelector(t.Selector.Selector); err != nil {
				return nil, hetznerField("apply_to", err.Error())
			}
			f.selectors = append(f.selectors, selectorSince{t.Selector.Selector, h.now})
			for _, s := range f.selected(h.project, t.Selector.Selector) {
				actions = append(actions, h.firewallAction("apply_firewall", f, s.id))
			}
		default:
			return nil, hetznerField("apply_to", "must be a server or a label selector")
		}
	}
	return actions, nil
}

func (h hetzner) listFirewalls() error {
	var all []listed
	for _, f := range sorted(h.project.rules) {
		all = append(all, listed{id: f.id, name: f.name, labels: f.labels, created: f.created, show: func() any { return h.firewall(f) }})
	}
	return h.list("firewalls", all)
}

func (h hetzner) findFirewall() (*firewall, error) {
	if f := h.project.rules[h.pathID()]; f != nil {
		return f, nil
	}
	return nil, hetznerNotFound("firewall", h.r.PathValue("id"))
}

func (h hetzner) getFirewall() error {
	f, err := h.findFirewall()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"firewall": h.firewall(f)})
	return nil
}

func (h hetzner) updateFirewall() error {
	f, err := h.findFirewall()
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
	labels, err := hetznerLabels(b.Labels, f.labels)
	if err != nil {
		return err
	}
	if b.Name != nil && *b.Name != f.name {
		if err := h.checkFirewallName(*b.Name); err != nil {
			return err
		}
		f.name = *b.Name
	}
	f.labels = labels
	h.send(http.StatusOK, map[string]any{"firewall": h.firewall(f)})
	return nil
}

func (h hetzner) deleteFirewall() error {
	f, err := h.findFirewall()
	if err != nil {
		return err
	}
	if len(f.attached) > 0 || len(f.selectors) > 0 {
		return hetznerFail(http.StatusConflict, "resource_in_use", "firewall with ID '%d' is still in use", f.id)
	}
	delete(h.project.rules, f.id)
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h hetzner) actOnFirewall() error {
	f, err := h.findFirewall()
	if err != nil {
		return err
	}
	var b struct {
		Rules      []hetznerRule   `json:"rules"`
		ApplyTo    []hetznerTarget `json:"apply_to"`
		RemoveFrom []hetznerTarget `json:"remove_from"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	var actions []any
	switch h.r.PathValue("action") {
	case "set_rules":
		rules, err := readRules(b.Rules)
		if err != nil {
			return err
		}
		f.rules = rules
		actions = []any{h.action(h.sim.begin(h.project, h.now, "set_firewall_rules", 0, nil, resource{"firewall", f.id}))}
	case "apply_to_resources":
		if actions, err = h.apply(f, b.ApplyTo); err != nil {
			return err
		}
	case "remove_from_resources":
		if actions, err = h.unapply(f, b.RemoveFrom); err != nil {
			return err
		}
	default:
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	}
	h.send(http.StatusCreated, map[string]any{"actions": orEmpty(actions)})
	return nil
}

func (h hetzner) unapply(f *firewall, targets []hetznerTarget) ([]any, error) {
	var actions []any
	for _, t := range targets {
		switch {
		case t.Type == "server" && t.Server != nil:
			// One that is not there is no error; one that a selector brings
			// cannot be taken away from a single server.
			s := h.project.servers[t.Server.ID]
			_, direct := f.attached[t.Server.ID]
			switch {
			case s == nil:
				return nil, hetznerFail(http.StatusUnprocessableEntity, "firewall_resource_not_found", "server with ID '%d' not found", t.Server.ID)
			case !direct && f.statusOn(s, h.now) != "":
				return nil, hetznerFail(http.StatusUnprocessableEntity, "firewall_managed_by_label_selector", "firewall is applied by a label selector")
			}
			delete(f.attached, s.id)
			actions = append(actions, h.firewallAction("remove_firewall", f, s.id))
		case t.Type == "label_selector" && t.Selector != nil:
			f.selectors = slices.DeleteFunc(f.selectors, func(s selectorSince) bool { return s.selector == t.Selector.Selector })
		default:
			return nil, hetznerField("remove_from", "must be a server or a label selector")
		}
	}
	return actions, nil
}
