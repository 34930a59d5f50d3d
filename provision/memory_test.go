package provision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryFindsOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory[int](time.Minute)
		var mu sync.Mutex
		found := 0
		find := func(context.Context) (int, error) {
			mu.Lock()
			found++
			mu.Unlock()
			time.Sleep(time.Second)
			return 7, nil
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if v, err := m.get(t.Context(), "k", find); v != 7 || err != nil {
					t.Errorf("got %d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if found != 1 {
			t.Errorf("found %d times", found)
		}
		time.Sleep(time.Minute)
		if _, err := m.get(t.Context(), "k", find); err != nil || found != 2 {
			t.Errorf("after its time: found %d times, %v", found, err)
		}
		m.forget("k")
		if _, ok := m.peek("k"); ok {
			t.Error("not forgotten")
		}
	})
}

func TestMemoryKeepsNoFailure(t *testing.T) {
	m := newMemory[int](time.Minute)
	if _, err := m.get(t.Context(), "k", func(context.Context) (int, error) { return 0, errors.New("x") }); err == nil {
		t.Error("no error")
	}
	if v, err := m.get(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory[int](time.Minute)
	for i := range 3 * mostRemembered {
		m.put(fmt.Sprint(i), i)
	}
	if len(m.known) > mostRemembered {
		t.Errorf("remembers %d", len(m.known))
	}
}

func TestMemoryWaitsNoLongerThanTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory[int](time.Minute)
		release := make(chan struct{})
		go func() {
			_, _ = m.get(t.Context(), "slow", func(context.Context) (int, error) { <-release; return 1, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.get(ctx, "slow", func(ctx context.Context) (int, error) { return 0, ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(release)
	})
}
