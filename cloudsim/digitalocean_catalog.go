package cloudsim

import (
	"net/http"
	"slices"
	"strconv"
)

// Regions, sizes and images.

type doRegion struct {
	Slug      string   `json:"slug"`
	Name      string   `json:"name"`
	Features  []string `json:"features"`
	Available bool     `json:"available"`
	Sizes     []string `json:"sizes"`
}

type doPlace struct {
	slug, name string
	closed     bool // takes no new Droplets
}

func doPlaces() []doPlace {
	return []doPlace{
		{"nyc1", "New York 1", false}, {"sgp1", "Singapore 1", false}, {"lon1", "London 1", false}, {"nyc3", "New York 3", false},
		{"ams3", "Amsterdam 3", false}, {"fra1", "Frankfurt 1", false}, {"tor1", "Toronto 1", false}, {"sfo2", "San Francisco 2", false},
		{"blr1", "Bangalore 1", false}, {"sfo3", "San Francisco 3", false}, {"syd1", "Sydney 1", false}, {"atl1", "Atlanta 1", false},
		{"nyc2", "New York 2", true}, {"ams2", "Amsterdam 2", true},
	}
}

// doRegionOf shows a region; it is nil when there is none of the slug.
func doRegionOf(slug string) *doRegion {
	for _, p := range doPlaces() {
		if p.slug != slug {
			continue
		}
		r := &doRegion{Slug: p.slug, Name: p.name, Available: !p.closed, Sizes: []string{}, Features: []string{"backups", "ipv6", "metadata", "install_agent", "storage", "image_transfer"}}
		for _, z := range doSizes() {
			if slices.Contains(z.Regions, slug) {
				r.Sizes = append(r.Sizes, z.Slug)
			}
		}
		return r
	}
	return nil
}

func (d digitalOcean) listRegions() error {
	var all []*doRegion
	for _, p := range doPlaces() {
		all = append(all, doRegionOf(p.slug))
	}
	return doPage(d, "regions", all)
}

type doSize struct {
	Slug         string       `json:"slug"`
	Memory       int          `json:"memory"`
	VCPUs        int          `json:"vcpus"`
	Disk         int          `json:"disk"`
	Transfer     float64      `json:"transfer"`
	PriceMonthly float64      `json:"price_monthly"`
	PriceHourly  float64      `json:"price_hourly"`
	Regions      []string     `json:"regions"`
	Available    bool         `json:"available"`
	Description  string       `json:"description"`
	DiskInfo     []doDiskInfo `json:"disk_info"`
}

type doDiskInfo struct {
	Type string `json:"type"`
	Size struct {
		Amount int    `json:"amount"`
		Unit   string `json:"unit"`
	} `json:"size"`
}

// doSizeRow is a row of the catalogue: price a month in US dollars.
type doSizeRow struct {
	slug, family string
	cpus         int
	memory, disk int // MB, GB
	transfer     float64
	price        float64
	notIn        []string
	retired      bool
}

func doSizes() []doSize {
	rows := []doSizeRow{
		{"512mb", "Legacy Basic", 1, 512, 20, 1, 5, nil, true},
		{"s-1vcpu-512mb-10gb", "Basic", 1, 512, 10, 0.5, 4, nil, false},
		{"s-1vcpu-1gb", "Basic", 1, 1024, 25, 1, 6, nil, false},
		{"s-1vcpu-1gb-amd", "Basic AMD", 1, 1024, 25, 1, 7, nil, false},
		{"s-1vcpu-1gb-intel", "Basic Intel", 1, 1024, 25, 1, 7, nil, false},
		{"s-1vcpu-1gb-35gb-intel", "Basic Intel", 1, 1024, 35, 1, 8, nil, false},
		{"s-1vcpu-2gb", "Basic", 1, 2048, 50, 2, 12, nil, false},
		{"s-1vcpu-2gb-amd", "Basic AMD", 1, 2048, 50, 2, 14, nil, false},
		{"s-1vcpu-2gb-intel", "Basic Intel", 1, 2048, 50, 2, 14, nil, false},
		{"s-2vcpu-2gb", "Basic", 2, 2048, 60, 3, 18, nil, false},
		{"s-2vcpu-2gb-amd", "Basic AMD", 2, 2048, 60, 3, 21, nil, false},
		{"s-2vcpu-4gb", "Basic", 2, 4096, 80, 4, 24, nil, false},
		{"s-2vcpu-4gb-amd", "Basic AMD", 2, 4096, 80, 4, 28, nil, false},
		{"s-2vcpu-4gb-intel", "Basic Intel", 2, 4096, 80, 4, 28, nil, false},
		{"s-2vcpu-8gb-amd", "Basic AMD", 2, 8192, 100, 5, 42, nil, false},
		{"s-4vcpu-8gb", "Basic", 4, 8192, 160, 5, 48, nil, false},
		{"s-4vcpu-8gb-amd", "Basic AMD", 4, 8192, 160, 5, 56, nil, false},
		{"s-4vcpu-16gb-amd", "Basic AMD", 4, 16384, 200, 8, 84, nil, false},
		{"s-8vcpu-16gb", "Basic", 8, 16384, 320, 6, 96, []string{"sgp1"}, false},
		{"s-8vcpu-16gb-amd", "Basic AMD", 8, 16384, 320, 6, 112, nil, false},
		{"c-2", "CPU-Optimized", 2, 4096, 25, 4, 42, nil, false},
		{"c-4", "CPU-Optimized", 4, 8192, 50, 5, 84, nil, false},
		{"c-8", "CPU-Optimized", 8, 16384, 100, 6, 168, []string{"blr1", "syd1"}, false},
		{"g-2vcpu-8gb", "General Purpose", 2, 8192, 25, 4, 63, nil, false},
		{"g-4vcpu-16gb", "General Purpose", 4, 16384, 50, 5, 126, nil, false},
		{"m-2vcpu-16gb", "Memory-Optimized", 2, 16384, 50, 4, 84, nil, false},
		{"m-4vcpu-32gb", "Memory-Optimized", 4, 32768, 100, 6, 168, []string{"atl1"}, false},
	}
	sizes := make([]doSize, 0, len(rows))
	for _, r := range rows {
		z := doSize{
			Slug: r.slug, Memory: r.memory, VCPUs: r.cpus, Disk: r.disk, Transfer: r.transfer, PriceMonthly: r.price,
			PriceHourly: r.price / 672, Regions: []string{}, Available: !r.retired, Description: r.family, DiskInfo: make([]doDiskInfo, 1),
		}
		z.DiskInfo[0].Type, z.DiskInfo[0].Size.Amount, z.DiskInfo[0].Size.Unit = "local", r.disk, "gib"
		for _, p := range doPlaces() {
			if !r.retired && !p.closed && !slices.Contains(r.notIn, p.slug) {
				z.Regions = append(z.Regions, p.slug)
			}
		}
		sizes = append(sizes, z)
	}
	return sizes
}

func doSizeOf(slug string) *doSize {
	for _, z := range doSizes() {
		if z.Slug == slug {
			return &z
		}
	}
	return nil
}

func (d digitalOcean) listSizes() error { return doPage(d, "sizes", doSizes()) }

type doImage struct {
	ID           int64    `json:"id"`
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	Distribution string   `json:"distribution"`
	Slug         *string  `json:"slug"`
	Public       bool     `json:"public"`
	Regions      []string `json:"regions"`
	CreatedAt    string   `json:"created_at"`
	MinDiskSize  int      `json:"min_disk_size"`
	SizeGB       float64  `json:"size_gigabytes"`
	Description  string   `json:"description"`
	Tags         []string `json:"tags"`
	Status       string   `json:"status"`
	ErrorMessage string   `json:"error_message"`
}

func doImages() []doImage {
	var everywhere []string
	for _, p := range doPlaces() {
		everywhere = append(everywhere, p.slug)
	}
	var images []doImage
	for i, row := range [][3]string{
		{"Ubuntu", "22.04 (LTS) x64", "ubuntu-22-04-x64"}, {"Ubuntu", "24.04 (LTS) x64", "ubuntu-24-04-x64"}, {"Ubuntu", "26.04 (LTS) x64", "ubuntu-26-04-x64"},
		{"Debian", "12 x64", "debian-12-x64"}, {"Debian", "13 x64", "debian-13-x64"}, {"Fedora", "43 x64", "fedora-43-x64"},
		{"Rocky Linux", "9 x64", "rockylinux-9-x64"}, {"AlmaLinux", "10 x64", "almalinux-10-x64"},
	} {
		slug := row[2]
		images = append(images, doImage{
			ID: 200_000_000 + int64(i)*1_234_567, Name: row[1], Type: "base", Distribution: row[0], Slug: &slug, Public: true, Regions: everywhere,
			CreatedAt: "2025-10-01T08:00:00Z", MinDiskSize: 7, SizeGB: 0.7, Description: row[0] + " " + row[1], Tags: []string{}, Status: "available",
		})
	}
	return images
}

// doImageOf finds an image by number or slug.
func doImageOf(ref string) *doImage {
	for _, i := range doImages() {
		if *i.Slug == ref || strconv.FormatInt(i.ID, 10) == ref {
			return &i
		}
	}
	return nil
}

func (d digitalOcean) listImages() error {
	q := d.r.URL.Query()
	all := doImages()
	if q.Get("type") == "application" || q.Get("private") == "true" || q.Get("tag_name") != "" {
		all = nil
	}
	return doPage(d, "images", all)
}

func (d digitalOcean) getImage() error {
	i := doImageOf(d.r.PathValue("id"))
	if i == nil {
		return doNotFound()
	}
	d.send(http.StatusOK, map[string]any{"image": i})
	return nil
}
