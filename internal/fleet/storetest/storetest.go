// Package storetest is the conformance suite of fleet.Store: one test for each
// sentence of its contract, in the manner of testing/fstest. A store of any
// database runs it:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) fleet.Store { return open(t) })
//	}
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// Run runs the suite. open returns an empty store for one test; it closes the
// store when the test ends. now is the clock that the store compares alarms
// with.
func Run(t *testing.T, open func(t *testing.T) fleet.Store, now func() time.Time) {
	for _, c := range []struct {
		name string
		test func(*testing.T, fleet.Store, func() time.Time)
	}{
		{"Accounts", testAccounts},
		{"Alarms", testAlarms},
		{"Atomic", testAtomic},
		{"ConcurrentUpdates", testConcurrent},
		{"Events", testEvents},
		{"EventsChanged", testEventsChanged},
		{"Left", testLeft},
		{"NodeQueries", testNodeQueries},
		{"NodeRoundTrip", testNodeRoundTrip},
		{"NodeVersions", testNodeVersions},
		{"Tokens", testTokens},
		{"UniqueNames", testUniqueNames},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t), now) })
	}
}

var base = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// node is a node with every field filled in.
func node(i int) fleet.Node {
	at := func(m int) time.Time { return base.Add(time.Duration(i*100+m) * time.Minute) }
	return fleet.Node{
		ID: fmt.Sprintf("01900000-0000-7000-8000-%012d", i), Name: fmt.Sprintf("node-%d", i), Account: "acme", Provider: "hetzner",
		Spec: fleet.NodeSpec{
			Name: fmt.Sprintf("node-%d", i), Account: "acme", Candidates: []fleet.Candidate{{Region: "fsn1", Size: "cx23"}, {Region: "hel1", Size: "cx33"}},
			Labels: map[string]string{"team": "a"}, AllowSSHInbound: true, SSHKeys: []string{"me"}, SSHSourceCIDRs: []string{"203.0.113.0/24"},
			Image: "ubuntu-24.04", Architecture: "x86", DiskGB: 40, MeshEnabled: true, JoinTimeout: time.Hour,
		},
		Phase: fleet.PhaseBooting, Attempt: 2, IdempotencyKey: "key", CreateSentAt: at(1), Doubt: true, Candidate: 1, Tries: 3,
		Boot:     fleet.Boot{Address: "cp.example.com:8443", CAFingerprint: "sha256:00", AgentImage: "i", AgentVersion: "v", ShortName: "slipway"},
		ServerID: fmt.Sprint(1000 + i), ServerStatus: provision.ServerStatusRunning, IPAddr: "198.51.100.7", IPv6Addr: "2001:db8::7",
		Region: "hel1", Size: "cx33", ListedAt: at(2), RunningAt: at(3), MissingSince: at(4), Misses: 1, DeleteSentAt: at(5), EndedAt: at(6),
		Reason: fleet.Reason{Class: "capacity", Message: "m", Hint: "h", RequestID: "r"}, ServerGone: true, JoinBy: at(7), CreatedAt: at(0),
		JoinedAt: at(8), DeletedAt: at(9), UpdatedAt: at(10), CertSerial: "aa", PrevSerial: "bb",
		Facts:        fleet.Facts{OS: "o", Kernel: "k", Architecture: "amd64", DockerVersion: "d", AgentVersion: "v", Hostname: "h"},
		PriceMonthly: "3.49", Currency: "EUR", Version: 1,
	}
}

func update(t *testing.T, s fleet.Store, fn func(fleet.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func insert(t *testing.T, s fleet.Store, nodes ...fleet.Node) {
	t.Helper()
	update(t, s, func(tx fleet.Tx) error {
		for _, n := range nodes {
			if err := tx.InsertNode(t.Context(), n); err != nil {
				return err
			}
		}
		return nil
	})
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v; want %v", err, want)
	}
}

func diff(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("not what was expected (-want +got):\n%s", d)
	}
}

func testNodeRoundTrip(t *testing.T, s fleet.Store, _ func() time.Time) {
	full, empty := node(1), fleet.Node{ID: "n2", Name: "two", Phase: fleet.PhasePending, Version: 1, CreatedAt: base.Add(time.Hour)}
	insert(t, s, full, empty)
	for _, want := range []fleet.Node{full, empty} {
		got, err := s.Node(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, got, want)
	}
	_, err := s.Node(t.Context(), "none")
	wantErr(t, err, fleet.ErrNotFound)

	seen := base.Add(3 * time.Hour)
	update(t, s, func(tx fleet.Tx) error { return tx.Seen(t.Context(), full.ID, seen.Add(-time.Hour)) })
	update(t, s, func(tx fleet.Tx) error { return tx.Seen(t.Context(), full.ID, seen) })
	full.LastSeenAt = seen
	got, err := s.Node(t.Context(), full.ID)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, got, full)
}

func testNodeVersions(t *testing.T, s fleet.Store, _ func() time.Time) {
	n := node(1)
	insert(t, s, n)
	first, second := n, n
	first.Phase, second.Phase = fleet.PhaseJoined, fleet.PhaseFailed
	update(t, s, func(tx fleet.Tx) error { return tx.UpdateNode(t.Context(), &first) })
	if first.Version != 2 {
		t.Fatalf("version after a write is %d; want 2", first.Version)
	}
	err := s.Update(t.Context(), func(tx fleet.Tx) error { return tx.UpdateNode(t.Context(), &second) })
	wantErr(t, err, fleet.ErrStale)
	if second.Version != 1 {
		t.Fatalf("a refused write counted the version up to %d", second.Version)
	}
	got, err := s.Node(t.Context(), n.ID)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, got, first)
	gone := node(9)
	err = s.Update(t.Context(), func(tx fleet.Tx) error { return tx.UpdateNode(t.Context(), &gone) })
	wantErr(t, err, fleet.ErrStale)
}

func testUniqueNames(t *testing.T, s fleet.Store, _ func() time.Time) {
	n, same := node(1), node(2)
	same.Name = n.Name
	insert(t, s, n)
	err := s.Update(t.Context(), func(tx fleet.Tx) error { return tx.InsertNode(t.Context(), same) })
	wantErr(t, err, fleet.ErrConflict)
	n.Phase = fleet.PhaseFailed
	update(t, s, func(tx fleet.Tx) error { return tx.UpdateNode(t.Context(), &n) })
	err = s.Update(t.Context(), func(tx fleet.Tx) error { return tx.InsertNode(t.Context(), same) })
	wantErr(t, err, fleet.ErrConflict)
	n.Phase = fleet.PhaseDeleted
	update(t, s, func(tx fleet.Tx) error { return tx.UpdateNode(t.Context(), &n) })
	insert(t, s, same)
}

func testNodeQueries(t *testing.T, s fleet.Store, _ func() time.Time) {
	phases := []fleet.Phase{fleet.PhasePending, fleet.PhaseCreating, fleet.PhaseBooting, fleet.PhaseJoined, fleet.PhaseDeleting, fleet.PhaseDeleted, fleet.PhaseFailed, fleet.PhaseFailed}
	var all []fleet.Node
	for i, p := range phases {
		n := node(i)
		n.Phase, n.ServerGone = p, i == 6
		if i%2 == 1 {
			n.Account = "other"
		}
		all = append(all, n)
	}
	all[3].Name = "%_weird"
	insert(t, s, all...)
	for _, c := range []struct {
		name string
		q    fleet.NodeQuery
		want []int
	}{
		{"all", fleet.NodeQuery{}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"account", fleet.NodeQuery{Account: "other"}, []int{1, 3, 5, 7}},
		{"phases", fleet.NodeQuery{Phases: []fleet.Phase{fleet.PhaseJoined, fleet.PhaseFailed}}, []int{3, 6, 7}},
		{"account and phase", fleet.NodeQuery{Account: "other", Phases: []fleet.Phase{fleet.PhaseFailed}}, []int{7}},
		{"unsettled", fleet.NodeQuery{Unsettled: true}, []int{0, 1, 2, 4, 7}},
		{"name prefix", fleet.NodeQuery{Ref: "node-4"}, []int{4}},
		{"id prefix", fleet.NodeQuery{Ref: "01900000-0000-7000-8000-00000000000"}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"no pattern", fleet.NodeQuery{Ref: "%"}, []int{3}},
		{"none", fleet.NodeQuery{Ref: "x"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.Nodes(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var want []fleet.Node
			for _, i := range c.want {
				want = append(want, all[i])
			}
			diff(t, got, want)
		})
	}
}

func testAtomic(t *testing.T, s fleet.Store, now func() time.Time) {
	changed := s.EventsChanged()
	boom := errors.New("boom")
	err := s.Update(t.Context(), func(tx fleet.Tx) error {
		ctx, n := t.Context(), node(1)
		return errors.Join(
			tx.InsertNode(ctx, n), tx.AddEvent(ctx, fleet.Event{NodeID: n.ID, At: base}), tx.PutToken(ctx, fleet.TokenRecord{ID: "t", NodeID: n.ID}),
			tx.InsertAccount(ctx, fleet.Account{Name: "a", CreatedAt: base}, "secret"), tx.PutLeft(ctx, fleet.Left{Account: "a", NodeID: n.ID}),
			tx.Wake(ctx, fleet.Alarm{Kind: fleet.AlarmNode, ID: n.ID}, now()), boom)
	})
	if err == nil || !errors.Is(err, boom) || err.Error() != boom.Error() {
		t.Fatalf("error is %v; want that of the function alone", err)
	}
	nodes, err1 := s.Nodes(t.Context(), fleet.NodeQuery{})
	events, err2 := s.Events(t.Context(), "", 0, 0)
	accounts, err3 := s.Accounts(t.Context())
	left, err4 := s.Left(t.Context(), "")
	alarms, err5 := s.Alarms(t.Context())
	_, err6 := s.Token(t.Context(), "t")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	wantErr(t, err6, fleet.ErrNotFound)
	if n := len(nodes) + len(events) + len(accounts) + len(left) + len(alarms); n != 0 {
		t.Fatalf("a failed transaction left %d records", n)
	}
	select {
	case <-changed:
		t.Fatal("a failed transaction told of events")
	default:
	}
}

// testConcurrent holds that two transactions that read the same record run one
// after the other: no count is lost.
func testConcurrent(t *testing.T, s fleet.Store, _ func() time.Time) {
	insert(t, s, node(1))
	before := node(1).Tries
	const workers, rounds = 16, 10
	var wg sync.WaitGroup
	errs := make(chan error, workers*rounds)
	for range workers {
		wg.Go(func() {
			for range rounds {
				errs <- s.Update(t.Context(), func(tx fleet.Tx) error {
					n, err := tx.Node(t.Context(), node(1).ID)
					if err != nil {
						return err
					}
					n.Tries++
					return tx.UpdateNode(t.Context(), &n)
				})
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := s.Node(context.Background(), node(1).ID)
	if err != nil {
		t.Fatal(err)
	}
	if n.Tries != before+workers*rounds {
		t.Fatalf("%d counts of %d are there", n.Tries-before, workers*rounds)
	}
}
