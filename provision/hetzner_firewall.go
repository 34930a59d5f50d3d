package provision

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// Create: the firewalls.
//
// Every server gets the account's shared firewall without rules: all inbound
// is dropped, all outbound and its replies pass. SSH opt-in adds a second one,
// the server's own; rules of several firewalls add up.

// sharedFirewall returns the id of the firewall without rules, made at first
// need and brought back to no rules when somebody gave it some.
func (h *Hetzner) sharedFirewall(ctx context.Context) (int64, error) {
	name := h.labels.key(roleNoInbound)
	return h.firewalls.get(ctx, name, func(ctx context.Context) (int64, error) {
		const op = "ensure the firewall without rules"
		want := hzCreateFirewall{Name: name, Labels: h.labels.shared(roleNoInbound), Rules: []hzRule{}}
		f, _, err := h.ensureFirewall(ctx, op, want)
		if err != nil {
			return 0, err
		}
		if f.Labels[h.labels.key(labelRole)] != roleNoInbound || !h.labels.isOurs(f.Labels) {
			return 0, h.fail(ErrConflict, op, "rename that firewall, or use another short name",
				"there is a firewall %q (id %d) that was not made for this; it may have rules, so it is not used", name, f.ID)
		}
		if len(f.Rules) == 0 {
			return f.ID, nil
		}
		h.logger.WarnContext(ctx, "the shared firewall had rules and is brought back to none",
			slog.String("firewall", name), slog.Int64("id", f.ID), slog.Int("rules", len(f.Rules)))
		return f.ID, h.setRules(ctx, op, f.ID, []hzRule{})
	})
}

// ensureFirewall returns the firewall of that name, made now when there is
// none; made says which. Names are unique, so that of two who make it at the
// same time one is told so, and a lost answer is found by a second look.
func (h *Hetzner) ensureFirewall(ctx context.Context, op string, want hzCreateFirewall) (f hzFirewall, made bool, err error) {
	f, found, err := h.firewallByName(ctx, op, want.Name)
	if err != nil || found {
		return f, false, err
	}
	return h.createFirewall(ctx, op, want)
}

func (h *Hetzner) createFirewall(ctx context.Context, op string, want hzCreateFirewall) (f hzFirewall, made bool, err error) {
	var one hzOneFirewall
	err = h.api.do(ctx, call{op: op, method: http.MethodPost, path: "/firewalls", body: want}, &one)
	if err == nil && one.Firewall != nil && one.Firewall.ID > 0 {
		return *one.Firewall, true, nil
	}
	if err != nil && !unclear(err) && !hasCode(err, "uniqueness_error") {
		return hzFirewall{}, false, err
	}
	f, found, lookErr := h.firewallByName(ctx, op, want.Name)
	switch {
	case lookErr != nil:
		return hzFirewall{}, false, lookErr
	case found:
		return f, false, nil
	case err == nil:
		err = h.fail(ErrUnavailable, op, "", "the answer names no firewall")
	}
	return hzFirewall{}, false, err
}

func (h *Hetzner) firewallByName(ctx context.Context, op, name string) (hzFirewall, bool, error) {
	list, err := hzList[hzFirewalls](ctx, h, op, "/firewalls", url.Values{"name": {name}})
	if err != nil {
		return hzFirewall{}, false, err
	}
	for _, f := range list {
		if f.Name == name {
			return f, true, nil
		}
	}
	return hzFirewall{}, false, nil
}

func (h *Hetzner) setRules(ctx context.Context, op string, id int64, rules []hzRule) error {
	return h.api.do(ctx, call{
		op: op, method: http.MethodPost, path: "/firewalls/" + hzID(id) + "/actions/set_rules",
		body: hzSetRules{Rules: rules}, harmless: true,
	}, nil)
}

// sshFirewall makes the server's own firewall, before the server, since it is
// named in the create call. One of the same create, made before an answer was
// lost, is used again; one that a server of the same name left behind makes
// way.
func (h *Hetzner) sshFirewall(ctx context.Context, opts CreateOpts, id identity, made *made) (hzFirewall, error) {
	const op = "make the SSH firewall"
	sources := opts.SSHSourceCIDRs
	if len(sources) == 0 {
		sources = anywhere()
	}
	want := hzCreateFirewall{
		Name: sshFirewallName(opts.Name), Labels: h.labels.own(opts, id),
		Rules: []hzRule{{Direction: "in", Protocol: "tcp", Port: "22", SourceIPs: sources, Description: "SSH"}},
	}
	want.Labels[h.labels.key(labelRole)] = roleSSH
	for range 2 {
		f, isNew, err := h.createFirewall(ctx, op, want)
		if err != nil {
			return hzFirewall{}, err
		}
		if isNew {
			made.firewall = &f
			return f, nil
		}
		switch {
		case !h.labels.isOurs(f.Labels) || f.Labels[h.labels.key(labelRole)] != roleSSH:
			return hzFirewall{}, h.fail(ErrConflict, op, "rename or remove that firewall, or choose another server name",
				"there is a firewall %q (id %d) that was not made for this", f.Name, f.ID)
		case f.Labels[h.labels.key(labelKey)] == id.key:
			if f.Labels[h.labels.key(labelParams)] != id.params {
				return hzFirewall{}, h.otherParams(op, "firewall", f.ID)
			}
			return f, nil
		}
		// A leftover of an earlier server. While that one lives, this is refused.
		if err := h.remove(ctx, op, "/firewalls/"+hzID(f.ID)); err != nil {
			return hzFirewall{}, err
		}
	}
	return hzFirewall{}, h.fail(ErrConflict, op, "", "firewall %q is made by somebody else at the same time", want.Name)
}

// sshFirewallName stays below the length that a firewall's name may have.
func sshFirewallName(server string) string {
	if len(server) > 100 {
		server = server[:59] + "-" + shortHash([]byte(server))
	}
	return server + "-ssh"
}

// nameServer writes the server's id on its SSH firewall, by which the delete
// finds it.
func (h *Hetzner) nameServer(ctx context.Context, f hzFirewall, server int64) error {
	key := h.labels.key(labelServer)
	if f.Labels[key] == hzID(server) {
		return nil
	}
	labels := maps.Clone(f.Labels)
	labels[key] = hzID(server)
	return h.api.do(ctx, call{
		op: "label the SSH firewall", method: http.MethodPut, path: "/firewalls/" + hzID(f.ID),
		body: hzSetLabels{Labels: labels},
	}, nil)
}

// removeFirewall deletes a firewall and, while a server that is being deleted
// still holds it, comes back until the context ends.
func (h *Hetzner) removeFirewall(ctx context.Context, op string, id int64) error {
	for pause := time.Second; ; pause = min(2*pause, 5*time.Second) {
		err := h.remove(ctx, op, "/firewalls/"+hzID(id))
		if !hasCode(err, "resource_in_use") || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}

// unclear tells whether the call that failed with err may have had an effect.
func unclear(err error) bool {
	var e *ProviderError
	return errors.As(err, &e) && errors.Is(e, ErrUnavailable) && e.again != againAny
}

func hasCode(err error, code string) bool {
	var e *ProviderError
	return errors.As(err, &e) && e.Code == code
}
