package cloudsim

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What takes its time: operations, in both of Azure's ways.

// azureOperation is something that is under way, or was.
type azureOperation struct {
	id      string
	started time.Time
	ended   time.Time // zero: still running
	// failed is the error that it ended with; nil: none.
	failed *azureError
}

// How an answer says where its operation can be watched: in a body, or by the
// status at the address in Location.
type azureWay int

const (
	azureOpBody azureWay = iota
	azureOpLocation
	azureOpBoth
)

// begin starts an operation and has done called when it ends; done may say
// that it failed. The answer's headers tell where to watch it.
func (a azure) begin(way azureWay, namespace, region string, takes time.Duration, done func(now time.Time) *azureError) *azureOperation {
	op := &azureOperation{id: a.sim.azureID(), started: a.now}
	a.account.operations[op.id] = op
	a.sim.after(a.now, takes, func(now time.Time) {
		op.ended = now
		if done != nil {
			op.failed = done(now)
		}
	})
	base := baseOf(a.r) + azurePrefix + "/subscriptions/" + a.sub
	if namespace != "" {
		base += "/providers/" + namespace + "/locations/" + region
	}
	version := "?api-version=" + a.r.URL.Query().Get("api-version")
	signed := "&t=" + strconv.FormatInt(a.now.Unix(), 10) + "&s=simulated"
	h := a.call.w.Header()
	if way != azureOpLocation {
		h.Set("Azure-AsyncOperation", base+"/operations/"+op.id+version+signed)
	}
	if way != azureOpBody {
		h.Set("Location", base+"/operationresults/"+op.id+version+signed)
	}
	a.retryAfter(min(takes, 10*time.Second))
	return op
}

// begin202 answers that something was accepted.
func (a azure) begin202(way azureWay, namespace, region string, takes time.Duration, done func(now time.Time) *azureError) {
	a.begin(way, namespace, region, takes, done)
	a.bare(http.StatusAccepted)
}

// getOperation tells in its body. Its status is 200 even for a failure.
func (a azure) getOperation() error {
	op := a.account.operations[a.rest[len(a.rest)-1]]
	if op == nil {
		return azureFail(http.StatusNotFound, "NotFound", "The operation '%s' was not found.", a.rest[len(a.rest)-1])
	}
	out := map[string]any{"name": op.id, "status": "InProgress", "startTime": op.started.UTC().Format(time.RFC3339)}
	switch {
	case op.ended.IsZero():
		a.retryAfter(5 * time.Second)
	case op.failed != nil:
		out["status"], out["endTime"], out["error"] = "Failed", op.ended.UTC().Format(time.RFC3339), op.failed.body()
	default:
		out["status"], out["endTime"] = "Succeeded", op.ended.UTC().Format(time.RFC3339)
	}
	a.ok(out)
	return nil
}

// getOperationResult tells by its status.
func (a azure) getOperationResult() error {
	op := a.account.operations[a.rest[len(a.rest)-1]]
	switch {
	case op == nil:
		return azureFail(http.StatusNotFound, "NotFound", "The operation '%s' was not found.", a.rest[len(a.rest)-1])
	case op.ended.IsZero():
		a.call.w.Header().Set("Location", baseOf(a.r)+a.r.URL.RequestURI())
		a.retryAfter(5 * time.Second)
		a.bare(http.StatusAccepted)
	case op.failed != nil:
		return op.failed
	default:
		a.bare(http.StatusNoContent)
	}
	return nil
}

// azureRouted is one kind of call.
type azureRouted struct {
	name string
	// about is the index in the path of what the call is about; 0: nothing.
	about int
	do    func(azure) error
}

func (r azureRouted) subject(rest []string) string {
	if r.about > 0 && r.about < len(rest) {
		return rest[r.about]
	}
	return ""
}

// azureRoute finds the call that a method and the path after the subscription
// make. Types and fixed words compare without regard to case.
func azureRoute(method string, rest []string) (azureRouted, bool) {
	if routed, ok := azureThingRoute(method, rest); ok {
		return routed, true
	}
	for _, r := range azureOther() {
		if r.method == method && azurePathIs(r.path, rest) {
			return r.azureRouted, true
		}
	}
	return azureRouted{name: "unknown"}, false
}

func azurePathIs(pattern string, rest []string) bool {
	want := strings.Split(pattern, "/")
	if pattern == "" {
		want = nil
	}
	if len(want) != len(rest) {
		return false
	}
	for i, w := range want {
		if w != "*" && !strings.EqualFold(w, rest[i]) {
			return false
		}
	}
	return true
}

// azureThingRoute is for the calls that every kind of resource has.
func azureThingRoute(method string, rest []string) (azureRouted, bool) {
	inGroup := len(rest) >= 5 && strings.EqualFold(rest[0], "resourceGroups") && strings.EqualFold(rest[2], "providers")
	whole := len(rest) == 3 && strings.EqualFold(rest[0], "providers")
	for _, k := range azureKinds() {
		switch {
		case whole && k.is(rest[1], rest[2]) && method == http.MethodGet, inGroup && len(rest) == 5 && k.is(rest[3], rest[4]) && method == http.MethodGet:
			return azureRouted{"list " + k.title + "s", 0, func(a azure) error { return a.listThings(k) }}, true
		case !inGroup || len(rest) != 6 || !k.is(rest[3], rest[4]):
		case method == http.MethodGet:
			return azureRouted{"get " + k.title, 5, func(a azure) error { return a.getThing(k) }}, true
		case method == http.MethodPut:
			return azureRouted{"create " + k.title, 5, func(a azure) error { return a.putThing(k) }}, true
		case method == http.MethodDelete:
			return azureRouted{"delete " + k.title, 5, func(a azure) error { return a.deleteThing(k) }}, true
		}
	}
	return azureRouted{}, false
}

type azureRow struct {
	method, path string
	azureRouted
}

// azureOther are the calls beside those.
func azureOther() []azureRow {
	const vm = "resourceGroups/*/providers/Microsoft.Compute/virtualMachines/*/"
	const subnets = "resourceGroups/*/providers/Microsoft.Network/virtualNetworks/*/subnets"
	var rows []azureRow
	add := func(method, path, name string, about int, do func(azure) error) {
		rows = append(rows, azureRow{method, path, azureRouted{name, about, do}})
	}
	add("GET", "", "get subscription", 0, azure.getSubscription)
	add("GET", "locations", "list locations", 0, azure.listLocations)
	add("GET", "resourceGroups", "list resource groups", 0, azure.listGroups)
	add("HEAD", "resourceGroups/*", "check resource group", 1, azure.headGroup)
	add("GET", "resourceGroups/*", "get resource group", 1, azure.getGroup)
	add("PUT", "resourceGroups/*", "create resource group", 1, azure.putGroup)
	add("DELETE", "resourceGroups/*", "delete resource group", 1, azure.deleteGroup)
	add("GET", "resourceGroups/*/resources", "list resources", 0, azure.listResources)
	add("GET", "resourceGroups/*/providers/Microsoft.Authorization/permissions", "list permissions", 0, azure.listPermissions)
	add("GET", "providers/Microsoft.Authorization/permissions", "list permissions", 0, azure.listPermissions)
	add("GET", "providers/*", "get resource provider", 1, azure.getProvider)
	add("POST", "providers/*/register", "register resource provider", 1, azure.getProvider)
	add("GET", "providers/Microsoft.Compute/skus", "list skus", 0, azure.listSkus)
	add("GET", "providers/Microsoft.Compute/locations/*/vmSizes", "list sizes", 0, azure.listSizes)
	add("GET", "providers/Microsoft.Compute/locations/*/usages", "list compute usages", 0, azure.listComputeUsages)
	add("GET", "providers/Microsoft.Network/locations/*/usages", "list network usages", 0, azure.listNetworkUsages)
	add("GET", "providers/*/locations/*/operations/*", "get operation", 0, azure.getOperation)
	add("GET", "providers/*/locations/*/operationresults/*", "get operation result", 0, azure.getOperationResult)
	add("GET", "operationresults/*", "get operation result", 0, azure.getOperationResult)
	add("GET", subnets, "list subnets", 5, azure.listSubnets)
	add("GET", subnets+"/*", "get subnet", 5, azure.getSubnet)
	add("PUT", subnets+"/*", "create subnet", 5, azure.putSubnet)
	add("GET", vm+"instanceView", "get instance view", 5, azure.getInstanceView)
	add("POST", vm+"start", "start server", 5, azure.startMachine)
	add("POST", vm+"powerOff", "power off server", 5, azure.powerOffMachine)
	add("POST", vm+"deallocate", "deallocate server", 5, azure.deallocateMachine)
	add("POST", vm+"restart", "restart server", 5, azure.restartMachine)
	add("POST", vm+"retrieveBootDiagnosticsData", "read console", 5, azure.bootDiagnostics)
	return rows
}
