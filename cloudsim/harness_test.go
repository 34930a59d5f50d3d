package cloudsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testToken = "test0test0test0test0test0test0test0test0test0test0test0test0test"

// bench is a simulated cloud with a client of Hetzner's API.
type bench struct {
	t     *testing.T
	sim   *Sim
	token string
}

// newBench returns one whose clock stands still, unless the options want
// another.
func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	opts := Options{Seed: 1, Manual: true, GuestDir: t.TempDir()}
	for _, c := range change {
		c(&opts)
	}
	sim, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{t: t, sim: sim, token: testToken}
}

// answer is what a call answered.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// do sends a request. A body that is not text is sent as JSON.
func (b *bench) do(method, path string, body any) answer {
	b.t.Helper()
	if !strings.HasPrefix(path, "/_sim/") {
		path = hetznerPrefix + path
	}
	var r io.Reader = http.NoBody
	switch v := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		r = bytes.NewReader(data)
	}
	req := httptest.NewRequest(method, path, r)
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	w := httptest.NewRecorder()
	b.sim.Handler().ServeHTTP(w, req)
	a := answer{status: w.Code, header: w.Header(), raw: w.Body.String()}
	if len(a.raw) > 0 {
		if err := json.Unmarshal([]byte(a.raw), &a.body); err != nil {
			b.t.Fatalf("%s %s: %v\n%s", method, path, err, a.raw)
		}
	}
	return a
}

// get looks a value up by its path in the answer, as "server.public_net.ipv4.ip".
func (a answer) get(path string) any {
	var v any = a.body
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string {
	switch v := a.get(path).(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprint(v)
	}
}

func (a answer) count(path string) int {
	list, ok := a.get(path).([]any)
	if !ok {
		return -1
	}
	return len(list)
}

// code is the answer's error code, or its status when it has none.
func (a answer) code() string {
	if c := a.text("error.code"); c != "" {
		return c
	}
	return fmt.Sprint(a.status)
}

// must sends a request that has to succeed.
func (b *bench) must(method, path string, body any) answer {
	b.t.Helper()
	a := b.do(method, path, body)
	if a.status >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, path, a.status, a.raw)
	}
	return a
}

// server creates one, with changes to the body that a create has by default.
func (b *bench) server(name string, change ...map[string]any) string {
	b.t.Helper()
	return b.must("POST", "/servers", serverBody(name, change...)).text("server.id")
}

func serverBody(name string, change ...map[string]any) map[string]any {
	body := map[string]any{"name": name, "server_type": "cx23", "image": "ubuntu-24.04", "location": "fsn1"}
	for _, c := range change {
		for k, v := range c {
			if v == nil {
				delete(body, k)
			} else {
				body[k] = v
			}
		}
	}
	return body
}

// running creates a server and waits until it runs.
func (b *bench) running(name string, change ...map[string]any) string {
	b.t.Helper()
	id := b.server(name, change...)
	b.sim.Advance(hetznerCreateTakes + hetznerStartTakes)
	if s := b.must("GET", "/servers/"+id, nil).text("server.status"); s != "running" {
		b.t.Fatalf("server %s is %s", name, s)
	}
	return id
}

// fault adds a rule.
func (b *bench) fault(f Fault) {
	b.t.Helper()
	if _, err := b.sim.AddFault(f); err != nil {
		b.t.Fatal(err)
	}
}

// guest returns the only guest.
func (b *bench) guest() Guest {
	b.t.Helper()
	gs := b.sim.Guests()
	if len(gs) != 1 {
		b.t.Fatalf("%d guests", len(gs))
	}
	return gs[0]
}

func (g Guest) printed(text string) bool {
	return strings.Contains(strings.Join(g.Console, "\n"), text)
}

// wait waits for a channel, with a limit that only a fault reaches.
func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("no %s within 10 s", what)
		panic("unreachable")
	}
}
