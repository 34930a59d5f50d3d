package provision_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/provision"
)

// doScopeNames are the API's own, from its description, by the first word of a
// path.
var doScopeNames = map[string]string{
	"account": "account", "account/keys": "ssh_key", "droplets": "droplet", "firewalls": "firewall", "images": "image",
	"regions": "regions", "sizes": "sizes", "tags": "tag", "volumes": "block_storage",
}

var doScopeVerbs = map[string]string{http.MethodGet: "read", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}

// doScopes notes which scope each request needs.
type doScopes struct {
	next http.RoundTripper

	mu     sync.Mutex
	scopes map[string]bool
}

func (s *doScopes) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/digitalocean/v2/")
	kind, _, _ := strings.Cut(path, "/")
	if strings.HasPrefix(path, "account/keys") {
		kind = "account/keys"
	}
	s.mu.Lock()
	s.scopes[doScopeNames[kind]+":"+doScopeVerbs[r.Method]] = true
	if r.URL.Query().Get("tag_name") != "" {
		s.scopes["tag:read"] = true
	}
	s.mu.Unlock()
	return s.next.RoundTrip(r)
}

// TestDigitalOceanScopes holds the scopes that people are told to give to
// those that the calls of a whole life need: no fewer, and no more.
func TestDigitalOceanScopes(t *testing.T) {
	text, err := os.ReadFile("../docs/permissions/digitalocean.json")
	var file struct{ Scopes []string }
	if err = errors.Join(err, json.Unmarshal(text, &file)); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newDOCloud(t)
		wire := &doScopes{next: c, scopes: map[string]bool{}}
		p, err := provision.Open("digitalocean", doToken, provision.Options{
			Endpoint: "http://localhost/digitalocean", HTTPClient: &http.Client{Transport: wire}, ShortName: "acme",
		})
		if err != nil {
			t.Fatal(err)
		}
		d := p.(*provision.DigitalOcean)
		opts := doOpts("node-1")
		opts.AllowSSHInbound = true
		_, err = d.ListRegions(t.Context())
		_, sizesErr := d.ListSizes(t.Context(), "fra1")
		if err = errors.Join(err, sizesErr, d.Preflight(t.Context(), opts)); err != nil {
			t.Fatal(err)
		}
		id := mustCreate(t, d, opts)
		time.Sleep(time.Minute)
		_, _, err = d.GetServer(t.Context(), id)
		c.call(t, http.MethodPut, "/firewalls/"+c.firewalls(t)[0].ID, `{"name":"acme-no-inbound","tags":[],"inbound_rules":[],"outbound_rules":[{"protocol":"icmp","destinations":{"addresses":["0.0.0.0/0"]}}]}`, nil)
		_, listErr := d.ListServers(t.Context())
		rs, auditErr := d.ListResources(t.Context())
		if err = errors.Join(err, listErr, auditErr); err != nil {
			t.Fatal(err)
		}
		mustCreate(t, d, doOpts("node-2")) // brings the firewall back
		if err := d.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, provision.Resource{Kind: provision.KindVolume, ID: "506f78a4-e098-11e5-ad9f-000f53306ae1"})
		for _, r := range rs {
			if err := d.DeleteResource(t.Context(), r); err != nil {
				t.Errorf("removing %s %s: %v", r.Kind, r.ID, err)
			}
		}
		if diff := cmp.Diff(file.Scopes, slices.Sorted(maps.Keys(wire.scopes))); diff != "" {
			t.Errorf("the file's scopes (-) and those that are needed (+):\n%s", diff)
		}
	})
}
