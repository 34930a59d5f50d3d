package provision

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
)

// Audit.

// ListResources lists instances, disks and static addresses by label, the
// firewall rules whose description says that they are ours, and the shared
// network. An address that a server has for its lifetime is part of it.
func (g *GCP) ListResources(ctx context.Context) ([]Resource, error) {
	const op = "audit"
	servers, err := g.instances(ctx, op, nil)
	if err != nil {
		return nil, err
	}
	byLabel := url.Values{"filter": {g.filter(nil)}}
	disks, err := gcpAggregate[gcpScope](ctx, g, op, "disks", byLabel)
	if err != nil {
		return nil, err
	}
	addresses, err := gcpAggregate[gcpScope](ctx, g, op, "addresses", byLabel)
	if err != nil {
		return nil, err
	}
	firewalls, err := gcpList[gcpFirewall](ctx, g, g.api, op, g.global("firewalls"), nil)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, i := range servers {
		all = append(all, Resource{
			Kind: KindServer, ID: i.serverID(), Name: i.serverName(), Region: lastPart(i.Zone), ServerID: i.serverID(),
			CreatedAt: i.Created, Labels: i.Labels, Billable: true,
		})
	}
	for _, s := range disks {
		for _, d := range s.Disks {
			all = append(all, d.resource())
		}
	}
	for _, s := range addresses {
		for _, a := range s.Addresses {
			all = append(all, a.resource())
		}
	}
	for _, f := range firewalls {
		if labels := described(f.Description); g.labels.isOurs(labels) {
			all = append(all, Resource{
				Kind: KindFirewall, ID: f.Name, Name: f.Name, ServerID: labels[g.labels.key(labelServer)], CreatedAt: f.Created, Labels: labels,
			})
		}
	}
	return g.withNetwork(ctx, op, all)
}

func (g *GCP) withNetwork(ctx context.Context, op string, all []Resource) ([]Resource, error) {
	var n gcpNetwork
	err := g.get(ctx, op, g.global("networks/"+g.networkName()), nil, &n)
	labels := described(n.Description)
	switch {
	case errors.Is(err, ErrNotFound):
		g.networks.forgetAll()
		return all, nil
	case err != nil:
		return nil, err
	case g.labels.isOurs(labels):
		all = append(all, Resource{Kind: KindNetwork, ID: n.Name, Name: n.Name, CreatedAt: n.Created, Labels: labels, Shared: true})
	}
	return all, nil
}

// resource says whose a disk is: of who uses it, or by its name, which is the
// server's that it was made for.
func (d gcpDisk) resource() Resource {
	zone := lastPart(d.Zone)
	r := Resource{
		Kind: KindVolume, ID: zone + "/" + d.Name, Name: d.Name, Region: zone, ServerID: zone + "/" + d.Name,
		CreatedAt: d.Created, Labels: d.Labels, Billable: true,
	}
	if len(d.Users) > 0 {
		r.ServerID = serverOfURL(d.Users[0])
	}
	return r
}

func (a gcpAddress) resource() Resource {
	region := "global"
	if a.Region != "" {
		region = lastPart(a.Region)
	}
	r := Resource{Kind: KindPublicIP, ID: region + "/" + a.Name, Name: a.Name, Region: region, CreatedAt: a.Created, Labels: a.Labels, Billable: true}
	if len(a.Users) > 0 {
		r.ServerID = serverOfURL(a.Users[0])
	}
	return r
}

// serverOfURL is the id of the server that a URL ends with:
// …/zones/{zone}/instances/{name}.
func serverOfURL(address string) string {
	parts := strings.Split(address, "/")
	if n := len(parts); n >= 4 && parts[n-2] == "instances" && parts[n-4] == "zones" {
		return parts[n-3] + "/" + parts[n-1]
	}
	return ""
}

// gcpRemoveTime bounds the removal of one resource, which is waited for.
const gcpRemoveTime = 2 * time.Minute

// DeleteResource removes one resource and waits until it is gone; but a server,
// for which it is DeleteServer. What something else still uses is ErrConflict.
func (g *GCP) DeleteResource(ctx context.Context, r Resource) error {
	const op = "remove resource"
	ctx, cancel := context.WithTimeout(ctx, gcpRemoveTime)
	defer cancel()
	switch r.Kind {
	case KindServer:
		return g.DeleteServer(ctx, r.ID)
	case KindVolume:
		zone, name, err := g.parseID(op, "disk", r.ID)
		if err != nil {
			return err
		}
		return g.vanish(ctx, op, g.zonal(zone, "disks/"+name), g.zonal(zone, "operations/"))
	case KindPublicIP:
		region, name, err := g.parseID(op, "address", r.ID)
		if err != nil {
			return err
		}
		if region == "global" {
			return g.vanish(ctx, op, g.global("addresses/"+name), g.global("operations/"))
		}
		base := g.project() + "/regions/" + region
		return g.vanish(ctx, op, base+"/addresses/"+name, base+"/operations/")
	case KindFirewall, KindNetwork:
		if !gcpName.MatchString(r.ID) {
			return invalidError("gcp", op, "%q is no name of a %s", clip(r.ID, 60), r.Kind)
		}
		collection := map[string]string{KindFirewall: "firewalls/", KindNetwork: "networks/"}[r.Kind]
		if r.Kind == KindNetwork {
			defer g.networks.forgetAll()
		}
		return g.vanish(ctx, op, g.global(collection+r.ID), g.global("operations/"))
	}
	return invalidError("gcp", op, "Google has no resource of kind %q", r.Kind)
}

// vanish removes one thing and waits until it is gone.
func (g *GCP) vanish(ctx context.Context, op, path, operations string) error {
	started, err := g.remove(ctx, op, path)
	if err != nil || started.Name == "" {
		return err
	}
	err = g.await(ctx, op, operations, started)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
