package azure

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

func (c simulated) ours(t *testing.T) provision.Provisioner {
	t.Helper()
	credential, err := json.Marshal(map[string]string{
		"tenant_id": tenant, "client_id": client, "client_secret": secret, "subscription_id": subscription, "resource_group": group, "authority_host": c.base,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := provision.Open("azure", string(credential), provision.Options{
		Endpoint: c.base + "/azure", ShortName: "conf", HTTPClient: &http.Client{Transport: c.wire}, Labels: map[string]string{"conf-fleet": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOurBodies takes the library through a server's whole life and holds each
// body that it sends, and each answer that it reads, to the SDK's types.
func TestOurBodies(t *testing.T) {
	c := newCloud(t)
	ctx, p := t.Context(), c.ours(t)
	opts := provision.CreateOpts{
		Region: region, Size: "Standard_D2s_v5", Name: "node-1", UserData: "#cloud-config\nruncmd: []\n", IdempotencyKey: "k",
		AllowSSHInbound: true, SSHSourceCIDRs: []string{"192.0.2.0/24"}, Labels: map[string]string{"conf-node": "n"}, SSHKeys: []string{sdkKey},
	}
	if err := p.(provision.Preflighter).Preflight(ctx, opts); err != nil {
		t.Fatal(err)
	}
	id, _, err := p.CreateServer(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	c.sim.Advance(time.Minute)
	// The SDK sees what the library made as the library meant it.
	k := c.clients(t, secret)
	vm, err := k.vms.Get(ctx, group, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := vm.Properties
	if *v.SecurityProfile.SecurityType != "TrustedLaunch" || !*v.SecurityProfile.UefiSettings.SecureBootEnabled || !*v.OSProfile.LinuxConfiguration.DisablePasswordAuthentication ||
		v.OSProfile.AdminPassword != nil || v.UserData != nil || *v.StorageProfile.OSDisk.DeleteOption != "Delete" ||
		*v.NetworkProfile.NetworkInterfaces[0].Properties.DeleteOption != "Delete" || *vm.Tags["conf-node"] != "n" || *v.OSProfile.ComputerName != "node-1" {
		t.Errorf("the machine is not as meant: %+v", v)
	}
	wall, err := k.walls.Get(ctx, group, id+"-nsg", nil)
	if err != nil || len(wall.Properties.SecurityRules) != 1 || *wall.Properties.SecurityRules[0].Properties.SourceAddressPrefixes[0] != "192.0.2.0/24" ||
		len(wall.Properties.NetworkInterfaces) != 1 {
		t.Errorf("security group: %+v, %v", wall.Properties, err)
	}
	if status, ip, err := p.GetServer(ctx, id); err != nil || status != provision.ServerStatusRunning || ip == "" {
		t.Errorf("get: %s, %q, %v", status, ip, err)
	}
	if list, err := p.(provision.Lister).ListServers(ctx); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if text, err := p.(provision.ConsoleReader).ConsoleOutput(ctx, id); err != nil || text == "" {
		t.Errorf("console: %q, %v", text, err)
	}
	if prices, err := p.(provision.Pricer).Prices(ctx, region); err != nil || prices["Standard_D2s_v5"].Monthly == "" {
		t.Errorf("prices: %v, %v", prices, err)
	}
	if rs, err := p.(provision.Auditor).ListResources(ctx); err != nil || len(rs) != 6 {
		t.Errorf("audit: %v, %v", rs, err)
	}
	if _, err := p.ListRegions(ctx); err != nil {
		t.Error(err)
	}
	if sizes, err := p.ListSizes(ctx, region); err != nil || len(sizes) < 10 {
		t.Errorf("sizes: %d, %v", len(sizes), err)
	}
	if err := p.DeleteServer(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.GetServer(ctx, id); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	if left := c.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d billable things are left", left)
	}
	if c.wire.requests < 6 || c.wire.answers < 20 {
		t.Errorf("%d requests and %d answers were checked: too few to mean something", c.wire.requests, c.wire.answers)
	}
}

// TestRequestsPerLife holds the number of requests that a create and a delete
// take when the account is known already.
func TestRequestsPerLife(t *testing.T) {
	c := newCloud(t)
	p := c.ours(t)
	count := func() int { return len(c.sim.Requests()) }
	create := func(name, key string) string {
		id, _, err := p.CreateServer(t.Context(), provision.CreateOpts{Region: region, Size: "Standard_B2s", Name: name, UserData: "#cloud-config\n", IdempotencyKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	create("first", "1")
	t.Logf("a cold create took %d requests", count())
	before := count()
	create("second", "")
	if n := count() - before; n > 3 {
		t.Errorf("a warm create without key took %d requests, want at most 3: %v", n, calls(c.sim.Requests()[before:]))
	}
	before = count()
	id := create("third", "3")
	if n := count() - before; n > 4 {
		t.Errorf("a warm create took %d requests, want at most 4: %v", n, calls(c.sim.Requests()[before:]))
	}
	c.sim.Advance(time.Minute)
	before = count()
	if err := p.DeleteServer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	t.Logf("a delete that is waited for took %d requests: %v", count()-before, calls(c.sim.Requests()[before:]))
}

func calls(rs []cloudsim.Request) []string {
	var names []string
	for _, r := range rs {
		names = append(names, r.Call)
	}
	return names
}
