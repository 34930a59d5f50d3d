package cloudsim

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tags: they are things of their own, told apart without case.

var doTagPattern = regexp.MustCompile(`^[a-zA-Z0-9_:-]{1,255}$`)

func doCheckTag(name string) error {
	if !doTagPattern.MatchString(name) {
		return doBad("Tag name may only contain letters, numbers, colons, dashes, and underscores, and at most 255 of them: %s", name)
	}
	return nil
}

// tag is the name in the case that it was made with; empty: there is none.
func (a *doAccount) tag(name string) string {
	for _, t := range a.tags {
		if strings.EqualFold(t, name) {
			return t
		}
	}
	return ""
}

// makeTag makes a tag when there is none of the name.
func (a *doAccount) makeTag(name string) string {
	if t := a.tag(name); t != "" {
		return t
	}
	a.tags = append(a.tags, name)
	return name
}

func (d digitalOcean) tag(name string) map[string]any {
	var last string
	droplets := 0
	for _, s := range sorted(d.account.droplets) {
		if slices.Contains(s.tags, name) {
			droplets, last = droplets+1, "https://api.digitalocean.com/v2/droplets/"+itoa(s.id)
		}
	}
	volumes := 0
	for _, v := range d.account.volumes {
		if slices.Contains(v.Tags, name) {
			volumes++
		}
	}
	of := func(n int, last string) map[string]any {
		o := map[string]any{"count": n}
		if last != "" {
			o["last_tagged_uri"] = last
		}
		return o
	}
	resources := of(droplets+volumes, last)
	resources["droplets"], resources["volumes"] = of(droplets, last), of(volumes, "")
	for _, kind := range []string{"images", "volume_snapshots", "databases"} {
		resources[kind] = of(0, "")
	}
	return map[string]any{"name": name, "resources": resources}
}

func (d digitalOcean) createTag() error {
	var b struct {
		Name string `json:"name"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	if err := doCheckTag(b.Name); err != nil {
		return err
	}
	d.send(http.StatusCreated, map[string]any{"tag": d.tag(d.account.makeTag(b.Name))})
	return nil
}

func (d digitalOcean) listTags() error {
	var all []map[string]any
	for _, t := range d.account.tags {
		all = append(all, d.tag(t))
	}
	return doPage(d, "tags", all)
}

// findTag wants the case that the tag was made with.
func (d digitalOcean) findTag() (string, error) {
	name := d.r.PathValue("tag")
	if d.account.tag(name) != name || name == "" {
		return "", doNotFound()
	}
	return name, nil
}

func (d digitalOcean) getTag() error {
	name, err := d.findTag()
	if err != nil {
		return err
	}
	d.send(http.StatusOK, map[string]any{"tag": d.tag(name)})
	return nil
}

// deleteTag takes it off everything.
func (d digitalOcean) deleteTag() error {
	name, err := d.findTag()
	if err != nil {
		return err
	}
	off := func(tags []string) []string { return without(tags, []string{name}) }
	d.account.tags = off(d.account.tags)
	for _, s := range d.account.droplets {
		s.tags = off(s.tags)
	}
	for _, f := range d.account.firewalls {
		f.Tags = off(f.Tags)
	}
	for _, v := range d.account.volumes {
		v.Tags = off(v.Tags)
	}
	return d.done()
}

func (d digitalOcean) tagResources() error {
	return d.changeTagged(func(tags []string, t string) []string { return union(tags, []string{t}) })
}

func (d digitalOcean) untagResources() error {
	return d.changeTagged(func(tags []string, t string) []string { return without(tags, []string{t}) })
}

func (d digitalOcean) changeTagged(change func(tags []string, t string) []string) error {
	name, err := d.findTag()
	if err != nil {
		return err
	}
	var b struct {
		Resources []struct {
			ID   string `json:"resource_id"`
			Type string `json:"resource_type"`
		} `json:"resources"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	for _, r := range b.Resources {
		switch r.Type {
		case "droplet":
			id, _ := strconv.ParseInt(r.ID, 10, 64)
			s := d.account.droplets[id]
			if s == nil {
				return doNotFound()
			}
			s.tags = change(s.tags, name)
		case "volume":
			v := d.account.volume(r.ID)
			if v == nil {
				return doNotFound()
			}
			v.Tags = change(v.Tags, name)
		default:
			return doBad("resource_type %s cannot be tagged", r.Type)
		}
	}
	return d.done()
}
