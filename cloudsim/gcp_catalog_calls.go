package cloudsim

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The calls that tell what is offered.

type gcpCatalogCall struct {
	pattern, name string
	do            func(gcp) error
}

func gcpCatalogCalls() []gcpCatalogCall {
	return []gcpCatalogCall{
		{"GET ", "get project", gcp.getProject},
		{"GET /regions", "list regions", gcp.listRegions},
		{"GET /regions/{region}", "get region", gcp.getRegion},
		{"GET /zones", "list zones", gcp.listZones},
		{"GET /zones/{zone}", "get zone", gcp.getZone},
		{"GET /zones/{zone}/machineTypes", "list sizes", gcp.listTypes},
		{"GET /zones/{zone}/machineTypes/{name}", "get size", gcp.getType},
		{"GET /aggregated/machineTypes", "list sizes", gcp.aggregateTypes},
		{"GET /zones/{zone}/diskTypes", "list disk types", gcp.listDiskTypes},
		{"GET /global/images", "list images", gcp.listImages},
		{"GET /global/images/family/{name}", "get image", gcp.getImage},
		{"GET /global/images/{name}", "get image", gcp.getImage},
	}
}

// gcpNumber is a stable number of something that has no other.
func gcpNumber(of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // cannot fail
	return strconv.FormatUint(uint64(h.Sum32()), 10)
}

const gcpLongAgo = "1969-12-31T16:00:00.000-08:00"

func (g gcp) url(path string) string { return gcpHost + "projects/" + g.account.project + "/" + path }

// checkScope refuses a zone or region that does not exist.
func (g gcp) checkScope() error {
	zone, region := g.r.PathValue("zone"), g.r.PathValue("region")
	if zone != "" && gcpRegionOf(zone) == "" {
		return gcpInvalid("zone", zone, "Unknown zone.")
	}
	if _, ok := gcpRegionNamed(region); region != "" && !ok {
		return gcpInvalid("region", region, "Unknown region.")
	}
	return nil
}

func (g gcp) quotas(limits map[string]int, region string) []any {
	var all []any
	for _, metric := range sortedKeys(limits) {
		all = append(all, map[string]any{"metric": metric, "limit": float64(limits[metric]), "usage": g.account.usage(metric, region)})
	}
	return all
}

func (g gcp) getProject() error {
	if g.r.PathValue("project") == gcpImageProject {
		return gcpFail(http.StatusForbidden, "forbidden", "Required 'compute.projects.get' permission for 'projects/%s'", gcpImageProject)
	}
	g.send(map[string]any{
		"kind": "compute#project", "id": itoa(g.account.number), "name": g.account.project, "creationTimestamp": gcpLongAgo,
		"commonInstanceMetadata": map[string]any{"kind": "compute#metadata", "fingerprint": "c2ltdWxhdGVk"},
		"quotas":                 g.quotas(gcpProjectQuotas(), ""), "selfLink": gcpHost + "projects/" + g.account.project,
		"defaultServiceAccount": fmt.Sprintf("%d-compute@developer.gserviceaccount.com", g.account.number),
		"xpnProjectStatus":      "UNSPECIFIED_XPN_PROJECT_STATUS", "defaultNetworkTier": "PREMIUM", "vmDnsSetting": "ZONAL_ONLY",
	})
	return nil
}

func (g gcp) region(r gcpRegion) map[string]any {
	var zones []any
	for _, letter := range r.zones {
		zones = append(zones, g.url("zones/"+r.name+"-"+string(letter)))
	}
	return map[string]any{
		"kind": "compute#region", "id": gcpNumber(r.name), "creationTimestamp": gcpLongAgo, "name": r.name, "description": r.name, "status": "UP",
		"zones": zones, "quotas": g.quotas(gcpRegionQuotas(), r.name), "selfLink": g.url("regions/" + r.name), "supportsPzs": false,
	}
}

func (g gcp) listRegions() error {
	var rows []gcpRow
	for _, r := range gcpRegions() {
		rows = append(rows, gcpRow{"", g.region(r)})
	}
	return g.page("compute#regionList", rows)
}

func (g gcp) getRegion() error {
	r, ok := gcpRegionNamed(g.r.PathValue("region"))
	if !ok {
		return gcpMissing("projects/" + g.account.project + "/regions/" + g.r.PathValue("region"))
	}
	g.send(g.region(r))
	return nil
}

func (g gcp) zone(name string) map[string]any {
	status := "UP"
	if name == gcpDownZone {
		status = "DOWN"
	}
	return map[string]any{
		"kind": "compute#zone", "id": gcpNumber(name), "creationTimestamp": gcpLongAgo, "name": name, "description": name, "status": status,
		"region": g.url("regions/" + gcpRegionOf(name)), "selfLink": g.url("zones/" + name),
		"availableCpuPlatforms": []any{"Intel Skylake", "Intel Cascade Lake", "AMD Milan"}, "supportsPzs": false,
	}
}

func (g gcp) listZones() error {
	var rows []gcpRow
	for _, z := range gcpZones() {
		rows = append(rows, gcpRow{"", g.zone(z)})
	}
	return g.page("compute#zoneList", rows)
}

func (g gcp) getZone() error {
	zone := g.r.PathValue("zone")
	if gcpRegionOf(zone) == "" {
		return gcpMissing("projects/" + g.account.project + "/zones/" + zone)
	}
	g.send(g.zone(zone))
	return nil
}

func (g gcp) machineType(t gcpType, zone string) map[string]any {
	out := map[string]any{
		"kind": "compute#machineType", "id": gcpNumber(t.name), "creationTimestamp": gcpLongAgo, "name": t.name,
		"description": fmt.Sprintf("%d vCPUs, %g GB RAM", t.cores, t.gib), "guestCpus": t.cores, "memoryMb": int(math.Round(t.gib * 1024)), "imageSpaceGb": 0,
		"maximumPersistentDisks": 128, "maximumPersistentDisksSizeGb": "263168", "zone": zone, "isSharedCpu": t.shared, "architecture": t.series.arch,
		"selfLink": g.url("zones/" + zone + "/machineTypes/" + t.name),
	}
	if t.gpu != "" {
		out["accelerators"] = []any{map[string]any{"guestAcceleratorType": t.gpu, "guestAcceleratorCount": 1}}
	}
	if t.obsolete {
		out["deprecated"] = map[string]any{"state": "DEPRECATED", "replacement": g.url("zones/" + zone + "/machineTypes/e2-micro")}
	}
	return out
}

func (g gcp) typesIn(zone string) []gcpRow {
	var rows []gcpRow
	types := gcpTypes()
	slices.SortFunc(types, func(a, b gcpType) int { return strings.Compare(a.name, b.name) })
	for _, t := range types {
		if !slices.Contains(t.series.absent, gcpRegionOf(zone)) {
			rows = append(rows, gcpRow{"zones/" + zone, g.machineType(t, zone)})
		}
	}
	return rows
}

func (g gcp) listTypes() error {
	if err := g.checkScope(); err != nil {
		return err
	}
	return g.page("compute#machineTypeList", g.typesIn(g.r.PathValue("zone")))
}

func (g gcp) getType() error {
	zone, name := g.r.PathValue("zone"), g.r.PathValue("name")
	t, ok := gcpTypeOf(name, zone)
	if !ok {
		return gcpMissing("projects/" + g.account.project + "/zones/" + zone + "/machineTypes/" + name)
	}
	g.send(g.machineType(t, zone))
	return nil
}

func (g gcp) aggregateTypes() error {
	var rows []gcpRow
	for _, z := range gcpZones() {
		rows = append(rows, g.typesIn(z)...)
	}
	return g.aggregated("compute#machineTypeAggregatedList", "machineTypes", gcpScopesOf(gcpZonal), rows)
}

func (g gcp) listDiskTypes() error {
	if err := g.checkScope(); err != nil {
		return err
	}
	zone := g.r.PathValue("zone")
	var rows []gcpRow
	for _, name := range []string{"hyperdisk-balanced", "pd-balanced", "pd-ssd", "pd-standard"} {
		rows = append(rows, gcpRow{"", map[string]any{
			"kind": "compute#diskType", "id": gcpNumber(name), "creationTimestamp": gcpLongAgo, "name": name, "description": name, "validDiskSize": "10GB-65536GB",
			"zone": g.url("zones/" + zone), "selfLink": g.url("zones/" + zone + "/diskTypes/" + name), "defaultDiskSizeGb": "500",
		}})
	}
	return g.page("compute#diskTypeList", rows)
}

func gcpShowImage(i gcpImage) map[string]any {
	return map[string]any{
		"kind": "compute#image", "id": gcpNumber(i.name), "creationTimestamp": "2026-11-24T03:00:00.000-08:00", "name": i.name, "family": i.family,
		"description": "Canonical, Ubuntu, " + i.family, "sourceType": "RAW", "status": "READY", "archiveSizeBytes": "1000000000",
		"diskSizeGb": itoa(i.gb), "architecture": i.arch, "selfLink": gcpHost + "projects/" + gcpImageProject + "/global/images/" + i.name,
		"guestOsFeatures":  []any{map[string]any{"type": "VIRTIO_SCSI_MULTIQUEUE"}, map[string]any{"type": "UEFI_COMPATIBLE"}, map[string]any{"type": "GVNIC"}},
		"labelFingerprint": gcpFingerprint(nil),
	}
}

func (g gcp) listImages() error {
	var rows []gcpRow
	if g.r.PathValue("project") == gcpImageProject {
		for _, i := range gcpImages() {
			rows = append(rows, gcpRow{"", gcpShowImage(i)})
		}
	}
	return g.page("compute#imageList", rows)
}

func (g gcp) getImage() error {
	path := gcpListID(g.r.URL.Path)
	i, ok := gcpImageOf(path)
	if !ok {
		return gcpMissing(path)
	}
	g.send(gcpShowImage(i))
	return nil
}

// testPermissions is Resource Manager's projects.testIamPermissions.
func (g gcp) testPermissions() error {
	body, err := g.read()
	if err != nil {
		return err
	}
	asked, _ := body["permissions"].([]any)
	var has []any
	for _, p := range asked {
		name, _ := p.(string)
		if !g.token.readOnly || strings.HasSuffix(name, ".get") || strings.HasSuffix(name, ".list") {
			has = append(has, p)
		}
	}
	out := map[string]any{}
	if has != nil {
		out["permissions"] = has
	}
	g.send(out)
	return nil
}

const gcpComputeService = "6F81-5844-456A"

// gcpSKU is a row of Cloud Billing's catalogue.
func gcpSKU(description, region, unit, usage string, price float64) map[string]any {
	units, nanos := math.Modf(price)
	id := strings.ToUpper(gcpNumber(description + region + usage))
	return map[string]any{
		"name": "services/" + gcpComputeService + "/skus/" + id, "skuId": id, "description": description,
		"category":       map[string]any{"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute", "resourceGroup": "CPU", "usageType": usage},
		"serviceRegions": []any{region}, "serviceProviderName": "Google",
		"pricingInfo": []any{map[string]any{
			"effectiveTime": "2026-11-30T08:00:00Z", "summary": "",
			"pricingExpression": map[string]any{
				"usageUnit": unit, "displayQuantity": 1, "baseUnit": "s", "baseUnitConversionFactor": 3600,
				"tieredRates": []any{map[string]any{
					"startUsageAmount": 0,
					"unitPrice":        map[string]any{"currencyCode": "USD", "units": strconv.Itoa(int(units)), "nanos": int64(math.Round(nanos * 1e9))},
				}},
			},
		}},
	}
}

// listSKUs sends a page of the catalogue: of each series the plain rates, and
// those of spot and custom machines beside them.
func (g gcp) listSKUs() error {
	if service := g.r.PathValue("service"); service != gcpComputeService {
		return &gcpError{status: http.StatusNotFound, reason: "notFound", rpc: "NOT_FOUND", message: "Service services/" + service + " not found."}
	}
	var all []any
	for _, r := range gcpRegions() {
		for _, s := range gcpAllSeries() {
			if slices.Contains(s.absent, r.name) {
				continue
			}
			name := strings.ToUpper(s.name)
			for _, part := range []struct {
				word, unit string
				price      float64
			}{{"Core", "h", s.core * r.factor}, {"Ram", "GiBy.h", s.ram * r.factor}} {
				all = append(all,
					gcpSKU(name+s.word+" Instance "+part.word+" running in "+r.place, r.name, part.unit, "OnDemand", part.price),
					gcpSKU("Spot Preemptible "+name+s.word+" Instance "+part.word+" running in "+r.place, r.name, part.unit, "Preemptible", part.price/3),
					gcpSKU(name+" Custom Instance "+part.word+" running in "+r.place, r.name, part.unit, "OnDemand", part.price*1.05))
			}
		}
	}
	q := g.r.URL.Query()
	per, _ := strconv.Atoi(q.Get("pageSize"))
	if per <= 0 || per > 5000 {
		per = 5000
	}
	from := max(0, min(gcpTokenFrom(q.Get("pageToken")), len(all)))
	to := min(from+per, len(all))
	next := "" // is there, and empty, on the last page
	if to < len(all) {
		next = gcpPageToken(to)
	}
	g.send(map[string]any{"skus": all[from:to], "nextPageToken": next})
	return nil
}
