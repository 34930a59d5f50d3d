package fleet_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func TestBadSpecs(t *testing.T) {
	w := testWorld(t)
	for name, change := range map[string]func(*fleet.NodeSpec){
		"no name":             func(s *fleet.NodeSpec) { s.Name = "" },
		"underscore":          func(s *fleet.NodeSpec) { s.Name = "my_node" },
		"upper case":          func(s *fleet.NodeSpec) { s.Name = "Node" },
		"dot":                 func(s *fleet.NodeSpec) { s.Name = "a.b" },
		"hyphen first":        func(s *fleet.NodeSpec) { s.Name = "-a" },
		"newline":             func(s *fleet.NodeSpec) { s.Name = "a\nb" },
		"64 long":             func(s *fleet.NodeSpec) { s.Name = strings.Repeat("a", 64) },
		"no account":          func(s *fleet.NodeSpec) { s.Account = "" },
		"no candidates":       func(s *fleet.NodeSpec) { s.Candidates = nil },
		"no size":             func(s *fleet.NodeSpec) { s.Candidates[0].Size = "" },
		"candidate twice":     func(s *fleet.NodeSpec) { s.Candidates = append(s.Candidates, s.Candidates[0]) },
		"too many candidates": func(s *fleet.NodeSpec) { s.Candidates = make([]fleet.Candidate, 21) },
		"sources without SSH": func(s *fleet.NodeSpec) { s.SSHSourceCIDRs = []string{"10.0.0.0/8"} },
		"no range":            func(s *fleet.NodeSpec) { s.AllowSSHInbound, s.SSHSourceCIDRs = true, []string{"10.0.0.1"} },
		"bits beyond":         func(s *fleet.NodeSpec) { s.AllowSSHInbound, s.SSHSourceCIDRs = true, []string{"10.0.0.1/8"} },
		"private key":         func(s *fleet.NodeSpec) { s.SSHKeys = []string{"-----BEGIN OPENSSH PRIVATE KEY-----"} },
		"architecture":        func(s *fleet.NodeSpec) { s.Architecture = "riscv" },
		"disk":                func(s *fleet.NodeSpec) { s.DiskGB = -1 },
		"image":               func(s *fleet.NodeSpec) { s.Image = "a b" },
		"label":               func(s *fleet.NodeSpec) { s.Labels = map[string]string{"a b": "c"} },
		"join timeout":        func(s *fleet.NodeSpec) { s.JoinTimeout = -time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec("fine")
			change(&s)
			_, err := w.fleet.CreateNode(w.ctx, s)
			var fe *fleet.Error
			if !errors.Is(err, fleet.ErrInvalid) || !errors.As(err, &fe) || fe.Message == "" {
				t.Errorf("error is %v", err)
			}
			if _, err := w.fleet.PlanNode(w.ctx, s); !errors.Is(err, fleet.ErrInvalid) {
				t.Errorf("the plan's error is %v", err)
			}
		})
	}
	_, err := w.fleet.CreateNode(w.ctx, fleet.NodeSpec{Name: "My_Node.1"})
	var fe *fleet.Error
	if !errors.As(err, &fe) || !strings.Contains(fe.Hint, "my-node-1 would do") {
		t.Errorf("the hint offers no name that would do: %v", err)
	}
	if nodes, err := w.fleet.Nodes(w.ctx, fleet.NodeFilter{}); err != nil || len(nodes) != 0 {
		t.Errorf("%d records are left of refused requests: %v", len(nodes), err)
	}
}

func TestAdvertise(t *testing.T) {
	names := map[string][]string{"cp.example.com": {"8.8.8.8"}, "inside.example.com": {"10.0.0.5"}, "both.example.com": {"10.0.0.5", "8.8.8.8"}, "empty.example.com": nil}
	for _, c := range []struct {
		advertise, endpoint string
		want                string // in the refusal; empty when it is fine
	}{
		{"8.8.8.8:8443", "", ""},
		{"[2a01:4f8::1]:8443", "", ""},
		{"cp.example.com:8443", "", ""},
		{"both.example.com:8443", "", ""},
		{"127.0.0.1:8443", "", "loopback"},
		{"[::1]:8443", "", "loopback"},
		{"localhost:8443", "", "this machine itself"},
		{":8443", "", "this machine itself"},
		{"0.0.0.0:8443", "", "no address"},
		{"192.168.1.7:8443", "", "private"},
		{"[fd00::1]:8443", "", "private"},
		{"169.254.1.1:8443", "", "link-local"},
		{"100.64.0.1:8443", "", "carrier"},
		{"inside.example.com:8443", "", "private"},
		{"nowhere.example.com:8443", "", "cannot be resolved"},
		{"empty.example.com:8443", "", "cannot be resolved"},
		{"127.0.0.1:8443", "http://127.0.0.1:9000/hetzner/v1", ""},
		{"localhost:8443", "http://localhost:9000/v1", ""},
		{"127.0.0.1:8443", "https://api.example.com/v1", "loopback"},
	} {
		t.Run(c.advertise+" "+c.endpoint, func(t *testing.T) {
			w := testWorld(t)
			w.cfg.Advertise = c.advertise
			w.cfg.LookupHost = func(_ context.Context, host string) ([]netip.Addr, error) {
				texts, ok := names[host]
				if !ok {
					return nil, errors.New("no such host")
				}
				var res []netip.Addr
				for _, text := range texts {
					res = append(res, netip.MustParseAddr(text))
				}
				return res, nil
			}
			w.restart()
			if _, err := w.fleet.AddAccount(w.ctx, fleet.AccountSpec{Name: "other", Provider: "fake", Endpoint: c.endpoint, Source: "env"}); err != nil {
				t.Fatal(err)
			}
			s := spec("a")
			s.Account = "other"
			_, err := w.fleet.CreateNode(w.ctx, s)
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v; want one that says %q", err, c.want)
			}
			if w.cloud.called("create") != 0 {
				t.Error("something was made")
			}
		})
	}
}

func TestFind(t *testing.T) {
	w := testWorld(t)
	web, web1 := w.create(spec("web")), w.create(spec("web-1"))
	db := w.create(spec("db"))
	for ref, want := range map[string]string{"web": web.ID, "web-": web1.ID, "web-1": web1.ID, "d": db.ID, db.ID: db.ID} {
		if got := w.node(ref); got.ID != want {
			t.Errorf("%q is %s", ref, got.Name)
		}
	}
	for ref, want := range map[string]error{"we": fleet.ErrConflict, "x": fleet.ErrNotFound, "": fleet.ErrInvalid, "%": fleet.ErrNotFound} {
		if _, err := w.fleet.Node(w.ctx, ref); !errors.Is(err, want) {
			t.Errorf("%q: error is %v; want %v", ref, err, want)
		}
	}
	w.delete("db")
	w.settle()
	if got := w.node("db"); got.ID != db.ID || got.Phase != fleet.PhaseDeleted {
		t.Errorf("a deleted node by its name: %+v", got)
	}
	if _, err := w.fleet.Node(w.ctx, "d"); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("a deleted node by a prefix of its name: %v", err)
	}
	again := w.create(spec("db"))
	if got := w.node("db"); got.ID != again.ID {
		t.Error("a deleted node hides the live one of its name")
	}
	if _, err := w.fleet.CreateNode(w.ctx, spec("db")); !errors.Is(err, fleet.ErrConflict) {
		t.Errorf("a name twice: %v", err)
	}
}

func TestAccounts(t *testing.T) {
	w := testWorld(t)
	for name, s := range map[string]fleet.AccountSpec{
		"name": {Name: "A B", Provider: "fake", Credential: "x"}, "no provider": {Name: "b", Credential: "x"},
		"no credential": {Name: "b", Provider: "fake"}, "source": {Name: "b", Provider: "fake", Credential: "x", Source: "disk"},
		"env with credential": {Name: "b", Provider: "fake", Credential: "x", Source: "env"},
	} {
		if _, err := w.fleet.AddAccount(w.ctx, s); !errors.Is(err, fleet.ErrInvalid) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if _, err := w.fleet.AddAccount(w.ctx, fleet.AccountSpec{Name: "acme", Provider: "fake", Credential: "x"}); !errors.Is(err, fleet.ErrConflict) {
		t.Errorf("a name twice: %v", err)
	}
	if err := w.fleet.CheckAccount(w.ctx, "acme"); err != nil {
		t.Errorf("check: %v", err)
	}
	if err := w.fleet.CheckAccount(w.ctx, "nobody"); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("check of nobody: %v", err)
	}
	w.create(spec("a"))
	w.settle()
	if err := w.fleet.RemoveAccount(w.ctx, "acme"); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "node a is joined") {
		t.Errorf("removing an account in use: %v", err)
	}
	w.delete("a")
	w.settle()
	if err := w.fleet.RemoveAccount(w.ctx, "acme"); err != nil {
		t.Errorf("removing: %v", err)
	}
	if _, err := w.fleet.CreateNode(w.ctx, spec("b")); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("a node on a removed account: %v", err)
	}
	if n := w.node("a"); n.ProviderName() != "fake" {
		t.Error("the history forgets the provider with the account")
	}
}

func TestPlan(t *testing.T) {
	w := testWorld(t)
	p, err := w.fleet.PlanNode(w.ctx, spec("a"))
	if err != nil {
		t.Fatal(err)
	}
	if p.PriceMonthly != "4.20" || p.Currency != "EUR" || p.UserDataBytes == 0 || p.Provider != "fake" || !strings.Contains(strings.Join(p.Makes, "\n"), "no inbound port is open") {
		t.Errorf("%+v", p)
	}
	s := spec("a")
	s.Candidates[0].Size = "huge"
	if _, err := w.fleet.PlanNode(w.ctx, s); !errors.Is(err, fleet.ErrInvalid) {
		t.Errorf("a size that is not sold there: %v", err)
	}
	if nodes, err := w.fleet.Nodes(w.ctx, fleet.NodeFilter{IncludeDeleted: true}); err != nil || len(nodes) != 0 || w.cloud.called("create") != 0 {
		t.Errorf("a plan leaves %d records and makes %d servers", len(nodes), w.cloud.called("create"))
	}
	if !errors.Is(&fleet.Error{Class: "capacity", Err: provision.ErrCapacity}, provision.ErrCapacity) {
		t.Error("an error hides its class")
	}
}
