package cloudsim

import (
	"crypto/md5" //nolint:gosec // the API's fingerprint of an SSH key is MD5
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// SSH keys, primary IPs and volumes.

func (h hetzner) sshKey(k *sshKey) any {
	return map[string]any{"id": k.id, "name": k.name, "fingerprint": k.fingerprint, "public_key": k.text, "labels": k.labels, "created": k.created}
}

// sshFingerprint is the MD5 of the key in the text, in pairs.
func sshFingerprint(text string) (string, error) {
	parts := strings.Fields(text)
	if len(parts) < 2 {
		return "", fmt.Errorf("is not a public key")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil || len(raw) < 16 || !slices.Contains([]string{"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "sk-ssh-ed25519@openssh.com"}, parts[0]) {
		return "", fmt.Errorf("is not a public key")
	}
	sum := md5.Sum(raw) //nolint:gosec // as above
	var pairs []string
	for _, b := range sum {
		pairs = append(pairs, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, ":"), nil
}

func (h hetzner) createSSHKey() error {
	var b struct {
		Name   string             `json:"name"`
		Text   string             `json:"public_key"`
		Labels *map[string]string `json:"labels"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	if b.Name == "" {
		return hetznerField("name", "must not be empty")
	}
	print, err := sshFingerprint(b.Text)
	if err != nil {
		return hetznerField("public_key", err.Error())
	}
	for _, k := range sorted(h.project.keys) {
		if k.fingerprint == print || k.name == b.Name {
			return hetznerFail(http.StatusConflict, "uniqueness_error", "SSH key not unique")
		}
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	k := &sshKey{id: h.sim.world.id(hetznerName, "ssh key"), name: b.Name, fingerprint: print, text: strings.TrimSpace(b.Text), labels: labels, created: h.now}
	h.project.keys[k.id] = k
	h.send(http.StatusCreated, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) listSSHKeys() error {
	sel, err := h.selector()
	if err != nil {
		return err
	}
	q := h.r.URL.Query()
	var all []any
	for _, k := range sorted(h.project.keys) {
		if (q.Get("name") == "" || q.Get("name") == k.name) && (q.Get("fingerprint") == "" || q.Get("fingerprint") == k.fingerprint) && selects(sel, k.labels) {
			all = append(all, h.sshKey(k))
		}
	}
	return h.page("ssh_keys", all)
}

func (h hetzner) findSSHKey() (*sshKey, error) {
	if k := h.project.keys[h.pathID()]; k != nil {
		return k, nil
	}
	return nil, hetznerNotFound("ssh_key", h.r.PathValue("id"))
}

func (h hetzner) getSSHKey() error {
	k, err := h.findSSHKey()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) updateSSHKey() error {
	k, err := h.findSSHKey()
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
	labels, err := hetznerLabels(b.Labels, k.labels)
	if err != nil {
		return err
	}
	if b.Name != nil {
		k.name = *b.Name
	}
	k.labels = labels
	h.send(http.StatusOK, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) deleteSSHKey() error {
	k, err := h.findSSHKey()
	if err != nil {
		return err
	}
	delete(h.project.keys, k.id)
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

type hetznerPrimaryIP struct {
	ID           int64             `json:"id"`
	IP           string            `json:"ip"`
	Labels       map[string]string `json:"labels"`
	Name         string            `json:"name"`
	Type         string            `json:"type"`
	Protection   map[string]bool   `json:"protection"`
	DNSPtr       []hetznerDNS      `json:"dns_ptr"`
	AssigneeID   *int64            `json:"assignee_id"`
	AssigneeType string            `json:"assignee_type"`
	AutoDelete   bool              `json:"auto_delete"`
	Blocked      bool              `json:"blocked"`
	Created      time.Time         `json:"created"`
	Location     hetznerLocation   `json:"location"`
}

func (h hetzner) primaryIP(ip *publicIP) hetznerPrimaryIP {
	o := hetznerPrimaryIP{
		ID: ip.id, IP: ip.address, Labels: ip.labels, Name: ip.name, Type: "ipv4", Protection: map[string]bool{"delete": false},
		DNSPtr: []hetznerDNS{}, AssigneeType: "server", AutoDelete: ip.autoDelete, Created: ip.created, Location: hetznerLocationOf(ip.region),
	}
	if ip.v6 {
		o.Type = "ipv6"
	} else {
		o.DNSPtr = append(o.DNSPtr, hetznerDNS{IP: ip.address, DNSPtr: hetznerPtr(ip.address)})
	}
	if ip.server != nil {
		o.AssigneeID = &ip.server.id
	}
	return o
}

func (h hetzner) listPrimaryIPs() error {
	sel, err := h.selector()
	if err != nil {
		return err
	}
	q := h.r.URL.Query()
	var all []any
	for _, ip := range sorted(h.project.ips) {
		if (q.Get("name") == "" || q.Get("name") == ip.name) && (q.Get("ip") == "" || q.Get("ip") == ip.address) && selects(sel, ip.labels) {
			all = append(all, h.primaryIP(ip))
		}
	}
	return h.page("primary_ips", all)
}

func (h hetzner) findPrimaryIP() (*publicIP, error) {
	if ip := h.project.ips[h.pathID()]; ip != nil {
		return ip, nil
	}
	return nil, hetznerNotFound("primary_ip", h.r.PathValue("id"))
}

func (h hetzner) getPrimaryIP() error {
	ip, err := h.findPrimaryIP()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"primary_ip": h.primaryIP(ip)})
	return nil
}

func (h hetzner) updatePrimaryIP() error {
	ip, err := h.findPrimaryIP()
	if err != nil {
		return err
	}
	var b struct {
		Name       *string            `json:"name"`
		Labels     *map[string]string `json:"labels"`
		AutoDelete *bool              `json:"auto_delete"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, ip.labels)
	if err != nil {
		return err
	}
	ip.labels = labels
	if b.Name != nil {
		ip.name = *b.Name
	}
	if b.AutoDelete != nil {
		ip.autoDelete = *b.AutoDelete
	}
	h.send(http.StatusOK, map[string]any{"primary_ip": h.primaryIP(ip)})
	return nil
}

func (h hetzner) deletePrimaryIP() error {
	ip, err := h.findPrimaryIP()
	if err != nil {
		return err
	}
	if ip.server != nil {
		return hetznerFail(http.StatusConflict, "primary_ip_assigned", "primary IP is assigned to a server")
	}
	delete(h.project.ips, ip.id)
	ip.entry.DeletedAt = h.now
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

// hetznerGB is the net price of a GB of volume a month.
const hetznerGB = 0.044

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
		"format": format, "protection": map[string]bool{"delete": false}, "labels": v.labels,
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
	if b.Server != nil {
		if s = h.project.servers[*b.Server]; s == nil {
			return hetznerNotFound("server", *b.Server)
		}
		region = s.region
	}
	switch {
	case b.Name == "":
		return hetznerField("name", "must not be empty")
	case b.Size < 10 || b.Size > 10240:
		return hetznerField("size", "must be from 10 to 10240")
	case hetznerLocationOf(region).ID == 0:
		return hetznerField("location", "location not found")
	}
	v := &volume{id: h.sim.world.id(hetznerName, "volume"), name: b.Name, size: b.Size, format: b.Format, server: s, region: hetznerLocationOf(region).Name, labels: labels, created: h.now}
	v.entry = h.sim.world.enter(LedgerEntry{
		Provider: hetznerName, Project: h.project.name, Kind: "volume", ID: itoa(v.id), Name: v.name, CreatedAt: h.now,
		Hourly: float64(v.size) * hetznerGB / hoursAMonth * (1 + hetznerVAT), Currency: "EUR",
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
	sel, err := h.selector()
	if err != nil {
		return err
	}
	var all []any
	for _, v := range sorted(h.project.volumes) {
		if n := h.r.URL.Query().Get("name"); (n == "" || n == v.name) && selects(sel, v.labels) {
			all = append(all, h.volume(v))
		}
	}
	return h.page("volumes", all)
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
	if v.server != nil {
		return hetznerFail(http.StatusConflict, "resource_in_use", "volume is attached to a server")
	}
	delete(h.project.volumes, v.id)
	v.entry.DeletedAt = h.now
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h hetzner) actOnVolume() error {
	v, err := h.findVolume()
	if err != nil {
		return err
	}
	if h.r.PathValue("action") != "detach" {
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	}
	if v.server != nil {
		v.server.volumes = slices.DeleteFunc(v.server.volumes, func(id int64) bool { return id == v.id })
		v.server = nil
	}
	a := h.sim.begin(h.project, h.now, "detach_volume", hetznerActTakes, nil, resource{"volume", v.id})
	h.send(http.StatusCreated, map[string]any{"action": h.action(a)})
	return nil
}
