package cloudsim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type hetznerPrice struct {
	Net   string `json:"net"`
	Gross string `json:"gross"`
}

// hetznerVAT is the rate that gross prices hold.
const hetznerVAT = 0.19

func hetznerPriceOf(net float64) hetznerPrice {
	return hetznerPrice{Net: fmt.Sprintf("%.10f", net), Gross: fmt.Sprintf("%.16f", net*(1+hetznerVAT))}
}

type hetznerLocation struct {
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Country     string  `json:"country"`
	City        string  `json:"city"`
	Latitude    float64 `json:"latitude"`
	Longitude   float64 `json:"longitude"`
	NetworkZone string  `json:"network_zone"`
}

func hetznerLocations() []hetznerLocation {
	return []hetznerLocation{
		{1, "fsn1", "Falkenstein DC Park 1", "DE", "Falkenstein", 50.47612, 12.370071, "eu-central"},
		{2, "nbg1", "Nuremberg DC Park 1", "DE", "Nuremberg", 49.452102, 11.076665, "eu-central"},
		{3, "hel1", "Helsinki DC Park 1", "FI", "Helsinki", 60.169855, 24.938379, "eu-central"},
		{4, "ash", "Ashburn, VA", "US", "Ashburn, VA", 39.045821, -77.487073, "us-east"},
		{5, "hil", "Hillsboro, OR", "US", "Hillsboro, OR", 45.54222, -122.951924, "us-west"},
		{6, "sin", "Singapore", "SG", "Singapore", 1.283333, 103.833333, "ap-southeast"},
	}
}

// hetznerSize is a row of the catalogue. Prices are net, a month, in EUR: of
// the European locations and of the others.
type hetznerSize struct {
	id             int64
	name, category string
	cores          int
	memory         float64 // GB
	disk           int     // GB
	cpu, arch      string
	eu, elsewhere  float64 // 0: not sold there
	retired        bool    // deprecation is announced, and the day has passed
	leaving        bool    // deprecation is announced, for later
	soldOut        []string
}

func hetznerSizes() []hetznerSize {
	return []hetznerSize{
		{id: 22, name: "cx22", category: "Shared vCPU", cores: 2, memory: 4, disk: 40, cpu: "shared", arch: "x86", eu: 3.29, retired: true},
		{id: 45, name: "cax11", category: "Shared vCPU", cores: 2, memory: 4, disk: 40, cpu: "shared", arch: "arm", eu: 3.29},
		{id: 93, name: "cax21", category: "Shared vCPU", cores: 4, memory: 8, disk: 80, cpu: "shared", arch: "arm", eu: 5.99},
		{id: 94, name: "cax31", category: "Shared vCPU", cores: 8, memory: 16, disk: 160, cpu: "shared", arch: "arm", eu: 11.99, soldOut: []string{"hel1"}},
		{id: 95, name: "cax41", category: "Shared vCPU", cores: 16, memory: 32, disk: 320, cpu: "shared", arch: "arm", eu: 23.99},
		{id: 97, name: "cpx21", category: "Shared vCPU", cores: 3, memory: 4, disk: 80, cpu: "shared", arch: "x86", eu: 7.05, elsewhere: 9.49, leaving: true},
		{id: 109, name: "cx23", category: "Shared vCPU", cores: 2, memory: 4, disk: 40, cpu: "shared", arch: "x86", eu: 2.99},
		{id: 110, name: "cx33", category: "Shared vCPU", cores: 4, memory: 8, disk: 80, cpu: "shared", arch: "x86", eu: 4.99},
		{id: 111, name: "cx43", category: "Shared vCPU", cores: 8, memory: 16, disk: 160, cpu: "shared", arch: "x86", eu: 8.99},
		{id: 112, name: "cx53", category: "Shared vCPU", cores: 16, memory: 32, disk: 320, cpu: "shared", arch: "x86", eu: 16.99},
		{id: 116, name: "cpx22", category: "Shared vCPU", cores: 2, memory: 4, disk: 80, cpu: "shared", arch: "x86", eu: 5.99, elsewhere: 7.99},
		{id: 117, name: "cpx32", category: "Shared vCPU", cores: 4, memory: 8, disk: 160, cpu: "shared", arch: "x86", eu: 9.99, elsewhere: 13.49},
		{id: 118, name: "cpx42", category: "Shared vCPU", cores: 8, memory: 16, disk: 320, cpu: "shared", arch: "x86", eu: 18.49, elsewhere: 25.99, soldOut: []string{"sin"}},
		{id: 120, name: "ccx13", category: "Dedicated vCPU", cores: 2, memory: 8, disk: 80, cpu: "dedicated", arch: "x86", eu: 11.99, elsewhere: 12.99},
		{id: 121, name: "ccx23", category: "Dedicated vCPU", cores: 4, memory: 16, disk: 160, cpu: "dedicated", arch: "x86", eu: 23.99, elsewhere: 25.99},
		{id: 122, name: "ccx33", category: "Dedicated vCPU", cores: 8, memory: 32, disk: 240, cpu: "dedicated", arch: "x86", eu: 47.99, elsewhere: 50.99},
	}
}

// net is the monthly price in a location; 0: not sold there.
func (z hetznerSize) net(location string) float64 {
	switch location {
	case "fsn1", "nbg1", "hel1":
		return z.eu
	}
	return z.elsewhere
}

func (z hetznerSize) available(location string) bool {
	for _, l := range z.soldOut {
		if l == location {
			return false
		}
	}
	return z.net(location) > 0 && !z.retired
}

type hetznerDeprecation struct {
	Announced        time.Time `json:"announced"`
	UnavailableAfter time.Time `json:"unavailable_after"`
}

// deprecation is relative to the world's beginning, so that what is leaving is
// always leaving.
func (z hetznerSize) deprecation(start time.Time) *hetznerDeprecation {
	day := start.Truncate(24 * time.Hour)
	switch {
	case z.retired:
		return &hetznerDeprecation{Announced: day.AddDate(0, -6, 0), UnavailableAfter: day.AddDate(0, -1, 0)}
	case z.leaving:
		return &hetznerDeprecation{Announced: day.AddDate(0, -1, 0), UnavailableAfter: day.AddDate(0, 3, 0)}
	}
	return nil
}

type hetznerTypePrice struct {
	Location        string       `json:"location"`
	PriceHourly     hetznerPrice `json:"price_hourly"`
	PriceMonthly    hetznerPrice `json:"price_monthly"`
	IncludedTraffic int64        `json:"included_traffic"`
	PricePerTB      hetznerPrice `json:"price_per_tb_traffic"`
}

type hetznerTypeLocation struct {
	ID          int64               `json:"id"`
	Name        string              `json:"name"`
	Recommended bool                `json:"recommended"`
	Available   bool                `json:"available"`
	Deprecation *hetznerDeprecation `json:"deprecation"`
}

type hetznerType struct {
	ID              int64                 `json:"id"`
	Name            string                `json:"name"`
	Description     string                `json:"description"`
	Category        string                `json:"category"`
	Cores           int                   `json:"cores"`
	Memory          float64               `json:"memory"`
	Disk            int                   `json:"disk"`
	StorageType     string                `json:"storage_type"`
	CPUType         string                `json:"cpu_type"`
	Architecture    string                `json:"architecture"`
	IncludedTraffic int64                 `json:"included_traffic"`
	Prices          []hetznerTypePrice    `json:"prices"`
	Deprecated      bool                  `json:"deprecated"`
	Deprecation     *hetznerDeprecation   `json:"deprecation"`
	Locations       []hetznerTypeLocation `json:"locations"`
}

// hoursAMonth is what the provider divides a month's price by.
const hoursAMonth = 730

func (h hetzner) serverType(z hetznerSize) hetznerType {
	d := z.deprecation(h.sim.start)
	t := hetznerType{
		ID: z.id, Name: z.name, Description: strings.ToUpper(z.name), Category: z.category, Cores: z.cores, Memory: z.memory,
		Disk: z.disk, StorageType: "local", CPUType: z.cpu, Architecture: z.arch, Deprecated: d != nil, Deprecation: d,
	}
	for _, l := range hetznerLocations() {
		net := z.net(l.Name)
		if net == 0 {
			continue
		}
		t.Prices = append(t.Prices, hetznerTypePrice{
			Location: l.Name, PriceHourly: hetznerPriceOf(net / hoursAMonth), PriceMonthly: hetznerPriceOf(net),
			IncludedTraffic: 20 << 40, PricePerTB: hetznerPriceOf(1),
		})
		t.Locations = append(t.Locations, hetznerTypeLocation{
			ID: l.ID, Name: l.Name, Recommended: z.available(l.Name) && d == nil, Available: z.available(l.Name), Deprecation: d,
		})
	}
	return t
}

type hetznerImage struct {
	ID           int64               `json:"id"`
	Status       string              `json:"status"`
	Type         string              `json:"type"`
	Name         *string             `json:"name"`
	Description  string              `json:"description"`
	ImageSize    *float64            `json:"image_size"`
	DiskSize     float64             `json:"disk_size"`
	Created      *time.Time          `json:"created"`
	CreatedFrom  *struct{}           `json:"created_from"`
	BoundTo      *int64              `json:"bound_to"`
	OSFlavor     string              `json:"os_flavor"`
	OSVersion    *string             `json:"os_version"`
	Architecture string              `json:"architecture"`
	RapidDeploy  bool                `json:"rapid_deploy"`
	Protection   map[string]bool     `json:"protection"`
	Deleted      *time.Time          `json:"deleted"`
	Labels       map[string]string   `json:"labels"`
	Deprecated   *time.Time          `json:"deprecated"`
	Deprecation  *hetznerDeprecation `json:"deprecation"`
}

func hetznerImages() []hetznerImage {
	made := time.Date(2024, 4, 25, 13, 26, 27, 0, time.UTC)
	var out []hetznerImage
	for i, o := range []struct{ name, flavor, version, title string }{
		{"ubuntu-24.04", "ubuntu", "24.04", "Ubuntu 24.04"}, {"ubuntu-22.04", "ubuntu", "22.04", "Ubuntu 22.04"},
		{"debian-13", "debian", "13", "Debian 13"}, {"debian-12", "debian", "12", "Debian 12"}, {"fedora-43", "fedora", "43", "Fedora 43"},
	} {
		for j, arch := range []string{"x86", "arm"} {
			out = append(out, hetznerImage{
				ID: 161547260 + int64(10*i+j), Status: "available", Type: "system", Name: &o.name, Description: o.title, DiskSize: 5,
				Created: &made, OSFlavor: o.flavor, OSVersion: &o.version, Architecture: arch, RapidDeploy: true,
				Protection: map[string]bool{"delete": false}, Labels: map[string]string{},
			})
		}
	}
	return out
}

func (h hetzner) listLocations() error {
	var all []listed
	for _, l := range hetznerLocations() {
		all = append(all, listed{id: l.ID, name: l.Name, show: func() any { return l }})
	}
	return h.list("locations", all)
}

func (h hetzner) getLocation() error {
	for _, l := range hetznerLocations() {
		if l.ID == h.pathID() {
			h.send(http.StatusOK, map[string]any{"location": l})
			return nil
		}
	}
	return hetznerNotFound("location", h.r.PathValue("id"))
}

func (h hetzner) datacenters() error {
	return &hetznerError{
		status: http.StatusGone, code: "deprecated_api_endpoint", message: "The datacenters endpoints were removed; use locations.",
		details: map[string]string{"announcement": "https://docs.hetzner.cloud/changelog"},
	}
}

func (h hetzner) listServerTypes() error {
	var all []listed
	for _, z := range hetznerSizes() {
		all = append(all, listed{id: z.id, name: z.name, show: func() any { return h.serverType(z) }})
	}
	return h.list("server_types", all)
}

func (h hetzner) getServerType() error {
	if z, ok := hetznerSizeOf(h.r.PathValue("id")); ok && z.id == h.pathID() {
		h.send(http.StatusOK, map[string]any{"server_type": h.serverType(z)})
		return nil
	}
	return hetznerNotFound("server_type", h.r.PathValue("id"))
}

// hetznerSizeOf finds a server type by id or name.
func hetznerSizeOf(ref string) (hetznerSize, bool) {
	for _, z := range hetznerSizes() {
		if z.name == ref || strconv.FormatInt(z.id, 10) == ref {
			return z, true
		}
	}
	return hetznerSize{}, false
}

func (h hetzner) listImages() error {
	var all []listed
	for _, i := range hetznerImages() {
		has := map[string]string{"architecture": i.Architecture, "type": i.Type, "status": i.Status}
		all = append(all, listed{id: i.ID, name: *i.Name, labels: i.Labels, created: *i.Created, has: has, show: func() any { return i }})
	}
	return h.list("images", all)
}

func (h hetzner) getImage() error {
	for _, i := range hetznerImages() {
		if i.ID == h.pathID() {
			h.send(http.StatusOK, map[string]any{"image": i})
			return nil
		}
	}
	return hetznerNotFound("image", h.r.PathValue("id"))
}

// hetznerIPv4 is the net price of a primary IPv4 a month; IPv6 is free.
const hetznerIPv4 = 0.50

func (h hetzner) getPricing() error {
	type typePrice struct {
		ID     int64              `json:"id"`
		Name   string             `json:"name"`
		Prices []hetznerTypePrice `json:"prices"`
	}
	type ipPrice struct {
		Location     string       `json:"location"`
		PriceHourly  hetznerPrice `json:"price_hourly"`
		PriceMonthly hetznerPrice `json:"price_monthly"`
	}
	type ip struct {
		Type   string    `json:"type"`
		Prices []ipPrice `json:"prices"`
	}
	var types []typePrice
	for _, z := range hetznerSizes() {
		types = append(types, typePrice{z.id, z.name, h.serverType(z).Prices})
	}
	v4, v6 := ip{Type: "ipv4"}, ip{Type: "ipv6"}
	floating := map[string][]any{}
	for _, l := range hetznerLocations() {
		floating["ipv4"] = append(floating["ipv4"], map[string]any{"location": l.Name, "price_monthly": hetznerPriceOf(3)})
		floating["ipv6"] = append(floating["ipv6"], map[string]any{"location": l.Name, "price_monthly": hetznerPriceOf(1)})
		v4.Prices = append(v4.Prices, ipPrice{l.Name, hetznerPriceOf(hetznerIPv4 / hoursAMonth), hetznerPriceOf(hetznerIPv4)})
		v6.Prices = append(v6.Prices, ipPrice{l.Name, hetznerPriceOf(0), hetznerPriceOf(0)})
	}
	h.send(http.StatusOK, map[string]any{"pricing": map[string]any{
		"currency": "EUR", "vat_rate": "19.000000",
		"image":       map[string]any{"price_per_gb_month": hetznerPriceOf(0.011)},
		"floating_ip": map[string]any{"price_monthly": hetznerPriceOf(3)},
		"floating_ips": []any{
			map[string]any{"type": "ipv4", "prices": floating["ipv4"]}, map[string]any{"type": "ipv6", "prices": floating["ipv6"]},
		},
		"primary_ips":   []ip{v4, v6},
		"traffic":       map[string]any{"price_per_tb": hetznerPriceOf(0)},
		"server_backup": map[string]any{"percentage": "20.000000"},
		"server_types":  types, "load_balancer_types": []any{},
		"volume": map[string]any{"price_per_gb_month": hetznerPriceOf(0.044)},
	}})
	return nil
}
