package cloudsim

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What is offered where, and for how much.

type gcpRegion struct {
	name, zones, place string
	factor             float64 // of the prices
}

func gcpRegions() []gcpRegion {
	return []gcpRegion{
		{"asia-southeast1", "abc", "Singapore", 1.23},
		{"europe-west1", "bcd", "Belgium", 1.10},
		{"europe-west3", "abc", "Frankfurt", 1.29},
		{"us-central1", "abcf", "Americas", 1},
	}
}

// gcpDownZone is one that does not work just now.
const gcpDownZone = "asia-southeast1-c"

func gcpRegionNamed(name string) (gcpRegion, bool) {
	for _, r := range gcpRegions() {
		if r.name == name {
			return r, true
		}
	}
	return gcpRegion{}, false
}

func gcpZones() []string {
	var all []string
	for _, r := range gcpRegions() {
		for _, letter := range r.zones {
			all = append(all, r.name+"-"+string(letter))
		}
	}
	return all
}

// gcpRegionOf is the region of a zone, empty when there is no such zone.
func gcpRegionOf(zone string) string {
	if slices.Contains(gcpZones(), zone) {
		return zone[:strings.LastIndexByte(zone, '-')]
	}
	return ""
}

// gcpSeries is a family of machine types.
type gcpSeries struct {
	name      string
	word      string // in the price list, between the series and "Instance"
	arch      string
	core, ram float64 // USD an hour, of a core and a GiB
	kinds     map[string]float64
	cores     []int
	absent    []string // regions without it
	hyperdisk bool     // takes no other disks
	soldOut   []string // zones without capacity
}

func gcpAllSeries() []gcpSeries {
	plain := map[string]float64{"standard": 4, "highmem": 8, "highcpu": 1}
	return []gcpSeries{
		{name: "e2", arch: "X86_64", core: 0.021811, ram: 0.002923, kinds: plain, cores: []int{2, 4, 8, 16}},
		{name: "n1", word: " Predefined", arch: "X86_64", core: 0.031611, ram: 0.004237, kinds: map[string]float64{"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}, cores: []int{1, 2, 4, 8, 16}},
		{name: "n2", arch: "X86_64", core: 0.031611, ram: 0.004237, kinds: plain, cores: []int{2, 4, 8, 16, 32}},
		{name: "n2d", word: " AMD", arch: "X86_64", core: 0.027502, ram: 0.003686, kinds: plain, cores: []int{2, 4, 8, 16}, absent: []string{"europe-west3"}},
		{name: "t2d", word: " AMD", arch: "X86_64", core: 0.0275, ram: 0.0037, kinds: map[string]float64{"standard": 4}, cores: []int{1, 2, 4, 8}, absent: []string{"asia-southeast1"}},
		{name: "c3", arch: "X86_64", core: 0.03398, ram: 0.00456, kinds: map[string]float64{"standard": 4, "highmem": 8, "highcpu": 2}, cores: []int{4, 8, 22}, soldOut: []string{"europe-west1-d", "europe-west3-b"}},
		{name: "n4", arch: "X86_64", core: 0.030902, ram: 0.003526, kinds: map[string]float64{"standard": 4, "highmem": 8, "highcpu": 2}, cores: []int{2, 4, 8, 16}, hyperdisk: true},
		{name: "c4a", word: " Arm", arch: "ARM64", core: 0.03003, ram: 0.003478, kinds: map[string]float64{"standard": 4, "highmem": 8, "highcpu": 2}, cores: []int{1, 2, 4, 8}, hyperdisk: true, absent: []string{"asia-southeast1"}},
		{name: "t2a", word: " Arm", arch: "ARM64", core: 0.0275, ram: 0.0037, kinds: map[string]float64{"standard": 4}, cores: []int{1, 2, 4}, absent: []string{"europe-west3"}, soldOut: []string{"us-central1-f"}},
	}
}

func gcpSeriesNamed(name string) (gcpSeries, bool) {
	for _, s := range gcpAllSeries() {
		if s.name == name {
			return s, true
		}
	}
	return gcpSeries{}, false
}

// gcpType is a machine type.
type gcpType struct {
	name     string
	series   gcpSeries
	cores    int     // as the guest sees them
	billed   float64 // as they are paid
	gib      float64
	shared   bool
	gpu      string
	obsolete bool
}

// gcpTypes are the listed ones.
func gcpTypes() []gcpType {
	var all []gcpType
	for _, s := range gcpAllSeries() {
		for _, kind := range []string{"standard", "highmem", "highcpu"} {
			ratio, has := s.kinds[kind]
			for _, n := range s.cores {
				if has && (n > 1 || kind == "standard") {
					all = append(all, gcpType{name: s.name + "-" + kind + "-" + strconv.Itoa(n), series: s, cores: n, billed: float64(n), gib: ratio * float64(n)})
				}
			}
		}
	}
	e2, _ := gcpSeriesNamed("e2")
	n1, _ := gcpSeriesNamed("n1")
	gpu := gcpSeries{name: "g2", arch: "X86_64", core: 0.02499, ram: 0.00293, absent: []string{"europe-west3"}}
	return append(all,
		gcpType{name: "e2-micro", series: e2, cores: 2, billed: 0.25, gib: 1, shared: true},
		gcpType{name: "e2-small", series: e2, cores: 2, billed: 0.5, gib: 2, shared: true},
		gcpType{name: "e2-medium", series: e2, cores: 2, billed: 1, gib: 4, shared: true},
		gcpType{name: "f1-micro", series: n1, cores: 1, billed: 0.2, gib: 0.6, shared: true, obsolete: true},
		gcpType{name: "g2-standard-4", series: gpu, cores: 4, billed: 4, gib: 16, gpu: "nvidia-l4"},
	)
}

var gcpCustom = regexp.MustCompile(`^(?:(e2|n2|n2d|n4)-)?custom-([0-9]{1,3})-([0-9]{3,7})$`)

// gcpTypeOf finds a type of a zone. Custom ones are in no list.
func gcpTypeOf(name, zone string) (gcpType, bool) {
	region := gcpRegionOf(zone)
	for _, t := range gcpTypes() {
		if t.name == name && !slices.Contains(t.series.absent, region) {
			return t, true
		}
	}
	m := gcpCustom.FindStringSubmatch(name)
	if m == nil {
		return gcpType{}, false
	}
	if m[1] == "" {
		m[1] = "n1"
	}
	cores, _ := strconv.Atoi(m[2])
	mb, _ := strconv.Atoi(m[3])
	s, ok := gcpSeriesNamed(m[1])
	if !ok || cores < 1 || cores > 1 && cores%2 != 0 || mb%256 != 0 || mb < 512*cores || mb > 8192*cores {
		return gcpType{}, false
	}
	return gcpType{name: name, series: s, cores: cores, billed: float64(cores), gib: float64(mb) / 1024}, true
}

// hourly is what a type costs in a region.
func (t gcpType) hourly(region string) float64 {
	r, _ := gcpRegionNamed(region)
	price := (t.billed*t.series.core + t.gib*t.series.ram) * r.factor
	if t.gpu != "" {
		price += 0.56
	}
	return price
}

const (
	gcpDiskGBMonth  = 0.04  // USD, of pd-standard
	gcpIPv4Hourly   = 0.005 // in use by a server
	gcpHoursOfMonth = 730
)

// gcpImage is the newest of a family.
type gcpImage struct {
	family, name, arch string
	gb                 int64
}

func gcpImages() []gcpImage {
	return []gcpImage{
		{"ubuntu-2204-lts", "ubuntu-2204-jammy-v20261120", "X86_64", 10},
		{"ubuntu-2204-lts-arm64", "ubuntu-2204-jammy-arm64-v20261120", "ARM64", 10},
		{"ubuntu-2404-lts-amd64", "ubuntu-2404-noble-amd64-v20261124", "X86_64", 10},
		{"ubuntu-2404-lts-arm64", "ubuntu-2404-noble-arm64-v20261124", "ARM64", 10},
		{"ubuntu-minimal-2404-lts-amd64", "ubuntu-minimal-2404-noble-amd64-v20261124", "X86_64", 10},
		{"ubuntu-minimal-2404-lts-arm64", "ubuntu-minimal-2404-noble-arm64-v20261124", "ARM64", 10},
		{"ubuntu-2604-lts-amd64", "ubuntu-2604-resolute-amd64-v20261124", "X86_64", 10},
		{"ubuntu-2604-lts-arm64", "ubuntu-2604-resolute-arm64-v20261124", "ARM64", 10},
	}
}

// gcpImageOf finds the image that a reference names, by family or name.
func gcpImageOf(ref string) (gcpImage, bool) {
	project, parts := gcpRef(ref)
	if project != gcpImageProject || len(parts) < 3 || parts[0] != "global" || parts[1] != "images" {
		return gcpImage{}, false
	}
	for _, i := range gcpImages() {
		if len(parts) == 4 && parts[2] == "family" && parts[3] == i.family || len(parts) == 3 && parts[2] == i.name {
			return i, true
		}
	}
	return gcpImage{}, false
}

// gcpRegionQuotas are the limits in each region, by metric.
func gcpRegionQuotas() map[string]int {
	return map[string]int{
		"CPUS": 400, "E2_CPUS": 600, "N2_CPUS": 200, "N2D_CPUS": 200, "T2D_CPUS": 8, "T2A_CPUS": 16, "C3_CPUS": 100,
		"INSTANCES": 1000, "IN_USE_ADDRESSES": 500, "STATIC_ADDRESSES": 8, "DISKS_TOTAL_GB": 40960, "SSD_TOTAL_GB": 2048,
	}
}

// gcpProjectQuotas are those of the whole project.
func gcpProjectQuotas() map[string]int {
	return map[string]int{"CPUS_ALL_REGIONS": 900, "NETWORKS": 15, "FIREWALLS": 200, "ROUTES": 250, "IMAGES": 2000}
}

// usage is what is used of a metric: of one region, or of all for "".
func (a *gcpAccount) usage(metric, region string) float64 {
	sum := 0.0
	for _, t := range a.order {
		if region != "" && t.region() != region {
			continue
		}
		switch {
		case t.kind == gcpInstances:
			sum += t.usage(metric)
		case t.kind == gcpDisks && metric == "DISKS_TOTAL_GB":
			gb, _ := strconv.ParseFloat(textOf(t.props, "sizeGb"), 64)
			sum += gb
		case t.kind == gcpAddresses && metric == "STATIC_ADDRESSES", t.kind == gcpNetworks && metric == "NETWORKS", t.kind == gcpFirewalls && metric == "FIREWALLS":
			sum++
		}
	}
	return sum
}

// usage of one instance. CPUS is for the series that have no metric of their
// own.
func (t *gcpThing) usage(metric string) float64 {
	own := strings.ToUpper(t.machine.series.name) + "_CPUS"
	if _, has := gcpRegionQuotas()[own]; !has {
		own = "CPUS"
	}
	switch metric {
	case own, "CPUS_ALL_REGIONS":
		return float64(t.machine.cores)
	case "INSTANCES":
		return 1
	case "IN_USE_ADDRESSES":
		return float64(t.externals())
	}
	return 0
}

// exceeded is the first quota that one more instance is over, if there is one.
func (a *gcpAccount) exceeded(t *gcpThing) (metric, region string, limit int, over bool) {
	region = t.region()
	for _, q := range []struct {
		limits map[string]int
		region string
	}{{gcpRegionQuotas(), region}, {gcpProjectQuotas(), ""}} {
		for _, metric := range sortedKeys(q.limits) {
			if need := t.usage(metric); need > 0 && a.usage(metric, q.region)+need > float64(q.limits[metric]) {
				return metric, q.region, q.limits[metric], true
			}
		}
	}
	return "", "", 0, false
}
