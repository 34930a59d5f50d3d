package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What takes its time: operations and pages.

// exchange sends one call and decodes its answer, when it has a body, into
// out. Unlike apiClient.do it hands out the answer, whose headers say where
// the operation that was started can be watched.
func (a *Azure) exchange(ctx context.Context, c call, out any) (*answer, error) {
	if c.body != nil {
		payload, err := json.Marshal(c.body)
		if err != nil {
			return nil, invalidError("azure", c.op, "the request cannot be encoded")
		}
		c.payload = payload
	}
	ans, err := a.api.send(ctx, &c)
	if err != nil || out == nil || len(ans.body) == 0 {
		return ans, err
	}
	if err := json.Unmarshal(ans.body, out); err != nil {
		return nil, a.fail(ErrUnavailable, c.op, "", "the answer is not the JSON that was expected; is the endpoint right?")
	}
	return ans, nil
}

// azList reads every page of a list, or fails: it never returns a part. An
// empty page with a link to the next is legal.
func azList[T any](ctx context.Context, a *Azure, op, path string, query url.Values) ([]T, error) {
	all := []T{}
	seen := map[string]bool{}
	for {
		var page azPage[T]
		if err := a.get(ctx, op, path, query, &page); err != nil {
			return nil, err
		}
		if page.Value == nil && page.NextLink == "" {
			return nil, a.fail(ErrUnavailable, op, "", "the answer is no list; is the endpoint right?")
		}
		all = append(all, page.Value...)
		if page.NextLink == "" {
			return all, nil
		}
		next, err := a.pathOf(op, page.NextLink)
		if err != nil {
			return nil, err
		}
		if seen[next] {
			return nil, a.fail(ErrUnavailable, op, "", "the list leads from a page back to one that was read")
		}
		seen[next] = true
		path, query = next, nil // the link is followed as it is
	}
}

// pathOf is the part of an address that follows the endpoint. One at another
// host is refused: it would be sent the token.
func (a *Azure) pathOf(op, address string) (string, error) {
	base, err1 := url.Parse(a.endpoint)
	u, err2 := url.Parse(address)
	if err1 != nil || err2 != nil || !strings.EqualFold(u.Host, base.Host) || u.Scheme != base.Scheme ||
		!strings.HasPrefix(u.EscapedPath(), base.EscapedPath()+"/") {
		return "", a.fail(ErrUnavailable, op, "check the endpoint", "the answer leads to %s, which is not asked in place of %s", hostOf(address), hostOf(a.endpoint))
	}
	path := strings.TrimPrefix(u.EscapedPath(), base.EscapedPath())
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path, nil
}

// azTerminal are the states in which nothing more happens.
func azTerminal(state string) bool {
	switch strings.ToLower(state) {
	case "succeeded", "completed", "failed", "canceled", "cancelled":
		return true
	}
	return false
}

// await waits until the operation that an answer started has ended, in
// whichever of Azure's ways the answer says: by Azure-AsyncOperation, whose
// body tells, or by Location, whose status does. An answer with neither has
// nothing to wait for.
func (a *Azure) await(ctx context.Context, op string, started *answer) error {
	address, byBody := started.header.Get("Azure-AsyncOperation"), true
	if address == "" {
		address, byBody = started.header.Get("Location"), false
	}
	if address == "" {
		return nil
	}
	path, err := a.pathOf(op, address)
	if err != nil {
		return err
	}
	for last := started; ; {
		pause := azPause(last.header)
		if !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return a.stillRunning(ctx, op)
		}
		var state azOperation
		ans, err := a.send(ctx, call{op: op, method: http.MethodGet, path: path}, &state)
		if errors.Is(err, ErrNotFound) {
			return nil // forgotten: it ended long ago, and the resource tells how
		}
		if err != nil {
			return err
		}
		switch {
		case !byBody && ans.status != http.StatusAccepted:
			return nil
		case byBody && azTerminal(state.Status):
			return a.outcome(op, state, ans)
		}
		last = ans
	}
}

// outcome reads an operation that has ended. Its HTTP status is 200 even when
// it failed.
func (a *Azure) outcome(op string, state azOperation, ans *answer) error {
	if strings.EqualFold(state.Status, "Succeeded") || strings.EqualFold(state.Status, "Completed") {
		return nil
	}
	e := a.fail(nil, op, "", "the operation ended as %q", clip(state.Status, 40))
	e.RequestID = ans.header.Get("X-Ms-Request-Id")
	if state.Error != nil {
		azureExplain(e, *state.Error)
	}
	e.Message = clip(e.Message, maxErrorBody)
	if e.Class == nil {
		e.Class = ErrUnavailable
	}
	return e
}

func (a *Azure) stillRunning(ctx context.Context, op string) error {
	e := a.fail(ErrUnavailable, op, "repeat the call: it goes on where this one stopped", "Azure is not done yet, and the time is up")
	e.cause = cmp.Or(ctx.Err(), context.DeadlineExceeded)
	return e
}

// azPause is how long to wait before looking again, as the answer asks, within
// reason.
func azPause(h http.Header) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.Atoi(h.Get(name)); err == nil && ms > 0 {
			return min(time.Duration(ms)*time.Millisecond, topPause)
		}
	}
	if asked := retryAfter(h, time.Now()); asked > 0 {
		return min(asked, topPause)
	}
	return 2 * time.Second
}

// azGates let one caller at a time work on the same thing.
type azGates struct {
	mu    sync.Mutex
	gates map[string]*azGate
}

type azGate struct {
	held  chan struct{}
	users int // who hold it or wait for it
}

func newAzGates() *azGates { return &azGates{gates: map[string]*azGate{}} }

// enter waits for the gate of key, and returns what opens it again.
func (g *azGates) enter(ctx context.Context, key string) (leave func(), err error) {
	g.mu.Lock()
	gate := g.gates[key]
	if gate == nil {
		gate = &azGate{held: make(chan struct{}, 1)}
		g.gates[key] = gate
	}
	gate.users++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if gate.users--; gate.users == 0 {
			delete(g.gates, key)
		}
	}
	select {
	case gate.held <- struct{}{}:
		return func() { <-gate.held; done() }, nil
	case <-ctx.Done():
		done()
		return nil, notSent(ctx)
	}
}
