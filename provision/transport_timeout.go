package provision

import (
	"context"
	"time"
)

// withTimeout gives each attempt its own time limit, so that one that hangs
// leaves time for the next.
func withTimeout(next step, limit time.Duration) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return next(ctx, c)
	}
}
