package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
)

// runner records its calls and answers by a function.
type runner struct {
	mu    sync.Mutex
	calls chan fleet.Alarm
	on    func(a fleet.Alarm, call int) (time.Duration, error)
	count map[fleet.Alarm]int
}

func (r *runner) Run(ctx context.Context, a fleet.Alarm) (time.Time, error) {
	r.mu.Lock()
	r.count[a]++
	wait, err := r.on(a, r.count[a])
	r.mu.Unlock()
	select {
	case r.calls <- a:
	case <-ctx.Done():
	}
	if wait == 0 || err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(wait), nil
}

func (r *runner) Sweep(context.Context, bool) error { return nil }
func (r *runner) Patrol(context.Context) error      { return nil }

// start runs a store with r until the test ends.
func start(t *testing.T, r *runner) *store.Store {
	t.Helper()
	r.calls, r.count = make(chan fleet.Alarm), map[fleet.Alarm]int{}
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, r, store.RunOptions{Poll: 50 * time.Millisecond}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (r *runner) next(t *testing.T) fleet.Alarm {
	t.Helper()
	select {
	case a := <-r.calls:
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("no alarm rings")
		return fleet.Alarm{}
	}
}

func wake(t *testing.T, s *store.Store, a fleet.Alarm, in time.Duration) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx fleet.Tx) error { return tx.Wake(t.Context(), a, time.Now().Add(in)) }); err != nil {
		t.Fatal(err)
	}
}

func TestRunRingsUntilItIsDone(t *testing.T) {
	a := fleet.Alarm{Kind: fleet.AlarmNode, ID: "x"}
	r := &runner{on: func(_ fleet.Alarm, call int) (time.Duration, error) {
		switch call {
		case 1:
			return 300 * time.Millisecond, nil
		case 2:
			return 0, errors.New("an error of our own")
		case 3:
			return time.Millisecond, nil
		}
		return 0, nil
	}}
	s := start(t, r)
	begin := time.Now()
	wake(t, s, a, 0)
	for i := range 4 {
		if got := r.next(t); got != a {
			t.Fatalf("call %d is for %v", i+1, got)
		}
		if took := time.Since(begin); i == 1 && took < 300*time.Millisecond {
			t.Errorf("the second call came after %s", took)
		}
	}
	// A last alarm shows that the first does not ring a fifth time.
	other := fleet.Alarm{Kind: fleet.AlarmAccount, ID: "y"}
	wake(t, s, other, 500*time.Millisecond)
	if got := r.next(t); got != other {
		t.Fatalf("%v rings on after its end", got)
	}
}

// TestRunWorksOneRing: however often an alarm is set, it rings once for the
// last time.
func TestRunWorksOneRing(t *testing.T) {
	r := &runner{on: func(fleet.Alarm, int) (time.Duration, error) { return 0, nil }}
	s := start(t, r)
	a := fleet.Alarm{Kind: fleet.AlarmNode, ID: "x"}
	begin := time.Now()
	due := begin.Add(3 * time.Second)
	for i := range 20 {
		wake(t, s, a, time.Until(due)-time.Duration(i)*time.Millisecond)
	}
	if got := r.next(t); got != a {
		t.Fatal(got)
	}
	if early := time.Until(due); early > 100*time.Millisecond {
		t.Errorf("it rings %s too early", early)
	}
	other := fleet.Alarm{Kind: fleet.AlarmAccount, ID: "y"}
	wake(t, s, other, 300*time.Millisecond)
	if got := r.next(t); got != other {
		t.Errorf("%v rings twice", got)
	}
}
