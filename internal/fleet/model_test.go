package fleet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// TestModel drives a fleet by random actions: creates, deletes, crashes, lost
// answers, lists that lag or fail, sold-out regions, joins, jumps of the clock.
// After each the invariants must hold; in the end, when the faults are over,
// everything must settle and nothing be left. FLEET_THOROUGH=1 tries as many
// lives as -rapid.checks says; without it there are few.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "fleet-model-*")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w := newWorld(rt, dir)
		defer w.db.Close()
		w.cfg.Timing = fleet.Timing{ObserveFast: 10 * time.Second, JoinTimeout: 10 * time.Minute}
		w.restart()
		m := &model{w: w}
		w.cloud.onCreate = m.onCreate
		rt.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) { w.checkAlways() },
			"create":      m.create,
			"delete":      m.delete,
			"tick":        func(*rapid.T) { w.tick() },
			"time":        m.time,
			"crash":       m.crash,
			"restart":     func(*rapid.T) { w.restart() },
			"create fate": m.createFate,
			"list fate":   m.listFate,
			"delete fate": m.deleteFate,
			"guests":      func(rt *rapid.T) { w.joins = rapid.Bool().Draw(rt, "join") },
			"break":       m.breakServer,
			"observe":     func(rt *rapid.T) { _, _ = w.fleet.Observe(w.ctx, "acme") },
		})
		m.end()
	})
}

type model struct {
	w     *world
	nodes int
	fates []fault // of the next creates
}

func (m *model) onCreate(o provision.CreateOpts) fault {
	if len(m.fates) == 0 {
		return fault{}
	}
	f := m.fates[0]
	m.fates = m.fates[1:]
	return f
}

func (m *model) create(rt *rapid.T) {
	if m.nodes >= 6 {
		rt.Skip()
	}
	s := spec(fmt.Sprintf("n%d", m.nodes))
	m.nodes++
	if rapid.Bool().Draw(rt, "two candidates") {
		s.Candidates = append(s.Candidates, fleet.Candidate{Region: "r2", Size: "small"})
	}
	m.w.create(s)
}

func (m *model) pick(rt *rapid.T) string {
	if m.nodes == 0 {
		rt.Skip()
	}
	return fmt.Sprintf("n%d", rapid.IntRange(0, m.nodes-1).Draw(rt, "node"))
}

func (m *model) delete(rt *rapid.T) { m.w.delete(m.pick(rt)) }

func (m *model) time(rt *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 7 * time.Second, 40 * time.Second, 3 * time.Minute, 20 * time.Minute}).Draw(rt, "for")
	if rapid.Bool().Draw(rt, "jump") {
		m.w.clock.advance(d)
		m.w.tick()
		return
	}
	m.w.run(min(d, 3*time.Minute))
}

// crash works what is due until it crashes at some effect.
func (m *model) crash(rt *rapid.T) {
	n := rapid.IntRange(1, 8).Draw(rt, "effect")
	m.w.crashAfter(n)
	m.w.survive(func() {
		m.w.tick()
		m.w.clock.advance(3 * time.Second)
		m.w.tick()
	})
	m.w.cloud.effect, m.w.store.effect = func(string) {}, func(string) {}
}

func (m *model) createFate(rt *rapid.T) {
	class := rapid.SampledFrom([]error{provision.ErrCapacity, provision.ErrQuota, provision.ErrRateLimited, provision.ErrUnavailable, provision.ErrInvalid}).Draw(rt, "class")
	// Only a call whose effect is not known may have had one.
	effect := class == provision.ErrUnavailable && rapid.Bool().Draw(rt, "effect")
	m.fates = append(m.fates, fault{err: cloudErr(class, "create server", "fate"), effect: effect})
}

func (m *model) listFate(rt *rapid.T) {
	m.w.cloud.listLag = rapid.SampledFrom([]time.Duration{0, 5 * time.Second, 60 * time.Second}).Draw(rt, "lag")
	m.w.cloud.onList = nil
	if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
		m.w.cloud.onList = func() error { return cloudErr(provision.ErrUnavailable, "list servers", "fate") }
	}
}

func (m *model) deleteFate(rt *rapid.T) {
	m.w.cloud.dying = rapid.SampledFrom([]time.Duration{0, 3 * time.Second, 4 * time.Minute}).Draw(rt, "dying")
	fails := rapid.IntRange(0, 3).Draw(rt, "failures")
	effect := rapid.Bool().Draw(rt, "effect")
	m.w.cloud.onDelete = func(string) fault {
		if fails--; fails >= 0 {
			return fault{err: cloudErr(provision.ErrUnavailable, "delete server", "fate"), effect: effect}
		}
		return fault{}
	}
}

// breakServer lets a server break, or vanish as by somebody's hand.
func (m *model) breakServer(rt *rapid.T) {
	servers := m.w.cloud.alive()
	if len(servers) == 0 {
		rt.Skip()
	}
	s := servers[rapid.IntRange(0, len(servers)-1).Draw(rt, "server")]
	if rapid.Bool().Draw(rt, "vanish") {
		// Calls in flight would find it again: it vanishes for good.
		s.goneAt = m.w.clock.Now()
		return
	}
	s.broken = true
}

// end takes the faults away and deletes half of the nodes, and all in the end.
func (m *model) end() {
	w := m.w
	m.fates, w.cloud.onDelete, w.cloud.onList, w.cloud.listLag, w.joins = nil, nil, nil, 0, true
	w.cloud.dying = 3 * time.Second
	w.settle()
	w.run(5 * time.Minute) // lost servers of joined nodes show
	w.settle()
	w.checkSettled()
	for i := range m.nodes {
		w.delete(fmt.Sprintf("n%d", i))
		if i%2 == 0 {
			w.restart()
		}
	}
	w.settle()
	w.checkSettled()
	if n := len(w.cloud.alive()); n != 0 {
		w.tb.Fatalf("%d servers are left\n%s", n, w.story())
	}
	w.checkAudit()
}
