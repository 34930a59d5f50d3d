package provisiontest

import (
	"sync"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var idempotencyClauses = []clause{
	{"ARepeatReturnsTheSameServer", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		id, _ := a.create(t, opts)
		for range 2 {
			if again, _ := a.create(t, opts); again != id {
				t.Errorf("repeat made server %s beside %s", again, id)
			}
		}
		a.running(t, id)
		if again, ip := a.create(t, opts); again != id || ip == "" {
			t.Errorf("repeat for a running server returned %q with address %q, want %q with one", again, ip, id)
		}
		a.wantServers(t, id)
	}},
	{"ARepeatAfterACrashReturnsTheSameServer", func(t *testing.T, a *Account) {
		need(t, "Reopen", a.Reopen != nil)
		for _, ssh := range []bool{false, true} {
			opts := a.opts(map[bool]string{false: "node-1", true: "node-2"}[ssh])
			opts.AllowSSHInbound = ssh
			id, _ := a.create(t, opts)
			a.Provisioner = a.Reopen(t)
			if again, _ := a.create(t, opts); again != id {
				t.Errorf("SSH %v: repeat made server %s beside %s", ssh, again, id)
			}
		}
		a.Settle() // lists may lag
		if n := len(a.servers(t)); n != 2 {
			t.Errorf("there are %d servers, want 2", n)
		}
	}},
	{"ALostAnswerMakesNoSecondServer", func(t *testing.T, a *Account) {
		need(t, "Faults.LoseCreate", a.Faults.LoseCreate != nil)
		opts := a.opts("node-1")
		a.Faults.LoseCreate()
		id, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		if err != nil { // allowed, as long as the repeat finds it
			a.wantClass(t, "create with a lost answer", err, provision.ErrUnavailable)
			id, _ = a.create(t, opts)
		}
		a.wantServers(t, id)
	}},
	{"ALostAnswerWithoutKeyLeavesNoOrphan", func(t *testing.T, a *Account) {
		need(t, "Faults.LoseCreate", a.Faults.LoseCreate != nil)
		opts := a.opts("node-1")
		opts.IdempotencyKey = ""
		a.Faults.LoseCreate()
		id, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		if err != nil {
			a.wantNothingLeft(t)
			return
		}
		a.wantServers(t, id)
	}},
	{"ABrokenCreateIsRepeatedWithoutHarm", func(t *testing.T, a *Account) {
		need(t, "Faults.BreakCreate", a.Faults.BreakCreate != nil)
		opts := a.opts("node-1")
		a.Faults.BreakCreate()
		id, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		if err != nil {
			a.wantClass(t, "broken create", err, provision.ErrUnavailable)
			id, _ = a.create(t, opts)
		}
		a.wantServers(t, id)
	}},
	{"OtherOptionsAreAConflict", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		id, _ := a.create(t, opts)
		for what, change := range map[string]func(o *provision.CreateOpts){
			"size":      func(o *provision.CreateOpts) { o.Size = a.OtherSize },
			"user-data": func(o *provision.CreateOpts) { o.UserData += "# other\n" },
			"name":      func(o *provision.CreateOpts) { o.Name = "node-2" },
			"labels":    func(o *provision.CreateOpts) { o.Labels = map[string]string{"suite-node": "other"} },
			"SSH":       func(o *provision.CreateOpts) { o.AllowSSHInbound = true },
		} {
			other := opts
			change(&other)
			_, _, err := a.Provisioner.CreateServer(callContext(t), other)
			a.wantClass(t, "same key, other "+what, err, provision.ErrConflict)
		}
		a.wantServers(t, id)
		a.delete(t, id)
		a.wantNothingLeft(t)
	}},
	{"ManyAtOnceMakeOneServer", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		ctx := callContext(t)
		const callers = 8
		ids := make([]string, callers)
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { ids[i], _, errs[i] = a.Provisioner.CreateServer(ctx, opts) })
		}
		wg.Wait()
		id, _ := a.create(t, opts)
		for i := range callers {
			if errs[i] == nil && ids[i] != id {
				t.Errorf("caller %d got server %s, the repeat %s", i, ids[i], id)
			}
			if errs[i] != nil {
				a.wantClass(t, "one of many at once", errs[i], provision.ErrConflict, provision.ErrUnavailable)
			}
		}
		a.wantServers(t, id)
	}},
	{"SharedThingsAreMadeOnce", func(t *testing.T, a *Account) {
		auditor, ok := a.Provisioner.(provision.Auditor)
		if !ok {
			t.Skip("not an Auditor")
		}
		var wg sync.WaitGroup
		for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
			p := a.Provisioner
			if a.Reopen != nil {
				p = a.Reopen(t)
			}
			opts, ctx := a.opts(name), callContext(t)
			wg.Go(func() {
				if _, _, err := p.CreateServer(ctx, opts); err != nil {
					t.Errorf("create of %s: %v", opts.Name, err)
				}
			})
		}
		wg.Wait()
		rs, err := auditor.ListResources(callContext(t))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range rs {
			if what := r.Kind + " " + r.Name + " in " + r.Region; r.Shared && seen[what] {
				t.Errorf("there are two of the shared %s", what)
			} else if r.Shared {
				seen[what] = true
			}
		}
	}},
}
