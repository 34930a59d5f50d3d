package gcp

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

func (c simulated) ours(t *testing.T) provision.Provisioner {
	t.Helper()
	p, err := provision.Open("gcp", string(c.key(t, account)), provision.Options{
		Endpoint: c.root + "/gcp/compute/v1", ShortName: "conf", HTTPClient: &http.Client{Transport: c.wire}, Labels: map[string]string{"conf-fleet": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOurBodies takes the library through a server's whole life and holds each
// call, each body that it sends, and each answer that it reads, to the discovery
// documents and the SDK's types.
func TestOurBodies(t *testing.T) {
	c := newCloud(t)
	ctx, p := t.Context(), c.ours(t)
	opts := provision.CreateOpts{
		Region: zone, Size: "e2-small", Name: "node-1", UserData: "#cloud-config\nruncmd: []\n", IdempotencyKey: "k",
		AllowSSHInbound: true, SSHSourceCIDRs: []string{"192.0.2.0/24"}, Labels: map[string]string{"conf-node": "n"}, SSHKeys: []string{sdkKey},
	}
	if err := p.(provision.Preflighter).Preflight(ctx, opts); err != nil {
		t.Fatal(err)
	}
	id, _, err := p.CreateServer(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := p.CreateServer(ctx, opts); err != nil || again != id {
		t.Errorf("the same create again: %q, %v", again, err)
	}
	c.sim.Advance(time.Minute)
	sdkSees(t, c.service(t, account), last(id))
	if status, ip, err := p.GetServer(ctx, id); err != nil || status != provision.ServerStatusRunning || ip == "" {
		t.Errorf("get: %s, %q, %v", status, ip, err)
	}
	if list, err := p.(provision.Lister).ListServers(ctx); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if text, err := p.(provision.ConsoleReader).ConsoleOutput(ctx, id); err != nil || text == "" {
		t.Errorf("console: %q, %v", text, err)
	}
	if prices, err := p.(provision.Pricer).Prices(ctx, zone); err != nil || prices["e2-small"].Monthly == "" {
		t.Errorf("prices: %v, %v", prices, err)
	}
	if rs, err := p.(provision.Auditor).ListResources(ctx); err != nil || len(rs) < 3 {
		t.Errorf("audit: %v, %v", rs, err)
	}
	if regions, err := p.ListRegions(ctx); err != nil || len(regions) < 4 {
		t.Errorf("regions: %d, %v", len(regions), err)
	}
	if sizes, err := p.ListSizes(ctx, zone); err != nil || len(sizes) < 10 {
		t.Errorf("sizes: %d, %v", len(sizes), err)
	}
	if err := p.DeleteServer(ctx, id); err != nil {
		t.Fatal(err)
	}
	c.sim.Advance(time.Minute)
	if _, _, err := p.GetServer(ctx, id); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	if left := c.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d billable things are left", left)
	}
	if c.wire.requests < 4 || c.wire.answers < 20 {
		t.Errorf("%d requests and %d answers were checked: too few to mean something", c.wire.requests, c.wire.answers)
	}
}

// sdkSees has the SDK read what the library made, as the library meant it.
func sdkSees(t *testing.T, k *compute.Service, name string) {
	t.Helper()
	i := must[*compute.Instance](t)(k.Instances.Get(project, zone, name).Do())
	s := i.ShieldedInstanceConfig
	if !s.EnableSecureBoot || !s.EnableVtpm || !s.EnableIntegrityMonitoring || len(i.ServiceAccounts) != 0 || i.Labels["conf-node"] != "n" || i.Labels["conf-fleet"] != "a" ||
		!i.Disks[0].AutoDelete || i.NetworkInterfaces[0].AccessConfigs[0].NatIP == "" {
		t.Errorf("the machine is not as meant: %+v", i)
	}
	var open []*compute.Firewall
	for _, f := range must[*compute.FirewallList](t)(k.Firewalls.List(project).Do()).Items {
		if f.Network == i.NetworkInterfaces[0].Network && f.Direction == "INGRESS" && len(f.Allowed) > 0 {
			open = append(open, f)
		}
	}
	if len(open) != 1 || !slices.Equal(open[0].SourceRanges, []string{"192.0.2.0/24"}) || !slices.ContainsFunc(open[0].TargetTags, func(tag string) bool { return slices.Contains(i.Tags.Items, tag) }) {
		t.Errorf("what the network lets in: %+v", open)
	}
}

// TestRequestsPerLife holds the number of requests that a create and a delete
// take when the project is known already.
func TestRequestsPerLife(t *testing.T) {
	c := newCloud(t)
	p := c.ours(t)
	create := func(name string) string {
		id, _, err := p.CreateServer(t.Context(), provision.CreateOpts{Region: zone, Size: "e2-small", Name: name, UserData: "#cloud-config\n", IdempotencyKey: name})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	create("first")
	t.Logf("a cold create took %d requests", len(c.sim.Requests()))
	before := len(c.sim.Requests())
	id := create("second")
	if rs := c.sim.Requests()[before:]; len(rs) != 1 {
		t.Errorf("a warm create took %d requests, want 1: %v", len(rs), calls(rs))
	}
	c.sim.Advance(time.Minute)
	before = len(c.sim.Requests())
	if err := p.DeleteServer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	t.Logf("a delete took %d requests: %v", len(c.sim.Requests())-before, calls(c.sim.Requests()[before:]))
}

func calls(rs []cloudsim.Request) []string {
	var names []string
	for _, r := range rs {
		names = append(names, r.Call)
	}
	return names
}
