package cloudsim

import (
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long things take, in simulated time.
const (
	hetznerCreateTakes = 6 * time.Second
	hetznerStartTakes  = startTakes
	hetznerDeleteTakes = 3 * time.Second
	hetznerActTakes    = 2 * time.Second
	hetznerApplyTakes  = time.Second // a firewall
	// hetznerNameHeld is how much longer than its server a name is taken.
	hetznerNameHeld = time.Second
	// hetznerServerLimit is how many servers a project may have.
	hetznerServerLimit = 5000
	hetznerUserData    = 32 << 10
)

type hetznerDNS struct {
	IP     string `json:"ip"`
	DNSPtr string `json:"dns_ptr"`
}

type hetznerNetIP struct {
	ID      int64  `json:"id"`
	IP      string `json:"ip"`
	Blocked bool   `json:"blocked"`
	DNSPtr  any    `json:"dns_ptr"`
}

type hetznerServerFirewall struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`
}

type hetznerPublicNet struct {
	IPv4        *hetznerNetIP           `json:"ipv4"`
	IPv6        *hetznerNetIP           `json:"ipv6"`
	FloatingIPs []int64                 `json:"floating_ips"`
	Firewalls   []hetznerServerFirewall `json:"firewalls"`
}

type hetznerServer struct {
	ID              int64             `json:"id"`
	Name            string            `json:"name"`
	Status          string            `json:"status"`
	Created         time.Time         `json:"created"`
	PublicNet       hetznerPublicNet  `json:"public_net"`
	PrivateNet      []any             `json:"private_net"`
	ServerType      hetznerType       `json:"server_type"`
	IncludedTraffic int64             `json:"included_traffic"`
	OutgoingTraffic *int64            `json:"outgoing_traffic"`
	IngoingTraffic  *int64            `json:"ingoing_traffic"`
	BackupWindow    *string           `json:"backup_window"`
	RescueEnabled   bool              `json:"rescue_enabled"`
	ISO             *struct{}         `json:"iso"`
	Locked          bool              `json:"locked"`
	Location        hetznerLocation   `json:"location"`
	Image           *hetznerImage     `json:"image"`
	Protection      map[string]bool   `json:"protection"`
	Labels          map[string]string `json:"labels"`
	Volumes         []int64           `json:"volumes"`
	PrimaryDiskSize int               `json:"primary_disk_size"`
	PlacementGroup  *struct{}         `json:"placement_group"`
	LoadBalancers   []int64           `json:"load_balancers"`
}

func (h hetzner) server(s *server) hetznerServer {
	z, _ := hetznerSizeOf(s.size)
	o := hetznerServer{
		ID: s.id, Name: s.name, Status: s.state, Created: s.created, PrivateNet: []any{}, ServerType: h.serverType(z),
		IncludedTraffic: 20 << 40, Locked: s.running != nil, Location: hetznerLocationOf(s.region),
		Protection: map[string]bool{"delete": s.protected, "rebuild": s.protected}, Labels: s.labels,
		Volumes: orEmpty(s.volumes), PrimaryDiskSize: z.disk, LoadBalancers: []int64{},
		PublicNet: hetznerPublicNet{FloatingIPs: []int64{}, Firewalls: []hetznerServerFirewall{}},
	}
	for _, i := range hetznerImages() {
		if i.ID == s.image {
			o.Image = &i
		}
	}
	if s.ipv4 != nil {
		o.PublicNet.IPv4 = &hetznerNetIP{ID: s.ipv4.id, IP: s.ipv4.address, DNSPtr: hetznerPtr(s.ipv4.address)}
	}
	if s.ipv6 != nil {
		o.PublicNet.IPv6 = &hetznerNetIP{ID: s.ipv6.id, IP: s.ipv6.address, DNSPtr: []hetznerDNS{}}
	}
	for _, f := range sorted(h.project.rules) {
		if status := f.statusOn(s, h.now); status != "" {
			o.PublicNet.Firewalls = append(o.PublicNet.Firewalls, hetznerServerFirewall{ID: f.id, Status: status})
		}
	}
	return o
}

func hetznerPtr(ip string) string {
	p := strings.Split(ip, ".")
	slices.Reverse(p)
	return "static." + strings.Join(p, ".") + ".clients.your-server.de"
}

func hetznerLocationOf(ref string) hetznerLocation {
	for _, l := range hetznerLocations() {
		if l.Name == ref || strconv.FormatInt(l.ID, 10) == ref {
			return l
		}
	}
	return hetznerLocation{}
}

// idOrName is a field that takes either.
type idOrName string

func (v *idOrName) UnmarshalJSON(b []byte) error {
	var n int64
	if json.Unmarshal(b, &n) == nil {
		*v = idOrName(strconv.FormatInt(n, 10))
		return nil
	}
	return json.Unmarshal(b, (*string)(v))
}

type hetznerCreate struct {
	Name       string             `json:"name"`
	ServerType idOrName           `json:"server_type"`
	Image      idOrName           `json:"image"`
	Location   idOrName           `json:"location"`
	Datacenter *string            `json:"datacenter"`
	SSHKeys    []idOrName         `json:"ssh_keys"`
	UserData   string             `json:"user_data"`
	Start      *bool              `json:"start_after_create"`
	Labels     *map[string]string `json:"labels"`
	Firewalls  []struct {
		Firewall int64 `json:"firewall"`
	} `json:"firewalls"`
	Volumes        []int64 `json:"volumes"`
	Networks       []int64 `json:"networks"`
	PlacementGroup int64   `json:"placement_group"`
	PublicNet      *struct {
		IPv4   *bool `json:"enable_ipv4"`
		IPv6   *bool `json:"enable_ipv6"`
		IPv4ID int64 `json:"ipv4"`
		IPv6ID int64 `json:"ipv6"`
	} `json:"public_net"`
}

var hetznerHost = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*$`)

// checked is a create that may go ahead.
type hetznerChecked struct {
	hetznerCreate
	size     hetznerSize
	location hetznerLocation
	image    hetznerImage
	labels   map[string]string
	keys     []int64
	rules    []int64
	v4, v6   bool
	use4     *publicIP
	use6     *publicIP
}

func (h hetzner) checkCreate() (hetznerChecked, error) {
	c := hetznerChecked{v4: true, v6: true, labels: map[string]string{}}
	if err := h.read(&c.hetznerCreate); err != nil {
		return c, err
	}
	switch {
	case c.Name == "" || len(c.Name) > 253 || !hetznerHost.MatchString(c.Name):
		return c, hetznerField("name", "must be a valid hostname as per RFC 1123")
	case c.Datacenter != nil:
		return c, hetznerField("datacenter", "the field was removed, use location")
	case len(c.UserData) > hetznerUserData:
		return c, hetznerField("user_data", "must be at most 32768 bytes long")
	case h.nameTaken(c.Name):
		return c, hetznerFail(http.StatusConflict, "uniqueness_error", "server name is already used")
	}
	var ok bool
	if c.size, ok = hetznerSizeOf(string(c.ServerType)); !ok {
		return c, hetznerField("server_type", fmt.Sprintf("server type %s not found", c.ServerType))
	}
	if c.Location == "" {
		c.Location = "fsn1"
	}
	if c.location = hetznerLocationOf(string(c.Location)); c.location.ID == 0 {
		return c, hetznerField("location", fmt.Sprintf("location %s not found", c.Location))
	}
	switch {
	case c.size.retired:
		return c, hetznerFail(http.StatusUnprocessableEntity, "invalid_server_type", "server type %s is deprecated", c.size.name)
	case c.size.net(c.location.Name) == 0:
		return c, hetznerFail(http.StatusUnprocessableEntity, "invalid_input", "unsupported location for server type")
	case !c.size.available(c.location.Name):
		return c, hetznerFail(http.StatusPreconditionFailed, "resource_unavailable", "error during placement")
	case len(h.project.servers) >= hetznerServerLimit:
		return c, hetznerFail(http.StatusForbidden, "resource_limit_exceeded", "server limit exceeded")
	}
	if err := c.findImage(); err != nil {
		return c, err
	}
	labels, err := hetznerLabels(c.Labels, c.labels)
	if err != nil {
		return c, err
	}
	c.labels = labels
	return c, h.checkAttached(&c)
}

// findImage finds one by id, which must fit the type, or by name, which has
// one for each architecture.
func (c *hetznerChecked) findImage() error {
	for _, i := range hetznerImages() {
		if strconv.FormatInt(i.ID, 10) == string(c.Image) && i.Architecture != c.size.arch {
			return hetznerField("image", "image architecture does not match the server type's")
		}
		if (*i.Name == string(c.Image) || strconv.FormatInt(i.ID, 10) == string(c.Image)) && i.Architecture == c.size.arch {
			c.image = i
			return nil
		}
	}
	return hetznerField("image", fmt.Sprintf("image %s not found", c.Image))
}

func (h hetzner) checkAttached(c *hetznerChecked) error {
	for _, ref := range c.SSHKeys {
		k := h.keyOf(string(ref))
		if k == nil {
			return hetznerNotFound("ssh_key", ref)
		}
		if !slices.Contains(c.keys, k.id) {
			c.keys = append(c.keys, k.id)
		}
	}
	for _, f := range c.Firewalls {
		switch {
		case h.project.rules[f.Firewall] == nil:
			return hetznerNotFound("firewall", f.Firewall)
		case slices.Contains(c.rules, f.Firewall):
			return hetznerFail(http.StatusUnprocessableEntity, "firewall_already_applied", "firewall with ID '%d' is named twice", f.Firewall)
		}
		c.rules = append(c.rules, f.Firewall)
	}
	// There is none of these, so what is named does not exist.
	if len(c.Networks) > 0 {
		return hetznerNotFound("network", c.Networks[0])
	}
	if c.PlacementGroup != 0 {
		return hetznerNotFound("placement_group", c.PlacementGroup)
	}
	for _, id := range c.Volumes {
		if err := h.mayAttach(h.project.volumes[id], id, c.location.Name); err != nil {
			return err
		}
	}
	n := c.PublicNet
	if n == nil {
		return nil
	}
	c.v4, c.v6 = n.IPv4 == nil || *n.IPv4, n.IPv6 == nil || *n.IPv6
	for _, u := range []struct {
		id  int64
		to  **publicIP
		on  *bool
		six bool
	}{{n.IPv4ID, &c.use4, &c.v4, false}, {n.IPv6ID, &c.use6, &c.v6, true}} {
		if u.id == 0 {
			continue
		}
		ip := h.project.ips[u.id]
		switch {
		case ip == nil:
			return hetznerNotFound("primary_ip", u.id)
		case ip.v6 != u.six:
			return hetznerFail(http.StatusUnprocessableEntity, "primary_ip_version_mismatch", "primary IP is of the other version")
		case ip.server != nil:
			return hetznerFail(http.StatusConflict, "primary_ip_assigned", "primary IP is already assigned")
		case ip.region != c.location.Name:
			return hetznerFail(http.StatusUnprocessableEntity, "primary_ip_datacenter_mismatch", "primary IP is in another location")
		}
		*u.to, *u.on = ip, true
	}
	return nil
}

func (h hetzner) createServer() error {
	c, err := h.checkCreate()
	if err != nil {
		return err
	}
	w, p := h.sim.world, h.project
	s := &server{
		id: w.id(hetznerName, "server"), project: p, name: c.Name, size: c.size.name, region: c.location.Name, image: c.image.ID,
		arch: c.size.arch, userData: []byte(c.UserData), labels: c.labels, created: h.now, state: stateInitializing, keys: c.keys,
	}
	s.entry = w.enter(LedgerEntry{
		Provider: hetznerName, Project: p.name, Kind: "server", ID: itoa(s.id), Name: s.name, CreatedAt: h.now,
		Hourly: c.size.net(s.region) / hoursAMonth * (1 + hetznerVAT), Currency: "EUR",
	})
	if c.v4 {
		s.ipv4 = h.attachIP(c.use4, s, false)
	}
	if c.v6 {
		s.ipv6 = h.attachIP(c.use6, s, true)
	}
	for _, id := range c.rules {
		p.rules[id].attach(s, h.now)
	}
	for _, id := range c.Volumes {
		s.volumes, p.volumes[id].server = append(s.volumes, id), s
	}
	p.servers[s.id] = s
	h.sim.bootFaults(s)
	start := c.Start == nil || *c.Start
	next := []any{}
	var st *action
	if start {
		// The start is announced with the create and runs after it.
		st = &action{id: w.id(hetznerName, "action"), command: "start_server", started: h.now, takes: hetznerCreateTakes + hetznerStartTakes, resources: []resource{{"server", s.id}}}
		p.actions[st.id] = st
		next = append(next, h.action(st))
	}
	create := h.hold(s, "create_server", hetznerCreateTakes, func(now time.Time) {
		s.state = stateOff
		if start {
			s.running = st
			h.sim.powerOn(s, now)
			h.sim.after(now, hetznerStartTakes, func(now time.Time) { st.finished, s.running = now, nil })
		}
	})
	var password *string
	if len(c.keys) == 0 {
		pw := h.sim.password()
		password = &pw
	}
	h.send(http.StatusCreated, map[string]any{"server": h.server(s), "action": h.action(create), "next_actions": next, "root_password": password})
	return nil
}

// password is a root password that opens nothing.
func (s *Sim) password() string {
	var b [10]byte
	for i := range b {
		b[i] = byte(s.world.rand.UintN(256))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// hold starts an action that locks the server until it ends.
func (h hetzner) hold(s *server, command string, takes time.Duration, done func(now time.Time)) *action {
	var a *action
	a = h.sim.begin(h.project, h.now, command, takes, func(now time.Time) {
		if s.running == a {
			s.running = nil
		}
		if done != nil {
			done(now)
		}
	}, resource{"server", s.id})
	s.running = a
	return a
}
