package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func TestJoinTimeout(t *testing.T) {
	for _, c := range []struct {
		name  string
		boot  time.Duration
		words []string
	}{
		{"runs and does not join", 10 * time.Second, []string{"its agent did not join within 30m", "console ends with", "dhcp failed", "[token]"}},
		{"never runs", time.Hour, []string{"did not start within 30m", "as pending"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorld(t)
			w.joins, w.cloud.boot = false, c.boot
			w.create(spec("a"))
			w.tick()
			tok, err := w.cloud.servers[0].token()
			if err != nil {
				t.Fatal(err)
			}
			w.cloud.console = "\x1b[1mboot\x1b[0m\nline\n" + tok.Reveal() + "\ndhcp failed\n"
			w.settle()
			n := wantPhase(t, w, "a", fleet.PhaseFailed)
			if n.Reason.Class != "join-timeout" || !n.ServerGone || len(w.cloud.alive()) != 0 {
				t.Errorf("%+v", n)
			}
			for _, word := range c.words {
				if !strings.Contains(n.Reason.Message, word) {
					t.Errorf("the reason does not say %q: %s", word, n.Reason.Message)
				}
			}
			if strings.Contains(w.story(), tok.Reveal()) {
				t.Error("the token is in the timeline")
			}
			if _, err := w.redeem(tok, "k"); err == nil {
				t.Error("the token of a failed node lets somebody in")
			}
		})
	}
}

func TestCreateNeverSent(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.clock.advance(time.Hour) // the control plane was off
	w.settle()
	n := wantPhase(t, w, "a", fleet.PhaseFailed)
	if w.cloud.called("create") != 0 || !n.ServerGone {
		t.Errorf("%d creates; %+v", w.cloud.called("create"), n)
	}
}

func TestCreateNeverAnswered(t *testing.T) {
	w := testWorld(t)
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer")}
	}
	w.create(spec("a"))
	w.settle()
	n := wantPhase(t, w, "a", fleet.PhaseFailed)
	if n.Reason.Class != "join-timeout" || !n.ServerGone {
		t.Errorf("%+v", n)
	}
	if calls := w.cloud.called("create"); calls < 25 || calls > 80 {
		t.Errorf("%d calls in half an hour: the pauses are wrong", calls)
	}
	if told := strings.Count(w.story(), "create-retry"); told > 8 {
		t.Errorf("the timeline tells the same thing %d times", told)
	}
}

func TestServerBreaks(t *testing.T) {
	w := testWorld(t)
	w.joins = false
	w.create(spec("a"))
	w.tick()
	w.cloud.servers[0].broken = true
	w.settle()
	n := wantPhase(t, w, "a", fleet.PhaseFailed)
	if n.Reason.Class != "server-error" || !n.ServerGone || len(w.cloud.alive()) != 0 {
		t.Errorf("%+v", n)
	}
}

// TestJoinedServerStandsStill: what its owner has switched off is not ours to
// remove.
func TestJoinedServerStandsStill(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	w.cloud.servers[0].broken = true
	w.run(10 * time.Minute)
	n := wantPhase(t, w, "a", fleet.PhaseJoined)
	if n.ServerStatus != provision.ServerStatusError || len(w.cloud.alive()) != 1 {
		t.Errorf("status %s, %d servers", n.ServerStatus, len(w.cloud.alive()))
	}
}

func TestServerVanishes(t *testing.T) {
	for _, joined := range []bool{true, false} {
		w := testWorld(t)
		w.joins = joined
		w.create(spec("a"))
		w.run(5 * time.Minute)
		w.cloud.servers[0].goneAt = w.clock.Now()
		w.run(5 * time.Minute)
		n := wantPhase(t, w, "a", fleet.PhaseFailed)
		if n.Reason.Class != "server-lost" || !n.ServerGone {
			t.Errorf("joined %v: %+v\n%s", joined, n, w.story())
		}
	}
}

// TestListsLie: neither a list that fails nor one that lacks a server for a
// moment ends a node.
func TestListsLie(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	w.run(3 * time.Minute)
	s := w.cloud.servers[0]
	s.listedAt = w.clock.Now().Add(80 * time.Second) // two slow looks without it
	w.run(4 * time.Minute)
	n := wantPhase(t, w, "a", fleet.PhaseJoined)
	if n.Misses != 0 {
		t.Errorf("%d misses are kept after the server showed again", n.Misses)
	}
	w.cloud.onList = func() error { return cloudErr(provision.ErrUnavailable, "list servers", "HTTP 503") }
	w.run(10 * time.Minute)
	wantPhase(t, w, "a", fleet.PhaseJoined)
	accounts, err := w.fleet.Accounts(w.ctx)
	if err != nil || !strings.Contains(accounts[0].LastError, "HTTP 503") {
		t.Errorf("the account does not tell its trouble: %+v, %v", accounts, err)
	}
	w.delete("a")
	w.run(10 * time.Minute)
	wantPhase(t, w, "a", fleet.PhaseDeleting) // nothing is concluded
	w.cloud.onList = nil
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseDeleted)
	if accounts, err = w.fleet.Accounts(w.ctx); err != nil || accounts[0].LastError != "" {
		t.Errorf("the account still tells its trouble: %+v, %v", accounts, err)
	}
}

// TestSlowList: a list that lags behind the create does not end the node.
func TestSlowList(t *testing.T) {
	w := testWorld(t)
	w.cloud.listLag = 100 * time.Second
	w.joins = false
	w.create(spec("a"))
	w.run(99 * time.Second)
	wantPhase(t, w, "a", fleet.PhaseBooting)
	w.joins = true
	w.settle()
	w.run(time.Minute)
	wantPhase(t, w, "a", fleet.PhaseJoined)
}

func TestPartialCreate(t *testing.T) {
	w := testWorld(t)
	ip := provision.Resource{Kind: provision.KindPublicIP, ID: "ip-1", Billable: true, CreatedAt: w.clock.Now(), Labels: map[string]string{"slipway-fleet": fleetID}}
	w.cloud.extra = []provision.Resource{ip}
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		return fault{err: &provision.PartialError{Err: cloudErr(provision.ErrCapacity, "create server", "sold out"), Left: []provision.Resource{ip}}}
	}
	w.create(spec("a"))
	w.tick()
	n := wantPhase(t, w, "a", fleet.PhaseFailed)
	if n.ServerGone {
		t.Error("nothing is said to be left, and an IP is")
	}
	report, err := w.fleet.Audit(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	n = wantPhase(t, w, "a", fleet.PhaseFailed)
	if !n.ServerGone || len(w.cloud.extra) != 0 || n.Reason.Class != "capacity" {
		t.Errorf("%+v; left: %v; audit: %+v", n, w.cloud.extra, report)
	}
	if story := strings.Join(w.types("a"), " "); !strings.Contains(story, "left-behind") || !strings.Contains(story, "left-removed") {
		t.Errorf("the timeline does not tell of the rest:\n%s", w.story())
	}
}

// TestUpgradeInTheMiddle: another version renders other user-data, the
// provider takes the repeat for another create, and the server is known again
// by its labels.
func TestUpgradeInTheMiddle(t *testing.T) {
	w := testWorld(t)
	w.joins = false
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
	}
	w.create(spec("a"))
	w.tick()
	w.cloud.onCreate = nil
	render := w.cfg.RenderUserData
	w.cfg.RenderUserData = func(u fleet.UserData) (string, error) {
		text, err := render(u)
		return text + "# version 2\n", err
	}
	w.joins = true
	w.restart()
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseJoined)
	if len(w.cloud.servers) != 1 {
		t.Errorf("%d servers for one node", len(w.cloud.servers))
	}
}

// TestSettingsChangeInTheMiddle: a repeat is the same to the byte, whatever the
// settings are by then.
func TestSettingsChangeInTheMiddle(t *testing.T) {
	w := testWorld(t)
	var sent []string
	w.cloud.onCreate = func(o provision.CreateOpts) fault {
		if sent = append(sent, o.IdempotencyKey+o.UserData); len(sent) < 3 {
			return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
		}
		return fault{}
	}
	w.create(spec("a"))
	w.tick()
	w.cfg.AgentVersion, w.cfg.Advertise = "v2.0.0", "203.0.113.1:443"
	w.restart()
	w.settle()
	if len(sent) != 3 || sent[0] != sent[1] || sent[1] != sent[2] {
		t.Errorf("%d calls; the repeats are the same: %v", len(sent), sent[0] == sent[len(sent)-1])
	}
}

// TestAttemptsDiffer: another candidate has another key and another token.
func TestAttemptsDiffer(t *testing.T) {
	w := testWorld(t)
	var opts []provision.CreateOpts
	w.cloud.onCreate = func(o provision.CreateOpts) fault {
		if opts = append(opts, o); len(opts) == 1 {
			return fault{err: cloudErr(provision.ErrCapacity, "create server", "sold out")}
		}
		return fault{}
	}
	s := spec("a")
	s.Candidates = append(s.Candidates, fleet.Candidate{Region: "r2", Size: "small"})
	n := w.create(s)
	w.settle()
	if len(opts) != 2 || opts[0].IdempotencyKey == opts[1].IdempotencyKey || opts[0].UserData == opts[1].UserData {
		t.Fatalf("%d creates, alike", len(opts))
	}
	if opts[1].Labels["slipway-node"] != n.ID || opts[1].Labels["slipway-attempt"] != "2" {
		t.Errorf("labels %v", opts[1].Labels)
	}
	first := &fakeServer{userData: opts[0].UserData}
	tok, err := first.token()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.redeem(tok, "k"); err == nil {
		t.Error("the token of an attempt that is over lets somebody in")
	}
}

func TestStopInTheMiddleOfACall(t *testing.T) {
	w := testWorld(t)
	n := w.create(spec("a"))
	stopped := w.stoppedContext()
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		stopped.stop()
		return fault{err: stopped.ctx.Err(), effect: true}
	}
	if _, err := w.fleet.Reconcile(stopped.ctx, n.ID); !errors.Is(err, stopped.ctx.Err()) {
		t.Fatalf("error is %v", err)
	}
	w.cloud.onCreate = nil
	if got := wantPhase(t, w, "a", fleet.PhaseCreating); got.Tries != 0 {
		t.Errorf("our own stop counts as %d failures of the provider", got.Tries)
	}
	w.restart()
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseJoined)
	if len(w.cloud.servers) != 1 {
		t.Errorf("%d servers for one node", len(w.cloud.servers))
	}
}

// TestRefusalAfterALostAnswer: once an answer was lost, a refusal of the repeat
// does not prove that nothing was made.
func TestRefusalAfterALostAnswer(t *testing.T) {
	w := testWorld(t)
	w.joins, w.cloud.listLag = false, 30*time.Second
	calls := 0
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		if calls++; calls == 1 {
			return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
		}
		return fault{err: cloudErr(provision.ErrQuota, "create server", "the one that you have is all that you may have")}
	}
	w.create(spec("a"))
	w.run(10 * time.Second)
	if n := wantPhase(t, w, "a", fleet.PhaseFailed); n.ServerGone {
		t.Error("nothing is said to be left, and nobody has looked")
	}
	w.settle()
	if n := wantPhase(t, w, "a", fleet.PhaseFailed); !n.ServerGone || len(w.cloud.alive()) != 0 {
		t.Errorf("a server is left\n%s", w.story())
	}
}
