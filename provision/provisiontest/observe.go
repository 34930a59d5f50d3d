package provisiontest

import (
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var listClauses = []clause{
	{"OfAnEmptyAccountIsEmpty", func(t *testing.T, a *Account) {
		a.wantServers(t)
	}},
	{"ShowsWhatGetShows", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		id, _ := a.create(t, opts)
		ip := a.running(t, id)
		for _, s := range a.servers(t) {
			if s.ID != id || s.Name != opts.Name || s.Status != provision.ServerStatusRunning || s.IPAddr != ip ||
				s.Region != a.Region || s.Size != a.Size || s.CreatedAt.IsZero() {
				t.Errorf("list shows %+v, want server %s with address %s as it was made", s, id, ip)
			}
			for k, v := range opts.Labels {
				if s.Labels[k] != v {
					t.Errorf("label %s is %q in the list, want %q", k, s.Labels[k], v)
				}
			}
			if s.Labels["managed-by"] == "" {
				t.Error("label managed-by is missing from the list")
			}
		}
		a.wantServers(t, id)
	}},
	{"ShowsEveryServerOfManyPages", func(t *testing.T, a *Account) {
		if a.Billable == nil {
			t.Skip("60 servers are for a simulated cloud, which has a bill to look at")
		}
		var ids []string
		for i := range 60 {
			id, _ := a.create(t, a.opts(fmt.Sprintf("node-%d", i)))
			ids = append(ids, id)
		}
		a.wantServers(t, ids...)
	}},
}

var auditClauses = []clause{
	{"OfAnEmptyAccountIsEmpty", func(t *testing.T, a *Account) {
		a.auditor(t)
		a.wantNothingLeft(t)
	}},
	{"ShowsTheServerAsBillable", func(t *testing.T, a *Account) {
		auditor := a.auditor(t)
		id, _ := a.create(t, a.opts("node-1"))
		rs, err := auditor.ListResources(callContext(t))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, r := range rs {
			if r.Kind == provision.KindServer && r.ID == id {
				found = true
				if !r.Billable || r.Shared || r.Name != "node-1" || r.CreatedAt.IsZero() || r.Labels["suite-node"] != "node-1" {
					t.Errorf("the audit shows %+v", r)
				}
			}
			if !r.Shared && r.ServerID != id {
				t.Errorf("%s %s serves server %q, want %q", r.Kind, r.ID, r.ServerID, id)
			}
		}
		if !found {
			t.Errorf("server %s is not in the audit: %+v", id, rs)
		}
	}},
	{"RemovesWhatItShows", func(t *testing.T, a *Account) {
		auditor := a.auditor(t)
		opts := a.opts("node-1")
		opts.AllowSSHInbound = true
		id, _ := a.create(t, opts)
		rs, err := auditor.ListResources(callContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if r.Kind != provision.KindServer {
				continue
			}
			if err := auditor.DeleteResource(callContext(t), r); err != nil {
				t.Fatalf("DeleteResource(%s %s): %v", r.Kind, r.ID, err)
			}
		}
		a.gone(t, id)
		for _, r := range rs { // those that went with the server too
			if err := auditor.DeleteResource(callContext(t), r); err != nil {
				t.Errorf("DeleteResource(%s %s): %v", r.Kind, r.ID, err)
			}
		}
		a.wantNothingLeft(t)
		a.create(t, a.opts("node-2")) // shared things come back
	}},
	{"RefusesAKindThatItDoesNotKnow", func(t *testing.T, a *Account) {
		err := a.auditor(t).DeleteResource(callContext(t), provision.Resource{Kind: "castle", ID: a.MissingID})
		a.wantClass(t, "removing a castle", err, provision.ErrInvalid)
	}},
}

func (a *Account) auditor(t *testing.T) provision.Auditor {
	t.Helper()
	auditor, ok := a.Provisioner.(provision.Auditor)
	if !ok {
		t.Skip("not an Auditor")
	}
	return auditor
}

var preflightClauses = []clause{
	{"PassesWhatCreateTakesAndMakesNothing", func(t *testing.T, a *Account) {
		p := a.preflighter(t)
		opts := a.opts("node-1")
		if err := p.Preflight(callContext(t), opts); err != nil {
			t.Fatal(err)
		}
		a.wantServers(t)
		a.wantNothingLeft(t)
		a.create(t, opts)
		if err := p.Preflight(callContext(t), opts); err != nil {
			t.Errorf("preflight of a repeat: %v", err)
		}
	}},
	{"RefusesWhatCreateRefuses", func(t *testing.T, a *Account) {
		p := a.preflighter(t)
		for what, change := range map[string]func(o *provision.CreateOpts){
			"name":      func(o *provision.CreateOpts) { o.Name = "under_score" },
			"region":    func(o *provision.CreateOpts) { o.Region = "nowhere-1" },
			"size":      func(o *provision.CreateOpts) { o.Size = "no-such-size" },
			"user-data": func(o *provision.CreateOpts) { o.UserData = "#cloud-config\r\n" },
		} {
			opts := a.opts("node-1")
			change(&opts)
			a.wantClass(t, "preflight of a bad "+what, p.Preflight(callContext(t), opts), provision.ErrInvalid, provision.ErrNotFound)
		}
	}},
	{"FindsACredentialThatMayNotWrite", func(t *testing.T, a *Account) {
		need(t, "ReadOnly", a.ReadOnly != nil)
		p, ok := a.ReadOnly.(provision.Preflighter)
		if !ok {
			t.Skip("not a Preflighter")
		}
		a.wantClass(t, "preflight", p.Preflight(callContext(t), a.opts("node-1")), provision.ErrForbidden)
	}},
}

func (a *Account) preflighter(t *testing.T) provision.Preflighter {
	t.Helper()
	p, ok := a.Provisioner.(provision.Preflighter)
	if !ok {
		t.Skip("not a Preflighter")
	}
	return p
}
