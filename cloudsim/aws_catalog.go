package cloudsim

import (
	"fmt"
	"slices"
	"strings"
)

// What is sold where, and for how much.

type awsRegion struct {
	name    string
	enabled bool
	zones   string // letters
}

func awsRegions() []awsRegion {
	return []awsRegion{
		{"us-east-1", true, "abcdef"}, {"us-west-2", true, "abcd"}, {"eu-central-1", true, "abc"}, {"eu-west-1", true, "abc"},
		{"ap-southeast-1", true, "abc"}, {"af-south-1", false, "abc"}, {"me-central-1", false, "abc"},
	}
}

func awsZones(region string) []string {
	var zones []string
	for _, r := range awsRegions() {
		if r.name == region {
			for _, letter := range r.zones {
				zones = append(zones, region+string(letter))
			}
		}
	}
	return zones
}

// awsZoneID is stable, where letters are shuffled by account.
func awsZoneID(zone string) string {
	short := map[string]string{"us-east-1": "use1", "us-west-2": "usw2", "eu-central-1": "euc1", "eu-west-1": "euw1", "ap-southeast-1": "apse1"}
	return fmt.Sprintf("%s-az%d", short[zone[:len(zone)-1]], zone[len(zone)-1]-'a'+1)
}

// awsType is a row of the catalogue.
type awsType struct {
	name    string
	arch    string
	cpus    int
	gib     float64
	hourly  float64  // USD in us-east-1; other regions differ a little
	absent  []string // regions without it
	soldOut []string // zones
}

func awsTypes() []awsType {
	return []awsType{
		{name: "t2.micro", arch: "x86_64", cpus: 1, gib: 1, hourly: 0.0116},
		{name: "t3.micro", arch: "x86_64", cpus: 2, gib: 1, hourly: 0.0104},
		{name: "t3.small", arch: "x86_64", cpus: 2, gib: 2, hourly: 0.0208},
		{name: "t3.medium", arch: "x86_64", cpus: 2, gib: 4, hourly: 0.0416},
		{name: "t3.large", arch: "x86_64", cpus: 2, gib: 8, hourly: 0.0832, soldOut: []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}},
		{name: "t3a.small", arch: "x86_64", cpus: 2, gib: 2, hourly: 0.0188, absent: []string{"ap-southeast-1"}},
		{name: "t4g.micro", arch: "arm64", cpus: 2, gib: 1, hourly: 0.0084},
		{name: "t4g.small", arch: "arm64", cpus: 2, gib: 2, hourly: 0.0168},
		{name: "t4g.medium", arch: "arm64", cpus: 2, gib: 4, hourly: 0.0336},
		{name: "m7i-flex.large", arch: "x86_64", cpus: 2, gib: 8, hourly: 0.0958, absent: []string{"ap-southeast-1"}},
		{name: "m7i.large", arch: "x86_64", cpus: 2, gib: 8, hourly: 0.1008},
		{name: "m7i.48xlarge", arch: "x86_64", cpus: 192, gib: 768, hourly: 9.6768},
		{name: "m7g.medium", arch: "arm64", cpus: 1, gib: 4, hourly: 0.0408},
		{name: "m7g.large", arch: "arm64", cpus: 2, gib: 8, hourly: 0.0816, soldOut: []string{"eu-central-1a", "eu-central-1b"}},
		{name: "m8g.medium", arch: "arm64", cpus: 1, gib: 4, hourly: 0.0449, absent: []string{"ap-southeast-1"}},
		{name: "m8g.large", arch: "arm64", cpus: 2, gib: 8, hourly: 0.0898, absent: []string{"ap-southeast-1"}},
		{name: "c7i.large", arch: "x86_64", cpus: 2, gib: 4, hourly: 0.0892},
		{name: "c8g.large", arch: "arm64", cpus: 2, gib: 4, hourly: 0.0798, absent: []string{"ap-southeast-1"}},
		{name: "r7i.large", arch: "x86_64", cpus: 2, gib: 16, hourly: 0.1323},
		{name: "g5.xlarge", arch: "x86_64", cpus: 4, gib: 16, hourly: 1.006},
	}
}

func awsTypeOf(name string) (awsType, bool) {
	for _, t := range awsTypes() {
		if t.name == name {
			return t, true
		}
	}
	return awsType{}, false
}

// in tells whether a zone has the type at all. The fifth zone of us-east-1 is
// old and has nothing of today.
func (t awsType) in(zone string) bool {
	return !slices.Contains(t.absent, zone[:len(zone)-1]) && zone != "us-east-1e"
}

func (t awsType) price(region string) float64 {
	if strings.HasPrefix(region, "us-") {
		return t.hourly
	}
	return t.hourly * 1.15
}

// awsImage is a machine image.
type awsImage struct {
	id, name, arch, owner, created string
	deprecated                     bool
}

const awsCanonical = "099720109477"

// awsImages are those of a region: two of Ubuntu 24.04 for each architecture,
// older ones, and one by somebody else whose name looks right and whose date
// is the newest.
func awsImages(region string) []awsImage {
	var images []awsImage
	add := func(name, arch, owner, created string, deprecated bool) {
		sum := 0
		for _, c := range region + name + owner {
			sum = (sum*131 + int(c)) % 0xffffffffffff
		}
		images = append(images, awsImage{fmt.Sprintf("ami-0%016x", sum), name, arch, owner, created, deprecated})
	}
	for _, a := range [][2]string{{"amd64", "x86_64"}, {"arm64", "arm64"}} {
		noble := "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-" + a[0] + "-server-"
		add(noble+"20261110", a[1], awsCanonical, "2026-11-10T07:02:11.000Z", false)
		add(noble+"20261124", a[1], awsCanonical, "2026-11-24T06:51:40.000Z", false)
		add(noble+"20240423", a[1], awsCanonical, "2024-04-23T06:00:00.000Z", true)
		add("ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-"+a[0]+"-server-20261120", a[1], awsCanonical, "2026-11-20T06:51:40.000Z", false)
		add(noble+"20991231", a[1], "666666666666", "2099-12-31T00:00:00.000Z", false)
	}
	return images
}

func awsImageOf(region, id string) (awsImage, bool) {
	for _, i := range awsImages(region) {
		if i.id == id {
			return i, true
		}
	}
	return awsImage{}, false
}

func (a awsRequest) describeRegions() (awsFields, error) {
	all := a.form.flag("AllRegions", false)
	names := a.form.list("RegionName")
	q, err := a.query("RegionName")
	if err != nil {
		return nil, err
	}
	var list awsList
	for _, r := range awsRegions() {
		status := "opt-in-not-required"
		if !r.enabled {
			status = "not-opted-in"
		}
		ok, err := q.matches(a.account, "", func(name string) ([]string, bool) {
			v, known := map[string]string{"region-name": r.name, "opt-in-status": status, "endpoint": "ec2." + r.name + ".amazonaws.com"}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (r.enabled || all) && (len(names) == 0 || slices.Contains(names, r.name)) {
			list = append(list, awsFields{{"regionName", r.name}, {"regionEndpoint", "ec2." + r.name + ".amazonaws.com"}, {"optInStatus", status}})
		}
	}
	return awsFields{{"regionInfo", list}}, nil
}

func (a awsRequest) describeZones() (awsFields, error) {
	a.form.flag("AllAvailabilityZones", false)
	q, err := a.query("ZoneName")
	if err != nil {
		return nil, err
	}
	var list awsList
	for _, z := range awsZones(a.region) {
		ok, err := q.matches(a.account, "", func(name string) ([]string, bool) {
			v, known := map[string]string{"zone-name": z, "state": "available", "region-name": a.region, "zone-type": "availability-zone", "opt-in-status": "opt-in-not-required"}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, z)) {
			list = append(list, awsFields{
				{"zoneName", z}, {"zoneId", awsZoneID(z)}, {"zoneState", "available"}, {"regionName", a.region},
				{"groupName", a.region}, {"networkBorderGroup", a.region}, {"optInStatus", "opt-in-not-required"}, {"zoneType", "availability-zone"},
			})
		}
	}
	return awsFields{{"availabilityZoneInfo", list}}, nil
}

func (a awsRequest) describeTypes() (awsFields, error) {
	q, err := a.query("InstanceType")
	if err != nil {
		return nil, err
	}
	for _, name := range q.ids {
		if _, ok := awsTypeOf(name); !ok {
			return nil, awsFail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	var list awsList
	for _, t := range awsTypes() {
		if len(q.ids) > 0 && !slices.Contains(q.ids, t.name) || slices.Contains(t.absent, a.region) {
			continue
		}
		ok, err := q.matches(a.account, "", func(name string) ([]string, bool) {
			v, known := map[string]string{
				"instance-type": t.name, "processor-info.supported-architecture": t.arch, "current-generation": fmt.Sprint(t.name[:2] != "t2"), "bare-metal": "false",
			}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, t.view())
		}
	}
	page, token := q.page(list)
	return awsFields{{"instanceTypeSet", page}, {"nextToken", token}}, nil
}

func (t awsType) view() awsFields {
	threads := 2
	if t.arch == "arm64" || t.cpus == 1 {
		threads = 1
	}
	return awsFields{
		{"instanceType", t.name}, {"currentGeneration", !strings.HasPrefix(t.name, "t2.")}, {"freeTierEligible", t.name == "t3.micro"},
		{"supportedUsageClasses", awsList{"on-demand", "spot"}}, {"supportedRootDeviceTypes", awsList{"ebs"}},
		{"supportedVirtualizationTypes", awsList{"hvm"}}, {"bareMetal", false}, {"hypervisor", "nitro"},
		{"processorInfo", awsFields{{"supportedArchitectures", awsList{t.arch}}, {"sustainedClockSpeedInGhz", 2.5}}},
		{"vCpuInfo", awsFields{{"defaultVCpus", t.cpus}, {"defaultCores", t.cpus / threads}, {"defaultThreadsPerCore", threads}}},
		{"memoryInfo", awsFields{{"sizeInMiB", int(t.gib * 1024)}}},
		{"instanceStorageSupported", false}, {"burstablePerformanceSupported", t.name[0] == 't'},
	}
}

func (a awsRequest) describeOfferings() (awsFields, error) {
	kind := a.form.text("LocationType")
	q, err := a.query("InstanceType")
	if err != nil {
		return nil, err
	}
	places := []string{a.region}
	if kind == "availability-zone" {
		places = awsZones(a.region)
	} else {
		kind = "region"
	}
	var list awsList
	for _, t := range awsTypes() {
		for _, place := range places {
			ok, err := q.matches(a.account, "", func(name string) ([]string, bool) {
				v, known := map[string]string{"instance-type": t.name, "location": place}[name]
				return []string{v}, known
			})
			if err != nil {
				return nil, err
			}
			sold := kind == "region" && !slices.Contains(t.absent, place) || kind != "region" && t.in(place)
			if ok && sold {
				list = append(list, awsFields{{"instanceType", t.name}, {"locationType", kind}, {"location", place}})
			}
		}
	}
	page, token := q.page(list)
	return awsFields{{"instanceTypeOfferingSet", page}, {"nextToken", token}}, nil
}

func (a awsRequest) describeImages() (awsFields, error) {
	owners, old := a.form.list("Owner"), a.form.flag("IncludeDeprecated", false)
	q, err := a.query("ImageId")
	if err != nil {
		return nil, err
	}
	for _, id := range q.ids {
		switch _, ok := awsImageOf(a.region, id); {
		case !awsHex.MatchString(strings.TrimPrefix(id, "ami-")):
			return nil, awsFail("InvalidAMIID.Malformed", "Invalid id: \"%s\"", id)
		case !ok:
			return nil, awsFail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	var list awsList
	for _, i := range awsImages(a.region) {
		hidden := i.deprecated && !old || len(owners) > 0 && !slices.Contains(owners, i.owner)
		if len(q.ids) > 0 {
			hidden = !slices.Contains(q.ids, i.id)
		}
		ok, err := q.matches(a.account, i.id, func(name string) ([]string, bool) {
			v, known := map[string]string{
				"name": i.name, "architecture": i.arch, "virtualization-type": "hvm", "root-device-type": "ebs", "state": "available",
				"owner-id": i.owner, "image-id": i.id, "is-public": "true", "image-type": "machine",
			}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && !hidden {
			list = append(list, i.view())
		}
	}
	// EC2 promises no order.
	slices.Reverse(list)
	page, token := q.page(list)
	return awsFields{{"imagesSet", page}, {"nextToken", token}}, nil
}

func (i awsImage) view() awsFields {
	return awsFields{
		{"imageId", i.id}, {"imageLocation", "amazon/" + i.name}, {"imageState", "available"}, {"imageOwnerId", i.owner},
		{"creationDate", i.created}, {"isPublic", true}, {"architecture", i.arch}, {"imageType", "machine"}, {"name", i.name},
		{"description", "Canonical, Ubuntu (simulated)"}, {"rootDeviceType", "ebs"}, {"rootDeviceName", "/dev/sda1"},
		{"blockDeviceMapping", awsList{awsFields{{"deviceName", "/dev/sda1"}, {"ebs", awsFields{
			{"snapshotId", "snap-" + i.id[4:]}, {"volumeSize", awsImageGB}, {"deleteOnTermination", true}, {"volumeType", "gp3"}, {"encrypted", false},
		}}}}},
		{"virtualizationType", "hvm"}, {"hypervisor", "xen"}, {"enaSupport", true}, {"imdsSupport", "v2.0"},
	}
}

// awsImageGB is the size of the images' snapshot.
const awsImageGB = 8
