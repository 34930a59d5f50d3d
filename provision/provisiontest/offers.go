package provisiontest

import (
	"regexp"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var regionClauses = []clause{
	{"AreListedOnceEachWithIDAndName", func(t *testing.T, a *Account) {
		regions, err := a.Provisioner.ListRegions(callContext(t))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range regions {
			if r.ID == "" || r.Name == "" || seen[r.ID] {
				t.Errorf("region %+v: want an id of its own, and a name", r)
			}
			seen[r.ID] = true
		}
		if !seen[a.Region] {
			t.Errorf("region %q is not listed", a.Region)
		}
	}},
}

var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

var sizeClauses = []clause{
	{"OfARegionAreOfferedThere", func(t *testing.T, a *Account) {
		seen := a.sizes(t, a.Region)
		for _, want := range []string{a.Size, a.OtherSize} {
			if _, ok := seen[want]; !ok {
				t.Errorf("size %q is not listed in %s", want, a.Region)
			}
		}
	}},
	{"OfNoRegionIncludeThoseOfEach", func(t *testing.T, a *Account) {
		all := a.sizes(t, "")
		for id := range a.sizes(t, a.Region) {
			if _, ok := all[id]; !ok {
				t.Errorf("size %q is listed in %s and not without a region", id, a.Region)
			}
		}
	}},
}

// sizes lists sizes and checks what holds of each.
func (a *Account) sizes(t *testing.T, region string) map[string]provision.Size {
	t.Helper()
	list, err := a.Provisioner.ListSizes(callContext(t), region)
	if err != nil {
		t.Fatalf("ListSizes(%q): %v", region, err)
	}
	seen := map[string]provision.Size{}
	for _, s := range list {
		if _, twice := seen[s.ID]; s.ID == "" || s.Name == "" || twice {
			t.Errorf("size %+v: want an id of its own, and a name", s)
		}
		seen[s.ID] = s
		if s.VCPUs < 1 || s.Memory < 256 || s.Disk < 0 {
			t.Errorf("size %q: %d CPUs, %d MB memory, %d GB disk", s.ID, s.VCPUs, s.Memory, s.Disk)
		}
		if s.PriceMonthly != "" && (!decimal.MatchString(s.PriceMonthly) || len(s.Currency) != 3) {
			t.Errorf("size %q costs %q %q: want a plain decimal and an ISO 4217 code", s.ID, s.PriceMonthly, s.Currency)
		}
		if s.Architecture != "" && s.Architecture != "x86" && s.Architecture != "arm" {
			t.Errorf("size %q has the architecture %q", s.ID, s.Architecture)
		}
	}
	return seen
}
