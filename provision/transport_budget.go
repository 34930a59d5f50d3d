package provision

import (
	"context"
	"errors"
	"sync"
)

// retryBudget keeps a provider in trouble from being answered with a storm:
// every failure on its side takes a token, every success gives half a one
// back, and below half of the budget each call is tried once and not again.
// One budget serves all calls of an account.
type retryBudget struct {
	mu     sync.Mutex
	tokens float64
}

const (
	budgetFull   = 20
	budgetGain   = 0.5
	budgetRepeat = budgetFull / 2
)

func newRetryBudget() *retryBudget { return &retryBudget{tokens: budgetFull} }

func (b *retryBudget) succeed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(budgetFull, b.tokens+budgetGain)
}

// fail notes a failure and tells whether a repeat can be afforded. Only
// trouble counts: an answer such as "busy" or "too fast" is one of a provider
// that works.
func (b *retryBudget) fail(e *ProviderError) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	trouble := errors.Is(e, ErrUnavailable) && (e.Status == 0 || e.Status >= 500)
	// By the caller's own context, or nothing was sent: that says nothing of
	// the provider. An attempt that ran out of its own time has againSafe.
	stopped := e.Status == 0 && e.again == againNever ||
		e.again == againAny && (errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded))
	if trouble && !stopped {
		b.tokens = max(0, b.tokens-1)
	}
	return b.tokens > budgetRepeat || !trouble
}
