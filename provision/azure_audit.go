package provision

import (
	"cmp"
	"context"
	"strings"
)

// Audit.

// ListResources lists the virtual machines, network interfaces, public IPs,
// security groups, disks and virtual networks of the resource group that
// carry our label: six requests. Azure's lists lag behind by seconds; what
// was made a moment ago may be missing.
func (a *Azure) ListResources(ctx context.Context) ([]Resource, error) {
	const op = "audit"
	var all []Resource
	vms, err := a.machines(ctx, op)
	if err != nil {
		return nil, err
	}
	for _, vm := range vms {
		if a.labels.isOurs(vm.Tags) {
			all = append(all, a.vmResource(vm))
		}
	}
	nics, err := azListIn[azInterface](ctx, a, op, "/providers/Microsoft.Network/networkInterfaces", azNetwork)
	if err != nil {
		return nil, err
	}
	for _, n := range nics {
		all = a.appendPart(all, KindNetworkInterface, n.azHead, refName(n.Properties.VirtualMachine))
	}
	ips, err := azListIn[azPublicIP](ctx, a, op, "/providers/Microsoft.Network/publicIPAddresses", azNetwork)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		all = a.appendPart(all, KindPublicIP, ip.azHead, "")
	}
	groups, err := azListIn[azSecurityGroup](ctx, a, op, "/providers/Microsoft.Network/networkSecurityGroups", azNetwork)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		all = a.appendPart(all, KindFirewall, g.azHead, "")
	}
	disks, err := azListIn[azDisk](ctx, a, op, "/providers/Microsoft.Compute/disks", azDisks)
	if err != nil {
		return nil, err
	}
	for _, d := range disks {
		all = a.appendPart(all, KindVolume, d.azHead, lastOf(d.ManagedBy))
		if n := len(all) - 1; n >= 0 && all[n].Kind == KindVolume && all[n].Name == d.Name {
			all[n].CreatedAt = d.Properties.TimeCreated
		}
	}
	nets, err := azListIn[azNetworkPlan](ctx, a, op, "/providers/Microsoft.Network/virtualNetworks", azNetwork)
	if err != nil {
		return nil, err
	}
	return a.recheckNetworks(all, nets), nil
}

// recheckNetworks adds the shared networks, and compares what is remembered of
// them with what the list shows, so that creates can go on without looking.
func (a *Azure) recheckNetworks(all []Resource, nets []azNetworkPlan) []Resource {
	a.subnets.forgetAll()
	for _, net := range nets {
		all = a.appendPart(all, KindNetwork, net.azHead, "")
		region := azRegion(net.Location)
		if !strings.EqualFold(net.Name, a.networkName(region)) || !strings.EqualFold(net.Properties.ProvisioningState, "Succeeded") {
			continue
		}
		for _, s := range net.Properties.Subnets {
			if strings.EqualFold(s.Name, azSubnetName) && s.ID != "" {
				a.subnets.put(region, s.ID)
			}
		}
	}
	return all
}

// appendPart adds a thing with our label. What it hangs on now counts more
// than what it was made for.
func (a *Azure) appendPart(all []Resource, kind string, h azHead, server string) []Resource {
	if !a.labels.isOurs(h.Tags) {
		return all
	}
	k, _ := a.kindOf(kind)
	return append(all, Resource{
		Kind: kind, ID: h.Name, Name: h.Name, Region: azRegion(h.Location), CreatedAt: a.createdAt(h.Tags), Labels: h.Tags,
		ServerID: cmp.Or(server, h.Tags[a.labels.key(labelServer)]), Billable: k.billable,
		Shared: h.Tags[a.labels.key(labelRole)] == roleNetwork,
	})
}

func (a *Azure) vmResource(vm azVM) Resource {
	return Resource{
		Kind: KindServer, ID: vm.Name, Name: vm.serverName(), Region: azRegion(vm.Location), ServerID: vm.Name,
		CreatedAt: a.vmCreated(vm), Labels: vm.Tags, Billable: true,
	}
}

func refName(r *azRef) string {
	if r == nil {
		return ""
	}
	return lastOf(r.ID)
}

// DeleteResource removes one resource and waits until it is gone. A server
// goes with all its parts, as by DeleteServer. A part that is in use is
// ErrConflict, in the end: Azure keeps some for minutes, which is waited for
// as long as the context allows, and five minutes at most.
func (a *Azure) DeleteResource(ctx context.Context, r Resource) error {
	const op = "remove resource"
	if r.Kind == KindServer {
		return a.DeleteServer(ctx, r.ID)
	}
	kind, ok := a.kindOf(r.Kind)
	if !ok {
		return invalidError("azure", op, "Azure has no resource of kind %q here", r.Kind)
	}
	if err := a.checkID(op, r.Kind, r.ID); err != nil {
		return err
	}
	if r.Kind == KindNetwork {
		a.subnets.forgetAll()
	}
	ctx, cancel := context.WithTimeout(ctx, azureDeleteTime)
	defer cancel()
	return a.untilFree(ctx, func() error {
		return a.remove(ctx, op, call{path: kind.path(r.ID), query: apiVersion(kind.version)})
	})
}
