package cloudsim

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The calls about what is sold, used and permitted.

func (a azure) getSubscription() error {
	a.ok(azureSubscription(a.sub))
	return nil
}

func azureSubscription(id string) map[string]any {
	return map[string]any{
		"id": "/subscriptions/" + id, "subscriptionId": id, "tenantId": azureTenantID, "displayName": "Simulated", "state": "Enabled",
		"authorizationSource": "RoleBased",
	}
}

func (a azure) listLocations() error {
	var all []any
	for _, r := range azureRegions() {
		meta := map[string]any{"regionType": r.kind, "regionCategory": "Other", "geography": r.geography, "geographyGroup": r.geography}
		one := map[string]any{
			"id": "/subscriptions/" + a.sub + "/locations/" + r.name, "name": r.name, "type": "Region", "displayName": r.title,
			"regionalDisplayName": "(" + r.geography + ") " + r.title, "metadata": meta,
		}
		if r.kind == "Physical" {
			meta["regionCategory"], meta["physicalLocation"] = "Recommended", r.physical
			meta["latitude"], meta["longitude"] = r.latitude, r.longitude
			meta["pairedRegion"] = []any{map[string]any{"name": r.paired, "id": "/subscriptions/" + a.sub + "/locations/" + r.paired}}
			one["availabilityZoneMappings"] = []any{map[string]any{"logicalZone": "1", "physicalZone": r.name + "-az2"}}
		}
		all = append(all, one)
	}
	a.ok(map[string]any{"value": all})
	return nil
}

// region reads the region in the path.
func (a azure) region() (string, error) {
	if name := a.rest[3]; azureHasRegion(name) {
		return azureRegionName(name), nil
	}
	return "", azureFail(http.StatusBadRequest, "NoRegisteredProviderFound", "No registered resource provider found for location '%s' and API version '%s' for type 'locations'. The supported locations are '%s'.", a.rest[3], a.r.URL.Query().Get("api-version"), strings.Join(azureRegionNames(), ", "))
}

func (a azure) listSizes() error {
	if _, err := a.region(); err != nil {
		return err
	}
	var all []any
	for _, z := range azureSizes() {
		all = append(all, map[string]any{
			"name": z.name, "numberOfCores": z.cores, "osDiskSizeInMB": 1047552, "resourceDiskSizeInMB": z.local,
			"memoryInMB": int(z.memory * 1024), "maxDataDiskCount": 4 * z.cores,
		})
	}
	a.ok(map[string]any{"value": all})
	return nil
}

var azureLocationFilter = regexp.MustCompile(`^location eq '([^']+)'$`)

func (a azure) listSkus() error {
	filter := a.r.URL.Query().Get("$filter")
	m := azureLocationFilter.FindStringSubmatch(filter)
	if filter != "" && m == nil {
		return azureFail(http.StatusBadRequest, "InvalidFilter", "The filter '%s' is not supported: only location eq '…' is.", filter)
	}
	var all []any
	for _, region := range azureRegionNames() {
		if m != nil && azureRegionName(m[1]) != region {
			continue
		}
		for _, z := range azureSizes() {
			tier, size, _ := strings.Cut(z.name, "_")
			all = append(all, map[string]any{
				"resourceType": "virtualMachines", "name": z.name, "tier": tier, "size": size, "family": z.family, "locations": []string{region},
				"locationInfo": []any{map[string]any{"location": region, "zones": []string{"1", "2", "3"}, "zoneDetails": []any{}}},
				"capabilities": z.capabilities(), "restrictions": z.restrictions(region),
			})
		}
		all = append(all, map[string]any{
			"resourceType": "disks", "name": "StandardSSD_LRS", "tier": "Standard", "size": "E6", "locations": []string{region},
			"locationInfo": []any{}, "capabilities": []any{}, "restrictions": []any{},
		})
	}
	a.page(all, 200)
	return nil
}

func azureUsage(name, title string, used, limit int) any {
	return map[string]any{"unit": "Count", "currentValue": used, "limit": limit, "name": map[string]any{"value": name, "localizedValue": title}}
}

func (a azure) listComputeUsages() error {
	region, err := a.region()
	if err != nil {
		return err
	}
	all, family := a.coresIn(region)
	list := []any{
		azureUsage("cores", "Total Regional vCPUs", all, azureCoresLimit),
		azureUsage("virtualMachines", "Virtual Machines", len(a.account.ofKind(azureMachines)), 25000),
	}
	seen := map[string]bool{}
	for _, z := range azureSizes() {
		if !seen[z.family] {
			seen[z.family] = true
			list = append(list, azureUsage(z.family, z.family+" vCPUs", family[z.family], azureFamilyLimit(z.family)))
		}
	}
	a.ok(map[string]any{"value": list})
	return nil
}

func (a azure) listNetworkUsages() error {
	region, err := a.region()
	if err != nil {
		return err
	}
	used := 0
	for _, ip := range a.account.ofKind(azureAddresses) {
		if ip.location == region {
			used++
		}
	}
	list := []any{
		azureUsage("VirtualNetworks", "Virtual Networks", len(a.account.ofKind(azureNetworks)), 1000),
		azureUsage("PublicIPAddresses", "Public IP Addresses", used, azureAddressLimit),
		azureUsage("StandardSkuPublicIpAddresses", "Public IPv4 Addresses - Standard", used, azureAddressLimit),
	}
	for _, u := range list {
		one := u.(map[string]any)
		one["id"] = "/subscriptions/" + a.sub + "/providers/Microsoft.Network/locations/" + region + "/usages/" + textOf(one, "name", "value")
	}
	a.ok(map[string]any{"value": list})
	return nil
}

func (a azure) getProvider() error {
	name := a.rest[1]
	a.ok(map[string]any{
		"id": "/subscriptions/" + a.sub + "/providers/" + name, "namespace": name, "registrationState": "Registered",
		"registrationPolicy": "RegistrationRequired", "resourceTypes": []any{},
	})
	return nil
}

// listPermissions are those of the caller.
func (a azure) listPermissions() error {
	if strings.EqualFold(a.rest[0], "resourceGroups") {
		if _, err := a.findGroup(a.rest[1]); err != nil {
			return err
		}
	}
	actions := []string{"*"}
	if token, err := a.sim.azureTokenOf(a.r, a.now); err == nil && token.readOnly {
		actions = []string{"*/read"}
	}
	a.ok(map[string]any{"value": []any{map[string]any{"actions": actions, "notActions": []string{"Microsoft.Authorization/*/Delete"}, "dataActions": []string{}, "notDataActions": []string{}}}})
	return nil
}

// The price list.

const azurePricesPerPage = 20

var azureRegionFilter = regexp.MustCompile(`armRegionName eq '([^']+)'`)

// azurePrices is the Retail Prices API: no credential, prices in US dollars,
// with entries of Windows and of spare capacity among them.
func (s *Sim) azurePrices(w http.ResponseWriter, r *http.Request) {
	m := azureRegionFilter.FindStringSubmatch(r.URL.Query().Get("$filter"))
	region := "westeurope"
	if m != nil {
		region = m[1]
	}
	all := []any{}
	if azureHasRegion(region) {
		for _, z := range azureSizes() {
			all = append(all,
				azurePriceOf(z, region, "", "", z.hourly), azurePriceOf(z, region, " Windows", "", z.hourly*1.8),
				azurePriceOf(z, region, "", " Spot", z.hourly*0.2), azurePriceOf(z, region, "", " Low Priority", z.hourly*0.25))
		}
	}
	skip, _ := strconv.Atoi(r.URL.Query().Get("$skip"))
	skip = min(max(skip, 0), len(all))
	end := min(skip+azurePricesPerPage, len(all))
	var next any
	if end < len(all) {
		q := r.URL.Query()
		q.Set("$skip", strconv.Itoa(end))
		next = baseOf(r) + (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
	}
	s.locked(func(now time.Time) {
		s.note(Request{At: now, Provider: azureName, Call: "list prices", Method: r.Method, Path: r.URL.Path, Status: http.StatusOK})
	})
	reply(w, http.StatusOK, map[string]any{
		"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail", "Items": all[skip:end],
		"NextPageLink": next, "Count": end - skip,
	})
}

func azurePriceOf(z azureSize, region, system, capacity string, hourly float64) any {
	short := strings.ReplaceAll(strings.TrimPrefix(z.name, "Standard_"), "_", " ")
	return map[string]any{
		"currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": hourly, "unitPrice": hourly, "armRegionName": region, "location": region,
		"effectiveStartDate": "2024-01-01T00:00:00Z", "meterId": "simulated", "meterName": short + capacity, "productId": "simulated", "skuId": "simulated",
		"productName": fmt.Sprintf("Virtual Machines %s Series%s", z.family, system), "skuName": short + capacity, "serviceName": "Virtual Machines",
		"serviceId": "simulated", "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "type": "Consumption", "isPrimaryMeterRegion": true,
		"armSkuName": z.name,
	}
}
