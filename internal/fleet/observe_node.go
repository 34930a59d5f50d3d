package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// observeLive is for nodes whose server should exist. lost tells that the
// provider, asked for this very server, says that it does not.
func (f *Fleet) observeLive(ctx context.Context, tx Tx, n *Node, l look, lost bool) error {
	s, shown := l.byID[n.ServerID]
	if !shown {
		if lost {
			return f.serverLost(ctx, tx, n)
		}
		if n.Misses == 0 {
			n.MissingSince = l.began
		}
		n.Misses++
		return nil
	}
	if err := f.sight(ctx, tx, n, s, l); err != nil {
		return err
	}
	// A joined node's server that stands still is its owner's business; one
	// that never came up is ours.
	if s.Status == provision.ServerStatusError && n.Phase == PhaseBooting {
		return f.failIn(ctx, tx, n, Reason{
			Class:   "server-error",
			Message: fmt.Sprintf("%s shows server %s as broken before it joined", n.Provider, n.ServerID),
			Hint:    "create it again; another size or region may help",
		})
	}
	return nil
}

// reallyLost tells whether a live node's server is gone: two lists in a row
// did not show it, with some time between, long enough after its create, and
// the provider says not-found when asked for it. The question costs a call,
// and comes only then.
func (f *Fleet) reallyLost(ctx context.Context, cloud provision.Provisioner, n Node, l look) (bool, error) {
	if n.Phase != PhaseBooting && n.Phase != PhaseJoined {
		return false, nil
	}
	if _, shown := l.byID[n.ServerID]; shown || n.Misses == 0 {
		return false, nil
	}
	if l.began.Sub(n.MissingSince) < f.timing.MissingFloor || l.began.Before(f.windowEnds(n)) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	_, _, err := cloud.GetServer(ctx, n.ServerID)
	return errors.Is(err, provision.ErrNotFound), nil
}

func (f *Fleet) serverLost(ctx context.Context, tx Tx, n *Node) error {
	hint := "was it deleted in the provider's console? Create the node again"
	if n.Phase == PhaseBooting {
		hint = "the provider may have given it up; create the node again, another region may help"
	}
	message := fmt.Sprintf("server %s does not exist any more at %s", n.ServerID, n.Provider)
	return f.failIn(ctx, tx, n, Reason{Class: "server-lost", Message: message, Hint: hint})
}

// observeEnding is for nodes whose server should not exist. gone tells that the
// provider, asked for this very server, says that it does not.
func (f *Fleet) observeEnding(ctx context.Context, tx Tx, n *Node, l look, gone bool) error {
	if n.Phase == PhaseFailed && n.ServerGone {
		return nil
	}
	s, shown := l.byID[n.ServerID]
	if !shown && len(l.byNode[n.ID]) > 0 {
		// It is the node's by its label: made by a call whose answer was lost.
		s, shown = l.byNode[n.ID][0], true
	}
	if shown {
		return f.stillThere(ctx, tx, n, s, l)
	}
	if !gone && !f.absenceCounts(*n, l) {
		return nil
	}
	if n.Misses == 0 {
		n.MissingSince = l.began
	}
	n.Misses++
	// One that lists have shown before, or that the provider was asked for, is
	// gone when a list after the delete does not show it; another has to be
	// missed twice.
	if n.Misses < 2 && n.ListedAt.IsZero() && !gone {
		return nil
	}
	return f.finishIn(ctx, tx, n)
}

// absenceCounts tells whether a list without the server says anything: it
// began after the delete was accepted; and, for a server that no list has ever
// shown, after the window in which it may still surface, with a delete sent
// after that.
func (f *Fleet) absenceCounts(n Node, l look) bool {
	ends := f.windowEnds(n)
	if n.ServerID == "" {
		return l.began.After(ends)
	}
	if n.DeleteSentAt.IsZero() || !l.began.After(n.DeleteSentAt) {
		return false
	}
	return !n.ListedAt.IsZero() || l.began.After(ends) && !n.DeleteSentAt.Before(ends)
}

func (f *Fleet) stillThere(ctx context.Context, tx Tx, n *Node, s provision.Server, l look) error {
	if n.ServerID != s.ID {
		n.ServerID, n.DeleteSentAt = s.ID, time.Time{}
		if err := f.event(ctx, tx, *n, "server-found", fmt.Sprintf("%s has server %s of it: it is removed", n.Provider, s.ID)); err != nil {
			return err
		}
		if err := tx.Wake(ctx, Alarm{AlarmNode, n.ID}, f.now()); err != nil {
			return err
		}
	}
	return f.sight(ctx, tx, n, s, l)
}

// removeLeft removes what failed creates left behind. A server is off the list
// when it was seen to be gone; for other things the provider's word is enough.
func (f *Fleet) removeLeft(ctx context.Context, cloud provision.Provisioner, left []Left, l look) error {
	for _, thing := range left {
		gone, err := f.removeOne(ctx, cloud, thing.Resource)
		if err != nil {
			f.log.WarnContext(ctx, "left-behind resource could not be removed", "account", thing.Account,
				"kind", thing.Resource.Kind, "id", thing.Resource.ID, "error", err)
			continue
		}
		if thing.Resource.Kind == provision.KindServer {
			_, shown := l.byID[thing.Resource.ID]
			gone = !shown && l.began.After(thing.At.Add(f.timing.CreateWindow))
		}
		if !gone {
			continue
		}
		if err := f.dropLeft(ctx, thing); err != nil {
			return err
		}
	}
	return nil
}

// removeOne asks for the removal of one thing.
func (f *Fleet) removeOne(ctx context.Context, cloud provision.Provisioner, r provision.Resource) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	if r.Kind == provision.KindServer {
		return false, cloud.DeleteServer(ctx, r.ID)
	}
	auditor, ok := cloud.(provision.Auditor)
	if !ok {
		return false, errors.New("the provider has no call that removes a " + r.Kind)
	}
	return true, auditor.DeleteResource(ctx, r)
}

// dropLeft notes that a left-behind thing is removed, and calls its node: it
// may have waited for this.
func (f *Fleet) dropLeft(ctx context.Context, l Left) error {
	return f.store.Update(ctx, func(tx Tx) error {
		if err := tx.DropLeft(ctx, l); err != nil {
			return err
		}
		n, err := tx.Node(ctx, l.NodeID)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.event(ctx, tx, n, "left-removed", fmt.Sprintf("%s %s, which a failed create had left behind, is removed", l.Resource.Kind, l.Resource.ID)); err != nil {
			return err
		}
		return tx.Wake(ctx, Alarm{AlarmNode, n.ID}, f.now())
	})
}
