package cloudsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The Hetzner Cloud API, version 1, as docs.hetzner.cloud and the schema of
// hcloud-go have it.

const (
	hetznerName   = "hetzner"
	hetznerPrefix = "/hetzner/v1"
	// hetznerLimit is how many requests a project has; one comes back a second.
	hetznerLimit = 3600
)

// hetzner is one request to the API.
type hetzner struct{ *call }

// hetznerRoutes registers every call under its name.
func (s *Sim) hetznerRoutes(mux *http.ServeMux) {
	handle := func(pattern, name string, do func(hetzner) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+hetznerPrefix+path, func(w http.ResponseWriter, r *http.Request) { s.hetznerCall(w, r, name, do) })
	}
	handle("GET /locations", "list locations", hetzner.listLocations)
	handle("GET /locations/{id}", "get location", hetzner.getLocation)
	handle("GET /datacenters", "list datacenters", hetzner.datacenters)
	handle("GET /datacenters/{id}", "get datacenter", hetzner.datacenters)
	handle("GET /server_types", "list server types", hetzner.listServerTypes)
	handle("GET /server_types/{id}", "get server type", hetzner.getServerType)
	handle("GET /images", "list images", hetzner.listImages)
	handle("GET /images/{id}", "get image", hetzner.getImage)
	handle("GET /pricing", "get pricing", hetzner.getPricing)

	handle("POST /servers", "create server", hetzner.createServer)
	handle("GET /servers", "list servers", hetzner.listServers)
	handle("GET /servers/{id}", "get server", hetzner.getServer)
	handle("PUT /servers/{id}", "update server", hetzner.updateServer)
	handle("DELETE /servers/{id}", "delete server", hetzner.deleteServer)
	handle("POST /servers/{id}/actions/{action}", "act on server", hetzner.actOnServer)
	handle("GET /actions", "list actions", hetzner.listActions)
	handle("GET /actions/{id}", "get action", hetzner.getAction)

	handle("POST /firewalls", "create firewall", hetzner.createFirewall)
	handle("GET /firewalls", "list firewalls", hetzner.listFirewalls)
	handle("GET /firewalls/{id}", "get firewall", hetzner.getFirewall)
	handle("PUT /firewalls/{id}", "update firewall", hetzner.updateFirewall)
	handle("DELETE /firewalls/{id}", "delete firewall", hetzner.deleteFirewall)
	handle("POST /firewalls/{id}/actions/{action}", "act on firewall", hetzner.actOnFirewall)

	handle("POST /ssh_keys", "create ssh key", hetzner.createSSHKey)
	handle("GET /ssh_keys", "list ssh keys", hetzner.listSSHKeys)
	handle("GET /ssh_keys/{id}", "get ssh key", hetzner.getSSHKey)
	handle("PUT /ssh_keys/{id}", "update ssh key", hetzner.updateSSHKey)
	handle("DELETE /ssh_keys/{id}", "delete ssh key", hetzner.deleteSSHKey)

	handle("POST /primary_ips", "create primary ip", hetzner.createPrimaryIP)
	handle("GET /primary_ips", "list primary ips", hetzner.listPrimaryIPs)
	handle("GET /primary_ips/{id}", "get primary ip", hetzner.getPrimaryIP)
	handle("PUT /primary_ips/{id}", "update primary ip", hetzner.updatePrimaryIP)
	handle("DELETE /primary_ips/{id}", "delete primary ip", hetzner.deletePrimaryIP)
	handle("POST /primary_ips/{id}/actions/{action}", "act on primary ip", hetzner.actOnPrimaryIP)

	handle("POST /volumes", "create volume", hetzner.createVolume)
	handle("GET /volumes", "list volumes", hetzner.listVolumes)
	handle("GET /volumes/{id}", "get volume", hetzner.getVolume)
	handle("PUT /volumes/{id}", "update volume", hetzner.updateVolume)
	handle("DELETE /volumes/{id}", "delete volume", hetzner.deleteVolume)
	handle("POST /volumes/{id}/actions/{action}", "act on volume", hetzner.actOnVolume)

	for path, kind := range map[string]string{"/servers": "server", "/firewalls": "firewall", "/primary_ips": "primary_ip", "/volumes": "volume"} {
		name := strings.ReplaceAll(kind, "_", " ")
		handle("GET "+path+"/actions", "list "+name+" actions", func(h hetzner) error { return h.kindActions(kind) })
		// The one pattern stands for {id}/actions and actions/{id}: as two they
		// would overlap.
		handle("GET "+path+"/{id}/{rest}", "list "+name+" actions", func(h hetzner) error { return h.thingActions(kind) })
	}
	for _, kind := range []string{"networks", "placement_groups", "isos", "certificates", "load_balancers", "load_balancer_types", "floating_ips"} {
		handle("GET /"+kind, "list "+strings.ReplaceAll(kind, "_", " "), func(h hetzner) error { return h.list(kind, nil) })
	}
	mux.HandleFunc(hetznerPrefix+"/", func(w http.ResponseWriter, r *http.Request) {
		s.hetznerCall(w, r, "unknown", func(h hetzner) error {
			return hetznerFail(http.StatusNotFound, "not_found", "Path not found: %s", h.r.URL.Path)
		})
	})
}

// hetznerError is an error as the API says it.
type hetznerError struct {
	status  int
	code    string
	message string
	details any
}

func (e *hetznerError) Error() string { return e.code + ": " + e.message }

func hetznerFail(status int, code, format string, args ...any) error {
	return &hetznerError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// hetznerField is a fault of one field of a request.
func hetznerField(field, message string) error {
	type f struct {
		Name     string   `json:"name"`
		Messages []string `json:"messages"`
	}
	return &hetznerError{
		status: http.StatusUnprocessableEntity, code: "invalid_input",
		message: fmt.Sprintf("invalid input in field '%s'", field),
		details: map[string]any{"fields": []f{{Name: field, Messages: []string{message}}}},
	}
}

func hetznerNotFound(kind string, id any) error {
	return hetznerFail(http.StatusNotFound, "not_found", "%s with ID '%v' not found", kind, id)
}

// hetznerCall takes one request through what all have in common: the
// credential, the limit, faults, the form of errors.
func (s *Sim) hetznerCall(w http.ResponseWriter, r *http.Request, name string, do func(hetzner) error) {
	body, subject, err := readBody(r)
	if err != nil {
		return // the client went away
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c := &call{sim: s, name: name, subject: subject, w: w, r: r, body: body}
	h := hetzner{c}
	good := bearer && token != "" && !strings.HasPrefix(token, "invalid")
	s.locked(func(time.Time) {
		if good {
			c.project = s.world.project(hetznerName, token)
			c.project.readOnly = strings.HasPrefix(token, "readonly")
			if subject == "" {
				c.subject = h.pathSubject()
			}
		}
	})
	c.faulty(hetznerName, h.refuse, func(w http.ResponseWriter) {
		c.w = w
		w.Header().Set("X-Correlation-Id", fmt.Sprintf("%016x", s.world.rand.Uint64()))
		if !good {
			h.fail(hetznerFail(http.StatusUnauthorized, "unauthorized", "unable to authenticate"))
			return
		}
		if !h.takeFromLimit() {
			h.fail(hetznerFail(http.StatusTooManyRequests, "rate_limit_exceeded", "limit of %d requests per hour reached", hetznerLimit))
			return
		}
		if c.project.readOnly && r.Method != http.MethodGet {
			h.fail(hetznerFail(http.StatusForbidden, "forbidden", "insufficient permissions: the token is read-only"))
			return
		}
		if err := do(h); err != nil {
			h.fail(err)
		}
	})
}

// pathSubject is the name of the thing that the path speaks of.
func (h hetzner) pathSubject() string {
	parts := strings.Split(strings.TrimPrefix(h.r.URL.Path, hetznerPrefix+"/"), "/")
	if len(parts) < 2 {
		return ""
	}
	id, _ := strconv.ParseInt(parts[1], 10, 64)
	p := h.project
	switch parts[0] {
	case "servers":
		if t := p.servers[id]; t != nil {
			return t.name
		}
	case "firewalls":
		if t := p.rules[id]; t != nil {
			return t.name
		}
	case "ssh_keys":
		if t := p.keys[id]; t != nil {
			return t.name
		}
	case "primary_ips":
		if t := p.ips[id]; t != nil {
			return t.name
		}
	case "volumes":
		if t := p.volumes[id]; t != nil {
			return t.name
		}
	}
	return ""
}

// takeFromLimit counts the request and sets the headers.
func (h hetzner) takeFromLimit() bool {
	p := h.project
	p.limit, p.limitedAt = h.left(), h.now
	ok := p.limit >= 1
	if ok {
		p.limit--
	}
	h.limitHeaders(int(p.limit))
	return ok
}

// left is how many requests the project has now.
func (h hetzner) left() float64 {
	if h.project.limitedAt.IsZero() {
		return hetznerLimit
	}
	return min(hetznerLimit, h.project.limit+h.now.Sub(h.project.limitedAt).Seconds())
}

func (h hetzner) limitHeaders(left int) {
	hd := h.w.Header()
	hd.Set("RateLimit-Limit", strconv.Itoa(hetznerLimit))
	hd.Set("RateLimit-Remaining", strconv.Itoa(left))
	// The header is in real time, since what reads it waits in real time; with
	// a manual clock there is no such time.
	full, now := time.Duration(float64(hetznerLimit-left)/h.sim.opts.Speed*float64(time.Second)), time.Now()
	if h.sim.opts.Manual {
		now = h.now
	}
	hd.Set("RateLimit-Reset", strconv.FormatInt(now.Add(full).Unix(), 10))
}

// refuse answers as a rule wants.
func (h hetzner) refuse(w http.ResponseWriter, f Fault) {
	h.call.w = w
	w.Header().Set("X-Correlation-Id", fmt.Sprintf("%016x", h.sim.world.rand.Uint64()))
	if h.project != nil {
		h.limitHeaders(int(h.left()))
	}
	switch f.Effect {
	case EffectCapacity:
		h.fail(hetznerFail(http.StatusPreconditionFailed, "resource_unavailable", "error during placement"))
	case EffectQuota:
		h.fail(hetznerFail(http.StatusForbidden, "resource_limit_exceeded", "server limit exceeded"))
	case EffectRateLimit:
		h.limitHeaders(0)
		h.fail(hetznerFail(http.StatusTooManyRequests, "rate_limit_exceeded", "limit of %d requests per hour reached", hetznerLimit))
	case EffectUnauthorized:
		h.fail(hetznerFail(http.StatusUnauthorized, "unauthorized", "unable to authenticate"))
	default:
		code, message := f.Code, f.Message
		if code == "" {
			code = map[int]string{401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict", 423: "locked", 429: "rate_limit_exceeded", 502: "bad_gateway", 503: "service_error", 504: "timeout"}[f.Status]
		}
		if code == "" {
			code = "server_error"
		}
		if message == "" {
			message = "simulated"
		}
		h.fail(&hetznerError{status: f.Status, code: code, message: message})
	}
}

func (h hetzner) fail(err error) {
	e, ok := err.(*hetznerError)
	if !ok {
		e = &hetznerError{status: http.StatusInternalServerError, code: "server_error", message: err.Error()}
	}
	h.send(e.status, map[string]any{"error": map[string]any{"code": e.code, "message": e.message, "details": e.details}})
}

func (h hetzner) send(status int, v any) {
	h.call.w.Header().Set("Content-Type", "application/json")
	h.call.w.WriteHeader(status)
	_ = json.NewEncoder(h.call.w).Encode(v) // to a buffer
}

// read reads the request's body. Unknown fields are passed over, as the real
// API does.
func (h hetzner) read(v any) error {
	if len(h.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(h.body, v); err != nil {
		return hetznerFail(http.StatusBadRequest, "json_error", "Invalid JSON in request: %v", err)
	}
	return nil
}

func (h hetzner) pathID() int64 {
	id, err := strconv.ParseInt(h.r.PathValue("id"), 10, 64)
	if err != nil {
		return -1
	}
	return id
}
