package provision

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Create: the shared network.
//
// The resource group, and the virtual network of each region, serve all
// servers. They are looked for first and made only when they are missing: a
// PUT on one that exists would replace its tags, and a network's subnets.

const (
	azSubnetName = "nodes"
	azNetRange   = "10.64.0.0/16"
	azSubRange   = "10.64.0.0/17" // 32,763 servers in a region
)

func (a *Azure) networkName(region string) string {
	return a.labels.short + "-" + strings.ToLower(region)
}

// sharedSubnet returns the id of the region's subnet, made at first need.
func (a *Azure) sharedSubnet(ctx context.Context, region string) (string, error) {
	return a.subnets.get(ctx, strings.ToLower(region), func(ctx context.Context) (string, error) {
		if err := a.ensureGroup(ctx, region); err != nil {
			return "", err
		}
		return a.ensureSubnet(ctx, region)
	})
}

func (a *Azure) ensureGroup(ctx context.Context, region string) error {
	const op = "ensure the resource group"
	path := a.subscription() + "/resourcegroups/" + lastOf(a.group())
	var group azResourceGroup
	err := a.get(ctx, op, path, apiVersion(azGroups), &group)
	if err == nil && group.Properties != nil && strings.EqualFold(group.Properties.ProvisioningState, "Deleting") {
		return a.fail(ErrUnavailable, op, "wait until it is gone, or name another in the credential", "the resource group %q is being deleted", a.cred.Group)
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	// The group's own region says only where its records are kept.
	group = azResourceGroup{azHead: azHead{Location: region, Tags: map[string]string{managedBy: a.labels.short}}}
	_, err = a.put(ctx, op, path, azGroups, group, nil)
	return err
}

// ensureSubnet goes on until the network is ready: two who make it at the
// same time, and a group that was made a moment ago, both take a few looks.
func (a *Azure) ensureSubnet(ctx context.Context, region string) (string, error) {
	const op = "ensure the network"
	const tries = 8
	path := a.networkPath("virtualNetworks", a.networkName(region))
	for try := 1; ; try++ {
		var net azNetworkPlan
		err := a.get(ctx, op, path, apiVersion(azNetwork), &net)
		if errors.Is(err, ErrNotFound) {
			err = a.makeNetwork(ctx, op, path, region, &net)
		}
		state := strings.ToLower(net.Properties.ProvisioningState)
		switch {
		case err == nil && (state == "succeeded" || state == ""):
			return a.subnetOf(ctx, op, path, net)
		case err == nil && state == "failed":
			return "", a.fail(ErrUnavailable, op, "delete it, then repeat: the next create makes it anew", "the network %q is broken", net.Name)
		case err != nil && !hasCode(err, "ResourceGroupNotFound") && !isAzBusy(err):
			return "", err
		}
		wait := pauseBefore(try, 0, 0)
		if try >= tries || !fits(ctx, wait) || sleep(ctx, wait) != nil {
			if err == nil {
				err = a.stillRunning(ctx, op)
			}
			return "", err
		}
	}
}

func (a *Azure) makeNetwork(ctx context.Context, op, path, region string, made *azNetworkPlan) error {
	no := false
	want := azNetworkPlan{azHead: azHead{Location: region, Tags: a.sharedTags()}}
	want.Properties.AddressSpace = &azAddressSpace{AddressPrefixes: []string{azNetRange}}
	want.Properties.Subnets = []azSubnet{{Name: azSubnetName, Properties: azSubnetProperties{AddressPrefix: azSubRange, DefaultOutboundAccess: &no}}}
	ans, err := a.put(ctx, op, path, azNetwork, want, made)
	if err != nil {
		return err
	}
	if azTerminal(made.Properties.ProvisioningState) {
		return nil
	}
	if err := a.await(ctx, op, ans); err != nil {
		return err
	}
	return a.get(ctx, op, path, apiVersion(azNetwork), made)
}

// subnetOf finds our subnet in the network, and adds it to one that somebody
// made without it.
func (a *Azure) subnetOf(ctx context.Context, op, path string, net azNetworkPlan) (string, error) {
	for _, s := range net.Properties.Subnets {
		if strings.EqualFold(s.Name, azSubnetName) && s.ID != "" {
			return s.ID, nil
		}
	}
	no := false
	want := azSubnet{Name: azSubnetName, Properties: azSubnetProperties{AddressPrefix: azSubRange, DefaultOutboundAccess: &no}}
	var made azSubnet
	ans, err := a.put(ctx, op, path+"/subnets/"+azSubnetName, azNetwork, want, &made)
	if err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", a.fail(ErrUnavailable, op, "", "the answer names no subnet")
	}
	return made.ID, a.await(ctx, op, ans)
}

func (a *Azure) sharedTags() map[string]string {
	tags := a.labels.shared(roleNetwork)
	tags[a.labels.key(labelCreated)] = timeTag(time.Now())
	return tags
}

// timeTag is a time as a tag has it. Network resources do not tell when they
// were made.
func timeTag(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lastOf is the last part of a path or a resource's id.
func lastOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Create: the address and the interface.

// azNames are the names of the parts of a server.
type azNames struct{ vm, nic, ip, disk, nsg string }

func namesOf(vm string) azNames {
	return azNames{vm: vm, nic: vm + "-nic", ip: vm + "-ip", disk: vm + "-os", nsg: vm + "-nsg"}
}

// partTags are the tags of what serves one server. They do not hang on the
// parameters of the create, so that a repeat with other ones changes nothing.
func (a *Azure) partTags(id identity, vm string) map[string]string {
	tags := a.labels.own(CreateOpts{}, id)
	delete(tags, a.labels.key(labelParams))
	tags[a.labels.key(labelServer)] = vm
	tags[a.labels.key(labelCreated)] = timeTag(time.Now())
	return tags
}

// putPublicIP makes the address. A Standard one lets nothing in until a
// security group says so.
func (a *Azure) putPublicIP(ctx context.Context, region string, names azNames, tags map[string]string) (azPublicIP, error) {
	want := azPublicIP{
		azHead: azHead{Location: region, Tags: tags},
		Sku:    &azIPSku{Name: "Standard", Tier: "Regional"}, // Basic, and open, at some versions when left out
		Properties: azPublicIPProperties{
			AllocationMethod: "Static", AddressVersion: "IPv4", IdleMinutes: 4, DeleteOption: "Delete",
		},
	}
	var made azPublicIP
	ans, err := a.put(ctx, "make the public IP", a.networkPath("publicIPAddresses", names.ip), azNetwork, want, &made)
	if err != nil {
		return made, err
	}
	if !azTerminal(made.Properties.ProvisioningState) {
		// An interface can use it only when it is ready, which takes about a
		// second. Looking would cost a request, and the interface's own call is
		// repeated when it was too early.
		pause := min(azPause(ans.header), 2*time.Second)
		// When the context ends meanwhile, the next call says so.
		if fits(ctx, pause) {
			_ = sleep(ctx, pause)
		}
	}
	return made, nil
}

// putInterface makes the interface, with the security group when there is one.
func (a *Azure) putInterface(ctx context.Context, region, subnet string, names azNames, tags map[string]string, withGroup bool) error {
	want := azInterface{azHead: azHead{Location: region, Tags: tags}}
	cfg := azIPConfiguration{Name: "primary"}
	cfg.Properties.Primary = true
	cfg.Properties.AllocationMethod, cfg.Properties.AddressVersion = "Dynamic", "IPv4"
	cfg.Properties.Subnet.ID = subnet
	cfg.Properties.PublicIP = &azConfiguredIP{ID: a.networkPath("publicIPAddresses", names.ip)}
	cfg.Properties.PublicIP.Properties.DeleteOption = "Delete"
	want.Properties.IPConfigurations = []azIPConfiguration{cfg}
	if withGroup {
		want.Properties.SecurityGroup = &azRef{ID: a.networkPath("networkSecurityGroups", names.nsg)}
	}
	_, err := a.put(ctx, "make the network interface", a.networkPath("networkInterfaces", names.nic), azNetwork, want, nil)
	return err
}

// addressOf reads the public IPv4 address of a server; empty when it has none
// yet, or no more.
func (a *Azure) addressOf(ctx context.Context, op string, names azNames) (string, error) {
	var ip azPublicIP
	err := a.get(ctx, op, a.networkPath("publicIPAddresses", names.ip), apiVersion(azNetwork), &ip)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return ip.Properties.IPAddress, err
}
