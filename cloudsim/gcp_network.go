package cloudsim

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Networks, their subnets and rules; addresses and disks by themselves.

// How long things take, in simulated time.
const (
	gcpNetworkTakes = 8 * time.Second
	gcpRuleTakes    = 3 * time.Second
	gcpPartTakes    = 2 * time.Second
	gcpDefault      = "default"
)

// gcpDefaultNetwork is what a project has from its beginning: open to SSH, RDP
// and ICMP.
func (s *Sim) gcpDefaultNetwork(a *gcpAccount) {
	now := s.clockNow()
	n := &gcpThing{
		kind: gcpNetworks, scope: gcpGlobal, name: gcpDefault, id: s.world.id(gcpName, "network"), created: now,
		props: map[string]any{"description": "Default network for the project", "autoCreateSubnetworks": true},
	}
	a.keep(n)
	a.addSubnets(s, n, now)
	for name, r := range map[string][3]string{
		"default-allow-icmp": {"icmp", "", "0.0.0.0/0"}, "default-allow-internal": {"all", "", "10.128.0.0/9"},
		"default-allow-rdp": {"tcp", "3389", "0.0.0.0/0"}, "default-allow-ssh": {"tcp", "22", "0.0.0.0/0"},
	} {
		allowed := map[string]any{"IPProtocol": r[0]}
		if r[1] != "" {
			allowed["ports"] = []any{r[1]}
		}
		a.keep(&gcpThing{
			kind: gcpFirewalls, scope: gcpGlobal, name: name, id: s.world.id(gcpName, "firewall"), created: now,
			props: map[string]any{
				"description": "Allow by default", "network": gcpHost + a.pathOf(n), "priority": float64(65534), "direction": "INGRESS", "disabled": false,
				"sourceRanges": []any{r[2]}, "allowed": []any{allowed}, "logConfig": map[string]any{"enable": false},
			},
		})
	}
}

// addSubnets gives a network its subnet in each region.
func (a *gcpAccount) addSubnets(s *Sim, n *gcpThing, now time.Time) {
	for i, r := range gcpRegions() {
		a.keep(&gcpThing{
			kind: gcpSubnetworks, scope: "regions/" + r.name, name: n.name, id: s.world.id(gcpName, "subnet"), created: now,
			props: map[string]any{
				"network": gcpHost + a.pathOf(n), "ipCidrRange": fmt.Sprintf("10.%d.0.0/20", 128+4*i), "gatewayAddress": fmt.Sprintf("10.%d.0.1", 128+4*i),
				"purpose": "PRIVATE", "stackType": "IPV4_ONLY", "privateIpGoogleAccess": false,
			},
		})
	}
	n.ready = true
}

func (g gcp) insertNetwork(t *gcpThing) error {
	auto, said := t.props["autoCreateSubnetworks"].(bool)
	if g.account.usage("NETWORKS", "") >= float64(gcpProjectQuotas()["NETWORKS"]) {
		return gcpOverQuota("NETWORKS", "", gcpProjectQuotas()["NETWORKS"])
	}
	if !said { // a network of the old kind, without subnets
		t.props["IPv4Range"], t.props["gatewayIPv4"] = "10.240.0.0/16", "10.240.0.1"
	}
	g.account.keep(t)
	account := g.account
	return g.start("insert", t, gcpNetworkTakes, func(now time.Time) *gcpOpFailure {
		if account.has(t) {
			t.ready = true
			if auto {
				account.addSubnets(g.sim, t, now)
			}
		}
		return nil
	})
}

func (g gcp) viewNetwork(t *gcpThing, out map[string]any) {
	var subnets []any
	for _, s := range g.account.order {
		if s.kind == gcpSubnetworks && gcpLast(textOf(s.props, "network")) == t.name {
			subnets = append(subnets, gcpHost+g.account.pathOf(s))
		}
	}
	if subnets != nil {
		out["subnetworks"] = subnets
	}
	if _, has := out["routingConfig"]; !has {
		out["routingConfig"] = map[string]any{"routingMode": "REGIONAL"}
	}
	out["networkFirewallPolicyEnforcementOrder"] = "AFTER_CLASSIC_FIREWALL"
}

// usesNetwork is something that a network or subnet cannot end before.
func (a *gcpAccount) usesNetwork(t *gcpThing) *gcpThing {
	for _, o := range a.order {
		switch {
		case o.kind == gcpInstances:
			for _, nic := range listOf(o.props, "networkInterfaces") {
				network, _ := a.interfaceOf(nic, o.region())
				if network != nil && network.name == t.name && (t.kind == gcpNetworks || o.region() == t.region()) {
					return o
				}
			}
		case t.kind == gcpNetworks && o.kind == gcpFirewalls && gcpLast(textOf(o.props, "network")) == t.name:
			return o
		}
	}
	return nil
}

// interfaceOf finds the network and the subnet that an interface is in.
func (a *gcpAccount) interfaceOf(nic map[string]any, region string) (network, subnet *gcpThing) {
	if ref := textOf(nic, "subnetwork"); ref != "" {
		subnet = a.referred(gcpSubnetworks, ref, "regions/"+region)
		if subnet == nil {
			return nil, nil
		}
		return a.referred(gcpNetworks, textOf(subnet.props, "network"), gcpGlobal), subnet
	}
	ref := textOf(nic, "network")
	if ref == "" {
		ref = "global/networks/" + gcpDefault
	}
	if network = a.referred(gcpNetworks, ref, gcpGlobal); network == nil {
		return nil, nil
	}
	if auto, _ := network.props["autoCreateSubnetworks"].(bool); auto {
		subnet = a.find("regions/"+region, gcpSubnetworks, network.name)
	}
	return network, subnet
}

func (g gcp) insertSubnetwork(t *gcpThing) error {
	network := g.account.referred(gcpNetworks, textOf(t.props, "network"), gcpGlobal)
	_, _, err := net.ParseCIDR(textOf(t.props, "ipCidrRange"))
	switch {
	case network == nil:
		return gcpInvalid("resource.network", textOf(t.props, "network"), "The referenced network resource cannot be found.")
	case !network.ready:
		return gcpFail(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", g.account.pathOf(network))
	case err != nil:
		return gcpInvalid("resource.ipCidrRange", textOf(t.props, "ipCidrRange"), "Must be a valid CIDR address range.")
	}
	t.props["network"] = gcpHost + g.account.pathOf(network)
	g.account.keep(t)
	return g.start("insert", t, gcpNetworkTakes, nil)
}

// checkRule checks a firewall's rule and fills in what was left out.
func (g gcp) checkRule(t *gcpThing) error {
	p := t.props
	if textOf(p, "network") == "" {
		p["network"] = "global/networks/" + gcpDefault
	}
	network := g.account.referred(gcpNetworks, textOf(p, "network"), gcpGlobal)
	if network == nil {
		return gcpInvalid("resource.network", textOf(p, "network"), "The referenced network resource cannot be found.")
	}
	if !network.ready {
		return gcpFail(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", g.account.pathOf(network))
	}
	p["network"] = gcpHost + g.account.pathOf(network)
	allowed, denied := listOf(p, "allowed"), listOf(p, "denied")
	if (len(allowed) == 0) == (len(denied) == 0) {
		return gcpFail(http.StatusBadRequest, "required", "Required field 'resource.allowed[]' not specified")
	}
	for _, rule := range append(allowed, denied...) {
		protocol := strings.ToLower(textOf(rule, "IPProtocol"))
		if n, err := strconv.Atoi(protocol); protocol == "" || err == nil && (n < 0 || n > 255) {
			return gcpInvalid("resource.allowed[0].IPProtocol", textOf(rule, "IPProtocol"), "Invalid IP protocol specification.")
		}
	}
	if _, has := p["priority"]; !has {
		p["priority"] = float64(1000)
	}
	if n, ok := p["priority"].(float64); !ok || n < 0 || n > 65535 {
		return gcpInvalid("resource.priority", fmt.Sprint(p["priority"]), "Must be between 0 and 65535, inclusive.")
	}
	if textOf(p, "direction") == "" {
		p["direction"] = "INGRESS"
	}
	return gcpCheckTargets(p)
}

func gcpCheckTargets(p map[string]any) error {
	families := map[bool]bool{}
	ranges, _ := p["sourceRanges"].([]any)
	for i, v := range ranges {
		text, _ := v.(string)
		if _, _, err := net.ParseCIDR(text); err != nil {
			return gcpInvalid(fmt.Sprintf("resource.sourceRanges[%d]", i), text, "Must be a valid CIDR address range.")
		}
		families[strings.Contains(text, ":")] = true
	}
	if len(families) > 1 {
		return gcpInvalid("resource.sourceRanges", fmt.Sprint(ranges), "IPv4 and IPv6 ranges cannot be combined in one rule.")
	}
	tags, _ := p["targetTags"].([]any)
	for i, v := range tags {
		if text, _ := v.(string); !gcpResourceName.MatchString(text) {
			return gcpInvalid(fmt.Sprintf("resource.targetTags[%d]", i), text, gcpNamePattern)
		}
	}
	if len(ranges) == 0 && textOf(p, "direction") == "INGRESS" && p["sourceTags"] == nil {
		p["sourceRanges"] = []any{"0.0.0.0/0"}
	}
	if _, has := p["disabled"]; !has {
		p["disabled"] = false
	}
	p["logConfig"] = map[string]any{"enable": false}
	return nil
}

func (g gcp) insertFirewall(t *gcpThing) error {
	if err := g.checkRule(t); err != nil {
		return err
	}
	if g.account.usage("FIREWALLS", "") >= float64(gcpProjectQuotas()["FIREWALLS"]) {
		return gcpOverQuota("FIREWALLS", "", gcpProjectQuotas()["FIREWALLS"])
	}
	g.account.keep(t)
	return g.start("insert", t, gcpRuleTakes, nil)
}

func (g gcp) patchFirewall() error {
	t, err := g.findThing(gcpFirewalls)
	if err != nil {
		return err
	}
	body, err := g.read()
	if err != nil {
		return err
	}
	changed := *t
	changed.props, _ = copied(t.props).(map[string]any)
	for k, v := range body {
		changed.props[k] = v
	}
	if err := g.checkRule(&changed); err != nil {
		return err
	}
	t.props = changed.props
	return g.start("patch", t, gcpRuleTakes, nil)
}

func (g gcp) insertAddress(t *gcpThing) error {
	w := g.sim.world
	if region := t.region(); region != "" && g.account.usage("STATIC_ADDRESSES", region) >= float64(gcpRegionQuotas()["STATIC_ADDRESSES"]) {
		return gcpOverQuota("STATIC_ADDRESSES", region, gcpRegionQuotas()["STATIC_ADDRESSES"])
	}
	t.props["address"], t.props["addressType"], t.props["networkTier"] = w.ipv4(), "EXTERNAL", "PREMIUM"
	t.entry = w.enter(LedgerEntry{
		Provider: gcpName, Project: g.project.name, Kind: "public-ip", ID: gcpLast(t.scope) + "/" + t.name, Name: t.name, CreatedAt: g.now,
		Hourly: 2 * gcpIPv4Hourly, Currency: "USD",
	})
	g.account.keep(t)
	return g.start("insert", t, gcpPartTakes, nil)
}

func (g gcp) viewAddress(t *gcpThing, out map[string]any) {
	out["status"] = "RESERVED"
	if t.user != nil {
		out["status"], out["users"] = "IN_USE", []any{gcpHost + g.account.pathOf(t.user)}
	}
	out["labelFingerprint"] = gcpFingerprint(t.props["labels"])
}

// insertDisk makes one by itself.
func (g gcp) insertDisk(t *gcpThing) error {
	gb, err := gcpDiskSize("resource.sizeGb", t.props["sizeGb"], 500)
	if err != nil {
		return err
	}
	if image := textOf(t.props, "sourceImage"); image != "" {
		if _, ok := gcpImageOf(image); !ok {
			return gcpMissing(strings.TrimPrefix(image, gcpHost))
		}
	}
	g.makeDisk(t, gb, nil)
	return g.start("insert", t, gcpPartTakes, nil)
}

func (g gcp) makeDisk(t *gcpThing, gb int64, user *gcpThing) {
	t.props["sizeGb"], t.user = itoa(gb), user
	e := LedgerEntry{
		Provider: gcpName, Project: g.project.name, Kind: "volume", ID: t.zone() + "/" + t.name, Name: t.name, CreatedAt: g.now,
		Hourly: gcpDiskGBMonth * float64(gb) / gcpHoursOfMonth, Currency: "USD",
	}
	if user != nil {
		e.Server = user.server.ref
	}
	t.entry = g.sim.world.enter(e)
	g.account.keep(t)
}

// gcpDiskSize reads a size, which is a text there; a number is taken too.
func gcpDiskSize(field string, v any, standard int64) (int64, error) {
	text := fmt.Sprint(v)
	if v == nil {
		return standard, nil
	}
	if n, ok := v.(float64); ok {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	gb, err := strconv.ParseInt(text, 10, 64)
	if err != nil || gb < 10 || gb > 65536 {
		return 0, gcpInvalid(field, text, "Disk size must be between 10 GB and 65536 GB.")
	}
	return gb, nil
}

func (g gcp) viewDisk(t *gcpThing, out map[string]any) {
	kind := textOf(t.props, "type")
	if kind == "" {
		kind = "pd-standard"
	}
	out["type"], out["status"], out["labelFingerprint"] = g.url(t.scope+"/diskTypes/"+gcpLast(kind)), "READY", gcpFingerprint(t.props["labels"])
	out["physicalBlockSizeBytes"] = "4096"
	if t.user != nil {
		out["users"] = []any{gcpHost + g.account.pathOf(t.user)}
	}
	if image, ok := gcpImageOf(textOf(t.props, "sourceImage")); ok {
		out["sourceImage"], out["architecture"] = gcpShowImage(image)["selfLink"], image.arch
	}
}
