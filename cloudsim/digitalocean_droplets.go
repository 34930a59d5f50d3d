package cloudsim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Droplets: the create.

// How long things take, in simulated time, and how much there may be.
const (
	doPrivateTakes = time.Second     // until the private address is there
	doCreateTakes  = 4 * time.Second // until the public one is, and the power
	doDeleteTakes  = 3 * time.Second
	doActTakes     = 2 * time.Second
	doUserData     = 64 << 10
	doAtOnce       = 10 // Droplets of one call

	digitalOceanDroplets = 100 // an account's limit
)

// doDroplet is a server with what the API has beside it.
type doDroplet struct {
	*server
	tags       []string
	features   []string
	private    string
	wantsIPv6  bool
	isCreating bool
}

type doNetwork struct {
	IPAddress string `json:"ip_address"`
	Netmask   any    `json:"netmask"`
	Gateway   string `json:"gateway"`
	Type      string `json:"type"`
}

// droplet shows one.
func (d digitalOcean) droplet(s *doDroplet) map[string]any {
	z := doSizeOf(s.size)
	v4, v6 := []doNetwork{}, []doNetwork{}
	if s.private != "" {
		v4 = append(v4, doNetwork{s.private, "255.255.240.0", "10.19.0.1", "private"})
	}
	if s.ipv4 != nil {
		v4 = append(v4, doNetwork{s.ipv4.address, "255.255.240.0", s.ipv4.address[:strings.LastIndexByte(s.ipv4.address, '.')] + ".1", "public"})
	}
	if s.ipv6 != nil {
		network := strings.TrimSuffix(s.ipv6.address, "/64")
		v6 = append(v6, doNetwork{network + "2", 64, network + "1", "public"})
	}
	volumes := []string{}
	for _, v := range d.account.volumes {
		if slices.Contains(v.DropletIDs, s.id) {
			volumes = append(volumes, v.ID)
		}
	}
	return map[string]any{
		"id": s.id, "name": s.name, "memory": z.Memory, "vcpus": z.VCPUs, "disk": z.Disk, "disk_info": z.DiskInfo, "locked": s.running != nil,
		"status": s.shownStatus(), "kernel": nil, "created_at": s.created.UTC().Format(time.RFC3339), "features": s.features,
		"backup_ids": []int{}, "next_backup_window": nil, "snapshot_ids": []int{}, "image": doImageOf(itoa(s.image)), "volume_ids": volumes,
		"size": z, "size_slug": s.size, "networks": map[string]any{"v4": v4, "v6": v6}, "region": doRegionOf(s.region), "tags": orEmpty(s.tags),
		"vpc_uuid": d.account.vpc,
	}
}

func (s *doDroplet) shownStatus() string {
	switch {
	case s.isCreating:
		return "new"
	case s.state == stateRunning, s.state == stateDeleting:
		return "active"
	}
	return "off"
}

type doCreateBody struct {
	Name     string     `json:"name"`
	Names    []string   `json:"names"`
	Region   string     `json:"region"`
	Size     string     `json:"size"`
	Image    idOrName   `json:"image"`
	SSHKeys  []idOrName `json:"ssh_keys"`
	UserData string     `json:"user_data"`
	Tags     []string   `json:"tags"`
	IPv6     bool       `json:"ipv6"`
	Monitor  bool       `json:"monitoring"`
	Agent    *bool      `json:"with_droplet_agent"`
	Public   *bool      `json:"public_networking"`
	Volumes  []string   `json:"volumes"`
	VPC      string     `json:"vpc_uuid"`
}

var doHost = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)

// checkCreate answers as the API does to what is wrong, the first first.
func (d digitalOcean) checkCreate(b *doCreateBody) (keys []int64, err error) {
	names := b.Names
	if b.Name != "" || len(names) == 0 {
		names = append(names, b.Name)
	}
	b.Names = names
	for _, n := range names {
		if len(n) > 255 || !doHost.MatchString(n) {
			return nil, doBad("Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)")
		}
	}
	z, place, image := doSizeOf(b.Size), doRegionOf(b.Region), doImageOf(string(b.Image))
	switch {
	case len(names) > doAtOnce:
		return nil, doBad("You can only create up to %d droplets at a time.", doAtOnce)
	case z == nil:
		return nil, doBad("You specified a size that is not a valid size.")
	case place == nil:
		return nil, doBad("You specified an invalid region for Droplet creation.")
	case !place.Available:
		return nil, doBad("Region is not available")
	case image == nil:
		return nil, doBad("You specified an invalid image for Droplet creation.")
	case !slices.Contains(z.Regions, b.Region):
		return nil, doBad("Size is not available in this region.")
	case len(b.UserData) > doUserData:
		return nil, doBad("user_data must be at most 64 KiB")
	case b.VPC != "" && b.VPC != d.account.vpc:
		return nil, doBad("You specified an invalid VPC for Droplet creation.")
	case len(d.account.droplets)+len(names) > digitalOceanDroplets:
		return nil, doBad("creating this/these droplet(s) will exceed your droplet limit")
	}
	for _, t := range b.Tags {
		if err := doCheckTag(t); err != nil {
			return nil, err
		}
	}
	for _, ref := range b.SSHKeys {
		k := d.keyOf(string(ref))
		if k == nil {
			return nil, doBad("%s are invalid key identifiers for Droplet creation.", ref)
		}
		if !slices.Contains(keys, k.id) {
			keys = append(keys, k.id)
		}
	}
	for _, id := range b.Volumes {
		v := d.account.volume(id)
		if v == nil || v.Region.Slug != b.Region || len(v.DropletIDs) > 0 || len(names) > 1 {
			return nil, doBad("Failed to resolve volume: %s", id)
		}
	}
	return keys, nil
}

func (d digitalOcean) createDroplet() error {
	var b doCreateBody
	if err := d.read(&b); err != nil {
		return err
	}
	keys, err := d.checkCreate(&b)
	if err != nil {
		return err
	}
	for i, t := range b.Tags {
		b.Tags[i] = d.account.makeTag(t)
	}
	var shown []any
	var actions []any
	for _, name := range b.Names {
		s, a := d.makeDroplet(b, name, keys)
		shown = append(shown, d.droplet(s))
		actions = append(actions, map[string]any{"id": a.id, "rel": "create", "href": d.actionLink(a)})
	}
	links := map[string]any{"actions": actions}
	if b.Name != "" && len(b.Names) == 1 {
		d.send(http.StatusAccepted, map[string]any{"droplet": shown[0], "links": links})
	} else {
		d.send(http.StatusAccepted, map[string]any{"droplets": shown, "links": links})
	}
	return nil
}

func (d digitalOcean) makeDroplet(b doCreateBody, name string, keys []int64) (*doDroplet, *action) {
	w, p := d.sim.world, d.project
	z, image := doSizeOf(b.Size), doImageOf(string(b.Image))
	s := &doDroplet{
		server: &server{
			id: w.id(digitalOceanName, "server"), project: p, name: name, size: b.Size, region: b.Region, image: image.ID, arch: "x86",
			userData: []byte(b.UserData), created: d.now, state: stateInitializing, keys: keys,
		},
		tags: slices.Clone(b.Tags), wantsIPv6: b.IPv6, isCreating: true, features: []string{"private_networking"},
	}
	slices.Sort(s.tags)
	s.tags = slices.Compact(s.tags)
	if b.IPv6 {
		s.features = append(s.features, "ipv6")
	}
	if b.Monitor {
		s.features = append(s.features, "monitoring")
	}
	if b.Agent == nil || *b.Agent {
		s.features = append(s.features, "droplet_agent")
	}
	s.entry = w.enter(LedgerEntry{
		Provider: digitalOceanName, Project: p.name, Kind: "server", ID: itoa(s.id), Name: name, CreatedAt: d.now, Hourly: z.PriceHourly, Currency: "USD",
	})
	p.servers[s.id], d.account.droplets[s.id] = s.server, s
	for _, id := range b.Volumes {
		v := d.account.volume(id)
		v.DropletIDs, v.entry.Server = []int64{s.id}, itoa(s.id)
	}
	d.sim.bootFaults(s.server)
	return s, d.beginCreate(s, b.Public == nil || *b.Public)
}

// beginCreate lets a Droplet come up: the private address is there first, then
// the public one; new ends when the create's action does.
func (d digitalOcean) beginCreate(s *doDroplet, public bool) *action {
	here := func() bool { return d.account.droplets[s.id] == s }
	takes := doCreateTakes + startTakes
	late := s.lateFailure
	if late != nil {
		takes = max(time.Duration(late.Delay), doCreateTakes)
	}
	d.sim.after(d.now, doPrivateTakes, func(time.Time) {
		s.private = fmt.Sprintf("10.19.%d.%d", s.id>>8&15, 2+s.id%250)
	})
	d.sim.after(d.now, doCreateTakes, func(now time.Time) {
		if !here() || late != nil {
			return
		}
		if public {
			s.ipv4 = &publicIP{address: d.sim.world.ipv4(), server: s.server, region: s.region, created: now}
			if s.wantsIPv6 {
				s.ipv6 = &publicIP{address: d.sim.world.ipv6(), v6: true, server: s.server, region: s.region, created: now}
			}
		}
		d.sim.powerOn(s.server, now)
	})
	a := d.hold(s, "create", takes, func(now time.Time) {
		s.isCreating = late != nil // then it stays new for good
	})
	if late != nil {
		a.failCode = "errored"
	}
	return a
}

// hold starts an action that locks the Droplet until it ends.
func (d digitalOcean) hold(s *doDroplet, command string, takes time.Duration, done func(now time.Time)) *action {
	var a *action
	a = d.sim.begin(d.project, d.now, command, takes, func(now time.Time) {
		if s.running == a {
			s.running = nil
		}
		if done != nil {
			done(now)
		}
	}, resource{"droplet", s.id})
	s.running = a
	return a
}
