package provision

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var doTagRule = regexp.MustCompile(`^[a-z0-9_:-]{1,255}$`)

// For any labels that are let through, the tags keep the provider's rule and
// say the labels again.
func TestDigitalOceanTagsSayTheLabels(t *testing.T) {
	label := rapid.StringMatching(`[a-z0-9]([a-z0-9_-]{0,10}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		d := newDigitalOcean("t", Options{ShortName: "acme", Labels: map[string]string{"acme-fleet": label.Draw(t, "fleet")}})
		opts := CreateOpts{
			Name: "node-1", Region: "fra1", Size: "s-1vcpu-1gb", IdempotencyKey: rapid.String().Draw(t, "key"),
			AllowSSHInbound: rapid.Bool().Draw(t, "ssh"), Labels: map[string]string{},
		}
		for range rapid.IntRange(0, 3).Draw(t, "count") {
			key := label.Draw(t, "label")
			if rapid.Bool().Draw(t, "inner") {
				key = "acme-" + key
			}
			opts.Labels[key] = rapid.OneOf(label, rapid.Just("")).Draw(t, "value")
		}
		if d.checkOpts("create server", opts) != nil {
			t.Skip("refused")
		}
		id := identityOf(opts)
		now := time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "now"), 0).UTC()
		mark := d.mark(opts, id, now)
		tags := d.tagsFor(opts, d.markTag(mark))
		for _, tag := range tags {
			if !doTagRule.MatchString(tag) {
				t.Fatalf("%q is no tag", tag)
			}
		}
		if got, want := d.labelsOf(tags), d.labels.own(opts, id); !maps.Equal(got, want) {
			t.Fatalf("labels %v came back as %v", want, got)
		}
		got, tag, ok := d.markOf(tags)
		if !ok || got.key != id.key || got.params != id.params || got.ssh != opts.AllowSSHInbound || !got.at.Equal(now) || d.markTag(got) != tag {
			t.Fatalf("read %+v from %q", got, tag)
		}
		if !d.belongs(tags) {
			t.Fatal("a Droplet of ours is taken for somebody else's")
		}
	})
}

func TestDigitalOceanForeignTags(t *testing.T) {
	d := newDigitalOcean("t", Options{ShortName: "acme", Labels: map[string]string{"acme-fleet": "f1"}})
	for _, tag := range []string{"", ":", "web", "acme-create", "acme-create:a:b:c:closed", "acme-create:a:b:1:open", "acme-create:a:b:1:ssh:odd", "other-create:a:b:1:ssh"} {
		if m, ok := d.readMark(tag); ok {
			t.Errorf("%q is read as %+v", tag, m)
		}
	}
	if got := d.labelsOf([]string{"web", "env:prod", ":x", "a:b:c"}); !maps.Equal(got, map[string]string{"env": "prod"}) {
		t.Errorf("labels of foreign tags: %v", got)
	}
	if d.belongs([]string{"managed-by:acme", "acme-fleet:f2"}) || d.belongs([]string{"acme-fleet:f1"}) {
		t.Error("another fleet's Droplet is taken for ours")
	}
}

// Tags are told apart without case, and take fewer characters than labels.
func TestDigitalOceanRefusesLabelsThatAreNoTags(t *testing.T) {
	d := newDigitalOcean("t", Options{ShortName: "acme"})
	for _, labels := range []map[string]string{
		{"Env": "prod"}, {"env": "Prod"}, {"a.b": "c"}, {"env": "1.2"}, {"acme-create": "x"}, {"acme-key": "x"},
		{"acme-a": strings.Repeat("a", 60), "acme-b": strings.Repeat("b", 60), "acme-c": strings.Repeat("c", 60)},
	} {
		err := d.checkOpts("create server", CreateOpts{Name: "node-1", Region: "fra1", Size: "s-1vcpu-1gb", Labels: labels})
		if ClassName(err) != "invalid" {
			t.Errorf("%v: %v", labels, err)
		}
	}
	if _, err := Open("digitalocean", "t", Options{Labels: map[string]string{"Env": "prod"}}); ClassName(err) != "invalid" {
		t.Errorf("Open with a label in upper case: %v", err)
	}
}

// What serves one server must not become a tag of its own, which nobody
// would delete.
func TestDigitalOceanServersShareTheirTagsButOne(t *testing.T) {
	d := newDigitalOcean("t", Options{ShortName: "acme", Labels: map[string]string{"acme-fleet": "f1"}})
	tags := func(node string) []string {
		opts := CreateOpts{Name: node, IdempotencyKey: node, Labels: map[string]string{"acme-node": node, "env": "prod"}}
		return d.tagsFor(opts, d.markTag(d.mark(opts, identityOf(opts), time.Unix(1, 0))))
	}
	one, two := tags("n1"), tags("n2")
	var alone []string
	for _, tag := range one {
		if !slices.Contains(two, tag) {
			alone = append(alone, tag)
		}
	}
	if len(alone) != 1 || !strings.HasPrefix(alone[0], "acme-create:") {
		t.Errorf("tags of one server alone: %q", alone)
	}
}

func TestSlidingPause(t *testing.T) {
	for _, c := range []struct {
		limit, remaining int
		untilReset, want time.Duration
	}{
		{5000, 4000, time.Second, 0}, {5000, 100, time.Second, 0}, {5000, 50, time.Second, time.Second / 2},
		{5000, 0, time.Second, time.Second}, {5000, 0, time.Hour, topPause}, {5000, 0, -time.Second, 0}, {0, 0, time.Second, 0},
	} {
		if got := slidingPause(c.limit, c.remaining, c.untilReset); got != c.want {
			t.Errorf("%d of %d left, reset in %v: pause %v, want %v", c.remaining, c.limit, c.untilReset, got, c.want)
		}
	}
}
