package crash

import (
	"fmt"
	"testing"
)

// TestKilledDuringCreate kills the control plane at one moment of a create
// after another. Started again, it ends with the node joined, by one server.
func TestKilledDuringCreate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  map[string]any
		moment func(w *world)
	}{
		{name: "just recorded", moment: func(*world) {}},
		{
			name:  "call sent, no answer yet",
			fault: map[string]any{"call": "create server", "effect": "delay-answer", "delay": "2s", "times": 1},
			moment: func(w *world) {
				w.await("a server in the ledger", func() bool { m, _ := w.servers("n"); return m == 1 })
			},
		},
		{
			name:   "call sent, nothing made yet",
			fault:  map[string]any{"call": "create server", "effect": "delay", "delay": "1s", "times": 1},
			moment: func(w *world) { w.await("a firewall", func() bool { return w.asked("create ssh key", 1) }) },
		},
		{
			name:   "answer lost, then killed",
			fault:  map[string]any{"call": "create server", "effect": "drop-after", "times": 1},
			moment: func(w *world) { w.await("the call", func() bool { return w.asked("create server", 1) }) },
		},
		{
			name:   "booting",
			fault:  map[string]any{"effect": "slow-boot", "delay": "60s", "times": 1},
			moment: func(w *world) { w.await("the call", func() bool { return w.asked("create server", 1) }) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if tt.fault != nil {
				w.fault(tt.fault)
			}
			w.ok("node", "create", "n", "--region", "fsn1", "--size", "cx23", "--no-wait")
			tt.moment(w)
			w.kill()
			w.serve()
			w.ok("node", "wait", "n", "--timeout", "90s")
			if made, left := w.servers("n"); made != 1 || left != 1 {
				t.Errorf("%d servers were made and %d are left, want one", made, left)
			}
			w.gone("n")
		})
	}
}

// TestKilledDuringDelete is the same for deletes: it ends with nothing.
func TestKilledDuringDelete(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fault  map[string]any
		moment func(w *world)
	}{
		{name: "just recorded", moment: func(*world) {}},
		{
			name:  "call sent, no answer yet",
			fault: map[string]any{"call": "delete server", "effect": "delay-answer", "delay": "2s", "times": 1},
			moment: func(w *world) {
				w.await("the end of the server", func() bool { _, l := w.servers("n"); return l == 0 })
			},
		},
		{
			name:   "answer lost, then killed",
			fault:  map[string]any{"call": "delete server", "effect": "drop-after", "times": 1},
			moment: func(w *world) { w.await("the call", func() bool { return w.asked("delete server", 1) }) },
		},
		{
			name:   "refused for a while",
			fault:  map[string]any{"call": "delete server", "effect": "status", "status": 503, "times": 6},
			moment: func(w *world) { w.await("the call", func() bool { return w.asked("delete server", 2) }) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.ok("node", "create", "n", "--region", "fsn1", "--size", "cx23")
			// Once a list has shown the server, a list without it means
			// something; before, only the end of the create's window does.
			w.await("a list", func() bool { return w.asked("list servers", 1) })
			if tt.fault != nil {
				w.fault(tt.fault)
			}
			w.ok("node", "delete", "n", "--yes", "--no-wait")
			tt.moment(w)
			w.kill()
			w.serve()
			w.ok("node", "wait", "n", "--for", "deleted", "--timeout", "150s")
			w.nothingLeft()
		})
	}
}

// TestDeletedDuringCreate deletes a node whose create call is under way, with a
// kill between the two.
func TestDeletedDuringCreate(t *testing.T) {
	w := newWorld(t)
	w.fault(map[string]any{"call": "create server", "effect": "delay-answer", "delay": "1s", "times": 1})
	w.ok("node", "create", "n", "--region", "fsn1", "--size", "cx23", "--no-wait")
	w.await("a server in the ledger", func() bool { m, _ := w.servers("n"); return m == 1 })
	w.kill()
	w.serve()
	w.ok("node", "delete", "n", "--yes", "--timeout", "2m")
	w.nothingLeft()
}

// TestManyKills kills again and again while nodes come and go.
func TestManyKills(t *testing.T) {
	w := newWorld(t)
	const nodes = 6
	for i := range nodes {
		w.ok("node", "create", fmt.Sprintf("n-%d", i), "--region", "fsn1", "--size", "cx23", "--no-wait")
		w.kill()
		w.serve()
	}
	for i := range nodes {
		w.ok("node", "wait", fmt.Sprintf("n-%d", i), "--timeout", "90s")
	}
	if l := w.ledger(); l.Summary.Made != 3*nodes {
		t.Errorf("%d billable things were made, want %d: a server and two addresses a node", l.Summary.Made, 3*nodes)
	}
	for i := range nodes {
		w.ok("node", "delete", fmt.Sprintf("n-%d", i), "--yes", "--no-wait")
		w.kill()
		w.serve()
	}
	for i := range nodes {
		w.ok("node", "wait", fmt.Sprintf("n-%d", i), "--for", "deleted", "--timeout", "150s")
	}
	w.nothingLeft()
}

func (w *world) gone(name string) {
	w.t.Helper()
	w.ok("node", "delete", name, "--yes")
	w.nothingLeft()
}

// nothingLeft asks the cloud's ledger, and the audit.
func (w *world) nothingLeft() {
	w.t.Helper()
	if l := w.ledger(); l.Summary.Left != 0 {
		w.t.Errorf("%d billable things are left: %+v", l.Summary.Left, l.Entries)
	}
	w.ok("audit")
}
