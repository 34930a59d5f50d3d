package cloudsim

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDeterminism does the same to two clouds of one seed, and to one of
// another.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) string {
		b := newBench(t, func(o *Options) { o.Seed = seed })
		b.fault(Fault{Call: "get server", Skip: 1, Times: 1, Effect: EffectRateLimit})
		var out strings.Builder
		note := func(a answer) answer {
			fmt.Fprintln(&out, a.status, a.header, a.raw)
			return a
		}
		fw := note(b.do("POST", "/firewalls", map[string]any{"name": "f"})).text("firewall.id")
		var id string
		for i := range 5 {
			id = note(b.do("POST", "/servers", serverBody(fmt.Sprintf("n%d", i), map[string]any{
				"firewalls": []any{map[string]any{"firewall": atoi(t, fw)}}, "user_data": agentUserData,
			}))).text("server.id")
			b.sim.Advance(2 * time.Second)
		}
		b.sim.Advance(time.Minute)
		for _, path := range []string{"/servers/" + id, "/servers/" + id, "/servers", "/server_types", "/pricing", "/primary_ips", "/firewalls", "/servers/actions"} {
			note(b.do("GET", path, nil))
		}
		note(b.do("DELETE", "/servers/"+id, nil))
		b.sim.Advance(time.Minute)
		note(b.do("GET", "/_sim/ledger", nil))
		note(b.do("GET", "/_sim/requests", nil))
		for _, g := range b.sim.Guests() {
			fmt.Fprintln(&out, g.Name, g.Stage, g.Containers, strings.Join(g.Console, "\n"))
		}
		return out.String()
	}
	first := run(7)
	if diff := cmp.Diff(first, run(7)); diff != "" {
		t.Errorf("the same seed, another answer:\n%s", diff)
	}
	if run(8) == first {
		t.Error("another seed, the same answers")
	}
}

// TestClockRuns holds that events come when they are due on a clock that
// moves by itself, however fast, and also after it was set forward.
func TestClockRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		booted := make(chan string, 10)
		b := newBench(t, func(o *Options) {
			o.Manual, o.Speed = false, 10
			o.RunContainer = containerStarts(booted)
		})
		start := b.sim.Now()
		b.server("n", map[string]any{"user_data": agentUserData})
		began := time.Now()
		if got := wait(t, "container", booted); got != "agent of n" {
			t.Errorf("started %s", got)
		}
		// Create, start, kernel, cloud-init, Docker, pull: 36 s at ten times
		// the speed.
		if took := time.Since(began); took < 3500*time.Millisecond || took > 3800*time.Millisecond {
			t.Errorf("took %s of real time", took)
		}
		if took := b.sim.Now().Sub(start); took < 35*time.Second || took > 38*time.Second {
			t.Errorf("took %s of simulated time", took)
		}

		id := b.must("GET", "/servers", nil).text("servers.0.id")
		b.fault(Fault{Effect: EffectStuckDelete, Delay: Duration(24 * time.Hour)})
		b.must("DELETE", "/servers/"+id, nil)
		synctest.Wait() // the loop sleeps until tomorrow
		b.sim.Advance(24 * time.Hour)
		time.Sleep(time.Second) // the bubble's; the delete is three simulated seconds away
		synctest.Wait()
		b.sim.mu.Lock()
		left := len(b.sim.world.ledger)
		for _, e := range b.sim.world.ledger {
			if !e.Left() {
				left--
			}
		}
		b.sim.mu.Unlock()
		if left != 0 {
			t.Errorf("%d things are left: the loop slept on after the clock was set forward", left)
		}
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, speed := range []float64{-1, math.NaN(), math.Inf(1), maxSpeed + 1} {
		if s, err := New(Options{Speed: speed}); err == nil {
			t.Errorf("speed %v is taken", speed)
			_ = s.Close()
		}
	}
	if s, err := New(Options{GuestDir: "/dev/null/x"}); err == nil {
		t.Error("a guest directory that cannot be made is taken")
		_ = s.Close()
	}
}

// TestClose holds that nothing happens after it, and that it may come twice.
func TestClose(t *testing.T) {
	b := newBench(t)
	b.server("n", map[string]any{"user_data": agentUserData})
	for range 2 {
		if err := b.sim.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b.sim.Advance(time.Hour)
	if n := len(b.sim.Guests()); n != 0 {
		t.Errorf("%d guests booted after Close", n)
	}
	b.must("GET", "/servers", nil)
}

func TestControl(t *testing.T) {
	b := newBench(t)
	b.token = "" // nobody asks for one
	for _, tt := range []struct {
		call string
		body any
		want int
	}{
		{"POST /_sim/faults", map[string]any{"call": "create server", "effect": "slow-boot", "delay": "1m30s", "times": 1}, 201},
		{"POST /_sim/faults", map[string]any{"effect": "capacity"}, 400},
		{"POST /_sim/faults", map[string]any{"effect": "slow-boot", "delya": "1s"}, 400},
		{"POST /_sim/faults", map[string]any{"effect": "slow-boot", "delay": 5}, 400},
		{"POST /_sim/faults", "{", 400},
		{"POST /_sim/clock", map[string]any{"advance": "10m"}, 200},
		{"POST /_sim/clock", map[string]any{"advance": "-10m"}, 400},
		{"POST /_sim/clock", map[string]any{"advance": "soon"}, 400},
		{"GET /_sim/guests/1", nil, 404},
		{"GET /_sim/nothing", nil, 404},
		{"DELETE /_sim/clock", nil, 404},
	} {
		method, path, _ := strings.Cut(tt.call, " ")
		if a := b.do(method, path, tt.body); a.status != tt.want || tt.want >= 400 && a.text("error") == "" {
			t.Errorf("%s %v: %d %s, want %d", tt.call, tt.body, a.status, a.raw, tt.want)
		}
	}
	if a := b.must("GET", "/_sim/clock", nil); a.text("now") != "2026-01-01T00:10:00Z" || a.text("manual") != "true" {
		t.Errorf("clock: %s", a.raw)
	}
	if a := b.must("GET", "/_sim/faults", nil); a.count("faults") != 1 || a.text("faults.0.delay") != "1m30s" || a.text("faults.0.id") != "1" {
		t.Errorf("faults: %s", a.raw)
	}
	if a := b.do("DELETE", "/_sim/faults", nil); a.status != http.StatusNoContent || len(b.sim.Faults()) != 0 {
		t.Errorf("faults cleared: %d", a.status)
	}
	b.token = testToken
	b.running("n")
	b.sim.Advance(time.Minute)
	if a := b.must("GET", "/_sim/guests/n", nil); a.text("stage") != "up" || a.count("console") < 3 || a.count("containers") != 0 {
		t.Errorf("guest: %s", a.raw)
	}
	if a := b.must("GET", "/_sim/guests", nil); a.count("guests") != 1 {
		t.Errorf("guests: %s", a.raw)
	}
	if a := b.must("GET", "/_sim/ledger", nil); a.text("summary.left") != "3" || a.text("entries.0.kind") != "server" || strings.Contains(a.raw, "deleted_at") {
		t.Errorf("ledger: %s", a.raw)
	}
	a := b.must("GET", "/_sim/requests", nil)
	for path, want := range map[string]string{"requests.0.call": "create server", "requests.0.method": "POST", "requests.0.path": "/hetzner/v1/servers", "requests.0.name": "n", "requests.0.status": "201", "forgotten": "0"} {
		if got := a.text(path); got != want {
			t.Errorf("requests: %s is %q, want %q", path, got, want)
		}
	}
}

// TestRequestLogIsBounded holds that the log forgets its oldest, and says how
// many.
func TestRequestLogIsBounded(t *testing.T) {
	b := newBench(t)
	b.sim.mu.Lock()
	for i := range maxRequests + 1 {
		b.sim.note(Request{Status: i})
	}
	b.sim.mu.Unlock()
	rs := b.sim.Requests()
	if len(rs) > maxRequests || rs[len(rs)-1].Status != maxRequests {
		t.Errorf("%d requests, the last %+v", len(rs), rs[len(rs)-1])
	}
	if a := b.must("GET", "/_sim/requests", nil); a.text("forgotten") != fmt.Sprint(maxRequests/10) {
		t.Errorf("forgotten: %s", a.text("forgotten"))
	}
}
