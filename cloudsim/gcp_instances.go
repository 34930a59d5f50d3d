package cloudsim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Instances: the create.

// How long things take, in simulated time, and how much there may be.
const (
	gcpStagedTakes = 2 * time.Second // until it has a place and an address
	gcpPowerTakes  = 4 * time.Second // until the power is on
	gcpInsertTakes = 8 * time.Second // until the create is DONE
	gcpRefuseTakes = 2 * time.Second // until it is known that there is no quota
	gcpDeleteTakes = 20 * time.Second
	gcpStopTakes   = 10 * time.Second
	gcpActTakes    = 2 * time.Second

	gcpValueLimit    = 256 << 10
	gcpMetadataLimit = 512 << 10
)

const gcpExhausted = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"

func (g gcp) insertInstance(t *gcpThing) error {
	zone := t.zone()
	if zone == gcpDownZone {
		return gcpFail(http.StatusServiceUnavailable, "backendError", "The zone '%s' is not available.", zone)
	}
	kind, err := g.checkType(t)
	if err != nil {
		return err
	}
	t.machine = kind
	data, err := gcpCheckMetadata(t.props["metadata"])
	if err != nil {
		return err
	}
	if err := gcpCheckInstanceTags(t.props); err != nil {
		return err
	}
	if err := gcpCheckScheduling(t); err != nil {
		return err
	}
	if err := g.checkInterfaces(t); err != nil {
		return err
	}
	disks, err := g.checkDisks(t)
	if err != nil {
		return err
	}
	if metric, region, limit, over := g.account.exceeded(t); over {
		dimension := map[string]any{}
		if region != "" {
			dimension["region"] = region
		}
		return g.start("insert", t, gcpRefuseTakes, func(time.Time) *gcpOpFailure {
			return &gcpOpFailure{
				status: http.StatusForbidden, code: "QUOTA_EXCEEDED", message: gcpQuotaText(metric, region, limit),
				details: []any{map[string]any{"quotaInfo": map[string]any{
					"metricName": "compute.googleapis.com/" + strings.ToLower(metric), "limitName": metric, "dimensions": dimension, "limit": limit,
				}}},
			}
		})
	}
	return g.makeInstance(t, disks, data)
}

func (g gcp) checkType(t *gcpThing) (gcpType, error) {
	ref := textOf(t.props, "machineType")
	_, parts := gcpRef(ref)
	name := parts[len(parts)-1]
	if len(parts) != 4 || parts[0] != "zones" || parts[2] != "machineTypes" {
		return gcpType{}, gcpInvalid("resource.machineType", ref, "The URL is malformed.")
	}
	if parts[1] != t.zone() {
		return gcpType{}, gcpInvalid("resource.machineType", ref, "The machine type is in another zone than the instance.")
	}
	kind, ok := gcpTypeOf(name, t.zone())
	if !ok {
		return kind, gcpInvalid("resource.machineType", gcpHost+"projects/"+g.account.project+"/"+strings.Join(parts, "/"), "Machine type with name '%s' does not exist in zone '%s'.", name, t.zone())
	}
	return kind, nil
}

// gcpCheckMetadata checks the metadata, and returns the user-data as the guest
// gets it.
func gcpCheckMetadata(v any) ([]byte, error) {
	metadata, _ := v.(map[string]any)
	values := map[string]string{}
	total := 0
	for i, item := range listOf(metadata, "items") {
		key, value := textOf(item, "key"), textOf(item, "value")
		field := fmt.Sprintf("resource.metadata.items[%d]", i)
		if _, twice := values[key]; twice {
			return nil, gcpInvalid("resource.metadata", key, "Metadata has duplicate keys: %s", key)
		}
		if key == "" || len(key) >= 128 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			return nil, gcpInvalid(field+".key", key, "Must be a match of regex '[a-zA-Z0-9-_]{1,128}'")
		}
		if len(value) > gcpValueLimit {
			return nil, gcpInvalid(field+".value", value[:20]+"…", "Value is too large: maximum size 262144 character(s); actual size %d.", len(value))
		}
		total += len(key) + len(value)
		values[key] = value
	}
	if total > gcpMetadataLimit {
		return nil, gcpInvalid("resource.metadata", "", "Metadata is too large: maximum size 524288 bytes; actual size %d.", total)
	}
	data := []byte(values["user-data"])
	if values["user-data-encoding"] == "base64" {
		if decoded, err := base64.StdEncoding.DecodeString(values["user-data"]); err == nil {
			data = decoded
		}
	}
	return data, nil
}

func gcpCheckInstanceTags(p map[string]any) error {
	tags, _ := valueOf(p, "tags", "items").([]any)
	if len(tags) > 64 {
		return gcpInvalid("resource.tags", "", "At most 64 tags are allowed.")
	}
	for i, v := range tags {
		if text, _ := v.(string); !gcpResourceName.MatchString(text) {
			return gcpInvalid(fmt.Sprintf("resource.tags.items[%d]", i), text, gcpNamePattern)
		}
	}
	return nil
}

func gcpCheckScheduling(t *gcpThing) error {
	s, _ := t.props["scheduling"].(map[string]any)
	if t.machine.gpu != "" && textOf(s, "onHostMaintenance") != "TERMINATE" {
		return gcpFail(http.StatusBadRequest, "badRequest", "[%s] features are not compatible for creating instance: Instances with guest accelerators do not support live migration.", t.machine.name)
	}
	return nil
}

func (g gcp) checkInterfaces(t *gcpThing) error {
	nics := listOf(t.props, "networkInterfaces")
	if len(nics) == 0 {
		return gcpInvalid("resource.networkInterfaces", "", "At least one network interface is required.")
	}
	for i, nic := range nics {
		field := fmt.Sprintf("resource.networkInterfaces[%d]", i)
		network, subnet := g.account.interfaceOf(nic, t.region())
		auto := false
		if network != nil {
			auto, _ = network.props["autoCreateSubnetworks"].(bool)
		}
		switch {
		case network == nil && textOf(nic, "subnetwork") != "":
			return gcpInvalid(field+".subnetwork", textOf(nic, "subnetwork"), "The referenced subnetwork resource cannot be found.")
		case network == nil:
			return gcpInvalid(field+".network", textOf(nic, "network"), "The referenced network resource cannot be found.")
		case !network.ready:
			return gcpFail(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", g.account.pathOf(network))
		case subnet == nil && (auto || network.props["IPv4Range"] == nil):
			return gcpInvalid(field, textOf(nic, "network"), "Network interface must specify a subnet if the network resource is in custom subnet mode.")
		}
		for _, access := range listOf(nic, "accessConfigs") {
			if kind := textOf(access, "type"); kind != "" && kind != "ONE_TO_ONE_NAT" {
				return gcpInvalid(field+".accessConfigs[0].type", kind, "Must be ONE_TO_ONE_NAT.")
			}
			if ip := textOf(access, "natIP"); ip != "" {
				address := g.account.addressOf(ip)
				if address == nil || address.region() != t.region() {
					return gcpInvalid(field+".accessConfigs[0].natIP", ip, "The specified external IP address '%s' was not found in region '%s'.", ip, t.region())
				}
				if address.user != nil {
					return gcpFail(http.StatusBadRequest, "externalIpAddressInUse", "External IP address: %s is already in-use.", ip)
				}
			}
		}
	}
	return nil
}

func (a *gcpAccount) addressOf(ip string) *gcpThing {
	for _, t := range a.order {
		if t.kind == gcpAddresses && textOf(t.props, "address") == ip {
			return t
		}
	}
	return nil
}

// gcpNewDisk is a disk that has been checked, and its size.
type gcpNewDisk struct {
	*gcpThing
	gb int64
}

// checkDisks returns the disks to make; the first one boots.
func (g gcp) checkDisks(t *gcpThing) ([]gcpNewDisk, error) {
	specs := listOf(t.props, "disks")
	if boot, _ := first(specs)["boot"].(bool); !boot {
		return nil, gcpInvalid("resource.disks", "", "Boot disk must be the first disk attached to the instance.")
	}
	var disks []gcpNewDisk
	for i, spec := range specs {
		field := fmt.Sprintf("resource.disks[%d].initializeParams", i)
		params, ok := spec["initializeParams"].(map[string]any)
		if !ok {
			return nil, gcpInvalid(fmt.Sprintf("resource.disks[%d].source", i), textOf(spec, "source"), "Only new disks can be attached to a new instance here.")
		}
		name := textOf(params, "diskName")
		if name == "" {
			name = t.name
			if i > 0 {
				name = fmt.Sprintf("%s-%d", t.name, i)
			}
		}
		if !gcpResourceName.MatchString(name) {
			return nil, gcpInvalid(field+".diskName", name, gcpNamePattern)
		}
		image, known := gcpImageOf(textOf(params, "sourceImage"))
		if err := gcpCheckLabels(field+".labels", params["labels"]); err != nil {
			return nil, err
		}
		gb, err := gcpDiskSize(field+".diskSizeGb", params["diskSizeGb"], max(image.gb, 10))
		switch {
		case err != nil:
			return nil, err
		case !known && textOf(params, "sourceImage") != "":
			return nil, gcpMissing(strings.TrimPrefix(textOf(params, "sourceImage"), gcpHost))
		case !known && i == 0:
			return nil, gcpInvalid(field+".sourceImage", "", "A boot disk needs an image.")
		case known && image.arch != t.machine.series.arch:
			return nil, gcpFail(http.StatusBadRequest, "badRequest", "The image's architecture %s is not compatible with the architecture %s of the machine type %s.", image.arch, t.machine.series.arch, t.machine.name)
		case g.account.find(t.scope, gcpDisks, name) != nil:
			return nil, gcpFail(http.StatusConflict, "alreadyExists", "The resource '%s' already exists", g.account.path(t.scope, "disks", name))
		}
		kind, err := gcpDiskType(field, textOf(params, "diskType"), t.machine)
		if err != nil {
			return nil, err
		}
		props := map[string]any{"type": kind, "sourceImage": textOf(params, "sourceImage")}
		if labels, has := params["labels"]; has {
			props["labels"] = labels
		}
		auto, _ := spec["autoDelete"].(bool)
		disks = append(disks, gcpNewDisk{&gcpThing{kind: gcpDisks, scope: t.scope, name: name, created: g.now, props: props, autoDelete: auto}, gb})
	}
	return disks, nil
}

func first(list []map[string]any) map[string]any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// gcpDiskType is what a series starts from, when nothing was said.
func gcpDiskType(field, ref string, m gcpType) (string, error) {
	if ref == "" {
		switch {
		case m.series.hyperdisk:
			return "hyperdisk-balanced", nil
		case m.series.name == "c3":
			return "pd-balanced", nil
		}
		return "pd-standard", nil
	}
	kind := gcpLast(ref)
	switch {
	case !strings.Contains(ref, "/"):
		return "", gcpInvalid(field+".diskType", ref, "The URL is malformed.")
	case !slices.Contains([]string{"hyperdisk-balanced", "pd-balanced", "pd-ssd", "pd-standard"}, kind):
		return "", gcpInvalid(field+".diskType", ref, "The referenced diskType resource cannot be found.")
	case m.series.hyperdisk != strings.HasPrefix(kind, "hyperdisk-"):
		return "", gcpFail(http.StatusBadRequest, "badRequest", "[%s] features are not compatible with the machine type %s.", kind, m.name)
	}
	return kind, nil
}

// makeInstance makes what the description says, and lets it start.
func (g gcp) makeInstance(t *gcpThing, disks []gcpNewDisk, data []byte) error {
	w := g.sim.world
	labels := map[string]string{}
	sent, _ := t.props["labels"].(map[string]any)
	for k, v := range sent {
		labels[k], _ = v.(string)
	}
	s := &server{
		id: t.id, ref: t.zone() + "/" + t.name, project: g.project, name: t.name, size: t.machine.name, region: t.zone(),
		arch: map[string]string{"X86_64": "x86", "ARM64": "arm"}[t.machine.series.arch], userData: data, labels: labels, created: g.now, state: stateInitializing,
	}
	s.entry = w.enter(LedgerEntry{
		Provider: gcpName, Project: g.project.name, Kind: "server", ID: s.ref, Name: t.name, CreatedAt: g.now, Hourly: t.machine.hourly(t.region()), Currency: "USD",
	})
	t.server, t.private = s, fmt.Sprintf("10.132.%d.%d", s.id>>8&255, 2+s.id%250)
	g.project.servers[s.id] = s
	g.sim.bootFaults(s)
	t.hidden = s.hiddenUntil
	g.account.keep(t)
	for _, d := range disks {
		d.id = w.id(gcpName, gcpDisks.title)
		g.makeDisk(d.gcpThing, d.gb, t)
		t.disks = append(t.disks, d.gcpThing)
	}
	late, takes := s.lateFailure, gcpInsertTakes
	if late == nil && slices.Contains(t.machine.series.soldOut, t.zone()) {
		late = &Fault{}
	}
	if late != nil {
		takes = max(time.Duration(late.Delay), gcpPowerTakes)
	}
	alive := func() bool { return g.account.has(t) && s.state == stateInitializing }
	g.sim.after(g.now, gcpStagedTakes, func(now time.Time) {
		if alive() && late == nil {
			t.staged = true
			g.giveAddress(t, now)
		}
	})
	g.sim.after(g.now, gcpPowerTakes, func(now time.Time) {
		if alive() && late == nil {
			g.power(t, now)
		}
	})
	return g.start("insert", t, takes, func(now time.Time) *gcpOpFailure {
		if late == nil || !alive() {
			return nil
		}
		return g.giveUp(t, late, now)
	})
}

// giveAddress gives an instance the address that is its own until it stops.
func (g gcp) giveAddress(t *gcpThing, now time.Time) {
	access := first(listOf(first(listOf(t.props, "networkInterfaces")), "accessConfigs"))
	if access == nil {
		return
	}
	if ip := textOf(access, "natIP"); ip != "" {
		if address := g.account.addressOf(ip); address != nil {
			address.user, address.entry.Server = t, t.server.ref
			t.server.ipv4 = &publicIP{address: ip, server: t.server}
		}
		return
	}
	ip := &publicIP{address: g.sim.world.ipv4(), server: t.server, region: t.server.region, created: now}
	ip.entry = g.sim.world.enter(LedgerEntry{
		Provider: gcpName, Project: g.project.name, Kind: "public-ip", ID: ip.address, Name: t.name, Server: t.server.ref, CreatedAt: now,
		Hourly: gcpIPv4Hourly, Currency: "USD",
	})
	t.server.ipv4 = ip
}

// giveUp ends a create that was accepted: the instance is gone again, as if it
// had never been there; its disk may be forgotten.
func (g gcp) giveUp(t *gcpThing, why *Fault, now time.Time) *gcpOpFailure {
	g.end(t, now)
	f := &gcpOpFailure{status: http.StatusServiceUnavailable, code: why.Code, message: why.Message}
	if f.code == "" {
		f.code = gcpExhausted
	}
	if f.message == "" {
		f.message = fmt.Sprintf("The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the request.  '(resource type:compute)'.", g.account.project, t.zone())
	}
	switch {
	case strings.Contains(f.code, "QUOTA"):
		f.status = http.StatusForbidden
	case strings.Contains(f.code, "INVALID") || strings.Contains(f.code, "UNSUPPORTED"):
		f.status = http.StatusBadRequest
	case f.code == gcpExhausted:
		f.details = []any{map[string]any{"errorInfo": map[string]any{
			"reason": "resource_availability", "domain": "compute.googleapis.com",
			"metadatas": map[string]any{"vmType": t.machine.name, "zone": t.zone(), "attachment": "", "zonesAvailable": strings.Join(t.elsewhere(), ",")},
		}}}
	}
	return f
}

// elsewhere are the other zones of the region that have what is lacking.
func (t *gcpThing) elsewhere() []string {
	var zones []string
	for _, z := range gcpZones() {
		if gcpRegionOf(z) == t.region() && z != t.zone() && z != gcpDownZone && !slices.Contains(t.machine.series.soldOut, z) {
			zones = append(zones, z)
		}
	}
	return zones
}
