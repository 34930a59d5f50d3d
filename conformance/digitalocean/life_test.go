// Package digitalocean has DigitalOcean's own SDK judge the simulated cloud.
package digitalocean

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	"github.com/digitalocean/godo/util"

	"github.com/slipway-dev/slipway/cloudsim"
)

const (
	token  = "dop_v1_conformance0conformance0conformance0conformance0conformance0000"
	sshKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"
)

type cloud struct {
	sim  *cloudsim.Sim
	base string
	wire *wireCheck
}

// newCloud returns a simulated cloud whose clock the test moves.
func newCloud(t *testing.T) cloud {
	t.Helper()
	sim, err := cloudsim.New(cloudsim.Options{Seed: 1, Manual: true, GuestDir: t.TempDir()})
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
	return cloud{sim: sim, base: srv.URL, wire: &wireCheck{t: t}}
}

// bearer puts the token on a request, as the SDK's users do with oauth2.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func (c cloud) client(t *testing.T, token string) *godo.Client {
	t.Helper()
	api, err := godo.New(&http.Client{Transport: bearer{token, c.wire}}, godo.SetBaseURL(c.base+"/"))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// all follows the SDK's own links through a list.
func all[T any](t *testing.T, list func(context.Context, *godo.ListOptions) ([]T, *godo.Response, error)) []T {
	t.Helper()
	var items []T
	opts := &godo.ListOptions{PerPage: 10}
	for {
		part, resp, err := list(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, part...)
		if resp.Links == nil || resp.Links.IsLastPage() {
			if resp.Meta == nil || resp.Meta.Total != len(items) {
				t.Fatalf("%d items, the list says %+v", len(items), resp.Meta)
			}
			return items
		}
		page, err := resp.Links.CurrentPage()
		if err != nil {
			t.Fatal(err)
		}
		opts.Page = page + 1
	}
}

func createRequest(name string) *godo.DropletCreateRequest {
	return &godo.DropletCreateRequest{
		Name: name, Region: "fra1", Size: "s-1vcpu-1gb", Image: godo.DropletCreateImage{Slug: "ubuntu-24-04-x64"},
		UserData: "#cloud-config\nruncmd: []\n", Tags: []string{"web", "env:prod"}, IPv6: true,
	}
}

func TestCatalog(t *testing.T) {
	c := newCloud(t)
	api := c.client(t, token)
	account, resp, err := api.Account.Get(t.Context())
	if err != nil || account.Status != "active" || account.DropletLimit == 0 || resp.Rate.Limit != 5000 || resp.Rate.Remaining == 0 {
		t.Fatalf("account %+v, rate %+v, %v", account, resp.Rate, err)
	}
	closed := 0
	for _, r := range all(t, api.Regions.List) {
		if r.Slug == "" || r.Name == "" || r.Available != (len(r.Sizes) > 0) {
			t.Errorf("region %+v", r)
		}
		if !r.Available {
			closed++
		}
	}
	sizes := all(t, api.Sizes.List)
	for _, s := range sizes {
		if s.Slug == "" || s.PriceMonthly <= 0 || s.PriceHourly <= 0 || s.Available != (len(s.Regions) > 0) {
			t.Errorf("size %+v", s)
		}
	}
	if closed == 0 || len(sizes) < 21 {
		t.Errorf("%d closed regions, %d sizes: there must be some of the one, and pages of the other", closed, len(sizes))
	}
	image, _, err := api.Images.GetBySlug(t.Context(), "ubuntu-24-04-x64")
	if err != nil || image.Distribution != "Ubuntu" || image.Status != "available" {
		t.Errorf("image %+v, %v", image, err)
	}
	if images := all(t, api.Images.ListDistribution); len(images) < 3 {
		t.Errorf("%d images", len(images))
	}
	if _, resp, err := api.Images.GetBySlug(t.Context(), "ubuntu-4-04-x64"); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("an image that is none: %v", err)
	}
}

// TestLife takes a Droplet through its whole life as the SDK's users do.
func TestLife(t *testing.T) {
	c := newCloud(t)
	api, ctx := c.client(t, token), t.Context()
	if _, _, err := api.Tags.Create(ctx, &godo.TagCreateRequest{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	everywhere := &godo.Destinations{Addresses: []string{"0.0.0.0/0", "::/0"}}
	firewall, _, err := api.Firewalls.Create(ctx, &godo.FirewallRequest{
		Name: "closed", Tags: []string{"web"}, OutboundRules: []godo.OutboundRule{{Protocol: "tcp", PortRange: "all", Destinations: everywhere}, {Protocol: "icmp", Destinations: everywhere}},
	})
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := api.Keys.Create(ctx, &godo.KeyCreateRequest{Name: "me", PublicKey: sshKey})
	if err != nil {
		t.Fatal(err)
	}
	req := createRequest("web-1")
	req.SSHKeys = []godo.DropletCreateSSHKey{{Fingerprint: key.Fingerprint}}
	droplet, resp, err := api.Droplets.Create(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if droplet.Status != "new" || len(droplet.Networks.V4) != 0 || len(resp.Links.Actions) != 1 {
		t.Errorf("right after the create: %+v, links %+v", droplet, resp.Links)
	}
	// A tag covers from the first moment.
	cover, _, err := api.Firewalls.ListByDroplet(ctx, droplet.ID, nil)
	if err != nil || len(cover) != 1 || cover[0].ID != firewall.ID {
		t.Errorf("the firewalls of the new Droplet: %+v, %v", cover, err)
	}
	if _, err := api.Droplets.Delete(ctx, droplet.ID); err == nil || !strings.Contains(err.Error(), "pending event") {
		t.Errorf("a delete while it is made: %v", err)
	}
	c.sim.Advance(2 * time.Second)
	droplet, _, err = api.Droplets.Get(ctx, droplet.ID)
	if public, _ := droplet.PublicIPv4(); err != nil || public != "" || len(droplet.Networks.V4) != 1 {
		t.Errorf("after two seconds only the private address should be there: %+v, %v", droplet.Networks, err)
	}
	c.sim.Advance(time.Minute)
	if err := util.WaitForActive(ctx, api, resp.Links.Actions[0].HREF); err != nil {
		t.Fatal(err)
	}
	droplet, _, err = api.Droplets.Get(ctx, droplet.ID)
	v4, _ := droplet.PublicIPv4()
	v6, _ := droplet.PublicIPv6()
	if err != nil || droplet.Status != "active" || v4 == "" || v6 == "" || droplet.Locked {
		t.Fatalf("after its action: %+v, %v", droplet, err)
	}
	for what, list := range map[string]func(context.Context, *godo.ListOptions) ([]godo.Droplet, *godo.Response, error){
		"by tag": func(ctx context.Context, o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
			return api.Droplets.ListByTag(ctx, "env:prod", o)
		},
		"by name": func(ctx context.Context, o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
			return api.Droplets.ListByName(ctx, "WEB-1", o)
		},
		"all": api.Droplets.List,
	} {
		if got := all(t, list); len(got) != 1 || got[0].ID != droplet.ID {
			t.Errorf("listed %s: %+v", what, got)
		}
	}
	action, _, err := api.DropletActions.Reboot(ctx, droplet.ID)
	if err != nil || action.Status != godo.ActionInProgress {
		t.Fatalf("reboot: %+v, %v", action, err)
	}
	c.sim.Advance(time.Minute)
	if action, _, err = api.DropletActions.Get(ctx, droplet.ID, action.ID); err != nil || action.Status != godo.ActionCompleted || action.CompletedAt == nil {
		t.Errorf("after the reboot: %+v, %v", action, err)
	}
	if _, err := api.Droplets.Delete(ctx, droplet.ID); err != nil {
		t.Fatal(err)
	}
	c.sim.Advance(time.Minute)
	if _, resp, err := api.Droplets.Get(ctx, droplet.ID); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("after the delete: %v", err)
	}
	if _, err := api.Droplets.Delete(ctx, droplet.ID); err == nil {
		t.Error("a second delete found a Droplet")
	}
	if sum := c.sim.LedgerSummary(); sum.Made != 1 || sum.Left != 0 {
		t.Errorf("ledger %+v", sum)
	}
	if c.wire.answers < 15 {
		t.Errorf("only %d answers were checked", c.wire.answers)
	}
}

// TestFirewalls has the parts of a firewall changed one by one.
func TestFirewalls(t *testing.T) {
	c := newCloud(t)
	api, ctx := c.client(t, token), t.Context()
	droplet, _, err := api.Droplets.Create(ctx, createRequest("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	ssh := godo.InboundRule{Protocol: "tcp", PortRange: "22", Sources: &godo.Sources{Addresses: []string{"192.0.2.0/24"}}}
	fw, _, err := api.Firewalls.Create(ctx, &godo.FirewallRequest{Name: "ssh", InboundRules: []godo.InboundRule{ssh}})
	if err != nil {
		t.Fatal(err)
	}
	if _, resp, err := api.Firewalls.Create(ctx, &godo.FirewallRequest{Name: "ssh", InboundRules: []godo.InboundRule{ssh}}); err == nil || resp.StatusCode != http.StatusConflict {
		t.Errorf("a second firewall of the name: %v", err)
	}
	for _, bad := range []*godo.FirewallRequest{
		{Name: "empty"}, {Name: "under_score", InboundRules: []godo.InboundRule{ssh}}, {Name: "no-tag", InboundRules: []godo.InboundRule{ssh}, Tags: []string{"never-made"}},
		{Name: "ports", InboundRules: []godo.InboundRule{{Protocol: "tcp", PortRange: "0-99999", Sources: ssh.Sources}}},
		{Name: "nobody", InboundRules: []godo.InboundRule{{Protocol: "tcp", PortRange: "22", Sources: &godo.Sources{}}}},
	} {
		if _, resp, err := api.Firewalls.Create(ctx, bad); err == nil || resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("firewall %q: %v", bad.Name, err)
		}
	}
	http80 := godo.InboundRule{Protocol: "tcp", PortRange: "80", Sources: ssh.Sources}
	_, err1 := api.Firewalls.AddDroplets(ctx, fw.ID, droplet.ID)
	_, err2 := api.Firewalls.AddTags(ctx, fw.ID, "web")
	_, err3 := api.Firewalls.AddRules(ctx, fw.ID, &godo.FirewallRulesRequest{InboundRules: []godo.InboundRule{http80}})
	_, err4 := api.Firewalls.RemoveRules(ctx, fw.ID, &godo.FirewallRulesRequest{InboundRules: []godo.InboundRule{ssh}})
	fw, _, err5 := api.Firewalls.Get(ctx, fw.ID)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	if len(fw.DropletIDs) != 1 || len(fw.Tags) != 1 || len(fw.InboundRules) != 1 || fw.InboundRules[0].PortRange != "80" {
		t.Errorf("firewall %+v", fw)
	}
	if _, err := api.Tags.Delete(ctx, "web"); err != nil {
		t.Fatal(err)
	}
	if fw, _, err = api.Firewalls.Get(ctx, fw.ID); err != nil || len(fw.Tags) != 0 {
		t.Errorf("after its tag was deleted: %+v, %v", fw, err)
	}
	if _, err := api.Firewalls.Delete(ctx, fw.ID); err != nil {
		t.Error(err)
	}
}

// TestErrors has each refusal read as the SDK reads it.
func TestErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		token  string
		fault  cloudsim.Effect
		change func(*godo.DropletCreateRequest)
		status int
		text   string
	}{
		"capacity":        {fault: cloudsim.EffectCapacity, status: 422, text: "not available in this region"},
		"sold out":        {change: func(r *godo.DropletCreateRequest) { r.Region, r.Size = "sgp1", "s-8vcpu-16gb" }, status: 422, text: "Size is not available in this region"},
		"closed region":   {change: func(r *godo.DropletCreateRequest) { r.Region = "nyc2" }, status: 422, text: "Region is not available"},
		"quota":           {fault: cloudsim.EffectQuota, status: 422, text: "will exceed your droplet limit"},
		"throttle":        {fault: cloudsim.EffectRateLimit, status: 429, text: "Rate limit"},
		"wrong token":     {token: "invalid", status: 401, text: "Unable to authenticate"},
		"read-only token": {token: "readonly", status: 403, text: "not authorized"},
		"name":            {change: func(r *godo.DropletCreateRequest) { r.Name = "under_score" }, status: 422, text: "valid hostname characters"},
		"size":            {change: func(r *godo.DropletCreateRequest) { r.Size = "s-9vcpu" }, status: 422, text: "not a valid size"},
		"image":           {change: func(r *godo.DropletCreateRequest) { r.Image.Slug = "ubuntu-4-04" }, status: 422, text: "invalid image"},
		"key":             {change: func(r *godo.DropletCreateRequest) { r.SSHKeys = []godo.DropletCreateSSHKey{{ID: 7}} }, status: 422, text: "invalid key identifiers"},
		"tag":             {change: func(r *godo.DropletCreateRequest) { r.Tags = []string{"a.b"} }, status: 422, text: "Tag name"},
		"user-data":       {change: func(r *godo.DropletCreateRequest) { r.UserData = strings.Repeat("#", 64<<10+1) }, status: 422, text: "64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			if tt.fault != "" {
				if _, err := c.sim.AddFault(cloudsim.Fault{Call: "create server", Effect: tt.fault}); err != nil {
					t.Fatal(err)
				}
			}
			req := createRequest("web-1")
			if tt.change != nil {
				tt.change(req)
			}
			tok := tt.token
			if tok == "" {
				tok = token
			}
			_, _, err := c.client(t, tok).Droplets.Create(t.Context(), req)
			var e *godo.ErrorResponse
			if !errors.As(err, &e) || e.Response.StatusCode != tt.status || !strings.Contains(e.Message, tt.text) || e.RequestID == "" {
				t.Errorf("got %v, want HTTP %d with %q and a request id", err, tt.status, tt.text)
			}
			if sum := c.sim.LedgerSummary(); sum.Made != 0 {
				t.Errorf("a refused create made %d things", sum.Made)
			}
		})
	}
}

// TestLimits holds both limits and their headers as the SDK reads them.
func TestLimits(t *testing.T) {
	c := newCloud(t)
	api := c.client(t, token)
	var err error
	asked := 0
	for ; err == nil && asked < 1000; asked++ {
		_, _, err = api.Account.Get(t.Context())
	}
	var e *godo.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != http.StatusTooManyRequests || asked != 251 {
		t.Fatalf("request %d: %v, want 250 a minute", asked, err)
	}
	if wait, _ := strconv.Atoi(e.Response.Header.Get("Retry-After")); wait < 1 || wait > 61 {
		t.Errorf("Retry-After is %q", e.Response.Header.Get("Retry-After"))
	}
	c.sim.Advance(time.Minute)
	_, resp, err := api.Account.Get(t.Context())
	if err != nil || resp.Rate.Remaining != 5000-251 || !resp.Rate.Reset.After(c.sim.Now()) {
		t.Errorf("a minute later: %+v, %v", resp.Rate, err)
	}
}

// TestACreateThatFailsLater has the action errored, and the Droplet new for
// good.
func TestACreateThatFailsLater(t *testing.T) {
	c := newCloud(t)
	if _, err := c.sim.AddFault(cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	api := c.client(t, token)
	droplet, resp, err := api.Droplets.Create(t.Context(), createRequest("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	c.sim.Advance(2 * time.Minute)
	action, _, err := api.DropletActions.GetByURI(t.Context(), resp.Links.Actions[0].HREF)
	if err != nil || action.Status != "errored" {
		t.Errorf("action %+v, %v", action, err)
	}
	if droplet, _, err = api.Droplets.Get(t.Context(), droplet.ID); err != nil || droplet.Status != "new" {
		t.Errorf("Droplet %+v, %v", droplet, err)
	}
	if _, err := api.Droplets.Delete(t.Context(), droplet.ID); err != nil {
		t.Error(err)
	}
}

// TestKeysTagsVolumes covers the things beside Droplets.
func TestKeysTagsVolumes(t *testing.T) {
	c := newCloud(t)
	api, ctx := c.client(t, token), t.Context()
	key, _, err := api.Keys.Create(ctx, &godo.KeyCreateRequest{Name: "me", PublicKey: sshKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, resp, err := api.Keys.Create(ctx, &godo.KeyCreateRequest{Name: "again", PublicKey: sshKey}); err == nil || resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the same key again: %v", err)
	}
	if got, _, err := api.Keys.GetByFingerprint(ctx, key.Fingerprint); err != nil || got.ID != key.ID {
		t.Errorf("by fingerprint: %+v, %v", got, err)
	}
	if got, _, err := api.Keys.UpdateByID(ctx, key.ID, &godo.KeyUpdateRequest{Name: "mine"}); err != nil || got.Name != "mine" {
		t.Errorf("renamed: %+v, %v", got, err)
	}
	droplet, _, err := api.Droplets.Create(ctx, createRequest("web-1"))
	if err != nil {
		t.Fatal(err)
	}
	volume, _, err := api.Storage.CreateVolume(ctx, &godo.VolumeCreateRequest{Name: "data", Region: "fra1", SizeGigaBytes: 10, Tags: []string{"web"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := api.StorageActions.Attach(ctx, volume.ID, droplet.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Storage.DeleteVolume(ctx, volume.ID); err == nil {
		t.Error("an attached volume was deleted")
	}
	tag, _, err := api.Tags.Get(ctx, "web")
	if err != nil || tag.Resources.Droplets.Count != 1 || tag.Resources.Volumes.Count != 1 || tag.Resources.Count != 2 {
		t.Errorf("tag %+v, %v", tag.Resources, err)
	}
	// Case does not tell tags apart, but only the first one's is answered to.
	if _, _, err := api.Tags.Create(ctx, &godo.TagCreateRequest{Name: "WEB"}); err != nil {
		t.Error(err)
	}
	if _, resp, err := api.Tags.Get(ctx, "WEB"); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a tag in another case: %v", err)
	}
	if _, err := api.Tags.UntagResources(ctx, "web", &godo.UntagResourcesRequest{Resources: []godo.Resource{{ID: strconv.Itoa(droplet.ID), Type: godo.DropletResourceType}}}); err != nil {
		t.Error(err)
	}
	if got := all(t, func(ctx context.Context, o *godo.ListOptions) ([]godo.Droplet, *godo.Response, error) {
		return api.Droplets.ListByTag(ctx, "web", o)
	}); len(got) != 0 {
		t.Errorf("still tagged: %+v", got)
	}
	if _, err := api.Keys.DeleteByID(ctx, key.ID); err != nil {
		t.Error(err)
	}
}
