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
		if f.attached[s.id] {
			o.AppliedTo = append(o.AppliedTo, hetznerServerTarget(s.id))
		}
	}
	for _, sel := range f.selectors {
		t := hetznerTarget{Type: "label_selector", Selector: &struct {
			Selector string `json:"selector"`
		}{sel}}
		rs, _ := parseSelector(sel) // checked when it was set
		for _, s := range sorted(h.project.servers) {
			if selects(rs, s.labels) {
				t.Applied = append(t.Applied, hetznerServerTarget(s.id))
			}
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
	if b.Name == "" || len(b.Name) > 128 {
		return hetznerField("name", "must have from 1 to 128 characters")
	}
	if slices.ContainsFunc(sorted(h.project.rules), func(f *firewall) bool { return f.name == b.Name }) {
		return hetznerFail(http.StatusConflict, "uniqueness_error", "name is already used")
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	rules, err := readRules(b.Rules)
	if err != nil {
		return err
	}
	f := &firewall{id: h.sim.world.id(hetznerName, "firewall"), name: b.Name, labels: labels, created: h.now, rules: rules, attached: map[int64]bool{}}
	actions := []any{h.action(h.sim.begin(h.project, h.now, "set_firewall_rules", 0, nil, resource{"firewall", f.id}))}
	applied, err := h.apply(f, b.ApplyTo)
	if err != nil {
		return err
	}
	h.project.rules[f.id] = f
	h.send(http.StatusCreated, map[string]any{"firewall": h.firewall(f), "actions": append(actions, applied...)})
	return nil
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
			if f.attached[s.id] {
				return nil, hetznerFail(http.StatusConflict, "firewall_already_applied", "firewall is already applied on server '%d'", s.id)
			}
			f.attached[s.id] = true
			s.rules = append(s.rules, f.id)
			actions = append(actions, h.action(h.sim.begin(h.project, h.now, "apply_firewall", time.Second, nil, resource{"server", s.id}, resource{"firewall", f.id})))
		case t.Type == "label_selector" && t.Selector != nil:
			if _, err := parseSelector(t.Selector.Selector); err != nil {
				return nil, hetznerField("apply_to", err.Error())
			}
			f.selectors = append(f.selectors, t.Selector.Selector)
		default:
			return nil, hetznerField("apply_to", "must be a server or a label selector")
		}
	}
	return actions, nil
}

func (h hetzner) listFirewalls() error {
	sel, err := h.selector()
	if err != nil {
		return err
	}
	var all []any
	for _, f := range sorted(h.project.rules) {
		if n := h.r.URL.Query().Get("name"); (n == "" || n == f.name) && selects(sel, f.labels) {
			all = append(all, h.firewall(f))
		}
	}
	return h.page("firewalls", all)
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
	if b.Name != nil {
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
			if !f.attached[t.Server.ID] {
				return nil, hetznerFail(http.StatusConflict, "firewall_already_removed", "firewall is not applied on server '%d'", t.Server.ID)
			}
			delete(f.attached, t.Server.ID)
			if s := h.project.servers[t.Server.ID]; s != nil {
				s.rules = slices.DeleteFunc(s.rules, func(id int64) bool { return id == f.id })
			}
			actions = append(actions, h.action(h.sim.begin(h.project, h.now, "remove_firewall", time.Second, nil, resource{"server", t.Server.ID}, resource{"firewall", f.id})))
		case t.Type == "label_selector" && t.Selector != nil:
			f.selectors = slices.DeleteFunc(f.selectors, func(s string) bool { return s == t.Selector.Selector })
		default:
			return nil, hetznerField("remove_from", "must be a server or a label selector")
		}
	}
	return actions, nil
}
