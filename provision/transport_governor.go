package provision

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// pauseFunc is how long to wait between requests when remaining of limit are
// left, and untilReset is the time until the moment that the provider's reset
// header names. What that moment means differs between providers.
type pauseFunc func(limit, remaining int, untilReset time.Duration) time.Duration

// refillPause is for a limit that fills up steadily, where reset is the moment
// when it will be full again. While a tenth of it, or 100, are left there is
// no pause; below that it grows, until with nothing left requests go out as
// fast as new ones are granted. A clock that is wrong here or there cannot make
// a pause longer than topPause.
func refillPause(limit, remaining int, untilReset time.Duration) time.Duration {
	low := min(limit/10, 100)
	missing := limit - remaining
	if limit <= 0 || remaining >= low || missing <= 0 || untilReset <= 0 {
		return 0
	}
	grant := untilReset / time.Duration(missing) // time until one more is granted
	scarce := float64(low-max(remaining, 0)) / float64(low)
	return min(topPause, time.Duration(float64(grant)*scarce))
}

// afterRefusal is how long to wait after "too many requests" that came
// without Retry-After.
func (p pauseFunc) afterRefusal(h http.Header, now time.Time) time.Duration {
	limit, _, reset, ok := rateHeaders(h)
	if !ok || p == nil {
		return 0
	}
	return p(limit, 0, reset.Sub(now))
}

// governor spaces the requests of one account, so that the provider need not
// refuse any.
type governor struct {
	pause pauseFunc

	mu        sync.Mutex
	limit     int
	remaining int
	reset     time.Time
	next      time.Time // when the next request may go out
}

func newGovernor(pause pauseFunc) *governor { return &governor{pause: pause} }

func withGovernor(next step, g *governor) step {
	if g.pause == nil {
		return next
	}
	return func(ctx context.Context, c *call) (*answer, error) {
		if err := g.wait(ctx); err != nil {
			return nil, err
		}
		ans, err := next(ctx, c)
		if err == nil {
			g.learn(ans.header)
		}
		return ans, err
	}
}

// wait takes the next free slot and waits for it. A slot that the context
// would not live to see is not taken.
func (g *governor) wait(ctx context.Context) error {
	g.mu.Lock()
	now := time.Now()
	pause := g.pause(g.limit, g.remaining, g.reset.Sub(now))
	slot := now
	if pause > 0 {
		slot = now.Add(pause)
		if g.next.After(now) {
			slot = g.next.Add(pause)
		}
	}
	delay := slot.Sub(now)
	if !fits(ctx, delay) && ctx.Err() == nil && delay > 0 {
		g.mu.Unlock()
		return &ProviderError{
			Class: ErrRateLimited, RetryAfter: delay.Round(time.Second),
			Message: fmt.Sprintf("the account's request limit is nearly used up; the next request may go out in %v, after this call's deadline", delay.Round(time.Second)),
			Hint:    "wait, or find out what else uses this account's requests",
		}
	}
	g.next = slot
	if g.remaining > 0 {
		g.remaining-- // until the answer tells; several calls may be under way
	}
	g.mu.Unlock()
	if delay <= 0 {
		return nil
	}
	if sleep(ctx, delay) != nil {
		return notSent(ctx)
	}
	return nil
}

func (g *governor) learn(h http.Header) {
	limit, remaining, reset, ok := rateHeaders(h)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit, g.remaining, g.reset = limit, remaining, reset
}

// rateHeaders reads RateLimit-Limit, -Remaining and -Reset (unix seconds).
func rateHeaders(h http.Header) (limit, remaining int, reset time.Time, ok bool) {
	limit, err1 := strconv.Atoi(h.Get("RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(h.Get("RateLimit-Remaining"))
	unix, err3 := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || limit <= 0 || remaining < 0 {
		return 0, 0, time.Time{}, false
	}
	return limit, remaining, time.Unix(unix, 0), true
}
