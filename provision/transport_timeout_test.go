package provision

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAttemptThatHangsLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		client := testClient(func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return respond(200, "{}"), nil
		}, nil)
		begin := time.Now()
		err := client.do(t.Context(), call{op: "x", method: http.MethodGet, path: "/"}, nil)
		if took := time.Since(begin); err != nil || calls != 2 || took < attemptTimeout || took > attemptTimeout+firstPause {
			t.Errorf("%d calls in %v: %v", calls, took, err)
		}
	})
}

func TestACallNeverOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testClient(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		err := client.do(ctx, call{op: "x", method: http.MethodGet, path: "/"}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnavailable) || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}
