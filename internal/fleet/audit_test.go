package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// TestAudit plants one thing of each kind and looks what is said of it, and
// what is removed.
func TestAudit(t *testing.T) {
	w := testWorld(t)
	w.create(spec("live"))
	w.create(spec("ended"))
	w.settle()
	live, ended := w.node("live"), w.node("ended")
	w.delete("ended")
	w.settle()
	w.run(2 * time.Minute)
	old := w.clock.Now().Add(-time.Hour)
	mine := map[string]string{"managed-by": "slipway", "slipway-fleet": fleetID}
	with := func(labels map[string]string, more ...string) map[string]string {
		res := map[string]string{}
		for k, v := range labels {
			res[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			res[more[i]] = more[i+1]
		}
		return res
	}
	thing := func(id string, at time.Time, labels map[string]string) provision.Resource {
		return provision.Resource{Kind: provision.KindFirewall, ID: id, CreatedAt: at, Labels: labels}
	}
	attached := thing("attached", old, map[string]string{"managed-by": "slipway"})
	attached.ServerID = live.ServerID
	shared := thing("shared", old, map[string]string{"managed-by": "slipway"})
	shared.Shared = true
	second := thing("second-server", old, with(mine, "slipway-node", live.ID))
	second.Kind = provision.KindServer
	w.cloud.extra = []provision.Resource{
		attached, shared, second,
		thing("of-live", old, with(mine, "slipway-node", live.ID)),
		thing("of-ended", old, with(mine, "slipway-node", ended.ID)),
		thing("of-nobody", old, mine),
		thing("young", w.clock.Now().Add(-time.Minute), mine),
		thing("foreign", old, map[string]string{"managed-by": "slipway", "slipway-fleet": "another"}),
		thing("nameless", old, map[string]string{"managed-by": "slipway"}),
	}
	w.clock.advance(10 * time.Minute)
	want := map[string]fleet.FindingKind{
		"of-ended": fleet.FindingLeftover, "of-nobody": fleet.FindingLeftover, "second-server": fleet.FindingLeftover,
		"young":   fleet.FindingLeftover, // it is eleven minutes old by now
		"foreign": fleet.FindingForeign, "nameless": fleet.FindingForeign,
	}
	report, err := w.fleet.Audit(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, kinds(report)); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
	if w.cloud.called("delete")+w.cloud.called("delete resource") != 1 {
		t.Error("an audit removes things")
	}
	w.cloud.extra = append(w.cloud.extra, thing("fresh", w.clock.Now().Add(-time.Minute), mine))
	report, err = w.fleet.RemoveLeftovers(w.ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if removed := f.Kind == fleet.FindingLeftover; f.Removed != removed || f.Err != nil {
			t.Errorf("%s %s: removed is %v, %v", f.Kind, f.Resource.ID, f.Removed, f.Err)
		}
	}
	var left []string
	for _, r := range w.cloud.extra {
		left = append(left, r.ID)
	}
	slices.Sort(left)
	// The planted second server is no server of the fake; asking for its end
	// is all that can be seen.
	if d := cmp.Diff([]string{"attached", "foreign", "fresh", "nameless", "of-live", "second-server", "shared"}, left); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
	if !slices.Contains(w.types(ended.ID), "leftover-removed") {
		t.Errorf("the timeline of the ended node does not tell of its leftover: %v", w.types(ended.ID))
	}
	wantPhase(t, w, "live", fleet.PhaseJoined)
}

func kinds(r fleet.AuditReport) map[string]fleet.FindingKind {
	res := map[string]fleet.FindingKind{}
	for _, f := range r.Findings {
		res[f.Resource.ID] = f.Kind
	}
	return res
}

func TestAuditMissing(t *testing.T) {
	w := testWorld(t)
	w.create(spec("a"))
	w.settle()
	w.clock.advance(10 * time.Minute)
	s := w.cloud.servers[0]
	s.listedAt = w.clock.Now().Add(time.Hour)
	report, err := w.fleet.Audit(w.ctx)
	if err != nil || kinds(report)[s.ID] != fleet.FindingMissing {
		t.Errorf("%+v, %v", report.Findings, err)
	}
}

// TestAuditIncomplete: what cannot be read is not said to be clean, and
// nothing of it is removed.
func TestAuditIncomplete(t *testing.T) {
	w := testWorld(t)
	w.cloud.onList = func() error { return cloudErr(provision.ErrRateLimited, "list servers", "slow down") }
	report, err := w.fleet.RemoveLeftovers(w.ctx)
	if err != nil || !errors.Is(report.Errors["acme"], provision.ErrRateLimited) {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := w.fleet.Audit(w.ctx, "nobody"); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("an unknown account: %v", err)
	}
}

// TestAuditSecondLook: a leftover that a second look does not show is left
// alone.
func TestAuditSecondLook(t *testing.T) {
	w := testWorld(t)
	r := provision.Resource{Kind: provision.KindVolume, ID: "v", CreatedAt: w.clock.Now().Add(-time.Hour), Labels: map[string]string{"slipway-fleet": fleetID}}
	w.cloud.extra = []provision.Resource{r}
	looks := 0
	w.cloud.onList = func() error {
		if looks++; looks == 2 {
			w.cloud.extra = nil
		}
		return nil
	}
	report, err := w.fleet.RemoveLeftovers(w.ctx)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].Removed || !strings.Contains(report.Findings[0].Message, "left alone") {
		t.Errorf("%+v, %v", report, err)
	}
	if w.cloud.called("delete resource") != 0 {
		t.Error("it was removed all the same")
	}
}
