package cloudsim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHetznerServerLife(t *testing.T) {
	b := newBench(t)
	fw := b.must("POST", "/firewalls", map[string]any{"name": "closed"}).text("firewall.id")
	made := b.must("POST", "/servers", serverBody("node-1", map[string]any{
		"labels": map[string]string{"a": "b"}, "firewalls": []any{map[string]any{"firewall": atoi(t, fw)}},
	}))
	id := made.text("server.id")
	for path, want := range map[string]string{
		"server.status": "initializing", "server.locked": "true", "server.location.name": "fsn1", "server.server_type.name": "cx23",
		"server.image.architecture": "x86", "server.labels.a": "b", "server.public_net.ipv4.ip": "198.18.0.1",
		"server.public_net.firewalls.0.status": "pending", "server.created": "2026-01-01T00:00:00Z", "server.primary_disk_size": "40",
		"action.command": "create_server", "action.status": "running", "next_actions.0.command": "start_server",
	} {
		if got := made.text(path); got != want {
			t.Errorf("create: %s is %q, want %q", path, got, want)
		}
	}
	if made.status != http.StatusCreated || made.text("root_password") == "" {
		t.Errorf("create: status %d, root password %q; without a key there is one", made.status, made.text("root_password"))
	}

	b.sim.Advance(3 * time.Second)
	if p := b.must("GET", "/actions/"+made.text("action.id"), nil).text("action.progress"); p != "50" {
		t.Errorf("half-way through its create the progress is %s", p)
	}
	if s := b.must("GET", "/servers/"+id, nil).text("server.public_net.firewalls.0.status"); s != "pending" {
		t.Errorf("before the server starts its firewall is %s", s)
	}
	for _, call := range []string{"DELETE /servers/" + id, "POST /servers/" + id + "/actions/reboot"} {
		method, path, _ := strings.Cut(call, " ")
		if a := b.do(method, path, nil); a.code() != "locked" || a.status != http.StatusLocked {
			t.Errorf("%s during the create: %d %s", call, a.status, a.code())
		}
	}
	b.sim.Advance(3 * time.Second)
	if a := b.must("GET", "/servers/"+id, nil); a.text("server.status") != "starting" || a.text("server.locked") != "true" {
		t.Errorf("after its create the server is %s, locked %s", a.text("server.status"), a.text("server.locked"))
	}
	b.sim.Advance(3 * time.Second)
	a := b.must("GET", "/servers/"+id, nil)
	if a.text("server.status") != "running" || a.text("server.locked") != "false" || a.text("server.public_net.firewalls.0.status") != "applied" {
		t.Errorf("after its start: %s", a.raw)
	}
	both := b.must("GET", "/actions?id="+made.text("action.id")+"&id="+made.text("next_actions.0.id"), nil)
	if both.text("actions.0.status") != "success" || both.text("actions.1.status") != "success" || both.text("actions.1.progress") != "100" {
		t.Errorf("actions: %s", both.raw)
	}

	del := b.must("DELETE", "/servers/"+id, nil)
	if del.status != http.StatusOK || del.text("action.command") != "delete_server" {
		t.Errorf("delete: %d %s", del.status, del.raw)
	}
	if s := b.must("GET", "/servers/"+id, nil).text("server.status"); s != "deleting" {
		t.Errorf("while it is deleted the server is %s", s)
	}
	if c := b.do("DELETE", "/servers/"+id, nil).code(); c != "locked" {
		t.Errorf("a second delete meanwhile: %s", c)
	}
	if c := b.do("DELETE", "/firewalls/"+fw, nil).code(); c != "resource_in_use" {
		t.Errorf("delete of a firewall in use: %s", c)
	}
	b.sim.Advance(hetznerDeleteTakes)
	if c := b.do("GET", "/servers/"+id, nil).code(); c != "not_found" {
		t.Errorf("after its delete: %s", c)
	}
	if c := b.do("POST", "/servers", serverBody("node-1")).code(); c != "uniqueness_error" {
		t.Errorf("the name right after the delete: %s", c)
	}
	b.sim.Advance(hetznerNameHeld)
	if c := b.do("POST", "/servers", serverBody("node-1")).code(); c != "201" {
		t.Errorf("the name a moment later: %s", c)
	}
	if s := b.must("GET", "/actions/"+del.text("action.id"), nil).text("action.status"); s != "success" {
		t.Errorf("the delete's action: %s", s)
	}
	b.must("DELETE", "/firewalls/"+fw, nil)
}

func atoi(t *testing.T, s string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC a@example"
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFD"
)

// TestHetznerRefusals has the code and status of each request that the API
// refuses.
func TestHetznerRefusals(t *testing.T) {
	b := newBench(t)
	create := func(change map[string]any) map[string]any { return serverBody("x", change) }
	used := b.running("used")
	key := b.must("POST", "/ssh_keys", map[string]any{"name": "a", "public_key": keyA}).text("ssh_key.id")
	for _, tt := range []struct {
		name, call string
		body       any
		want       string
	}{
		{"no JSON", "POST /servers", "{", "400 json_error"},
		{"no body", "POST /servers", nil, "422 invalid_input"},
		{"wrong type of field", "POST /servers", `{"name":1}`, "400 json_error"},
		{"name with underscore", "POST /servers", create(map[string]any{"name": "a_b"}), "422 invalid_input"},
		{"name with a hyphen at its end", "POST /servers", create(map[string]any{"name": "a-"}), "422 invalid_input"},
		{"label of a name too long", "POST /servers", create(map[string]any{"name": strings.Repeat("a", 64)}), "422 invalid_input"},
		{"name taken", "POST /servers", create(map[string]any{"name": "used"}), "409 uniqueness_error"},
		{"unknown type", "POST /servers", create(map[string]any{"server_type": "cx99"}), "422 invalid_input"},
		{"retired type", "POST /servers", create(map[string]any{"server_type": "cx22"}), "422 invalid_server_type"},
		{"type not sold there", "POST /servers", create(map[string]any{"location": "ash"}), "422 invalid_input"},
		{"type sold out there", "POST /servers", create(map[string]any{"server_type": "cax31", "location": "hel1"}), "412 resource_unavailable"},
		{"unknown location", "POST /servers", create(map[string]any{"location": "nowhere"}), "422 invalid_input"},
		{"removed field", "POST /servers", create(map[string]any{"datacenter": "fsn1-dc14"}), "422 invalid_input"},
		{"unknown image", "POST /servers", create(map[string]any{"image": "beos-5"}), "422 invalid_input"},
		{"image of the other architecture", "POST /servers", create(map[string]any{"image": 161547261}), "422 invalid_input"},
		{"user-data too long", "POST /servers", create(map[string]any{"user_data": strings.Repeat("x", 32<<10+1)}), "422 invalid_input"},
		{"label key", "POST /servers", create(map[string]any{"labels": map[string]string{"-a": "b"}}), "422 invalid_input"},
		{"label value", "POST /servers", create(map[string]any{"labels": map[string]string{"a": "b c"}}), "422 invalid_input"},
		{"reserved label", "POST /servers", create(map[string]any{"labels": map[string]string{"hetzner.cloud/x": "y"}}), "422 invalid_input"},
		{"unknown key", "POST /servers", create(map[string]any{"ssh_keys": []int{1}}), "404 not_found"},
		{"unknown firewall", "POST /servers", create(map[string]any{"firewalls": []any{map[string]int{"firewall": 1}}}), "404 not_found"},
		{"unknown network", "POST /servers", create(map[string]any{"networks": []int{1}}), "404 not_found"},
		{"unknown placement group", "POST /servers", create(map[string]any{"placement_group": 1}), "404 not_found"},
		{"unknown volume", "POST /servers", create(map[string]any{"volumes": []int{1}}), "404 not_found"},
		{"unknown address", "POST /servers", create(map[string]any{"public_net": map[string]any{"ipv4": 1}}), "404 not_found"},
		{"unknown server", "GET /servers/1", nil, "404 not_found"},
		{"not an id", "GET /servers/used", nil, "404 not_found"},
		{"delete of an unknown server", "DELETE /servers/1", nil, "404 not_found"},
		{"rename to a wrong name", "PUT /servers/" + used, map[string]string{"name": "a_b"}, "422 invalid_input"},
		{"unknown act", "POST /servers/" + used + "/actions/dance", nil, "404 not_found"},
		{"half a protection", "POST /servers/" + used + "/actions/change_protection", map[string]bool{"delete": true}, "422 invalid_input"},
		{"unknown path", "GET /nothing", nil, "404 not_found"},
		{"unknown method", "PATCH /servers", nil, "404 not_found"},
		{"removed: datacenters", "GET /datacenters", nil, "410 deprecated_api_endpoint"},
		{"removed: a datacenter", "GET /datacenters/1", nil, "410 deprecated_api_endpoint"},
		{"removed: all actions", "GET /actions", nil, "410 deprecated_api_endpoint"},
		{"unknown action", "GET /actions/1", nil, "404 not_found"},
		{"action id", "GET /actions?id=x", nil, "422 invalid_input"},
		{"actions of an unknown server", "GET /servers/1/actions", nil, "404 not_found"},
		{"page 0", "GET /servers?page=0", nil, "422 invalid_input"},
		{"page x", "GET /servers?per_page=x", nil, "422 invalid_input"},
		{"sort by colour", "GET /servers?sort=colour", nil, "422 invalid_input"},
		{"sort sideways", "GET /servers?sort=id:sideways", nil, "422 invalid_input"},
		{"selector", "GET /servers?label_selector=a=b,,c", nil, "422 invalid_input"},
		{"no key", "POST /ssh_keys", map[string]string{"name": "x", "public_key": "ssh-ed25519 AAAA"}, "422 invalid_input"},
		{"key without a name", "POST /ssh_keys", map[string]string{"public_key": keyB}, "422 invalid_input"},
		{"key twice", "POST /ssh_keys", map[string]string{"name": "other", "public_key": keyA}, "409 uniqueness_error"},
		{"key's name twice", "POST /ssh_keys", map[string]string{"name": "a", "public_key": keyB}, "409 uniqueness_error"},
		{"key's empty name", "PUT /ssh_keys/" + key, map[string]string{"name": ""}, "422 invalid_input"},
		{"volume too small", "POST /volumes", map[string]any{"name": "v", "size": 9, "location": "fsn1"}, "422 invalid_input"},
		{"volume nowhere", "POST /volumes", map[string]any{"name": "v", "size": 10}, "422 invalid_input"},
		{"volume's format", "POST /volumes", map[string]any{"name": "v", "size": 10, "location": "fsn1", "format": "ntfs"}, "422 invalid_input"},
		{"address of no type", "POST /primary_ips", map[string]any{"name": "p", "location": "fsn1"}, "422 invalid_input"},
		{"address nowhere", "POST /primary_ips", map[string]any{"name": "p", "type": "ipv4"}, "422 invalid_input"},
		{"address for a running server", "POST /primary_ips", map[string]any{"name": "p", "type": "ipv4", "assignee_id": atoi(t, used)}, "422 server_not_stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method, path, _ := strings.Cut(tt.call, " ")
			a := b.do(method, path, tt.body)
			if got := fmt.Sprint(a.status, " ", a.code()); got != tt.want {
				t.Errorf("%s, want %s\n%s", got, tt.want, a.raw)
			}
			if a.code() == "invalid_input" && strings.Contains(a.text("error.message"), "invalid input in field") && a.text("error.details.fields.0.messages.0") == "" {
				t.Errorf("no details: %s", a.raw)
			}
			if a.header.Get("X-Correlation-Id") == "" || a.header.Get("RateLimit-Remaining") == "" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("headers: %v", a.header)
			}
		})
	}
	if sum := b.sim.LedgerSummary(); sum.Left != 3 {
		t.Errorf("what was refused left something: %+v", sum)
	}
}

func TestHetznerTokens(t *testing.T) {
	b := newBench(t)
	id := b.server("x")
	for _, tt := range []struct{ token, method, want string }{
		{"", "GET", "unauthorized"},
		{"invalid-token", "GET", "unauthorized"},
		{"readonly-token", "GET", "200"},
		{"readonly-token", "POST", "forbidden"},
		{"another-token", "GET", "200"},
	} {
		b.token = tt.token
		if got := b.do(tt.method, "/servers", serverBody("y")).code(); got != tt.want {
			t.Errorf("%s with %q: %s, want %s", tt.method, tt.token, got, tt.want)
		}
	}
	b.token = "another-token"
	if c := b.do("GET", "/servers/"+id, nil).code(); c != "not_found" {
		t.Errorf("another project's server: %s", c)
	}
	req := httptest.NewRequest("GET", hetznerPrefix+"/servers", nil)
	req.Header.Set("Authorization", testToken) // without the scheme
	w := httptest.NewRecorder()
	b.sim.Handler().ServeHTTP(w, req)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without the scheme: %d", w.Code)
	}
	for _, r := range b.sim.Requests() {
		if strings.Contains(fmt.Sprint(r), testToken) {
			t.Errorf("the log has the token: %v", r)
		}
	}
}

func TestHetznerLimit(t *testing.T) {
	b := newBench(t)
	var last answer
	for range hetznerLimit {
		last = b.must("GET", "/locations/1", nil)
	}
	if got := last.header.Get("RateLimit-Remaining"); got != "0" {
		t.Errorf("%s are left of an hour's requests", got)
	}
	a := b.do("GET", "/locations/1", nil)
	if a.status != http.StatusTooManyRequests || a.code() != "rate_limit_exceeded" {
		t.Errorf("one more: %d %s", a.status, a.code())
	}
	want := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC).Unix()
	if got := map[string]string{"limit": a.header.Get("RateLimit-Limit"), "reset": a.header.Get("RateLimit-Reset")}; !cmp.Equal(got, map[string]string{"limit": "3600", "reset": fmt.Sprint(want)}) {
		t.Errorf("headers: %v, want the reset at %d", got, want)
	}
	b.sim.Advance(time.Second)
	if c := b.do("GET", "/locations/1", nil).code(); c != "200" {
		t.Errorf("a second later: %s", c)
	}
	if c := b.do("GET", "/locations/1", nil).code(); c != "rate_limit_exceeded" {
		t.Errorf("only one comes back a second: %s", c)
	}
	b.token = "another-token"
	if c := b.do("GET", "/locations/1", nil).code(); c != "200" {
		t.Errorf("another project: %s", c)
	}
}
