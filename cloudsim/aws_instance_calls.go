package cloudsim

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Instances: what is seen of them, what is done to them, their end.

// state is the instance's, in EC2's words.
func (i *awsInstance) state() string {
	if !i.ended.IsZero() {
		return "terminated"
	}
	switch i.server.state {
	case stateRunning:
		return "running"
	case stateStopping:
		return "stopping"
	case stateOff:
		return "stopped"
	case stateDeleting:
		return "shutting-down"
	}
	return "pending"
}

func awsStateFields(name string) awsFields {
	code := map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}[name]
	return awsFields{{"code", code}, {"name", name}}
}

// address gives the instance its public address, which it keeps until it stops.
func (c *awsAccount) address(s *Sim, i *awsInstance, now time.Time) {
	if !i.public || i.server.ipv4 != nil {
		return
	}
	ip := &publicIP{id: s.world.id(awsName, "public ip"), address: s.world.ipv4(), server: i.server, created: now, region: i.region, autoDelete: true}
	ip.entry = s.world.enter(LedgerEntry{
		Provider: awsName, Project: i.server.project.name, Kind: "public-ip", ID: ip.address, Name: i.server.name, Server: i.id, CreatedAt: now,
		Hourly: awsAddressPrice, Currency: "USD",
	})
	i.server.ipv4 = ip
}

func (c *awsAccount) dropAddress(i *awsInstance, now time.Time) {
	if ip := i.server.ipv4; ip != nil {
		ip.entry.DeletedAt = now
		i.server.ipv4 = nil
	}
}

// end is the moment at which an instance is terminated. Its interface goes a
// little later.
func (c *awsAccount) end(s *Sim, i *awsInstance, now time.Time) {
	i.ended = now
	i.server.state = stateDeleting
	s.endGuest(i.server)
	if i.server.entry.DeletedAt.IsZero() {
		i.server.entry.DeletedAt = now
	}
	c.dropAddress(i, now)
	delete(i.server.project.servers, i.server.id)
	if v := i.volume; v != nil && !v.stays && s.hit([]Effect{EffectLeaveBehind}, awsName, "delete volume", i.server.name) == nil {
		delete(c.volumes, v.id)
		delete(c.tags, v.id)
		v.entry.DeletedAt = now
	} else if v != nil {
		v.instance = nil
	}
	card := i.card
	s.after(now, awsDetachTakes, func(time.Time) {
		delete(c.cards, card.id)
		delete(c.tags, card.id)
		i.card = nil
		i.subnet.free++
	})
	s.after(now, awsShown, func(time.Time) {
		delete(c.instances, i.id)
		delete(c.tags, i.id)
	})
}

var awsInstanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// find returns the instances of a request, all or none.
func (a awsRequest) find(ids []string) ([]*awsInstance, error) {
	var list []*awsInstance
	var missing []string
	for _, id := range ids {
		i := a.account.instances[id]
		switch {
		case !awsInstanceID.MatchString(id):
			return nil, awsFail("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		case i == nil || i.region != a.region || !a.awsAge(i.server.created, awsKnownAfter):
			missing = append(missing, id)
		default:
			list = append(list, i)
		}
	}
	if len(missing) == 1 {
		return nil, awsFail("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	if len(missing) > 1 {
		return nil, awsFail("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(missing, ", "))
	}
	if len(ids) == 0 {
		return nil, awsFail("MissingParameter", "The request must contain the parameter InstanceId")
	}
	return list, nil
}

func (a awsRequest) describeInstances() (awsFields, error) {
	q, err := a.query("InstanceId")
	if err != nil {
		return nil, err
	}
	var all []*awsInstance
	if len(q.ids) > 0 {
		if all, err = a.find(q.ids); err != nil {
			return nil, err
		}
	} else {
		all = inRegion(a.account.instances, a.region, func(i *awsInstance) string { return i.region })
		all = slices.DeleteFunc(all, func(i *awsInstance) bool {
			return !a.awsAge(i.server.created, awsListedAfter) || a.now.Before(i.server.hiddenUntil)
		})
		slices.SortFunc(all, func(x, y *awsInstance) int { return int(x.server.id - y.server.id) })
	}
	var list awsList
	for _, i := range all {
		ok, err := q.matches(a.account, i.id, i.filter)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, a.viewReservation(i))
		}
	}
	page, token := q.page(list)
	return awsFields{{"reservationSet", orNoItems(page)}, {"nextToken", token}}, nil
}

func orNoItems(l awsList) awsList {
	if l == nil {
		return awsList{}
	}
	return l
}

// filter gives the values that a list is narrowed by.
func (i *awsInstance) filter(name string) ([]string, bool) {
	switch name {
	case "instance.group-id", "network-interface.group-id":
		var ids []string
		if i.card != nil && i.ended.IsZero() {
			for _, g := range i.card.groups {
				ids = append(ids, g.id)
			}
		}
		return ids, true
	case "ip-address":
		if i.server.ipv4 == nil {
			return nil, true
		}
		return []string{i.server.ipv4.address}, true
	}
	v, known := map[string]string{
		"instance-id": i.id, "instance-state-name": i.state(), "client-token": i.token, "vpc-id": i.subnet.vpc.id, "subnet-id": i.subnet.id,
		"availability-zone": i.zone, "image-id": i.image, "instance-type": i.kind.name, "key-name": i.key, "architecture": i.kind.arch,
	}[name]
	return []string{v}, known
}

func (a awsRequest) viewReservation(i *awsInstance) awsFields {
	return awsFields{
		{"reservationId", i.reservation}, {"ownerId", a.account.id}, {"groupSet", awsList{}}, {"instancesSet", awsList{a.viewInstance(i)}},
	}
}

func (a awsRequest) viewInstance(i *awsInstance) awsFields {
	state := i.state()
	f := awsFields{
		{"instanceId", i.id}, {"imageId", i.image}, {"instanceState", awsStateFields(state)}, {"keyName", i.key}, {"amiLaunchIndex", 0},
		{"instanceType", i.kind.name}, {"launchTime", i.launched}, {"placement", awsFields{{"availabilityZone", i.zone}, {"tenancy", "default"}}},
		{"monitoring", awsFields{{"state", "disabled"}}}, {"architecture", i.kind.arch}, {"rootDeviceType", "ebs"}, {"rootDeviceName", "/dev/sda1"},
		{"virtualizationType", "hvm"}, {"hypervisor", "xen"}, {"clientToken", i.token}, {"ebsOptimized", false}, {"enaSupport", true},
		{"cpuOptions", i.kind.view().of("vCpuInfo").cpuOptions()}, {"tagSet", a.account.tagSet(i.id)},
		{"metadataOptions", awsFields{
			{"state", "applied"}, {"httpTokens", i.metadata.tokens}, {"httpPutResponseHopLimit", i.metadata.hops},
			{"httpEndpoint", i.metadata.endpoint}, {"instanceMetadataTags", i.metadata.tags},
		}},
	}
	if i.reason[0] != "" {
		f = append(f, awsField{"stateReason", awsFields{{"code", i.reason[0]}, {"message", i.reason[1]}}}, awsField{"reason", i.reason[1]})
	}
	if state == "terminated" { // without address, network and groups
		return append(f, awsField{"groupSet", awsList{}}, awsField{"networkInterfaceSet", awsList{}}, awsField{"blockDeviceMapping", awsList{}})
	}
	groups := i.card.viewGroups()
	f = append(f, awsFields{
		{"subnetId", i.subnet.id}, {"vpcId", i.subnet.vpc.id}, {"privateIpAddress", i.card.private}, {"sourceDestCheck", true}, {"groupSet", groups},
		{"networkInterfaceSet", awsList{awsFields{
			{"networkInterfaceId", i.card.id}, {"subnetId", i.subnet.id}, {"vpcId", i.subnet.vpc.id}, {"ownerId", a.account.id}, {"status", "in-use"},
			{"privateIpAddress", i.card.private}, {"groupSet", groups},
			{"attachment", awsFields{{"attachmentId", "eni-attach-" + i.card.id[4:]}, {"deviceIndex", 0}, {"status", "attached"}, {"attachTime", i.card.since}, {"deleteOnTermination", true}}},
		}}},
	}...)
	if i.volume != nil && state != "pending" {
		f = append(f, awsField{"blockDeviceMapping", awsList{awsFields{{"deviceName", "/dev/sda1"}, {"ebs", awsFields{
			{"volumeId", i.volume.id}, {"status", "attached"}, {"attachTime", i.volume.created}, {"deleteOnTermination", !i.volume.stays},
		}}}}})
	}
	if i.server.ipv4 != nil && state == "running" {
		f = append(f, awsField{"ipAddress", i.server.ipv4.address}, awsField{"dnsName", fmt.Sprintf("ec2-%s.%s.compute.amazonaws.com", strings.ReplaceAll(i.server.ipv4.address, ".", "-"), i.region)})
	}
	return f
}

// of returns the members of one member.
func (f awsFields) of(name string) awsFields {
	for _, m := range f {
		if m.name == name {
			inner, _ := m.value.(awsFields)
			return inner
		}
	}
	return nil
}

func (f awsFields) cpuOptions() awsFields {
	return awsFields{{"coreCount", f[1].value}, {"threadsPerCore", f[2].value}}
}

func (a awsRequest) describeStatus() (awsFields, error) {
	all := a.form.flag("IncludeAllInstances", false)
	q, err := a.query("InstanceId")
	if err != nil {
		return nil, err
	}
	if len(q.ids) > 0 {
		if _, err := a.find(q.ids); err != nil {
			return nil, err
		}
	}
	var list awsList
	for _, i := range inRegion(a.account.instances, a.region, func(i *awsInstance) string { return i.region }) {
		if len(q.ids) > 0 && !slices.Contains(q.ids, i.id) || i.state() != "running" && !all {
			continue
		}
		check := "initializing"
		if i.state() != "running" {
			check = "not-applicable"
		} else if i.server.guest != nil && i.server.guest.stage == "up" {
			check = "ok"
		}
		status := awsFields{{"status", check}}
		list = append(list, awsFields{
			{"instanceId", i.id}, {"availabilityZone", i.zone}, {"instanceState", awsStateFields(i.state())}, {"systemStatus", status}, {"instanceStatus", status},
		})
	}
	page, token := q.page(list)
	return awsFields{{"instanceStatusSet", orNoItems(page)}, {"nextToken", token}}, nil
}

// change does something to the instances of a request.
func (a awsRequest) change(do func(i *awsInstance) error) (awsFields, error) {
	ids := a.form.list("InstanceId")
	a.form.text("Force")
	a.form.text("Hibernate")
	a.form.text("SkipOsShutdown")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	list, err := a.find(ids)
	if err != nil {
		return nil, err
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	var set awsList
	for _, i := range list {
		before := i.state()
		if err := do(i); err != nil {
			return nil, err
		}
		set = append(set, awsFields{{"instanceId", i.id}, {"currentState", awsStateFields(i.state())}, {"previousState", awsStateFields(before)}})
	}
	return awsFields{{"instancesSet", set}}, nil
}

func (a awsRequest) terminate() (awsFields, error) {
	return a.change(func(i *awsInstance) error {
		switch {
		case i.protected:
			return awsFail("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", i.id)
		case i.state() == "terminated" || i.state() == "shutting-down":
			return nil
		}
		a.sim.powerOff(i.server)
		i.server.state = stateDeleting
		i.server.entry.DeletedAt = a.now // billing ends here
		i.reason = [2]string{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
		sim, account := a.sim, a.account
		sim.after(a.now, awsEndTakes+sim.stuckFor(i.server), func(now time.Time) { account.end(sim, i, now) })
		return nil
	})
}

func (a awsRequest) wrongState(i *awsInstance) error {
	return awsFail("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be changed so: it is %s.", i.id, i.state())
}

func (a awsRequest) stop() (awsFields, error) {
	return a.change(func(i *awsInstance) error {
		if i.state() != "running" && i.state() != "stopped" && i.state() != "stopping" {
			return a.wrongState(i)
		}
		if i.state() != "running" {
			return nil
		}
		a.sim.powerOff(i.server)
		i.reason = [2]string{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
		account := a.account
		a.sim.after(a.now, awsStopTakes, func(now time.Time) {
			if i.server.state == stateStopping {
				i.server.state = stateOff
				account.dropAddress(i, now)
			}
		})
		return nil
	})
}

func (a awsRequest) start() (awsFields, error) {
	return a.change(func(i *awsInstance) error {
		switch i.state() {
		case "stopped":
			i.reason = [2]string{}
			a.account.address(a.sim, i, a.now)
			a.sim.powerOn(i.server, a.now)
			return nil
		case "running", "pending":
			return nil
		}
		return a.wrongState(i)
	})
}

func (a awsRequest) reboot() (awsFields, error) {
	_, err := a.change(func(i *awsInstance) error {
		if i.state() != "running" {
			return a.wrongState(i)
		}
		a.sim.restart(i.server, a.now)
		return nil
	})
	return awsFields{{"return", true}}, err
}

func (a awsRequest) modifyInstance() (awsFields, error) {
	id, protect := a.form.text("InstanceId"), a.form.text("DisableApiTermination.Value")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	list, err := a.find([]string{id})
	if err != nil {
		return nil, err
	}
	if protect != "" {
		list[0].protected = protect == "true"
	}
	return awsFields{{"return", true}}, nil
}

// console is the last 64 KiB, as they are now when the latest is asked for.
func (a awsRequest) console() (awsFields, error) {
	id, latest := a.form.text("InstanceId"), a.form.flag("Latest", false)
	if err := a.parsed(); err != nil {
		return nil, err
	}
	list, err := a.find([]string{id})
	if err != nil {
		return nil, err
	}
	i := list[0]
	if latest && strings.HasPrefix(i.kind.name, "t2.") {
		return nil, awsFail("UnsupportedOperation", "This instance type does not support retrieving the latest console logs. Supported instance types are those that are based on Nitro.")
	}
	f := awsFields{{"instanceId", i.id}, {"timestamp", a.now}}
	if i.server.guest != nil {
		text := i.server.consoleText()
		text = text[max(0, len(text)-64<<10):]
		f = append(f, awsField{"output", base64.StdEncoding.EncodeToString([]byte(text))})
	}
	return f, nil
}
