package provision

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tags are what DigitalOcean has in place of labels: words of letters, digits,
// colons, dashes and underscores, up to 255, told apart without case.
//
// A label is the tag "key:value". One tag of every server is its own, and is
// deleted with it:
//
//	<short>-create:<key>:<params>:<unix time>:<closed|ssh>[:<rest of a key>:<value>]…
//
// It holds what a create is recognised by, when it was made, whether a
// firewall was made for it, and the labels whose keys begin with "<short>-":
// as tags of their own they would be one more thing for each server that
// nobody deletes.

const doMostTag = 255

var doLabelPart = regexp.MustCompile(`^[a-z0-9_-]*$`)

// checkDOLabels holds what a tag can say.
func checkDOLabels(labels map[string]string) error {
	for _, k := range sortedKeys(labels) {
		if !doLabelPart.MatchString(k) || !doLabelPart.MatchString(labels[k]) {
			return fmt.Errorf("label %q=%q: at DigitalOcean it becomes a tag, of lower-case letters, digits, '_' and '-'", clip(k, 80), clip(labels[k], 80))
		}
	}
	return nil
}

// doTagOf is the tag of a label.
func doTagOf(key, value string) string { return key + ":" + value }

// managedTag is on everything, and what the shared firewall goes by.
func (d *DigitalOcean) managedTag() string { return doTagOf(managedBy, d.labels.short) }

// doCreateMark is the tag of one create, taken apart.
type doCreateMark struct {
	identity

	at     time.Time
	ssh    bool
	labels map[string]string
}

// mark gives a create its tag.
func (d *DigitalOcean) mark(opts CreateOpts, id identity, now time.Time) doCreateMark {
	m := doCreateMark{identity: id, at: now, ssh: opts.AllowSSHInbound, labels: map[string]string{}}
	for k, v := range opts.Labels {
		if d.isInner(k) {
			m.labels[k] = v
		}
	}
	return m
}

// isInner tells whether a label of a create stands inside its own tag.
func (d *DigitalOcean) isInner(key string) bool {
	_, extra := d.labels.extra[key]
	return strings.HasPrefix(key, d.labels.short+"-") && !extra
}

func (d *DigitalOcean) markTag(m doCreateMark) string {
	access := "closed"
	if m.ssh {
		access = "ssh"
	}
	words := []string{d.labels.key(labelCreate), m.key, m.params, strconv.FormatInt(m.at.Unix(), 10), access}
	for _, k := range sortedKeys(m.labels) {
		words = append(words, strings.TrimPrefix(k, d.labels.short+"-"), m.labels[k])
	}
	return strings.Join(words, ":")
}

// readMark takes a tag apart, if it is one of a create.
func (d *DigitalOcean) readMark(tag string) (m doCreateMark, ok bool) {
	words := strings.Split(tag, ":")
	if len(words) < 5 || len(words)%2 == 0 || words[0] != d.labels.key(labelCreate) {
		return m, false
	}
	unix, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil || words[4] != "closed" && words[4] != "ssh" {
		return m, false
	}
	m = doCreateMark{
		identity: identity{key: words[1], params: words[2]},
		at:       time.Unix(unix, 0).UTC(), ssh: words[4] == "ssh", labels: map[string]string{},
	}
	for i := 5; i < len(words); i += 2 {
		m.labels[d.labels.key(words[i])] = words[i+1]
	}
	return m, true
}

// markOf finds the tag of the create that made a Droplet.
func (d *DigitalOcean) markOf(tags []string) (m doCreateMark, tag string, ok bool) {
	for _, t := range tags {
		if m, ok := d.readMark(t); ok {
			return m, t, true
		}
	}
	return m, "", false
}

// tagsFor are all tags of a new Droplet.
func (d *DigitalOcean) tagsFor(opts CreateOpts, mark string) []string {
	tags := []string{d.managedTag(), mark}
	for _, k := range sortedKeys(d.labels.extra) {
		tags = append(tags, doTagOf(k, d.labels.extra[k]))
	}
	for _, k := range sortedKeys(opts.Labels) {
		if _, extra := d.labels.extra[k]; !extra && !d.isInner(k) {
			tags = append(tags, doTagOf(k, opts.Labels[k]))
		}
	}
	return tags
}

// labelsOf turns tags back into labels. A tag that somebody gave and that is
// no "key:value" is left out.
func (d *DigitalOcean) labelsOf(tags []string) map[string]string {
	labels := map[string]string{}
	for _, t := range tags {
		if m, ok := d.readMark(t); ok {
			for k, v := range m.labels {
				labels[k] = v
			}
			labels[d.labels.key(labelKey)], labels[d.labels.key(labelParams)] = m.key, m.params
			continue
		}
		if k, v, ok := strings.Cut(t, ":"); ok && k != "" && !strings.Contains(v, ":") {
			labels[k] = v
		}
	}
	return labels
}

func (d *DigitalOcean) isOurs(tags []string) bool { return slices.Contains(tags, d.managedTag()) }

// belongs tells whether tags carry every one of Options.Labels too.
func (d *DigitalOcean) belongs(tags []string) bool {
	for k, v := range d.labels.extra {
		if !slices.Contains(tags, doTagOf(k, v)) {
			return false
		}
	}
	return d.isOurs(tags)
}
