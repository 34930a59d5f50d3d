package provision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// gcpFake is a project at Compute Engine, as far as the contract needs it:
// operations take their time, creates can fail after they were accepted.
type gcpFake struct {
	mu        sync.Mutex
	instances map[string]map[string]any // by zone/name
	disks     map[string]map[string]any
	firewalls map[string]map[string]any
	network   map[string]any
	gone      map[string]time.Time // when a delete of an instance ends
	made      map[string]time.Time
	ops       map[string]map[string]any
	requests  map[string]string // operation by request id
	calls     []string
	next      int

	lose       bool
	refuse     func() (int, string, string) // status, reason, message: of the next create
	lateReason string                       // the next create is accepted and fails later
}

func newGCPFake() *gcpFake {
	return &gcpFake{
		instances: map[string]map[string]any{}, disks: map[string]map[string]any{}, firewalls: map[string]map[string]any{},
		gone: map[string]time.Time{}, made: map[string]time.Time{}, ops: map[string]map[string]any{}, requests: map[string]string{},
	}
}

const gcpFakeURL = "https://www.googleapis.com/compute/v1/projects/demo-1/"

func (f *gcpFake) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var body map[string]any
	form := url.Values{}
	if r.Body != nil {
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &body)
		form, _ = url.ParseQuery(string(data))
	}
	w := httptest.NewRecorder()
	f.settle()
	if r.URL.Path == "/token" {
		f.token(w, form)
		return w.Result(), nil
	}
	path := strings.TrimPrefix(r.URL.Path, "/compute/v1/projects/demo-1")
	f.calls = append(f.calls, r.Method+" "+path)
	isCreate := r.Method == http.MethodPost && strings.HasSuffix(path, "/instances")
	readOnly := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer readonly")
	switch {
	case strings.HasSuffix(path, ":testIamPermissions"):
		if readOnly {
			body["permissions"] = []any{"compute.instances.get"}
		}
		f.reply(w, body)
	case readOnly && r.Method != http.MethodGet:
		f.fail(w, 403, "forbidden", "Required 'compute.instances.create' permission")
	case isCreate && f.refuse != nil:
		status, reason, message := f.refuse()
		f.refuse = nil
		f.fail(w, status, reason, message)
	default:
		f.route(w, r, path, body)
	}
	if isCreate && f.lose {
		f.lose = false
		return nil, errors.New("connection reset by peer")
	}
	return w.Result(), nil
}

// token issues what the assertion's issuer is called.
func (f *gcpFake) token(w *httptest.ResponseRecorder, form url.Values) {
	parts := strings.Split(form.Get("assertion"), ".")
	var claims struct{ Iss, Aud, Scope string }
	if len(parts) == 3 {
		_ = json.Unmarshal(mustBase64(parts[1]), &claims)
	}
	if strings.HasPrefix(claims.Iss, "invalid") || claims.Aud != "https://gcp.test/token" || claims.Scope == "" {
		w.WriteHeader(400)
		_, _ = w.WriteString(`{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`)
		return
	}
	name, _, _ := strings.Cut(claims.Iss, "@")
	f.reply(w, map[string]any{"access_token": name + "-token", "expires_in": 3599, "token_type": "Bearer"})
}

func (f *gcpFake) reply(w *httptest.ResponseRecorder, v any) { _ = json.NewEncoder(w).Encode(v) }

func (f *gcpFake) fail(w *httptest.ResponseRecorder, status int, reason, message string) {
	w.WriteHeader(status)
	f.reply(w, map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []any{map[string]any{"reason": reason, "message": message, "domain": "global"}},
	}})
}

// settle lets happen what is due.
func (f *gcpFake) settle() {
	now := time.Now()
	for key, at := range f.gone {
		if now.After(at) {
			delete(f.instances, key)
			delete(f.disks, key)
			delete(f.gone, key)
		}
	}
	for key, i := range f.instances {
		if i["status"] != "STOPPING" && now.Sub(f.made[key]) > 10*time.Second {
			i["status"] = "RUNNING"
			nic := i["networkInterfaces"].([]any)[0].(map[string]any)
			nic["accessConfigs"].([]any)[0].(map[string]any)["natIP"] = "198.51.100.7"
		}
	}
	for _, o := range f.ops {
		if now.After(o["ends"].(time.Time)) {
			o["status"] = "DONE"
			if o["late"] != "" {
				o["error"] = map[string]any{"errors": []any{map[string]any{"code": o["late"], "message": "The zone does not have enough resources",
					"errorDetails": []any{map[string]any{"errorInfo": map[string]any{"metadatas": map[string]any{"zonesAvailable": "europe-west1-c"}}}}}}}
			}
		}
	}
}

func (f *gcpFake) operation(kind, target string, takes time.Duration, late string) map[string]any {
	f.next++
	o := map[string]any{
		"name": fmt.Sprintf("operation-%d", f.next), "operationType": kind, "status": "RUNNING", "targetLink": gcpFakeURL + target,
		"insertTime": time.Now().Format(time.RFC3339Nano), "ends": time.Now().Add(takes), "late": late,
	}
	f.ops[o["name"].(string)] = o
	return o
}

var (
	gcpZonal  = regexp.MustCompile(`^/zones/(europe-west1-[bc])/([A-Za-z]+)(?:/([^/]+))?(?:/serialPort)?$`)
	gcpGlobal = regexp.MustCompile(`^/global/([a-z]+)(?:/([^/]+))?$`)
)

func (f *gcpFake) route(w *httptest.ResponseRecorder, r *http.Request, path string, body map[string]any) {
	zone := func(name string) map[string]any {
		return map[string]any{"name": name, "status": "UP", "region": gcpFakeURL + "regions/europe-west1"}
	}
	switch {
	case path == "":
		f.reply(w, map[string]any{"quotas": []any{map[string]any{"metric": "CPUS_ALL_REGIONS", "limit": 100.0, "usage": 0.0}}})
	case path == "/zones":
		f.reply(w, map[string]any{"items": []any{zone("europe-west1-b"), zone("europe-west1-c"), map[string]any{"name": "down-1-a", "status": "DOWN"}}})
	case path == "/zones/europe-west1-b":
		f.reply(w, zone("europe-west1-b"))
	case path == "/regions/europe-west1":
		f.reply(w, map[string]any{"name": "europe-west1", "quotas": []any{map[string]any{"metric": "CPUS", "limit": 8.0, "usage": 0.0}}})
	case strings.HasPrefix(path, "/aggregated/"):
		f.aggregated(w, strings.TrimPrefix(path, "/aggregated/"), r.URL.Query().Get("filter"))
	case gcpGlobal.MatchString(path):
		m := gcpGlobal.FindStringSubmatch(path)
		f.global(w, r.Method, m[1], m[2], body)
	case gcpZonal.MatchString(path):
		m := gcpZonal.FindStringSubmatch(path)
		f.zonal(w, r, m[1], m[2], m[3], body)
	default:
		f.fail(w, 404, "notFound", "The resource was not found")
	}
}

func gcpFakeTypes() []any {
	return []any{
		map[string]any{"name": "e2-small", "guestCpus": 2, "memoryMb": 2048, "architecture": "X86_64", "isSharedCpu": true},
		map[string]any{"name": "t2a-standard-1", "guestCpus": 1, "memoryMb": 4096, "architecture": "ARM64"},
		map[string]any{"name": "old-1", "guestCpus": 1, "memoryMb": 1024, "deprecated": map[string]any{"state": "DEPRECATED"}},
	}
}

func (f *gcpFake) aggregated(w *httptest.ResponseRecorder, kind, filter string) {
	if kind == "machineTypes" {
		f.reply(w, map[string]any{"items": map[string]any{"zones/europe-west1-b": map[string]any{"machineTypes": gcpFakeTypes()}}})
		return
	}
	all := map[string]map[string]map[string]any{"instances": f.instances, "disks": f.disks}[kind]
	var list []any
	for _, v := range all {
		labels, _ := v["labels"].(map[string]any)
		ok := true
		for _, m := range regexp.MustCompile(`\(labels\.([^=)]+)=([^)]*)\)`).FindAllStringSubmatch(filter, -1) {
			ok = ok && labels[m[1]] == m[2]
		}
		if ok {
			list = append(list, v)
		}
	}
	f.reply(w, map[string]any{"items": map[string]any{
		"zones/europe-west1-b": map[string]any{kind: list}, "zones/europe-west1-c": map[string]any{"warning": map[string]any{"code": "NO_RESULTS_ON_PAGE"}},
	}})
}

func (f *gcpFake) global(w *httptest.ResponseRecorder, method, kind, name string, body map[string]any) {
	if body != nil {
		name, _ = body["name"].(string)
		body["creationTimestamp"] = time.Now().Format(time.RFC3339)
	}
	things := f.firewalls
	if kind == "networks" {
		things = map[string]map[string]any{}
		if f.network != nil {
			things[f.network["name"].(string)] = f.network
		}
	}
	if kind == "operations" {
		things = f.ops
	}
	thing, found := things[name]
	switch {
	case method == http.MethodPost && found:
		f.fail(w, 409, "alreadyExists", "The resource already exists")
	case method == http.MethodPost:
		if kind == "networks" {
			body["subnetworks"] = []any{"s"}
			f.network = body
		} else {
			f.firewalls[name] = body
		}
		f.reply(w, f.operation("insert", "global/"+kind+"/"+name, 3*time.Second, ""))
	case name == "":
		var list []any
		for _, v := range things {
			list = append(list, v)
		}
		f.reply(w, map[string]any{"items": list})
	case !found:
		f.fail(w, 404, "notFound", "The resource was not found")
	case method == http.MethodDelete:
		if kind == "networks" {
			f.network = nil
		}
		delete(f.firewalls, name)
		f.reply(w, f.operation("delete", "global/"+kind+"/"+name, 3*time.Second, ""))
	default:
		f.reply(w, thing)
	}
}
