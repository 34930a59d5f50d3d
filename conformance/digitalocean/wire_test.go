package digitalocean

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/digitalocean/godo"
)

// wireCheck is a transport that decodes what goes through it into the SDK's
// types, strictly: a field that they do not have is a fault.
type wireCheck struct {
	t  *testing.T
	mu sync.Mutex
	// requests and answers count what was checked.
	requests, answers int
}

// envelope is around every answer: one of its members holds the thing, or the
// things.
type envelope struct {
	Links *godo.Links `json:"links"`
	Meta  *godo.Meta  `json:"meta"`

	Account   *godo.Account   `json:"account"`
	Region    *godo.Region    `json:"region"`
	Regions   []godo.Region   `json:"regions"`
	Sizes     []godo.Size     `json:"sizes"`
	Image     *godo.Image     `json:"image"`
	Images    []godo.Image    `json:"images"`
	Droplet   *godo.Droplet   `json:"droplet"`
	Droplets  []godo.Droplet  `json:"droplets"`
	Action    *godo.Action    `json:"action"`
	Actions   []godo.Action   `json:"actions"`
	Firewall  *godo.Firewall  `json:"firewall"`
	Firewalls []godo.Firewall `json:"firewalls"`
	Tag       *godo.Tag       `json:"tag"`
	Tags      []godo.Tag      `json:"tags"`
	Key       *godo.Key       `json:"ssh_key"`
	Keys      []godo.Key      `json:"ssh_keys"`
	Volume    *godo.Volume    `json:"volume"`
	Volumes   []godo.Volume   `json:"volumes"`
}

// requestOf has the SDK's type for the body of each call that can be decoded
// into it; see checkCreate for the one that cannot.
var requestOf = []struct {
	method, path string
	make         func() any
}{
	{"POST", `/firewalls`, func() any { return &godo.FirewallRequest{} }},
	{"PUT", `/firewalls/[0-9a-f-]+`, func() any { return &godo.FirewallRequest{} }},
	{"POST|DELETE", `/firewalls/[0-9a-f-]+/rules`, func() any { return &godo.FirewallRulesRequest{} }},
	{"POST|DELETE", `/firewalls/[0-9a-f-]+/(droplets|tags)`, func() any { return &godo.FirewallRequest{} }},
	{"POST", `/tags`, func() any { return &godo.TagCreateRequest{} }},
	{"POST|DELETE", `/tags/[^/]+/resources`, func() any { return &godo.TagResourcesRequest{} }},
	{"POST", `/account/keys`, func() any { return &godo.KeyCreateRequest{} }},
	{"PUT", `/account/keys/\d+`, func() any { return &godo.KeyUpdateRequest{} }},
	{"POST", `/droplets/\d+/actions`, func() any { return &godo.ActionRequest{} }},
	{"POST", `/volumes`, func() any { return &godo.VolumeCreateRequest{} }},
	{"POST", `/volumes/[0-9a-f-]+/actions`, func() any { return &godo.ActionRequest{} }},
}

func (w *wireCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/v2")
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
	if method == "POST" && path == "/droplets" {
		w.requests++
		w.checkCreate(body)
		return
	}
	for _, c := range requestOf {
		if regexp.MustCompile("^("+c.method+")$").MatchString(method) && regexp.MustCompile("^"+c.path+"$").MatchString(path) {
			w.requests++
			if err := strict(body, c.make()); err != nil {
				w.t.Errorf("request %s %s: %v\n%s", method, path, err, body)
			}
			return
		}
	}
	w.t.Errorf("request %s %s has a body that nobody checks: add its type", method, path)
}

// checkCreate holds the body of a create to what the SDK would send for the
// same: its type writes images and keys in a way that it cannot read.
func (w *wireCheck) checkCreate(body []byte) {
	var ours map[string]any
	var read struct {
		Image   any   `json:"image"`
		SSHKeys []any `json:"ssh_keys"`
	}
	if json.Unmarshal(body, &ours) != nil || json.Unmarshal(body, &read) != nil {
		w.t.Errorf("create: no JSON object: %s", body)
		return
	}
	rest := map[string]any{}
	for k, v := range ours {
		if k != "image" && k != "ssh_keys" {
			rest[k] = v
		}
	}
	var theirs godo.DropletCreateRequest
	text, _ := json.Marshal(rest)
	if err := strict(text, &theirs); err != nil {
		w.t.Errorf("create: %v\n%s", err, body)
	}
	switch image := read.Image.(type) {
	case string:
		theirs.Image.Slug = image
	case float64:
		theirs.Image.ID = int(image)
	}
	for _, k := range read.SSHKeys {
		switch key := k.(type) {
		case string:
			theirs.SSHKeys = append(theirs.SSHKeys, godo.DropletCreateSSHKey{Fingerprint: key})
		case float64:
			theirs.SSHKeys = append(theirs.SSHKeys, godo.DropletCreateSSHKey{ID: int(key)})
		}
	}
	var sent map[string]any
	text, _ = json.Marshal(theirs)
	_ = json.Unmarshal(text, &sent)
	for k, v := range ours {
		a, _ := json.Marshal(v)
		b, _ := json.Marshal(sent[k])
		if !bytes.Equal(a, b) && !(string(b) == "null" && string(a) == "[]") {
			w.t.Errorf("create: %s is %s, the SDK would send %s", k, a, b)
		}
	}
}

func (w *wireCheck) checkAnswer(method, path string, resp *http.Response, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if resp.StatusCode != http.StatusUnauthorized && resp.Header.Get("RateLimit-Remaining") == "" {
		w.t.Errorf("answer to %s %s has no rate-limit headers", method, path)
	}
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return
	case resp.StatusCode >= 400:
		w.answers++
		var e struct {
			ID        string `json:"id"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		}
		if err := strict(body, &e); err != nil || e.ID == "" || e.Message == "" || e.RequestID == "" {
			w.t.Errorf("error answer to %s %s: %v\n%s", method, path, err, body)
		}
		return
	}
	w.answers++
	if err := strict(withoutDiskInfo(body), &envelope{}); err != nil {
		w.t.Errorf("answer to %s %s: %v\n%.2000s", method, path, err, body)
	}
}

// withoutDiskInfo takes away what the API's description has in a Droplet and
// the SDK does not read.
func withoutDiskInfo(body []byte) []byte {
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil {
		return body
	}
	list, _ := answer["droplets"].([]any)
	for _, d := range append(list, answer["droplet"]) {
		if droplet, ok := d.(map[string]any); ok {
			delete(droplet, "disk_info")
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return text
}

func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
