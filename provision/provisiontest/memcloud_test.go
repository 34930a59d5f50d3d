package provisiontest_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

// memCloud is the smallest cloud that keeps the contract, and breaks one
// sentence of it on request: the suite is tested by what it says to that.
type memCloud struct {
	mu      sync.Mutex
	bug     string
	servers map[string]*memServer
	left    []provision.Resource
	next    int
	fault   string
}

type memServer struct {
	provision.Server
	key, params string
	ssh         bool
}

// memProvisioner is one program's access to a cloud.
type memProvisioner struct {
	cloud      *memCloud
	credential string
}

const memCredential = "mem-credential-123"

func openMem(bug string) func(t *testing.T) *provisiontest.Account {
	return func(t *testing.T) *provisiontest.Account {
		c := &memCloud{bug: bug, servers: map[string]*memServer{}}
		set := func(fault string) func() { return func() { c.mu.Lock(); c.fault = fault; c.mu.Unlock() } }
		open := func(*testing.T) provision.Provisioner { return &memProvisioner{c, memCredential} }
		return &provisiontest.Account{
			Provisioner: open(t), Reopen: open,
			Intruder: &memProvisioner{c, "wrong-credential"}, ReadOnly: &memProvisioner{c, "reads-only"},
			Region: "here", Size: "small", OtherSize: "large", MissingID: "s-999", UserDataLimit: 1000,
			Secrets:  []string{memCredential, "wrong-credential"},
			Billable: c.billable, SSHReachable: c.sshReachable,
			Faults: provisiontest.Faults{
				LoseCreate: set("lose"), BreakCreate: set("break"), NoCapacity: set("capacity"), NoQuota: set("quota"), Throttle: set("throttle"),
			},
		}
	}
}

func (c *memCloud) billable() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := slices.Sorted(maps.Keys(c.servers))
	for _, r := range c.left {
		ids = append(ids, r.ID)
	}
	return ids
}

func (c *memCloud) sshReachable(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[id].ssh || c.bug == "open by default"
}

func memFail(op string, class error, text string) error {
	return &provision.ProviderError{Provider: "mem", Op: op, Class: class, Message: text}
}

// enter is what every call begins with; leave it locked.
func (p *memProvisioner) enter(ctx context.Context, op string, writes bool) error {
	p.cloud.mu.Lock()
	switch {
	case ctx.Err() != nil && p.cloud.bug != "ignores the context":
		return memStopped{memFail(op, provision.ErrUnavailable, "stopped").(*provision.ProviderError), ctx.Err()}
	case p.credential == "wrong-credential" && p.cloud.bug == "leaks the credential":
		return memFail(op, provision.ErrUnauthorized, p.credential)
	case p.credential == "wrong-credential" && p.cloud.bug == "two classes":
		return fmt.Errorf("%w: %w", provision.ErrForbidden, memFail(op, provision.ErrUnauthorized, "no"))
	case p.credential == "wrong-credential":
		return memFail(op, provision.ErrUnauthorized, "no")
	case p.credential == "reads-only" && writes:
		return memFail(op, provision.ErrForbidden, "no")
	}
	return nil
}

type memStopped struct {
	*provision.ProviderError
	cause error
}

func (e memStopped) Unwrap() []error { return []error{e.ProviderError, e.cause} }

func (p *memProvisioner) ListRegions(ctx context.Context) ([]provision.Region, error) {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "list regions", false); err != nil {
		return nil, err
	}
	regions := []provision.Region{{ID: "here", Name: "Here"}}
	if p.cloud.bug == "regions twice" {
		regions = append(regions, regions...)
	}
	return regions, nil
}

func (p *memProvisioner) ListSizes(ctx context.Context, region string) ([]provision.Size, error) {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "list sizes", false); err != nil {
		return nil, err
	}
	price := "4.50"
	if p.cloud.bug == "odd prices" {
		price = "4.5e0"
	}
	sizes := []provision.Size{
		{ID: "small", Name: "Small", VCPUs: 1, Memory: 512, Disk: 10, PriceMonthly: price, Currency: "EUR", Architecture: "x86"},
		{ID: "large", Name: "Large", VCPUs: 9, Memory: 9216, Disk: 90, Architecture: "x86"},
	}
	if region == "" && p.cloud.bug == "fewer sizes without region" {
		sizes = sizes[:1]
	}
	return sizes, nil
}

var memName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func memCheck(o provision.CreateOpts) string {
	bad := func(cidr string) bool { return !strings.HasSuffix(cidr, ".0/24") }
	switch {
	case !memName.MatchString(o.Name):
		return "name"
	case len(o.UserData) > 1000 || strings.ContainsAny(o.UserData, "\r\ufeff"):
		return "user-data"
	case o.Labels["managed-by"] != "":
		return "label"
	case slices.ContainsFunc(o.SSHSourceCIDRs, bad):
		return "source"
	case o.Region != "here" || o.Size != "small" && o.Size != "large":
		return "region or size"
	case o.Architecture == "arm":
		return "architecture"
	}
	return ""
}

func (p *memProvisioner) CreateServer(ctx context.Context, o provision.CreateOpts) (string, string, error) {
	const op = "create server"
	c := p.cloud
	defer c.mu.Unlock()
	if err := p.enter(ctx, op, true); err != nil {
		return "", "", err
	}
	if what := memCheck(o); what != "" {
		return "", "", memFail(op, provision.ErrInvalid, "bad "+what)
	}
	key, params := o.IdempotencyKey, fmt.Sprintf("%#v", o)
	for _, s := range c.servers {
		if key != "" && s.key == key && c.bug != "forgets keys" {
			if s.params != params && c.bug != "ignores options" {
				return "", "", memFail(op, provision.ErrConflict, "other options")
			}
			return s.ID, s.IPAddr, nil
		}
	}
	fault := c.fault
	c.fault = ""
	switch fault {
	case "capacity":
		return "", "", memFail(op, provision.ErrCapacity, "full")
	case "quota":
		if c.bug == "quota taken for capacity" {
			return "", "", memFail(op, provision.ErrCapacity, "full")
		}
		return "", "", memFail(op, provision.ErrQuota, "enough")
	case "throttle":
		return "", "", memFail(op, provision.ErrRateLimited, "slower")
	case "break":
		return "", "", memFail(op, provision.ErrUnavailable, "broken")
	}
	s := c.add(o, key, params)
	if fault == "lose" && c.bug == "repeats blindly" {
		s = c.add(o, key, params)
	}
	return s.ID, s.IPAddr, nil
}

func (c *memCloud) add(o provision.CreateOpts, key, params string) *memServer {
	c.next++
	labels := maps.Clone(o.Labels)
	labels["managed-by"] = "mem"
	s := &memServer{key: key, params: params, ssh: o.AllowSSHInbound, Server: provision.Server{
		ID: fmt.Sprintf("s-%d", c.next), Name: o.Name, Status: provision.ServerStatusRunning, IPAddr: fmt.Sprintf("203.0.113.%d", c.next),
		Region: o.Region, Size: o.Size, CreatedAt: time.Now(), Labels: labels,
	}}
	c.servers[s.ID] = s
	return s
}

var memID = regexp.MustCompile(`^s-[0-9]+$`)

func (p *memProvisioner) GetServer(ctx context.Context, id string) (provision.ServerStatus, string, error) {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "get server", false); err != nil {
		return "", "", err
	}
	s, ok := p.cloud.servers[id]
	switch {
	case ok:
		return s.Status, s.IPAddr, nil
	case !memID.MatchString(id):
		return "", "", memFail("get server", provision.ErrInvalid, "no id")
	case p.cloud.bug == "get of nothing is pending":
		return provision.ServerStatusPending, "", nil
	}
	return "", "", memFail("get server", provision.ErrNotFound, "gone")
}

func (p *memProvisioner) DeleteServer(ctx context.Context, id string) error {
	c := p.cloud
	defer c.mu.Unlock()
	if err := p.enter(ctx, "delete server", true); err != nil {
		return err
	}
	s, ok := c.servers[id]
	switch {
	case !ok && !memID.MatchString(id) && c.bug != "a malformed id is gone":
		return memFail("delete server", provision.ErrInvalid, "no id")
	case !ok && c.bug == "delete of nothing fails":
		return memFail("delete server", provision.ErrNotFound, "gone")
	case !ok:
		return nil
	}
	if c.bug == "bills after the delete" {
		c.left = append(c.left, provision.Resource{Kind: provision.KindPublicIP, ID: id, Shared: true})
	}
	if c.bug == "leaves the firewall" && s.ssh {
		c.left = append(c.left, provision.Resource{Kind: provision.KindFirewall, ID: id})
	}
	delete(c.servers, id)
	return nil
}

func (p *memProvisioner) ListServers(ctx context.Context) ([]provision.Server, error) {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "list servers", false); err != nil {
		return nil, err
	}
	var list []provision.Server
	for _, s := range p.cloud.servers {
		if len(list) < 50 || p.cloud.bug != "first page only" {
			list = append(list, s.Server)
		}
	}
	return list, nil
}

func (p *memProvisioner) ListResources(ctx context.Context) ([]provision.Resource, error) {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "audit", false); err != nil {
		return nil, err
	}
	rs := slices.Clone(p.cloud.left)
	for _, s := range p.cloud.servers {
		rs = append(rs, provision.Resource{
			Kind: provision.KindServer, ID: s.ID, Name: s.Name, ServerID: s.ID, CreatedAt: s.CreatedAt, Labels: s.Labels,
			Billable: p.cloud.bug != "servers cost nothing",
		})
	}
	return rs, nil
}

func (p *memProvisioner) DeleteResource(ctx context.Context, r provision.Resource) error {
	if r.Kind != provision.KindServer {
		return memFail("remove", provision.ErrInvalid, "no such kind")
	}
	return p.DeleteServer(ctx, r.ID)
}

func (p *memProvisioner) Preflight(ctx context.Context, o provision.CreateOpts) error {
	defer p.cloud.mu.Unlock()
	if err := p.enter(ctx, "preflight", true); err != nil {
		return err
	}
	if what := memCheck(o); what != "" {
		return memFail("preflight", provision.ErrInvalid, "bad "+what)
	}
	if p.cloud.bug == "preflight makes a server" {
		p.cloud.add(o, "preflight", "")
	}
	return nil
}
