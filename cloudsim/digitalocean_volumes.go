package cloudsim

import (
	"net/http"
	"slices"
	"time"
)

// Volumes.

const (
	doVolumeMost   = 16384              // GB
	doVolumeHourly = 0.10 / hoursAMonth // of a GB
	doVolumeName   = "must have from 1 to 64 lower-case letters, digits and hyphens"
)

type doVolume struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	Region          *doRegion `json:"region"`
	DropletIDs      []int64   `json:"droplet_ids"`
	Description     string    `json:"description"`
	SizeGB          int       `json:"size_gigabytes"`
	CreatedAt       time.Time `json:"created_at"`
	FilesystemType  string    `json:"filesystem_type"`
	FilesystemLabel string    `json:"filesystem_label"`
	Tags            []string  `json:"tags"`

	entry *LedgerEntry
}

func (a *doAccount) volume(id string) *doVolume {
	for _, v := range a.volumes {
		if v.ID == id {
			return v
		}
	}
	return nil
}

func (d digitalOcean) createVolume() error {
	var b struct {
		Name           string   `json:"name"`
		Region         string   `json:"region"`
		Description    string   `json:"description"`
		SizeGB         int      `json:"size_gigabytes"`
		FilesystemType string   `json:"filesystem_type"`
		Tags           []string `json:"tags"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	place := doRegionOf(b.Region)
	switch {
	case b.Name == "" || len(b.Name) > 64 || !doHost.MatchString(b.Name):
		return doBad("volume name " + doVolumeName)
	case place == nil || !place.Available:
		return doBad("region not found")
	case b.SizeGB < 1 || b.SizeGB > doVolumeMost:
		return doBad("volume size must be from 1 to %d GB", doVolumeMost)
	case slices.ContainsFunc(d.account.volumes, func(v *doVolume) bool { return v.Name == b.Name && v.Region.Slug == b.Region }):
		return doFail(http.StatusConflict, "conflict", "a volume with the same name already exists")
	}
	for i, t := range b.Tags {
		if err := doCheckTag(t); err != nil {
			return err
		}
		b.Tags[i] = d.account.makeTag(t)
	}
	v := &doVolume{
		ID: d.sim.uuid(), Name: b.Name, Region: place, DropletIDs: []int64{}, Description: b.Description, SizeGB: b.SizeGB,
		CreatedAt: d.now, FilesystemType: b.FilesystemType, Tags: orEmpty(b.Tags),
	}
	v.entry = d.sim.world.enter(LedgerEntry{
		Provider: digitalOceanName, Project: d.project.name, Kind: "volume", ID: v.ID, Name: v.Name, CreatedAt: d.now,
		Hourly: doVolumeHourly * float64(v.SizeGB), Currency: "USD",
	})
	d.account.volumes = append(d.account.volumes, v)
	d.send(http.StatusCreated, map[string]any{"volume": v})
	return nil
}

func (d digitalOcean) listVolumes() error {
	q := d.r.URL.Query()
	var all []*doVolume
	for _, v := range d.account.volumes {
		if (q.Get("name") == "" || q.Get("name") == v.Name) && (q.Get("region") == "" || q.Get("region") == v.Region.Slug) {
			all = append(all, v)
		}
	}
	return doPage(d, "volumes", all)
}

func (d digitalOcean) findVolume() (*doVolume, error) {
	if v := d.account.volume(d.r.PathValue("id")); v != nil {
		return v, nil
	}
	return nil, doNotFound()
}

func (d digitalOcean) getVolume() error {
	v, err := d.findVolume()
	if err != nil {
		return err
	}
	d.send(http.StatusOK, map[string]any{"volume": v})
	return nil
}

func (d digitalOcean) deleteVolume() error {
	v, err := d.findVolume()
	if err != nil {
		return err
	}
	if len(v.DropletIDs) > 0 {
		return doFail(http.StatusConflict, "conflict", "the volume is attached to a Droplet")
	}
	v.entry.DeletedAt = d.now
	d.account.volumes = slices.DeleteFunc(d.account.volumes, func(x *doVolume) bool { return x == v })
	return d.done()
}

func (d digitalOcean) actOnVolume() error {
	v, err := d.findVolume()
	if err != nil {
		return err
	}
	var b struct {
		Type      string `json:"type"`
		DropletID int64  `json:"droplet_id"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	s := d.account.droplets[b.DropletID]
	switch {
	case s == nil:
		return doNotFound()
	case b.Type == "attach" && (len(v.DropletIDs) > 0 || s.region != v.Region.Slug):
		return doBad("the volume can not be attached to this Droplet")
	case b.Type == "attach":
		v.DropletIDs, v.entry.Server = []int64{s.id}, itoa(s.id)
	case b.Type == "detach" && slices.Contains(v.DropletIDs, s.id):
		v.DropletIDs, v.entry.Server = []int64{}, ""
	case b.Type == "detach":
		return doBad("the volume is not attached to this Droplet")
	default:
		return doBad("%q is not an action of the simulated cloud", b.Type)
	}
	a := d.sim.begin(d.project, d.now, b.Type+"_volume", doActTakes, nil, resource{"backend", s.id})
	d.send(http.StatusAccepted, map[string]any{"action": d.action(a)})
	return nil
}
