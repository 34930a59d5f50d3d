package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// crashed is what a crash panics with.
type crashed struct{ point string }

// crashAfter makes the nth effect from now on a crash, and returns a function
// that tells how many there were.
func (w *world) crashAfter(n int) (count func() int) {
	seen := 0
	effect := func(point string) {
		if seen++; seen == n {
			panic(crashed{point})
		}
	}
	w.cloud.effect, w.store.effect = effect, effect
	return func() int { return seen }
}

// survive runs fn. After a crash in it everything that is not in the store is
// dropped and started again, and survive returns where it was.
func (w *world) survive(fn func()) (point string) {
	w.tb.Helper()
	defer func() {
		w.tb.Helper()
		switch v := recover().(type) {
		case nil:
		case crashed:
			point = v.point
			w.restart()
		default:
			panic(v)
		}
	}()
	fn()
	return ""
}

// ensure creates a node as somebody would who repeats what got no answer.
func (w *world) ensure(s fleet.NodeSpec) {
	w.tb.Helper()
	for range 2 {
		w.survive(func() {
			if _, err := w.fleet.CreateNode(w.ctx, s); err != nil && !errors.Is(err, fleet.ErrConflict) {
				w.tb.Fatal(err)
			}
		})
	}
}

// TestCrashMatrix stops a life at each of its external effects in turn: before
// and after every call and every commit. After a restart it must end the same.
// FLEET_THOROUGH=1 leaves none out.
func TestCrashMatrix(t *testing.T) {
	lost := func(w *world) {
		n := 0
		w.cloud.onCreate = func(provision.CreateOpts) fault {
			if n++; n == 1 {
				return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
			}
			return fault{}
		}
	}
	soldOut := func(w *world) {
		w.cloud.onCreate = func(o provision.CreateOpts) fault {
			if o.Region == "r1" {
				return fault{err: cloudErr(provision.ErrCapacity, "create server", "sold out")}
			}
			return fault{}
		}
	}
	for _, c := range []struct {
		name  string
		prep  func(*world)
		early bool // it is deleted before it has joined
		fails bool // it ends failed
		long  bool // most of its effects are looks that are alike
	}{
		{name: "plain"},
		{name: "deleted at once", early: true},
		{name: "answer lost", prep: lost},
		{name: "answer lost and deleted at once", prep: lost, early: true},
		{name: "sold out at first", prep: soldOut},
		{name: "lists lag", prep: func(w *world) { w.cloud.listLag = 40 * time.Second }, long: true},
		{name: "lists lag and deleted at once", prep: func(w *world) { w.cloud.listLag = 40 * time.Second }, early: true, long: true},
		{name: "never joins", prep: func(w *world) { w.joins = false }, fails: true, long: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Under the race detector a sample does: what it looks for does not
			// depend on where a life was stopped.
			stride := 1
			if c.long && !thorough {
				stride = 3
			}
			if raced && !thorough {
				stride *= 5
			}
			for n := 1; ; n += stride {
				if n > 500 {
					t.Fatal("the scenario never ends without a crash")
				}
				if !crashRun(t, n, c.prep, c.early, c.fails) {
					t.Logf("%d effects", n-stride)
					return
				}
			}
		})
	}
}

// crashRun is one life with a crash at the nth effect; it tells whether there
// were that many.
func crashRun(t *testing.T, n int, prep func(*world), early, fails bool) bool {
	t.Helper()
	w := newWorld(t, t.TempDir())
	defer w.db.Close()
	// Few looks make few effects, and no other kinds of them.
	w.cfg.Timing = fleet.Timing{ObserveFast: 15 * time.Second, CreateWindow: 50 * time.Second}
	w.restart()
	if prep != nil {
		prep(w)
	}
	count := w.crashAfter(n)
	s := spec("a")
	s.Candidates, s.JoinTimeout = append(s.Candidates, fleet.Candidate{Region: "r2", Size: "small"}), 2*time.Minute
	point := ""
	step := func(fn func()) {
		t.Helper()
		if at := w.survive(fn); at != "" {
			point = at
			w.checkAlways()
			w.survive(fn) // whoever asked asks again
		}
		w.checkAlways()
	}
	step(func() { w.ensure(s) })
	if early {
		step(func() { w.tick() })
	} else {
		step(func() { w.settle() })
		want := fleet.PhaseJoined
		if fails {
			want = fleet.PhaseFailed
		}
		if got := w.node("a"); got.Phase != want {
			t.Fatalf("crash at effect %d (%s): the node is %s; want %s\n%s", n, point, got.Phase, want, w.story())
		}
		w.checkSettled()
	}
	step(func() { w.delete("a") })
	step(func() { w.settle() })
	if got := w.node("a"); got.Phase != fleet.PhaseDeleted || len(w.cloud.alive()) != 0 {
		t.Fatalf("crash at effect %d (%s): the node is %s, %d servers are left\n%s", n, point, got.Phase, len(w.cloud.alive()), w.story())
	}
	w.checkSettled()
	reached := count() >= n
	defer w.quietly()()
	w.checkAudit()
	return reached
}
