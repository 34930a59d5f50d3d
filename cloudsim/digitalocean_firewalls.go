package cloudsim

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Firewalls.

const (
	doFirewallTakes    = time.Second
	doFirewallTags     = 5
	doFirewallDroplets = 10
	doFirewallRules    = 50
)

type doFirewall struct {
	ID         string
	Name       string
	CreatedAt  time.Time
	Inbound    []doRule
	Outbound   []doRule
	DropletIDs []int64
	Tags       []string
	changed    time.Time
}

type doRule struct {
	Protocol     string   `json:"protocol"`
	Ports        string   `json:"ports,omitempty"`
	Sources      *doPeers `json:"sources,omitempty"`
	Destinations *doPeers `json:"destinations,omitempty"`
}

type doPeers struct {
	Addresses  []string `json:"addresses,omitempty"`
	DropletIDs []int64  `json:"droplet_ids,omitempty"`
	Balancers  []string `json:"load_balancer_uids,omitempty"`
	Clusters   []string `json:"kubernetes_ids,omitempty"`
	Tags       []string `json:"tags,omitempty"`
}

func (p *doPeers) empty() bool {
	return p == nil || len(p.Addresses)+len(p.DropletIDs)+len(p.Balancers)+len(p.Clusters)+len(p.Tags) == 0
}

// firewallBody is a whole firewall, as PUT and POST take it.
type doFirewallBody struct {
	Name       string   `json:"name"`
	Inbound    []doRule `json:"inbound_rules"`
	Outbound   []doRule `json:"outbound_rules"`
	DropletIDs []int64  `json:"droplet_ids"`
	Tags       []string `json:"tags"`
}

func (a *doAccount) firewall(id string) *doFirewall {
	for _, f := range a.firewalls {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// covers tells whether a firewall counts for a Droplet: by its number, or by
// a tag, from the Droplet's first moment on.
func (f *doFirewall) covers(s *doDroplet) bool {
	return slices.Contains(f.DropletIDs, s.id) || slices.ContainsFunc(f.Tags, func(t string) bool { return slices.Contains(s.tags, t) })
}

func (d digitalOcean) firewall(f *doFirewall) map[string]any {
	status, pending := "succeeded", []any{}
	if d.now.Sub(f.changed) < doFirewallTakes {
		for _, s := range sorted(d.account.droplets) {
			if f.covers(s) {
				status = "waiting"
				pending = append(pending, map[string]any{"droplet_id": s.id, "removing": false, "status": "waiting"})
			}
		}
	}
	return map[string]any{
		"id": f.ID, "name": f.Name, "status": status, "created_at": f.CreatedAt.UTC().Format(time.RFC3339), "pending_changes": pending,
		"inbound_rules": orEmpty(f.Inbound), "outbound_rules": orEmpty(f.Outbound), "droplet_ids": orEmpty(f.DropletIDs), "tags": orEmpty(f.Tags),
	}
}

var (
	doFirewallName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]+$`)
	doPorts        = regexp.MustCompile(`^([0-9]{1,5})(-([0-9]{1,5}))?$`)
)

// checkFirewall answers as the API does to what is wrong with a whole one.
func (d digitalOcean) checkFirewall(b *doFirewallBody, self *doFirewall) error {
	switch {
	case len(b.Name) > 255 || !doFirewallName.MatchString(b.Name):
		return doBad("firewall name must begin with an alphanumeric character and contain only alphanumeric characters, periods and dashes")
	case slices.ContainsFunc(d.account.firewalls, func(f *doFirewall) bool { return f != self && f.Name == b.Name }):
		return doFail(http.StatusConflict, "conflict", "duplicate name")
	case len(b.Inbound)+len(b.Outbound) == 0:
		return doBad("firewall must have at least one rule")
	case len(b.Inbound)+len(b.Outbound) > doFirewallRules:
		return doBad("firewall must have at most %d rules", doFirewallRules)
	case len(b.Tags) > doFirewallTags:
		return doBad("firewall must have at most %d tags", doFirewallTags)
	case len(b.DropletIDs) > doFirewallDroplets:
		return doBad("firewall must have at most %d droplets", doFirewallDroplets)
	}
	for i := range b.Inbound {
		if err := d.checkRule(&b.Inbound[i], b.Inbound[i].Sources, "sources"); err != nil {
			return err
		}
	}
	for i := range b.Outbound {
		if err := d.checkRule(&b.Outbound[i], b.Outbound[i].Destinations, "destinations"); err != nil {
			return err
		}
	}
	if err := d.checkDroplets(b.DropletIDs); err != nil {
		return err
	}
	return d.checkTags(b.Tags)
}

// checkRule refuses a bad rule, and writes a good one as the API shows it.
func (d digitalOcean) checkRule(r *doRule, peers *doPeers, side string) error {
	if !slices.Contains([]string{"tcp", "udp", "icmp"}, r.Protocol) {
		return doBad("protocol must be one of tcp, udp, icmp")
	}
	if peers.empty() {
		return doBad("rule must have %s", side)
	}
	switch {
	case r.Protocol == "icmp":
		r.Ports = "0"
	case r.Ports == "all" || r.Ports == "0":
		r.Ports = "0"
	default:
		m := doPorts.FindStringSubmatch(r.Ports)
		if m == nil {
			return doBad("ports must be a port, a range of ports, or all")
		}
		from, _ := strconv.Atoi(m[1])
		to, err := strconv.Atoi(m[3])
		if err != nil {
			to = from
		}
		if from < 1 || to > 65535 || to < from {
			return doBad("ports must be from 1 to 65535")
		}
	}
	for _, a := range peers.Addresses {
		if _, err := netip.ParseAddr(a); err == nil {
			continue
		}
		if _, err := netip.ParsePrefix(a); err != nil {
			return doBad("invalid address %s in %s", a, side)
		}
	}
	if err := d.checkDroplets(peers.DropletIDs); err != nil {
		return err
	}
	return d.checkTags(peers.Tags)
}

func (d digitalOcean) checkDroplets(ids []int64) error {
	for _, id := range ids {
		if d.account.droplets[id] == nil {
			return doBad("droplet %d does not exist", id)
		}
	}
	return nil
}

// checkTags refuses tags that do not exist: a firewall makes none.
func (d digitalOcean) checkTags(tags []string) error {
	for i, t := range tags {
		known := d.account.tag(t)
		if known == "" {
			return doBad("tag %s does not exist", t)
		}
		tags[i] = known
	}
	return nil
}

func (d digitalOcean) createFirewall() error {
	var b doFirewallBody
	if err := d.read(&b); err != nil {
		return err
	}
	if err := d.checkFirewall(&b, nil); err != nil {
		return err
	}
	f := &doFirewall{ID: d.sim.uuid(), CreatedAt: d.now}
	f.set(b, d.now)
	d.account.firewalls = append(d.account.firewalls, f)
	d.send(http.StatusAccepted, map[string]any{"firewall": d.firewall(f)})
	return nil
}

func (f *doFirewall) set(b doFirewallBody, now time.Time) {
	f.Name, f.Inbound, f.Outbound, f.DropletIDs, f.Tags, f.changed = b.Name, b.Inbound, b.Outbound, b.DropletIDs, b.Tags, now
}

func (d digitalOcean) listFirewalls() error {
	var all []map[string]any
	for _, f := range d.account.firewalls {
		all = append(all, d.firewall(f))
	}
	return doPage(d, "firewalls", all)
}

func (d digitalOcean) listDropletFirewalls() error {
	s, err := d.findDroplet()
	if err != nil {
		return err
	}
	var all []map[string]any
	for _, f := range d.account.firewalls {
		if f.covers(s) {
			all = append(all, d.firewall(f))
		}
	}
	return doPage(d, "firewalls", all)
}

func (d digitalOcean) findFirewall() (*doFirewall, error) {
	if f := d.account.firewall(d.r.PathValue("id")); f != nil {
		return f, nil
	}
	return nil, doNotFound()
}

func (d digitalOcean) getFirewall() error {
	f, err := d.findFirewall()
	if err != nil {
		return err
	}
	d.send(http.StatusOK, map[string]any{"firewall": d.firewall(f)})
	return nil
}

func (d digitalOcean) updateFirewall() error {
	f, err := d.findFirewall()
	if err != nil {
		return err
	}
	var b doFirewallBody
	if err := d.read(&b); err != nil {
		return err
	}
	if err := d.checkFirewall(&b, f); err != nil {
		return err
	}
	f.set(b, d.now)
	d.send(http.StatusOK, map[string]any{"firewall": d.firewall(f)})
	return nil
}

func (d digitalOcean) deleteFirewall() error {
	f, err := d.findFirewall()
	if err != nil {
		return err
	}
	d.account.firewalls = slices.DeleteFunc(d.account.firewalls, func(x *doFirewall) bool { return x == f })
	return d.done()
}

// addToFirewall adds Droplets, tags or rules.
func (d digitalOcean) addToFirewall() error {
	return d.changeFirewall(func(b, more *doFirewallBody) {
		b.DropletIDs = union(b.DropletIDs, more.DropletIDs)
		b.Tags = union(b.Tags, more.Tags)
		b.Inbound, b.Outbound = append(b.Inbound, more.Inbound...), append(b.Outbound, more.Outbound...)
	})
}

func (d digitalOcean) takeFromFirewall() error {
	return d.changeFirewall(func(b, less *doFirewallBody) {
		b.DropletIDs = without(b.DropletIDs, less.DropletIDs)
		b.Tags = without(b.Tags, less.Tags)
		b.Inbound, b.Outbound = withoutRules(b.Inbound, less.Inbound), withoutRules(b.Outbound, less.Outbound)
	})
}

func (d digitalOcean) changeFirewall(change func(b, by *doFirewallBody)) error {
	f, err := d.findFirewall()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"droplets", "tags", "rules"}, d.r.PathValue("part")) {
		return doNotFound()
	}
	var by doFirewallBody
	if err := d.read(&by); err != nil {
		return err
	}
	b := doFirewallBody{Name: f.Name, Inbound: slices.Clone(f.Inbound), Outbound: slices.Clone(f.Outbound), DropletIDs: slices.Clone(f.DropletIDs), Tags: slices.Clone(f.Tags)}
	change(&b, &by)
	if err := d.checkFirewall(&b, f); err != nil {
		return err
	}
	f.set(b, d.now)
	return d.done()
}

func union[T comparable](a, b []T) []T {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

func without[T comparable](a, b []T) []T {
	return slices.DeleteFunc(a, func(x T) bool { return slices.Contains(b, x) })
}

// withoutRules takes away the rules of the same protocol and ports.
func withoutRules(a, b []doRule) []doRule {
	same := func(x, y doRule) bool {
		all := func(r doRule) string {
			if r.Ports == "all" || r.Protocol == "icmp" {
				return "0"
			}
			return strings.TrimSpace(r.Ports)
		}
		return x.Protocol == y.Protocol && all(x) == all(y)
	}
	return slices.DeleteFunc(a, func(x doRule) bool { return slices.ContainsFunc(b, func(y doRule) bool { return same(x, y) }) })
}
