package provision_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

const (
	azureBase   = "http://azure.test"
	azureSub    = "11111111-2222-3333-4444-555555555555"
	azureSecret = "azure-secret-0123456789-0123456789"
)

// simTransport calls a simulated cloud without a network, so that it runs in
// a bubble's time. It notes requests, and can break or lose one.
type simTransport struct {
	handler http.Handler

	mu       sync.Mutex
	requests []string
	bodies   []string
	authed   []string // hosts and paths that were sent a credential
	lose     func(r *http.Request) bool
}

func (s *simTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.bodies = append(s.bodies, string(body))
	if r.Header.Get("Authorization") != "" {
		s.authed = append(s.authed, r.URL.Host+r.URL.Path)
	}
	lose := s.lose != nil && s.lose(r)
	if lose {
		s.lose = nil
	}
	s.mu.Unlock()
	in := r.Clone(r.Context())
	in.Body = io.NopCloser(bytes.NewReader(body))
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, in)
	if lose {
		return nil, errors.New("connection reset by peer")
	}
	return rec.Result(), nil
}

// azureCloud is a simulated subscription.
type azureCloud struct {
	simCloud
	wire *simTransport // what the code under test goes through
}

func newAzureCloud(t *testing.T, change ...func(*cloudsim.Options)) azureCloud {
	t.Helper()
	c := newSimCloud(t, "azure", change...)
	return azureCloud{simCloud: c, wire: &simTransport{handler: c.Handler}}
}

func azureCredentialJSON(secret string) string {
	text, _ := json.Marshal(map[string]string{
		"tenant_id": "contoso.example", "client_id": "22222222-2222-3333-4444-555555555555", "client_secret": secret,
		"subscription_id": azureSub, "resource_group": "Nodes", "authority_host": azureBase,
	})
	return string(text)
}

func (c azureCloud) open(t *testing.T, secret string) *provision.Azure {
	t.Helper()
	p, err := provision.Open("azure", azureCredentialJSON(secret), provision.Options{
		Endpoint: azureBase + "/azure", HTTPClient: &http.Client{Transport: c.wire}, ShortName: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.Azure)
}

// read asks the API itself, past the code under test.
func (c azureCloud) read(path string, out any) int {
	claims := fmt.Sprintf(`{"appid":"test","exp":%d}`, c.sim.Now().Add(time.Hour).Unix())
	r := httptest.NewRequest(http.MethodGet, azureBase+"/azure/subscriptions/"+azureSub+path+"?api-version=2025-01-01", nil)
	r.Header.Set("Authorization", "Bearer e."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".s")
	w := httptest.NewRecorder()
	c.sim.Handler().ServeHTTP(w, r)
	_ = json.Unmarshal(w.Body.Bytes(), out)
	return w.Code
}

// sshReachable follows the server's interface to its security group.
func (c azureCloud) sshReachable(id string) bool {
	var nic struct {
		Properties struct {
			Group struct {
				ID string `json:"id"`
			} `json:"networkSecurityGroup"`
		} `json:"properties"`
	}
	const providers = "/resourceGroups/nodes/providers/Microsoft.Network/"
	if c.read(providers+"networkInterfaces/"+id+"-nic", &nic) != http.StatusOK || nic.Properties.Group.ID == "" {
		return false // a Standard address without a group lets nothing in
	}
	var group struct {
		Properties struct {
			Rules []struct {
				Properties struct{ Access, Direction, DestinationPortRange string }
			} `json:"securityRules"`
		} `json:"properties"`
	}
	c.read(providers+"networkSecurityGroups/"+nic.Properties.Group.ID[strings.LastIndexByte(nic.Properties.Group.ID, '/')+1:], &group)
	for _, r := range group.Properties.Rules {
		if r.Properties.Access == "Allow" && r.Properties.Direction == "Inbound" && r.Properties.DestinationPortRange == "22" {
			return true
		}
	}
	return false
}

func TestAzureConformance(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Around: synctest.Test, Open: func(t *testing.T) *provisiontest.Account {
		c := newAzureCloud(t)
		reopen := func(t *testing.T) provision.Provisioner { return c.open(t, azureSecret) }
		return &provisiontest.Account{
			Provisioner: reopen(t), Reopen: reopen,
			Intruder: c.open(t, "invalid-secret-0123456789"), ReadOnly: c.open(t, "readonly-secret-0123456789"),
			Region: "westeurope", Size: "Standard_B2as_v2", OtherSize: "Standard_B2pls_v2", MissingID: "node-0-0123456789",
			// Longer user-data is compressed: see TestAzureCompressesLongUserData.
			UserDataLimit: 0,
			Secrets:       []string{azureSecret, "invalid-secret-0123456789", "readonly-secret-0123456789"},
			Settle:        func() { time.Sleep(40 * time.Second) }, // of the bubble's time
			Billable:      c.billable,
			SSHReachable:  c.sshReachable,
			Faults: provisiontest.Faults{
				LoseCreate: func() {
					c.wire.mu.Lock()
					defer c.wire.mu.Unlock()
					c.wire.lose = func(r *http.Request) bool {
						return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/virtualMachines/")
					}
				},
				BreakCreate: c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 500}),
				NoCapacity:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectCapacity}),
				NoQuota:     c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectQuota}),
				Throttle:    c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectRateLimit}),
			},
		}
	}})
}
