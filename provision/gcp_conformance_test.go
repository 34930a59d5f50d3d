package provision_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

var gcpTestKey = sync.OnceValue(func() string {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

func (f *gcpFake) open(t *testing.T, account string) *provision.GCP {
	t.Helper()
	text, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "demo-1", "private_key_id": "k1", "private_key": gcpTestKey(),
		"client_email": account + "@demo-1.iam.gserviceaccount.com", "token_uri": "https://gcp.test/token",
	})
	p, err := provision.Open("gcp", string(text), provision.Options{
		Endpoint: "https://gcp.test/compute/v1", HTTPClient: &http.Client{Transport: f}, ShortName: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.GCP)
}

// sshReachable follows the instance's tags to the network's rules.
func (f *gcpFake) sshReachable(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	tags, _ := f.instances[id]["tags"].(map[string]any)
	items, _ := tags["items"].([]any)
	for _, tag := range items {
		if f.firewalls[tag.(string)] != nil {
			return true
		}
	}
	nic := f.instances[id]["networkInterfaces"].([]any)[0].(map[string]any)
	return nic["network"] != "global/networks/acme-nodes"
}

func (f *gcpFake) refuseNext(status int, reason string) func() {
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refuse = func() (int, string, string) { return status, reason, "simulated" }
	}
}

func TestGCPConformance(t *testing.T) {
	gcpTestKey()
	provisiontest.Run(t, provisiontest.Harness{Around: synctest.Test, Open: func(t *testing.T) *provisiontest.Account {
		f := newGCPFake()
		return &provisiontest.Account{
			Provisioner: f.open(t, "writer"), Reopen: func(t *testing.T) provision.Provisioner { return f.open(t, "writer") },
			Intruder: f.open(t, "invalid"), ReadOnly: f.open(t, "readonly"),
			Region: "europe-west1-b", Size: "e2-small", OtherSize: "t2a-standard-1", MissingID: "europe-west1-b/node-0-0123456789",
			Secrets: []string{gcpTestKey(), "writer-token", "readonly-token"}, Settle: func() { time.Sleep(30 * time.Second) },
			SSHReachable: f.sshReachable,
			Billable: func() (left []string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.settle()
				for id := range f.disks {
					left = append(left, "disk "+id)
				}
				return left
			},
			Faults: provisiontest.Faults{
				LoseCreate:  func() { f.mu.Lock(); f.lose = true; f.mu.Unlock() },
				BreakCreate: f.refuseNext(503, "backendError"), NoCapacity: f.refuseNext(503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
				NoQuota: f.refuseNext(403, "quotaExceeded"), Throttle: f.refuseNext(403, "rateLimitExceeded"),
			},
		}
	}})
}

// TestGCPCreateThatFailsLater: the answer was good, the server never came, its
// disk stays, and a repeat makes another.
func TestGCPCreateThatFailsLater(t *testing.T) {
	gcpTestKey()
	synctest.Test(t, func(t *testing.T) {
		f := newGCPFake()
		f.lateReason = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
		g := f.open(t, "writer")
		opts := provision.CreateOpts{Region: "europe-west1-b", Size: "e2-small", Name: "node-1", IdempotencyKey: "k"}
		id, _, err := g.CreateServer(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusPending {
			t.Errorf("while the create runs: %q, %v", status, err)
		}
		time.Sleep(10 * time.Second)
		_, _, err = g.GetServer(t.Context(), id)
		var e *provision.ProviderError
		if !errors.As(err, &e) || !errors.Is(e, provision.ErrNotFound) || errors.Is(e, provision.ErrCapacity) ||
			e.Code != "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" || !strings.Contains(e.Hint, "europe-west1-c") {
			t.Errorf("after it: %v, hint %q", err, e.Hint)
		}
		if again, _, err := g.CreateServer(t.Context(), opts); err != nil || again != id {
			t.Errorf("repeat: %q, %v", again, err)
		}
		time.Sleep(time.Minute)
		if status, _, err := g.GetServer(t.Context(), id); err != nil || status != provision.ServerStatusRunning {
			t.Errorf("repeated: %q, %v", status, err)
		}
		before := len(f.calls)
		opts.Name, opts.IdempotencyKey = "node-2", "k2"
		if _, _, err := g.CreateServer(t.Context(), opts); err != nil || len(f.calls)-before != 1 {
			t.Errorf("a warm create made %v, error %v", f.calls[before:], err)
		}
	})
}
