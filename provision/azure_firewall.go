package provision

import (
	"context"
	"net/netip"
)

// Create: the security group.
//
// A server has none unless SSH is asked for: a Standard public IP lets
// nothing in without one. The group is the server's own, hangs on its
// interface, and goes with it.

// putSecurityGroup makes the server's own group, which lets SSH in and, by
// Azure's default rules, nothing else from outside.
func (a *Azure) putSecurityGroup(ctx context.Context, opts CreateOpts, names azNames, tags map[string]string) error {
	const op = "make the SSH security group"
	want := azSecurityGroup{azHead: azHead{Location: opts.Region, Tags: tags}}
	rule := azSecurityRule{Name: "allow-ssh"}
	rule.Properties.Description = "SSH"
	rule.Properties.Priority = 1000
	rule.Properties.Direction, rule.Properties.Access, rule.Properties.Protocol = "Inbound", "Allow", "Tcp"
	rule.Properties.SourcePrefixes, rule.Properties.SourcePorts = azSources(opts.SSHSourceCIDRs), "*"
	rule.Properties.Destination, rule.Properties.DestinationPort = "*", "22"
	want.Properties.Rules = []azSecurityRule{rule}
	var made azSecurityGroup
	ans, err := a.put(ctx, op, a.networkPath("networkSecurityGroups", names.nsg), azNetwork, want, &made)
	if err != nil || azTerminal(made.Properties.ProvisioningState) {
		return err
	}
	return a.await(ctx, op, ans)
}

// azSources are the IPv4 networks of the sources: the servers have no IPv6
// address, and a rule cannot name both kinds.
func azSources(cidrs []string) []string {
	if len(cidrs) == 0 {
		cidrs = anywhere()
	}
	var sources []string
	for _, c := range cidrs {
		if p, err := netip.ParsePrefix(c); err == nil && p.Addr().Is4() {
			sources = append(sources, c)
		}
	}
	return sources
}
