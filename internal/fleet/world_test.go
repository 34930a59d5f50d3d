package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
	"github.com/slipway-dev/slipway/provision"
)

const fleetID = "fleet-one"

// clock is a time that only tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }

// tb is what a world needs of a test, which rapid's T has as well.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a fleet with its real store, a fake cloud, guests that join, and a
// time of its own.
type world struct {
	tb    tb
	ctx   context.Context
	clock *clock
	cloud *fakeCloud
	db    *store.Store
	store *crashingStore
	fleet *fleet.Fleet
	cfg   fleet.Config
	// joins tells whether guests join as soon as they run.
	joins  bool
	serial int
	joined map[string]string // server id: key of its guest
}

// crashingStore calls effect before and after each commit.
type crashingStore struct {
	fleet.Store
	effect func(point string)
}

func (s *crashingStore) Update(ctx context.Context, fn func(fleet.Tx) error) error {
	wrote := false
	err := s.Store.Update(ctx, func(tx fleet.Tx) error {
		err := fn(tx)
		if err == nil {
			s.effect("before commit")
		}
		wrote = err == nil
		return err
	})
	if wrote && err == nil {
		s.effect("after commit")
	}
	return err
}

// emptyDB is a database that was brought to its form once, for all tests.
var emptyDB = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "fleet-test-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sealer, err := store.OpenSealer(filepath.Join(dir, "age.key"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "slipway.db")
	db, err := store.Open(context.Background(), store.Options{Path: path, Sealer: sealer})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func openStore(tb tb, dir string, now func() time.Time) *store.Store {
	tb.Helper()
	empty, err := emptyDB()
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "slipway.db"), empty, 0o600); err != nil {
		tb.Fatal(err)
	}
	sealer, err := store.OpenSealer(filepath.Join(dir, "age.key"))
	if err != nil {
		tb.Fatal(err)
	}
	db, err := store.Open(context.Background(), store.Options{Path: filepath.Join(dir, "slipway.db"), Sealer: sealer, Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// newWorld has one account, named acme. The caller closes w.db.
func newWorld(tb tb, dir string) *world {
	tb.Helper()
	w := &world{tb: tb, ctx: context.Background(), clock: &clock{t: time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)}, joins: true, joined: map[string]string{}}
	w.db = openStore(tb, dir, w.clock.Now)
	w.store = &crashingStore{Store: w.db, effect: func(string) {}}
	w.cloud = newFakeCloud(w.clock.Now)
	w.cfg = fleet.Config{
		Store: w.store, Clouds: fakeClouds{cloud: w.cloud}, TokenKey: []byte(strings.Repeat("k", 32)), FleetID: fleetID,
		Advertise: "192.0.2.10:8443", CAFingerprint: "sha256:" + strings.Repeat("0", 64), AgentVersion: "v1.0.0", Clock: w.clock,
		RenderUserData: func(u fleet.UserData) (string, error) { return fmt.Sprintf("#cloud-config\n# %+v\n", u), nil },
	}
	w.restart()
	if _, err := w.fleet.AddAccount(w.ctx, fleet.AccountSpec{Name: "acme", Provider: "fake", Credential: "secret"}); err != nil {
		tb.Fatal(err)
	}
	return w
}

func testWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, t.TempDir())
	t.Cleanup(func() {
		if err := w.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// restart drops everything that is not in the store.
func (w *world) restart() {
	w.tb.Helper()
	f, err := fleet.New(w.cfg)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.fleet = f
	if err := f.Sweep(w.ctx, true); err != nil {
		w.tb.Fatal(err)
	}
}

func spec(name string) fleet.NodeSpec {
	return fleet.NodeSpec{Name: name, Account: "acme", Candidates: []fleet.Candidate{{Region: "r1", Size: "small"}}}
}

func (w *world) create(s fleet.NodeSpec) fleet.Node {
	w.tb.Helper()
	n, err := w.fleet.CreateNode(w.ctx, s)
	if err != nil {
		w.tb.Fatal(err)
	}
	return n
}

func (w *world) node(ref string) fleet.Node {
	w.tb.Helper()
	n, err := w.fleet.Node(w.ctx, ref)
	if err != nil {
		w.tb.Fatal(err)
	}
	return n
}

func (w *world) delete(ref string) {
	w.tb.Helper()
	if _, err := w.fleet.DeleteNode(w.ctx, ref); err != nil {
		w.tb.Fatal(err)
	}
}

// tick runs what is due, lets guests join, and returns how many alarms ran.
func (w *world) tick() int {
	w.tb.Helper()
	n, err := w.db.RunDue(w.ctx, w.fleet)
	if err != nil {
		w.tb.Fatal(err)
	}
	if w.joins {
		w.joinAll()
	}
	return n
}

// run lets time go by, alarm by alarm, for as long as d.
func (w *world) run(d time.Duration) {
	w.tb.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		w.tick()
		w.clock.advance(min(max(w.untilAlarm(), 100*time.Millisecond), 5*time.Second, end.Sub(w.clock.Now())))
	}
	w.tick()
}

// untilAlarm is how long it is until the next alarm; a day when none is set.
func (w *world) untilAlarm() time.Duration {
	w.tb.Helper()
	alarms, err := w.db.Alarms(w.ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	next := w.clock.Now().Add(24 * time.Hour)
	for _, at := range alarms {
		if at.Before(next) {
			next = at
		}
	}
	return next.Sub(w.clock.Now())
}

// settle lets time go by from alarm to alarm until no node needs work.
func (w *world) settle() {
	w.tb.Helper()
	for range 3000 {
		w.tick()
		open, err := w.db.Nodes(w.ctx, fleet.NodeQuery{Unsettled: true})
		if err != nil {
			w.tb.Fatal(err)
		}
		left, err := w.db.Left(w.ctx, "")
		if err != nil {
			w.tb.Fatal(err)
		}
		if len(open)+len(left) == 0 {
			return
		}
		wait := w.untilAlarm()
		if wait > 12*time.Hour {
			w.tb.Fatalf("nodes need work and no alarm is set: %+v", open)
		}
		w.clock.advance(max(wait, 100*time.Millisecond))
	}
	w.tb.Fatalf("does not settle:\n%s", w.story())
}

// story is the whole timeline, for failures of tests.
func (w *world) story() string {
	var b strings.Builder
	events, err := w.db.Events(w.ctx, "", 0, 0)
	if err != nil {
		return err.Error()
	}
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s %-9s %-15s %s\n", e.At.Format("15:04:05"), e.Node, e.Phase, e.Type, e.Message)
	}
	return b.String()
}

func (w *world) sign(string) (*enroll.Certificate, error) {
	w.serial++
	return &enroll.Certificate{Serial: fmt.Sprintf("%x", w.serial)}, nil
}

func (w *world) redeem(t enroll.Token, key string) (enroll.RedeemResult, error) {
	return w.fleet.Redeem(w.ctx, enroll.RedeemRequest{TokenID: t.ID(), SecretHash: t.SecretHash(), KeyHash: key, Source: "198.51.100.9:4711"}, w.sign)
}

// joinAll lets every guest that runs join, once.
func (w *world) joinAll() {
	w.tb.Helper()
	for _, s := range w.cloud.alive() {
		if w.joined[s.ID] != "" || w.cloud.status(s) != provision.ServerStatusRunning {
			continue
		}
		t, err := s.token()
		if err != nil {
			w.tb.Fatalf("server %s has no token in its user-data", s.ID)
		}
		key := "key-of-" + s.ID
		if _, err := w.redeem(t, key); err == nil {
			w.joined[s.ID] = key
		} else if !errors.Is(err, enroll.ErrTokenRefused) {
			w.tb.Fatal(err)
		}
	}
}

// types returns the types of a node's events.
func (w *world) types(ref string) []string {
	w.tb.Helper()
	events, err := w.fleet.Events(w.ctx, ref)
	if err != nil {
		w.tb.Fatal(err)
	}
	var res []string
	for _, e := range events {
		res = append(res, e.Type)
	}
	return res
}

type stoppable struct {
	ctx  context.Context
	stop context.CancelFunc
}

func (w *world) stoppedContext() stoppable {
	ctx, cancel := context.WithCancel(w.ctx)
	return stoppable{ctx, cancel}
}
