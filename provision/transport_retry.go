package provision

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// mayRepeat is the whole policy of repeating: whether a call may be sent
// again after err. safe says that doing it twice is like doing it once.
//
// A call that is not safe is repeated only after an error that says that
// nothing was done: no connection, too many requests, "busy, come again".
// After everything else its effect is unknown, and its caller has to look.
func mayRepeat(safe bool, err error) bool {
	var e *ProviderError
	if !errors.As(err, &e) {
		return false
	}
	switch e.again {
	case againAny:
		return true
	case againSafe:
		return safe
	default:
		return false
	}
}

// maxAttempts is how often a call is sent in all, by what went wrong last.
func maxAttempts(e *ProviderError) int {
	switch {
	case e.Status == 0 && e.again == againAny:
		return 3 // nobody is there: a person may be waiting for this message
	case e.Status == 409 || e.Status == 423:
		return 8 // an action has to end first, which takes up to half a minute
	default:
		return 5
	}
}

// The pauses: 0.5 s, 1 s, 2 s, … up to 10 s, each shortened by up to a half
// at random, so that many callers do not come back together.
const (
	firstPause = 500 * time.Millisecond
	topPause   = 10 * time.Second
	// longestWait is the longest that a provider's wish is waited for here;
	// beyond it the error tells, and the caller can do better than sleep.
	longestWait = time.Minute
)

// pauseBefore is how long to wait after the given attempt, counted from 1.
// jitter is in [0, 1).
func pauseBefore(attempt int, asked time.Duration, jitter float64) time.Duration {
	pause := topPause
	if attempt < 6 {
		pause = min(topPause, firstPause<<(attempt-1))
	}
	pause = time.Duration(float64(pause) * (1 - jitter/2))
	if asked <= 0 {
		return pause
	}
	// Never before the time asked for; a little after it, to spread.
	return max(pause, asked+time.Duration(float64(firstPause)*jitter))
}

// retrier is the state that repeats share.
type retrier struct {
	budget *retryBudget
	jitter func() float64
}

func newRetrier() *retrier { return &retrier{budget: newRetryBudget(), jitter: rand.Float64} }

func withRetry(next step, r *retrier) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		for attempt := 1; ; attempt++ {
			ans, err := next(ctx, c)
			if err == nil {
				r.budget.succeed()
				return ans, nil
			}
			var e *ProviderError
			if !errors.As(err, &e) {
				return nil, err
			}
			affordable := r.budget.fail(e)
			if !affordable || !mayRepeat(c.safe(), err) || attempt >= maxAttempts(e) {
				return nil, err
			}
			wait := pauseBefore(attempt, e.RetryAfter, r.jitter())
			if wait > longestWait+firstPause || !fits(ctx, wait) || sleep(ctx, wait) != nil {
				return nil, err
			}
		}
	}
}

// fits tells whether a wait would end before the context does. One that would
// not is never begun: the caller gets the real error at once.
func fits(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > wait)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
