package fleet_test

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// checkAlways holds what must hold at every instant.
func (w *world) checkAlways() {
	w.tb.Helper()
	nodes, err := w.db.Nodes(w.ctx, fleet.NodeQuery{})
	if err != nil {
		w.tb.Fatal(err)
	}
	byID := map[string]fleet.Node{}
	for _, n := range nodes {
		byID[n.ID] = n
		w.checkTokens(n)
	}
	perNode := map[string]int{}
	for _, s := range w.cloud.alive() {
		id := s.Labels["slipway-node"]
		n, known := byID[id]
		if !known {
			w.tb.Fatalf("server %s belongs to no record\n%s", s.ID, w.story())
		}
		if perNode[id]++; perNode[id] > 1 {
			w.tb.Fatalf("node %s has two servers\n%s", n.Name, w.story())
		}
		// A server that is being removed may be there a moment longer; one that
		// nobody removes must be owned.
		if s.goneAt.IsZero() && (n.Phase == fleet.PhaseDeleted || n.Phase == fleet.PhaseFailed && n.ServerGone) {
			w.tb.Fatalf("node %s is %s, and its server %s lives on\n%s", n.Name, n.Phase, s.ID, w.story())
		}
	}
}

// checkTokens holds that no token of a node lives that should not.
func (w *world) checkTokens(n fleet.Node) {
	w.tb.Helper()
	for attempt := 1; attempt <= n.Attempt; attempt++ {
		tok := enroll.DeriveToken(w.cfg.TokenKey, n.ID+"|"+strconv.Itoa(attempt))
		rec, err := w.db.Token(w.ctx, tok.ID())
		if err != nil {
			w.tb.Fatal(fmt.Errorf("token of attempt %d of %s: %w", attempt, n.Name, err))
		}
		alive := rec.State == fleet.TokenLive
		over := attempt < n.Attempt || n.Phase != fleet.PhaseCreating && n.Phase != fleet.PhaseBooting
		if alive && over {
			w.tb.Fatalf("node %s is %s at attempt %d, and the token of attempt %d lives\n%s", n.Name, n.Phase, n.Attempt, attempt, w.story())
		}
	}
}

// checkSettled holds what must hold once nothing is under way.
func (w *world) checkSettled() {
	w.tb.Helper()
	defer w.quietly()()
	w.checkAlways()
	nodes, err := w.db.Nodes(w.ctx, fleet.NodeQuery{})
	if err != nil {
		w.tb.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, n := range nodes {
		switch n.Phase {
		case fleet.PhaseJoined:
			wanted[n.ServerID] = true
		case fleet.PhaseDeleted, fleet.PhaseFailed:
			if !n.ServerGone {
				w.tb.Fatalf("node %s is %s, and its server was not seen to be gone\n%s", n.Name, n.Phase, w.story())
			}
		default:
			w.tb.Fatalf("node %s is still %s\n%s", n.Name, n.Phase, w.story())
		}
	}
	for _, s := range w.cloud.alive() {
		if !wanted[s.ID] {
			w.tb.Fatalf("server %s is left\n%s", s.ID, w.story())
		}
		delete(wanted, s.ID)
	}
	for id := range wanted {
		w.tb.Fatalf("server %s of a joined node does not exist\n%s", id, w.story())
	}
	// No token lets a second machine in.
	for _, s := range w.cloud.servers {
		tok, err := s.token()
		if err != nil {
			w.tb.Fatal(err)
		}
		if _, err := w.redeem(tok, "another key"); !errors.Is(err, enroll.ErrTokenRefused) {
			w.tb.Fatalf("the token of server %s lets a second machine in: %v", s.ID, err)
		}
	}
}

// checkAudit holds that an audit finds nothing amiss, once everything is old
// enough to be judged.
func (w *world) checkAudit() {
	w.tb.Helper()
	w.clock.advance(10 * 60e9)
	r, err := w.fleet.Audit(w.ctx)
	if err != nil || len(r.Errors) > 0 {
		w.tb.Fatalf("audit: %v %v", err, r.Errors)
	}
	if len(r.Findings) > 0 {
		w.tb.Fatalf("audit finds %+v\n%s", r.Findings, w.story())
	}
}

// quietly keeps a check's own calls from being counted as effects.
func (w *world) quietly() (restore func()) {
	cloud, db := w.cloud.effect, w.store.effect
	w.cloud.effect, w.store.effect = func(string) {}, func(string) {}
	return func() { w.cloud.effect, w.store.effect = cloud, db }
}
