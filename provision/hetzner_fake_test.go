package provision_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

// fakeHetzner is a project of the Hetzner Cloud API, in memory and on the
// test's clock. It is smaller than the simulated cloud and knows nothing of
// the code under test: tables of objects, and the rules that matter here.
type fakeHetzner struct {
	mu       sync.Mutex
	lastID   int64
	tables   map[string][]object // by the name in the API's lists
	requests []string            // "POST /servers"
	bodies   []string            // of POST and PUT, beside their requests
	faults   map[string][]fault  // by request
	bareMeta bool                // leave last_page and total_entries out
}

// fault is one misbehaviour at a request.
type fault struct {
	after   bool // let it take effect first
	status  int  // 0: the connection breaks
	code    string
	message string
	header  http.Header
	edit    func(answer object) // change a good answer instead
}

const (
	goodToken     = "good-token-0123456789-0123456789-0123456789-0123456789-012345678"
	readOnlyToken = "read-token-0123456789-0123456789-0123456789-0123456789-012345678"
	badToken      = "wrong-token-0123456789-0123456789-0123456789-0123456789-01234567"
)

const (
	fakeLocked   = 4 * time.Second // after the create
	fakeBoot     = 20 * time.Second
	fakeDeleting = 3 * time.Second
)

func newFakeHetzner() *fakeHetzner {
	f := &fakeHetzner{lastID: 1000, tables: map[string][]object{}, faults: map[string][]fault{}}
	for _, l := range []struct{ name, city, country string }{{"fsn1", "Falkenstein", "DE"}, {"hel1", "Helsinki", "FI"}, {"ash", "Ashburn, VA", "US"}} {
		f.add("locations", object{"name": l.name, "city": l.city, "country": l.country, "description": l.city})
	}
	for _, t := range []struct {
		name, arch string
		cores      int
		memory     float64
	}{{"cx23", "x86", 2, 4}, {"cax11", "arm", 2, 4}, {"cpx22", "x86", 2, 4.5}} {
		f.add("server_types", object{
			"name": t.name, "description": strings.ToUpper(t.name), "cores": t.cores, "memory": t.memory, "disk": 40, "architecture": t.arch,
			"prices": []object{fakePrice("fsn1", "4.1531000000000000"), fakePrice("hel1", "3.9000000000000000")},
			"locations": []object{
				{"name": "fsn1", "available": true, "deprecation": nil}, {"name": "hel1", "available": true, "deprecation": nil},
			},
		})
	}
	for _, arch := range []string{"x86", "arm"} {
		f.add("images", object{"name": "ubuntu-24.04", "status": "available", "architecture": arch})
	}
	return f
}

func fakePrice(location, gross string) object {
	return object{"location": location, "price_monthly": object{"net": "1", "gross": gross}}
}

func (f *fakeHetzner) add(table string, o object) object {
	f.lastID++
	o["id"] = f.lastID
	if o["created"] == nil {
		o["created"] = time.Now().UTC().Format(time.RFC3339)
	}
	if o["labels"] == nil {
		o["labels"] = map[string]string{}
	}
	f.tables[table] = append(f.tables[table], o)
	return o
}

// RoundTrip makes it an http.RoundTripper.
func (f *fakeHetzner) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick()
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	request := r.Method + " " + path
	f.requests = append(f.requests, request)
	fl, faulty := f.nextFault(request)
	w := httptest.NewRecorder()
	w.Header().Set("X-Correlation-Id", fmt.Sprintf("call-%d", len(f.requests)))
	if faulty && !fl.after && fl.edit == nil {
		if fl.status == 0 {
			return nil, fmt.Errorf("connection reset by peer, after %s", r.Header.Get("Authorization"))
		}
		for k, v := range fl.header {
			w.Header()[k] = v
		}
		fail(w, fl.status, fl.code, fl.message)
		return w.Result(), nil
	}
	f.serve(w, r, path)
	if faulty && fl.after {
		return nil, fmt.Errorf("connection reset by peer, after %s", r.Header.Get("Authorization"))
	}
	if faulty && fl.edit != nil {
		var answer object
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			return nil, err
		}
		fl.edit(answer)
		w.Body.Reset()
		_ = json.NewEncoder(w.Body).Encode(answer)
	}
	return w.Result(), nil
}

func (f *fakeHetzner) fault(request string, faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[request] = append(f.faults[request], faults...)
}

func (f *fakeHetzner) nextFault(request string) (fault, bool) {
	queue := f.faults[request]
	if len(queue) == 0 {
		return fault{}, false
	}
	f.faults[request] = queue[1:]
	return queue[0], true
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"code": code, "message": message}})
}

func reply(w http.ResponseWriter, status int, o object) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(o)
}

// tick moves the servers through their lives.
func (f *fakeHetzner) tick() {
	now := time.Now()
	f.tables["servers"] = slices.DeleteFunc(f.tables["servers"], func(s object) bool {
		if end, ok := s["_deleted"].(time.Time); ok && !now.Before(end.Add(fakeDeleting)) {
			f.drop("primary_ips", func(a object) bool { return a["assignee_id"] == s["id"] })
			return true
		}
		born := s["_born"].(time.Time)
		if s["status"] == "initializing" && now.Sub(born) >= fakeBoot {
			s["status"] = "running"
		}
		return false
	})
}

func (f *fakeHetzner) drop(table string, gone func(object) bool) {
	f.tables[table] = slices.DeleteFunc(f.tables[table], gone)
}

func (f *fakeHetzner) find(table string, id string) object {
	for _, o := range f.tables[table] {
		if strconv.FormatInt(o["id"].(int64), 10) == id {
			return o
		}
	}
	return nil
}

func (f *fakeHetzner) serve(w http.ResponseWriter, r *http.Request, path string) {
	switch strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") {
	case goodToken:
	case readOnlyToken:
		if r.Method != http.MethodGet {
			fail(w, 403, "token_readonly", "token is only allowed to perform GET requests")
			return
		}
	default:
		fail(w, 401, "unauthorized", "unable to authenticate")
		return
	}
	var body object
	if r.Body != nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		_ = json.NewDecoder(r.Body).Decode(&body)
		text, _ := json.Marshal(body)
		f.bodies = append(f.bodies, r.Method+" "+path+" "+string(text))
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	table := parts[0]
	switch {
	case path == "/pricing":
		reply(w, 200, object{"pricing": object{"currency": "EUR", "vat_rate": "19.00"}})
	case r.Method == http.MethodGet && len(parts) == 1:
		f.list(w, r, table)
	case r.Method == http.MethodPost && len(parts) == 1:
		f.create(w, table, body)
	case len(parts) < 2 || f.find(table, parts[1]) == nil:
		fail(w, 404, "not_found", "not found")
	case r.Method == http.MethodGet:
		reply(w, 200, object{strings.TrimSuffix(table, "s"): f.find(table, parts[1])})
	case r.Method == http.MethodPut:
		f.find(table, parts[1])["labels"] = body["labels"]
		reply(w, 200, object{})
	case r.Method == http.MethodDelete:
		f.delete(w, table, f.find(table, parts[1]))
	case len(parts) == 4 && parts[3] == "set_rules":
		f.find(table, parts[1])["rules"] = body["rules"]
		reply(w, 201, object{"actions": []any{}})
	default:
		fail(w, 404, "not_found", "no such call")
	}
}

func (f *fakeHetzner) list(w http.ResponseWriter, r *http.Request, table string) {
	q := r.URL.Query()
	found := []object{}
	for _, o := range f.tables[table] {
		if matches(o, q.Get("name"), q.Get("fingerprint"), q.Get("label_selector")) {
			found = append(found, o)
		}
	}
	page, _ := strconv.Atoi(q.Get("page"))
	per, _ := strconv.Atoi(q.Get("per_page"))
	page, per = max(page, 1), min(max(per, 1), 50)
	total := len(found)
	last := max(1, (total+per-1)/per)
	from := min((page-1)*per, total)
	part := found[from:min(from+per, total)]
	pagination := object{"page": page, "per_page": per, "last_page": last, "total_entries": total, "next_page": nil}
	if page < last {
		pagination["next_page"] = page + 1
	}
	if f.bareMeta {
		pagination["last_page"], pagination["total_entries"] = nil, nil
	}
	reply(w, 200, object{table: part, "meta": object{"pagination": pagination}})
}

func matches(o object, name, fingerprint, selector string) bool {
	if name != "" && o["name"] != name || fingerprint != "" && o["fingerprint"] != fingerprint {
		return false
	}
	text, _ := json.Marshal(o["labels"])
	var labels map[string]string
	_ = json.Unmarshal(text, &labels)
	for term := range strings.SplitSeq(selector, ",") {
		if k, v, ok := strings.Cut(term, "="); ok && labels[k] != v {
			return false
		}
	}
	return true
}

func (f *fakeHetzner) create(w http.ResponseWriter, table string, body object) {
	if slices.ContainsFunc(f.tables[table], func(o object) bool { return o["name"] == body["name"] }) {
		fail(w, 409, "uniqueness_error", "name is already used")
		return
	}
	switch table {
	case "servers":
		f.createServer(w, body)
	case "firewalls":
		reply(w, 201, object{"firewall": f.add(table, body), "actions": []any{}})
	case "ssh_keys":
		body["fingerprint"] = fingerprint(body["public_key"].(string))
		reply(w, 201, object{"ssh_key": f.add(table, body)})
	}
}

func (f *fakeHetzner) createServer(w http.ResponseWriter, body object) {
	known := func(table string, name any) bool {
		return slices.ContainsFunc(f.tables[table], func(o object) bool { return o["name"] == name })
	}
	if !known("server_types", body["server_type"]) || !known("locations", body["location"]) {
		fail(w, 422, "invalid_input", "invalid input in field 'server_type' or 'location'")
		return
	}
	applied := []object{}
	for _, ref := range body["firewalls"].([]any) {
		id := strconv.FormatFloat(ref.(object)["firewall"].(float64), 'f', 0, 64)
		if f.find("firewalls", id) == nil {
			fail(w, 404, "not_found", "firewall not found")
			return
		}
		applied = append(applied, object{"id": f.find("firewalls", id)["id"], "status": "pending"})
	}
	for _, id := range body["ssh_keys"].([]any) {
		if f.find("ssh_keys", strconv.FormatFloat(id.(float64), 'f', 0, 64)) == nil {
			fail(w, 404, "not_found", "SSH key not found")
			return
		}
	}
	s := f.add("servers", object{
		"name": body["name"], "labels": body["labels"], "status": "initializing", "_born": time.Now(),
		"server_type": object{"name": body["server_type"]}, "location": object{"name": body["location"]},
	})
	ip := fmt.Sprintf("203.0.113.%d", len(f.tables["servers"]))
	a := f.add("primary_ips", object{"name": fmt.Sprintf("primary_ip-%d", f.lastID), "ip": ip, "assignee_id": s["id"], "location": s["location"]})
	s["public_net"] = object{
		"ipv4": object{"id": a["id"], "ip": ip}, "ipv6": object{"id": 1, "ip": "2001:db8:1::/64"}, "firewalls": applied,
	}
	reply(w, 201, object{"server": s, "root_password": nil})
}

func (f *fakeHetzner) delete(w http.ResponseWriter, table string, o object) {
	switch {
	case table == "servers" && o["_protected"] == true:
		fail(w, 403, "protected", "server is protected")
	case table == "servers" && time.Since(o["_born"].(time.Time)) < fakeLocked:
		fail(w, 423, "locked", "server is locked")
	case table == "servers":
		if o["_deleted"] == nil {
			o["_deleted"], o["status"] = time.Now(), "deleting"
		}
		reply(w, 200, object{"action": object{"id": 1}})
	case table == "firewalls" && f.inUse(o):
		fail(w, 409, "resource_in_use", "firewall is still in use")
	default:
		f.drop(table, func(other object) bool { return other["id"] == o["id"] })
		w.WriteHeader(204)
	}
}

func (f *fakeHetzner) inUse(firewall object) bool {
	for _, s := range f.tables["servers"] {
		for _, a := range s["public_net"].(object)["firewalls"].([]object) {
			if a["id"] == firewall["id"] {
				return true
			}
		}
	}
	return false
}
