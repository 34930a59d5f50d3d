package cloudsim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Networks, subnets and security groups.

type awsVPC struct {
	id, region string
}

type awsSubnet struct {
	id, region, zone, cidr string
	vpc                    *awsVPC
	free                   int
}

type awsGroup struct {
	id, region, name, about string
	vpc                     *awsVPC
	created                 time.Time
	rules                   []awsRule
	isDefault               bool
}

// awsRule lets one source in.
type awsRule struct {
	id, protocol, source, note string
	from, to                   int
}

func (r awsRule) key() string { return fmt.Sprintf("%s/%d/%d/%s", r.protocol, r.from, r.to, r.source) }

const (
	// awsGroupKnown is how long a new group is unknown to calls that name it.
	awsGroupKnown = time.Second
	awsGroupLimit = 2500
	awsRuleLimit  = 60
)

// defaultVPC is the region's network; every account has one until it deletes
// it.
func (a awsRequest) defaultVPC() *awsVPC {
	c := a.account
	if v, ok := c.networks[a.region]; ok {
		return v
	}
	return a.makeVPC()
}

func (a awsRequest) makeVPC() *awsVPC {
	c := a.account
	v := &awsVPC{id: a.sim.awsID("vpc"), region: a.region}
	c.networks[a.region] = v
	for i, z := range awsZones(a.region) {
		s := &awsSubnet{id: a.sim.awsID("subnet"), region: a.region, zone: z, vpc: v, cidr: fmt.Sprintf("172.31.%d.0/20", 16*i), free: 4091}
		c.subnets[s.id] = s
	}
	g := &awsGroup{id: a.sim.awsID("sg"), region: a.region, name: "default", about: "default VPC security group", vpc: v, isDefault: true}
	c.groups[g.id] = g
	return v
}

func (a awsRequest) createDefaultVPC() (awsFields, error) {
	if err := a.parsed(); err != nil {
		return nil, err
	}
	if a.defaultVPC() != nil {
		return nil, awsFail("DefaultVpcAlreadyExists", "A Default VPC already exists for this account in this region.")
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	return awsFields{{"vpc", a.viewVPC(a.makeVPC())}}, nil
}

func (a awsRequest) viewVPC(v *awsVPC) awsFields {
	return awsFields{
		{"vpcId", v.id}, {"ownerId", a.account.id}, {"state", "available"}, {"cidrBlock", "172.31.0.0/16"}, {"isDefault", true},
		{"instanceTenancy", "default"}, {"tagSet", a.account.tagSet(v.id)},
	}
}

func (a awsRequest) describeVPCs() (awsFields, error) {
	q, err := a.query("VpcId")
	if err != nil {
		return nil, err
	}
	list := awsList{}
	if v := a.defaultVPC(); v != nil {
		ok, err := q.matches(a.account, v.id, func(name string) ([]string, bool) {
			r, known := map[string]string{"is-default": "true", "isDefault": "true", "vpc-id": v.id, "state": "available", "cidr": "172.31.0.0/16"}[name]
			return []string{r}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, v.id)) {
			list = append(list, a.viewVPC(v))
		}
	}
	return awsFields{{"vpcSet", list}}, nil
}

func (a awsRequest) deleteVPC() (awsFields, error) {
	id := a.form.text("VpcId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	v := a.defaultVPC()
	if v == nil || v.id != id {
		return nil, awsFail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
	}
	for _, s := range a.account.subnets {
		if s.vpc == v {
			return nil, awsFail("DependencyViolation", "The vpc '%s' has dependencies and cannot be deleted.", id)
		}
	}
	for gid, g := range a.account.groups {
		if g.vpc == v && !g.isDefault {
			return nil, awsFail("DependencyViolation", "The vpc '%s' has dependencies and cannot be deleted.", id)
		}
		if g.vpc == v {
			delete(a.account.groups, gid)
		}
	}
	a.account.networks[a.region] = nil
	return awsFields{{"return", true}}, nil
}

func (a awsRequest) describeSubnets() (awsFields, error) {
	q, err := a.query("SubnetId")
	if err != nil {
		return nil, err
	}
	a.defaultVPC()
	for _, id := range q.ids {
		if s := a.account.subnets[id]; s == nil || s.region != a.region {
			return nil, awsFail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	list := awsList{}
	for _, s := range inRegion(a.account.subnets, a.region, func(s *awsSubnet) string { return s.region }) {
		ok, err := q.matches(a.account, s.id, func(name string) ([]string, bool) {
			v, known := map[string]string{
				"vpc-id": s.vpc.id, "default-for-az": "true", "defaultForAz": "true", "state": "available", "availability-zone": s.zone,
				"availabilityZone": s.zone, "subnet-id": s.id, "map-public-ip-on-launch": "true",
			}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, s.id)) {
			list = append(list, awsFields{
				{"subnetId", s.id}, {"state", "available"}, {"vpcId", s.vpc.id}, {"ownerId", a.account.id}, {"cidrBlock", s.cidr},
				{"availableIpAddressCount", s.free}, {"availabilityZone", s.zone}, {"availabilityZoneId", awsZoneID(s.zone)},
				{"defaultForAz", true}, {"mapPublicIpOnLaunch", true}, {"tagSet", a.account.tagSet(s.id)},
			})
		}
	}
	page, token := q.page(list)
	return awsFields{{"subnetSet", page}, {"nextToken", token}}, nil
}

func (a awsRequest) deleteSubnet() (awsFields, error) {
	id := a.form.text("SubnetId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	s := a.account.subnets[id]
	if s == nil || s.region != a.region {
		return nil, awsFail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	for _, n := range a.account.cards {
		if n.subnet == s {
			return nil, awsFail("DependencyViolation", "The subnet '%s' has dependencies and cannot be deleted.", id)
		}
	}
	delete(a.account.subnets, id)
	return awsFields{{"return", true}}, nil
}

const awsGroupWords = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-:/()#,@[]+=&;{}!$*"

func (a awsRequest) createGroup() (awsFields, error) {
	name, about, vpcID := a.form.text("GroupName"), a.form.text("GroupDescription"), a.form.text("VpcId")
	tags, err := a.form.tags("security-group")
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	vpc := a.defaultVPC()
	odd := func(s string) bool { return s == "" || len(s) > 255 || strings.Trim(s, awsGroupWords) != "" }
	switch {
	case vpc == nil && vpcID == "":
		return nil, awsFail("VPCIdNotSpecified", "No default VPC for this user")
	case vpcID != "" && (vpc == nil || vpc.id != vpcID):
		return nil, awsFail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpcID)
	case odd(name) || strings.HasPrefix(name, "sg-"):
		return nil, awsFail("InvalidParameterValue", "Invalid value '%s' for groupName.", name)
	case odd(about):
		return nil, awsFail("InvalidParameterValue", "Value (%s) for parameter GroupDescription is invalid. Character sets beyond ASCII are not supported.", about)
	case len(a.account.groups) >= awsGroupLimit:
		return nil, awsFail("SecurityGroupLimitExceeded", "The maximum number of security groups for VPC '%s' has been reached.", vpc.id)
	}
	for _, g := range a.account.groups {
		if g.vpc == vpc && g.name == name {
			return nil, awsFail("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, vpc.id)
		}
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	g := &awsGroup{id: a.sim.awsID("sg"), region: a.region, name: name, about: about, vpc: vpc, created: a.now}
	a.account.groups[g.id] = g
	a.account.setTags(g.id, tags["security-group"])
	return awsFields{{"return", true}, {"groupId", g.id}, {"tagSet", a.account.tagSet(g.id)}}, nil
}

func (a awsRequest) group(id string) (*awsGroup, error) {
	g := a.account.groups[id]
	switch {
	case !strings.HasPrefix(id, "sg-"):
		return nil, awsFail("InvalidGroupId.Malformed", "Invalid id: \"%s\" (expecting \"sg-...\")", id)
	case g == nil || g.region != a.region:
		return nil, awsFail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return g, nil
}

// settledGroup is a group as calls that name one see it: one that was just
// made is not there yet.
func (a awsRequest) settledGroup(id string) (*awsGroup, error) {
	g, err := a.group(id)
	if err == nil && !a.awsAge(g.created, awsGroupKnown) {
		return nil, awsFail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return g, err
}

func (a awsRequest) describeGroups() (awsFields, error) {
	q, err := a.query("GroupId")
	if err != nil {
		return nil, err
	}
	a.defaultVPC()
	for _, id := range q.ids {
		if _, err := a.group(id); err != nil {
			return nil, err
		}
	}
	list := awsList{}
	for _, g := range inRegion(a.account.groups, a.region, func(g *awsGroup) string { return g.region }) {
		ok, err := q.matches(a.account, g.id, func(name string) ([]string, bool) {
			v, known := map[string]string{"group-name": g.name, "group-id": g.id, "vpc-id": g.vpc.id, "description": g.about, "owner-id": a.account.id}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, g.id)) {
			list = append(list, a.viewGroup(g))
		}
	}
	page, token := q.page(list)
	return awsFields{{"securityGroupInfo", page}, {"nextToken", token}}, nil
}

func (a awsRequest) viewGroup(g *awsGroup) awsFields {
	rules := awsList{}
	for _, r := range g.rules {
		rules = append(rules, r.view())
	}
	out := awsFields{{"ipProtocol", "-1"}, {"ipRanges", awsList{awsFields{{"cidrIp", "0.0.0.0/0"}}}}}
	return awsFields{
		{"ownerId", a.account.id}, {"groupId", g.id}, {"groupName", g.name}, {"groupDescription", g.about}, {"vpcId", g.vpc.id},
		{"ipPermissions", rules}, {"ipPermissionsEgress", awsList{out}}, {"tagSet", a.account.tagSet(g.id)},
	}
}

func (r awsRule) view() awsFields {
	f := awsFields{{"ipProtocol", r.protocol}}
	if r.protocol != "-1" {
		f = append(f, awsField{"fromPort", r.from}, awsField{"toPort", r.to})
	}
	set, member := "ipRanges", "cidrIp"
	if strings.Contains(r.source, ":") {
		set, member = "ipv6Ranges", "cidrIpv6"
	}
	return append(f, awsField{set, awsList{awsFields{{member, r.source}, {"description", r.note}}}})
}

func (a awsRequest) describeGroupRules() (awsFields, error) {
	q, err := a.query("SecurityGroupRuleId")
	if err != nil {
		return nil, err
	}
	list := awsList{}
	for _, g := range inRegion(a.account.groups, a.region, func(g *awsGroup) string { return g.region }) {
		ok, err := q.matches(a.account, g.id, func(name string) ([]string, bool) { return []string{g.id}, name == "group-id" })
		if err != nil {
			return nil, err
		}
		for _, r := range g.rules {
			if ok {
				list = append(list, a.viewRule(g, r))
			}
		}
	}
	page, token := q.page(list)
	return awsFields{{"securityGroupRuleSet", page}, {"nextToken", token}}, nil
}

func (a awsRequest) viewRule(g *awsGroup, r awsRule) awsFields {
	member := "cidrIpv4"
	if strings.Contains(r.source, ":") {
		member = "cidrIpv6"
	}
	return awsFields{
		{"securityGroupRuleId", r.id}, {"groupId", g.id}, {"groupOwnerId", a.account.id}, {"isEgress", false}, {"ipProtocol", r.protocol},
		{"fromPort", r.from}, {"toPort", r.to}, {member, r.source}, {"description", r.note},
	}
}

// rulesOf reads the rules of a request.
func (a awsRequest) rulesOf() ([]awsRule, error) {
	var rules []awsRule
	for _, p := range a.form.each("IpPermissions") {
		base := awsRule{protocol: a.form.text(p + ".IpProtocol"), from: a.form.number(p+".FromPort", -1), to: a.form.number(p+".ToPort", -1)}
		if !slices.Contains([]string{"tcp", "udp", "icmp", "-1"}, base.protocol) {
			return nil, awsFail("InvalidParameterValue", "Invalid value '%s' for IP protocol. Unknown protocol.", base.protocol)
		}
		for set, member := range map[string]string{".IpRanges": ".CidrIp", ".Ipv6Ranges": ".CidrIpv6"} {
			for _, r := range a.form.each(p + set) {
				one := base
				one.source, one.note = a.form.text(r+member), a.form.text(r+".Description")
				prefix, err := netip.ParsePrefix(one.source)
				if err != nil || prefix.Addr().Is4() != (set == ".IpRanges") || prefix != prefix.Masked() {
					return nil, awsFail("InvalidParameterValue", "CIDR block %s is malformed", one.source)
				}
				rules = append(rules, one)
			}
		}
	}
	slices.SortFunc(rules, func(x, y awsRule) int { return strings.Compare(x.key(), y.key()) })
	return rules, nil
}

func (a awsRequest) authorize() (awsFields, error) {
	id := a.form.text("GroupId")
	rules, err := a.rulesOf()
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	g, err := a.settledGroup(id)
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, awsFail("MissingParameter", "The request must contain the parameter ipPermissions")
	}
	for _, r := range rules {
		if slices.ContainsFunc(g.rules, func(o awsRule) bool { return o.key() == r.key() }) {
			return nil, awsFail("InvalidPermission.Duplicate", "the specified rule \"peer: %s, %s, from port: %d, to port: %d, ALLOW\" already exists", r.source, strings.ToUpper(r.protocol), r.from, r.to)
		}
	}
	if len(g.rules)+len(rules) > awsRuleLimit {
		return nil, awsFail("RulesPerSecurityGroupLimitExceeded", "The maximum number of rules per security group has been reached.")
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	list := awsList{}
	for _, r := range rules {
		r.id = a.sim.awsID("sgr")
		g.rules = append(g.rules, r)
		list = append(list, a.viewRule(g, r))
	}
	return awsFields{{"return", true}, {"securityGroupRuleSet", list}}, nil
}

func (a awsRequest) revoke() (awsFields, error) {
	id := a.form.text("GroupId")
	rules, err := a.rulesOf()
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	g, err := a.group(id)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		before := len(g.rules)
		g.rules = slices.DeleteFunc(g.rules, func(o awsRule) bool { return o.key() == r.key() })
		if len(g.rules) == before {
			return nil, awsFail("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
		}
	}
	return awsFields{{"return", true}}, nil
}

func (a awsRequest) deleteGroup() (awsFields, error) {
	id := a.form.text("GroupId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	g, err := a.group(id)
	if err != nil {
		return nil, err
	}
	if g.isDefault {
		return nil, awsFail("CannotDelete", "the specified group: \"%s\" name: \"default\" cannot be deleted by a user", id)
	}
	for _, n := range a.account.cards {
		if slices.Contains(n.groups, g) {
			return nil, awsFail("DependencyViolation", "resource %s has a dependent object", id)
		}
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	delete(a.account.groups, id)
	delete(a.account.tags, id)
	return awsFields{{"return", true}, {"groupId", id}}, nil
}
