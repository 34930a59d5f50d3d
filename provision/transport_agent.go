package provision

import "context"

// withAgent says who calls, so that the provider's support can tell.
func withAgent(next step, short string) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		return next(ctx, c.with("User-Agent", short+" provision-go"))
	}
}
