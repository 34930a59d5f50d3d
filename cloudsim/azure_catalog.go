package cloudsim

import (
	"fmt"
	"slices"
	"strings"
)

// What is sold where, and for how much.

type azureRegion struct {
	name, title, geography, physical string
	latitude, longitude              string
	kind                             string // Physical or Logical
	paired                           string
}

func azureRegions() []azureRegion {
	return []azureRegion{
		{"westeurope", "West Europe", "Europe", "Netherlands", "52.3667", "4.9", "Physical", "northeurope"},
		{"northeurope", "North Europe", "Europe", "Ireland", "53.3478", "-6.2597", "Physical", "westeurope"},
		{"germanywestcentral", "Germany West Central", "Germany", "Frankfurt", "50.110924", "8.682127", "Physical", "germanynorth"},
		{"eastus", "East US", "United States", "Virginia", "37.3719", "-79.8164", "Physical", "westus"},
		{"eastus2", "East US 2", "United States", "Virginia", "36.6681", "-78.3889", "Physical", "centralus"},
		{"southeastasia", "Southeast Asia", "Asia Pacific", "Singapore", "1.283", "103.833", "Physical", "eastasia"},
		{"eastus2euap", "East US 2 EUAP", "Canary (US)", "", "36.6681", "-78.3889", "Physical", "centraluseuap"},
		{"eastusstage", "East US (Stage)", "Stage (US)", "", "", "", "Logical", ""},
		{"europe", "Europe", "", "", "", "", "Logical", ""},
		{"global", "Global", "", "", "", "", "Logical", ""},
	}
}

// azureRegionName is a region as ids have it: "West Europe" is westeurope.
func azureRegionName(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}

func azureRegionNames() []string {
	var names []string
	for _, r := range azureRegions() {
		if r.kind == "Physical" && !strings.HasSuffix(r.name, "euap") {
			names = append(names, r.name)
		}
	}
	return names
}

func azureHasRegion(location string) bool {
	return slices.Contains(azureRegionNames(), azureRegionName(location))
}

// azureSize is a row of the catalogue.
type azureSize struct {
	name, family string
	cores        int
	usable       int     // of them, when fewer
	memory       float64 // GB
	local        int     // MB of local disk
	arch         string
	generations  string
	hourly       float64 // USD in West Europe; others differ a little
	noTrust      bool    // no trusted launch
	barred       []string
	soldOut      []string
}

func azureSizes() []azureSize {
	return []azureSize{
		{name: "Standard_A2_v2", family: "standardAv2Family", cores: 2, memory: 4, local: 20480, arch: "x86", generations: "V1", hourly: 0.1, noTrust: true},
		{name: "Standard_B1s", family: "standardBSFamily", cores: 1, memory: 1, local: 4096, arch: "x86", generations: "V1,V2", hourly: 0.012},
		{name: "Standard_B2s", family: "standardBSFamily", cores: 2, memory: 4, local: 8192, arch: "x86", generations: "V1,V2", hourly: 0.048},
		{name: "Standard_B2als_v2", family: "standardBasv2Family", cores: 2, memory: 4, arch: "x86", generations: "V1,V2", hourly: 0.0438},
		{name: "Standard_B2as_v2", family: "standardBasv2Family", cores: 2, memory: 8, arch: "x86", generations: "V1,V2", hourly: 0.0866},
		{name: "Standard_B2pls_v2", family: "standardBpsv2Family", cores: 2, memory: 4, arch: "arm", generations: "V2", hourly: 0.0389},
		{name: "Standard_D2s_v5", family: "standardDSv5Family", cores: 2, memory: 8, arch: "x86", generations: "V1,V2", hourly: 0.115},
		{name: "Standard_D2ds_v5", family: "standardDDSv5Family", cores: 2, memory: 8, local: 76800, arch: "x86", generations: "V1,V2", hourly: 0.136},
		{name: "Standard_D2ps_v5", family: "standardDPSv5Family", cores: 2, memory: 8, arch: "arm", generations: "V2", hourly: 0.092},
		{name: "Standard_D4s_v5", family: "standardDSv5Family", cores: 4, memory: 16, arch: "x86", generations: "V1,V2", hourly: 0.23, soldOut: []string{"northeurope"}},
		{name: "Standard_E4-2as_v5", family: "standardEASv5Family", cores: 4, usable: 2, memory: 32, arch: "x86", generations: "V1,V2", hourly: 0.272},
		{name: "Standard_F2s_v2", family: "standardFSv2Family", cores: 2, memory: 4, local: 16384, arch: "x86", generations: "V1,V2", hourly: 0.097, soldOut: []string{"germanywestcentral"}},
		{name: "Standard_NC4as_T4_v3", family: "standardNCASv3_T4Family", cores: 4, memory: 28, local: 180224, arch: "x86", generations: "V1,V2", hourly: 0.615, barred: []string{"westeurope", "eastus"}},
	}
}

func azureSizeOf(name string) (azureSize, bool) {
	for _, z := range azureSizes() {
		if strings.EqualFold(z.name, name) {
			return z, true
		}
	}
	return azureSize{}, false
}

func azureSizeNames() []string {
	var names []string
	for _, z := range azureSizes() {
		names = append(names, z.name)
	}
	return names
}

func (z azureSize) cpuArchitecture() string {
	if z.arch == "arm" {
		return "Arm64"
	}
	return "x64"
}

func (z azureSize) capabilities() []any {
	var list []any
	add := func(name, value string) { list = append(list, map[string]any{"name": name, "value": value}) }
	add("MaxResourceVolumeMB", fmt.Sprint(z.local))
	add("OSVhdSizeMB", "1047552")
	add("vCPUs", fmt.Sprint(z.cores))
	add("HyperVGenerations", z.generations)
	add("MemoryGB", fmt.Sprint(z.memory))
	add("MaxDataDiskCount", fmt.Sprint(4*z.cores))
	add("CpuArchitectureType", z.cpuArchitecture())
	add("LowPriorityCapable", "True")
	add("PremiumIO", "True")
	if z.usable > 0 {
		add("vCPUsAvailable", fmt.Sprint(z.usable))
	} else {
		add("vCPUsAvailable", fmt.Sprint(z.cores))
	}
	if z.noTrust {
		add("TrustedLaunchDisabled", "True")
	}
	add("AcceleratedNetworkingEnabled", "True")
	return list
}

// restrictions say where the subscription may not use a size: a whole region,
// or one of its zones, which leaves the others.
func (z azureSize) restrictions(region string) []any {
	list := []any{}
	if slices.Contains(z.barred, region) {
		list = append(list, map[string]any{
			"type": "Location", "values": []string{region}, "restrictionInfo": map[string]any{"locations": []string{region}},
			"reasonCode": "NotAvailableForSubscription",
		})
	}
	if z.name == "Standard_D2s_v5" {
		list = append(list, map[string]any{
			"type": "Zone", "values": []string{region}, "reasonCode": "NotAvailableForSubscription",
			"restrictionInfo": map[string]any{"locations": []string{region}, "zones": []string{"3"}},
		})
	}
	return list
}
