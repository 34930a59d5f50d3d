package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// stepCreate sends the create call of a node's attempt. The intent is on
// record before the call: the attempt, its key, its token and when it was
// sent; so whatever happens to the call, a repeat finds the same server, and
// so does a delete.
func (f *Fleet) stepCreate(ctx context.Context, n Node) (time.Time, error) {
	if !f.now().Before(n.JoinBy) && n.JoinedAt.IsZero() {
		return f.now(), f.fail(ctx, n, f.createTimeout(n))
	}
	_, cloud, err := f.open(ctx, n.Account)
	if err != nil {
		return f.createFailed(ctx, n, err)
	}
	if !n.JoinedAt.IsZero() {
		// Its agent is here, so the server is there: no need to ask for it.
		if s, ok := f.adoptable(ctx, cloud, n); ok {
			return f.now(), f.created(ctx, n, s.ID, s.IPAddr)
		}
	}
	// The price is asked before the record is made: it may take a call.
	monthly, currency := n.PriceMonthly, n.Currency
	if n.Phase == PhasePending {
		monthly, currency = f.price(ctx, n.Account, n.Spec.Candidates[n.Candidate])
	}
	err = f.change(ctx, n.ID, func(tx Tx, row *Node) error {
		if row.Phase != n.Phase || row.Attempt != n.Attempt {
			return errMoved
		}
		row.PriceMonthly, row.Currency = monthly, currency
		if err := f.intend(ctx, tx, row); err != nil {
			return err
		}
		n = *row
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	opts, err := f.createOpts(n)
	if err != nil {
		r := reasonOf(err)
		r.Class, r.Hint = "invalid", "check the control plane's --advertise and the node's name"
		return f.now(), f.fail(ctx, n, r)
	}
	callCtx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	id, ip, err := cloud.CreateServer(callCtx, opts)
	cancel()
	if err != nil && ctx.Err() != nil {
		// We are being stopped; that is no failure of the call. The same
		// call is sent again, by whoever comes next.
		return time.Time{}, ctx.Err()
	}
	// What the provider answered is written even if we are being stopped.
	ctx = context.WithoutCancel(ctx)
	if errors.Is(err, provision.ErrConflict) {
		if s, ok := f.adoptable(ctx, cloud, n); ok {
			id, ip, err = s.ID, s.IPAddr, nil
		}
	}
	if err != nil {
		return f.createFailed(ctx, n, err)
	}
	return f.now(), f.created(ctx, n, id, ip)
}

// intend records that the create call of this attempt is about to be sent,
// and begins an attempt when none is under way.
func (f *Fleet) intend(ctx context.Context, tx Tx, n *Node) error {
	now := f.now()
	if n.Phase == PhaseCreating {
		n.Doubt = n.Doubt || !n.CreateSentAt.IsZero()
		n.CreateSentAt = now
		return f.save(ctx, tx, n)
	}
	n.CreateSentAt = now
	c := n.Spec.Candidates[n.Candidate]
	n.Phase, n.Attempt, n.Tries = PhaseCreating, n.Attempt+1, 0
	n.Region, n.Size = c.Region, c.Size
	n.Boot = f.boot()
	n.IdempotencyKey = idempotencyKey(*n)
	// The token of an attempt that is over must not let anybody in.
	if _, err := tx.KillTokens(ctx, n.ID); err != nil {
		return err
	}
	if err := tx.PutToken(ctx, f.tokenRecord(*n)); err != nil {
		return err
	}
	if err := f.save(ctx, tx, n); err != nil {
		return err
	}
	return f.event(ctx, tx, *n, "create-sent", fmt.Sprintf("%s is asked for a %s in %s (attempt %d)", n.Provider, n.Size, n.Region, n.Attempt))
}

// idempotencyKey names an attempt: a repeat of it has the same, any other
// attempt another.
func idempotencyKey(n Node) string {
	text, err := json.Marshal([]any{"v1", n.ID, n.Attempt, n.Candidate, n.Spec, n.Boot})
	if err != nil {
		panic("fleet: strings and numbers cannot fail to encode: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// createOpts are those of the node's attempt: the same at every repeat.
func (f *Fleet) createOpts(n Node) (provision.CreateOpts, error) {
	userData, err := f.cfg.RenderUserData(UserData{
		Boot: n.Boot, NodeName: n.Name, JoinToken: f.token(n).Reveal(), MeshEnabled: n.Spec.MeshEnabled,
	})
	if err != nil {
		return provision.CreateOpts{}, err
	}
	s := n.Spec
	return provision.CreateOpts{
		Region: n.Region, Size: n.Size, Name: n.Name, UserData: userData, IdempotencyKey: n.IdempotencyKey,
		Labels:          map[string]string{f.label(labelNode): n.ID, f.label(labelAttempt): strconv.Itoa(n.Attempt)},
		AllowSSHInbound: s.AllowSSHInbound, SSHKeys: s.SSHKeys, SSHSourceCIDRs: s.SSHSourceCIDRs,
		Image: s.Image, Architecture: s.Architecture, DiskGB: s.DiskGB,
	}, nil
}

// adoptable looks for the server of this very attempt after a conflict: a
// provider that cannot know the repeat again (after an upgrade of ours that
// renders other user-data, say) still shows it by its labels.
func (f *Fleet) adoptable(ctx context.Context, cloud provision.Provisioner, n Node) (provision.Server, bool) {
	lister, ok := cloud.(provision.Lister)
	if !ok {
		return provision.Server{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout/2)
	defer cancel()
	servers, err := lister.ListServers(ctx)
	if err != nil {
		return provision.Server{}, false
	}
	for _, s := range servers {
		if s.Labels[f.label(labelNode)] == n.ID && s.Labels[f.label(labelAttempt)] == strconv.Itoa(n.Attempt) {
			return s, true
		}
	}
	return provision.Server{}, false
}

// created writes the server's id right after the answer, whatever has become
// of the node meanwhile: one that is being deleted must know it most of all.
func (f *Fleet) created(ctx context.Context, from Node, id, ip string) error {
	return f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if n.ServerID == id {
			return nil
		}
		message := fmt.Sprintf("%s made server %s", n.Provider, id)
		onItsWay := n.Phase == PhasePending || n.Phase == PhaseCreating
		if n.Phase == PhaseDeleted || n.ServerGone || n.ServerID != "" || onItsWay && n.Attempt != from.Attempt {
			// It has ended without this one, or has another, or waits for another.
			left := Left{Account: n.Account, NodeID: n.ID, At: f.now(), Resource: provision.Resource{
				Kind: provision.KindServer, ID: id, Name: n.Name, Region: from.Region, ServerID: id, Billable: true, CreatedAt: f.now(),
			}}
			if err := tx.PutLeft(ctx, left); err != nil {
				return err
			}
			if err := f.event(ctx, tx, *n, "server-surplus", message+", which this node does not need: it is removed"); err != nil {
				return err
			}
			return tx.Wake(ctx, Alarm{AlarmAccount, n.Account}, f.now())
		}
		n.ServerID, n.IPAddr, n.Tries = id, ip, 0
		if n.Phase == PhaseCreating {
			n.Phase = PhaseBooting
		}
		if ip != "" {
			message += " at " + ip
		}
		if err := f.event(ctx, tx, *n, "server-made", message); err != nil {
			return err
		}
		if n.Phase == PhaseBooting && !n.JoinedAt.IsZero() {
			n.Phase = PhaseJoined // it was faster than the answer
			if err := f.event(ctx, tx, *n, "joined", "its agent had joined before "+n.Provider+" answered"); err != nil {
				return err
			}
		}
		if n.Phase == PhaseBooting {
			if err := tx.Wake(ctx, Alarm{AlarmNode, n.ID}, n.JoinBy); err != nil {
				return err
			}
		}
		if n.Phase == PhaseDeleting || n.Phase == PhaseFailed {
			if err := tx.Wake(ctx, Alarm{AlarmNode, n.ID}, f.now()); err != nil {
				return err
			}
		}
		return tx.Wake(ctx, Alarm{AlarmAccount, n.Account}, f.now().Add(f.timing.ObserveFast))
	})
}

// createFailed decides by class what a failed create means.
func (f *Fleet) createFailed(ctx context.Context, from Node, cause error) (time.Time, error) {
	next := f.now()
	err := f.change(ctx, from.ID, func(tx Tx, n *Node) error {
		if err := f.noteLeft(ctx, tx, *n, cause); err != nil {
			return err
		}
		if n.Attempt != from.Attempt || n.Phase != from.Phase {
			return nil // what is left is on record; the rest is for others to do
		}
		if className(cause) != "unavailable" && className(cause) != "" && !n.Doubt {
			n.CreateSentAt = time.Time{} // refused in words: it had no effect
		}
		if mayPass(cause) || !n.JoinedAt.IsZero() {
			n.Tries++
			wait := f.pause(n.Tries, cause)
			if next = f.now().Add(wait); n.JoinedAt.IsZero() {
				next = earliest(next, n.JoinBy)
			}
			if !worthTelling(n.Tries) {
				return nil
			}
			message := fmt.Sprintf("%v; the same call is sent again (call %d) in %s", cause, n.Tries+1, wait.Round(time.Second))
			return f.event(ctx, tx, *n, "create-retry", message)
		}
		if i := nextCandidate(*n, cause); i > 0 {
			c := n.Spec.Candidates[i]
			message := fmt.Sprintf("%v; next is %s in %s", cause, c.Size, c.Region)
			n.Phase, n.Candidate, n.Region, n.Size = PhasePending, i, c.Region, c.Size
			if _, err := tx.KillTokens(ctx, n.ID); err != nil {
				return err
			}
			return f.event(ctx, tx, *n, "next-candidate", message)
		}
		return f.failIn(ctx, tx, n, reasonOf(cause))
	})
	return next, err
}

// nextCandidate is the index of the candidate to try after cause; 0 for none.
// Capacity is a matter of size and place, so the next may do. A quota is the
// account's, at some providers by region: only another region may do.
func nextCandidate(n Node, cause error) int {
	capacity, quota := errors.Is(cause, provision.ErrCapacity), errors.Is(cause, provision.ErrQuota)
	if !capacity && !quota {
		return 0
	}
	for i := n.Candidate + 1; i < len(n.Spec.Candidates); i++ {
		if capacity || n.Spec.Candidates[i].Region != n.Region {
			return i
		}
	}
	return 0
}

// noteLeft records what a failed create could not remove, so that it is
// removed later and stays listed until then.
func (f *Fleet) noteLeft(ctx context.Context, tx Tx, n Node, cause error) error {
	for _, r := range provision.LeftBehind(cause) {
		if err := tx.PutLeft(ctx, Left{Account: n.Account, NodeID: n.ID, Resource: r, At: f.now()}); err != nil {
			return err
		}
		if err := f.event(ctx, tx, n, "left-behind", fmt.Sprintf("the failed create left %s %s behind; it is removed later", r.Kind, r.ID)); err != nil {
			return err
		}
		if err := tx.Wake(ctx, Alarm{AlarmAccount, n.Account}, f.now().Add(f.timing.ObserveFast)); err != nil {
			return err
		}
	}
	return nil
}

// createTimeout says why a node that has no server yet is given up.
func (f *Fleet) createTimeout(n Node) Reason {
	within := n.JoinBy.Sub(n.CreatedAt).Round(time.Second)
	r := Reason{Class: "join-timeout", Hint: "try again when the provider answers"}
	if n.Attempt == 0 {
		r.Message = fmt.Sprintf("the create was not sent within %s: the control plane did not run", within)
		r.Hint = "create it again"
	} else {
		r.Message = fmt.Sprintf("%s gave no server within %s (%d calls failed in a row)", n.Provider, within, n.Tries)
	}
	return r
}
