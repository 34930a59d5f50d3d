package provision

import (
	"maps"
	"strings"
	"testing"
)

func TestLabelsOfACreate(t *testing.T) {
	opts := CreateOpts{Labels: map[string]string{"acme-node": "n1"}}
	before := maps.Clone(opts.Labels)
	l := labeller{short: "acme", extra: map[string]string{"acme-fleet": "f1"}}
	got := l.own(opts, identity{key: "k", params: "p"})
	want := map[string]string{"managed-by": "acme", "acme-node": "n1", "acme-fleet": "f1", "acme-key": "k", "acme-params": "p"}
	if !maps.Equal(got, want) || !maps.Equal(opts.Labels, before) {
		t.Errorf("got %v, want %v; the caller's are %v", got, want, opts.Labels)
	}
	if got := l.selector(map[string]string{"b": "2", "a": "1"}); got != "managed-by=acme,a=1,b=2" {
		t.Errorf("selector %q", got)
	}
}

func TestCheckLabels(t *testing.T) {
	l := labeller{short: "acme", extra: map[string]string{"acme-fleet": "f1"}}
	for _, c := range []struct {
		key, value string
		ok         bool
	}{
		{"node", "n-1", true}, {"node", "", true}, {"n", strings.Repeat("v", 63), true}, {"acme-node", "x", true}, {"acme-fleet", "f1", true},
		{"acme-keys", "x", true},
		{"managed-by", "acme", false}, {"acme-key", "x", false}, {"acme-params", "x", false}, {"acme-role", "x", false}, {"acme-server", "x", false},
		{"acme-fleet", "f2", false}, {"", "x", false}, {"-n", "x", false}, {"n", "-", false}, {"n", strings.Repeat("v", 64), false},
		{strings.Repeat("k", 64), "v", false}, {"n", "a,b", false}, {"n", "a=b", false}, {"n", "a b", false}, {"n", "ü", false}, {"n\n", "x", false}, {"n", "x\n", false},
	} {
		if err := l.check(map[string]string{c.key: c.value}); (err == nil) != c.ok {
			t.Errorf("%q=%q: %v", c.key, c.value, err)
		}
	}
}
