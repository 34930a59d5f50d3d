package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// CreateNode records that a node should exist and returns at once; the work
// goes on by alarms. It asks no provider, but refuses what is known to fail:
// a bad spec, an unknown account, an address that nodes could not reach.
func (f *Fleet) CreateNode(ctx context.Context, spec NodeSpec) (Node, error) {
	a, err := f.checkCreate(ctx, spec)
	if err != nil {
		return Node{}, err
	}
	n := f.newNode(spec)
	n.Provider, n.Phase = a.Provider, PhasePending
	n.Region, n.Size = spec.Candidates[0].Region, spec.Candidates[0].Size
	err = f.store.Update(ctx, func(tx Tx) error {
		// The account is read again inside: it may have been removed.
		if _, err := tx.Account(ctx, spec.Account); err != nil {
			return f.accountError(ctx, spec.Account, err)
		}
		if err := tx.InsertNode(ctx, n); err != nil {
			return nameError(n.Name, err)
		}
		message := fmt.Sprintf("a node with %s was asked for, on account %s", describeCandidates(spec.Candidates), spec.Account)
		if err := f.event(ctx, tx, n, "requested", message); err != nil {
			return err
		}
		return tx.Wake(ctx, Alarm{AlarmNode, n.ID}, n.CreatedAt)
	})
	if err != nil {
		return Node{}, err
	}
	return n, nil
}

// checkCreate checks a spec against the account and the advertised address.
func (f *Fleet) checkCreate(ctx context.Context, spec NodeSpec) (Account, error) {
	if err := checkSpec(spec); err != nil {
		return Account{}, err
	}
	a, err := f.store.Account(ctx, spec.Account)
	if err != nil {
		return Account{}, f.accountError(ctx, spec.Account, err)
	}
	return a, f.checkAdvertise(ctx, a)
}

// newNode is a node as it is before anything happened.
func (f *Fleet) newNode(spec NodeSpec) Node {
	now := f.now()
	timeout := spec.JoinTimeout
	if timeout == 0 {
		timeout = f.timing.JoinTimeout
	}
	// A version 7 id sorts by its time, which rand.Reader's failure alone
	// could prevent; and that ends the program.
	return Node{
		ID: uuid.Must(uuid.NewV7()).String(), Name: spec.Name, Account: spec.Account, Spec: cloneSpec(spec),
		JoinBy: now.Add(timeout), CreatedAt: now, UpdatedAt: now, Version: 1,
	}
}

func cloneSpec(s NodeSpec) NodeSpec {
	s.Candidates = slices.Clone(s.Candidates)
	s.Labels = maps.Clone(s.Labels)
	s.SSHKeys = slices.Clone(s.SSHKeys)
	s.SSHSourceCIDRs = slices.Clone(s.SSHSourceCIDRs)
	return s
}

func nameError(name string, err error) error {
	if errors.Is(err, ErrConflict) {
		return conflictf("use another name, or delete that node first", "a node named %s exists already", name)
	}
	return err
}

func describeCandidates(cs []Candidate) string {
	words := make([]string, 0, len(cs))
	for _, c := range cs {
		words = append(words, c.Size+" in "+c.Region)
	}
	return strings.Join(words, ", or else ")
}

// Node returns the node that ref means: its id, its name, or a prefix of
// either that no other has. Nodes that are not deleted come first; a deleted
// one is found by its id, or by its whole name.
func (f *Fleet) Node(ctx context.Context, ref string) (Node, error) {
	n, err := f.find(ctx, ref)
	if err != nil {
		return Node{}, err
	}
	return f.withSeen(n), nil
}

func (f *Fleet) find(ctx context.Context, ref string) (Node, error) {
	if ref == "" {
		return Node{}, invalidf("give an id or a name", "no node is named")
	}
	found, err := f.store.Nodes(ctx, NodeQuery{Ref: ref})
	if err != nil {
		return Node{}, err
	}
	var live, ended []Node
	for _, n := range found {
		switch {
		case n.ID == ref:
			return n, nil
		case n.Phase == PhaseDeleted:
			if n.Name == ref {
				ended = append(ended, n)
			}
		default:
			live = append(live, n)
		}
	}
	// Names of live nodes are unique: one that is named in full wins over
	// those that merely begin so.
	if i := slices.IndexFunc(live, func(n Node) bool { return n.Name == ref }); i >= 0 {
		return live[i], nil
	}
	switch {
	case len(live) == 1:
		return live[0], nil
	case len(live) == 0 && len(ended) > 0:
		return ended[len(ended)-1], nil
	case len(live) == 0:
		return Node{}, notFoundf("list the nodes to see their names", "there is no node %q", clip(ref, 80))
	}
	var names []string
	for _, n := range live[:min(len(live), 5)] {
		names = append(names, n.Name)
	}
	return Node{}, conflictf("give more of the name or id", "%q could be any of %d nodes, such as %s", clip(ref, 80), len(live), strings.Join(names, ", "))
}

// Nodes returns the nodes that q selects, oldest first.
func (f *Fleet) Nodes(ctx context.Context, q NodeFilter) ([]Node, error) {
	all, err := f.store.Nodes(ctx, NodeQuery{Account: q.Account, Phases: q.Phases})
	if err != nil {
		return nil, err
	}
	res := make([]Node, 0, len(all))
	for _, n := range all {
		if n.Phase == PhaseDeleted && !q.IncludeDeleted && !slices.Contains(q.Phases, PhaseDeleted) {
			continue
		}
		if hasLabels(n.Spec.Labels, q.Labels) {
			res = append(res, f.withSeen(n))
		}
	}
	return res, nil
}

func hasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// DeleteNode records that a node should be gone and returns at once. Its
// certificate and its token are refused from then on; it is deleted when its
// server was seen to be gone. Deleting again is no error.
func (f *Fleet) DeleteNode(ctx context.Context, ref string) (Node, error) {
	found, err := f.find(ctx, ref)
	if err != nil {
		return Node{}, err
	}
	var res Node
	err = f.store.Update(ctx, func(tx Tx) error {
		n, err := tx.Node(ctx, found.ID)
		if err != nil {
			return err
		}
		res = n
		if n.Phase == PhaseDeleting || n.Phase == PhaseDeleted {
			return nil
		}
		now := f.now()
		n.Phase, n.EndedAt, n.Tries = PhaseDeleting, now, 0
		if err := f.saveEnding(ctx, tx, &n, "delete-asked", "it was asked to be deleted; its access is revoked"); err != nil {
			return err
		}
		res = n
		return nil
	})
	f.forget(found.ID)
	return res, err
}

// saveEnding writes a node that has just begun to end: no token of it lives
// on, and its removal is called at once.
func (f *Fleet) saveEnding(ctx context.Context, tx Tx, n *Node, event, message string) error {
	if _, err := tx.KillTokens(ctx, n.ID); err != nil {
		return err
	}
	if err := f.save(ctx, tx, n); err != nil {
		return err
	}
	if err := f.event(ctx, tx, *n, event, message); err != nil {
		return err
	}
	return tx.Wake(ctx, Alarm{AlarmNode, n.ID}, f.now())
}

func (f *Fleet) save(ctx context.Context, tx Tx, n *Node) error {
	n.UpdatedAt = f.now()
	return tx.UpdateNode(ctx, n)
}

func (f *Fleet) event(ctx context.Context, tx Tx, n Node, kind, message string) error {
	return tx.AddEvent(ctx, Event{NodeID: n.ID, Node: n.Name, At: f.now(), Type: kind, Phase: n.Phase, Message: message})
}

// Events returns a node's timeline, oldest first; also of a deleted node.
func (f *Fleet) Events(ctx context.Context, ref string) ([]Event, error) {
	n, err := f.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return f.store.Events(ctx, n.ID, 0, 0)
}

// withSeen adds the last sign of life, which is written down only now and
// then.
func (f *Fleet) withSeen(n Node) Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.seen[n.ID]; at.After(n.LastSeenAt) {
		n.LastSeenAt = at
	}
	return n
}

func (f *Fleet) forget(nodeID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, nodeID)
	delete(f.noted, nodeID)
	delete(f.met, nodeID)
}

// earliest returns the first of the times that is not zero.
func earliest(ts ...time.Time) time.Time {
	var res time.Time
	for _, t := range ts {
		if !t.IsZero() && (res.IsZero() || t.Before(res)) {
			res = t
		}
	}
	return res
}
