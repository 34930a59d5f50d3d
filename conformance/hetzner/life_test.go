// Package hetzner has Hetzner's own SDK judge the simulated cloud.
package hetzner

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/slipway-dev/slipway/cloudsim"
)

const token = "conformance0conformance0conformance0conformance0conformance00000"

// cloud is a simulated cloud, fast enough that the SDK's own waiting is short.
type cloud struct {
	sim  *cloudsim.Sim
	base string // of Hetzner's API
	wire *wireCheck
}

func newCloud(t *testing.T) cloud {
	t.Helper()
	sim, err := cloudsim.New(cloudsim.Options{Seed: 1, Speed: 100, GuestDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	srv := httptest.NewServer(sim.Handler())
	t.Cleanup(srv.Close)
	return cloud{sim: sim, base: srv.URL + "/hetzner/v1", wire: newWireCheck(t)}
}

func (c cloud) client(tok string) *hcloud.Client {
	return hcloud.NewClient(
		hcloud.WithEndpoint(c.base), hcloud.WithToken(tok), hcloud.WithHTTPClient(&http.Client{Transport: c.wire}),
		hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: hcloud.ConstantBackoff(10 * time.Millisecond)}),
		hcloud.WithRetryOpts(hcloud.RetryOpts{BackoffFunc: hcloud.ConstantBackoff(10 * time.Millisecond), MaxRetries: 3}),
	)
}

func TestCatalog(t *testing.T) {
	c := newCloud(t)
	api, ctx := c.client(token), t.Context()

	locations, err := api.Location.All(ctx)
	if err != nil || len(locations) < 3 {
		t.Fatalf("locations: %d, %v", len(locations), err)
	}
	types, err := api.ServerType.All(ctx)
	if err != nil || len(types) < 5 {
		t.Fatalf("server types: %d, %v", len(types), err)
	}
	arm := false
	for _, st := range types {
		arm = arm || st.Architecture == hcloud.ArchitectureARM
		for _, p := range st.Pricings {
			if p.Monthly.Gross == "" || p.Location.Name == "" {
				t.Errorf("%s: a price without an amount or a location", st.Name)
			}
		}
	}
	if !arm {
		t.Error("no server type has the arm architecture")
	}
	for _, arch := range []hcloud.Architecture{hcloud.ArchitectureX86, hcloud.ArchitectureARM} {
		img, _, err := api.Image.GetForArchitecture(ctx, "ubuntu-24.04", arch)
		if err != nil || img == nil || img.Architecture != arch {
			t.Errorf("ubuntu-24.04 for %s: %v, %v", arch, img, err)
		}
	}
	pricing, _, err := api.Pricing.Get(ctx)
	if err != nil || len(pricing.ServerTypes) != len(types) || pricing.Currency == "" {
		t.Errorf("pricing: %v", err)
	}
}

func TestServerLife(t *testing.T) {
	c := newCloud(t)
	api := c.client(token)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	fw, _, err := api.Firewall.Create(ctx, hcloud.FirewallCreateOpts{Name: "closed", Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := api.SSHKey.Create(ctx, hcloud.SSHKeyCreateOpts{
		Name: "me", PublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example",
	})
	if err != nil {
		t.Fatal(err)
	}
	res, _, err := api.Server.Create(ctx, hcloud.ServerCreateOpts{
		Name: "web-1", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "ubuntu-24.04"},
		Location: &hcloud.Location{Name: "fsn1"}, UserData: "#cloud-config\nruncmd: []\n", Labels: map[string]string{"app": "web"},
		SSHKeys: []*hcloud.SSHKey{key}, Firewalls: []*hcloud.ServerCreateFirewall{{Firewall: *fw.Firewall}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.RootPassword != "" {
		t.Error("a root password was made although a key was given")
	}
	if res.Server.PublicNet.IPv4.IP == nil || len(res.Server.PublicNet.Firewalls) != 1 {
		t.Errorf("public net: %+v", res.Server.PublicNet)
	}
	if err := api.Action.WaitFor(ctx, append(res.NextActions, res.Action)...); err != nil {
		t.Fatal(err)
	}
	server, _, err := api.Server.GetByName(ctx, "web-1")
	if err != nil || server == nil || server.Status != hcloud.ServerStatusRunning {
		t.Fatalf("after its actions the server is %+v, %v", server, err)
	}
	if server.PublicNet.Firewalls[0].Status != hcloud.FirewallStatusApplied {
		t.Errorf("firewall: %s", server.PublicNet.Firewalls[0].Status)
	}
	listed, err := api.Server.AllWithOpts(ctx, hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{LabelSelector: "app=web"}})
	if err != nil || len(listed) != 1 || listed[0].ID != server.ID {
		t.Errorf("by label: %v, %v", listed, err)
	}
	reboot, _, err := api.Server.Reboot(ctx, server)
	if err == nil {
		err = api.Action.WaitFor(ctx, reboot)
	}
	if err != nil {
		t.Errorf("reboot: %v", err)
	}
	if _, err := api.Firewall.Delete(ctx, fw.Firewall); !hcloud.IsError(err, hcloud.ErrorCodeResourceInUse) {
		t.Errorf("delete of a firewall in use: %v", err)
	}
	del, _, err := api.Server.DeleteWithResult(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Action.WaitFor(ctx, del.Action); err != nil {
		t.Fatal(err)
	}
	if gone, _, err := api.Server.GetByID(ctx, server.ID); err != nil || gone != nil {
		t.Errorf("after the delete: %v, %v", gone, err)
	}
	if _, err := api.Firewall.Delete(ctx, fw.Firewall); err != nil {
		t.Error(err)
	}
	ips, err := api.PrimaryIP.All(ctx)
	if err != nil || len(ips) != 0 {
		t.Errorf("primary IPs are left: %v, %v", ips, err)
	}
	if sum := c.sim.LedgerSummary(); sum.Left != 0 || sum.Made != 3 {
		t.Errorf("ledger: %+v, want 3 made (server, two addresses) and none left", sum)
	}
	if c.wire.answers < 15 {
		t.Errorf("only %d answers were checked against the schema", c.wire.answers)
	}
}

func TestPaging(t *testing.T) {
	c := newCloud(t)
	api := c.client(token)
	for i := range 60 {
		opts := hcloud.FirewallCreateOpts{Name: "fw-" + time.Unix(int64(i), 0).UTC().Format("05-04")}
		if _, _, err := api.Firewall.Create(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
	}
	all, err := api.Firewall.All(t.Context())
	if err != nil || len(all) != 60 {
		t.Errorf("%d firewalls, %v", len(all), err)
	}
}

func TestErrorsAreRecognised(t *testing.T) {
	opts := hcloud.ServerCreateOpts{
		Name: "x-1", ServerType: &hcloud.ServerType{Name: "cx23"}, Image: &hcloud.Image{Name: "ubuntu-24.04"}, Location: &hcloud.Location{Name: "fsn1"},
	}
	for _, tt := range []struct {
		name, token string
		fault       cloudsim.Effect
		change      func(*hcloud.ServerCreateOpts)
		twice       bool
		want        hcloud.ErrorCode
	}{
		{name: "capacity", fault: cloudsim.EffectCapacity, want: hcloud.ErrorCodeResourceUnavailable},
		{name: "quota", fault: cloudsim.EffectQuota, want: hcloud.ErrorCodeResourceLimitExceeded},
		{name: "throttle", fault: cloudsim.EffectRateLimit, want: hcloud.ErrorCodeRateLimitExceeded},
		{name: "wrong token", token: "invalid", want: hcloud.ErrorCodeUnauthorized},
		{name: "read-only token", token: "readonly", want: hcloud.ErrorCodeForbidden},
		{name: "name taken", twice: true, want: hcloud.ErrorCodeUniquenessError},
		{name: "sold out", change: func(o *hcloud.ServerCreateOpts) {
			o.ServerType, o.Location = &hcloud.ServerType{Name: "cax31"}, &hcloud.Location{Name: "hel1"}
		}, want: hcloud.ErrorCodeResourceUnavailable},
		{name: "retired type", change: func(o *hcloud.ServerCreateOpts) { o.ServerType = &hcloud.ServerType{Name: "cx22"} }, want: hcloud.ErrorCodeInvalidServerType},
		{name: "unknown type", change: func(o *hcloud.ServerCreateOpts) { o.ServerType = &hcloud.ServerType{Name: "nope"} }, want: hcloud.ErrorCodeInvalidInput},
		{name: "name", change: func(o *hcloud.ServerCreateOpts) { o.Name = "under_score" }, want: hcloud.ErrorCodeInvalidInput},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCloud(t)
			tok := token
			if tt.token != "" {
				tok = tt.token
			}
			if tt.fault != "" {
				if _, err := c.sim.AddFault(cloudsim.Fault{Call: "create server", Effect: tt.fault}); err != nil {
					t.Fatal(err)
				}
			}
			o := opts
			if tt.change != nil {
				tt.change(&o)
			}
			_, _, err := c.client(tok).Server.Create(t.Context(), o)
			if tt.twice {
				_, _, err = c.client(tok).Server.Create(t.Context(), o)
			}
			if !hcloud.IsError(err, tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			var e hcloud.Error
			if errors.As(err, &e) && e.Response() == nil {
				t.Error("the error has no answer, and so no correlation id")
			}
		})
	}
}
