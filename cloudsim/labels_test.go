package cloudsim

import (
	"strings"
	"testing"
)

func TestSelector(t *testing.T) {
	labels := map[string]string{"env": "prod", "tier": "", "example.com/team": "a-b_c.d", "in": "notin"}
	for _, tt := range []struct {
		selector string
		want     bool
	}{
		{"", true}, {"  ", true},
		{"env=prod", true}, {"env==prod", true}, {"env=dev", false}, {" env = prod ", true}, {"env= prod", true},
		{"env!=prod", false}, {"env!=dev", true}, {"none!=x", true},
		{"env", true}, {"none", false}, {"!env", false}, {"!none", true}, {"! none", true},
		{"env in (prod)", true}, {"env in (dev, prod)", true}, {"env in (dev,test)", false}, {"none in (a)", false}, {"env in(prod)", true},
		{"env notin (dev)", true}, {"env notin (dev,prod)", false}, {"none notin (a)", true},
		{"tier=", true}, {"tier", true}, {"tier!=", false}, {"tier in ()", true},
		{"example.com/team=a-b_c.d", true}, {"in=notin", true}, {"in in (notin)", true}, {"in", true},
		{"env=prod,tier", true}, {"env=prod,none", false}, {"env in (prod,dev),tier,!none", true}, {"env in (a,b),env", false},
	} {
		rs, err := parseSelector(tt.selector)
		if err != nil {
			t.Errorf("%q: %v", tt.selector, err)
			continue
		}
		if got := selects(rs, labels); got != tt.want {
			t.Errorf("%q selects: %v", tt.selector, got)
		}
	}
	for _, bad := range []string{
		",", "a,", ",a", "a,,b", "=", "=b", "a=b=c", "a===b", "!", "!a=b", "a b", "a in", "a in b", "a in (b", "a in b)", "a in ((b))", "a in (b)c",
		"a=b c", "-a", "a-", "a=-b", "a=b-", "/a", "b/", "a/b/c", "a=" + strings.Repeat("x", 64), strings.Repeat("x", 64), "ä=b", "a=ä", "a(b)",
	} {
		if rs, err := parseSelector(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, rs)
		}
	}
}

func FuzzLabelSelector(f *testing.F) {
	for _, s := range []string{"a=b", "a in (b,c),!d", "a notin (b)", "a!=b,c==d", "((", "a in (b", "x/y=z,", "!"} {
		f.Add(s, "a", "b")
	}
	f.Fuzz(func(t *testing.T, text, key, value string) {
		if rs, err := parseSelector(text); err == nil {
			// What is understood decides, and says the same of the same.
			labels := map[string]string{key: value}
			if got := selects(rs, labels); got != selects(rs, labels) {
				t.Fatal("a selector changed its mind")
			}
			for _, r := range rs {
				if !labelKey.MatchString(r.key) {
					t.Fatalf("%q has the key %q", text, r.key)
				}
			}
			if more, err := parseSelector(text + ",!" + strings.Repeat("k", 63)); len(rs) > 0 && (err != nil || len(more) != len(rs)+1) {
				t.Fatalf("%q and one more part: %v, %v", text, more, err)
			}
		}
		// A label that is allowed can be selected by each form, and not by its
		// opposite.
		if checkLabels(map[string]string{key: value}) != nil {
			return
		}
		for form, want := range map[string]bool{
			key + "=" + value: true, key + "!=" + value: false, key + " in (" + value + ")": true, key + " notin (" + value + ")": false,
			key: true, "!" + key: false,
		} {
			rs, err := parseSelector(form)
			if err != nil || selects(rs, map[string]string{key: value}) != want {
				t.Fatalf("%q: %v, %v", form, rs, err)
			}
		}
	})
}
