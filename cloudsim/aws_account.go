package cloudsim

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What an account has, and how lists of it are asked for.

// awsAccount is what an account has beside the world's things.
type awsAccount struct {
	id        string
	networks  map[string]*awsVPC // by region; nil: deleted
	subnets   map[string]*awsSubnet
	groups    map[string]*awsGroup
	cards     map[string]*awsInterface
	instances map[string]*awsInstance
	volumes   map[string]*awsVolume
	addresses map[string]*awsAddress
	keys      map[string]*awsKey
	tokens    map[string]awsToken
	tags      map[string]map[string]string // by id
	buckets   map[string]*awsBucket
}

// awsOf returns what a project keeps for this adapter.
func (s *Sim) awsOf(account string) (*project, *awsAccount) {
	p := s.world.project(awsName, account)
	if p.adapter == nil {
		p.adapter = &awsAccount{
			id: account, networks: map[string]*awsVPC{}, subnets: map[string]*awsSubnet{}, groups: map[string]*awsGroup{},
			cards: map[string]*awsInterface{}, instances: map[string]*awsInstance{}, volumes: map[string]*awsVolume{},
			addresses: map[string]*awsAddress{}, keys: map[string]*awsKey{}, tokens: map[string]awsToken{},
			tags: map[string]map[string]string{}, buckets: map[string]*awsBucket{},
		}
	}
	return p, p.adapter.(*awsAccount)
}

func awsActions() map[string]awsAction {
	read := func(name string, do func(awsRequest) (awsFields, error)) awsAction { return awsAction{name, false, do} }
	write := func(name string, do func(awsRequest) (awsFields, error)) awsAction { return awsAction{name, true, do} }
	return map[string]awsAction{
		"AssumeRole":        read("assume role", awsRequest.assumeRole),
		"GetCallerIdentity": read("get caller identity", awsRequest.callerIdentity),

		"DescribeRegions":               read("list regions", awsRequest.describeRegions),
		"DescribeAvailabilityZones":     read("list zones", awsRequest.describeZones),
		"DescribeInstanceTypes":         read("list sizes", awsRequest.describeTypes),
		"DescribeInstanceTypeOfferings": read("list size offerings", awsRequest.describeOfferings),
		"DescribeImages":                read("list images", awsRequest.describeImages),

		"DescribeVpcs":     read("list networks", awsRequest.describeVPCs),
		"DescribeSubnets":  read("list subnets", awsRequest.describeSubnets),
		"CreateDefaultVpc": write("create network", awsRequest.createDefaultVPC),
		"DeleteSubnet":     write("delete subnet", awsRequest.deleteSubnet),
		"DeleteVpc":        write("delete network", awsRequest.deleteVPC),

		"CreateSecurityGroup":           write("create firewall", awsRequest.createGroup),
		"DescribeSecurityGroups":        read("list firewalls", awsRequest.describeGroups),
		"DescribeSecurityGroupRules":    read("list firewall rules", awsRequest.describeGroupRules),
		"AuthorizeSecurityGroupIngress": write("add firewall rule", awsRequest.authorize),
		"RevokeSecurityGroupIngress":    write("remove firewall rule", awsRequest.revoke),
		"DeleteSecurityGroup":           write("delete firewall", awsRequest.deleteGroup),

		"RunInstances":            write("create server", awsRequest.runInstances),
		"DescribeInstances":       read("list servers", awsRequest.describeInstances),
		"DescribeInstanceStatus":  read("list server states", awsRequest.describeStatus),
		"TerminateInstances":      write("delete server", awsRequest.terminate),
		"StopInstances":           write("stop server", awsRequest.stop),
		"StartInstances":          write("start server", awsRequest.start),
		"RebootInstances":         write("reboot server", awsRequest.reboot),
		"GetConsoleOutput":        read("read console", awsRequest.console),
		"ModifyInstanceAttribute": write("update server", awsRequest.modifyInstance),

		"DescribeVolumes":           read("list volumes", awsRequest.describeVolumes),
		"DeleteVolume":              write("delete volume", awsRequest.deleteVolume),
		"DescribeNetworkInterfaces": read("list network interfaces", awsRequest.describeInterfaces),
		"DeleteNetworkInterface":    write("delete network interface", awsRequest.deleteInterface),
		"AllocateAddress":           write("create public ip", awsRequest.allocateAddress),
		"DescribeAddresses":         read("list public ips", awsRequest.describeAddresses),
		"ReleaseAddress":            write("delete public ip", awsRequest.releaseAddress),
		"ImportKeyPair":             write("create ssh key", awsRequest.importKey),
		"DescribeKeyPairs":          read("list ssh keys", awsRequest.describeKeys),
		"DeleteKeyPair":             write("delete ssh key", awsRequest.deleteKey),
		"CreateTags":                write("create tags", awsRequest.createTags),
		"DeleteTags":                write("delete tags", awsRequest.deleteTags),
		"DescribeTags":              read("list tags", awsRequest.describeTags),
	}
}

// awsTagSet is a thing's tags as answers have them.
func (c *awsAccount) tagSet(id string) any {
	var list awsList
	for _, k := range sortedKeys(c.tags[id]) {
		list = append(list, awsFields{{"key", k}, {"value", c.tags[id][k]}})
	}
	if list == nil {
		return nil
	}
	return list
}

func (c *awsAccount) setTags(id string, tags map[string]string) {
	if len(tags) == 0 {
		return
	}
	if c.tags[id] == nil {
		c.tags[id] = map[string]string{}
	}
	for k, v := range tags {
		c.tags[id][k] = v
	}
}

// awsQuery is how a list is narrowed.
type awsQuery struct {
	filters []awsFilter
	ids     []string
	max     int
	start   int
}

type awsFilter struct {
	name   string
	values []string
}

// awsPage is the most that one page has, whatever was asked for: EC2 may
// return fewer, and what reads it has to go on.
const awsPage = 25

// query reads the filters, the ids and the paging of a list. ids is the
// parameter that names things: "InstanceId".
func (a awsRequest) query(ids string) (awsQuery, error) {
	q := awsQuery{ids: a.form.list(ids), max: a.form.number("MaxResults", 0)}
	for _, f := range a.form.each("Filter") {
		q.filters = append(q.filters, awsFilter{a.form.text(f + ".Name"), a.form.list(f + ".Value")})
	}
	token := a.form.text("NextToken")
	if token != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(token, "page-"))
		if err != nil || n < 0 {
			return q, awsFail("InvalidParameterValue", "Invalid value '%s' for nextToken.", token)
		}
		q.start = n
	}
	switch {
	case a.form.values.Has("MaxResults") && (q.max < 5 || q.max > 1000):
		return q, awsFail("InvalidParameterValue", "Value ( %s ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.", a.form.values.Get("MaxResults"))
	case q.max > 0 && len(q.ids) > 0 && ids == "InstanceId":
		return q, awsFail("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	return q, a.parsed()
}

// page cuts a list. The token is empty on the last.
func (q awsQuery) page(all awsList) (awsList, string) {
	if q.max == 0 {
		return all, ""
	}
	start := min(q.start, len(all))
	end := min(start+min(q.max, awsPage), len(all))
	if end == len(all) {
		return all[start:end], ""
	}
	return all[start:end], "page-" + strconv.Itoa(end)
}

// matches tells whether a thing passes the filters; of gives a filter's values
// of the thing, and false for a filter that there is not.
func (q awsQuery) matches(c *awsAccount, id string, of func(name string) ([]string, bool)) (bool, error) {
	for _, f := range q.filters {
		values, known := c.tagValues(id, f.name)
		if !known {
			values, known = of(f.name)
		}
		if !known {
			return false, awsFail("InvalidParameterValue", "The filter '%s' is invalid", f.name)
		}
		hit := slices.ContainsFunc(f.values, func(want string) bool {
			return slices.ContainsFunc(values, func(v string) bool { return awsLike(want, v) })
		})
		if !hit {
			return false, nil
		}
	}
	return true, nil
}

func (c *awsAccount) tagValues(id, filter string) ([]string, bool) {
	if key, ok := strings.CutPrefix(filter, "tag:"); ok {
		if v, has := c.tags[id][key]; has {
			return []string{v}, true
		}
		return nil, true
	}
	if filter == "tag-key" {
		return sortedKeys(c.tags[id]), true
	}
	return nil, false
}

// awsLike compares with * and ? as filters have them.
func awsLike(pattern, s string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == s
	}
	escape := strings.NewReplacer("/", "\x00", "[", `\[`, `\`, `\\`)
	ok, _ := path.Match(escape.Replace(pattern), strings.ReplaceAll(s, "/", "\x00"))
	return ok
}

// inRegion returns a map's things of a region, in the order of their ids.
func inRegion[T any](things map[string]T, region string, of func(T) string) []T {
	var out []T
	for _, id := range sortedKeys(things) {
		if of(things[id]) == region {
			out = append(out, things[id])
		}
	}
	return out
}

// createTags tags anything that exists.
func (a awsRequest) createTags() (awsFields, error) {
	ids := a.form.list("ResourceId")
	tags, err := a.form.tagList("Tag")
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := a.mustExist(id); err != nil {
			return nil, err
		}
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	for _, id := range ids {
		a.account.setTags(id, tags)
	}
	return awsFields{{"return", true}}, nil
}

func (a awsRequest) deleteTags() (awsFields, error) {
	ids := a.form.list("ResourceId")
	for _, t := range a.form.each("Tag") {
		key := a.form.text(t + ".Key")
		a.form.text(t + ".Value")
		for _, id := range ids {
			delete(a.account.tags[id], key)
		}
	}
	return awsFields{{"return", true}}, a.parsed()
}

func (a awsRequest) describeTags() (awsFields, error) {
	q, err := a.query("ResourceId")
	if err != nil {
		return nil, err
	}
	var list awsList
	for _, id := range sortedKeys(a.account.tags) {
		for _, k := range sortedKeys(a.account.tags[id]) {
			value := a.account.tags[id][k]
			ok, err := q.matches(a.account, id, func(name string) ([]string, bool) {
				v, known := map[string]string{"resource-id": id, "key": k, "value": value, "resource-type": awsKindOf(id)}[name]
				return []string{v}, known
			})
			if err != nil {
				return nil, err
			}
			if ok {
				list = append(list, awsFields{{"resourceId", id}, {"resourceType", awsKindOf(id)}, {"key", k}, {"value", value}})
			}
		}
	}
	page, token := q.page(list)
	return awsFields{{"tagSet", page}, {"nextToken", token}}, nil
}

func awsKindOf(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	return map[string]string{"i": "instance", "vol": "volume", "eni": "network-interface", "sg": "security-group", "vpc": "vpc", "subnet": "subnet", "key": "key-pair", "eipalloc": "elastic-ip"}[prefix]
}

// mustExist is nil for the id of something in the account.
func (a awsRequest) mustExist(id string) error {
	c := a.account
	found := map[string]bool{
		"instance": c.instances[id] != nil, "volume": c.volumes[id] != nil, "network-interface": c.cards[id] != nil,
		"security-group": c.groups[id] != nil, "subnet": c.subnets[id] != nil, "elastic-ip": c.addresses[id] != nil,
	}[awsKindOf(id)]
	for _, k := range c.keys {
		found = found || k.id == id
	}
	for _, v := range c.networks {
		found = found || v != nil && v.id == id
	}
	if found {
		return nil
	}
	code := map[string]string{"instance": "InvalidInstanceID", "volume": "InvalidVolume", "security-group": "InvalidGroup", "network-interface": "InvalidNetworkInterfaceID"}[awsKindOf(id)]
	if code == "" {
		code = "InvalidID"
	}
	return awsFail(code+".NotFound", "The ID '%s' does not exist", id)
}

// awsAge tells whether a thing has been there for some time.
func (a awsRequest) awsAge(since time.Time, least time.Duration) bool {
	return a.now.Sub(since) >= least
}
