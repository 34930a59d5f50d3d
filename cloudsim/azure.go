package cloudsim

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Azure Resource Manager, as its REST reference and the packages armcompute,
// armnetwork and armresources of the Azure SDK for Go have it. One subscription
// is one project.

const (
	azureName   = "azure"
	azurePrefix = "/azure"
)

// azure is one request to the API.
type azure struct {
	*call
	account *azureAccount
	sub     string   // as the caller wrote it
	rest    []string // of the path after the subscription
}

// azureAccount is what a subscription has beside the world's things.
type azureAccount struct {
	subscription string
	groups       map[string]*azureGroup
	things       map[string]*azureThing // by lower-case id
	order        []*azureThing          // as they were made
	operations   map[string]*azureOperation
	buckets      map[string]*azureBucket
}

// azureOf returns what a project keeps for this adapter.
func (s *Sim) azureOf(subscription string) (*project, *azureAccount) {
	p := s.world.project(azureName, strings.ToLower(subscription))
	if p.adapter == nil {
		p.adapter = &azureAccount{
			subscription: strings.ToLower(subscription), groups: map[string]*azureGroup{}, things: map[string]*azureThing{},
			operations: map[string]*azureOperation{}, buckets: map[string]*azureBucket{},
		}
	}
	return p, p.adapter.(*azureAccount)
}

// azureRoutes registers everything but sign-in, whose paths begin with the
// tenant: see azureSignIn.
func (s *Sim) azureRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+azurePrefix+"/api/retail/prices", s.azurePrices)
	mux.HandleFunc("GET "+azurePrefix+"/console/{subscription}/{id}", s.azureConsoleLog)
	mux.HandleFunc(azurePrefix+"/", s.azureCall)
}

// azureError is an error as the API says it.
type azureError struct {
	status  int
	code    string
	message string
	target  string
	details []map[string]any
}

func (e *azureError) Error() string { return e.code + ": " + e.message }

func azureFail(status int, code, format string, args ...any) error {
	return &azureError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// azureParameter is a fault of one member of a body.
func azureParameter(target, format string, args ...any) error {
	return &azureError{status: http.StatusBadRequest, code: "InvalidParameter", message: fmt.Sprintf(format, args...), target: target}
}

var (
	azureVersion = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-preview)?$`)
	azureUUID    = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// azureCall takes one request through what all have in common: the token,
// the version, the limits, faults, the form of errors.
func (s *Sim) azureCall(w http.ResponseWriter, r *http.Request) {
	body, _, err := readBody(r)
	if err != nil {
		return // the client went away
	}
	parts := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, azurePrefix), "/"), "/")
	c := &call{sim: s, name: "unknown", w: w, r: r, body: body}
	a := azure{call: c}
	if len(parts) >= 2 && strings.EqualFold(parts[0], "subscriptions") {
		a.sub, a.rest = parts[1], parts[2:]
	}
	route, found := azureRoute(r.Method, a.rest)
	c.name, c.subject = route.name, route.subject(a.rest)
	var token azureToken
	var tokenErr error
	s.locked(func(now time.Time) {
		token, tokenErr = s.azureTokenOf(r, now)
		if tokenErr == nil && azureUUID.MatchString(a.sub) {
			c.project, a.account = s.azureOf(a.sub)
		}
	})
	c.faulty(azureName, a.refuse, func(w http.ResponseWriter) {
		c.w = w
		a.idHeaders()
		switch {
		case tokenErr != nil:
			w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="`+baseOf(r)+"/"+azureTenantID+`", error="invalid_token"`)
			a.fail(tokenErr)
		case len(parts) == 1 && strings.EqualFold(parts[0], "subscriptions"):
			a.ok(map[string]any{"value": []any{azureSubscription(azureSubscriptionID)}})
		case len(parts) == 1 && strings.EqualFold(parts[0], "tenants"):
			a.ok(map[string]any{"value": []any{map[string]any{"id": "/tenants/" + azureTenantID, "tenantId": azureTenantID}}})
		case a.account == nil:
			a.fail(azureFail(http.StatusBadRequest, "InvalidSubscriptionId", "The provided subscription identifier '%s' is malformed or invalid.", a.sub))
		case r.URL.Query().Get("api-version") == "":
			a.fail(azureFail(http.StatusBadRequest, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests."))
		case !azureVersion.MatchString(r.URL.Query().Get("api-version")):
			a.fail(azureFail(http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version '%s' is invalid.", r.URL.Query().Get("api-version")))
		case !a.takeFromLimit():
			a.throttle("SubscriptionRequestsThrottled", "Number of requests for subscription '%s' exceeded the limit. Please try again later.", a.sub)
		case !found:
			a.fail(azureFail(http.StatusNotFound, "InvalidResourceType", "The resource type could not be found: %s %s", r.Method, r.URL.Path))
		case token.readOnly && r.Method != http.MethodGet && r.Method != http.MethodHead:
			a.fail(azureFail(http.StatusForbidden, "AuthorizationFailed", "The client '%s' with object id '%s' does not have authorization to perform action over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.", token.client, token.client, r.URL.Path))
		default:
			if err := route.do(a); err != nil {
				a.fail(err)
			}
		}
	})
}

// azureBucket is a limit that fills up again steadily.
type azureBucket struct {
	left float64
	at   time.Time
}

// azureLimits are the sizes of the buckets, and what comes back each second.
var azureLimits = map[string]struct{ size, refill float64 }{
	"reads": {250, 25}, "writes": {200, 10}, "deletes": {200, 10},
}

func (a azure) bucket() string {
	switch a.r.Method {
	case http.MethodGet, http.MethodHead:
		return "reads"
	case http.MethodDelete:
		return "deletes"
	}
	return "writes"
}

// takeFromLimit counts the request and sets the headers.
func (a azure) takeFromLimit() bool {
	kind := a.bucket()
	limit := azureLimits[kind]
	b := a.account.buckets[kind]
	if b == nil {
		b = &azureBucket{left: limit.size, at: a.now}
		a.account.buckets[kind] = b
	}
	b.left = min(limit.size, b.left+limit.refill*a.now.Sub(b.at).Seconds())
	b.at = a.now
	ok := b.left >= 1
	if ok {
		b.left--
	}
	a.call.w.Header().Set("X-Ms-Ratelimit-Remaining-Subscription-"+kind, strconv.Itoa(int(b.left)))
	a.call.w.Header().Set("X-Ms-Ratelimit-Remaining-Subscription-Global-"+kind, strconv.Itoa(int(15*limit.size)))
	return ok
}

// throttle answers 429 with the time after which it is worth coming back.
func (a azure) throttle(code, format string, args ...any) {
	a.retryAfter(2 * time.Second)
	a.fail(azureFail(http.StatusTooManyRequests, code, format, args...))
}

// retryAfter asks to wait for simulated time. The headers are in real time:
// what reads them waits in real time. The finer one is the SDKs' own; it
// keeps a fast cloud fast.
func (a azure) retryAfter(d time.Duration) {
	fast := a.sim.opts.Speed > 1 || a.sim.opts.Manual
	realTime := time.Duration(float64(d) / a.sim.opts.Speed)
	if a.sim.opts.Manual {
		realTime = 0
	}
	h := a.call.w.Header()
	h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(realTime.Seconds())))))
	if fast {
		h.Set("Retry-After-Ms", strconv.Itoa(max(20, int(realTime.Milliseconds()))))
	}
}

func (a azure) idHeaders() {
	h := a.call.w.Header()
	id := a.sim.azureID()
	h.Set("X-Ms-Request-Id", id)
	h.Set("X-Ms-Correlation-Request-Id", id)
	h.Set("X-Ms-Routing-Request-Id", "SIMULATED:"+a.now.UTC().Format("20060102T150405Z")+":"+id)
}

// azureID returns a new UUID. s.mu must be held.
func (s *Sim) azureID() string {
	hi, lo := s.world.rand.Uint64(), s.world.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0x3fff|0x8000, lo&0xffffffffffff)
}

// refuse answers as a rule wants.
func (a azure) refuse(w http.ResponseWriter, f Fault) {
	a.call.w = w
	a.idHeaders()
	switch f.Effect {
	case EffectCapacity:
		a.fail(azureFail(http.StatusConflict, "SkuNotAvailable", "The requested VM size is currently not available in this location. Please try another size or deploy to a different location or different zone."))
	case EffectQuota:
		a.fail(azureQuota("Total Regional Cores", "westeurope", 10, 10, 2))
	case EffectRateLimit:
		a.throttle("TooManyRequests", "The request is being throttled as the limit has been reached for operation type - Write.")
	case EffectUnauthorized:
		a.fail(azureFail(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid."))
	default:
		code, message := f.Code, f.Message
		if code == "" {
			code = map[int]string{401: "InvalidAuthenticationToken", 403: "AuthorizationFailed", 404: "ResourceNotFound", 409: "Conflict", 412: "PreconditionFailed", 429: "TooManyRequests", 503: "ServiceUnavailable", 504: "GatewayTimeout"}[f.Status]
		}
		if code == "" {
			code = "InternalServerError"
		}
		if message == "" {
			message = "simulated"
		}
		if f.Status == http.StatusTooManyRequests {
			a.throttle(code, "%s", message)
			return
		}
		a.fail(&azureError{status: f.Status, code: code, message: message})
	}
}

func azureQuota(name, region string, limit, used, need int) error {
	return azureFail(http.StatusConflict, "OperationNotAllowed",
		"Operation could not be completed as it results in exceeding approved %s quota. Additional details - Deployment Model: Resource Manager, Location: %s, Current Limit: %d, Current Usage: %d, Additional Required: %d, (Minimum) New Limit Required: %d.",
		name, region, limit, used, need, used+need)
}

func (a azure) fail(err error) {
	e, ok := err.(*azureError)
	if !ok {
		e = &azureError{status: http.StatusInternalServerError, code: "InternalServerError", message: err.Error()}
	}
	a.call.w.Header().Set("X-Ms-Error-Code", e.code)
	a.send(e.status, map[string]any{"error": e.body()})
}

func (e *azureError) body() map[string]any {
	body := map[string]any{"code": e.code, "message": e.message}
	if e.target != "" {
		body["target"] = e.target
	}
	if e.details != nil {
		body["details"] = e.details
	}
	return body
}

func (a azure) ok(v any) { a.send(http.StatusOK, v) }

func (a azure) send(status int, v any) {
	a.call.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	a.call.w.WriteHeader(status)
	_ = json.NewEncoder(a.call.w).Encode(v) // to a buffer
}

func (a azure) bare(status int) { a.call.w.WriteHeader(status) }

// read reads the request's body. A member that is not known is refused only by
// the rules of its own type.
func (a azure) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return azureFail(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%v'.", err)
	}
	return nil
}

// page sends one page of a list, with a link to the next.
func (a azure) page(all []any, per int) {
	skip, _ := strconv.Atoi(a.r.URL.Query().Get("$skiptoken"))
	skip = min(max(skip, 0), len(all))
	end := min(skip+per, len(all))
	body := map[string]any{"value": orEmpty(all[skip:end])}
	if end < len(all) {
		q := a.r.URL.Query()
		q.Set("$skiptoken", strconv.Itoa(end))
		body["nextLink"] = baseOf(a.r) + a.r.URL.EscapedPath() + "?" + q.Encode()
	}
	a.ok(body)
}
