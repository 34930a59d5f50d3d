package hetzner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// wireCheck is a transport that decodes what goes through it into the SDK's
// schema, strictly: a field that the schema does not have is a fault.
type wireCheck struct {
	t  *testing.T
	mu sync.Mutex
	// requests and answers count what was checked.
	requests, answers int
}

func newWireCheck(t *testing.T) *wireCheck { return &wireCheck{t: t} }

// paged adds what every list has.
type paged[T any] struct {
	Body T
	Meta schema.Meta
}

func (p *paged[T]) UnmarshalJSON(data []byte) error {
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	if meta, ok := rest["meta"]; ok {
		if err := strict(meta, &p.Meta); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
		delete(rest, "meta")
	}
	body, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	return strict(body, &p.Body)
}

// answerOf has the schema's type for the answer of each call.
var answerOf = []struct {
	method, path string
	make         func() any
}{
	{"GET", `/locations`, func() any { return &paged[schema.LocationListResponse]{} }},
	{"GET", `/locations/\d+`, func() any { return &schema.LocationGetResponse{} }},
	{"GET", `/server_types`, func() any { return &paged[schema.ServerTypeListResponse]{} }},
	{"GET", `/server_types/\d+`, func() any { return &schema.ServerTypeGetResponse{} }},
	{"GET", `/images`, func() any { return &paged[schema.ImageListResponse]{} }},
	{"GET", `/images/\d+`, func() any { return &schema.ImageGetResponse{} }},
	{"GET", `/pricing`, func() any { return &schema.PricingGetResponse{} }},
	{"POST", `/servers`, func() any { return &schema.ServerCreateResponse{} }},
	{"GET", `/servers`, func() any { return &paged[schema.ServerListResponse]{} }},
	{"GET", `/servers/\d+`, func() any { return &schema.ServerGetResponse{} }},
	{"PUT", `/servers/\d+`, func() any { return &schema.ServerUpdateResponse{} }},
	{"DELETE", `/servers/\d+`, func() any { return &schema.ServerDeleteResponse{} }},
	{"POST", `/servers/\d+/actions/\w+`, func() any { return &schema.ServerActionRebootResponse{} }},
	{"GET", `/actions`, func() any { return &paged[schema.ActionListResponse]{} }},
	{"GET", `/actions/\d+`, func() any { return &schema.ActionGetResponse{} }},
	{"GET", `/(servers|firewalls|volumes|primary_ips)(/\d+)?/actions`, func() any { return &paged[schema.ActionListResponse]{} }},
	{"GET", `/(servers|firewalls|volumes|primary_ips)/actions/\d+`, func() any { return &schema.ActionGetResponse{} }},
	{"POST", `/firewalls`, func() any { return &schema.FirewallCreateResponse{} }},
	{"GET", `/firewalls`, func() any { return &paged[schema.FirewallListResponse]{} }},
	{"GET", `/firewalls/\d+`, func() any { return &schema.FirewallGetResponse{} }},
	{"PUT", `/firewalls/\d+`, func() any { return &schema.FirewallUpdateResponse{} }},
	{"POST", `/firewalls/\d+/actions/\w+`, func() any { return &schema.FirewallActionSetRulesResponse{} }},
	{"POST", `/ssh_keys`, func() any { return &schema.SSHKeyCreateResponse{} }},
	{"GET", `/ssh_keys`, func() any { return &paged[schema.SSHKeyListResponse]{} }},
	{"GET", `/ssh_keys/\d+`, func() any { return &schema.SSHKeyGetResponse{} }},
	{"GET", `/primary_ips`, func() any { return &paged[schema.PrimaryIPListResponse]{} }},
	{"GET", `/primary_ips/\d+`, func() any { return &schema.PrimaryIPGetResponse{} }},
	{"PUT", `/ssh_keys/\d+`, func() any { return &schema.SSHKeyUpdateResponse{} }},
	{"POST", `/primary_ips`, func() any { return &schema.PrimaryIPCreateResponse{} }},
	{"PUT", `/primary_ips/\d+`, func() any { return &schema.PrimaryIPUpdateResponse{} }},
	{"POST", `/primary_ips/\d+/actions/\w+`, func() any { return &schema.PrimaryIPActionAssignResponse{} }},
	{"GET", `/networks`, func() any { return &paged[schema.NetworkListResponse]{} }},
	{"GET", `/placement_groups`, func() any { return &paged[schema.PlacementGroupListResponse]{} }},
	{"GET", `/isos`, func() any { return &paged[schema.ISOListResponse]{} }},
	{"GET", `/certificates`, func() any { return &paged[schema.CertificateListResponse]{} }},
	{"GET", `/load_balancers`, func() any { return &paged[schema.LoadBalancerListResponse]{} }},
	{"GET", `/load_balancer_types`, func() any { return &paged[schema.LoadBalancerTypeListResponse]{} }},
	{"GET", `/floating_ips`, func() any { return &paged[schema.FloatingIPListResponse]{} }},
	{"PUT", `/volumes/\d+`, func() any { return &schema.VolumeUpdateResponse{} }},
	{"POST", `/volumes/\d+/actions/\w+`, func() any { return &schema.VolumeActionAttachVolumeResponse{} }},
	{"POST", `/volumes`, func() any { return &schema.VolumeCreateResponse{} }},
	{"GET", `/volumes`, func() any { return &paged[schema.VolumeListResponse]{} }},
	{"GET", `/volumes/\d+`, func() any { return &schema.VolumeGetResponse{} }},
}

// requestOf has the schema's type for the body of each call.
var requestOf = []struct {
	method, path string
	make         func() any
}{
	{"POST", `/servers`, func() any { return &schema.ServerCreateRequest{} }},
	{"PUT", `/servers/\d+`, func() any { return &schema.ServerUpdateRequest{} }},
	{"POST", `/firewalls`, func() any { return &schema.FirewallCreateRequest{} }},
	{"PUT", `/firewalls/\d+`, func() any { return &schema.FirewallUpdateRequest{} }},
	{"POST", `/firewalls/\d+/actions/set_rules`, func() any { return &schema.FirewallActionSetRulesRequest{} }},
	{"POST", `/ssh_keys`, func() any { return &schema.SSHKeyCreateRequest{} }},
	{"PUT", `/ssh_keys/\d+`, func() any { return &schema.SSHKeyUpdateRequest{} }},
	{"POST", `/volumes`, func() any { return &schema.VolumeCreateRequest{} }},
	{"PUT", `/volumes/\d+`, func() any { return &schema.VolumeUpdateRequest{} }},
	{"POST", `/volumes/\d+/actions/attach`, func() any { return &schema.VolumeActionAttachVolumeRequest{} }},
	{"POST", `/volumes/\d+/actions/detach`, func() any { return &schema.VolumeActionDetachVolumeRequest{} }},
	{"POST", `/volumes/\d+/actions/resize`, func() any { return &schema.VolumeActionResizeVolumeRequest{} }},
	{"POST", `/volumes/\d+/actions/change_protection`, func() any { return &schema.VolumeActionChangeProtectionRequest{} }},
	{"POST", `/primary_ips`, func() any { return &schema.PrimaryIPCreateRequest{} }},
	{"PUT", `/primary_ips/\d+`, func() any { return &schema.PrimaryIPUpdateRequest{} }},
	{"POST", `/primary_ips/\d+/actions/assign`, func() any { return &schema.PrimaryIPActionAssignRequest{} }},
	{"POST", `/primary_ips/\d+/actions/change_protection`, func() any { return &schema.PrimaryIPActionChangeProtectionRequest{} }},
	{"POST", `/servers/\d+/actions/change_protection`, func() any { return &schema.ServerActionChangeProtectionRequest{} }},
	{"POST", `/firewalls/\d+/actions/apply_to_resources`, func() any { return &schema.FirewallActionApplyToResourcesRequest{} }},
	{"POST", `/firewalls/\d+/actions/remove_from_resources`, func() any { return &schema.FirewallActionRemoveFromResourcesRequest{} }},
}

func (w *wireCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/hetzner/v1")
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) > 0 {
			w.checkRequest(r.Method, path, body)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	w.checkAnswer(r.Method, path, resp, body)
	return resp, nil
}

func (w *wireCheck) checkRequest(method, path string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range requestOf {
		if c.method == method && regexp.MustCompile("^"+c.path+"$").MatchString(path) {
			w.requests++
			if err := strict(body, c.make()); err != nil {
				w.t.Errorf("request %s %s: %v\n%s", method, path, err, body)
			}
			return
		}
	}
	w.t.Errorf("request %s %s has a body that nobody checks: add its schema type", method, path)
}

func (w *wireCheck) checkAnswer(method, path string, resp *http.Response, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if resp.Header.Get("X-Correlation-Id") == "" {
		w.t.Errorf("answer to %s %s has no X-Correlation-Id", method, path)
	}
	if resp.StatusCode != http.StatusUnauthorized && resp.Header.Get("RateLimit-Remaining") == "" && resp.StatusCode < 400 {
		w.t.Errorf("answer to %s %s has no RateLimit headers", method, path)
	}
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return
	case resp.StatusCode >= 400:
		w.answers++
		// The schema's error has an UnmarshalJSON of its own, which is not
		// strict: the fields are looked at here.
		var e struct {
			Error struct {
				Code    string `json:"code"`
				Message string `json:"message"`
				Details any    `json:"details"`
			} `json:"error"`
		}
		if err := strict(body, &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
			w.t.Errorf("error answer to %s %s: %v\n%s", method, path, err, body)
		}
		return
	}
	for _, c := range answerOf {
		if c.method == method && regexp.MustCompile("^"+c.path+"$").MatchString(path) {
			w.answers++
			if err := strict(body, c.make()); err != nil {
				w.t.Errorf("answer to %s %s: %v\n%.2000s", method, path, err, body)
			}
			if l := lacksIn(c.make(), body); len(l) > 0 {
				w.t.Errorf("answer to %s %s lacks %v\n%.2000s", method, path, l, body)
			}
			return
		}
	}
	w.t.Errorf("answer to %s %s is checked by nobody: add its schema type", method, path)
}

func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
