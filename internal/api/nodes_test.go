package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
)

func node(t *testing.T, resp *http.Response, data []byte) client.Node {
	t.Helper()
	if resp.StatusCode > 299 {
		t.Fatalf("answered %d: %s", resp.StatusCode, data)
	}
	var n client.Node
	if err := json.Unmarshal(data, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func creates(f *apitest.Fleet) (n int) {
	for _, c := range f.Calls() {
		if strings.HasPrefix(c, "CreateNode") {
			n++
		}
	}
	return n
}

func TestCreateUnderOneKey(t *testing.T) {
	f, url := start(t, api.Options{})
	key := http.Header{"Idempotency-Key": {"order-1"}}
	body := `{"account":"prod","candidates":[{"region":"fsn1","size":"cx23"}],"labels":{"role":"web"}}` // no name

	resp, data := send(t, "POST", url+"/v1/nodes", body, key)
	first := node(t, resp, data)
	if resp.StatusCode != http.StatusCreated || first.Name == "" || first.Phase != "pending" {
		t.Fatalf("%d %+v", resp.StatusCode, first)
	}
	if d := cmp.Diff(map[string]string{"role": "web"}, first.Labels); d != "" {
		t.Errorf("labels of the API's own show: %s", d)
	}
	resp, data = send(t, "POST", url+"/v1/nodes", body, key)
	if again := node(t, resp, data); resp.StatusCode != http.StatusOK || again.ID != first.ID {
		t.Errorf("repeated: %d %s, want 200 and %s", resp.StatusCode, again.ID, first.ID)
	}
	// The same after its end: a late repeat must not make a second machine.
	if resp, data := send(t, "DELETE", url+"/v1/nodes/"+first.ID, "", nil); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("delete answered %d: %s", resp.StatusCode, data)
	}
	resp, data = send(t, "POST", url+"/v1/nodes", body, key)
	if again := node(t, resp, data); again.ID != first.ID || again.Phase != "deleted" {
		t.Errorf("repeated after the end: %+v", again)
	}
	if n := creates(f); n != 1 {
		t.Errorf("the fleet was asked for %d nodes", n)
	}

	resp, data = send(t, "POST", url+"/v1/nodes", strings.Replace(body, "cx23", "cx33", 1), key)
	if p := problemOf(t, resp, data); p.Class != "conflict" || !strings.Contains(p.Detail, first.Name) {
		t.Errorf("the key with another request: %+v", p)
	}
	resp, data = send(t, "POST", url+"/v1/nodes", body, http.Header{"Idempotency-Key": {"order-2"}})
	if other := node(t, resp, data); other.ID == first.ID {
		t.Error("another key returned the same node")
	}
	resp, data = send(t, "POST", url+"/v1/nodes", body, nil)
	if other := node(t, resp, data); resp.StatusCode != http.StatusCreated || other.ID == first.ID {
		t.Error("no key returned the same node")
	}
}

// TestKeyOutlivesTheProcess: another control plane over the same records knows
// the key, also when both get the same create at once.
func TestKeyOutlivesTheProcess(t *testing.T) {
	f, url := start(t, api.Options{})
	key := http.Header{"Idempotency-Key": {"order-1"}}
	body := `{"account":"prod","candidates":[{"region":"fsn1","size":"cx23"}]}`
	other, stop, err := apitest.Serve(f, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	// The other one has read the records before there was anything.
	node(t, first(send(t, "POST", other+"/v1/nodes", body, http.Header{"Idempotency-Key": {"warm"}})), []byte("{}"))
	resp, data := send(t, "POST", url+"/v1/nodes", body, key)
	made := node(t, resp, data)
	resp, data = send(t, "POST", other+"/v1/nodes", body, key)
	if n := node(t, resp, data); n.ID != made.ID || resp.StatusCode != http.StatusOK {
		t.Errorf("a second control plane made %s, the first %s", n.ID, made.ID)
	}
	third, stop3, err := apitest.Serve(f, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop3()
	resp, data = send(t, "POST", third+"/v1/nodes", body, key)
	if n := node(t, resp, data); n.ID != made.ID {
		t.Errorf("after a restart %s, before %s", n.ID, made.ID)
	}
	resp, data = send(t, "POST", third+"/v1/nodes", strings.Replace(body, "fsn1", "nbg1", 1), key)
	if p := problemOf(t, resp, data); p.Class != "conflict" {
		t.Errorf("%+v", p)
	}
}

func TestConcurrentCreatesUnderOneKey(t *testing.T) {
	f, url := start(t, api.Options{})
	var mu sync.Mutex
	ids := map[string]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			resp, data := send(t, "POST", url+"/v1/nodes", createBody, http.Header{"Idempotency-Key": {"k"}})
			n := node(t, resp, data)
			mu.Lock()
			defer mu.Unlock()
			ids[n.ID]++
		})
	}
	wg.Wait()
	if len(ids) != 1 || creates(f) != 1 {
		t.Errorf("20 creates under one key made %v with %d calls", ids, creates(f))
	}
}

func TestNameInUse(t *testing.T) {
	_, url := start(t, api.Options{})
	send(t, "POST", url+"/v1/nodes", createBody, nil)
	resp, data := send(t, "POST", url+"/v1/nodes", createBody, nil)
	if p := problemOf(t, resp, data); p.Class != "conflict" || p.Status != http.StatusConflict {
		t.Errorf("%+v", p)
	}
}

func TestListFilters(t *testing.T) {
	_, url := start(t, api.Options{})
	for i := range 4 {
		body := fmt.Sprintf(`{"name":"n%d","account":"prod","candidates":[{"region":"fsn1","size":"cx23"}],"labels":{"odd":"%v","all":"yes"}}`, i, i%2 == 1)
		node(t, first(send(t, "POST", url+"/v1/nodes", body, nil)), second(send(t, "GET", url+fmt.Sprintf("/v1/nodes/n%d", i), "", nil)))
	}
	send(t, "DELETE", url+"/v1/nodes/n3", "", nil)
	for query, want := range map[string]string{
		"":                                     "n0 n1 n2",
		"?label=odd=true":                      "n1",
		"?label=odd=true,all=yes":              "n1",
		"?label=odd=true,all=no":               "",
		"?deleted=true":                        "n0 n1 n2 n3",
		"?phase=deleted":                       "n3",
		"?phase=joined,deleted&label=odd=true": "n1 n3",
		"?account=prod":                        "n0 n1 n2",
		"?account=other":                       "",
	} {
		resp, data := send(t, "GET", url+"/v1/nodes"+query, "", nil)
		var list client.NodeList
		if err := json.Unmarshal(data, &list); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d %v %s", query, resp.StatusCode, err, data)
		}
		var names []string
		for _, n := range list.Nodes {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if want == "" && !strings.Contains(string(data), `"nodes":[]`) {
			t.Errorf("an empty list is sent as %s", data)
		}
	}
}

func first(r *http.Response, _ []byte) *http.Response { return r }
func second(_ *http.Response, b []byte) []byte        { return b }

func TestNodeOnTheWire(t *testing.T) {
	_, url := start(t, api.Options{})
	send(t, "POST", url+"/v1/nodes", createBody, nil)
	_, data := send(t, "GET", url+"/v1/nodes/web-1", "", nil)
	want := `{"id":"0199aaaa-0000-7000-8000-000000000001","name":"web-1","phase":"joined","account":"prod","provider":"hetzner",` +
		`"region":"fsn1","size":"cx23","server_id":"42","server_status":"running","ip_addr":"203.0.113.7","price_monthly":"4.15","currency":"EUR",` +
		`"created_at":"2026-03-01T12:00:00Z","join_by":"2026-03-01T12:20:00Z","joined_at":"2026-03-01T12:00:21.3Z"}`
	if d := cmp.Diff(want, strings.TrimSpace(string(data))); d != "" {
		t.Error(d)
	}
}
