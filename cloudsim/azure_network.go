package cloudsim

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Networks, subnets, security groups, public IPs and network interfaces.

// How long things take, in simulated time.
const (
	azureNetworkTakes   = 3 * time.Second
	azureAddressTakes   = time.Second
	azurePartGoes       = 2 * time.Second
	azureReservation    = 3 * time.Minute
	azureAddressLimit   = 1000
	azureAddressHourly  = 0.005
	azureDefaultSubnets = 5 // addresses of a subnet that Azure keeps
)

// settle answers a PUT whose thing is ready after a while.
func (a azure) settle(t *azureThing, isNew bool, takes time.Duration) {
	status := http.StatusOK
	if isNew {
		a.keep(t)
		status = http.StatusCreated
	}
	id := t.id()
	if takes > 0 {
		t.state = "Updating"
		account := a.account
		a.begin(azureOpBoth, "Microsoft.Network", t.location, takes, func(time.Time) *azureError {
			if now := account.find(id); now != nil && now.state == "Updating" {
				now.state = "Succeeded"
			}
			return nil
		})
	} else {
		t.state = "Succeeded"
	}
	a.send(status, a.render(t))
}

func (a azure) putNetwork(t *azureThing, isNew bool) error {
	var space []netip.Prefix
	for _, v := range anyList(valueOf(t.props, "addressSpace", "addressPrefixes")) {
		p, err := netip.ParsePrefix(fmt.Sprint(v))
		if err != nil {
			return azureFail(http.StatusBadRequest, "InvalidCIDRNotation", "The address prefix %v has an invalid CIDR notation.", v)
		}
		space = append(space, p)
	}
	if len(space) == 0 {
		return azureFail(http.StatusBadRequest, "InvalidRequestFormat", "addressSpace has no addressPrefixes.")
	}
	kept := map[string]bool{}
	for _, s := range listOf(t.props, "subnets") {
		if err := azureCheckSubnet(s, space); err != nil {
			return err
		}
		kept[strings.ToLower(textOf(s, "name"))] = true
	}
	if !isNew {
		old := a.account.find(t.id())
		for _, s := range listOf(old.props, "subnets") {
			// A PUT replaces the subnets, and must not take one that is in use.
			if name := textOf(s, "name"); !kept[strings.ToLower(name)] && a.subnetUsers(old, name) > 0 {
				return azureFail(http.StatusBadRequest, "InUseSubnetCannotBeDeleted", "Subnet %s is in use and cannot be deleted.", name)
			}
		}
	}
	a.settle(t, isNew, azureNetworkTakes)
	return nil
}

func azureCheckSubnet(s map[string]any, space []netip.Prefix) error {
	prefix, err := netip.ParsePrefix(textOf(s, "properties", "addressPrefix"))
	if err != nil || textOf(s, "name") == "" {
		return azureFail(http.StatusBadRequest, "InvalidRequestFormat", "Subnet %q has no valid name or addressPrefix.", textOf(s, "name"))
	}
	inside := slices.ContainsFunc(space, func(p netip.Prefix) bool { return p.Contains(prefix.Addr()) && prefix.Bits() >= p.Bits() })
	if !inside || prefix.Bits() > 29 {
		return azureFail(http.StatusBadRequest, "NetcfgInvalidSubnet", "Subnet '%s' is not valid in virtual network.", textOf(s, "name"))
	}
	return nil
}

func (a azure) subnetUsers(net *azureThing, subnet string) int {
	id := strings.ToLower(net.id() + "/subnets/" + subnet)
	users := 0
	for _, n := range a.account.ofKind(azureInterfaces) {
		for _, c := range listOf(n.props, "ipConfigurations") {
			if strings.ToLower(textOf(c, "properties", "subnet", "id")) == id {
				users++
			}
		}
	}
	return users
}

func (a azure) viewSubnet(net *azureThing, s map[string]any) map[string]any {
	s["id"] = net.id() + "/subnets/" + textOf(s, "name")
	s["type"] = "Microsoft.Network/virtualNetworks/subnets"
	s["etag"] = fmt.Sprintf(`W/"%d"`, net.etag)
	if p, ok := s["properties"].(map[string]any); ok {
		p["provisioningState"] = net.state
	}
	return s
}

func (a azure) viewNetwork(t *azureThing, props map[string]any) {
	for _, s := range listOf(props, "subnets") {
		a.viewSubnet(t, s)
	}
	props["enableDdosProtection"] = false
}

func (a azure) listSubnets() error {
	net, err := a.findThing(azureNetworks)
	if err != nil {
		return err
	}
	var all []any
	for _, s := range listOf(copied(net.props).(map[string]any), "subnets") {
		all = append(all, a.viewSubnet(net, s))
	}
	a.page(all, azurePerPage)
	return nil
}

func (a azure) findSubnet(net *azureThing, name string) map[string]any {
	for _, s := range listOf(net.props, "subnets") {
		if strings.EqualFold(textOf(s, "name"), name) {
			return s
		}
	}
	return nil
}

func (a azure) getSubnet() error {
	net, err := a.findThing(azureNetworks)
	if err != nil {
		return err
	}
	s := a.findSubnet(net, a.rest[7])
	if s == nil {
		return azureFail(http.StatusNotFound, "NotFound", "Resource %s/subnets/%s not found.", net.id(), a.rest[7])
	}
	a.ok(a.viewSubnet(net, copied(s).(map[string]any)))
	return nil
}

func (a azure) putSubnet() error {
	net, err := a.findThing(azureNetworks)
	if err != nil {
		return err
	}
	var b azureBody
	if err := a.read(&b); err != nil {
		return err
	}
	s := map[string]any{"name": a.rest[7], "properties": b.Properties}
	var space []netip.Prefix
	for _, v := range anyList(valueOf(net.props, "addressSpace", "addressPrefixes")) {
		if p, err := netip.ParsePrefix(fmt.Sprint(v)); err == nil {
			space = append(space, p)
		}
	}
	if err := azureCheckSubnet(s, space); err != nil {
		return err
	}
	status := http.StatusOK
	if old := a.findSubnet(net, a.rest[7]); old != nil {
		old["properties"] = b.Properties
	} else {
		net.props["subnets"] = append(anyList(net.props["subnets"]), s)
		status = http.StatusCreated
	}
	net.etag++
	a.send(status, a.viewSubnet(net, copied(s).(map[string]any)))
	return nil
}

func anyList(v any) []any { l, _ := v.([]any); return l }

func (a azure) putFirewall(t *azureThing, isNew bool) error {
	seen := map[string]bool{}
	for _, r := range listOf(t.props, "securityRules") {
		if err := azureCheckRule(r, seen); err != nil {
			return err
		}
	}
	a.settle(t, isNew, 0)
	return nil
}

func azureCheckRule(r map[string]any, seen map[string]bool) error {
	bad := func(what string) error {
		return &azureError{status: http.StatusBadRequest, code: "SecurityRuleParameterInvalid", message: fmt.Sprintf("Security rule %s has an invalid %s.", textOf(r, "name"), what)}
	}
	p, _ := valueOf(r, "properties").(map[string]any)
	priority, _ := p["priority"].(float64)
	direction := textOf(p, "direction")
	key := direction + strconv.Itoa(int(priority))
	switch {
	case textOf(r, "name") == "":
		return bad("name")
	case priority < 100 || priority > 4096 || seen[key]:
		return bad("priority")
	case direction != "Inbound" && direction != "Outbound":
		return bad("direction")
	case textOf(p, "access") != "Allow" && textOf(p, "access") != "Deny":
		return bad("access")
	case !slices.Contains([]string{"Tcp", "Udp", "Icmp", "*"}, textOf(p, "protocol")):
		return bad("protocol")
	case textOf(p, "destinationPortRange") == "" && len(anyList(p["destinationPortRanges"])) == 0:
		return bad("destination port range")
	}
	seen[key] = true
	families := map[bool]bool{}
	for _, s := range append(anyList(p["sourceAddressPrefixes"]), p["sourceAddressPrefix"]) {
		text, _ := s.(string)
		if prefix, err := netip.ParsePrefix(text); err == nil {
			families[prefix.Addr().Is4()] = true
		} else if text != "" && text != "*" && !strings.HasPrefix(text, "Virtual") && text != "Internet" {
			if _, err := netip.ParseAddr(text); err != nil {
				return bad("source address prefix")
			}
		}
	}
	if len(families) > 1 {
		return &azureError{status: http.StatusBadRequest, code: "SecurityRuleAddressPrefixesMixed", message: "Security rule mixes IPv4 and IPv6 address prefixes."}
	}
	return nil
}

func (a azure) viewFirewall(t *azureThing, props map[string]any) {
	for _, r := range listOf(props, "securityRules") {
		r["id"] = t.id() + "/securityRules/" + textOf(r, "name")
		r["type"] = "Microsoft.Network/networkSecurityGroups/securityRules"
		if p, ok := r["properties"].(map[string]any); ok {
			p["provisioningState"] = t.state
		}
	}
	var attached []any
	for _, n := range a.account.ofKind(azureInterfaces) {
		if strings.EqualFold(textOf(n.props, "networkSecurityGroup", "id"), t.id()) {
			attached = append(attached, map[string]any{"id": n.id()})
		}
	}
	if attached != nil {
		props["networkInterfaces"] = attached
	}
}

func (a azure) putAddress(t *azureThing, isNew bool) error {
	sku, _ := t.sku.(map[string]any)
	switch {
	case textOf(sku, "name") != "Standard":
		return azureFail(http.StatusBadRequest, "IPv4BasicSkuPublicIpCountLimitReached", "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region.")
	case textOf(t.props, "publicIPAllocationMethod") != "Static":
		return azureFail(http.StatusBadRequest, "StandardSkuPublicIPAddressMustBeStatic", "Standard sku publicIp %s must have AllocationMethod set to Static.", t.id())
	case isNew && len(a.account.ofKind(azureAddresses)) >= azureAddressLimit:
		return azureFail(http.StatusBadRequest, "PublicIPCountLimitReached", "Cannot create more than %d public IP addresses for this subscription in this region.", azureAddressLimit)
	}
	if isNew {
		t.ip = &publicIP{id: a.sim.world.id(azureName, "public ip"), name: t.name, address: a.sim.world.ipv4(), region: t.location, created: a.now}
		t.ip.entry = a.sim.world.enter(LedgerEntry{
			Provider: azureName, Project: a.project.name, Kind: "public-ip", ID: t.name, Name: t.name, CreatedAt: a.now,
			Hourly: azureAddressHourly, Currency: "USD",
		})
		a.settle(t, true, azureAddressTakes)
		return nil
	}
	a.settle(t, false, 0)
	return nil
}

func (a azure) viewAddress(t *azureThing, props map[string]any) {
	if t.ip != nil && t.state == "Succeeded" {
		props["ipAddress"] = t.ip.address
	}
	for _, n := range a.account.ofKind(azureInterfaces) {
		for _, c := range listOf(n.props, "ipConfigurations") {
			if strings.EqualFold(textOf(c, "properties", "publicIPAddress", "id"), t.id()) {
				props["ipConfiguration"] = map[string]any{"id": n.id() + "/ipConfigurations/" + textOf(c, "name")}
			}
		}
	}
}
