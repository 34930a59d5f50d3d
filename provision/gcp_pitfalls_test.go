package provision_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

// The network of servers has no rule that lets anything in, SSH opens this
// server alone, to whom it was opened, and closes with it.
func TestGCPInbound(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		open := gcpOpts("node-1")
		open.AllowSSHInbound, open.SSHSourceCIDRs = true, []string{"198.51.100.0/24", "2001:db8::/32"}
		id, closed := mustCreate(t, g, open), mustCreate(t, g, gcpOpts("node-2"))
		rules := c.opening(t, id)
		if len(rules) != 1 || !slices.Equal(rules[0].SourceRanges, []string{"198.51.100.0/24"}) || rules[0].Allowed[0].IPProtocol != "tcp" || !slices.Equal(rules[0].Allowed[0].Ports, []string{"22"}) {
			t.Errorf("rules for the open server: %+v", rules)
		}
		if rules := c.opening(t, closed); len(rules) > 0 {
			t.Errorf("rules for the closed server: %+v", rules)
		}
		if err := g.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var page struct{ Items []gcpWireFirewall }
		c.call(t, http.MethodGet, "/global/firewalls", "", &page)
		for _, f := range page.Items {
			if !strings.HasPrefix(f.Name, "default-") {
				t.Errorf("firewall %s is left", f.Name)
			}
		}
	})
}

// What the server is made of: hardened, with no account of its own, on the
// image and disk that were asked for.
func TestGCPMachine(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGuBsdPjjDbW5n2I6ZGRYLK8q2qL4F2m1N0b6l0b6q9X me@home"
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		for name, w := range map[string]struct {
			change   func(*provision.CreateOpts)
			disk     string
			arch     string
			secure   bool
			metadata map[string]string
		}{
			"plain": {func(*provision.CreateOpts) {}, "30", "X86_64", true, map[string]string{
				"user-data": "#cloud-config\n{}\n", "block-project-ssh-keys": "TRUE", "serial-port-enable": "FALSE",
			}},
			"arm": {func(o *provision.CreateOpts) { o.Size, o.Architecture, o.DiskGB = "c4a-standard-1", "arm", 50 }, "50", "ARM64", false, nil},
			"keys": {func(o *provision.CreateOpts) { o.SSHKeys, o.Image = []string{key}, "ubuntu-minimal-2404-lts-amd64" }, "30", "X86_64", false, map[string]string{
				"ssh-keys": "ubuntu:" + key, "enable-oslogin": "FALSE",
			}},
			"custom":    {func(o *provision.CreateOpts) { o.Size = "n2-custom-2-4096" }, "30", "X86_64", true, nil},
			"hyperdisk": {func(o *provision.CreateOpts) { o.Size = "n4-standard-2" }, "30", "X86_64", true, nil},
			"gpu":       {func(o *provision.CreateOpts) { o.Size = "g2-standard-4" }, "30", "X86_64", true, nil},
		} {
			opts := gcpOpts(name)
			w.change(&opts)
			i := c.instance(t, mustCreate(t, g, opts))
			if len(i.Disks) != 1 || i.Disks[0].DiskSizeGb != w.disk || i.Disks[0].Architecture != w.arch {
				t.Errorf("%s: disks %+v", name, i.Disks)
			}
			if i.ShieldedInstanceConfig.EnableSecureBoot != w.secure || len(i.ServiceAccounts) > 0 {
				t.Errorf("%s: secure boot %v, accounts %v", name, i.ShieldedInstanceConfig.EnableSecureBoot, i.ServiceAccounts)
			}
			have := map[string]string{}
			for _, item := range i.Metadata.Items {
				have[item.Key] = item.Value
			}
			for k, v := range w.metadata {
				if have[k] != v && !(k == "ssh-keys" && strings.HasPrefix(v, have[k])) || have[k] == "" {
					t.Errorf("%s: metadata %s is %q, want %q", name, k, have[k], v)
				}
			}
		}
	})
}

// Prices follow from the catalogue; types that are more than cores and memory
// have none.
func TestGCPPrices(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		prices, err := g.Prices(t.Context(), "us-central1-a")
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[string]string{
			"e2-standard-2":  "0.067006", // 2 · 0.021811 + 8 · 0.002923
			"e2-small":       "0.0167515",
			"n1-standard-1":  "0.04749975",
			"n2d-highcpu-4":  "0.124752",
			"c4a-standard-1": "0.043942",
			"g2-standard-4":  "", "f1-micro": "", "n2-custom-2-4096": "",
		} {
			if got := prices[size]; got.Hourly != want || want != "" && got.Currency != "USD" {
				t.Errorf("%s costs %+v, want %q", size, got, want)
			}
		}
		before := len(c.sim.Requests())
		if again, err := g.Prices(t.Context(), "us-central1-a"); err != nil || len(again) != len(prices) || len(c.sim.Requests()) != before {
			t.Errorf("the second time: %d prices, %v, %d requests", len(again), err, len(c.sim.Requests())-before)
		}
		// A catalogue that cannot be had is no failure.
		c.fault(t, cloudsim.Fault{Call: "list prices", Effect: cloudsim.EffectStatus, Status: 403, Code: "accessNotConfigured"})
		if none, err := c.open(t, "other").Prices(t.Context(), "us-central1-a"); err != nil || len(none) != 0 {
			t.Errorf("without the catalogue: %v, %v", none, err)
		}
	})
}

func TestGCPSizes(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		for zone, has := range map[string]bool{"us-central1-a": true, "europe-west3-a": false} {
			sizes, err := g.ListSizes(t.Context(), zone)
			if err != nil {
				t.Fatal(err)
			}
			byID := map[string]provision.Size{}
			for _, s := range sizes {
				byID[s.ID] = s
			}
			if _, old := byID["f1-micro"]; old {
				t.Errorf("%s lists a type that is deprecated", zone)
			}
			if _, ok := byID["n2d-standard-2"]; ok != has {
				t.Errorf("%s lists n2d-standard-2: %v", zone, ok)
			}
			if s := byID["e2-standard-4"]; s.VCPUs != 4 || s.Memory != 16384 || s.Architecture != "x86" || s.Disk != 0 || s.PriceMonthly != "" {
				t.Errorf("%+v", s)
			}
		}
		regions, err := g.ListRegions(t.Context())
		if err != nil || slices.ContainsFunc(regions, func(r provision.Region) bool { return r.ID == "asia-southeast1-c" }) || len(regions) < 10 {
			t.Errorf("regions %v, %v: one that is down is to be left out", regions, err)
		}
		all, err := g.ListSizes(t.Context(), "")
		if err != nil || len(all) < 60 {
			t.Errorf("%d sizes of all zones, %v", len(all), err)
		}
	})
}

// Lists are read whole, whatever the size of a page.
func TestGCPReadsEveryPage(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, _ *provision.GCP) {
		small := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/compute/") {
				r = r.Clone(r.Context())
				q := r.URL.Query()
				q.Set("maxResults", "2")
				r.URL.RawQuery = q.Encode()
			}
			return c.RoundTrip(r)
		})
		g := openGCP(t, c.key(t, "writer"), small)
		for i := range 5 {
			opts := gcpOpts(fmt.Sprintf("node-%d", i))
			opts.Region = []string{"europe-west1-b", "europe-west1-c", "us-central1-a"}[i%3]
			opts.AllowSSHInbound = true
			mustCreate(t, g, opts)
		}
		if list, err := g.ListServers(t.Context()); err != nil || len(list) != 5 {
			t.Errorf("%d servers, %v", len(list), err)
		}
		rs, err := g.ListResources(t.Context())
		kinds := map[string]int{}
		for _, r := range rs {
			kinds[r.Kind]++
		}
		if err != nil || kinds[provision.KindServer] != 5 || kinds[provision.KindVolume] != 5 || kinds[provision.KindFirewall] != 5 || kinds[provision.KindNetwork] != 1 {
			t.Errorf("resources %v, %v", kinds, err)
		}
		if sizes, err := g.ListSizes(t.Context(), "europe-west1-b"); err != nil || len(sizes) < 60 {
			t.Errorf("%d sizes, %v", len(sizes), err)
		}
	})
}

// The console is empty before the server has started, and has its words then.
func TestGCPConsole(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		id := mustCreate(t, g, gcpOpts("node-1"))
		if text, err := g.ConsoleOutput(t.Context(), id); err != nil || text != "" {
			t.Errorf("at once: %q, %v", text, err)
		}
		time.Sleep(time.Minute)
		if text, err := g.ConsoleOutput(t.Context(), id); err != nil || !strings.Contains(text, "Linux") {
			t.Errorf("booted: %q, %v", text, err)
		}
		if _, err := g.ConsoleOutput(t.Context(), "europe-west1-b/nobody"); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("of no server: %v", err)
		}
	})
}

// A create whose rule for SSH fails is undone; what cannot be undone is named,
// and the audit finds it.
func TestGCPPartialCreate(t *testing.T) {
	for what, stuck := range map[string]bool{"undone": false, "left": true} {
		t.Run(what, func(t *testing.T) {
			inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
				refuse := cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 403, Code: "forbidden", Message: "Required 'compute.firewalls.create' permission"}
				refuse.Call = "create firewall"
				c.fault(t, refuse)
				if stuck {
					refuse.Call, refuse.Message = "delete server", "Required 'compute.instances.delete' permission"
					c.fault(t, refuse)
				}
				opts := gcpOpts("node-1")
				opts.AllowSSHInbound = true
				_, _, err := g.CreateServer(t.Context(), opts)
				var partial *provision.PartialError
				if !errors.Is(err, provision.ErrForbidden) || errors.As(err, &partial) != stuck {
					t.Fatalf("create: %v", err)
				}
				c.sim.ClearFaults()
				time.Sleep(time.Minute)
				left := c.billable()
				if (len(left) > 0) != stuck {
					t.Errorf("left: %v", left)
				}
				rs, err := g.ListResources(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if stuck && !slices.ContainsFunc(rs, func(r provision.Resource) bool { return r.Kind == provision.KindServer && r.ID == partial.Left[0].ID }) {
					t.Errorf("the audit does not find %v: %v", partial.Left, rs)
				}
				for _, r := range rs {
					if !r.Shared && r.Kind != provision.KindVolume {
						if err := g.DeleteResource(t.Context(), r); err != nil {
							t.Error(err)
						}
					}
				}
				time.Sleep(time.Minute)
				if left := c.billable(); len(left) > 0 {
					t.Errorf("left after the audit: %v", left)
				}
			})
		})
	}
}

// The audit removes a disk and an address that nobody uses, and refuses those
// that are in use.
func TestGCPAuditRemoves(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		mustCreate(t, g, gcpOpts("node-1"))
		const labels = `"labels":{"managed-by":"acme"}`
		c.call(t, http.MethodPost, "/zones/europe-west1-b/disks", `{"name":"lost","sizeGb":"10",`+labels+`}`, nil)
		c.call(t, http.MethodPost, "/regions/europe-west1/addresses", `{"name":"lost",`+labels+`}`, nil)
		c.call(t, http.MethodPost, "/global/addresses", `{"name":"lost-too",`+labels+`}`, nil)
		c.call(t, http.MethodPost, "/zones/europe-west1-b/disks", `{"name":"theirs","sizeGb":"10"}`, nil)
		time.Sleep(time.Minute)
		rs, err := g.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		removed, kept := 0, 0
		for _, r := range rs {
			if strings.Contains(r.Name, "theirs") {
				t.Errorf("what is not ours is shown: %+v", r)
			}
			switch err := g.DeleteResource(t.Context(), r); {
			case strings.HasPrefix(r.Name, "lost") && err == nil:
				removed++
			case r.Kind == provision.KindVolume && errors.Is(err, provision.ErrConflict), r.Kind == provision.KindServer && err == nil, r.Shared:
				kept++
			default:
				t.Errorf("removing %+v: %v", r, err)
			}
		}
		if removed != 3 || kept < 2 {
			t.Errorf("%d removed, %d others of %+v", removed, kept, rs)
		}
	})
}

// Somebody removed the shared network, with or without a look at it since: the
// next create makes it anew.
func TestGCPMakesALostNetworkAgain(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		id := mustCreate(t, g, gcpOpts("node-1"))
		time.Sleep(time.Minute)
		if err := g.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.call(t, http.MethodDelete, "/global/networks/acme-nodes", "", nil)
		time.Sleep(time.Minute)
		if rules := c.opening(t, mustCreate(t, g, gcpOpts("node-2"))); len(rules) > 0 {
			t.Errorf("the new server is open: %+v", rules)
		}
	})
}

// A network of that name that is not ours, with rules of its own, is not used.
func TestGCPRefusesAnothersNetwork(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		c.call(t, http.MethodPost, "/global/networks", `{"name":"acme-nodes","autoCreateSubnetworks":true}`, nil)
		time.Sleep(time.Minute)
		if _, _, err := g.CreateServer(t.Context(), gcpOpts("node-1")); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("create: %v", err)
		}
	})
}

// A token that ends early is replaced, once; one that is refused for good is
// said to be.
func TestGCPTokenThatEnds(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		mustCreate(t, g, gcpOpts("node-1"))
		c.fault(t, cloudsim.Fault{Call: "list servers", Times: 1, Effect: cloudsim.EffectUnauthorized})
		got := c.calls(func() {
			if _, err := g.ListServers(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if want := []string{"list servers", "get token", "list servers"}; !slices.Equal(got, want) {
			t.Errorf("calls %v, want %v", got, want)
		}
		time.Sleep(3 * time.Hour)
		got = c.calls(func() {
			if _, err := g.ListServers(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if want := []string{"get token", "list servers"}; !slices.Equal(got, want) {
			t.Errorf("hours later: %v, want %v", got, want)
		}
		c.fault(t, cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectUnauthorized})
		if _, err := g.ListServers(t.Context()); !errors.Is(err, provision.ErrUnauthorized) {
			t.Errorf("refused for good: %v", err)
		}
	})
}

// What the account's own protection forbids is said with the way to lift it,
// and a server that runs on is not said to be gone.
func TestGCPProtectedServer(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		id := mustCreate(t, g, gcpOpts("node-1"))
		zone, name, _ := strings.Cut(id, "/")
		c.call(t, http.MethodPost, "/zones/"+zone+"/instances/"+name+"/setDeletionProtection?deletionProtection=true", "", nil)
		err := g.DeleteServer(t.Context(), id)
		if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "protected") {
			t.Errorf("delete: %v", err)
		}
	})
}

// A delete that takes long, asked for again and again, is no error.
func TestGCPStuckDelete(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectStuckDelete, Delay: cloudsim.Duration(10 * time.Minute)})
		id := mustCreate(t, g, gcpOpts("node-1"))
		time.Sleep(time.Minute)
		for range 3 {
			if err := g.DeleteServer(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if status, _, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusError {
			t.Errorf("while it goes: %q, %v", status, err)
		}
		time.Sleep(10 * time.Minute)
		if _, _, err := g.GetServer(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("in the end: %v", err)
		}
	})
}

// A stopped server costs money and does not run: its address is nobody's, and
// another one when it starts again.
func TestGCPStoppedServer(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		id := mustCreate(t, g, gcpOpts("node-1"))
		time.Sleep(time.Minute)
		_, before, _ := g.GetServer(t.Context(), id)
		zone, name, _ := strings.Cut(id, "/")
		c.call(t, http.MethodPost, "/zones/"+zone+"/instances/"+name+"/stop", "", nil)
		time.Sleep(time.Minute)
		if status, ip, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusError || ip != "" {
			t.Errorf("stopped: %q %q, %v", status, ip, err)
		}
		c.call(t, http.MethodPost, "/zones/"+zone+"/instances/"+name+"/start", "", nil)
		time.Sleep(time.Minute)
		if status, ip, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusRunning || ip == "" || ip == before {
			t.Errorf("started: %q %q (was %q), %v", status, ip, before, err)
		}
	})
}
