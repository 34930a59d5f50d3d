package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fixed() time.Time { return apitest.Start }

// withAccount is a fleet with the account prod.
func withAccount(t *testing.T) *apitest.Fleet {
	t.Helper()
	f := apitest.New(fixed)
	if _, err := f.AddAccount(t.Context(), fleet.AccountSpec{Name: "prod", Provider: "hetzner", Credential: "c"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// plain serves the API without TLS.
func plain(t *testing.T, f *apitest.Fleet) string {
	t.Helper()
	url, stop, err := apitest.Serve(f, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

func dial(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var in = client.CreateNode{Name: "web-1", Account: "prod", Candidates: []client.Candidate{{Region: "fsn1", Size: "cx23"}}}

// TestPinnedTLS runs the API under a real CA, as `serve` does.
func TestPinnedTLS(t *testing.T) {
	ca, err := enroll.OpenCA(t.TempDir(), enroll.CAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := enroll.OpenCA(t.TempDir(), enroll.CAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := api.New(withAccount(t), api.Options{Token: apitest.Token})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := func(hosts ...string) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; h.ServeHTTP(w, r) }))
		s.TLS = ca.NodeTLSConfig(hosts...)
		s.Config.ErrorLog = nil
		s.StartTLS()
		// The test server puts its own certificate first; ours must be asked.
		s.TLS.Certificates = nil
		t.Cleanup(s.Close)
		return s.URL
	}
	right, wrongHost := server("127.0.0.1"), server("cp.example.com")

	c := dial(t, client.Options{URL: right, Token: apitest.Token, CAFingerprint: string(ca.Fingerprint())})
	if _, err := c.CreateNode(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Watch(t.Context(), client.WatchOptions{}) {
		if err != nil || e.Type != "requested" {
			t.Errorf("%+v %v", e, err)
		}
		break
	}
	asked = 0
	for name, o := range map[string]client.Options{
		"wrong pin":      {URL: right, CAFingerprint: string(other.Fingerprint())},
		"system's roots": {URL: right},
		"wrong host":     {URL: wrongHost, CAFingerprint: string(ca.Fingerprint())},
	} {
		t.Run(name, func(t *testing.T) {
			o.Token = apitest.Token
			_, err := dial(t, o).Nodes(t.Context(), client.NodeFilter{})
			var ce *client.Error
			if !errors.As(err, &ce) || ce.Class != client.ClassUnreachable || ce.Hint == "" {
				t.Fatalf("%+v", err)
			}
			if want := "is not the control plane that was expected"; !strings.Contains(ce.Message, want) {
				t.Errorf("the message is %q", ce.Message)
			}
		})
	}
	if asked > 0 {
		t.Error("the token was sent to a server that was not verified")
	}
}

func TestContextEnds(t *testing.T) {
	f := withAccount(t)
	held := make(chan struct{})
	f.Fail = func(method, _ string) error {
		if method == "Regions" {
			<-held
		}
		return nil
	}
	url := plain(t, f)
	defer close(held)
	c := dial(t, client.Options{URL: url, Token: apitest.Token})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go cancel(why)
	if _, err := c.Regions(ctx, "prod"); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
