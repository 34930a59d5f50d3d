package cloudsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Compute Engine, version 1, as its discovery document and the Go client have
// it, with the parts of Resource Manager and Cloud Billing that a fleet asks.

const (
	gcpName = "gcp"
	// gcpPrefix is where the APIs are, as every provider's. Compute Engine is at
	// the root too, which is where its tools look.
	gcpPrefix  = "/gcp"
	gcpCompute = "/compute/v1"
	// gcpHost begins the addresses that stand in answers, whatever host is
	// asked.
	gcpHost = "https://www.googleapis.com/compute/v1/"
	// gcpRequests are a project's in a minute of the clock, in each group.
	gcpRequests = 1500
	// gcpImageProject has the images; everybody may read them.
	gcpImageProject = "ubuntu-os-cloud"
)

// gcp is one request to the APIs.
type gcp struct {
	*call
	account *gcpAccount
	token   gcpToken
	fields  gcpMask // what is sent of an answer
}

// gcpAccount is what a project has beside the world's things.
type gcpAccount struct {
	project    string
	number     int64
	things     map[string]*gcpThing
	order      []*gcpThing
	operations map[string]*gcpOperation // by scope/name
	history    []*gcpOperation
	requests   map[string]*gcpOperation // by request id
	// asked counts the requests of the minute.
	asked  int
	minute time.Time
}

// gcpRoutes registers every call under its name.
func (s *Sim) gcpRoutes(mux *http.ServeMux) {
	handle := func(pattern, name string, do func(gcp) error) {
		method, path, _ := strings.Cut(pattern, " ")
		for _, prefix := range []string{"", gcpPrefix} {
			mux.HandleFunc(method+" "+prefix+gcpCompute+"/projects/{project}"+path, func(w http.ResponseWriter, r *http.Request) { s.gcpCall(w, r, name, do) })
		}
	}
	for _, row := range gcpCatalogCalls() {
		handle(row.pattern, row.name, row.do)
	}
	for _, kind := range gcpKinds() {
		base := map[string]string{gcpZonal: "/zones/{zone}", gcpRegional: "/regions/{region}", gcpGlobal: "/global"}
		for _, place := range kind.places {
			at := base[place] + "/" + kind.collection
			handle("POST "+at, "create "+kind.title, func(g gcp) error { return g.insert(kind) })
			handle("GET "+at, "list "+kind.plural(), func(g gcp) error { return g.listThings(kind) })
			handle("GET "+at+"/{name}", "get "+kind.title, func(g gcp) error { return g.getThing(kind) })
			handle("DELETE "+at+"/{name}", "delete "+kind.title, func(g gcp) error { return g.deleteThing(kind) })
		}
		handle("GET /aggregated/"+kind.collection, "list "+kind.plural(), func(g gcp) error { return g.aggregate(kind) })
	}
	for _, at := range []string{"/zones/{zone}", "/regions/{region}", "/global"} {
		handle("GET "+at+"/operations", "list operations", gcp.listOperations)
		handle("GET "+at+"/operations/{name}", "get operation", gcp.getOperation)
		handle("POST "+at+"/operations/{name}/wait", gcpWait, gcp.getOperation)
		handle("DELETE "+at+"/operations/{name}", "delete operation", gcp.deleteOperation)
	}
	const instance = "/zones/{zone}/instances/{name}"
	handle("POST "+instance+"/start", "start server", gcp.startInstance)
	handle("POST "+instance+"/stop", "power off server", gcp.stopInstance)
	handle("POST "+instance+"/reset", "restart server", gcp.resetInstance)
	handle("POST "+instance+"/setLabels", "update server", gcp.setLabels)
	handle("POST "+instance+"/setTags", "update server", gcp.setTags)
	handle("POST "+instance+"/setMetadata", "update server", gcp.setMetadata)
	handle("POST "+instance+"/setDeletionProtection", "update server", gcp.setDeletionProtection)
	handle("GET "+instance+"/serialPort", "read console", gcp.serialPort)
	handle("PATCH /global/firewalls/{name}", "update firewall", gcp.patchFirewall)

	call := func(pattern, name string, do func(gcp) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.gcpCall(w, r, name, do) })
	}
	call("POST "+gcpPrefix+"/v1/projects/{action}", "test permissions", gcp.testPermissions)
	call("GET "+gcpPrefix+"/v1/services/{service}/skus", "list prices", gcp.listSKUs)
	mux.HandleFunc("POST "+gcpPrefix+"/token", s.gcpTokenCall)
	mux.HandleFunc("GET /_sim/gcp/key", s.gcpKeyCall)
	for _, prefix := range []string{gcpCompute, gcpPrefix} {
		call(prefix+"/", "unknown", func(g gcp) error { return gcpMissing(g.r.URL.Path) })
	}
}

// gcpError is an error as the APIs say it.
type gcpError struct {
	status  int
	reason  string
	message string
	// detail is the reason as newer parts of the API say it, domain where the
	// reason is from: both empty for most.
	detail, domain, rpc string
}

func (e *gcpError) Error() string { return e.reason + ": " + e.message }

func gcpFail(status int, reason, format string, args ...any) error {
	return &gcpError{status: status, reason: reason, message: fmt.Sprintf(format, args...)}
}

// gcpInvalid is a field whose value is not good.
func gcpInvalid(field, value, format string, args ...any) error {
	return gcpFail(http.StatusBadRequest, "invalid", "Invalid value for field '%s': '%s'. %s", field, value, fmt.Sprintf(format, args...))
}

func gcpMissing(what string) error {
	return gcpFail(http.StatusNotFound, "notFound", "The resource '%s' was not found", what)
}

// gcpQuotaText says that a quota is exceeded, of a region or, for "", of the
// project.
func gcpQuotaText(metric, region string, limit int) string {
	where := "globally"
	if region != "" {
		where = "in region " + region
	}
	return fmt.Sprintf("Quota '%s' exceeded.  Limit: %d.0 %s.", metric, limit, where)
}

func gcpOverQuota(metric, region string, limit int) error {
	return &gcpError{status: http.StatusForbidden, reason: "quotaExceeded", domain: "usageLimits", message: gcpQuotaText(metric, region, limit)}
}

func gcpUnauthorized(detail, message string) error {
	return &gcpError{status: http.StatusUnauthorized, reason: "authError", message: message, detail: detail, rpc: "UNAUTHENTICATED"}
}

var gcpProjectID = regexp.MustCompile(`^([a-z0-9.-]{1,100}:)?[a-z]([-a-z0-9]{1,61}[a-z0-9])?$`)

// gcpOf returns the project of an id, made at its first use. s.mu must be
// held.
func (s *Sim) gcpOf(id string) (*project, *gcpAccount) {
	p := s.world.project(gcpName, id)
	if p.adapter == nil {
		a := &gcpAccount{
			project: id, number: s.world.id(gcpName, "project"), things: map[string]*gcpThing{},
			operations: map[string]*gcpOperation{}, requests: map[string]*gcpOperation{},
		}
		p.adapter = a
		s.gcpDefaultNetwork(a)
	}
	return p, p.adapter.(*gcpAccount)
}

// gcpCall takes one request through what all have in common: the credential,
// the limit, faults, the memory of requests, the form of errors.
func (s *Sim) gcpCall(w http.ResponseWriter, r *http.Request, name string, do func(gcp) error) {
	body, subject, err := readBody(r)
	if err != nil {
		return // the client went away
	}
	if at := r.PathValue("name"); at != "" {
		subject = at
	}
	c := &call{sim: s, name: name, subject: subject, w: w, r: r, body: body}
	g := gcp{call: c}
	id, _, _ := strings.Cut(r.PathValue("project")+r.PathValue("action"), ":testIamPermissions")
	var refusal error
	s.locked(func(time.Time) {
		if g.token, refusal = s.gcpAccess(r, id); refusal != nil {
			return
		}
		if id == "" {
			id = g.token.project
		}
		if id == gcpImageProject {
			id = g.token.project // whose request it is
		}
		c.project, g.account = s.gcpOf(id)
	})
	if name == gcpWait && refusal == nil {
		g.waitForOperation()
	}
	c.faulty(gcpName, g.refuse, func(w http.ResponseWriter) {
		c.w = w
		err := refusal
		if err == nil {
			err = g.admit()
		}
		if err == nil {
			err = g.chooseFields()
		}
		if err == nil {
			var was *gcpOperation
			if was, err = g.remembered(); was != nil {
				g.send(g.renderOperation(was))
				return
			}
		}
		if err == nil {
			err = do(g)
		}
		if err != nil {
			g.fail(err)
		}
	})
}

// admit counts the request: the limits fill up again at each full minute.
func (g gcp) admit() error {
	a := g.account
	if minute := g.now.Truncate(time.Minute); !minute.Equal(a.minute) {
		a.minute, a.asked = minute, 0
	}
	a.asked++
	if a.asked > gcpRequests {
		return g.tooMany()
	}
	if g.token.readOnly && g.r.Method != http.MethodGet && g.name != "test permissions" {
		verb, collection := gcpPermissionOf(g.name)
		return gcpFail(http.StatusForbidden, "forbidden", "Required 'compute.%s.%s' permission for 'projects/%s'", collection, verb, a.project)
	}
	return nil
}

// gcpPermissionOf is the permission that a call needs, as far as its name says.
func gcpPermissionOf(name string) (verb, collection string) {
	verb, what, _ := strings.Cut(name, " ")
	for _, k := range gcpKinds() {
		if k.title == what {
			return verb, k.collection
		}
	}
	return verb, "instances"
}

func (g gcp) tooMany() error {
	return &gcpError{
		status: http.StatusForbidden, reason: "rateLimitExceeded", domain: "usageLimits", detail: "RATE_LIMIT_EXCEEDED", rpc: "PERMISSION_DENIED",
		message: fmt.Sprintf("Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com' for consumer 'project_number:%d'.", g.number()),
	}
}

func (g gcp) number() int64 {
	if g.account == nil {
		return 0
	}
	return g.account.number
}

// refuse answers as a rule wants.
func (g gcp) refuse(w http.ResponseWriter, f Fault) {
	g.call.w = w
	place := g.r.PathValue("zone")
	switch f.Effect {
	case EffectCapacity:
		g.fail(gcpFail(http.StatusServiceUnavailable, "ZONE_RESOURCE_POOL_EXHAUSTED", "The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the request. Try a different zone, or try again later.", g.r.PathValue("project"), place))
	case EffectQuota:
		g.fail(gcpOverQuota("CPUS", gcpRegionOf(place), gcpRegionQuotas()["CPUS"]))
	case EffectRateLimit:
		g.fail(g.tooMany())
	case EffectUnauthorized:
		g.fail(gcpUnauthorized("", gcpBadToken))
	default:
		reason, message := f.Code, f.Message
		if reason == "" {
			reason = map[int]string{
				400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound", 409: "alreadyExists", 412: "conditionNotMet",
				429: "rateLimitExceeded", 500: "internalError", 502: "backendError", 503: "backendError",
			}[f.Status]
		}
		if reason == "" {
			reason = "backendError"
		}
		if message == "" {
			message = "simulated"
		}
		g.fail(&gcpError{status: f.Status, reason: reason, message: message})
	}
}

func (g gcp) fail(err error) {
	e, ok := err.(*gcpError)
	if !ok {
		e = &gcpError{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()}
	}
	domain := e.domain
	if domain == "" {
		domain = "global"
	}
	one := map[string]any{"message": e.message, "domain": domain, "reason": e.reason}
	body := map[string]any{"code": e.status, "message": e.message, "errors": []any{one}}
	if e.status == http.StatusUnauthorized {
		one["location"], one["locationType"] = "Authorization", "header"
	}
	if e.rpc != "" {
		body["status"] = e.rpc
	}
	if e.detail != "" {
		info := map[string]any{"service": "compute.googleapis.com"}
		if g.account != nil {
			info["consumer"] = fmt.Sprintf("projects/%d", g.number())
		}
		body["details"] = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.detail, "domain": "googleapis.com", "metadata": info,
		}}
	}
	g.write(e.status, map[string]any{"error": body})
}

// send answers with what the request's fields leave of v.
func (g gcp) send(v map[string]any) {
	g.write(http.StatusOK, g.fields.apply(v))
}

func (g gcp) write(status int, v any) {
	g.call.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	g.call.w.Header().Set("Vary", "Origin, X-Origin, Referer")
	g.call.w.WriteHeader(status)
	_ = json.NewEncoder(g.call.w).Encode(v) // to a buffer
}

// read reads the request's body. A field that the API does not know is refused
// there; what is not known here is not looked at.
func (g gcp) read() (map[string]any, error) {
	body := map[string]any{}
	if err := json.Unmarshal(g.body, &body); err != nil {
		return nil, gcpFail(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
	}
	return body, nil
}

// path is the name of something in the request's project.
func (a *gcpAccount) path(scope, collection, name string) string {
	return "projects/" + a.project + "/" + scope + "/" + collection + "/" + name
}

// gcpRef takes a reference apart: a whole address, one from projects/ on, or
// one from the scope on.
func gcpRef(ref string) (project string, parts []string) {
	if _, rest, ok := strings.Cut(ref, gcpCompute+"/"); ok {
		ref = rest
	}
	parts = strings.Split(strings.Trim(ref, "/"), "/")
	if len(parts) > 2 && parts[0] == "projects" {
		return parts[1], parts[2:]
	}
	return "", parts
}

func gcpLast(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
