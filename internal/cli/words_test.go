package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/client"
)

func TestMoney(t *testing.T) {
	nodes := []client.Node{
		{PriceMonthly: "4.15", Currency: "EUR"}, {PriceMonthly: "0.10", Currency: "EUR"}, {PriceMonthly: "0.20", Currency: "EUR"},
		{PriceMonthly: "6", Currency: "USD"}, {}, {PriceMonthly: "1/3", Currency: "EUR"},
	}
	if got, want := costLine(nodes), "4.45 EUR + 6.00 USD a month, without 2 nodes of unknown price"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := costLine(nil); got != "" {
		t.Errorf("nothing costs %q", got)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"9.99", "10.5", -1}, {"10", "10.00", 0}, {"", "1", 1}, {"1", "", -1}, {"", "", 0}, {"1e3", "5", 1}} {
		if got := comparePrices(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d", c.a, c.b, got)
		}
	}
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 1240 * time.Millisecond: "1.2s", 9990 * time.Millisecond: "9.9s", 12 * time.Second: "12s",
		125 * time.Second: "2m05s", 3720 * time.Second: "1h02m",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("elapsed %v: %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-1: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 47 * time.Hour: "47h", 72 * time.Hour: "3d"} {
		if got := age(d); got != want {
			t.Errorf("age %v: %q, want %q", d, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"fsn1", "nbg1", "hel1", "ash", "hil"}
	for typed, want := range map[string][]string{
		"fsn":  {"fsn1"},
		"fns1": {"fsn1"},
		"FSN1": {"fsn1"},
		"hel":  {"hel1", "hil"},
		"mars": nil,
		"":     nil,
	} {
		if d := cmp.Diff(want, nearest(typed, names)); d != "" {
			t.Errorf("%q: %s", typed, d)
		}
	}
}

func TestDistanceIsAMetricOfEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab-]{0,6}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("distance of %q and %q is %d", a, b, d)
		}
	})
}

// TestWouldDo: whatever is typed, the name that is offered is a name.
func TestWouldDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Z_. /-]{0,80}`)).Draw(t, "typed")
		if s := wouldDo(typed); s != "" && checkName(s) != nil {
			t.Fatalf("%q for %q is no name", s, typed)
		}
	})
	if got := wouldDo("My Web_Server.1"); got != "my-web-server-1" {
		t.Errorf("%q", got)
	}
}

func TestPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := printable(rapid.String().Draw(t, "s"))
		if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
			t.Fatalf("%q", s)
		}
	})
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a-b_c.d/e:f": "a-b_c.d/e:f", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'", "a;b": "'a;b'"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for in, want := range map[string]int{"4": 4096, "4GB": 4096, "4 gib": 4096, "512MB": 512, "0.5": 512, "2g": 2048, "100m": 100} {
		if got, err := parseMemory(in); err != nil || got != want {
			t.Errorf("%q: %d %v", in, got, err)
		}
	}
	for _, in := range []string{"", "x", "-1", "NaN", "4TBx", "1e99", "Inf"} {
		if got, err := parseMemory(in); err == nil {
			t.Errorf("%q: %d", in, got)
		}
	}
}
