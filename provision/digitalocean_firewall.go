package provision

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
)

// Create: the firewalls.
//
// A Droplet without a firewall is open. The account's shared firewall covers
// every Droplet with our tag, and has no inbound rule; its outbound rules are
// needed, since a firewall without any drops all outbound. SSH opt-in adds a
// second firewall, on the tag of the one create; rules of several add up.

// sharedFirewall makes sure that there is the firewall without inbound rules,
// made at first need and brought back when somebody changed it.
func (d *DigitalOcean) sharedFirewall(ctx context.Context) error {
	name := d.labels.key(roleNoInbound)
	_, err := d.firewalls.get(ctx, name, func(ctx context.Context) (string, error) {
		const op = "ensure the firewall without inbound rules"
		f, found, err := d.firewallByName(ctx, op, name)
		if err != nil {
			return "", err
		}
		want := doPutFirewall{Name: name, Inbound: []doRule{}, Outbound: doOutbound(), Tags: []string{d.managedTag()}, DropletIDs: []int64{}}
		if !found {
			if err := d.ensureTag(ctx, op, d.managedTag()); err != nil {
				return "", err
			}
			f, _, err = d.createFirewall(ctx, op, want)
			return f.ID, err
		}
		if d.isWhole(f) {
			return f.ID, nil
		}
		d.logger.WarnContext(ctx, "the shared firewall was changed and is brought back", slog.String("firewall", name),
			slog.String("id", f.ID), slog.Int("inbound_rules", len(f.Inbound)), slog.Int("outbound_rules", len(f.Outbound)))
		if err := d.ensureTag(ctx, op, d.managedTag()); err != nil {
			return "", err
		}
		want.DropletIDs = append(want.DropletIDs, f.DropletIDs...)
		for _, t := range f.Tags { // whatever else it covers stays covered
			if t != d.managedTag() {
				want.Tags = append(want.Tags, t)
			}
		}
		return f.ID, d.api.do(ctx, call{op: op, method: http.MethodPut, path: "/v2/firewalls/" + f.ID, body: want}, nil)
	})
	return err
}

// isWhole tells whether the shared firewall is as it was made: nothing comes
// in, everything goes out, and our tag is covered.
func (d *DigitalOcean) isWhole(f doFirewall) bool {
	for _, want := range doOutbound() {
		if !slices.ContainsFunc(f.Outbound, want.covers) {
			return false
		}
	}
	return len(f.Inbound) == 0 && slices.Contains(f.Tags, d.managedTag())
}

// doOutbound lets everything out. "0" is every port.
func doOutbound() []doRule {
	everywhere := &doPeers{Addresses: anywhere()}
	return []doRule{
		{Protocol: "tcp", Ports: "0", Destinations: everywhere},
		{Protocol: "udp", Ports: "0", Destinations: everywhere},
		{Protocol: "icmp", Destinations: everywhere},
	}
}

// covers tells whether a rule that the API shows is this one: it writes every
// port as "0", "all" or the whole range, and icmp with or without ports.
func (r doRule) covers(shown doRule) bool {
	if shown.Protocol != r.Protocol || shown.Destinations == nil {
		return false
	}
	if r.Protocol != "icmp" && !slices.Contains([]string{"0", "all", "1-65535"}, shown.Ports) {
		return false
	}
	for _, a := range r.Destinations.Addresses {
		if !slices.Contains(shown.Destinations.Addresses, a) {
			return false
		}
	}
	return true
}

// ensureTag makes a tag, which a firewall can only name when it exists. To
// make one again is no error.
func (d *DigitalOcean) ensureTag(ctx context.Context, op, tag string) error {
	err := d.api.do(ctx, call{op: op, method: http.MethodPost, path: "/v2/tags", body: doCreateTag{Name: tag}, harmless: true}, nil)
	if errors.Is(err, ErrConflict) {
		return nil
	}
	return err
}

// createFirewall makes a firewall. Names are unique: of two who make it at the
// same time one is told so, and a lost answer is found by a look.
func (d *DigitalOcean) createFirewall(ctx context.Context, op string, want doPutFirewall) (f doFirewall, made bool, err error) {
	var one doOneFirewall
	err = d.api.do(ctx, call{op: op, method: http.MethodPost, path: "/v2/firewalls", body: want}, &one)
	if err == nil && one.Firewall != nil && one.Firewall.ID != "" {
		return *one.Firewall, true, nil
	}
	if err != nil && !unclear(err) && !errors.Is(err, ErrConflict) {
		return doFirewall{}, false, err
	}
	f, found, lookErr := d.firewallByName(ctx, op, want.Name)
	switch {
	case lookErr != nil:
		return doFirewall{}, false, lookErr
	case found:
		return f, false, nil
	case err == nil:
		err = d.fail(ErrUnavailable, op, "", "the answer names no firewall")
	}
	return doFirewall{}, false, err
}

func (d *DigitalOcean) firewallByName(ctx context.Context, op, name string) (doFirewall, bool, error) {
	list, err := doList[doFirewalls](ctx, d, op, "/v2/firewalls", nil)
	if err != nil {
		return doFirewall{}, false, err
	}
	for _, f := range list {
		if f.Name == name {
			return f, true, nil
		}
	}
	return doFirewall{}, false, nil
}

// sshFirewallName is made of the create's key, by which everybody finds it.
func (d *DigitalOcean) sshFirewallName(key string) string { return d.labels.key(roleSSH) + "-" + key }

// sshFirewall makes the server's own firewall and the tag that it covers,
// before the server. One that the same create made before an answer was lost
// is used again, and with it the tag that it covers.
func (d *DigitalOcean) sshFirewall(ctx context.Context, opts CreateOpts, id identity, made *doMade) error {
	const op = "make the SSH firewall"
	sources := opts.SSHSourceCIDRs
	if len(sources) == 0 {
		sources = anywhere()
	}
	tag := d.markTag(made.mark)
	if err := d.ensureTag(ctx, op, tag); err != nil {
		return err
	}
	made.tag = true
	f, isNew, err := d.createFirewall(ctx, op, doPutFirewall{
		Name: d.sshFirewallName(id.key), Tags: []string{tag}, Outbound: doOutbound(), DropletIDs: []int64{},
		Inbound: []doRule{{Protocol: "tcp", Ports: "22", Sources: &doPeers{Addresses: sources}}},
	})
	if err != nil {
		return err
	}
	if isNew {
		made.firewall = &f
		return nil
	}
	m, _, ok := d.markOf(f.Tags)
	switch {
	case !ok || m.key != id.key:
		return d.fail(ErrConflict, op, "rename or remove that firewall", "there is a firewall %q (id %s) that was not made for this", f.Name, f.ID)
	case m.params != id.params:
		return d.otherParams(op, "firewall", f.ID)
	}
	if d.markTag(m) != tag {
		if err := d.remove(ctx, op, doTagPath(tag)); err != nil {
			return err
		}
	}
	made.firewall, made.mark = &f, m
	return nil
}

func doTagPath(tag string) string { return "/v2/tags/" + tag }

// removeSSHFirewall removes the firewall of one create, if there is one.
func (d *DigitalOcean) removeSSHFirewall(ctx context.Context, key string) error {
	const op = "remove the SSH firewall"
	f, found, err := d.firewallByName(ctx, op, d.sshFirewallName(key))
	if err != nil || !found {
		return err
	}
	return d.remove(ctx, op, "/v2/firewalls/"+f.ID)
}
