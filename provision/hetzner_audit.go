package provision

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
)

// Audit.

// ListResources lists servers, volumes, firewalls and SSH keys by label, and
// of the primary IPs those with the label and those attached to one of these
// servers: Hetzner makes the latter itself and labels nothing. It makes no
// change; but when the shared firewall has got rules, or a shared thing is
// gone, the next create puts that right.
func (h *Hetzner) ListResources(ctx context.Context) ([]Resource, error) {
	const op = "audit"
	selector := h.labels.selector(nil)
	labelled := func() url.Values { return inOrder(url.Values{"label_selector": {selector}}) }

	servers, err := h.servers(ctx, op, selector)
	if err != nil {
		return nil, err
	}
	addresses, err := hzList[hzPrimaryIPs](ctx, h, op, "/primary_ips", inOrder(nil))
	if err != nil {
		return nil, err
	}
	volumes, err := hzList[hzVolumes](ctx, h, op, "/volumes", labelled())
	if err != nil {
		return nil, err
	}
	firewalls, err := hzList[hzFirewalls](ctx, h, op, "/firewalls", labelled())
	if err != nil {
		return nil, err
	}
	keys, err := hzList[hzKeys](ctx, h, op, "/ssh_keys", labelled())
	if err != nil {
		return nil, err
	}
	h.recheckShared(ctx, firewalls, keys)

	var all []Resource
	ours := map[int64]bool{}
	for _, s := range servers {
		ours[s.ID] = true
		all = append(all, h.serverResource(s))
	}
	for _, a := range byID(addresses, func(a hzPrimaryIP) int64 { return a.ID }) {
		if ours[a.AssigneeID] || h.labels.isOurs(a.Labels) {
			all = append(all, addressResource(a))
		}
	}
	for _, v := range byID(volumes, func(v hzVolume) int64 { return v.ID }) {
		all = append(all, volumeResource(v))
	}
	for _, f := range byID(firewalls, func(f hzFirewall) int64 { return f.ID }) {
		all = append(all, h.firewallResource(f))
	}
	for _, k := range byID(keys, func(k hzKey) int64 { return k.ID }) {
		all = append(all, h.keyResource(k))
	}
	return all, nil
}

// recheckShared compares what is remembered of the shared things with what a
// list shows, so that creates can go on without looking.
func (h *Hetzner) recheckShared(ctx context.Context, firewalls []hzFirewall, keys []hzKey) {
	h.firewalls.forgetAll()
	for _, f := range firewalls {
		switch {
		case f.Name != h.labels.key(roleNoInbound) || f.Labels[h.labels.key(labelRole)] != roleNoInbound:
		case len(f.Rules) > 0:
			h.logger.WarnContext(ctx, "the shared firewall has rules; the next create brings it back to none",
				slog.String("firewall", f.Name), slog.Int64("id", f.ID), slog.Int("rules", len(f.Rules)))
		default:
			h.firewalls.put(f.Name, f.ID)
		}
	}
	h.keys.forgetAll()
	for _, k := range keys {
		switch k.Labels[h.labels.key(labelRole)] {
		case roleNoLogin:
			if k.Name == h.labels.key(roleNoLogin) {
				h.keys.put(roleNoLogin, k.ID)
			}
		case roleLogin:
			h.keys.put("fingerprint:"+k.Fingerprint, k.ID)
		}
	}
}

func (h *Hetzner) serverResource(s hzServer) Resource {
	return Resource{
		Kind: KindServer, ID: hzID(s.ID), Name: s.Name, Region: s.Location.Name, ServerID: hzID(s.ID),
		CreatedAt: s.Created, Labels: s.Labels, Billable: true,
	}
}

func addressResource(a hzPrimaryIP) Resource {
	r := Resource{
		Kind: KindPublicIP, ID: hzID(a.ID), Name: a.Name, Region: a.Location.Name,
		CreatedAt: a.Created, Labels: a.Labels, Billable: true,
	}
	if a.AssigneeID != 0 {
		r.ServerID = hzID(a.AssigneeID)
	}
	return r
}

func volumeResource(v hzVolume) Resource {
	r := Resource{
		Kind: KindVolume, ID: hzID(v.ID), Name: v.Name, Region: v.Location.Name,
		CreatedAt: v.Created, Labels: v.Labels, Billable: true,
	}
	if v.ServerID != 0 {
		r.ServerID = hzID(v.ServerID)
	}
	return r
}

func (h *Hetzner) firewallResource(f hzFirewall) Resource {
	r := Resource{Kind: KindFirewall, ID: hzID(f.ID), Name: f.Name, CreatedAt: f.Created, Labels: f.Labels}
	r.Shared = f.Labels[h.labels.key(labelRole)] == roleNoInbound
	if r.Shared {
		return r
	}
	r.ServerID = f.Labels[h.labels.key(labelServer)]
	for _, to := range f.AppliedTo {
		if to.Server != nil {
			r.ServerID = cmp.Or(r.ServerID, hzID(to.Server.ID))
		}
	}
	return r
}

func (h *Hetzner) keyResource(k hzKey) Resource {
	role := k.Labels[h.labels.key(labelRole)]
	return Resource{
		Kind: KindSSHKey, ID: hzID(k.ID), Name: k.Name, CreatedAt: k.Created, Labels: k.Labels,
		Shared: role == roleNoLogin || role == roleLogin,
	}
}

// DeleteResource removes one resource. A server goes with all that was made
// for it, as by DeleteServer. One that something else still uses is
// ErrConflict. To remove an address of a living server, delete the server.
func (h *Hetzner) DeleteResource(ctx context.Context, r Resource) error {
	const op = "remove resource"
	if r.Kind == KindServer && r.ID == "" {
		return h.deleteUnnamed(ctx, r)
	}
	id, err := h.parseID(op, r.Kind, r.ID)
	if err != nil {
		return err
	}
	switch r.Kind {
	case KindServer:
		return h.DeleteServer(ctx, r.ID)
	case KindFirewall:
		h.firewalls.forgetAll()
		return h.remove(ctx, op, "/firewalls/"+hzID(id))
	case KindPublicIP:
		return h.remove(ctx, op, "/primary_ips/"+hzID(id))
	case KindSSHKey:
		h.keys.forgetAll()
		return h.remove(ctx, op, "/ssh_keys/"+hzID(id))
	case KindVolume:
		return h.remove(ctx, op, "/volumes/"+hzID(id))
	}
	return invalidError("hetzner", op, "Hetzner has no resource of kind %q", r.Kind)
}

// deleteUnnamed removes the server of a create whose answer and look-up were
// both lost, if there is one: see PartialError.
func (h *Hetzner) deleteUnnamed(ctx context.Context, r Resource) error {
	s, found, err := h.serverByName(ctx, r.Name)
	if err != nil || !found {
		return err
	}
	key := h.labels.key(labelKey)
	if !h.labels.isOurs(s.Labels) || r.Labels[key] == "" || s.Labels[key] != r.Labels[key] {
		return nil
	}
	return h.DeleteServer(ctx, hzID(s.ID))
}
