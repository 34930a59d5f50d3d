package cloudsim

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Instances: the create.

// How long things take, in simulated time.
const (
	awsStartTakes   = 3 * time.Second // from the create to power-on
	awsStopTakes    = 8 * time.Second
	awsEndTakes     = 20 * time.Second // from shutting-down to terminated
	awsDetachTakes  = 15 * time.Second // until the interface has let go of its groups
	awsShown        = time.Hour        // how long a terminated instance is seen
	awsKnownAfter   = 1500 * time.Millisecond
	awsListedAfter  = 2500 * time.Millisecond
	awsUserData     = 16384
	awsCPULimit     = 640
	awsOtherLimit   = 0 // of the families that are not standard
	awsTokenLife    = 24 * time.Hour
	awsAddressPrice = 0.005
	awsDiskPrice    = 0.08 / 730 // of a GB of gp3, an hour
)

type awsInstance struct {
	id, region, zone string
	server           *server
	kind             awsType
	image            string
	subnet           *awsSubnet
	card             *awsInterface
	volume           *awsVolume
	key              string
	token            string
	behaviour        string
	metadata         awsMetadata
	public           bool // gets an address
	launched         time.Time
	ended            time.Time // terminated; zero: not yet
	reason           [2]string // code and message of its state
	protected        bool
	reservation      string
}

type awsMetadata struct {
	tokens, endpoint, tags string
	hops                   int
}

// awsToken is a client token that was used.
type awsToken struct {
	request  string // all parameters but the zone
	instance *awsInstance
	until    time.Time
}

// awsSpec is what a RunInstances call wants, read and checked.
type awsSpec struct {
	image    awsImage
	kind     awsType
	subnet   *awsSubnet
	groups   []*awsGroup
	data     []byte
	disk     awsDisk
	public   bool
	token    string
	request  string
	tags     map[string]map[string]string
	key      string
	behave   string
	metadata awsMetadata
	protect  bool
}

type awsDisk struct {
	gb        int
	kind      string
	encrypted bool
	stays     bool
}

func (a awsRequest) runInstances() (awsFields, error) {
	spec, err := a.readSpec()
	if err != nil {
		return nil, err
	}
	key := spec.subnet.zone + "/" + spec.token
	if known, ok := a.account.tokens[key]; ok && spec.token != "" && a.now.Before(known.until) {
		switch {
		case known.request != spec.request:
			return nil, awsFail("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
		case !known.instance.ended.IsZero():
			return nil, awsFail("IdempotentInstanceTerminated", "The instance that was launched with this client token is terminated.")
		}
		return a.viewReservation(known.instance), nil
	}
	// A dry run tells of permission, not of quota or capacity.
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	if err := a.checkLaunch(spec); err != nil {
		return nil, err
	}
	i := a.launch(spec)
	if spec.token != "" {
		a.account.tokens[key] = awsToken{request: spec.request, instance: i, until: a.now.Add(awsTokenLife)}
	}
	return a.viewReservation(i), nil
}

// readSpec reads the parameters and refuses what is wrong with them.
func (a awsRequest) readSpec() (awsSpec, error) {
	f := a.form
	s := awsSpec{token: f.text("ClientToken"), key: f.text("KeyName"), behave: f.text("InstanceInitiatedShutdownBehavior"), protect: f.flag("DisableApiTermination", false)}
	s.request = a.requestText()
	var err error
	if s.tags, err = f.tags("instance", "volume", "network-interface"); err != nil {
		return s, err
	}
	image, size, zone := f.text("ImageId"), f.text("InstanceType"), f.text("Placement.AvailabilityZone")
	f.text("Placement.Tenancy")
	f.text("Monitoring.Enabled")
	f.text("CreditSpecification.CpuCredits")
	f.text("EbsOptimized")
	least, most := f.number("MinCount", 0), f.number("MaxCount", 0)
	known := false
	if s.image, known = awsImageOf(a.region, image); !known {
		return s, awsFail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", image)
	}
	if s.kind, known = awsTypeOf(size); !known || slices.Contains(s.kind.absent, a.region) {
		return s, awsFail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", size)
	}
	switch {
	case least != 1 || most != 1:
		return s, awsFail("InvalidParameterValue", "This simulation launches one instance a call.")
	case len(s.token) > 64:
		return s, awsFail("InvalidParameterValue", "Invalid value '%s' for clientToken. It must be shorter than or equal to 64 ASCII characters.", s.token)
	case s.image.arch != s.kind.arch:
		return s, awsFail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", s.kind.arch, s.image.arch)
	case s.key != "" && a.account.keys[a.region+"/"+s.key] == nil:
		return s, awsFail("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", s.key)
	case s.behave != "" && s.behave != "stop" && s.behave != "terminate":
		return s, awsFail("InvalidParameterValue", "Value (%s) for parameter InstanceInitiatedShutdownBehavior is invalid.", s.behave)
	}
	for _, read := range []func(*awsSpec) error{a.readNetwork(zone), a.readDisk, a.readMetadata, a.readUserData} {
		if err := read(&s); err != nil {
			return s, err
		}
	}
	return s, a.parsed()
}

// requestText is what a repeat has to be like: everything but the place.
func (a awsRequest) requestText() string {
	var b strings.Builder
	for _, k := range sortedKeys(a.form.values) {
		if k != "ClientToken" && k != "DryRun" && !strings.HasSuffix(k, "SubnetId") && k != "Placement.AvailabilityZone" {
			fmt.Fprintf(&b, "%s=%q\n", k, a.form.values.Get(k))
		}
	}
	return b.String()
}

// readNetwork reads where the instance goes: by one network interface, or by
// the older parameters, which exclude each other.
func (a awsRequest) readNetwork(zone string) func(*awsSpec) error {
	return func(s *awsSpec) error {
		f := a.form
		if a.defaultVPC() == nil {
			return awsFail("VPCIdNotSpecified", "No default VPC for this user")
		}
		subnet, groups := f.text("SubnetId"), f.list("SecurityGroupId")
		s.public = true
		cards := f.each("NetworkInterface")
		switch {
		case len(cards) > 0 && (subnet != "" || len(groups) > 0):
			return awsFail("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request")
		case len(cards) > 1:
			return awsFail("InvalidParameterCombination", "This simulation launches instances with one network interface.")
		case len(cards) == 1:
			c := cards[0]
			subnet, groups = f.text(c+".SubnetId"), f.list(c+".SecurityGroupId")
			s.public = f.flag(c+".AssociatePublicIpAddress", true)
			f.text(c + ".DeleteOnTermination")
			f.text(c + ".Description")
			if f.text(c+".DeviceIndex") != "0" {
				return awsFail("InvalidParameterValue", "The first network interface needs the device index 0.")
			}
		}
		if err := a.pickSubnet(s, subnet, zone); err != nil {
			return err
		}
		for _, id := range groups {
			g, err := a.settledGroup(id)
			if err != nil {
				return err
			}
			s.groups = append(s.groups, g)
		}
		for _, g := range a.account.groups {
			if len(groups) == 0 && g.isDefault && g.vpc == s.subnet.vpc {
				s.groups = []*awsGroup{g}
			}
		}
		return nil
	}
}

func (a awsRequest) pickSubnet(s *awsSpec, id, zone string) error {
	for _, n := range inRegion(a.account.subnets, a.region, func(n *awsSubnet) string { return n.region }) {
		fits := n.id == id || id == "" && (zone == "" && s.kind.in(n.zone) && !slices.Contains(s.kind.soldOut, n.zone) || n.zone == zone)
		if s.subnet == nil && fits {
			s.subnet = n
		}
	}
	switch {
	case s.subnet == nil && id != "":
		return awsFail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	case s.subnet == nil:
		return awsFail("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
	case s.subnet.free <= 0:
		return awsFail("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", id)
	}
	return nil
}

func (a awsRequest) readDisk(s *awsSpec) error {
	f := a.form
	s.disk = awsDisk{gb: awsImageGB, kind: "gp3"}
	for _, d := range f.each("BlockDeviceMapping") {
		if name := f.text(d + ".DeviceName"); name != "/dev/sda1" {
			return awsFail("InvalidBlockDeviceMapping", "This simulation has no second disk: %s", name)
		}
		s.disk.gb = f.number(d+".Ebs.VolumeSize", awsImageGB)
		s.disk.encrypted = f.flag(d+".Ebs.Encrypted", false)
		s.disk.stays = !f.flag(d+".Ebs.DeleteOnTermination", true)
		if kind := f.text(d + ".Ebs.VolumeType"); kind != "" {
			s.disk.kind = kind
		}
		switch {
		case s.disk.gb < awsImageGB:
			return awsFail("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than snapshot 'snap-%s', expect size >= %dGB", s.disk.gb, s.image.id[4:], awsImageGB)
		case !slices.Contains([]string{"gp2", "gp3", "io1", "io2", "standard"}, s.disk.kind) || s.disk.gb > 65536:
			return awsFail("InvalidParameterValue", "Invalid volume type or size: %s, %d", s.disk.kind, s.disk.gb)
		}
	}
	return nil
}

// readMetadata has the defaults of images that ask for IMDSv2.
func (a awsRequest) readMetadata(s *awsSpec) error {
	f := a.form
	or := func(v, otherwise string) string {
		if v == "" {
			return otherwise
		}
		return v
	}
	s.metadata = awsMetadata{
		tokens: or(f.text("MetadataOptions.HttpTokens"), "required"), endpoint: or(f.text("MetadataOptions.HttpEndpoint"), "enabled"),
		tags: or(f.text("MetadataOptions.InstanceMetadataTags"), "disabled"), hops: f.number("MetadataOptions.HttpPutResponseHopLimit", 2),
	}
	f.text("MetadataOptions.HttpProtocolIpv6")
	if s.metadata.hops < 1 || s.metadata.hops > 64 || !slices.Contains([]string{"required", "optional"}, s.metadata.tokens) {
		return awsFail("InvalidParameterValue", "Invalid metadata options.")
	}
	return nil
}

// readUserData measures it as it is and unpacks it as cloud-init does.
func (a awsRequest) readUserData(s *awsSpec) error {
	data, err := base64.StdEncoding.DecodeString(a.form.text("UserData"))
	if err != nil {
		return awsFail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(data) > awsUserData {
		return awsFail("InvalidParameterValue", "User data is limited to 16384 bytes")
	}
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
			if plain, err := io.ReadAll(io.LimitReader(r, maxRequestBody)); err == nil {
				data = plain
			}
		}
	}
	s.data = data
	return nil
}

var awsStandardType = regexp.MustCompile(`^[acdhimrtz]\d`)

// checkLaunch is what only the moment of the launch can tell.
func (a awsRequest) checkLaunch(s awsSpec) error {
	if !s.kind.in(s.subnet.zone) {
		return awsFail("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s). Please retry your request by not specifying an Availability Zone or choosing another.", s.kind.name, s.subnet.zone)
	}
	limit, standard, used := awsOtherLimit, awsStandardType.MatchString(s.kind.name), 0
	if standard {
		limit = awsCPULimit
	}
	for _, i := range a.account.instances {
		if i.region == a.region && awsStandardType.MatchString(i.kind.name) == standard && slices.Contains([]string{"pending", "running"}, i.state()) {
			used += i.kind.cpus
		}
	}
	if used+s.kind.cpus > limit {
		return awsFail("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", limit)
	}
	if slices.Contains(s.kind.soldOut, s.subnet.zone) {
		return awsFail("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", s.kind.name, s.subnet.zone)
	}
	return nil
}

// launch makes what was asked for, and lets it start.
func (a awsRequest) launch(s awsSpec) *awsInstance {
	w, c := a.sim.world, a.account
	i := &awsInstance{
		id: a.sim.awsID("i"), region: a.region, zone: s.subnet.zone, kind: s.kind, image: s.image.id, subnet: s.subnet, key: s.key, token: s.token,
		behaviour: s.behave, metadata: s.metadata, public: s.public, launched: a.now.Truncate(time.Second), protected: s.protect, reservation: a.sim.awsID("r"),
	}
	name := s.tags["instance"]["Name"]
	arch := "x86"
	if s.kind.arch == "arm64" {
		arch = "arm"
	}
	i.server = &server{
		id: w.id(awsName, "server"), ref: i.id, project: a.project, name: name, size: s.kind.name, region: a.region, arch: arch,
		userData: s.data, labels: s.tags["instance"], created: a.now, state: stateInitializing,
	}
	i.server.entry = w.enter(LedgerEntry{
		Provider: awsName, Project: a.project.name, Kind: "server", ID: i.id, Name: name, CreatedAt: a.now, Hourly: s.kind.price(a.region), Currency: "USD",
	})
	i.card = &awsInterface{id: a.sim.awsID("eni"), region: a.region, subnet: s.subnet, groups: s.groups, instance: i, since: a.now, private: a.privateIP(s.subnet)}
	i.volume = &awsVolume{id: a.sim.awsID("vol"), region: a.region, zone: i.zone, gb: s.disk.gb, kind: s.disk.kind, encrypted: s.disk.encrypted, stays: s.disk.stays, instance: i, created: a.now}
	i.volume.entry = w.enter(LedgerEntry{
		Provider: awsName, Project: a.project.name, Kind: "volume", ID: i.volume.id, Name: name, Server: i.id, CreatedAt: a.now,
		Hourly: awsDiskPrice * float64(s.disk.gb), Currency: "USD",
	})
	c.instances[i.id], c.cards[i.card.id], c.volumes[i.volume.id] = i, i.card, i.volume
	for kind, id := range map[string]string{"instance": i.id, "network-interface": i.card.id, "volume": i.volume.id} {
		c.setTags(id, s.tags[kind])
	}
	s.subnet.free--
	a.project.servers[i.server.id] = i.server
	a.sim.bootFaults(i.server)
	late := i.server.lateFailure
	takes := awsStartTakes
	if late != nil {
		takes = max(time.Duration(late.Delay), time.Second)
	}
	sim := a.sim
	sim.after(a.now, takes, func(now time.Time) {
		switch {
		case i.server.state != stateInitializing:
		case late != nil:
			code, text := "Server.InsufficientInstanceCapacity", "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request"
			if late.Code != "" {
				code, text = late.Code, late.Message
			}
			i.reason = [2]string{code, text}
			c.end(sim, i, now)
		default:
			c.address(sim, i, now)
			sim.powerOn(i.server, now)
		}
	})
	return i
}

func (a awsRequest) privateIP(n *awsSubnet) string {
	base := strings.TrimSuffix(n.cidr, ".0/20")
	return fmt.Sprintf("%s.%d", base, 4+(4091-n.free)%250)
}
