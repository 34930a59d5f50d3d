package enrolltest_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

func TestRegistry(t *testing.T) {
	enrolltest.Run(t, func(t *testing.T) enrolltest.Harness {
		var now atomic.Int64
		now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
		reg := &enrolltest.Registry{Now: func() time.Time { return time.Unix(0, now.Load()) }}
		var made atomic.Int64
		return enrolltest.Harness{
			Registry: reg,
			Issue: func(*testing.T) (string, string, enroll.Token) {
				i := made.Add(1)
				id, name := fmt.Sprintf("node-%d", i), fmt.Sprintf("name-%d", i)
				return id, name, reg.Issue(id, name, enrolltest.TokenLife)
			},
			Advance: func(d time.Duration) { now.Add(int64(d)) },
			Revoke:  func(_ *testing.T, id string) { reg.Revoke(id) },
		}
	})
}
