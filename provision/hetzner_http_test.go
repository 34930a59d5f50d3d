package provision_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/provision"
)

// ServeHTTP lets the fake be reached over real connections.
func (f *fakeHetzner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := f.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

func overHTTP(t *testing.T, server *httptest.Server) provision.Provisioner {
	t.Helper()
	transport := &http.Transport{}
	if server.TLS != nil {
		transport = server.Client().Transport.(*http.Transport).Clone()
	}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := provision.Open("hetzner", goodToken, provision.Options{
		Endpoint: server.URL + "/v1/", HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHetznerOverRealConnections(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f := newFakeHetzner()
	server := httptest.NewTLSServer(f)
	defer server.Close()
	p := overHTTP(t, server)
	f.fault("POST /servers", fault{after: true})
	id, ip, err := p.CreateServer(t.Context(), nodeOpts("node-1"))
	if err != nil || ip == "" {
		t.Fatalf("create with a lost answer: address %q, %v", ip, err)
	}
	status, _, err := p.GetServer(t.Context(), id)
	if err != nil || status != provision.ServerStatusPending || len(f.names("servers")) != 1 {
		t.Errorf("status %q, %v, servers %v", status, err, f.names("servers"))
	}
}

func TestHetznerCallsEndWithTheirContextOverRealConnections(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	p := overHTTP(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := p.ListRegions(ctx)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestHetznerSaysThatNobodyIsThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	p, err := provision.Open("hetzner", goodToken, provision.Options{Endpoint: "http://" + address + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	// Too short for a second try, which is never begun then.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = p.ListRegions(ctx)
	var e *provision.ProviderError
	if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "cannot reach "+address) || !errors.As(err, &e) || e.Hint == "" || e.Status != 0 {
		t.Errorf("got %v", err)
	}
}

func TestHetznerRefusesACertificateThatIsNotTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(newFakeHetzner())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it notes the refused handshake
	server.StartTLS()
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p, err := provision.Open("hetzner", goodToken, provision.Options{Endpoint: server.URL, HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.ListRegions(t.Context()); !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("got %v", err)
	}
}
