package fleet_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
	"github.com/slipway-dev/slipway/provision"
)

// simClouds opens accounts at their endpoint, as the control plane does.
type simClouds struct{}

func (simClouds) Open(_ context.Context, a fleet.Account, credential string) (provision.Provisioner, error) {
	return provision.Open(a.Provider, credential, provision.Options{
		Endpoint: a.Endpoint, ShortName: "slipway", Labels: map[string]string{"slipway-fleet": fleetID},
	})
}

// TestSimulatedHetzner is a life at Hetzner's wire format, with River as the
// clock: real user-data, guests that boot from it and find their token where
// an agent finds it.
func TestSimulatedHetzner(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	var f *fleet.Fleet
	sim, err := cloudsim.New(cloudsim.Options{Speed: 60, RunContainer: func(ctx context.Context, g cloudsim.Guest, _ cloudsim.Container) error {
		text, err := os.ReadFile(filepath.Join(g.Root, "etc/slipway/join/join.env"))
		if err != nil {
			return err
		}
		tok, err := enroll.ParseToken(tokenInUserData.FindString(string(text)))
		if err != nil {
			return err
		}
		r := enroll.RedeemRequest{TokenID: tok.ID(), SecretHash: tok.SecretHash(), KeyHash: g.Name, Source: g.IPv4}
		_, err = f.Redeem(ctx, r, func(id string) (*enroll.Certificate, error) { return &enroll.Certificate{Serial: id}, nil })
		if err == nil {
			<-ctx.Done()
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(sim.Handler())
	db := openStore(t, t.TempDir(), time.Now)
	f, err = fleet.New(fleet.Config{
		Store: db, Clouds: simClouds{}, TokenKey: []byte(strings.Repeat("k", 32)), FleetID: fleetID, Advertise: "127.0.0.1:8443",
		CAFingerprint: "sha256:" + strings.Repeat("0", 64), AgentVersion: "v1.0.0",
		Timing: fleet.Timing{ObserveFast: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx, f, store.RunOptions{Poll: 50 * time.Millisecond}) }()
	defer func() {
		cancel()
		if err := errors.Join(<-ended, sim.Close(), db.Close()); err != nil {
			t.Error(err)
		}
		srv.Close()
	}()

	if _, err := f.AddAccount(ctx, fleet.AccountSpec{Name: "sim", Provider: "hetzner", Credential: strings.Repeat("a", 64), Endpoint: srv.URL + "/hetzner/v1"}); err != nil {
		t.Fatal(err)
	}
	names := []string{"one", "two", "three"}
	for _, name := range names {
		if _, err := f.CreateNode(ctx, fleet.NodeSpec{Name: name, Account: "sim", Candidates: []fleet.Candidate{{Region: "fsn1", Size: "cx23"}}}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, ctx, f, fleet.PhaseJoined, names...)
	if n, err := f.Node(ctx, "one"); err != nil || n.PriceMonthly == "" || n.IPAddr == "" {
		t.Errorf("%+v, %v", n, err)
	}
	for _, name := range names {
		if _, err := f.DeleteNode(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	await(t, ctx, f, fleet.PhaseDeleted, names...)
	made := 0
	for _, e := range sim.Ledger() {
		made++
		if e.Left() {
			t.Errorf("%s %s is left and costs money", e.Kind, e.Name)
		}
	}
	if made < len(names) {
		t.Errorf("the ledger has %d things of %d nodes", made, len(names))
	}
	if r, err := f.Audit(ctx); err != nil || len(r.Findings)+len(r.Errors) != 0 {
		t.Errorf("audit: %+v %v", r, err)
	}
}

// await follows the events until all nodes are in a phase.
func await(t *testing.T, ctx context.Context, f *fleet.Fleet, want fleet.Phase, names ...string) {
	t.Helper()
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	for e, err := range f.Watch(ctx, 0, "") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Phase == fleet.PhaseFailed {
			t.Fatalf("%s failed: %s", e.Node, e.Message)
		}
		if e.Phase == want {
			delete(open, e.Node)
		}
		if len(open) == 0 {
			return
		}
	}
	t.Fatalf("%v are not %s in time", open, want)
}
