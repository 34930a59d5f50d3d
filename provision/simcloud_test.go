package provision_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/cloudsim"
)

// inMemory answers requests from a handler, without a network, so that it
// works in a bubble.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			resp, err = nil, errors.New("connection reset by peer")
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

// simCloud is a simulated cloud of one provider, which ends with its test.
type simCloud struct {
	provider string
	sim      *cloudsim.Sim
	inMemory
}

func newSimCloud(t *testing.T, provider string, change ...func(*cloudsim.Options)) simCloud {
	t.Helper()
	opts := cloudsim.Options{Seed: 1, GuestDir: t.TempDir()}
	for _, c := range change {
		c(&opts)
	}
	sim, err := cloudsim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return simCloud{provider: provider, sim: sim, inMemory: inMemory{sim.Handler()}}
}

func (c simCloud) fault(t *testing.T, f cloudsim.Fault) {
	t.Helper()
	f.Provider = c.provider
	if _, err := c.sim.AddFault(f); err != nil {
		t.Fatal(err)
	}
}

// atCreate sets a fault, when it is called, for the creates of servers to come:
// one, or as many as the fault says.
func (c simCloud) atCreate(t *testing.T, f cloudsim.Fault) func() {
	f.Call = "create server"
	if f.Times == 0 {
		f.Times = 1
	}
	return func() { c.fault(t, f) }
}

// billable is what still costs money.
func (c simCloud) billable() (left []string) {
	for _, e := range c.sim.Ledger() {
		if e.Left() {
			left = append(left, e.Kind+" "+e.ID)
		}
	}
	return left
}

// calls names the requests that run made.
func (c simCloud) calls(run func()) (names []string) {
	before := len(c.sim.Requests())
	run()
	for _, r := range c.sim.Requests()[before:] {
		names = append(names, r.Call)
	}
	return names
}

// ask asks the API itself, past the code under test.
func (c simCloud) ask(t *testing.T, token, method, url, body string, out any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %v %s %v", method, url, resp.Status, text, err)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatal(err)
		}
	}
}
