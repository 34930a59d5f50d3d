package azure

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

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions"
)

// wireCheck is a transport that takes what goes through it into the SDK's
// types and out again. The types pass over what they do not know, so a member
// that does not come back is one that Azure does not have.
type wireCheck struct {
	t    *testing.T
	next http.RoundTripper
	mu   sync.Mutex
	// requests and answers count what was checked.
	requests, answers int
}

// typesOf has the SDK's type for the things of each path: of one of them, and
// of their list.
var typesOf = []struct {
	path      string
	one, list func() any
}{
	{`/locations`, nil, func() any { return &armsubscriptions.LocationListResult{} }},
	{`/resourcegroups`, func() any { return &armresources.ResourceGroup{} }, func() any { return &armresources.ResourceGroupListResult{} }},
	{`/resourcegroups/[^/]+/resources`, nil, func() any { return &armresources.ResourceListResult{} }},
	{`.*/microsoft\.network/virtualnetworks`, func() any { return &armnetwork.VirtualNetwork{} }, func() any { return &armnetwork.VirtualNetworkListResult{} }},
	{`.*/subnets`, func() any { return &armnetwork.Subnet{} }, func() any { return &armnetwork.SubnetListResult{} }},
	{`.*/networksecuritygroups`, func() any { return &armnetwork.SecurityGroup{} }, func() any { return &armnetwork.SecurityGroupListResult{} }},
	{`.*/publicipaddresses`, func() any { return &armnetwork.PublicIPAddress{} }, func() any { return &armnetwork.PublicIPAddressListResult{} }},
	{`.*/networkinterfaces`, func() any { return &armnetwork.Interface{} }, func() any { return &armnetwork.InterfaceListResult{} }},
	{`.*/virtualmachines`, func() any { return &armcompute.VirtualMachine{} }, func() any { return &armcompute.VirtualMachineListResult{} }},
	{`.*/sshpublickeys`, func() any { return &armcompute.SSHPublicKeyResource{} }, nil},
	{`.*/disks`, func() any { return &armcompute.Disk{} }, func() any { return &armcompute.DiskList{} }},
	{`.*/vmsizes`, nil, func() any { return &armcompute.VirtualMachineSizeListResult{} }},
	{`.*/microsoft\.compute/skus`, nil, func() any { return &armcompute.ResourceSKUsResult{} }},
	{`.*/microsoft\.compute/locations/[^/]+/usages`, nil, func() any { return &armcompute.ListUsagesResult{} }},
	{`.*/microsoft\.network/locations/[^/]+/usages`, nil, func() any { return &armnetwork.UsagesListResult{} }},
	{`/providers`, func() any { return &armresources.Provider{} }, nil},
	{`.*/virtualmachines/[^/]+/instanceview`, nil, func() any { return &armcompute.VirtualMachineInstanceView{} }},
	{`.*/virtualmachines/[^/]+/retrievebootdiagnosticsdata`, nil, func() any { return &armcompute.RetrieveBootDiagnosticsDataResult{} }},
}

// typeOf is the type of a body at a path; nil when nobody knows it.
func typeOf(path string) any {
	path = strings.ToLower(path[strings.Index(path, "/subscriptions/")+len("/subscriptions/")+len(subscription):])
	for i := len(typesOf) - 1; i >= 0; i-- {
		ty := typesOf[i]
		if ty.list != nil && regexp.MustCompile("^"+ty.path+"$").MatchString(path) {
			return ty.list()
		}
		if ty.one != nil && regexp.MustCompile("^"+ty.path+"/[^/]+$").MatchString(path) {
			return ty.one()
		}
	}
	return nil
}

func (w *wireCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	arm := strings.Contains(r.URL.Path, "/subscriptions/")
	if r.Body != nil && arm {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if len(body) > 0 {
			w.check("request", r, body, &w.requests)
		}
	}
	resp, err := w.next.RoundTrip(r)
	if err != nil || !arm {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	for _, h := range []string{"X-Ms-Request-Id", "X-Ms-Correlation-Request-Id"} {
		if resp.Header.Get(h) == "" {
			w.t.Errorf("answer to %s %s has no %s", r.Method, r.URL.Path, h)
		}
	}
	if resp.StatusCode < 400 && len(body) > 0 {
		w.check("answer", r, body, &w.answers)
	}
	return resp, nil
}

func (w *wireCheck) check(what string, r *http.Request, body []byte, count *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(r.URL.Path, "/operations/") || strings.Contains(r.URL.Path, "/Microsoft.Authorization/") {
		return // the poller's own, and a package of its own
	}
	v := typeOf(r.URL.Path)
	if v == nil {
		w.t.Errorf("%s of %s %s is checked by nobody: add its type", what, r.Method, r.URL.Path)
		return
	}
	*count++
	if err := strict(body, v); err != nil {
		w.t.Errorf("%s of %s %s: %v\n%.1500s", what, r.Method, r.URL.Path, err, body)
	}
}

// strict takes data into v and out again, and names what was lost.
func strict(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	back, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var sent, kept any
	if err := json.Unmarshal(data, &sent); err != nil {
		return err
	}
	if err := json.Unmarshal(back, &kept); err != nil {
		return err
	}
	if lost := lostIn("", sent, kept); len(lost) > 0 {
		return fmt.Errorf("%T does not know %s", v, strings.Join(lost, ", "))
	}
	return nil
}

func lostIn(path string, sent, kept any) []string {
	var lost []string
	switch s := sent.(type) {
	case map[string]any:
		k, _ := kept.(map[string]any)
		for name, v := range s {
			if _, ok := k[name]; !ok && v != nil {
				lost = append(lost, path+"."+name)
				continue
			}
			lost = append(lost, lostIn(path+"."+name, v, k[name])...)
		}
	case []any:
		k, _ := kept.([]any)
		for i, v := range s {
			if i >= len(k) {
				return append(lost, fmt.Sprintf("%s[%d]", path, i))
			}
			lost = append(lost, lostIn(fmt.Sprintf("%s[%d]", path, i), v, k[i])...)
		}
	}
	return lost
}

func TestStrictFindsWhatIsNotAzures(t *testing.T) {
	err := strict([]byte(`{"properties":{"hardwareProfile":{"vmSize":"a","colour":"red"}}}`), &armcompute.VirtualMachine{})
	if err == nil || !strings.Contains(err.Error(), ".properties.hardwareProfile.colour") {
		t.Errorf("got %v", err)
	}
}
