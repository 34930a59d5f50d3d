package provision

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

func TestTroubleIsNotAnsweredWithAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		sent := 0
		broken := true
		step := withRetry(func(context.Context, *call) (*answer, error) {
			mu.Lock()
			defer mu.Unlock()
			sent++
			if broken {
				return nil, &ProviderError{Status: 503, Class: ErrUnavailable, again: againSafe}
			}
			return &answer{status: 200}, nil
		}, newRetrier())
		const callers = 200
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() { _, _ = step(t.Context(), &call{method: "GET"}) })
		}
		wg.Wait()
		if sent > callers+budgetRepeat {
			t.Errorf("%d callers sent %d requests to a provider in trouble", callers, sent)
		}
		// When it works again, so do repeats.
		broken, sent = false, 0
		for range 2 * budgetFull {
			_, _ = step(t.Context(), &call{method: "GET"})
		}
		broken, sent = true, 0
		_, _ = step(t.Context(), &call{method: "GET"})
		if sent != 5 {
			t.Errorf("after recovery a call was tried %d times, want 5", sent)
		}
	})
}

func TestBudgetCountsTroubleAlone(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, e := range map[string]*ProviderError{
		"busy":                    {Status: 423, Class: ErrUnavailable, again: againAny},
		"too fast":                {Status: 429, Class: ErrRateLimited, again: againAny},
		"not found":               {Status: 404, Class: ErrNotFound},
		"not sent":                notSent(ended),
		"stopped while under way": networkError(ended, context.Canceled, "h"),
	} {
		b := newRetryBudget()
		for range 3 * budgetFull {
			b.fail(e)
		}
		if b.tokens != budgetFull {
			t.Errorf("%s took %v tokens", what, budgetFull-b.tokens)
		}
	}
	b := newRetryBudget()
	for range 3 * budgetFull {
		b.fail(networkError(t.Context(), context.DeadlineExceeded, "h"))
	}
	if b.tokens != 0 {
		t.Errorf("attempts that ran out of time left %v tokens, want 0", b.tokens)
	}
}
