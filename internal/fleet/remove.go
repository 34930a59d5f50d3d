package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// nothingMade tells that nothing of a node can exist at any provider: it was
// not made by us, or no create call had or can still have an effect.
func nothingMade(n Node) bool {
	return n.Account == "" || n.ServerID == "" && n.CreateSentAt.IsZero()
}

// windowEnds is until when the effect of a node's last create call may still
// surface.
func (f *Fleet) windowEnds(n Node) time.Time { return n.CreateSentAt.Add(f.timing.CreateWindow) }

// leftOf returns what failed creates of a node left behind.
func (f *Fleet) leftOf(ctx context.Context, r Reader, n Node) ([]Left, error) {
	if n.Account == "" {
		return nil, nil
	}
	all, err := r.Left(ctx, n.Account)
	var res []Left
	for _, l := range all {
		if l.NodeID == n.ID {
			res = append(res, l)
		}
	}
	return res, err
}

// stepRemove removes the server of a node that is being deleted or has failed.
// It sends the delete; that the server is gone is for Observe to see.
func (f *Fleet) stepRemove(ctx context.Context, n Node) (time.Time, error) {
	now := f.now()
	switch {
	case n.Phase == PhaseFailed && n.ServerGone:
		return time.Time{}, nil
	case n.ServerGone || nothingMade(n):
		return time.Time{}, f.finish(ctx, n)
	case n.ServerID == "":
		// Lists are looked through for it until its window has closed.
		return now.Add(f.timing.ObserveSlow), f.observeSoon(ctx, n.Account)
	}
	if due := f.deleteDue(n); now.Before(due) {
		return due, f.observeSoon(ctx, n.Account)
	}
	_, cloud, err := f.open(ctx, n.Account)
	if err != nil {
		return f.deleteFailed(ctx, n, err)
	}
	callCtx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	f.meet(callCtx, cloud, n)
	err = cloud.DeleteServer(callCtx, n.ServerID)
	if err != nil && ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return f.deleteFailed(ctx, n, err)
	}
	return now.Add(f.timing.DeleteRepeat), f.deleteSent(ctx, n, now)
}

// meet asks for a server that no list has shown yet, before its first delete.
// When the provider knows it, the delete will meet it, and the provider's word
// afterwards that it does not exist can be believed: see reallyGone. Otherwise
// only time can tell. What it learns is a hint that a restart may lose.
func (f *Fleet) meet(ctx context.Context, cloud provision.Provisioner, n Node) {
	if !n.ListedAt.IsZero() || !n.DeleteSentAt.IsZero() {
		return
	}
	if _, _, err := cloud.GetServer(ctx, n.ServerID); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.met[n.ID] = n.ServerID
	}
}

// reallyGone tells whether the server of a node that no list ever showed is
// gone: the provider knew it before the delete, and does not know it now.
func (f *Fleet) reallyGone(ctx context.Context, cloud provision.Provisioner, n Node, l look) bool {
	f.mu.Lock()
	met := n.ServerID != "" && f.met[n.ID] == n.ServerID
	f.mu.Unlock()
	_, shown := l.byID[n.ServerID]
	if !met || shown || !n.ListedAt.IsZero() || n.DeleteSentAt.IsZero() || !l.began.After(n.DeleteSentAt) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	_, _, err := cloud.GetServer(ctx, n.ServerID)
	return errors.Is(err, provision.ErrNotFound)
}

// deleteDue is when the delete call is to be sent: at once at first; again
// when it shows no effect, and once more after the window of the create when
// no list has ever shown the server, since the first delete may have met a
// provider that did not know it yet.
func (f *Fleet) deleteDue(n Node) time.Time {
	if n.DeleteSentAt.IsZero() {
		return time.Time{}
	}
	due := n.DeleteSentAt.Add(f.timing.DeleteRepeat)
	if ends := f.windowEnds(n); n.ListedAt.IsZero() && n.DeleteSentAt.Before(ends) {
		due = earliest(due, ends)
	}
	return due
}

func (f *Fleet) deleteSent(ctx context.Context, from Node, at time.Time) error {
	return f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if n.Phase != from.Phase || n.ServerID != from.ServerID || n.ServerGone {
			return errMoved
		}
		kind, message := "delete-sent", fmt.Sprintf("%s was asked to delete server %s", n.Provider, n.ServerID)
		if !n.DeleteSentAt.IsZero() {
			kind = "delete-repeated"
			message += fmt.Sprintf(" again: it was not seen to be gone %s after the first time", at.Sub(n.EndedAt).Round(time.Second))
		}
		n.DeleteSentAt, n.Tries, n.Misses, n.MissingSince = at, 0, 0, time.Time{}
		if err := f.event(ctx, tx, *n, kind, message); err != nil {
			return err
		}
		return tx.Wake(ctx, Alarm{AlarmAccount, n.Account}, f.now().Add(f.timing.ObserveFast/5))
	})
}

// deleteFailed notes a failed delete. It is never given up: the server costs
// money until it is gone.
func (f *Fleet) deleteFailed(ctx context.Context, from Node, cause error) (time.Time, error) {
	next := f.now()
	err := f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if n.Phase != from.Phase || n.ServerGone {
			return errMoved
		}
		n.Tries++
		wait := f.pause(n.Tries, cause)
		if !mayPass(cause) && className(cause) != "conflict" {
			wait = 5 * f.timing.RetryMax // a person has to act first
		}
		next = next.Add(wait)
		if !worthTelling(n.Tries) {
			return nil
		}
		r := reasonOf(cause)
		message := fmt.Sprintf("server %s could not be deleted: %s; it is tried again in %s", n.ServerID, r.Message, wait.Round(time.Second))
		if r.Hint != "" {
			message += " (" + r.Hint + ")"
		}
		return f.event(ctx, tx, *n, "delete-retry", message)
	})
	return next, err
}

// finish notes that nothing of a node is left at its provider.
func (f *Fleet) finish(ctx context.Context, from Node) error {
	return f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if n.Phase != from.Phase || n.ServerID != from.ServerID || !n.CreateSentAt.Equal(from.CreateSentAt) {
			return errMoved
		}
		return f.finishIn(ctx, tx, n)
	})
}

func (f *Fleet) finishIn(ctx context.Context, tx Tx, n *Node) error {
	if n.Phase == PhaseFailed && n.ServerGone {
		return nil
	}
	left, err := f.leftOf(ctx, tx, *n)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		// Observe removes it, and calls this node again.
		return tx.Wake(ctx, Alarm{AlarmAccount, n.Account}, f.now().Add(f.timing.ObserveFast))
	}
	message := "nothing was made at a provider"
	switch {
	case n.Account == "":
		message = "its access is revoked; the machine itself was not made by us"
	case n.ServerID != "":
		message = fmt.Sprintf("server %s was seen to be gone", n.ServerID)
	case n.Attempt > 0:
		message = n.Provider + " has no server of it"
	}
	n.ServerGone = true
	kind := "server-gone"
	if n.Phase == PhaseDeleting {
		n.Phase, n.DeletedAt, kind = PhaseDeleted, f.now(), "deleted"
	}
	return f.event(ctx, tx, *n, kind, message)
}

func (f *Fleet) observeSoon(ctx context.Context, account string) error {
	return f.store.Update(ctx, func(tx Tx) error {
		return tx.Wake(ctx, Alarm{AlarmAccount, account}, f.now().Add(f.timing.ObserveFast/5))
	})
}
