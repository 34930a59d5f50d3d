package provision_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/provision"
)

func TestHetznerSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeHetzner()
		now := time.Now().UTC()
		past, soon, later := now.Add(-time.Hour), now.Add(time.Hour), now.Add(48*time.Hour)
		at := func(t time.Time) object {
			return object{"announced": t.Add(-time.Hour).Format(time.RFC3339), "unavailable_after": t.Format(time.RFC3339)}
		}
		offer := func(name string, prices []object, locations []object, wide any) {
			f.add("server_types", object{
				"name": name, "description": name + " title", "cores": 4, "memory": 7.5, "disk": 80, "architecture": "arm",
				"prices": prices, "locations": locations, "deprecation": wide,
			})
		}
		f.tables["server_types"] = nil
		both := []object{fakePrice("fsn1", "12.5000000000000000"), fakePrice("hel1", "9")}
		offer("everywhere", both, []object{{"name": "fsn1", "available": true}, {"name": "hel1", "available": true}}, nil)
		offer("unavailable-here", both, []object{{"name": "fsn1", "available": false}, {"name": "hel1", "available": true}}, nil)
		offer("over-here", both, []object{{"name": "fsn1", "deprecation": at(past)}, {"name": "hel1", "available": true}}, nil)
		offer("ends-here", both, []object{{"name": "fsn1", "available": true, "deprecation": at(soon)}, {"name": "hel1", "available": true, "deprecation": at(later)}}, nil)
		offer("not-priced-here", both[1:], []object{{"name": "fsn1", "available": true}, {"name": "hel1"}}, nil)
		offer("old-api-over", both, nil, at(past))
		offer("old-api-ends", both, nil, at(soon))
		offer("finer-wins", both, []object{{"name": "fsn1", "available": true, "deprecation": nil}, {"name": "hel1", "available": true}}, at(past))
		offer("nowhere", nil, nil, nil)

		type row struct {
			Price string
			Until time.Time
		}
		rows := func(region string) map[string]row {
			sizes, err := openHetzner(t, f, goodToken).ListSizes(t.Context(), region)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]row{}
			for _, s := range sizes {
				got[s.ID] = row{s.PriceMonthly, s.UnavailableAfter}
				if s.Memory != 7680 || s.VCPUs != 4 || s.Disk != 80 || s.Architecture != "arm" || s.Currency != "EUR" || s.Name != s.ID+" title" {
					t.Errorf("size %+v", s)
				}
			}
			return got
		}
		none := time.Time{}
		want := map[string]row{
			"everywhere": {"12.50", none}, "ends-here": {"12.50", soon}, "old-api-ends": {"12.50", soon}, "finer-wins": {"12.50", none},
		}
		if d := cmp.Diff(want, rows("fsn1")); d != "" {
			t.Errorf("fsn1 (-want +got):\n%s", d)
		}
		want = map[string]row{
			"everywhere": {"9.00", none}, "unavailable-here": {"9.00", none}, "over-here": {"9.00", none}, "ends-here": {"9.00", later},
			"not-priced-here": {"9.00", none}, "old-api-ends": {"9.00", soon}, "finer-wins": {"9.00", none},
		}
		if d := cmp.Diff(want, rows("")); d != "" {
			t.Errorf("no region (-want +got):\n%s", d)
		}
	})
}

func TestHetznerAsksForTheCurrencyOnce(t *testing.T) {
	f := newFakeHetzner()
	h := openHetzner(t, f, goodToken)
	for range 3 {
		if _, err := h.ListSizes(t.Context(), "fsn1"); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.count("GET /pricing"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestHetznerSizesOfAnUnknownRegion(t *testing.T) {
	h := openHetzner(t, newFakeHetzner(), goodToken)
	if _, err := h.ListSizes(t.Context(), "nowhere"); !errors.Is(err, provision.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if sizes, err := h.ListSizes(t.Context(), "ash"); err != nil || len(sizes) != 0 {
		t.Errorf("a region that sells nothing: %v, %v", sizes, err)
	}
}

func TestHetznerRegions(t *testing.T) {
	got, err := openHetzner(t, newFakeHetzner(), goodToken).ListRegions(t.Context())
	want := []provision.Region{{ID: "fsn1", Name: "Falkenstein, DE"}, {ID: "hel1", Name: "Helsinki, FI"}, {ID: "ash", Name: "Ashburn, VA, US"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, d)
	}
}
