package hetzner

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

// TestOurBodies takes the library through a server's whole life and holds each
// body that it sends, and each answer that it reads, to the SDK's schema.
func TestOurBodies(t *testing.T) {
	c := newCloud(t)
	ctx := t.Context()
	p, err := provision.Open("hetzner", token, provision.Options{
		Endpoint: c.base, ShortName: "conf", HTTPClient: &http.Client{Transport: c.wire}, Labels: map[string]string{"conf-fleet": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	opts := provision.CreateOpts{
		Region: "nbg1", Size: "cax11", Name: "node-1", UserData: "#cloud-config\nruncmd: []\n", IdempotencyKey: "k",
		AllowSSHInbound: true, SSHSourceCIDRs: []string{"192.0.2.0/24"}, Labels: map[string]string{"conf-node": "n"},
		SSHKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"},
	}
	if err := p.(provision.Preflighter).Preflight(ctx, opts); err != nil {
		t.Fatal(err)
	}
	id, ip, err := p.CreateServer(ctx, opts)
	if err != nil || ip == "" {
		t.Fatalf("create: %q, %q, %v", id, ip, err)
	}
	// The SDK sees what the library made as the library meant it.
	sdk := c.client(token)
	server, _, err := sdk.Server.GetByName(ctx, "node-1")
	if err != nil || server == nil {
		t.Fatalf("the SDK does not see the server: %v", err)
	}
	inbound := 0
	for _, f := range server.PublicNet.Firewalls {
		fw, _, err := sdk.Firewall.GetByID(ctx, f.Firewall.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range fw.Rules {
			inbound++
			if r.Direction != hcloud.FirewallRuleDirectionIn || *r.Port != "22" || len(r.SourceIPs) != 1 || r.SourceIPs[0].String() != "192.0.2.0/24" {
				t.Errorf("rule: %+v", r)
			}
		}
	}
	if len(server.PublicNet.Firewalls) != 2 || inbound != 1 {
		t.Errorf("%d firewalls with %d rules, want the closed one and the one for SSH", len(server.PublicNet.Firewalls), inbound)
	}
	if _, _, err := p.GetServer(ctx, id); err != nil {
		t.Error(err)
	}
	if list, err := p.(provision.Lister).ListServers(ctx); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if _, err := p.(provision.Auditor).ListResources(ctx); err != nil {
		t.Error(err)
	}
	if _, err := p.ListRegions(ctx); err != nil {
		t.Error(err)
	}
	if _, err := p.ListSizes(ctx, "fsn1"); err != nil {
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
	if c.wire.requests < 4 || c.wire.answers < 12 {
		t.Errorf("%d requests and %d answers were checked: too few to mean something", c.wire.requests, c.wire.answers)
	}
}

// TestRequestsPerLife holds the number of requests that a create and a delete
// take when the account is known already.
func TestRequestsPerLife(t *testing.T) {
	c := newCloud(t)
	p, err := provision.Open("hetzner", token, provision.Options{Endpoint: c.base})
	if err != nil {
		t.Fatal(err)
	}
	count := func() int { return len(c.sim.Requests()) }
	create := func(name string) string {
		id, _, err := p.CreateServer(t.Context(), provision.CreateOpts{Region: "fsn1", Size: "cx23", Name: name, UserData: "#cloud-config\n", IdempotencyKey: name})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	create("first")
	before := count()
	id := create("second")
	if n := count() - before; n != 1 {
		t.Errorf("a warm create took %d requests, want 1", n)
	}
	c.sim.Advance(time.Minute)
	before = count()
	if err := p.DeleteServer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if n := count() - before; n > 2 {
		t.Errorf("a delete took %d requests, want at most 2", n)
	}
}

// TestOurUserDataBoots holds that what the library renders is run by a guest,
// and that the container that it starts is the one that was meant.
func TestOurUserDataBoots(t *testing.T) {
	started := make(chan cloudsim.Container, 1)
	sim, err := cloudsim.New(cloudsim.Options{Speed: 200, GuestDir: t.TempDir(), RunContainer: func(ctx context.Context, _ cloudsim.Guest, c cloudsim.Container) error {
		started <- c
		<-ctx.Done()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.Handler())
	defer func() {
		srv.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	}()
	data, err := provision.RenderCloudInit(provision.CloudInitParams{
		ControlPlaneAddr: "cp.example:8443", JoinToken: "swjt_abcdefghijklmnop.0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
		CAFingerprint: "sha256:" + strings.Repeat("ab", 32), NodeName: "node-1", AgentVersion: "v1.0.0", MeshEnabled: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := provision.Open("hetzner", token, provision.Options{Endpoint: srv.URL + "/hetzner/v1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.CreateServer(t.Context(), provision.CreateOpts{Region: "fsn1", Size: "cx23", Name: "node-1", UserData: data}); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-started:
		if c.User != "0:0" || c.Env["NODE_NAME"] != "node-1" || len(c.Mounts) < 4 || len(c.Devices) != 1 || len(c.CapAdd) != 1 || len(c.Args) != 1 {
			t.Errorf("container: %+v", c)
		}
		for _, v := range c.Env {
			if strings.Contains(v, "swjt_") {
				t.Error("the token is in the container's environment")
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("no container started: %+v", sim.Guests())
	}
	for _, line := range sim.Guests()[0].Console {
		if strings.Contains(line, "WARNING") {
			t.Error(line)
		}
	}
}
