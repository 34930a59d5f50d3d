package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Observe brings every node of an account up to date by one list of its
// servers, however many there are, and removes what failed creates left
// behind. It returns when to look again: soon while something is on its way,
// seldom while nodes only live, never when there is nothing to see.
//
// A list that fails concludes nothing. A list that does not show a server
// concludes only what its time allows: lists lag.
func (f *Fleet) Observe(ctx context.Context, account string) (next time.Time, err error) {
	a, cloud, err := f.open(ctx, account)
	if errors.Is(err, ErrNotFound) {
		return time.Time{}, nil
	}
	if err != nil {
		return f.observeFailed(ctx, a, err)
	}
	nodes, left, err := f.toObserve(ctx, account)
	if err != nil || len(nodes)+len(left) == 0 {
		return time.Time{}, err
	}
	look, err := f.look(ctx, cloud, nodes)
	if err != nil {
		if ctx.Err() != nil {
			return time.Time{}, ctx.Err()
		}
		return f.observeFailed(ctx, a, err)
	}
	ctx = context.WithoutCancel(ctx)
	for _, n := range nodes {
		if err := f.observeNode(ctx, cloud, n.ID, look); err != nil {
			return time.Time{}, err
		}
	}
	if err := f.removeLeft(ctx, cloud, left, look); err != nil {
		return time.Time{}, err
	}
	if err := f.noteHealth(ctx, a, "", look.began); err != nil {
		return time.Time{}, err
	}
	f.observed(account, true)
	return f.nextLook(ctx, account)
}

// look is one list of an account's servers.
type look struct {
	began  time.Time
	byID   map[string]provision.Server
	byNode map[string][]provision.Server // by the node's id in the label
}

// look lists the servers; where the provider has no list, it asks for those
// of the nodes one by one.
func (f *Fleet) look(ctx context.Context, cloud provision.Provisioner, nodes []Node) (look, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	l := look{began: f.now(), byID: map[string]provision.Server{}, byNode: map[string][]provision.Server{}}
	lister, ok := cloud.(provision.Lister)
	if !ok {
		return l, askEach(ctx, cloud, nodes, l.byID)
	}
	servers, err := lister.ListServers(ctx)
	if err != nil {
		return l, err
	}
	for _, s := range servers {
		l.byID[s.ID] = s
		if id := s.Labels[f.label(labelNode)]; id != "" {
			l.byNode[id] = append(l.byNode[id], s)
		}
	}
	return l, nil
}

func askEach(ctx context.Context, cloud provision.Provisioner, nodes []Node, byID map[string]provision.Server) error {
	for _, n := range nodes {
		if n.ServerID == "" {
			continue
		}
		status, ip, err := cloud.GetServer(ctx, n.ServerID)
		if errors.Is(err, provision.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		byID[n.ServerID] = provision.Server{ID: n.ServerID, Name: n.Name, Status: status, IPAddr: ip}
	}
	return nil
}

// toObserve are the nodes of an account of which a list can tell something,
// and what was left behind.
func (f *Fleet) toObserve(ctx context.Context, account string) ([]Node, []Left, error) {
	all, err := f.store.Nodes(ctx, NodeQuery{Account: account, Phases: []Phase{PhaseBooting, PhaseJoined, PhaseDeleting, PhaseFailed}})
	if err != nil {
		return nil, nil, err
	}
	nodes := all[:0]
	for _, n := range all {
		if n.Phase != PhaseFailed || !n.ServerGone {
			nodes = append(nodes, n)
		}
	}
	left, err := f.store.Left(ctx, account)
	return nodes, left, err
}

// nextLook is when to look again.
func (f *Fleet) nextLook(ctx context.Context, account string) (time.Time, error) {
	nodes, left, err := f.toObserve(ctx, account)
	if err != nil || len(nodes)+len(left) == 0 {
		return time.Time{}, err
	}
	for _, n := range nodes {
		if n.Phase != PhaseJoined || n.Misses > 0 || n.ListedAt.IsZero() {
			return f.now().Add(f.timing.ObserveFast), nil
		}
	}
	return f.now().Add(f.timing.ObserveSlow), nil
}

// observeFailed notes that an account could not be read, and when to try
// again.
func (f *Fleet) observeFailed(ctx context.Context, a Account, cause error) (time.Time, error) {
	wait := f.pause(f.observed(a.Name, false), cause)
	if !mayPass(cause) {
		wait = max(wait, f.timing.ObserveSlow) // a person has to act first
	}
	f.log.WarnContext(ctx, "account could not be read", "account", a.Name, "class", className(cause), "error", cause)
	return f.now().Add(wait), f.noteHealth(ctx, a, cause.Error(), a.ObservedAt)
}

// observed counts the lists in a row that failed.
func (f *Fleet) observed(account string, ok bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		delete(f.badLooks, account)
		return 0
	}
	f.badLooks[account]++
	return f.badLooks[account]
}

// noteHealth writes how a list went; when nothing changed, only now and then.
func (f *Fleet) noteHealth(ctx context.Context, a Account, lastError string, at time.Time) error {
	if a.LastError == lastError && at.Sub(a.ObservedAt) < f.timing.ObserveSlow/2 {
		return nil
	}
	err := f.store.Update(ctx, func(tx Tx) error { return tx.SetAccountHealth(ctx, a.Name, lastError, at) })
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// observeNode brings one node up to date.
func (f *Fleet) observeNode(ctx context.Context, cloud provision.Provisioner, id string, l look) error {
	n, err := f.store.Node(ctx, id)
	if err != nil {
		return err
	}
	lost, err := f.reallyLost(ctx, cloud, n, l)
	if err != nil {
		return err
	}
	asked, gone := n.ServerID, f.reallyGone(ctx, cloud, n, l)
	err = f.store.Update(ctx, func(tx Tx) error {
		n, err := tx.Node(ctx, id)
		if err != nil {
			return err
		}
		before := n
		switch n.Phase {
		case PhaseBooting, PhaseJoined:
			err = f.observeLive(ctx, tx, &n, l, lost)
		case PhaseDeleting, PhaseFailed:
			err = f.observeEnding(ctx, tx, &n, l, gone && n.ServerID == asked)
		}
		if err != nil || n.Version != before.Version || sameSight(n, before) {
			return err
		}
		return f.save(ctx, tx, &n)
	})
	return err
}

// sameSight tells whether an observation changed nothing that is kept.
func sameSight(a, b Node) bool {
	return a.Phase == b.Phase && a.ServerID == b.ServerID && a.ServerStatus == b.ServerStatus && a.IPAddr == b.IPAddr &&
		a.IPv6Addr == b.IPv6Addr && a.ServerGone == b.ServerGone && a.Misses == b.Misses &&
		a.ListedAt.Equal(b.ListedAt) && a.RunningAt.Equal(b.RunningAt) && a.DeleteSentAt.Equal(b.DeleteSentAt) &&
		a.MissingSince.Equal(b.MissingSince)
}

// sight notes what a list shows of a node's server.
func (f *Fleet) sight(ctx context.Context, tx Tx, n *Node, s provision.Server, l look) error {
	n.Misses, n.MissingSince = 0, time.Time{}
	if n.ListedAt.IsZero() {
		n.ListedAt = l.began
	}
	if s.IPAddr != "" {
		n.IPAddr = s.IPAddr
	}
	if s.IPv6Addr != "" {
		n.IPv6Addr = s.IPv6Addr
	}
	if s.Status == n.ServerStatus {
		return nil
	}
	n.ServerStatus = s.Status
	if n.Phase != PhaseBooting && n.Phase != PhaseJoined {
		return nil
	}
	message := fmt.Sprintf("%s shows server %s as %s", n.Provider, n.ServerID, s.Status)
	if s.Status == provision.ServerStatusRunning && n.IPAddr != "" {
		message += " at " + n.IPAddr
	}
	if s.Status == provision.ServerStatusRunning && n.RunningAt.IsZero() {
		n.RunningAt = l.began
	}
	return f.event(ctx, tx, *n, "server-"+string(s.Status), message)
}
