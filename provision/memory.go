package provision

import (
	"context"
	"sync"
	"time"
)

// memory keeps what is costly to find and seldom changes, such as the id of a
// shared firewall, for a while. Concurrent callers that miss the same thing
// find it once.
type memory[V any] struct {
	ttl  time.Duration
	gate chan struct{} // held while something is being found

	mu    sync.Mutex
	known map[string]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

// mostRemembered bounds a memory; beyond it, everything is found anew.
const mostRemembered = 1024

func newMemory[V any](ttl time.Duration) *memory[V] {
	return &memory[V]{ttl: ttl, gate: make(chan struct{}, 1), known: map[string]remembered[V]{}}
}

// get returns what is known under key, or finds it. A failure is not
// remembered.
func (m *memory[V]) get(ctx context.Context, key string, find func(context.Context) (V, error)) (V, error) {
	if v, ok := m.peek(key); ok {
		return v, nil
	}
	var none V
	select {
	case m.gate <- struct{}{}:
		defer func() { <-m.gate }()
	case <-ctx.Done():
		// It fails at once, and says better than we could what was stopped.
		return find(ctx)
	}
	if v, ok := m.peek(key); ok { // found by whom we waited for
		return v, nil
	}
	v, err := find(ctx)
	if err != nil {
		return none, err
	}
	m.put(key, v)
	return v, nil
}

func (m *memory[V]) peek(key string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.known[key]
	if !ok || !time.Now().Before(r.until) {
		var none V
		return none, false
	}
	return r.value, true
}

func (m *memory[V]) put(key string, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= mostRemembered {
		clear(m.known)
	}
	m.known[key] = remembered[V]{value: v, until: time.Now().Add(m.ttl)}
}

func (m *memory[V]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

func (m *memory[V]) forgetAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.known)
}
