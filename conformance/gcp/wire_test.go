package gcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/api/cloudbilling/v1"
	"google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
)

// wireCheck is a transport that holds what goes through it to the discovery
// documents, and decodes it strictly into the SDK's types.
type wireCheck struct {
	t    *testing.T
	docs []*document
	mu   sync.Mutex
	// requests and answers count what was checked.
	requests, answers int
}

func newWireCheck(t *testing.T) *wireCheck {
	t.Helper()
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	return &wireCheck{t: t, docs: docs}
}

// sdkTypes has the SDK's type of each schema that a body has here.
var sdkTypes = map[string]func() any{
	"Address":                    func() any { return &compute.Address{} },
	"AddressAggregatedList":      func() any { return &compute.AddressAggregatedList{} },
	"Disk":                       func() any { return &compute.Disk{} },
	"DiskAggregatedList":         func() any { return &compute.DiskAggregatedList{} },
	"DiskList":                   func() any { return &compute.DiskList{} },
	"Firewall":                   func() any { return &compute.Firewall{} },
	"FirewallList":               func() any { return &compute.FirewallList{} },
	"Image":                      func() any { return &compute.Image{} },
	"ImageList":                  func() any { return &compute.ImageList{} },
	"Instance":                   func() any { return &compute.Instance{} },
	"InstanceAggregatedList":     func() any { return &compute.InstanceAggregatedList{} },
	"InstanceList":               func() any { return &compute.InstanceList{} },
	"InstancesSetLabelsRequest":  func() any { return &compute.InstancesSetLabelsRequest{} },
	"ListSkusResponse":           func() any { return &cloudbilling.ListSkusResponse{} },
	"MachineType":                func() any { return &compute.MachineType{} },
	"MachineTypeAggregatedList":  func() any { return &compute.MachineTypeAggregatedList{} },
	"MachineTypeList":            func() any { return &compute.MachineTypeList{} },
	"Metadata":                   func() any { return &compute.Metadata{} },
	"Network":                    func() any { return &compute.Network{} },
	"NetworkList":                func() any { return &compute.NetworkList{} },
	"Operation":                  func() any { return &compute.Operation{} },
	"OperationList":              func() any { return &compute.OperationList{} },
	"Project":                    func() any { return &compute.Project{} },
	"Region":                     func() any { return &compute.Region{} },
	"RegionList":                 func() any { return &compute.RegionList{} },
	"SerialPortOutput":           func() any { return &compute.SerialPortOutput{} },
	"Tags":                       func() any { return &compute.Tags{} },
	"TestIamPermissionsRequest":  func() any { return &cloudresourcemanager.TestIamPermissionsRequest{} },
	"TestIamPermissionsResponse": func() any { return &cloudresourcemanager.TestIamPermissionsResponse{} },
	"Subnetwork":                 func() any { return &compute.Subnetwork{} },
	"SubnetworkAggregatedList":   func() any { return &compute.SubnetworkAggregatedList{} },
	"SubnetworkList":             func() any { return &compute.SubnetworkList{} },
	"Zone":                       func() any { return &compute.Zone{} },
	"ZoneList":                   func() any { return &compute.ZoneList{} },
}

func (w *wireCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, "/gcp")
	if path == "/token" { // OAuth has no discovery document
		return http.DefaultTransport.RoundTrip(r)
	}
	m := methodOf(w.docs, r.Method, path)
	if m == nil {
		w.t.Errorf("%s %s is no call that Google has", r.Method, path)
		return http.DefaultTransport.RoundTrip(r)
	}
	w.mu.Lock()
	for _, fault := range m.checkQuery(r.URL.Query()) {
		w.t.Errorf("request %s: %s", m.ID, fault)
	}
	w.mu.Unlock()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) > 0 {
			w.check("request", m, m.Request, body, &w.requests)
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
	if resp.StatusCode >= 400 {
		w.checkError(m, resp, body)
	} else if resp.StatusCode != http.StatusNoContent {
		w.check("answer", m, m.Response, body, &w.answers)
	}
	return resp, nil
}

func (w *wireCheck) check(what string, m *method, s *schema, body []byte, count *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*count++
	if s == nil {
		w.t.Errorf("%s of %s has a body, it should have none: %.300s", what, m.ID, body)
		return
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		w.t.Errorf("%s of %s: %v", what, m.ID, err)
		return
	}
	for _, fault := range m.doc.check("", s, v) {
		w.t.Errorf("%s of %s: %s", what, m.ID, fault)
	}
	typed := sdkTypes[s.Ref]
	if typed == nil {
		w.t.Errorf("%s of %s is decoded by nobody: add the type of %s", what, m.ID, s.Ref)
		return
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(typed()); err != nil {
		w.t.Errorf("%s of %s: %v\n%.1500s", what, m.ID, err, body)
	}
}

// checkError holds an error to what the SDK reads of it.
func (w *wireCheck) checkError(m *method, resp *http.Response, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	var e struct {
		Error *struct {
			Code    int                   `json:"code"`
			Message string                `json:"message"`
			Errors  []googleapi.ErrorItem `json:"errors"`
			Status  string                `json:"status"`
			Details []any                 `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error == nil || e.Error.Code != resp.StatusCode || e.Error.Message == "" || len(e.Error.Errors) == 0 || e.Error.Errors[0].Reason == "" {
		w.t.Errorf("error answer to %s: %v\n%s", m.ID, err, body)
	}
}
