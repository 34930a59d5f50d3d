package provision

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits.
//
// EC2 has a token bucket for each account, region and kind of action, and
// tells nothing of how full it is: the first sign is a refusal, and from then
// on a region serves nobody of the account. So calls are spaced here by the
// documented sizes of the buckets.

// awsKind is a kind of action with a limit of its own.
type awsKind int

const (
	awsReads  awsKind = iota // Describe…
	awsWrites                // everything that changes something
	awsRuns                  // RunInstances
)

// awsBuckets are the sizes, and how many come back each second, by the EC2
// Developer Guide ("Request throttling for the Amazon EC2 API").
var awsBuckets = map[awsKind]struct {
	size   int
	refill rate.Limit
}{awsReads: {100, 20}, awsWrites: {50, 5}, awsRuns: {5, 2}}

// awsPace spaces the calls of one account.
type awsPace struct {
	mu      sync.Mutex
	buckets map[awsBucket]*rate.Limiter
}

type awsBucket struct {
	region string
	kind   awsKind
}

func newAWSPace() *awsPace { return &awsPace{buckets: map[awsBucket]*rate.Limiter{}} }

func (p *awsPace) bucket(region string, kind awsKind) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := awsBucket{region, kind}
	if p.buckets[key] == nil {
		p.buckets[key] = rate.NewLimiter(awsBuckets[kind].refill, awsBuckets[kind].size)
	}
	return p.buckets[key]
}

// withAWSPace waits for the call's turn. A turn that the context would not
// live to see is not taken.
func withAWSPace(next step, p *awsPace, r awsReq) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		if ctx.Err() != nil {
			return nil, notSent(ctx)
		}
		turn := p.bucket(r.region, r.kind).Reserve()
		if delay := turn.Delay(); delay > 0 {
			if !fits(ctx, delay) {
				turn.Cancel()
				return nil, &ProviderError{
					Class: ErrRateLimited, RetryAfter: delay.Round(time.Second),
					Message: fmt.Sprintf("EC2's request limit in %s is used up; this call's turn is in %v, after its deadline", r.region, delay.Round(time.Second)),
					Hint:    "wait, or use several regions",
				}
			}
			if sleep(ctx, delay) != nil {
				turn.Cancel()
				return nil, notSent(ctx)
			}
		}
		return next(ctx, c)
	}
}
