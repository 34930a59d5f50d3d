package provision_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

// inAzure runs a test in a bubble's time with an empty subscription.
func inAzure(t *testing.T, test func(t *testing.T, c azureCloud, p *provision.Azure)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newAzureCloud(t)
		test(t, c, c.open(t, azureSecret))
	})
}

func azureOpts(name string) provision.CreateOpts {
	return provision.CreateOpts{Region: "westeurope", Size: "Standard_D2s_v5", Name: name, UserData: "#cloud-config\n", IdempotencyKey: "key of " + name}
}

func (c azureCloud) create(t *testing.T, p *provision.Azure, opts provision.CreateOpts) string {
	t.Helper()
	id, _, err := p.CreateServer(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sent is the body of the last PUT on a path that ends so.
func (c azureCloud) sent(t *testing.T, suffix string) map[string]any {
	t.Helper()
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	for i, r := range slices.Backward(c.wire.requests) {
		if strings.HasPrefix(r, "PUT ") && strings.HasSuffix(r, suffix) {
			var body map[string]any
			if err := json.Unmarshal([]byte(c.wire.bodies[i]), &body); err != nil {
				t.Fatal(err)
			}
			return body
		}
	}
	t.Fatalf("nothing was put at …%s", suffix)
	return nil
}

// TestAzureLateFailure: a create that is given up after it was accepted says
// why in the list, and its delete waits for what Azure keeps.
func TestAzureLateFailure(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(10 * time.Second), Times: 1})
		id := c.create(t, p, azureOpts("node-1"))
		time.Sleep(15 * time.Second)
		status, _, err := p.GetServer(t.Context(), id)
		if err != nil || status != provision.ServerStatusError {
			t.Errorf("status %s, %v", status, err)
		}
		list, err := p.ListServers(t.Context())
		if err != nil || len(list) != 1 || !errors.Is(list[0].Failure, provision.ErrCapacity) {
			t.Fatalf("list: %+v, %v", list, err)
		}
		// The caller's time ends first; the repeat goes on.
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		if err := p.DeleteServer(ctx, id); err == nil || !strings.Contains(err.Error(), "not yet") {
			t.Errorf("a delete while the interface is kept: %v", err)
		}
		begin := time.Now()
		if err := p.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited < 90*time.Second {
			t.Errorf("the delete took %v: who waited for the interface?", waited)
		}
		if left := c.billable(); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}

// TestAzureCascadeThatForgets: what the cascade leaves is found by its name.
func TestAzureCascadeThatForgets(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		id := c.create(t, p, azureOpts("node-1"))
		time.Sleep(time.Minute)
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectLeaveBehind, Call: "delete public ip"})
		if err := p.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if left := c.billable(); left != nil {
			t.Errorf("left: %v", left)
		}
	})
}

// TestAzurePartialCreate: whichever step fails, nothing is left, or named.
func TestAzurePartialCreate(t *testing.T) {
	for _, call := range []string{"create public ip", "create network interface", "create security group", "create server"} {
		inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
			c.fault(t, cloudsim.Fault{Call: call, Effect: cloudsim.EffectStatus, Status: 400, Code: "PublicIPCountLimitReached", Times: 1})
			opts := azureOpts("node-1")
			opts.AllowSSHInbound = true
			_, _, err := p.CreateServer(t.Context(), opts)
			if !errors.Is(err, provision.ErrQuota) || provision.LeftBehind(err) != nil {
				t.Errorf("%s: %v", call, err)
			}
			rs, err := p.ListResources(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rs {
				if !r.Shared {
					t.Errorf("%s: left %s %s", call, r.Kind, r.ID)
				}
			}
			c.create(t, p, opts) // the repeat works
		})
	}
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		c.fault(t, cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectCapacity, Times: 1})
		c.fault(t, cloudsim.Fault{Call: "delete public ip", Effect: cloudsim.EffectStatus, Status: 403})
		_, _, err := p.CreateServer(t.Context(), azureOpts("node-1"))
		left := provision.LeftBehind(err)
		if !errors.Is(err, provision.ErrCapacity) || len(left) != 1 || left[0].Kind != provision.KindPublicIP || !left[0].Billable {
			t.Fatalf("%v, left %+v", err, left)
		}
		c.sim.ClearFaults()
		if err := p.DeleteResource(t.Context(), left[0]); err != nil || c.billable() != nil {
			t.Errorf("%v, left %v", err, c.billable())
		}
	})
}

// TestAzureOtherOptionsTouchNothing: a repeat that is refused must not have
// opened the server that it is refused for.
func TestAzureOtherOptionsTouchNothing(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		id := c.create(t, p, azureOpts("node-1"))
		opts := azureOpts("node-1")
		opts.AllowSSHInbound = true
		if _, _, err := c.open(t, azureSecret).CreateServer(t.Context(), opts); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if c.sshReachable(id) {
			t.Error("the server was opened")
		}
	})
}

// TestAzureSharedThingsAreNotPutAgain: a PUT on a group replaces its tags, and
// one on a network its subnets.
func TestAzureSharedThingsAreNotPutAgain(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		c.create(t, p, azureOpts("node-1"))
		c.create(t, c.open(t, azureSecret), azureOpts("node-2"))
		puts := map[string]int{}
		for _, r := range c.wire.requests {
			if strings.HasPrefix(r, "PUT ") {
				puts[r]++
			}
		}
		for r, n := range puts {
			if n > 1 {
				t.Errorf("%s was sent %d times", r, n)
			}
		}
		if subnet := c.sent(t, "/virtualNetworks/acme-westeurope")["properties"].(object)["subnets"].([]any)[0].(object); subnet["properties"].(object)["defaultOutboundAccess"] != false {
			t.Errorf("subnet: %v", subnet)
		}
	})
}

// TestAzureMachine: what is sent for each kind of size.
func TestAzureMachine(t *testing.T) {
	for size, want := range map[string]struct {
		sku     string
		trusted bool
	}{
		"Standard_D2s_v5": {"server", true}, "Standard_D2ps_v5": {"server-arm64", false}, "Standard_A2_v2": {"server-gen1", false},
	} {
		inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
			opts := azureOpts("node-1")
			opts.Size = size
			id := c.create(t, p, opts)
			props := c.sent(t, "/virtualMachines/"+id)["properties"].(object)
			if sku := props["storageProfile"].(object)["imageReference"].(object)["sku"]; sku != want.sku {
				t.Errorf("%s: image %v, want %s", size, sku, want.sku)
			}
			if _, trusted := props["securityProfile"]; trusted != want.trusted {
				t.Errorf("%s: trusted launch %v, want %v", size, trusted, want.trusted)
			}
			os := props["osProfile"].(object)
			linux := os["linuxConfiguration"].(object)
			keys := linux["ssh"].(object)["publicKeys"].([]any)
			if os["adminPassword"] != nil || linux["disablePasswordAuthentication"] != true || len(keys) != 1 || props["userData"] != nil {
				t.Errorf("%s: %v", size, os)
			}
			if data, _ := base64.StdEncoding.DecodeString(os["customData"].(string)); string(data) != opts.UserData {
				t.Errorf("%s: custom data %q", size, data)
			}
			if sku := c.sent(t, "/publicIPAddresses/"+id+"-ip")["sku"].(object); sku["name"] != "Standard" {
				t.Errorf("public IP: %v", sku)
			}
		})
	}
}

// TestAzureCompressesLongUserData: cloud-init unpacks what is compressed; what
// does not fit even so is refused.
func TestAzureCompressesLongUserData(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		opts := azureOpts("node-1")
		opts.UserData = "#cloud-config\nruncmd:\n  - echo done\n" + strings.Repeat("# padding\n", 20_000)
		id := c.create(t, p, opts)
		time.Sleep(2 * time.Minute)
		console, err := p.ConsoleOutput(t.Context(), id)
		if err != nil || !strings.Contains(console, "Linux version") || strings.Contains(console, "Unhandled non-multipart") {
			t.Errorf("console: %v\n%s", err, console)
		}
		for _, sent := range c.wire.authed {
			if strings.Contains(sent, "/console/") || strings.Contains(sent, "/retail/") {
				t.Errorf("a token was sent to %s", sent)
			}
		}
		noise := make([]byte, 70_000)
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		opts = azureOpts("node-2")
		opts.UserData = "#cloud-config\n# " + base64.StdEncoding.EncodeToString(noise)
		if _, _, err := p.CreateServer(t.Context(), opts); !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), "when compressed") {
			t.Errorf("got %v", err)
		}
	})
}

// TestAzureSizesAndPrices: restricted sizes are left out, half of the cores
// counts as half, and prices are those of Linux.
func TestAzureSizesAndPrices(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		sizes, err := p.ListSizes(t.Context(), "westeurope")
		if err != nil {
			t.Fatal(err)
		}
		byID := map[string]provision.Size{}
		for _, s := range sizes {
			byID[s.ID] = s
		}
		if s := byID["Standard_E4-2as_v5"]; s.VCPUs != 2 || s.Memory != 32768 || s.PriceMonthly != "" {
			t.Errorf("constrained size: %+v", s)
		}
		if s := byID["Standard_D2ds_v5"]; s.Disk != 75 || s.Architecture != "x86" {
			t.Errorf("size with a local disk: %+v", s)
		}
		if _, there := byID["Standard_NC4as_T4_v3"]; there {
			t.Error("a size that the subscription may not use is listed")
		}
		if _, there := byID["Standard_D2s_v5"]; !there {
			t.Error("a size that is barred from one zone is missing")
		}
		prices, err := p.Prices(t.Context(), "westeurope")
		if got, want := prices["Standard_D2s_v5"], (provision.Price{Monthly: "83.95", Hourly: "0.115", Currency: "USD"}); err != nil || got != want {
			t.Errorf("price %+v, want %+v; %v", got, want, err)
		}
		if len(prices) != 13 {
			t.Errorf("%d prices, want one of each size", len(prices))
		}
		if none, err := p.Prices(t.Context(), "nowhere-1"); err != nil || len(none) != 0 {
			t.Errorf("prices of nowhere: %v, %v", none, err)
		}
	})
}

// TestAzureFollowsNoLinkElsewhere: a link to another host would carry the
// token there.
func TestAzureFollowsNoLinkElsewhere(t *testing.T) {
	c := newAzureCloud(t)
	evil := roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := c.wire.RoundTrip(r)
		if err == nil && strings.HasSuffix(r.URL.Path, "/locations") {
			resp.Body = io.NopCloser(strings.NewReader(`{"value":[],"nextLink":"https://evil.example/azure/subscriptions/x"}`))
		}
		return resp, err
	})
	p, err := provision.Open("azure", azureCredentialJSON(azureSecret), provision.Options{Endpoint: azureBase + "/azure", HTTPClient: &http.Client{Transport: evil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ListRegions(t.Context()); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "evil.example") {
		t.Errorf("got %v", err)
	}
	for _, host := range c.wire.authed {
		if strings.Contains(host, "evil") {
			t.Error("the token went there")
		}
	}
}

// TestAzureSlowsDownBeforeItIsRefused: many creates at once use up the bucket
// of writes. All succeed, and most of the waiting is done before a refusal:
// without slowing down, some three hundred are refused.
func TestAzureSlowsDownBeforeItIsRefused(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		var wg sync.WaitGroup
		ctx := t.Context()
		for i := range 120 {
			opts := azureOpts("node-" + strconv.Itoa(i) + "x")
			wg.Go(func() {
				if _, _, err := p.CreateServer(ctx, opts); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		refused := 0
		for _, r := range c.sim.Requests() {
			if r.Status == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused > 200 {
			t.Errorf("%d requests were refused", refused)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAzureGuestStartsItsAgent: the user-data that we render is what the guest
// gets, and its container starts.
func TestAzureGuestStartsItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan cloudsim.Container, 1)
		c := newAzureCloud(t, func(o *cloudsim.Options) {
			o.RunContainer = func(ctx context.Context, _ cloudsim.Guest, c cloudsim.Container) error {
				started <- c
				<-ctx.Done()
				return nil
			}
		})
		var err error
		opts := azureOpts("node-1")
		opts.UserData, err = provision.RenderCloudInit(provision.CloudInitParams{
			ControlPlaneAddr: "203.0.113.9:8443", JoinToken: "swjt_abcdefghijklmnop." + strings.Repeat("A", 43), NodeName: "node-1", AgentVersion: "v1.0.0",
		})
		if err != nil {
			t.Fatal(err)
		}
		p := c.open(t, azureSecret)
		id := c.create(t, p, opts)
		select {
		case got := <-started:
			if got.Env["NODE_NAME"] != "node-1" {
				t.Errorf("container: %+v", got)
			}
		case <-time.After(10 * time.Minute):
			t.Errorf("no container was started: %+v", c.sim.Guests())
		}
		if err := p.DeleteServer(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
}

// TestAzurePreflightFinds what would stop a create, before anything is made.
func TestAzurePreflightFinds(t *testing.T) {
	const usage = `{"value":[{"unit":"Count","currentValue":9,"limit":10,"name":{"value":%q,"localizedValue":"%s of the region"}}]}`
	for _, c := range []struct {
		path, answer string
		class        error
		message      string
	}{
		{"/providers/Microsoft.Compute", `{"registrationState":"NotRegistered"}`, provision.ErrForbidden, "Microsoft.Compute is not registered"},
		{"/Microsoft.Compute/locations/westeurope/usages", fmt.Sprintf(usage, "cores", "Cores"), provision.ErrQuota, "9 of 10 are used, 2 more"},
		{"/Microsoft.Compute/locations/westeurope/usages", fmt.Sprintf(usage, "standardDSv5Family", "Dsv5"), provision.ErrQuota, "Dsv5 of the region"},
		{"/Microsoft.Compute/locations/westeurope/usages", fmt.Sprintf(usage, "virtualMachines", "VMs"), nil, ""},
		{"/Microsoft.Authorization/permissions", `{"value":[{"actions":["Microsoft.Compute/*","*/read"],"notActions":[]}]}`, provision.ErrForbidden, "Microsoft.Network/publicIPAddresses/write"},
		{"/Microsoft.Compute/skus", `{"value":[{"resourceType":"virtualMachines","name":"Standard_D2s_v5","restrictions":[{"type":"Location","values":["westeurope"],"reasonCode":"QuotaId"}]}]}`, provision.ErrCapacity, "QuotaId"},
	} {
		cloud := newAzureCloud(t)
		edit := roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := cloud.wire.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, c.path) {
				resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(strings.NewReader(c.answer))
			}
			return resp, err
		})
		p, err := provision.Open("azure", azureCredentialJSON(azureSecret), provision.Options{Endpoint: azureBase + "/azure", HTTPClient: &http.Client{Transport: edit}})
		if err != nil {
			t.Fatal(err)
		}
		err = p.(provision.Preflighter).Preflight(t.Context(), azureOpts("node-1"))
		if c.class == nil && err != nil || c.class != nil && (!errors.Is(err, c.class) || !strings.Contains(err.Error(), c.message)) {
			t.Errorf("%s: %v, want %v with %q", c.answer, err, c.class, c.message)
		}
		if made := cloud.sim.LedgerSummary().Made; made != 0 {
			t.Errorf("the preflight made %d things", made)
		}
	}
}

// TestAzurePreflightKnowsTheLimit: a server too many is refused, one that is
// there already is not counted twice.
func TestAzurePreflightKnowsTheLimit(t *testing.T) {
	inAzure(t, func(t *testing.T, c azureCloud, p *provision.Azure) {
		opts := azureOpts("node-1")
		opts.Region, opts.Size = "northeurope", "Standard_NC4as_T4_v3"
		c.create(t, p, opts)
		second := opts
		second.Name, second.IdempotencyKey = "node-2", "key of node-2"
		c.create(t, p, second)
		if err := p.Preflight(t.Context(), opts); err != nil {
			t.Errorf("preflight of a repeat: %v", err)
		}
		opts.Name, opts.IdempotencyKey = "node-3", "key of node-3"
		if err := p.Preflight(t.Context(), opts); !errors.Is(err, provision.ErrQuota) {
			t.Errorf("preflight of one too many: %v", err)
		}
	})
}

// TestAzureNames: what Azure would refuse later is refused at once, with a
// name that would do.
func TestAzureNames(t *testing.T) {
	p, err := provision.NewAzure(azureCredentialJSON(azureSecret))
	if err != nil {
		t.Fatal(err)
	}
	for name, would := range map[string]string{"node.1": `"node-1"`, "12345": `"node-12345"`, "a.b.example": `"a-b-example"`, "Under_Score": `"under-score"`} {
		_, _, err := p.CreateServer(t.Context(), azureOpts(name))
		if !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), would) {
			t.Errorf("%s: %v, want a suggestion of %s", name, err, would)
		}
	}
}
