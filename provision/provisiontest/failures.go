package provisiontest

import (
	"context"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var errorClauses = []clause{
	{"NoCapacityIsCapacityAndLeavesNothing", func(t *testing.T, a *Account) {
		need(t, "Faults.NoCapacity", a.Faults.NoCapacity != nil)
		a.refused(t, a.Faults.NoCapacity, provision.ErrCapacity)
	}},
	{"NoQuotaIsQuotaAndLeavesNothing", func(t *testing.T, a *Account) {
		need(t, "Faults.NoQuota", a.Faults.NoQuota != nil)
		a.refused(t, a.Faults.NoQuota, provision.ErrQuota)
	}},
	{"TooManyRequestsAreWaitedForOrSaid", func(t *testing.T, a *Account) {
		need(t, "Faults.Throttle", a.Faults.Throttle != nil)
		a.Faults.Throttle()
		id, _, err := a.Provisioner.CreateServer(callContext(t), a.opts("node-1"))
		if err != nil {
			a.wantClass(t, "create while throttled", err, provision.ErrRateLimited)
			a.wantNothingLeft(t)
			return
		}
		a.wantServers(t, id)
	}},
	{"AWrongCredentialIsUnauthorizedEverywhere", func(t *testing.T, a *Account) {
		need(t, "Intruder", a.Intruder != nil)
		for what, call := range everyCall(a, a.Intruder) {
			a.wantClass(t, what, call(callContext(t)), provision.ErrUnauthorized)
		}
	}},
	{"ACredentialThatMayNotWriteIsForbidden", func(t *testing.T, a *Account) {
		need(t, "ReadOnly", a.ReadOnly != nil)
		_, _, err := a.ReadOnly.CreateServer(callContext(t), a.opts("node-1"))
		a.wantClass(t, "create", err, provision.ErrForbidden)
		a.wantNothingLeft(t)
	}},
	{"AnEndedContextEndsEveryCall", func(t *testing.T, a *Account) {
		ctx, cancel := context.WithCancel(callContext(t))
		cancel()
		for what, call := range everyCall(a, a.Provisioner) {
			a.wantClass(t, what, call(ctx), provision.ErrUnavailable)
		}
	}},
}

// refused makes the next create fail, and checks that nothing came of it and
// that the one after it works.
func (a *Account) refused(t *testing.T, fault func(), class error) {
	t.Helper()
	fault()
	opts := a.opts("node-1")
	_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
	a.wantClass(t, "create", err, class)
	if left := provision.LeftBehind(err); len(left) > 0 {
		t.Errorf("the error names leftovers: %+v", left)
	}
	a.wantNothingLeft(t)
	a.create(t, opts)
}

// everyCall is each call of the interfaces that p has, without its results.
func everyCall(a *Account, p provision.Provisioner) map[string]func(context.Context) error {
	calls := map[string]func(context.Context) error{
		"ListRegions": func(ctx context.Context) error { _, err := p.ListRegions(ctx); return err },
		"ListSizes":   func(ctx context.Context) error { _, err := p.ListSizes(ctx, a.Region); return err },
		"CreateServer": func(ctx context.Context) error {
			_, _, err := p.CreateServer(ctx, a.opts("node-1"))
			return err
		},
		"GetServer":    func(ctx context.Context) error { _, _, err := p.GetServer(ctx, a.MissingID); return err },
		"DeleteServer": func(ctx context.Context) error { return p.DeleteServer(ctx, a.MissingID) },
	}
	if a.StaticSizes {
		delete(calls, "ListSizes")
	}
	if l, ok := p.(provision.Lister); ok {
		calls["ListServers"] = func(ctx context.Context) error { _, err := l.ListServers(ctx); return err }
	}
	if l, ok := p.(provision.Auditor); ok {
		calls["ListResources"] = func(ctx context.Context) error { _, err := l.ListResources(ctx); return err }
	}
	if l, ok := p.(provision.Preflighter); ok {
		calls["Preflight"] = func(ctx context.Context) error { return l.Preflight(ctx, a.opts("node-1")) }
	}
	return calls
}
