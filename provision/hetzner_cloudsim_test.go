package provision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

// TestHetznerConformanceOnTheSimulatedCloud runs the contract against a judge
// that was written from the provider's documents and knows nothing of this
// package.
func TestHetznerConformanceOnTheSimulatedCloud(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Open: openSimulated, Around: synctest.Test})
}

func openSimulated(t *testing.T) *provisiontest.Account {
	_, a := newSimulated(t)
	return a
}

func newSimulated(t *testing.T) (simCloud, *provisiontest.Account) {
	cloud := newSimCloud(t, "hetzner")
	const token = "simulated-token-0123456789-0123456789-0123456789-0123456789-0123"
	open := func(token string) provision.Provisioner {
		p, err := provision.Open("hetzner", token, provision.Options{
			Endpoint: "http://localhost/hetzner/v1", HTTPClient: &http.Client{Transport: cloud}, ShortName: "acme",
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return cloud, &provisiontest.Account{
		Provisioner: open(token), Reopen: func(*testing.T) provision.Provisioner { return open(token) },
		Intruder: open("invalid-token-1234567890"), ReadOnly: open("readonly-token-1234567890"),
		Region: "fsn1", Size: "cx23", OtherSize: "cax11", MissingID: "999999999", UserDataLimit: 32 << 10,
		Secrets:      []string{token, "invalid-token-1234567890", "readonly-token-1234567890"},
		Settle:       func() { time.Sleep(time.Minute) }, // of the bubble's time
		Billable:     cloud.billable,
		SSHReachable: func(id string) bool { return cloud.sshReachable(t, token, id) },
		Faults: provisiontest.Faults{
			LoseCreate:  cloud.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectDropAfter}),
			BreakCreate: cloud.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 502}),
			NoCapacity:  cloud.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectCapacity}),
			NoQuota:     cloud.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectQuota}),
			Throttle:    cloud.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectRateLimit}),
		},
	}
}

// sshReachable asks the API itself which rules apply to a server.
func (m inMemory) sshReachable(t *testing.T, token, id string) bool {
	t.Helper()
	read := func(path string, out any) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/hetzner/v1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := m.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %v, %v", path, resp, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, json.Unmarshal(body, out)); err != nil {
			t.Fatal(err)
		}
	}
	var server struct {
		Server struct {
			PublicNet struct {
				Firewalls []struct{ ID int64 } `json:"firewalls"`
			} `json:"public_net"`
		}
	}
	read("/servers/"+id, &server)
	firewalls := server.Server.PublicNet.Firewalls
	for _, f := range firewalls {
		var one struct {
			Firewall struct {
				Rules []struct{ Direction, Protocol, Port string }
			}
		}
		read(fmt.Sprintf("/firewalls/%d", f.ID), &one)
		for _, r := range one.Firewall.Rules {
			if r.Direction == "in" && r.Protocol == "tcp" && strings.Contains(r.Port, "22") {
				return true
			}
		}
	}
	return len(firewalls) == 0
}

// TestHetznerRequestsOnTheSimulatedCloud counts requests as the cloud sees
// them: a warm create is one, and waits for no boot; observing is one for all.
func TestHetznerRequestsOnTheSimulatedCloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, a := newSimulated(t)
		h := a.Provisioner.(*provision.Hetzner)
		var id string
		for _, c := range []struct {
			what string
			run  func()
			want []string
		}{
			{"first create", func() { mustCreate(t, h, nodeOpts("node-1")) },
				[]string{"list firewalls", "create firewall", "list ssh keys", "create ssh key", "create server"}},
			{"warm create", func() {
				begin := time.Now()
				id = mustCreate(t, h, nodeOpts("node-2"))
				if took := time.Since(begin); took > time.Second {
					t.Errorf("a create waited %v", took)
				}
			}, []string{"create server"}},
			{"list", func() {
				if _, err := h.ListServers(t.Context()); err != nil {
					t.Error(err)
				}
			}, []string{"list servers"}},
			{"delete", func() {
				a.Settle()
				if err := h.DeleteServer(t.Context(), id); err != nil {
					t.Error(err)
				}
			}, []string{"delete server", "list firewalls"}},
		} {
			if got := cloud.calls(c.run); !slices.Equal(got, c.want) {
				t.Errorf("%s made the calls %v, want %v", c.what, got, c.want)
			}
		}
	})
}
