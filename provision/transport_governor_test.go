package provision

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefillPause(t *testing.T) {
	for _, c := range []struct {
		what             string
		limit, remaining int
		reset, want      time.Duration
	}{
		{"nothing known", 0, 0, 0, 0},
		{"plenty", 3600, 3000, 600 * time.Second, 0},
		{"just enough", 3600, 100, 3500 * time.Second, 0},
		{"half of the reserve", 3600, 50, 3550 * time.Second, 500 * time.Millisecond},
		{"nothing left: as fast as granted", 3600, 0, 3600 * time.Second, time.Second},
		{"small limit", 60, 3, 57 * time.Second, 500 * time.Millisecond},
		{"reset is over", 3600, 0, -time.Second, 0},
		{"a clock in the next year", 3600, 0, 9000 * time.Hour, topPause},
		{"more left than there is", 10, 20, time.Minute, 0},
	} {
		if got := refillPause(c.limit, c.remaining, c.reset); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// bucket is a provider with a request limit that refills one a second.
type bucket struct {
	mu      sync.Mutex
	limit   int
	tokens  float64
	last    time.Time
	refused int
}

func (b *bucket) step(context.Context, *call) (*answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tokens = min(float64(b.limit), b.tokens+now.Sub(b.last).Seconds())
	b.last = now
	if b.tokens < 1 {
		b.refused++
		return &answer{status: 429, header: b.header(now)}, nil
	}
	b.tokens--
	return &answer{status: 200, header: b.header(now)}, nil
}

func (b *bucket) header(now time.Time) http.Header {
	missing := float64(b.limit) - b.tokens
	h := http.Header{}
	h.Set("RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(int(b.tokens)))
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Add(time.Duration(missing*float64(time.Second))).Unix()+1, 10))
	return h
}

func TestGovernorSlowsDownBeforeTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{limit: 3600, tokens: 150, last: time.Now()}
		step := withGovernor(b.step, newGovernor(refillPause))
		begin := time.Now()
		var wg sync.WaitGroup
		const callers, each = 8, 100
		for range callers {
			wg.Go(func() {
				for range each {
					if _, err := step(t.Context(), &call{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(begin)
		if b.refused > 0 {
			t.Errorf("%d of %d requests were refused", b.refused, callers*each)
		}
		// 150 were there, the rest had to be granted; much slower would be waste.
		if need := (callers*each - 150) * time.Second; took < need-time.Minute || took > need+2*time.Minute {
			t.Errorf("took %v, want about %v", took, need)
		}
	})
}

// TestGovernorCountsWhatIsUnderWay: many start before the first answer tells
// how little is left.
func TestGovernorCountsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{limit: 3600, tokens: 150, last: time.Now()}
		g := newGovernor(refillPause)
		g.learn(b.header(time.Now()))
		step := withGovernor(func(ctx context.Context, c *call) (*answer, error) {
			ans, err := b.step(ctx, c)
			return ans, errors.Join(err, sleep(ctx, 5*time.Second))
		}, g)
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() { _, _ = step(t.Context(), &call{}) })
		}
		wg.Wait()
		if b.refused > 0 {
			t.Errorf("%d of 300 requests were refused", b.refused)
		}
	})
}

func TestGovernorIsInTheChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testClient(func(*http.Request) (*http.Response, error) {
			return respond(200, "{}", "RateLimit-Limit", "60", "RateLimit-Remaining", "0",
				"RateLimit-Reset", strconv.FormatInt(time.Now().Add(60*time.Second).Unix(), 10)), nil
		}, nil)
		begin := time.Now()
		for range 2 {
			if err := client.do(t.Context(), call{op: "x", method: http.MethodGet, path: "/"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("two calls took %v, want 1s", took)
		}
	})
}

func TestGovernorTellsWhenTheWaitIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGovernor(refillPause)
		b := &bucket{limit: 60, tokens: 0, last: time.Now()}
		g.learn(b.header(time.Now()))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := withGovernor(b.step, g)(ctx, &call{})
		if !errors.Is(err, ErrRateLimited) || time.Since(begin) != 0 || b.last != begin {
			t.Errorf("after %v: %v; want ErrRateLimited at once and nothing sent", time.Since(begin), err)
		}
	})
}

func TestGovernorIgnoresBrokenHeaders(t *testing.T) {
	g := newGovernor(refillPause)
	for _, h := range []http.Header{
		{}, {"Ratelimit-Limit": {"x"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1"}},
		{"Ratelimit-Limit": {"-5"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1"}},
		{"Ratelimit-Limit": {"10"}, "Ratelimit-Remaining": {"-1"}, "Ratelimit-Reset": {"1"}},
	} {
		g.learn(h)
	}
	if g.limit != 0 {
		t.Errorf("learnt a limit of %d", g.limit)
	}
}
