package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lockedBuffer is a log that handlers write while a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fixed is a clock that stands.
func fixed() time.Time { return apitest.Start }

// start serves the API over a fleet with one account.
func start(t *testing.T, o api.Options) (*apitest.Fleet, string) {
	t.Helper()
	f := apitest.New(fixed)
	if _, err := f.AddAccount(t.Context(), fleet.AccountSpec{Name: "prod", Provider: "hetzner", Credential: "c"}); err != nil {
		t.Fatal(err)
	}
	url, stop, err := apitest.Serve(f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); stop() })
	return f, url
}

// send sends a request with the token, unless header has one of its own.
func send(t *testing.T, method, url, body string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apitest.Token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, data
}

func problemOf(t *testing.T, resp *http.Response, data []byte) client.Problem {
	t.Helper()
	if ct := resp.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type is %q, not a problem's; body %s", ct, data)
	}
	var p client.Problem
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if p.Status != resp.StatusCode {
		t.Errorf("the problem says status %d, the answer has %d", p.Status, resp.StatusCode)
	}
	return p
}

const createBody = `{"name":"web-1","account":"prod","candidates":[{"region":"fsn1","size":"cx23"}]}`
