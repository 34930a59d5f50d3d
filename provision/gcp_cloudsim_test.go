package provision_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

const gcpHome = "http://localhost"

// gcpTestKey is made once: it takes long.
var gcpTestKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// gcpCloud is a simulated project at Google.
type gcpCloud struct{ simCloud }

func newGCPCloud(t *testing.T) gcpCloud {
	t.Helper()
	return gcpCloud{newSimCloud(t, "gcp", func(o *cloudsim.Options) { o.GCPKey = gcpTestKey() })}
}

func (c gcpCloud) key(t *testing.T, account string) string {
	t.Helper()
	key, err := c.sim.GCPKey(gcpHome, account, "demo-1")
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

func (c gcpCloud) open(t *testing.T, account string) *provision.GCP {
	t.Helper()
	return openGCP(t, c.key(t, account), c)
}

func openGCP(t *testing.T, credential string, transport http.RoundTripper) *provision.GCP {
	t.Helper()
	p, err := provision.Open("gcp", credential, provision.Options{
		Endpoint: gcpHome + "/gcp/compute/v1", HTTPClient: &http.Client{Transport: transport}, ShortName: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.GCP)
}

// call asks the API itself, past the code under test.
func (c gcpCloud) call(t *testing.T, method, path, body string, out any) {
	t.Helper()
	c.ask(t, c.staticToken(), method, gcpHome+"/compute/v1/projects/demo-1"+path, body, out)
}

// staticToken is the one that the cloud's environment gives to tools.
func (c gcpCloud) staticToken() string {
	for _, v := range c.sim.Env(gcpHome) {
		if v.Name == "GOOGLE_OAUTH_ACCESS_TOKEN" {
			return v.Value
		}
	}
	return ""
}

type gcpWireInstance struct {
	Name                   string
	Tags                   struct{ Items []string }
	NetworkInterfaces      []struct{ Network string }
	Disks                  []struct{ Source, DiskSizeGb, Architecture string }
	Metadata               struct{ Items []struct{ Key, Value string } }
	ServiceAccounts        []any
	ShieldedInstanceConfig struct{ EnableSecureBoot, EnableVtpm, EnableIntegrityMonitoring bool }
}

func (c gcpCloud) instance(t *testing.T, id string) (i gcpWireInstance) {
	t.Helper()
	zone, name, _ := strings.Cut(id, "/")
	c.call(t, http.MethodGet, "/zones/"+zone+"/instances/"+name, "", &i)
	return i
}

type gcpWireFirewall struct {
	Name, Network, Direction string
	Priority                 int
	Allowed                  []struct {
		IPProtocol string
		Ports      []string
	}
	SourceRanges, TargetTags []string
}

// opening are the rules that let something in to a server.
func (c gcpCloud) opening(t *testing.T, id string) []gcpWireFirewall {
	t.Helper()
	i := c.instance(t, id)
	var page struct{ Items []gcpWireFirewall }
	c.call(t, http.MethodGet, "/global/firewalls", "", &page)
	return slices.DeleteFunc(page.Items, func(f gcpWireFirewall) bool {
		tagged := len(f.TargetTags) == 0 || slices.ContainsFunc(f.TargetTags, func(tag string) bool { return slices.Contains(i.Tags.Items, tag) })
		return f.Network != i.NetworkInterfaces[0].Network || !tagged || f.Direction != "INGRESS"
	})
}

func (c gcpCloud) account(t *testing.T) *provisiontest.Account {
	reopen := func(t *testing.T) provision.Provisioner { return c.open(t, "writer") }
	var key struct {
		PrivateKey string `json:"private_key"`
	}
	if err := json.Unmarshal([]byte(c.key(t, "writer")), &key); err != nil {
		t.Fatal(err)
	}
	return &provisiontest.Account{
		Provisioner: reopen(t), Reopen: reopen, Intruder: c.open(t, "invalid-one"), ReadOnly: c.open(t, "readonly-one"),
		Region: "europe-west1-b", Size: "e2-small", OtherSize: "t2a-standard-1", MissingID: "europe-west1-b/node-0-0123456789", UserDataLimit: 0,
		Secrets:  []string{key.PrivateKey, strings.Split(key.PrivateKey, "\n")[1], "ya29."},
		Settle:   func() { time.Sleep(time.Minute) }, // of the bubble's time
		Billable: c.billable, SSHReachable: func(id string) bool { return len(c.opening(t, id)) > 0 },
		Faults: provisiontest.Faults{
			LoseCreate:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectDropAfter}),
			BreakCreate: c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 503}),
			NoCapacity:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectCapacity}),
			NoQuota:     c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectQuota}),
			Throttle:    c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectRateLimit}),
		},
	}
}

func TestGCPConformance(t *testing.T) {
	gcpTestKey() // outside the bubbles: it is for all of them
	provisiontest.Run(t, provisiontest.Harness{Around: synctest.Test, Open: func(t *testing.T) *provisiontest.Account {
		return newGCPCloud(t).account(t)
	}})
}

// inGCP runs a test of one simulated project in a bubble.
func inGCP(t *testing.T, test func(t *testing.T, c gcpCloud, g *provision.GCP)) {
	gcpTestKey()
	synctest.Test(t, func(t *testing.T) {
		c := newGCPCloud(t)
		test(t, c, c.open(t, "writer"))
	})
}

func gcpOpts(name string) provision.CreateOpts {
	opts := nodeOpts(name)
	opts.Region, opts.Size = "europe-west1-b", "e2-small"
	return opts
}

func TestGCPRequests(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		withSSH := gcpOpts("node-3")
		withSSH.AllowSSHInbound, withSSH.SSHSourceCIDRs = true, []string{"198.51.100.0/24"}
		var id string
		for _, step := range []struct {
			what string
			run  func()
			want []string
		}{
			{"first create", func() { mustCreate(t, g, gcpOpts("node-1")) }, []string{
				"get token", "get size", "get network", "create network", "get operation", "get operation", "get operation", "get operation", "create server",
			}},
			{"warm create", func() { mustCreate(t, g, gcpOpts("node-2")) }, []string{"create server"}},
			{"warm create with SSH", func() { id = mustCreate(t, g, withSSH) }, []string{"create server", "create firewall"}},
			{"list", func() {
				if _, err := g.ListServers(t.Context()); err != nil {
					t.Error(err)
				}
			}, []string{"list servers"}},
			{"delete", func() {
				time.Sleep(time.Minute)
				if err := g.DeleteServer(t.Context(), id); err != nil {
					t.Error(err)
				}
			}, []string{"delete server", "delete firewall"}},
		} {
			if got := c.calls(step.run); !slices.Equal(got, step.want) {
				t.Errorf("%s made the calls %v, want %v", step.what, got, step.want)
			}
		}
	})
}

// TestGCPCreateThatFailsLater: the answer was good, the server never came, its
// disk stays, and a repeat makes another.
func TestGCPCreateThatFailsLater(t *testing.T) {
	for what, forgotten := range map[string]bool{"all gone": false, "disk left": true} {
		t.Run(what, func(t *testing.T) {
			inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
				c.fault(t, cloudsim.Fault{Times: 1, Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(8 * time.Second)})
				if forgotten {
					c.fault(t, cloudsim.Fault{Call: "delete disk", Times: 1, Effect: cloudsim.EffectLeaveBehind})
				}
				opts := gcpOpts("node-1")
				id := mustCreate(t, g, opts)
				if status, _, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusPending {
					t.Errorf("while the create runs: %q, %v", status, err)
				}
				time.Sleep(10 * time.Second)
				_, _, err := g.GetServer(t.Context(), id)
				var e *provision.ProviderError
				if !errors.As(err, &e) || !errors.Is(e, provision.ErrNotFound) || errors.Is(e, provision.ErrCapacity) ||
					e.Code != "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" || !strings.Contains(e.Hint, "europe-west1-c") {
					t.Fatalf("after it: %v", err)
				}
				if left := c.billable(); (len(left) > 0) != forgotten {
					t.Errorf("left: %v", left)
				}
				if again, _, err := g.CreateServer(t.Context(), opts); err != nil || again != id {
					t.Fatalf("repeat: %q, %v", again, err)
				}
				time.Sleep(time.Minute)
				if status, _, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusRunning {
					t.Errorf("repeated: %q, %v", status, err)
				}
				if err := g.DeleteServer(t.Context(), id); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if left := c.billable(); len(left) > 0 {
					t.Errorf("left at the end: %v", left)
				}
			})
		})
	}
}

// A zone without capacity and a region without quota say so after the answer.
func TestGCPLateRefusals(t *testing.T) {
	inGCP(t, func(t *testing.T, c gcpCloud, g *provision.GCP) {
		sold := gcpOpts("node-1")
		sold.Region, sold.Size = "europe-west1-d", "c3-standard-4"
		many := gcpOpts("node-2")
		many.Size = "t2d-standard-8"
		more := gcpOpts("node-3")
		more.Size = "t2d-standard-1"
		mustCreate(t, g, many)
		time.Sleep(time.Minute)
		if err := g.Preflight(t.Context(), more); !errors.Is(err, provision.ErrQuota) || !strings.Contains(err.Error(), "T2D_CPUS") {
			t.Errorf("preflight over the quota: %v", err)
		}
		if err := g.Preflight(t.Context(), many); err != nil {
			t.Errorf("preflight of a repeat: %v", err)
		}
		for want, opts := range map[string]provision.CreateOpts{"QUOTA_EXCEEDED": more, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": sold} {
			id := mustCreate(t, g, opts)
			time.Sleep(time.Minute)
			_, _, err := g.GetServer(t.Context(), id)
			var e *provision.ProviderError
			if !errors.As(err, &e) || !errors.Is(e, provision.ErrNotFound) || e.Code != want {
				t.Errorf("%v, want the code %s", err, want)
			}
		}
	})
}
