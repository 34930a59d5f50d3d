package provision

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestMayRepeat(t *testing.T) {
	dial := networkError(t.Context(), &net.OpError{Op: "dial", Err: errors.New("connection refused")}, "h")
	reset := networkError(t.Context(), &net.OpError{Op: "read", Err: errors.New("connection reset")}, "h")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	answered := func(status int, code string) error {
		e := &ProviderError{Status: status, again: againOfStatus(status)}
		hetznerClassify(64)(e, []byte(`{"error":{"code":"`+code+`"}}`))
		return e
	}
	for _, c := range []struct {
		what         string
		err          error
		safe, unsafe bool
	}{
		{"no connection", dial, true, true},
		{"connection broke", reset, true, false},
		{"attempt took too long", networkError(t.Context(), context.DeadlineExceeded, "h"), true, false},
		{"caller's context ended", networkError(ended, context.Canceled, "h"), false, false},
		{"500", answered(500, ""), true, false},
		{"502", answered(502, ""), true, false},
		{"503", answered(503, ""), true, false},
		{"504", answered(504, ""), true, false},
		{"429 without code", answered(429, ""), true, true},
		{"rate limit by code", answered(403, "rate_limit_exceeded"), true, true},
		{"locked", answered(423, "locked"), true, true},
		{"conflict", answered(409, "conflict"), true, true},
		{"423 without code", answered(423, ""), true, false},
		{"name taken", answered(409, "uniqueness_error"), false, false},
		{"no capacity with a 503", answered(503, "resource_unavailable"), false, false},
		{"no capacity", answered(412, "placement_error"), false, false},
		{"quota", answered(403, "resource_limit_exceeded"), false, false},
		{"credential", answered(401, "unauthorized"), false, false},
		{"bad request", answered(400, "json_error"), false, false},
		{"not found", answered(404, "not_found"), false, false},
		{"an error of somebody else", errors.New("x"), false, false},
		{"success", nil, false, false},
	} {
		if got := mayRepeat(true, c.err); got != c.safe {
			t.Errorf("%s: safe call repeated: %v, want %v", c.what, got, c.safe)
		}
		if got := mayRepeat(false, c.err); got != c.unsafe {
			t.Errorf("%s: unsafe call repeated: %v, want %v", c.what, got, c.unsafe)
		}
	}
}

func TestOnlyPostIsUnsafe(t *testing.T) {
	for _, m := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost} {
		c := call{method: m}
		if c.safe() != (m != http.MethodPost) {
			t.Errorf("%s safe: %v", m, c.safe())
		}
	}
	if c := (call{method: http.MethodPost, harmless: true}); !c.safe() {
		t.Error("a harmless POST is not safe")
	}
}

func TestPauseBefore(t *testing.T) {
	for _, c := range []struct {
		attempt int
		asked   time.Duration
		jitter  float64
		want    time.Duration
	}{
		{1, 0, 0, 500 * time.Millisecond},
		{1, 0, 1, 250 * time.Millisecond},
		{2, 0, 0, time.Second},
		{5, 0, 0, 8 * time.Second},
		{6, 0, 0, 10 * time.Second},
		{1000, 0, 0, 10 * time.Second},
		{1, 7 * time.Second, 0, 7 * time.Second},
		{1, 7 * time.Second, 0.5, 7250 * time.Millisecond},
		{6, time.Second, 0, 10 * time.Second},
	} {
		if got := pauseBefore(c.attempt, c.asked, c.jitter); got != c.want {
			t.Errorf("attempt %d, asked %v, jitter %v: %v, want %v", c.attempt, c.asked, c.jitter, got, c.want)
		}
	}
}

func TestRetry(t *testing.T) {
	unavailable := func() error { return &ProviderError{Status: 503, Class: ErrUnavailable, again: againSafe} }
	asked := func(d time.Duration) error {
		return &ProviderError{Status: 429, Class: ErrRateLimited, again: againAny, RetryAfter: d}
	}
	busy := func() error { return &ProviderError{Status: 423, Class: ErrUnavailable, again: againAny} }
	gone := func() error { return &ProviderError{Class: ErrUnavailable, again: againAny} }
	repeat := func(n int, f func() error) []error {
		var errs []error
		for range n {
			errs = append(errs, f())
		}
		return errs
	}
	for _, c := range []struct {
		what     string
		method   string
		errs     []error
		deadline time.Duration
		calls    int
		ok       bool
		least    time.Duration // pauses together, without jitter's share
		most     time.Duration
	}{
		{"at once", "GET", nil, time.Hour, 1, true, 0, 0},
		{"two bad moments", "GET", repeat(2, unavailable), time.Hour, 3, true, 750 * time.Millisecond, 1500 * time.Millisecond},
		{"five are enough", "GET", repeat(9, unavailable), time.Hour, 5, false, 3750 * time.Millisecond, 7500 * time.Millisecond},
		{"a create is not repeated", "POST", repeat(1, unavailable), time.Hour, 1, false, 0, 0},
		{"a create that was refused is", "POST", []error{asked(7 * time.Second)}, time.Hour, 2, true, 7 * time.Second, 8 * time.Second},
		{"busy takes longer", "DELETE", repeat(7, busy), time.Hour, 8, true, 17 * time.Second, 36 * time.Second},
		{"nobody there", "GET", repeat(9, gone), time.Hour, 3, false, 750 * time.Millisecond, 1500 * time.Millisecond},
		{"no time left to wait", "GET", []error{asked(30 * time.Second)}, 10 * time.Second, 1, false, 0, 0},
		{"asked for too much", "GET", []error{asked(time.Hour)}, 24 * time.Hour, 1, false, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				s := &script{errs: c.errs}
				begin := time.Now()
				_, err := withRetry(s.step, newRetrier())(ctx, &call{method: c.method})
				took := time.Since(begin)
				if s.calls != c.calls || (err == nil) != c.ok || took < c.least || took > c.most {
					t.Errorf("%d calls in %v, error %v; want %d in %v to %v, ok %v", s.calls, took, err, c.calls, c.least, c.most, c.ok)
				}
			})
		})
	}
}

func TestRetryStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{errs: []error{&ProviderError{Status: 429, Class: ErrRateLimited, again: againAny, RetryAfter: 40 * time.Second}}}
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := withRetry(s.step, newRetrier())(ctx, &call{method: "GET"})
		if s.calls != 1 || !errors.Is(err, ErrRateLimited) || time.Since(begin) != time.Second {
			t.Errorf("%d calls in %v: %v", s.calls, time.Since(begin), err)
		}
	})
}
