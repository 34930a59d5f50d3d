package cloudsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The DigitalOcean API, version 2, as its OpenAPI description and godo have
// it.

const (
	digitalOceanName = "digitalocean"
	// digitalOceanPrefix is where the API is, as every provider's. It is at the
	// root too, which is the address that its tools need: godo asks for some
	// paths (firewalls) from there, whatever path its base has.
	digitalOceanPrefix = "/digitalocean"
	// Requests that a token has in an hour, and in a minute of it.
	digitalOceanLimit = 5000
	digitalOceanBurst = 250
)

// digitalOcean is one request to the API.
type digitalOcean struct {
	*call
	account *doAccount
}

// doAccount is what the API has beside the world's things.
type doAccount struct {
	droplets  map[int64]*doDroplet
	firewalls []*doFirewall
	volumes   []*doVolume
	tags      []string    // in the case of their making
	asked     []time.Time // of the requests of the last hour
	vpc       string
}

// digitalOceanRoutes registers every call under its name.
func (s *Sim) digitalOceanRoutes(mux *http.ServeMux) {
	handle := func(pattern, name string, do func(digitalOcean) error) {
		method, path, _ := strings.Cut(pattern, " ")
		for _, prefix := range []string{"", digitalOceanPrefix} {
			mux.HandleFunc(method+" "+prefix+"/v2"+path, func(w http.ResponseWriter, r *http.Request) { s.digitalOceanCall(w, r, name, do) })
		}
	}
	handle("GET /account", "get account", digitalOcean.getAccount)
	handle("GET /regions", "list regions", digitalOcean.listRegions)
	handle("GET /sizes", "list sizes", digitalOcean.listSizes)
	handle("GET /images", "list images", digitalOcean.listImages)
	handle("GET /images/{id}", "get image", digitalOcean.getImage)

	handle("POST /droplets", "create server", digitalOcean.createDroplet)
	handle("GET /droplets", "list servers", digitalOcean.listDroplets)
	handle("DELETE /droplets", "delete servers by tag", digitalOcean.deleteDroplets)
	handle("GET /droplets/{id}", "get server", digitalOcean.getDroplet)
	handle("DELETE /droplets/{id}", "delete server", digitalOcean.deleteDroplet)
	handle("POST /droplets/{id}/actions", "act on server", digitalOcean.actOnDroplet)
	handle("GET /droplets/{id}/actions", "list server actions", digitalOcean.listDropletActions)
	handle("GET /droplets/{id}/actions/{action}", "get action", digitalOcean.getAction)
	handle("GET /droplets/{id}/firewalls", "list server firewalls", digitalOcean.listDropletFirewalls)
	handle("GET /actions", "list actions", digitalOcean.listActions)
	handle("GET /actions/{action}", "get action", digitalOcean.getAction)

	handle("POST /firewalls", "create firewall", digitalOcean.createFirewall)
	handle("GET /firewalls", "list firewalls", digitalOcean.listFirewalls)
	handle("GET /firewalls/{id}", "get firewall", digitalOcean.getFirewall)
	handle("PUT /firewalls/{id}", "update firewall", digitalOcean.updateFirewall)
	handle("DELETE /firewalls/{id}", "delete firewall", digitalOcean.deleteFirewall)
	handle("POST /firewalls/{id}/{part}", "add to firewall", digitalOcean.addToFirewall)
	handle("DELETE /firewalls/{id}/{part}", "take from firewall", digitalOcean.takeFromFirewall)

	handle("POST /tags", "create tag", digitalOcean.createTag)
	handle("GET /tags", "list tags", digitalOcean.listTags)
	handle("GET /tags/{tag}", "get tag", digitalOcean.getTag)
	handle("DELETE /tags/{tag}", "delete tag", digitalOcean.deleteTag)
	handle("POST /tags/{tag}/resources", "tag resources", digitalOcean.tagResources)
	handle("DELETE /tags/{tag}/resources", "untag resources", digitalOcean.untagResources)

	handle("POST /account/keys", "create ssh key", digitalOcean.createKey)
	handle("GET /account/keys", "list ssh keys", digitalOcean.listKeys)
	handle("GET /account/keys/{id}", "get ssh key", digitalOcean.getKey)
	handle("PUT /account/keys/{id}", "update ssh key", digitalOcean.updateKey)
	handle("DELETE /account/keys/{id}", "delete ssh key", digitalOcean.deleteKey)

	handle("POST /volumes", "create volume", digitalOcean.createVolume)
	handle("GET /volumes", "list volumes", digitalOcean.listVolumes)
	handle("GET /volumes/{id}", "get volume", digitalOcean.getVolume)
	handle("DELETE /volumes/{id}", "delete volume", digitalOcean.deleteVolume)
	handle("POST /volumes/{id}/actions", "act on volume", digitalOcean.actOnVolume)

	for _, kind := range []string{"reserved_ips", "floating_ips", "snapshots", "load_balancers", "vpcs", "projects", "domains"} {
		handle("GET /"+kind, "list "+strings.ReplaceAll(kind, "_", " "), func(d digitalOcean) error { return doPage[any](d, kind, nil) })
	}
	for _, prefix := range []string{"/v2", digitalOceanPrefix} {
		mux.HandleFunc(prefix+"/", func(w http.ResponseWriter, r *http.Request) {
			s.digitalOceanCall(w, r, "unknown", func(digitalOcean) error { return doNotFound() })
		})
	}
}

// doError is an error as the API says it.
type doError struct {
	status  int
	id      string
	message string
}

func (e *doError) Error() string { return e.id + ": " + e.message }

func doFail(status int, id, format string, args ...any) error {
	return &doError{status: status, id: id, message: fmt.Sprintf(format, args...)}
}

// doBad is a request that is refused: the API has one id for all of them.
func doBad(format string, args ...any) error {
	return doFail(http.StatusUnprocessableEntity, "unprocessable_entity", format, args...)
}

func doNotFound() error {
	return doFail(http.StatusNotFound, "not_found", "The resource you were accessing could not be found.")
}

var errDOPending = doBad("Droplet already has a pending event.")

// digitalOceanCall takes one request through what all have in common: the
// credential, the limit, faults, the form of errors.
func (s *Sim) digitalOceanCall(w http.ResponseWriter, r *http.Request, name string, do func(digitalOcean) error) {
	body, subject, err := readBody(r)
	if err != nil {
		return // the client went away
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c := &call{sim: s, name: name, subject: subject, w: w, r: r, body: body}
	d := digitalOcean{call: c}
	good := bearer && token != "" && !strings.HasPrefix(token, "invalid")
	s.locked(func(time.Time) {
		if good {
			c.project = s.world.project(digitalOceanName, token)
			c.project.readOnly = strings.HasPrefix(token, "readonly")
			d.account = c.project.doAccount(s)
			if subject == "" {
				c.subject = d.pathSubject()
			}
		}
	})
	c.faulty(digitalOceanName, d.refuse, func(w http.ResponseWriter) {
		c.w = w
		switch {
		case !good:
			d.fail(doFail(http.StatusUnauthorized, "unauthorized", "Unable to authenticate you"))
			return
		case !d.takeFromLimit():
			d.fail(doFail(http.StatusTooManyRequests, "too_many_requests", "API Rate limit exceeded."))
			return
		case c.project.readOnly && r.Method != http.MethodGet:
			d.fail(doFail(http.StatusForbidden, "forbidden", "You are not authorized to perform this operation"))
			return
		}
		if err := do(d); err != nil {
			d.fail(err)
		}
	})
}

// doAccount is the project's, made at its first use. s.mu must be held.
func (p *project) doAccount(s *Sim) *doAccount {
	if p.adapter == nil {
		p.adapter = &doAccount{droplets: map[int64]*doDroplet{}, vpc: s.uuid()}
	}
	return p.adapter.(*doAccount)
}

// uuid is a random one, from the seed. s.mu must be held.
func (s *Sim) uuid() string {
	a, b := s.world.rand.Uint64(), s.world.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// pathSubject is the name of the thing that the path speaks of.
func (d digitalOcean) pathSubject() string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(d.r.URL.Path, digitalOceanPrefix), "/v2/"), "/")
	if len(parts) < 2 {
		return ""
	}
	switch parts[0] {
	case "droplets":
		id, _ := strconv.ParseInt(parts[1], 10, 64)
		if t := d.account.droplets[id]; t != nil {
			return t.name
		}
	case "firewalls":
		if f := d.account.firewall(parts[1]); f != nil {
			return f.Name
		}
	case "volumes":
		if v := d.account.volume(parts[1]); v != nil {
			return v.Name
		}
	case "tags":
		return parts[1]
	}
	return ""
}

// takeFromLimit counts the request and sets the headers: both limits are over
// the time just past.
func (d digitalOcean) takeFromLimit() bool {
	a := d.account
	for len(a.asked) > 0 && d.now.Sub(a.asked[0]) >= time.Hour {
		a.asked = a.asked[1:]
	}
	burst := 0
	for i := len(a.asked) - 1; i >= 0 && d.now.Sub(a.asked[i]) < time.Minute; i-- {
		burst++
	}
	ok := len(a.asked) < digitalOceanLimit && burst < digitalOceanBurst
	if ok {
		a.asked = append(a.asked, d.now)
	}
	d.limitHeaders(digitalOceanLimit - len(a.asked))
	if burst >= digitalOceanBurst {
		oldest := a.asked[len(a.asked)-burst]
		d.w.Header().Set("Retry-After", strconv.Itoa(1+int(d.realUntil(oldest.Add(time.Minute)).Seconds())))
	}
	return ok
}

// realUntil is how long in real time it takes until a simulated time: who
// reads the headers waits in real time.
func (d digitalOcean) realUntil(at time.Time) time.Duration {
	return time.Duration(float64(at.Sub(d.now)) / d.sim.opts.Speed)
}

func (d digitalOcean) limitHeaders(left int) {
	oldest, now := d.now, time.Now()
	if d.account != nil && len(d.account.asked) > 0 {
		oldest = d.account.asked[0]
	}
	if d.sim.opts.Manual { // there is no real time with such a clock
		now = d.now
	}
	h := d.w.Header()
	h.Set("Ratelimit-Limit", strconv.Itoa(digitalOceanLimit))
	h.Set("Ratelimit-Remaining", strconv.Itoa(left))
	h.Set("Ratelimit-Reset", strconv.FormatInt(now.Add(d.realUntil(oldest.Add(time.Hour))).Unix(), 10))
}

// refuse answers as a rule wants.
func (d digitalOcean) refuse(w http.ResponseWriter, f Fault) {
	d.call.w = w
	d.limitHeaders(digitalOceanLimit)
	switch f.Effect {
	case EffectCapacity:
		d.fail(doBad("Size is not available in this region."))
	case EffectQuota:
		d.fail(doBad("creating this/these droplet(s) will exceed your droplet limit"))
	case EffectRateLimit:
		d.limitHeaders(0)
		w.Header().Set("Retry-After", "1")
		d.fail(doFail(http.StatusTooManyRequests, "too_many_requests", "API Rate limit exceeded."))
	case EffectUnauthorized:
		d.fail(doFail(http.StatusUnauthorized, "unauthorized", "Unable to authenticate you"))
	default:
		id, message := f.Code, f.Message
		if id == "" {
			id = map[int]string{
				400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict", 422: "unprocessable_entity",
				429: "too_many_requests", 503: "service_unavailable",
			}[f.Status]
		}
		if id == "" {
			id = "server_error"
		}
		if message == "" {
			message = "simulated"
		}
		d.fail(&doError{status: f.Status, id: id, message: message})
	}
}

func (d digitalOcean) fail(err error) {
	e, ok := err.(*doError)
	if !ok {
		e = &doError{status: http.StatusInternalServerError, id: "server_error", message: err.Error()}
	}
	d.send(e.status, map[string]string{"id": e.id, "message": e.message, "request_id": d.sim.uuid()})
}

func (d digitalOcean) send(status int, v any) {
	d.call.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	d.call.w.WriteHeader(status)
	_ = json.NewEncoder(d.call.w).Encode(v) // to a buffer
}

func (d digitalOcean) done() error {
	d.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

// read reads the request's body. Unknown fields are passed over, as the real
// API does.
func (d digitalOcean) read(v any) error {
	if err := json.Unmarshal(d.body, v); err != nil {
		return doFail(http.StatusBadRequest, "bad_request", "error parsing request body: %v", err)
	}
	return nil
}

// doPage sends a page of a list.
func doPage[T any](d digitalOcean, key string, all []T) error {
	page, err := d.number("page", 1, 1<<30)
	if err != nil {
		return err
	}
	per, err := d.number("per_page", 20, 200)
	if err != nil {
		return err
	}
	last := max(1, (len(all)+per-1)/per)
	pages := map[string]string{}
	link := func(rel string, n int) { pages[rel] = d.link(n) }
	if page > 1 {
		link("first", 1)
		link("prev", min(page-1, last))
	}
	if page < last {
		link("next", page+1)
		link("last", last)
	}
	links := map[string]any{}
	if len(pages) > 0 {
		links["pages"] = pages
	}
	from := min(len(all), (page-1)*per)
	part := all[from:min(len(all), from+per)]
	d.send(http.StatusOK, map[string]any{key: orEmpty(part), "links": links, "meta": map[string]int{"total": len(all)}})
	return nil
}

func (d digitalOcean) number(parameter string, standard, most int) (int, error) {
	text := d.r.URL.Query().Get(parameter)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, doBad("%s must be a number from 1 to %d", parameter, most)
	}
	return n, nil
}

// link is the address of another page of the same list.
func (d digitalOcean) link(page int) string {
	u, q := *d.r.URL, d.r.URL.Query()
	q.Set("page", strconv.Itoa(page))
	u.RawQuery, u.Host, u.Scheme = q.Encode(), d.r.Host, "http"
	if d.r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

func (d digitalOcean) pathID() int64 {
	id, err := strconv.ParseInt(d.r.PathValue("id"), 10, 64)
	if err != nil {
		return -1
	}
	return id
}

func (d digitalOcean) getAccount() error {
	d.send(http.StatusOK, map[string]any{"account": map[string]any{
		"droplet_limit": digitalOceanDroplets, "floating_ip_limit": 3, "reserved_ip_limit": 3, "volume_limit": 100,
		"email": "fleet@example.com", "name": "Simulated", "uuid": d.account.vpc, "email_verified": true, "status": "active", "status_message": "",
		"team": map[string]string{"uuid": d.account.vpc, "name": "Simulated"},
	}})
	return nil
}
