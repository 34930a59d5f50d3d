package cloudsim

import (
	"fmt"
	"net/http"
	"slices"
)

// Volumes.

// hetznerGB is the net price of a GB of volume a month.
const hetznerGB = 0.044

func hetznerVolumeHourly(gb int) float64 {
	return float64(gb) * hetznerGB / hoursAMonth * (1 + hetznerVAT)
}

// hetznerVolumeMax is in GB.
const hetznerVolumeMax = 10240

func (h hetzner) volume(v *volume) any {
	var server *int64
	if v.server != nil {
		server = &v.server.id
	}
	var format *string
	if v.format != "" {
		format = &v.format
	}
	return map[string]any{
		"id": v.id, "name": v.name, "server": server, "status": "available", "location": hetznerLocationOf(v.region), "size": v.size,
		"format": format, "protection": map[string]bool{"delete": v.protected}, "labels": v.labels,
		"linux_device": fmt.Sprintf("/dev/disk/by-id/scsi-0HC_Volume_%d", v.id), "created": v.created,
	}
}

func (h hetzner) createVolume() error {
	var b struct {
		Name     string             `json:"name"`
		Size     int                `json:"size"`
		Server   *int64             `json:"server"`
		Location idOrName           `json:"location"`
		Labels   *map[string]string `json:"labels"`
		Format   string             `json:"format"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	region := string(b.Location)
	var s *server
	if err := h.checkVolumeName(b.Name); err != nil {
		return err
	}
	if b.Server != nil {
		if s = h.project.servers[*b.Server]; s == nil {
			return hetznerNotFound("server", *b.Server)
		}
		region = s.region
	}
	switch {
	case b.Size < 10 || b.Size > hetznerVolumeMax:
		return hetznerField("size", "must be from 10 to 10240")
	case b.Format != "" && b.Format != "ext4" && b.Format != "xfs":
		return hetznerField("format", "must be ext4 or xfs")
	case hetznerLocationOf(region).ID == 0:
		return hetznerField("location", "location not found")
	}
	v := &volume{id: h.sim.world.id(hetznerName, "volume"), name: b.Name, size: b.Size, format: b.Format, server: s, region: hetznerLocationOf(region).Name, labels: labels, created: h.now}
	v.entry = h.sim.world.enter(LedgerEntry{
		Provider: hetznerName, Project: h.project.name, Kind: "volume", ID: itoa(v.id), Name: v.name, CreatedAt: h.now,
		Hourly: hetznerVolumeHourly(v.size), Currency: "EUR",
	})
	h.project.volumes[v.id] = v
	if s != nil {
		s.volumes = append(s.volumes, v.id)
	}
	a := h.sim.begin(h.project, h.now, "create_volume", hetznerActTakes, nil, resource{"volume", v.id})
	h.send(http.StatusCreated, map[string]any{"volume": h.volume(v), "action": h.action(a), "next_actions": []any{}})
	return nil
}

func (h hetzner) listVolumes() error {
	var all []listed
	for _, v := range sorted(h.project.volumes) {
		all = append(all, listed{
			id: v.id, name: v.name, labels: v.labels, created: v.created, has: map[string]string{"status": "available"},
			show: func() any { return h.volume(v) },
		})
	}
	return h.list("volumes", all)
}

func (h hetzner) findVolume() (*volume, error) {
	if v := h.project.volumes[h.pathID()]; v != nil {
		return v, nil
	}
	return nil, hetznerNotFound("volume", h.r.PathValue("id"))
}

func (h hetzner) getVolume() error {
	v, err := h.findVolume()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"volume": h.volume(v)})
	return nil
}

func (h hetzner) deleteVolume() error {
	v, err := h.findVolume()
	if err != nil {
		return err
	}
	if v.protected {
		return hetznerFail(http.StatusForbidden, "protected", "volume deletion is protected")
	}
	if v.server != nil {
		return hetznerFail(http.StatusConflict, "resource_in_use", "volume is attached to a server")
	}
	delete(h.project.volumes, v.id)
	v.entry.DeletedAt = h.now
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h hetzner) checkVolumeName(name string) error {
	if name == "" || len(name) > 64 {
		return hetznerField("name", "must have from 1 to 64 characters")
	}
	if slices.ContainsFunc(sorted(h.project.volumes), func(v *volume) bool { return v.name == name }) {
		return hetznerFail(http.StatusConflict, "uniqueness_error", "name is already used")
	}
	return nil
}

func (h hetzner) updateVolume() error {
	v, err := h.findVolume()
	if err != nil {
		return err
	}
	var b struct {
		Name   *string            `json:"name"`
		Labels *map[string]string `json:"labels"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, v.labels)
	if err != nil {
		return err
	}
	if b.Name != nil && *b.Name != v.name {
		if err := h.checkVolumeName(*b.Name); err != nil {
			return err
		}
		v.name = *b.Name
	}
	v.labels = labels
	h.send(http.StatusOK, map[string]any{"volume": h.volume(v)})
	return nil
}

// mayAttach tells whether a volume can go to a server in a location.
func (h hetzner) mayAttach(v *volume, id int64, region string) error {
	switch {
	case v == nil:
		return hetznerNotFound("volume", id)
	case v.server != nil:
		return hetznerFail(http.StatusConflict, "volume_already_attached", "volume is already attached to a server")
	case v.region != region:
		return hetznerField("volumes", "volume is in another location")
	}
	return nil
}

func (h hetzner) actOnVolume() error {
	v, err := h.findVolume()
	if err != nil {
		return err
	}
	var b struct {
		Server int64 `json:"server"`
		Size   int   `json:"size"`
		Delete *bool `json:"delete"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	command := ""
	switch h.r.PathValue("action") {
	case "detach":
		command = "detach_volume"
		h.detach(v)
	case "attach":
		command = "attach_volume"
		s := h.project.servers[b.Server]
		if s == nil {
			return hetznerNotFound("server", b.Server)
		}
		if err := h.mayAttach(v, v.id, s.region); err != nil {
			return err
		}
		v.server, s.volumes = s, append(s.volumes, v.id)
	case "resize":
		command = "resize_volume"
		if b.Size <= v.size || b.Size > hetznerVolumeMax {
			return hetznerField("size", "a volume can only grow")
		}
		v.size, v.entry.Hourly = b.Size, hetznerVolumeHourly(b.Size) // from its beginning: the ledger keeps one price a thing
	case "change_protection":
		command = "change_protection"
		if b.Delete != nil {
			v.protected = *b.Delete
		}
	default:
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	}
	a := h.sim.begin(h.project, h.now, command, hetznerActTakes, nil, resource{"volume", v.id})
	h.send(http.StatusCreated, map[string]any{"action": h.action(a)})
	return nil
}

func (h hetzner) detach(v *volume) {
	if v.server != nil {
		v.server.volumes = slices.DeleteFunc(v.server.volumes, func(id int64) bool { return id == v.id })
		v.server = nil
	}
}
