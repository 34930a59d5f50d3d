package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// fakeServer is a server, from its create on, also after its end.
type fakeServer struct {
	provision.Server
	key      string // idempotency key
	userData string
	knownAt  time.Time // when calls begin to know it by its id
	listedAt time.Time // when lists begin to show it
	goneAt   time.Time // when it is gone; zero while nobody deleted it
	broken   bool
}

// fakeCloud is a provider in memory that keeps provision's contract, with the
// faults that real ones have.
type fakeCloud struct {
	mu      sync.Mutex
	now     func() time.Time
	servers []*fakeServer
	extra   []provision.Resource // things beside servers
	nextID  int

	calls map[string]int
	// Faults. The functions may be nil.
	onCreate func(o provision.CreateOpts) fault
	onDelete func(id string) fault
	onList   func() error
	boot     time.Duration // until a server runs
	dying    time.Duration // between the accepted delete and the end
	listLag  time.Duration // between the create and the first list that shows it
	console  string
	// effect is called at each point at which the world or the caller's
	// knowledge of it changes; a crash is a panic in it.
	effect func(point string)
}

// fault is what happens to a call: err, and whether it took effect before.
type fault struct {
	err    error
	effect bool
}

func newFakeCloud(now func() time.Time) *fakeCloud {
	return &fakeCloud{now: now, calls: map[string]int{}, boot: 10 * time.Second, dying: 3 * time.Second, nextID: 100, effect: func(string) {}}
}

var (
	_ provision.Provisioner   = (*fakeCloud)(nil)
	_ provision.Lister        = (*fakeCloud)(nil)
	_ provision.Auditor       = (*fakeCloud)(nil)
	_ provision.ConsoleReader = (*fakeCloud)(nil)
	_ provision.Pricer        = (*fakeCloud)(nil)
)

func cloudErr(class error, op, message string) error {
	return &provision.ProviderError{Provider: "fake", Op: op, Class: class, Message: message, RequestID: "req-1", Hint: "hint of " + message}
}

func (c *fakeCloud) count(call string) {
	c.mu.Lock()
	c.calls[call]++
	c.mu.Unlock()
	c.effect("before " + call)
}

func (c *fakeCloud) called(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

func (c *fakeCloud) ListRegions(context.Context) ([]provision.Region, error) {
	return []provision.Region{{ID: "r1", Name: "One"}, {ID: "r2", Name: "Two"}}, nil
}

func (c *fakeCloud) ListSizes(context.Context, string) ([]provision.Size, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls["sizes"]++
	return []provision.Size{{ID: "small", VCPUs: 2, Memory: 4096}, {ID: "big", VCPUs: 8, Memory: 16384}}, nil
}

func (c *fakeCloud) Prices(context.Context, string) (map[string]provision.Price, error) {
	return map[string]provision.Price{"small": {Monthly: "4.20", Currency: "EUR"}}, nil
}

func (c *fakeCloud) CreateServer(ctx context.Context, o provision.CreateOpts) (string, string, error) {
	c.count("create")
	c.mu.Lock()
	var f fault
	if c.onCreate != nil {
		f = c.onCreate(o)
	}
	if f.err != nil && !f.effect {
		c.mu.Unlock()
		return "", "", f.err
	}
	s, err := c.make(o)
	c.mu.Unlock()
	c.effect("after create")
	if err == nil {
		err = f.err
	}
	if err != nil {
		return "", "", err
	}
	return s.ID, s.IPAddr, nil
}

// make returns the server of the key, made before or now.
func (c *fakeCloud) make(o provision.CreateOpts) (*fakeServer, error) {
	for _, s := range c.servers {
		if s.gone(c.now()) {
			continue
		}
		if s.key == o.IdempotencyKey {
			if s.userData != o.UserData {
				return nil, cloudErr(provision.ErrConflict, "create server", "same key, other parameters")
			}
			return s, nil
		}
		if s.Name == o.Name {
			return nil, cloudErr(provision.ErrConflict, "create server", "the name is taken")
		}
	}
	c.nextID++
	labels := maps.Clone(o.Labels)
	labels["managed-by"], labels["slipway-fleet"] = "slipway", fleetID
	s := &fakeServer{key: o.IdempotencyKey, userData: o.UserData, knownAt: c.now().Add(c.listLag), listedAt: c.now().Add(c.listLag)}
	s.Server = provision.Server{
		ID: strconv.Itoa(c.nextID), Name: o.Name, IPAddr: fmt.Sprintf("198.51.100.%d", c.nextID%250), Region: o.Region, Size: o.Size,
		CreatedAt: c.now(), Labels: labels,
	}
	c.servers = append(c.servers, s)
	return s, nil
}

func (s *fakeServer) gone(now time.Time) bool { return !s.goneAt.IsZero() && !now.Before(s.goneAt) }

func (c *fakeCloud) status(s *fakeServer) provision.ServerStatus {
	switch {
	case s.broken:
		return provision.ServerStatusError
	case c.now().Sub(s.CreatedAt) < c.boot:
		return provision.ServerStatusPending
	}
	return provision.ServerStatusRunning
}

func (c *fakeCloud) find(id string) *fakeServer {
	for _, s := range c.servers {
		if s.ID == id && !s.gone(c.now()) {
			return s
		}
	}
	return nil
}

func (c *fakeCloud) GetServer(_ context.Context, id string) (provision.ServerStatus, string, error) {
	c.count("get")
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.find(id)
	if s == nil || c.now().Before(s.knownAt) {
		return "", "", cloudErr(provision.ErrNotFound, "get server", "no such server")
	}
	return c.status(s), s.IPAddr, nil
}

func (c *fakeCloud) DeleteServer(_ context.Context, id string) error {
	c.count("delete")
	c.mu.Lock()
	var f fault
	if c.onDelete != nil {
		f = c.onDelete(id)
	}
	// A provider whose lists lag does not know its newest servers: a delete
	// of one is a success that does nothing.
	if s := c.find(id); s != nil && (f.err == nil || f.effect) && !c.now().Before(s.knownAt) && s.goneAt.IsZero() {
		s.goneAt = c.now().Add(c.dying)
	}
	c.mu.Unlock()
	c.effect("after delete")
	return f.err
}

func (c *fakeCloud) ListServers(context.Context) ([]provision.Server, error) {
	c.count("list")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onList != nil {
		if err := c.onList(); err != nil {
			return nil, err
		}
	}
	var res []provision.Server
	for _, s := range c.servers {
		if !s.gone(c.now()) && !c.now().Before(s.listedAt) {
			listed := s.Server
			listed.Status, listed.Labels = c.status(s), maps.Clone(s.Labels)
			res = append(res, listed)
		}
	}
	return res, nil
}

func (c *fakeCloud) ListResources(ctx context.Context) ([]provision.Resource, error) {
	servers, err := c.ListServers(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	res := slices.Clone(c.extra)
	for _, s := range servers {
		res = append(res, provision.Resource{Kind: provision.KindServer, ID: s.ID, Name: s.Name, Region: s.Region, ServerID: s.ID, CreatedAt: s.CreatedAt, Labels: s.Labels, Billable: true})
	}
	return res, nil
}

func (c *fakeCloud) DeleteResource(ctx context.Context, r provision.Resource) error {
	if r.Kind == provision.KindServer {
		return c.DeleteServer(ctx, r.ID)
	}
	c.count("delete resource")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra = slices.DeleteFunc(c.extra, func(x provision.Resource) bool { return x.Kind == r.Kind && x.ID == r.ID })
	return nil
}

func (c *fakeCloud) ConsoleOutput(context.Context, string) (string, error) {
	if c.console == "" {
		return "", errors.New("no console")
	}
	return c.console, nil
}

// alive returns the servers that exist and that nobody has deleted.
func (c *fakeCloud) alive() []*fakeServer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var res []*fakeServer
	for _, s := range c.servers {
		if !s.gone(c.now()) {
			res = append(res, s)
		}
	}
	return res
}

var tokenInUserData = regexp.MustCompile(enroll.TokenPattern)

// token is the join token that the guest of a server has read.
func (s *fakeServer) token() (enroll.Token, error) {
	return enroll.ParseToken(tokenInUserData.FindString(s.userData))
}

// fakeClouds opens the one account that there is.
type fakeClouds struct {
	cloud provision.Provisioner
	err   error
}

func (c fakeClouds) Open(context.Context, fleet.Account, string) (provision.Provisioner, error) {
	return c.cloud, c.err
}
