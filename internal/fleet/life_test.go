package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func wantPhase(t *testing.T, w *world, ref string, want fleet.Phase) fleet.Node {
	t.Helper()
	n := w.node(ref)
	if n.Phase != want {
		t.Fatalf("%s is %s; want %s\n%s", ref, n.Phase, want, w.story())
	}
	return n
}

func TestLife(t *testing.T) {
	w := testWorld(t)
	n := w.create(spec("a"))
	if n.Phase != fleet.PhasePending || w.cloud.called("create") != 0 {
		t.Fatalf("after the request the node is %s, and %d creates were sent", n.Phase, w.cloud.called("create"))
	}
	w.settle()
	n = wantPhase(t, w, "a", fleet.PhaseJoined)
	if n.ServerID == "" || n.IPAddr == "" || n.JoinedAt.IsZero() || n.PriceMonthly != "4.20" || n.Currency != "EUR" || n.ProviderName() != "fake" {
		t.Errorf("a joined node lacks something: %+v", n)
	}
	w.delete("a")
	w.settle()
	n = wantPhase(t, w, n.ID, fleet.PhaseDeleted)
	if !n.ServerGone || n.DeletedAt.IsZero() || len(w.cloud.alive()) != 0 {
		t.Errorf("a deleted node: %+v, %d servers are left", n, len(w.cloud.alive()))
	}
	want := []string{"requested", "create-sent", "server-made", "server-pending", "joined", "server-running", "delete-asked", "delete-sent", "deleted"}
	got := w.types(n.ID)
	if d := cmp.Diff(want, withoutOrder(got, "joined", "server-running")); d != "" {
		t.Errorf("timeline (-want +got):\n%s\n%s", d, w.story())
	}
	if c, d := w.cloud.called("create"), w.cloud.called("delete"); c != 1 || d != 1 {
		t.Errorf("%d creates and %d deletes for one life", c, d)
	}
	if _, err := w.fleet.DeleteNode(w.ctx, "a"); err != nil {
		t.Errorf("deleting a deleted node: %v", err)
	}
	w.create(spec("a")) // the name is free again
}

// withoutOrder puts a before b, for two events whose order is left open.
func withoutOrder(events []string, a, b string) []string {
	for i := 1; i < len(events); i++ {
		if events[i-1] == b && events[i] == a {
			events[i-1], events[i] = a, b
		}
	}
	return events
}

// TestOneListForAll: the number of lists does not depend on the number of
// nodes.
func TestOneListForAll(t *testing.T) {
	lists := func(nodes int) int {
		w := testWorld(t)
		for i := range nodes {
			w.create(spec("n" + strings.Repeat("x", i)))
		}
		w.settle()
		return w.cloud.called("list") + w.cloud.called("get")
	}
	if one, many := lists(1), lists(25); many > one+2 {
		t.Errorf("%d lists for 25 nodes, %d for one", many, one)
	}
}

func TestCreateErrors(t *testing.T) {
	candidates := []fleet.Candidate{{Region: "r1", Size: "small"}, {Region: "r1", Size: "big"}, {Region: "r2", Size: "small"}}
	for _, c := range []struct {
		name    string
		errs    []error // of the calls in order; nil afterwards
		phase   fleet.Phase
		class   string
		creates int
		region  string
		size    string
	}{
		{"no error", nil, fleet.PhaseJoined, "", 1, "r1", "small"},
		{"capacity goes to the next candidate", []error{provision.ErrCapacity}, fleet.PhaseJoined, "", 2, "r1", "big"},
		{"capacity twice", []error{provision.ErrCapacity, provision.ErrCapacity}, fleet.PhaseJoined, "", 3, "r2", "small"},
		{"capacity everywhere", []error{provision.ErrCapacity, provision.ErrCapacity, provision.ErrCapacity}, fleet.PhaseFailed, "capacity", 3, "r2", "small"},
		{"quota goes to another region", []error{provision.ErrQuota}, fleet.PhaseJoined, "", 2, "r2", "small"},
		{"quota in both", []error{provision.ErrQuota, provision.ErrQuota}, fleet.PhaseFailed, "quota", 2, "r2", "small"},
		{"rate limit is waited out", []error{provision.ErrRateLimited, provision.ErrRateLimited}, fleet.PhaseJoined, "", 3, "r1", "small"},
		{"unavailable is waited out", []error{provision.ErrUnavailable}, fleet.PhaseJoined, "", 2, "r1", "small"},
		{"unknown is waited out", []error{errors.New("who knows")}, fleet.PhaseJoined, "", 2, "r1", "small"},
		{"invalid", []error{provision.ErrInvalid}, fleet.PhaseFailed, "invalid", 1, "r1", "small"},
		{"unauthorized", []error{provision.ErrUnauthorized}, fleet.PhaseFailed, "unauthorized", 1, "r1", "small"},
		{"forbidden", []error{provision.ErrForbidden}, fleet.PhaseFailed, "forbidden", 1, "r1", "small"},
		{"conflict", []error{provision.ErrConflict}, fleet.PhaseFailed, "conflict", 1, "r1", "small"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorld(t)
			call := 0
			w.cloud.onCreate = func(provision.CreateOpts) fault {
				call++
				if call > len(c.errs) {
					return fault{}
				}
				if err := c.errs[call-1]; provision.ClassName(err) == "" {
					return fault{err: err}
				} else {
					return fault{err: cloudErr(err, "create server", "so it is")}
				}
			}
			s := spec("a")
			s.Candidates = candidates
			w.create(s)
			w.settle()
			n := wantPhase(t, w, "a", c.phase)
			if n.Reason.Class != c.class || n.Region != c.region || n.Size != c.size || w.cloud.called("create") != c.creates {
				t.Errorf("reason %q, %s in %s after %d creates\n%s", n.Reason.Class, n.Size, n.Region, w.cloud.called("create"), w.story())
			}
			if c.class != "" && (n.Reason.RequestID != "req-1" || n.Reason.Hint == "" || n.Reason.Message == "") {
				t.Errorf("the reason says too little: %+v", n.Reason)
			}
			if c.phase == fleet.PhaseFailed {
				// The provider refused in words: nothing has to be waited for.
				if !n.ServerGone || w.clock.Now().Sub(n.CreatedAt) > time.Minute {
					t.Errorf("gone is %v after %s", n.ServerGone, w.clock.Now().Sub(n.CreatedAt))
				}
			}
		})
	}
}

func TestLostAnswer(t *testing.T) {
	w := testWorld(t)
	lost := 3
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		if lost--; lost >= 0 {
			return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
		}
		return fault{}
	}
	w.create(spec("a"))
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseJoined)
	if n := len(w.cloud.servers); n != 1 {
		t.Errorf("%d servers were made for one node", n)
	}
}

// TestAnswerNeverComes: the agent joins while the create is still without an
// answer.
func TestAnswerNeverComes(t *testing.T) {
	w := testWorld(t)
	w.cloud.onCreate = func(provision.CreateOpts) fault {
		return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
	}
	w.create(spec("a"))
	w.run(2 * time.Minute)
	n := wantPhase(t, w, "a", fleet.PhaseJoined)
	if n.ServerID == "" || len(w.cloud.servers) != 1 {
		t.Errorf("server %q of %d", n.ServerID, len(w.cloud.servers))
	}
}

func TestDeleteWhileTheAnswerIsLost(t *testing.T) {
	for _, lag := range []time.Duration{0, 20 * time.Second, 100 * time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			w := testWorld(t)
			w.joins, w.cloud.listLag = false, lag
			w.cloud.onCreate = func(provision.CreateOpts) fault {
				return fault{err: cloudErr(provision.ErrUnavailable, "create server", "no answer"), effect: true}
			}
			w.create(spec("a"))
			w.tick()
			w.delete("a")
			w.settle()
			n := wantPhase(t, w, "a", fleet.PhaseDeleted)
			if len(w.cloud.alive()) != 0 {
				t.Errorf("the server of %s is left\n%s", n.Name, w.story())
			}
		})
	}
}

// TestDeleteBeforeItIsKnown: a provider that does not know its newest servers
// yet answers a delete with success, and does nothing.
func TestDeleteBeforeItIsKnown(t *testing.T) {
	w := testWorld(t)
	w.joins, w.cloud.listLag = false, 90*time.Second
	w.create(spec("a"))
	w.tick()
	w.delete("a")
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseDeleted)
	if len(w.cloud.alive()) != 0 {
		t.Errorf("a server is left\n%s", w.story())
	}
}

func TestDeleteBeforeAnythingWasMade(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.delete("a")
	w.settle()
	n := wantPhase(t, w, "a", fleet.PhaseDeleted)
	if w.cloud.called("create")+w.cloud.called("list") != 0 || !n.ServerGone {
		t.Errorf("%d creates, %d lists for a node that was never made", w.cloud.called("create"), w.cloud.called("list"))
	}
}

func TestDeleteThatSticks(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	w.cloud.dying = 7 * time.Minute
	deletes := 0
	w.cloud.onDelete = func(string) fault {
		if deletes++; deletes < 3 {
			return fault{err: cloudErr(provision.ErrConflict, "delete server", "an action runs")}
		}
		return fault{}
	}
	w.delete("a")
	w.settle()
	wantPhase(t, w, "a", fleet.PhaseDeleted)
	story := strings.Join(w.types("a"), " ")
	if !strings.Contains(story, "delete-retry") || !strings.Contains(story, "delete-repeated") || len(w.cloud.alive()) != 0 {
		t.Errorf("the timeline does not tell that the delete stuck:\n%s", w.story())
	}
}
