package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/fleet"
)

func TestTimelineOfATokenUsedTwice(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	tok, err := w.cloud.servers[0].token()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := w.redeem(tok, "a stranger's"); !errors.Is(err, enroll.ErrTokenRefused) {
			t.Fatalf("error is %v", err)
		}
	}
	if n := strings.Count(w.story(), "token-misused"); n != 1 {
		t.Errorf("the timeline tells it %d times\n%s", n, w.story())
	}
	if strings.Contains(w.story(), tok.Reveal()) {
		t.Error("the token is in the timeline")
	}
	wantPhase(t, w, "a", fleet.PhaseJoined)
}

// TestHeartbeatsAreCheap: many heartbeats, few writes; and the answer is fresh
// all the same.
func TestHeartbeatsAreCheap(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	n := w.node("a")
	commits := 0
	w.store.effect = func(point string) {
		if point == "after commit" {
			commits++
		}
	}
	for range 60 {
		w.clock.advance(time.Second)
		if err := w.fleet.Heartbeat(w.ctx, n.ID, n.CertSerial, enroll.Heartbeat{}); err != nil {
			t.Fatal(err)
		}
	}
	if commits > 3 {
		t.Errorf("%d commits for 60 heartbeats in a minute", commits)
	}
	if got := w.node("a").LastSeenAt; !got.Equal(w.clock.Now()) {
		t.Errorf("last seen %s ago", w.clock.Now().Sub(got))
	}
	w.restart()
	if got := w.clock.Now().Sub(w.node("a").LastSeenAt); got > 30*time.Second {
		t.Errorf("after a restart last seen %s ago", got)
	}
	hb := enroll.Heartbeat{Facts: enroll.Facts{Kernel: "6.12"}}
	if err := w.fleet.Heartbeat(w.ctx, n.ID, n.CertSerial, hb); err != nil || w.node("a").Facts.Kernel != "6.12" {
		t.Errorf("facts %+v: %v", w.node("a").Facts, err)
	}
}

func TestDeletedNodeIsRefusedAtOnce(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	n := w.node("a")
	w.delete("a")
	if err := w.fleet.Heartbeat(w.ctx, n.ID, n.CertSerial, enroll.Heartbeat{}); !errors.Is(err, enroll.ErrRevoked) {
		t.Errorf("heartbeat: %v", err)
	}
	if _, err := w.fleet.Renew(w.ctx, n.ID, n.CertSerial, w.sign); !errors.Is(err, enroll.ErrRevoked) {
		t.Errorf("renewal: %v", err)
	}
	tok, err := w.cloud.servers[0].token()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.redeem(tok, w.joined[n.ServerID]); !errors.Is(err, enroll.ErrTokenRefused) {
		t.Errorf("its token with its own key: %v", err)
	}
}

func TestTicket(t *testing.T) {
	w := testWorld(t)
	ticket, err := w.fleet.Ticket(w.ctx, fleet.NodeSpec{Name: "by-hand", Labels: map[string]string{"rack": "7"}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := enroll.ParseToken(ticket.Token)
	if err != nil || ticket.Address != "192.0.2.10:8443" || ticket.CAFingerprint == "" {
		t.Fatalf("%v, %s", err, ticket.Address)
	}
	if _, err := w.redeem(tok, "k"); err != nil {
		t.Fatal(err)
	}
	wantPhase(t, w, "by-hand", fleet.PhaseJoined)
	w.delete("by-hand")
	w.settle()
	wantPhase(t, w, "by-hand", fleet.PhaseDeleted)

	if _, err := w.fleet.Ticket(w.ctx, fleet.NodeSpec{Name: "late", JoinTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Minute)
	if n := wantPhase(t, w, "late", fleet.PhaseFailed); n.Reason.Class != "join-timeout" || !n.ServerGone {
		t.Errorf("%+v", n)
	}
	if _, err := w.fleet.Ticket(w.ctx, spec("with-account")); !errors.Is(err, fleet.ErrInvalid) {
		t.Errorf("a ticket with an account: %v", err)
	}
	if w.cloud.called("create")+w.cloud.called("delete")+w.cloud.called("list") != 0 {
		t.Error("a ticket has to do with a cloud")
	}
}

func TestWatch(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	w.create(spec("b"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan fleet.Event)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		for e, err := range w.fleet.Watch(ctx, 1, "a") {
			if err != nil {
				ended <- err
				return
			}
			select {
			case got <- e:
			case <-ctx.Done():
			}
		}
	}()
	next := func() fleet.Event {
		t.Helper()
		select {
		case e := <-got:
			return e
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("no event comes")
		}
		return fleet.Event{}
	}
	seq := int64(1)
	for _, want := range w.types("a")[1:] {
		e := next()
		if e.Type != want || e.Seq <= seq || e.Node != "a" {
			t.Fatalf("event %+v after %d; want %s", e, seq, want)
		}
		seq = e.Seq
	}
	w.delete("b")
	w.delete("a") // live from here
	if e := next(); e.Type != "delete-asked" || e.Node != "a" {
		t.Errorf("live event %+v", e)
	}
	cancel()
	if err, open := <-ended; open {
		t.Errorf("the end of the context is an error: %v", err)
	}
	for _, err := range w.fleet.Watch(t.Context(), 0, "nobody") {
		if !errors.Is(err, fleet.ErrNotFound) {
			t.Errorf("watching nobody: %v", err)
		}
	}
}
