package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Run does what an alarm is for; see Runner.
func (f *Fleet) Run(ctx context.Context, a Alarm) (next time.Time, err error) {
	switch a.Kind {
	case AlarmNode:
		return f.Reconcile(ctx, a.ID)
	case AlarmAccount:
		return f.Observe(ctx, a.ID)
	}
	return time.Time{}, fmt.Errorf("fleet: there is no alarm of kind %q", a.Kind)
}

// Reconcile moves a node one step towards where it should be and says when it
// wants to be called again. It never waits for a cloud beyond one call.
// Calling it too often, or twice at once, does no harm.
func (f *Fleet) Reconcile(ctx context.Context, nodeID string) (next time.Time, err error) {
	n, err := f.store.Node(ctx, nodeID)
	if errors.Is(err, ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	switch n.Phase {
	case PhasePending, PhaseCreating:
		next, err = f.stepCreate(ctx, n)
	case PhaseBooting:
		next, err = f.stepBooting(ctx, n)
	case PhaseDeleting, PhaseFailed:
		next, err = f.stepRemove(ctx, n)
	}
	if errors.Is(err, ErrStale) {
		// Somebody else was faster; look again at what is there now.
		return f.now(), nil
	}
	return next, err
}

// errMoved tells that the node is no longer where the step began.
var errMoved = fmt.Errorf("%w: the node moved on", ErrStale)

// change writes a node by fn in a transaction. fn sees the row as it is now
// and returns errMoved when it is no longer what the step was for.
func (f *Fleet) change(ctx context.Context, id string, fn func(tx Tx, n *Node) error) error {
	return f.store.Update(ctx, func(tx Tx) error {
		n, err := tx.Node(ctx, id)
		if err != nil {
			return err
		}
		before := n.Version
		if err := fn(tx, &n); err != nil {
			return err
		}
		if n.Version != before {
			return nil // fn has written it
		}
		return f.save(ctx, tx, &n)
	})
}

// fail ends a node with a reason; its server is removed from then on. from is
// what the caller has seen; nothing happens when the node has moved on.
func (f *Fleet) fail(ctx context.Context, from Node, r Reason) error {
	return f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if n.Phase != from.Phase || n.Attempt != from.Attempt {
			return errMoved
		}
		return f.failIn(ctx, tx, n, r)
	})
}

func (f *Fleet) failIn(ctx context.Context, tx Tx, n *Node, r Reason) error {
	n.Phase, n.Reason, n.EndedAt, n.Tries = PhaseFailed, r, f.now(), 0
	left, err := f.leftOf(ctx, tx, *n)
	if err != nil {
		return err
	}
	n.ServerGone = nothingMade(*n) && len(left) == 0
	f.forget(n.ID)
	return f.saveEnding(ctx, tx, n, "failed", r.Message)
}

// stepBooting keeps the deadline of the join. All else that can happen to a
// booting node comes by Observe and by the node itself.
func (f *Fleet) stepBooting(ctx context.Context, n Node) (time.Time, error) {
	if f.now().Before(n.JoinBy) {
		return n.JoinBy, nil
	}
	return f.now(), f.fail(ctx, n, f.joinTimeout(ctx, n))
}

// joinTimeout says what was seen of a node that did not join in time.
func (f *Fleet) joinTimeout(ctx context.Context, n Node) Reason {
	r := Reason{Class: "join-timeout"}
	since := n.JoinBy.Sub(n.CreatedAt).Round(time.Second)
	switch {
	case n.Account == "":
		r.Message = fmt.Sprintf("no machine joined with the ticket within %s", since)
		r.Hint = "make a new ticket"
		return r
	case n.RunningAt.IsZero():
		r.Message = fmt.Sprintf("the server did not start within %s; the provider shows it as %s", since, orUnknown(n.ServerStatus))
		r.Hint = "try again, or another region; the provider's status page may say more"
	default:
		r.Message = fmt.Sprintf("the server runs since %s, and its agent did not join within %s",
			n.RunningAt.Format(time.RFC3339), since)
		r.Hint = "check that the server can reach " + n.Boot.Address + " and the registry of the agent's image"
	}
	if tail := f.consoleTail(ctx, n); tail != "" {
		r.Message += "; its console ends with: " + tail
	}
	return r
}

func orUnknown(s provision.ServerStatus) string {
	if s == "" {
		return "not seen yet"
	}
	return string(s)
}

// consoleTail is the end of the server's console, on one line, where the
// provider hands it out. A join token in it is cut out.
func (f *Fleet) consoleTail(ctx context.Context, n Node) string {
	_, cloud, err := f.open(ctx, n.Account)
	if err != nil || n.ServerID == "" {
		return ""
	}
	reader, ok := cloud.(provision.ConsoleReader)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := reader.ConsoleOutput(ctx, n.ServerID)
	if err != nil {
		return ""
	}
	return tidyConsole(text)
}

// pause is how long to wait before a call is sent again that has failed tries
// times in a row: it doubles, with jitter, and respects what the provider
// asked for.
func (f *Fleet) pause(tries int, err error) time.Duration {
	d := f.timing.RetryMax
	if shift := max(tries-1, 0); shift < 16 {
		d = min(f.timing.RetryBase<<shift, f.timing.RetryMax)
	}
	d = d/2 + rand.N(d/2+1)
	var pe *provision.ProviderError
	if errors.As(err, &pe) && pe.RetryAfter > d {
		d = min(pe.RetryAfter, 10*time.Minute)
	}
	return d
}

// mayPass tells whether a failure may be over at a later call.
func mayPass(err error) bool {
	switch className(err) {
	case "rate-limited", "unavailable", "", "internal":
		return true
	}
	return false
}

// worthTelling thins out what repeats: the 1st, 2nd, 4th, 8th time and so on.
func worthTelling(tries int) bool { return tries&(tries-1) == 0 }
