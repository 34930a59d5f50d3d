package digitalocean

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// TestOurBodies takes the library through a server's whole life and holds each
// body that it sends, and each answer that it reads, to the SDK's types.
func TestOurBodies(t *testing.T) {
	c := newCloud(t)
	ctx := t.Context()
	p, err := provision.Open("digitalocean", token, provision.Options{
		Endpoint: c.base, ShortName: "conf", HTTPClient: &http.Client{Transport: c.wire}, Labels: map[string]string{"conf-fleet": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := provision.CreateOpts{
		Region: "fra1", Size: "s-1vcpu-1gb", Name: "node-1", UserData: "#cloud-config\nruncmd: []\n", IdempotencyKey: "k",
		AllowSSHInbound: true, SSHSourceCIDRs: []string{"192.0.2.0/24"}, Labels: map[string]string{"conf-node": "n", "env": "prod"},
		SSHKeys: []string{sshKey},
	}
	sdk := c.client(t, token)
	if _, err := p.ListRegions(ctx); err != nil {
		t.Error(err)
	}
	if _, err := p.ListSizes(ctx, "fra1"); err != nil {
		t.Error(err)
	}
	id, _, err := p.CreateServer(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	// The SDK sees what the library made as the library meant it.
	cover, _, err := sdk.Firewalls.ListByDroplet(ctx, number, nil)
	if err != nil {
		t.Fatal(err)
	}
	inbound := 0
	for _, f := range cover {
		for _, r := range f.InboundRules {
			inbound++
			if r.Protocol != "tcp" || r.PortRange != "22" || len(r.Sources.Addresses) != 1 || r.Sources.Addresses[0] != "192.0.2.0/24" {
				t.Errorf("rule: %+v", r)
			}
		}
		if len(f.OutboundRules) != 3 {
			t.Errorf("firewall %s lets out %+v", f.Name, f.OutboundRules)
		}
	}
	if len(cover) != 2 || inbound != 1 {
		t.Errorf("%d firewalls with %d inbound rules, want the closed one and the one for SSH", len(cover), inbound)
	}
	c.sim.Advance(time.Minute)
	droplet, _, err := sdk.Droplets.Get(ctx, number)
	if err != nil || droplet.Name != "node-1" || droplet.SizeSlug != opts.Size || droplet.Region.Slug != opts.Region {
		t.Errorf("Droplet %+v, %v", droplet, err)
	}
	status, ip, err := p.GetServer(ctx, id)
	if public, _ := droplet.PublicIPv4(); err != nil || status != provision.ServerStatusRunning || ip == "" || ip != public {
		t.Errorf("%s at %q, %v; the SDK has %q", status, ip, err, public)
	}
	if list, err := p.(provision.Lister).ListServers(ctx); err != nil || len(list) != 1 || list[0].Labels["conf-node"] != "n" || list[0].Labels["env"] != "prod" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if _, err := p.(provision.Auditor).ListResources(ctx); err != nil {
		t.Error(err)
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
	if c.wire.requests < 6 || c.wire.answers < 15 {
		t.Errorf("%d requests and %d answers were checked: too few to mean something", c.wire.requests, c.wire.answers)
	}
}

// TestPreflightIsHarmless: its request that is refused on purpose makes
// nothing, and the SDK's types know its body.
func TestPreflightIsHarmless(t *testing.T) {
	c := newCloud(t)
	p, err := provision.Open("digitalocean", token, provision.Options{Endpoint: c.base, HTTPClient: &http.Client{Transport: c.wire}})
	if err != nil {
		t.Fatal(err)
	}
	opts := provision.CreateOpts{Region: "fra1", Size: "s-1vcpu-1gb", Name: "node-1", UserData: "#cloud-config\n"}
	if err := p.(provision.Preflighter).Preflight(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if sum := c.sim.LedgerSummary(); sum.Made != 0 {
		t.Errorf("the preflight made %d things", sum.Made)
	}
}
