package cloudsim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Primary IPs.

// attachIP gives a server an address: the one it asked for, or a new one that
// goes with it.
func (h hetzner) attachIP(ip *publicIP, s *server, v6 bool) *publicIP {
	if ip == nil {
		ip = h.newIP("", v6, s.region)
		ip.autoDelete = true
	}
	ip.server, ip.entry.Server = s, itoa(s.id)
	return ip
}

// newIP makes an address. It is billed until it is deleted, whether a server
// has it or not.
func (h hetzner) newIP(name string, v6 bool, region string) *publicIP {
	w, hourly := h.sim.world, 0.0
	ip := &publicIP{id: w.id(hetznerName, "primary ip"), name: name, v6: v6, region: region, labels: map[string]string{}, created: h.now}
	if v6 {
		ip.address = w.ipv6()
	} else {
		ip.address, hourly = w.ipv4(), hetznerIPv4/hoursAMonth*(1+hetznerVAT)
	}
	if name == "" {
		ip.name = fmt.Sprintf("primary_ip-%d", ip.id)
	}
	ip.entry = w.enter(LedgerEntry{
		Provider: hetznerName, Project: h.project.name, Kind: "public-ip", ID: itoa(ip.id), Name: ip.name,
		CreatedAt: h.now, Hourly: hourly, Currency: "EUR",
	})
	h.project.ips[ip.id] = ip
	return ip
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
		ID: ip.id, IP: ip.address, Labels: ip.labels, Name: ip.name, Type: "ipv4", Protection: map[string]bool{"delete": ip.protected},
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
	var all []listed
	for _, ip := range sorted(h.project.ips) {
		all = append(all, listed{
			id: ip.id, name: ip.name, labels: ip.labels, created: ip.created, has: map[string]string{"ip": ip.address},
			show: func() any { return h.primaryIP(ip) },
		})
	}
	return h.list("primary_ips", all)
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
	if b.Name != nil && *b.Name != ip.name {
		if err := h.checkIPName(*b.Name); err != nil {
			return err
		}
		ip.name = *b.Name
	}
	ip.labels = labels
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
	if ip.protected {
		return hetznerFail(http.StatusForbidden, "protected", "primary IP deletion is protected")
	}
	if err := h.unassign(ip); err != nil {
		return err
	}
	delete(h.project.ips, ip.id)
	ip.entry.DeletedAt = h.now
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

// unassign takes an address from its server, which must be off.
func (h hetzner) unassign(ip *publicIP) error {
	s := ip.server
	switch {
	case s == nil:
		return nil
	case s.running != nil:
		return hetznerFail(http.StatusLocked, "locked", "server is locked by another action")
	case s.state != stateOff:
		return hetznerFail(http.StatusUnprocessableEntity, "server_not_stopped", "the server must be powered off")
	}
	if ip.v6 {
		s.ipv6 = nil
	} else {
		s.ipv4 = nil
	}
	ip.server, ip.entry.Server = nil, ""
	return nil
}

func (h hetzner) assign(ip *publicIP, id int64) error {
	s := h.project.servers[id]
	switch {
	case s == nil:
		return hetznerNotFound("server", id)
	case ip.server != nil:
		return hetznerFail(http.StatusConflict, "primary_ip_already_assigned", "primary IP is already assigned")
	case ip.region != s.region:
		return hetznerFail(http.StatusUnprocessableEntity, "primary_ip_datacenter_mismatch", "primary IP is in another location")
	case s.running != nil:
		return hetznerFail(http.StatusLocked, "locked", "server is locked by another action")
	case s.state != stateOff:
		return hetznerFail(http.StatusUnprocessableEntity, "server_not_stopped", "the server must be powered off")
	case ip.v6 && s.ipv6 != nil:
		return hetznerFail(http.StatusConflict, "server_has_ipv6", "the server has an IPv6 already")
	case !ip.v6 && s.ipv4 != nil:
		return hetznerFail(http.StatusConflict, "server_has_ipv4", "the server has an IPv4 already")
	}
	if ip.v6 {
		s.ipv6 = ip
	} else {
		s.ipv4 = ip
	}
	ip.server, ip.entry.Server = s, itoa(s.id)
	return nil
}

func (h hetzner) checkIPName(name string) error {
	if name == "" {
		return hetznerField("name", "must not be empty")
	}
	if slices.ContainsFunc(sorted(h.project.ips), func(ip *publicIP) bool { return ip.name == name }) {
		return hetznerFail(http.StatusConflict, "uniqueness_error", "name is already used")
	}
	return nil
}

func (h hetzner) createPrimaryIP() error {
	var b struct {
		Name         string             `json:"name"`
		Type         string             `json:"type"`
		AssigneeType string             `json:"assignee_type"`
		AssigneeID   *int64             `json:"assignee_id"`
		Labels       *map[string]string `json:"labels"`
		AutoDelete   bool               `json:"auto_delete"`
		Location     idOrName           `json:"location"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	if err := h.checkIPName(b.Name); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	region := hetznerLocationOf(string(b.Location)).Name
	if b.AssigneeID != nil {
		s := h.project.servers[*b.AssigneeID]
		if s == nil {
			return hetznerNotFound("server", *b.AssigneeID)
		}
		region = s.region
	}
	switch {
	case b.Type != "ipv4" && b.Type != "ipv6":
		return hetznerField("type", "must be ipv4 or ipv6")
	case b.AssigneeType != "" && b.AssigneeType != "server":
		return hetznerField("assignee_type", "must be server")
	case region == "":
		return hetznerField("location", "location not found")
	}
	ip := h.newIP(b.Name, b.Type == "ipv6", region)
	ip.labels, ip.autoDelete = labels, b.AutoDelete
	var assigned *hetznerAction
	if b.AssigneeID != nil {
		if err := h.assign(ip, *b.AssigneeID); err != nil {
			delete(h.project.ips, ip.id)
			ip.entry.DeletedAt = h.now
			return err
		}
		a := h.action(h.sim.begin(h.project, h.now, "assign_primary_ip", hetznerActTakes, nil, resource{"primary_ip", ip.id}, resource{"server", *b.AssigneeID}))
		assigned = &a
	}
	h.send(http.StatusCreated, map[string]any{"primary_ip": h.primaryIP(ip), "action": assigned})
	return nil
}

func (h hetzner) actOnPrimaryIP() error {
	ip, err := h.findPrimaryIP()
	if err != nil {
		return err
	}
	var b struct {
		AssigneeID int64 `json:"assignee_id"`
		Delete     *bool `json:"delete"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	command := map[string]string{"assign": "assign_primary_ip", "unassign": "unassign_primary_ip", "change_protection": "change_protection"}[h.r.PathValue("action")]
	switch command {
	case "":
		return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
	case "assign_primary_ip":
		err = h.assign(ip, b.AssigneeID)
	case "unassign_primary_ip":
		err = h.unassign(ip)
	default:
		if b.Delete != nil {
			ip.protected = *b.Delete
		}
	}
	if err != nil {
		return err
	}
	h.send(http.StatusCreated, map[string]any{"action": h.action(h.sim.begin(h.project, h.now, command, hetznerActTakes, nil, resource{"primary_ip", ip.id}))})
	return nil
}
