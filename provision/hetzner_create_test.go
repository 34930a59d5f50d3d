package provision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/provision"
)

func (f *fakeHetzner) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, request) {
			n++
		}
	}
	return n
}

// since returns the requests that run makes.
func (f *fakeHetzner) since(run func()) []string {
	f.mu.Lock()
	before := len(f.requests)
	f.mu.Unlock()
	run()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests[before:])
}

func (f *fakeHetzner) names(table string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, o := range f.tables[table] {
		names = append(names, o["name"].(string))
	}
	return names
}

// hetznerTest is one test in a bubble, with a project of its own.
func hetznerTest(t *testing.T, test func(t *testing.T, f *fakeHetzner, h *provision.Hetzner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeHetzner()
		test(t, f, openHetzner(t, f, goodToken))
	})
}

func nodeOpts(name string) provision.CreateOpts {
	return provision.CreateOpts{
		Region: "fsn1", Size: "cx23", Name: name, UserData: "#cloud-config\n{}\n", IdempotencyKey: "key-" + name,
		Labels: map[string]string{"acme-node": name},
	}
}

func mustCreate(t *testing.T, h provision.Provisioner, opts provision.CreateOpts) string {
	t.Helper()
	id, _, err := h.CreateServer(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestHetznerRequestsOfACreate(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		cold := f.since(func() { mustCreate(t, h, nodeOpts("node-1")) })
		want := []string{"GET /firewalls", "POST /firewalls", "GET /ssh_keys", "POST /ssh_keys", "POST /servers"}
		if d := cmp.Diff(want, cold); d != "" {
			t.Errorf("first create (-want +got):\n%s", d)
		}
		time.Sleep(9 * time.Minute)
		warm := f.since(func() { mustCreate(t, h, nodeOpts("node-2")) })
		if d := cmp.Diff([]string{"POST /servers"}, warm); d != "" {
			t.Errorf("warm create (-want +got):\n%s", d)
		}
		repeat := f.since(func() { mustCreate(t, h, nodeOpts("node-2")) })
		if d := cmp.Diff([]string{"POST /servers", "GET /servers"}, repeat); d != "" {
			t.Errorf("repeat (-want +got):\n%s", d)
		}
		time.Sleep(2 * time.Minute)
		later := f.since(func() { mustCreate(t, h, nodeOpts("node-3")) })
		if d := cmp.Diff([]string{"GET /firewalls", "GET /ssh_keys", "POST /servers"}, later); d != "" {
			t.Errorf("after ten minutes (-want +got):\n%s", d)
		}
	})
}

func TestHetznerCreateBody(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		var got object
		text := strings.TrimPrefix(f.bodies[len(f.bodies)-1], "POST /servers ")
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		labels := got["labels"].(object)
		for _, k := range []string{"acme-key", "acme-params"} {
			if v, _ := labels[k].(string); len(v) != 40 {
				t.Errorf("label %s is %q", k, v)
			}
			delete(labels, k)
		}
		want := object{
			"name": "node-1", "server_type": "cx23", "image": "ubuntu-24.04", "location": "fsn1", "user_data": "#cloud-config\n{}\n",
			"labels":    object{"managed-by": "acme", "acme-node": "node-1"},
			"ssh_keys":  []any{float64(f.tables["ssh_keys"][0]["id"].(int64))},
			"firewalls": []any{object{"firewall": float64(f.tables["firewalls"][0]["id"].(int64))}},
			"public_net": object{
				"enable_ipv4": true, "enable_ipv6": true,
			},
			"start_after_create": true,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if got := f.names("firewalls"); !slices.Equal(got, []string{"acme-no-inbound"}) {
			t.Errorf("firewalls %v", got)
		}
		if rules := f.tables["firewalls"][0]["rules"].([]any); len(rules) != 0 {
			t.Errorf("the shared firewall has rules: %v", rules)
		}
	})
}

func TestHetznerServerWithoutFirewallIsRemoved(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		f.fault("POST /servers", fault{edit: func(a object) {
			a["server"].(object)["public_net"].(object)["firewalls"] = []any{}
		}})
		_, _, err := h.CreateServer(t.Context(), nodeOpts("node-2"))
		if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "without firewall") || provision.LeftBehind(err) != nil {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if got := f.billable(); len(got) != 2 {
			t.Errorf("on the bill are %v, want node-1 and its address", got)
		}
	})
}

func TestHetznerWhatCannotBeRemovedIsNamed(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		opts := nodeOpts("node-1")
		opts.AllowSSHInbound = true
		f.fault("POST /servers", fault{edit: func(a object) {
			s := a["server"].(object)
			s["public_net"].(object)["firewalls"] = []any{}
			f.tables["servers"][0]["_protected"] = true
		}})
		begin := time.Now()
		_, _, err := h.CreateServer(t.Context(), opts)
		left := provision.LeftBehind(err)
		if len(left) != 2 || left[0].Kind != provision.KindServer || left[0].Name != "node-1" || !left[0].Billable || left[1].Kind != provision.KindFirewall {
			t.Fatalf("left behind: %+v, error %v", left, err)
		}
		if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), left[0].ID) || time.Since(begin) > time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestHetznerNameOfSomebodyElse(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		for what, change := range map[string]func(o *provision.CreateOpts){
			"another key": func(o *provision.CreateOpts) { o.IdempotencyKey = "other" },
			"no key":      func(o *provision.CreateOpts) { o.IdempotencyKey = "" },
		} {
			opts := nodeOpts("node-1")
			change(&opts)
			_, _, err := h.CreateServer(t.Context(), opts)
			if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "another create") {
				t.Errorf("%s: %v", what, err)
			}
		}
		labels := f.tables["servers"][0]["labels"].(object)
		labels["managed-by"] = "other" // with our key's label, which proves nothing
		if _, _, err := h.CreateServer(t.Context(), nodeOpts("node-1")); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("a server of somebody else was taken: %v", err)
		}
		if n := f.count("DELETE"); n != 0 {
			t.Errorf("%d deletes: something was removed that this call did not make", n)
		}
	})
}

func TestHetznerNameOfAServerThatIsBeingDeleted(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, nodeOpts("node-1"))
		time.Sleep(time.Minute)
		if err := h.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		opts := nodeOpts("node-1")
		opts.IdempotencyKey = "the next"
		if again := mustCreate(t, h, opts); again == id {
			t.Errorf("got the old server %s", id)
		}
	})
}

func TestHetznerCreateIsSentABoundedNumberOfTimes(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		f.fault("POST /servers", fault{status: 502}, fault{status: 504}, fault{}, fault{status: 502}, fault{status: 502})
		before := f.count("POST /servers")
		_, _, err := h.CreateServer(t.Context(), nodeOpts("node-2"))
		if n := f.count("POST /servers") - before; n != 3 || !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("sent %d times: %v", n, err)
		}
	})
}

func TestHetznerLostAnswerAndLostLook(t *testing.T) {
	for key, wantLeft := range map[string]int{"a key": 0, "": 1} {
		hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
			mustCreate(t, h, nodeOpts("node-1"))
			opts := nodeOpts("node-2")
			opts.IdempotencyKey = key
			f.fault("POST /servers", fault{after: true})
			f.fault("GET /servers", slices.Repeat([]fault{{status: 503}}, 30)...)
			_, _, err := h.CreateServer(t.Context(), opts)
			left := provision.LeftBehind(err)
			if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "not known") || len(left) != wantLeft {
				t.Fatalf("key %q: left %+v, error %v", key, left, err)
			}
			f.faults = map[string][]fault{}
			if key != "" {
				mustCreate(t, h, opts) // finds it
				return
			}
			time.Sleep(time.Minute)
			if err := h.DeleteResource(t.Context(), left[0]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := f.billable(); len(got) != 2 {
				t.Errorf("on the bill: %v", got)
			}
		})
	}
}

// TestHetznerServerOfSomebodyElseSurvivesAnUnknownOutcome: a create without
// key looks for what it may have made, and removes nothing else.
func TestHetznerServerOfSomebodyElseSurvivesAnUnknownOutcome(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		opts := nodeOpts("node-1")
		opts.IdempotencyKey = ""
		f.fault("POST /servers", fault{status: 504})
		f.fault("GET /servers", slices.Repeat([]fault{{status: 503}}, 5)...)
		_, _, err := h.CreateServer(t.Context(), opts)
		if !errors.Is(err, provision.ErrUnavailable) || f.count("DELETE") != 0 {
			t.Errorf("%v, %d deletes", err, f.count("DELETE"))
		}
		err = h.DeleteResource(t.Context(), provision.Resource{
			Kind: provision.KindServer, Name: "node-1", Labels: map[string]string{"managed-by": "acme", "acme-key": "another"},
		})
		if err != nil || f.count("DELETE") != 0 {
			t.Errorf("removing a resource of another key: %v, %d deletes", err, f.count("DELETE"))
		}
	})
}

func TestHetznerErrorsHoldNoUserData(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		f.fault("POST /servers", fault{status: 422, code: "invalid_input", message: "line 2: JOIN_TOKEN=swjt_abcdefgh.0123456789abcdef is odd"})
		opts := nodeOpts("node-2")
		opts.UserData = "#cloud-config\nJOIN_TOKEN=swjt_abcdefgh.0123456789abcdef\n"
		_, _, err := h.CreateServer(t.Context(), opts)
		if !errors.Is(err, provision.ErrInvalid) || strings.Contains(fmt.Sprintf("%v %#v", err, err), "0123456789abcdef") || !strings.Contains(err.Error(), "is odd") {
			t.Errorf("got %v", err)
		}
	})
}

// TestHetznerTakenNameThatNobodyHas: the provider says that the name is taken
// and shows no server of it. That is no conflict for ever.
func TestHetznerTakenNameThatNobodyHas(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.fault("POST /servers", slices.Repeat([]fault{{status: 409, code: "uniqueness_error"}}, 6)...)
		_, _, err := h.CreateServer(t.Context(), nodeOpts("node-1"))
		if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "to be seen") {
			t.Errorf("got %v", err)
		}
		mustCreate(t, h, nodeOpts("node-1"))
	})
}

// TestHetznerCreateStoppedUnderWay: the context ends while the create is under
// way. With a key nothing is removed, since the repeat finds it; without one
// the server that came of it is.
func TestHetznerCreateStoppedUnderWay(t *testing.T) {
	for key, left := range map[string]int{"a key": 2, "": 0} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeHetzner()
			ctx, cancel := context.WithCancel(t.Context())
			h := openHetzner(t, stopAfter{f, "POST /servers", cancel}, goodToken)
			opts := nodeOpts("node-1")
			opts.IdempotencyKey = key
			_, _, err := h.CreateServer(ctx, opts)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, provision.ErrUnavailable) {
				t.Errorf("key %q: %v", key, err)
			}
			time.Sleep(time.Minute)
			if got := f.billable(); len(got) != left {
				t.Errorf("key %q: on the bill: %v", key, got)
			}
			if key != "" {
				mustCreate(t, h, opts)
				if got := f.billable(); len(got) != left {
					t.Errorf("after the repeat, on the bill: %v", got)
				}
			}
		})
	}
}

// stopAfter lets one request take effect and ends the caller's context before
// the answer.
type stopAfter struct {
	*fakeHetzner
	request string
	cancel  context.CancelFunc
}

func (s stopAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.fakeHetzner.RoundTrip(r)
	if r.Context().Err() == nil && r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1") == s.request {
		s.cancel()
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
	}
	return resp, err
}

func TestHetznerSharedThingsThatVanishedComeBack(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		f.tables["servers"], f.tables["firewalls"], f.tables["ssh_keys"] = nil, nil, nil
		mustCreate(t, h, nodeOpts("node-2"))
		if got := append(f.names("firewalls"), f.names("ssh_keys")...); !slices.Equal(got, []string{"acme-no-inbound", "acme-no-login"}) {
			t.Errorf("there are %v", got)
		}
	})
}

func TestHetznerWrongOptionsAreNotSentTwice(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		opts := nodeOpts("node-1")
		opts.Size = "cx999"
		_, _, err := h.CreateServer(t.Context(), opts)
		if n := f.count("POST /servers"); n != 1 || !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("sent %d times: %v", n, err)
		}
	})
}

func TestHetznerLooksAtTheSizeOnlyWhenAsked(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		if n := f.count("GET /server_types"); n != 0 {
			t.Errorf("asked %d times", n)
		}
		for i, c := range []struct {
			arch string
			disk int
			ok   bool
		}{{"x86", 40, true}, {"arm", 0, false}, {"", 80, false}, {"sparc", 0, false}} {
			opts := nodeOpts("node-" + string(rune('a'+i)))
			opts.Architecture, opts.DiskGB = c.arch, c.disk
			_, _, err := h.CreateServer(t.Context(), opts)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("%s, %d GB: %v", c.arch, c.disk, err)
			}
		}
		if n := f.count("GET /server_types"); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

func TestHetznerIgnoresARateLimitThatPasses(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.fault("POST /servers", fault{status: 429, code: "rate_limit_exceeded", header: http.Header{"Retry-After": {"7"}}})
		begin := time.Now()
		mustCreate(t, h, nodeOpts("node-1"))
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("took %v, want a little over 7s", took)
		}
	})
}
