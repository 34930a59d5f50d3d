package provision

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
)

// Audit.

// ListResources lists Droplets by tag, the firewalls and SSH keys by the names
// that they are given here, volumes that carry our tag or are attached to one
// of these Droplets, and the tags of creates whose Droplet is gone. It makes no
// change; but when the shared firewall was changed, or a shared thing is gone,
// the next create puts that right.
//
// Snapshots and reserved IPs are not made here and carry no tags: one that
// somebody took of a Droplet, or gave it, is not in the list.
func (d *DigitalOcean) ListResources(ctx context.Context) ([]Resource, error) {
	const op = "audit"
	droplets, err := d.droplets(ctx, op, d.managedTag())
	if err != nil {
		return nil, err
	}
	volumes, err := doList[doVolumes](ctx, d, op, "/v2/volumes", nil)
	if err != nil {
		return nil, err
	}
	firewalls, err := doList[doFirewalls](ctx, d, op, "/v2/firewalls", nil)
	if err != nil {
		return nil, err
	}
	keys, err := doList[doKeys](ctx, d, op, "/v2/account/keys", nil)
	if err != nil {
		return nil, err
	}
	tags, err := doList[doTags](ctx, d, op, "/v2/tags", nil)
	if err != nil {
		return nil, err
	}
	d.recheckShared(ctx, firewalls, keys)

	var all []Resource
	byKey := map[string]doDroplet{}
	ours := map[int64]bool{}
	for _, s := range droplets {
		all = append(all, d.serverResource(s))
		ours[s.ID] = true
		if m, _, ok := d.markOf(s.Tags); ok {
			byKey[m.key] = s
		}
	}
	for _, v := range volumes {
		if d.isOurs(v.Tags) || slices.ContainsFunc(v.DropletIDs, func(id int64) bool { return ours[id] }) {
			all = append(all, d.volumeResource(v))
		}
	}
	for _, f := range firewalls {
		if d.isOurFirewall(f) {
			all = append(all, d.firewallResource(f, byKey))
		}
	}
	for _, k := range keys {
		if k.Name == d.labels.key(roleNoLogin) || d.isOurKey(k) {
			all = append(all, Resource{Kind: KindSSHKey, ID: doID(k.ID), Name: k.Name, Shared: true})
		}
	}
	for _, t := range tags {
		if m, ok := d.readMark(t.Name); ok && byKey[m.key].ID == 0 && t.Resources.Count == 0 {
			all = append(all, d.tagResource(t.Name, m))
		}
	}
	return all, nil
}

// recheckShared compares what is remembered of the shared things with what a
// list shows, so that creates can go on without looking.
func (d *DigitalOcean) recheckShared(ctx context.Context, firewalls []doFirewall, keys []doKey) {
	d.firewalls.forgetAll()
	for _, f := range firewalls {
		switch {
		case f.Name != d.labels.key(roleNoInbound):
		case d.isWhole(f):
			d.firewalls.put(f.Name, f.ID)
		default:
			d.logger.WarnContext(ctx, "the shared firewall was changed; the next create brings it back",
				slog.String("firewall", f.Name), slog.String("id", f.ID), slog.Int("inbound_rules", len(f.Inbound)))
		}
	}
	d.keys.forgetAll()
	var nobodys int64
	for _, k := range keys {
		switch {
		case k.Name == d.labels.key(roleNoLogin) && (nobodys == 0 || k.ID < nobodys):
			nobodys = k.ID
			d.keys.put(roleNoLogin, k.ID)
		case d.isOurKey(k):
			d.keys.put("fingerprint:"+k.Fingerprint, k.ID)
		}
	}
}

// isOurKey tells a key that was uploaded for somebody by its name, which is
// made of its fingerprint.
func (d *DigitalOcean) isOurKey(k doKey) bool {
	return k.Name == publicKey{fingerprint: k.Fingerprint}.name(d.labels.short)
}

func (d *DigitalOcean) isOurFirewall(f doFirewall) bool {
	return f.Name == d.labels.key(roleNoInbound) || strings.HasPrefix(f.Name, d.sshFirewallName(""))
}

func (d *DigitalOcean) serverResource(s doDroplet) Resource {
	return Resource{
		Kind: KindServer, ID: doID(s.ID), Name: s.Name, Region: s.Region.Slug, ServerID: doID(s.ID),
		CreatedAt: s.Created, Labels: d.labelsOf(s.Tags), Billable: true,
	}
}

func (d *DigitalOcean) volumeResource(v doVolume) Resource {
	r := Resource{
		Kind: KindVolume, ID: v.ID, Name: v.Name, Region: v.Region.Slug,
		CreatedAt: v.Created, Labels: d.labelsOf(v.Tags), Billable: true,
	}
	if len(v.DropletIDs) > 0 {
		r.ServerID = doID(v.DropletIDs[0])
	}
	return r
}

// firewallResource gives an SSH firewall the labels of the create that it was
// made for: it has none of its own, only the tag that it covers.
func (d *DigitalOcean) firewallResource(f doFirewall, byKey map[string]doDroplet) Resource {
	r := Resource{Kind: KindFirewall, ID: f.ID, Name: f.Name, CreatedAt: f.Created, Labels: d.labelsOf(f.Tags)}
	r.Labels[managedBy] = d.labels.short
	if r.Shared = f.Name == d.labels.key(roleNoInbound); r.Shared {
		return r
	}
	if s, ok := byKey[strings.TrimPrefix(f.Name, d.sshFirewallName(""))]; ok {
		r.ServerID = doID(s.ID)
	}
	return r
}

func (d *DigitalOcean) tagResource(tag string, m doCreateMark) Resource {
	r := Resource{Kind: KindTag, ID: tag, Name: tag, CreatedAt: m.at, Labels: d.labelsOf([]string{tag})}
	r.Labels[managedBy] = d.labels.short
	return r
}

// DeleteResource removes one resource. A server goes with all that was made
// for it, as by DeleteServer. A volume that is attached is ErrConflict. A tag
// that is not one create's own is ErrInvalid: it may be on other servers.
func (d *DigitalOcean) DeleteResource(ctx context.Context, r Resource) error {
	const op = "remove resource"
	switch r.Kind {
	case KindServer:
		if r.ID == "" {
			return d.deleteUnnamed(ctx, r)
		}
		return d.DeleteServer(ctx, r.ID)
	case KindFirewall:
		if !doWord(r.ID) {
			return invalidError("digitalocean", op, "%q is no firewall id", clip(r.ID, 60))
		}
		d.firewalls.forgetAll()
		return d.remove(ctx, op, "/v2/firewalls/"+r.ID)
	case KindSSHKey:
		id, err := d.parseID(op, r.Kind, r.ID)
		if err != nil {
			return err
		}
		d.keys.forgetAll()
		return d.remove(ctx, op, "/v2/account/keys/"+doID(id))
	case KindVolume:
		if !doWord(r.ID) {
			return invalidError("digitalocean", op, "%q is no volume id", clip(r.ID, 60))
		}
		return d.remove(ctx, op, "/v2/volumes/"+r.ID)
	case KindTag:
		if _, ok := d.readMark(r.ID); !ok {
			return invalidError("digitalocean", op, "%q is no tag of a create", clip(r.ID, 80))
		}
		return d.remove(ctx, op, doTagPath(r.ID))
	}
	return invalidError("digitalocean", op, "DigitalOcean has no resource of kind %q", r.Kind)
}

// doWord keeps an id from leading to another path.
func doWord(id string) bool {
	return id != "" && !strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// deleteUnnamed removes the server of a create whose answer and look-up were
// both lost, if there is one: see PartialError.
func (d *DigitalOcean) deleteUnnamed(ctx context.Context, r Resource) error {
	key := r.Labels[d.labels.key(labelKey)]
	if key == "" {
		return nil
	}
	list, err := doList[doDroplets](ctx, d, "remove resource", "/v2/droplets", url.Values{"name": {r.Name}})
	if err != nil {
		return err
	}
	for _, s := range list {
		if m, _, ok := d.markOf(s.Tags); ok && m.key == key && d.isOurs(s.Tags) {
			if err := d.DeleteServer(ctx, doID(s.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
