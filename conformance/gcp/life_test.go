// Package gcp has Google's own SDK judge the simulated cloud: compute/v1 lives
// a server's whole life, signed in by the SDK's own means, and each body is
// held to the discovery documents that the SDK is made from.
package gcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/slipway-dev/slipway/cloudsim"
)

const (
	account = "conformance"
	project = "conformance-1"
	region  = "europe-west1"
	zone    = "europe-west1-b"
	sdkKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"
	lasting = "conformance-network"
)

type simulated struct {
	sim  *cloudsim.Sim
	root string // where the cloud is served
	wire *wireCheck
}

func newCloud(t *testing.T) simulated {
	t.Helper()
	sim, err := cloudsim.New(cloudsim.Options{Seed: 1, Speed: 100, GuestDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	srv := httptest.NewServer(sim.Handler())
	t.Cleanup(srv.Close)
	return simulated{sim: sim, root: srv.URL, wire: newWireCheck(t)}
}

func (c simulated) key(t *testing.T, account string) []byte {
	t.Helper()
	return must[[]byte](t)(c.sim.GCPKey(c.root, account, project))
}

// service is the SDK's client of a service account, over the checking
// transport.
func (c simulated) service(t *testing.T, account string) *compute.Service {
	t.Helper()
	config := must[*jwt.Config](t)(google.JWTConfigFromJSON(c.key(t, account), compute.ComputeScope))
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: c.wire})
	return must[*compute.Service](t)(compute.NewService(ctx, option.WithHTTPClient(config.Client(ctx)), option.WithEndpoint(c.root+"/compute/v1/")))
}

func (c simulated) fault(t *testing.T, f cloudsim.Fault) {
	t.Helper()
	if _, err := c.sim.AddFault(f); err != nil {
		t.Fatal(err)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantReason(t *testing.T, what string, err error, status int, reason string) {
	t.Helper()
	var api *googleapi.Error
	if !errors.As(err, &api) || api.Code != status || len(api.Errors) == 0 || api.Errors[0].Reason != reason {
		t.Errorf("%s: %v, want %s with HTTP %d", what, err, reason, status)
	}
}

// done waits as the SDK's users do: by the call that waits, until it says DONE.
func done(t *testing.T, k *compute.Service, op *compute.Operation, err error) *compute.Operation {
	t.Helper()
	for err == nil && op.Status != "DONE" {
		switch {
		case op.Zone != "":
			op, err = k.ZoneOperations.Wait(project, last(op.Zone), op.Name).Context(t.Context()).Do()
		case op.Region != "":
			op, err = k.RegionOperations.Wait(project, last(op.Region), op.Name).Context(t.Context()).Do()
		default:
			op, err = k.GlobalOperations.Wait(project, op.Name).Context(t.Context()).Do()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func last(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

func wantDone(t *testing.T, what string, op *compute.Operation) {
	t.Helper()
	if op.Error != nil || op.Progress != 100 || op.EndTime == "" {
		t.Errorf("%s: %+v", what, op)
	}
}

func wantOpError(t *testing.T, what string, op *compute.Operation, code string) {
	t.Helper()
	if op.Error == nil || len(op.Error.Errors) != 1 || op.Error.Errors[0].Code != code || op.HttpErrorStatusCode == 0 || op.HttpErrorMessage == "" {
		t.Errorf("%s: %+v, want %s", what, op, code)
	}
}

// places lists what there is, and returns the newest image.
func places(t *testing.T, k *compute.Service) (image string) {
	t.Helper()
	ctx := t.Context()
	regions := 0
	err := k.Regions.List(project).MaxResults(3).Pages(ctx, func(page *compute.RegionList) error {
		if len(page.Items) > 3 {
			t.Errorf("%d regions on a page of 3", len(page.Items))
		}
		regions += len(page.Items)
		return nil
	})
	zones := must[*compute.ZoneList](t)(k.Zones.List(project).Filter("status = UP").Do())
	if err != nil || regions < 4 || len(zones.Items) < regions {
		t.Errorf("%d regions, %d zones, %v", regions, len(zones.Items), err)
	}
	if z := must[*compute.Zone](t)(k.Zones.Get(project, zone).Do()); last(z.Region) != region || len(z.AvailableCpuPlatforms) == 0 {
		t.Errorf("zone %+v", z)
	}
	sizes := 0
	err = k.MachineTypes.List(project, zone).MaxResults(10).Pages(ctx, func(page *compute.MachineTypeList) error {
		sizes += len(page.Items)
		return nil
	})
	in := map[string]int{}
	everywhere := k.MachineTypes.AggregatedList(project).Filter(`name = "e2-small"`).Pages(ctx, func(page *compute.MachineTypeAggregatedList) error {
		for scope, list := range page.Items {
			in[scope] += len(list.MachineTypes)
		}
		return nil
	})
	small := must[*compute.MachineType](t)(k.MachineTypes.Get(project, zone, "e2-small").Do())
	if err != nil || everywhere != nil || sizes < 15 || in["zones/"+zone] != 1 || small.GuestCpus != 2 || small.MemoryMb != 2048 || !small.IsSharedCpu {
		t.Errorf("%d sizes, e2-small in %v: %+v, %v, %v", sizes, in, small, err, everywhere)
	}
	family := must[*compute.Image](t)(k.Images.GetFromFamily("ubuntu-os-cloud", "ubuntu-2404-lts-amd64").Do())
	list := must[*compute.ImageList](t)(k.Images.List("ubuntu-os-cloud").Filter("family = ubuntu-2404-lts-amd64").OrderBy("creationTimestamp desc").MaxResults(1).Do())
	if family.Architecture != "X86_64" || len(list.Items) != 1 || list.Items[0].SelfLink != family.SelfLink {
		t.Errorf("image %+v, newest %+v", family, list.Items)
	}
	if p := must[*compute.Project](t)(k.Projects.Get(project).Do()); p.Name != project {
		t.Errorf("project %+v", p)
	}
	if r := must[*compute.Region](t)(k.Regions.Get(project, region).Do()); len(r.Quotas) == 0 {
		t.Errorf("region %+v", r)
	}
	return family.SelfLink
}

func network(t *testing.T, k *compute.Service) {
	t.Helper()
	op, err := k.Networks.Insert(project, &compute.Network{Name: lasting, AutoCreateSubnetworks: true, RoutingConfig: &compute.NetworkRoutingConfig{RoutingMode: "REGIONAL"}}).Do()
	wantDone(t, "network", done(t, k, op, err))
	wall := &compute.Firewall{
		Name: "conformance-ssh", Network: "global/networks/" + lasting, Direction: "INGRESS", Priority: 1000,
		SourceRanges: []string{"192.0.2.0/24"}, TargetTags: []string{"node-1"}, Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: []string{"22"}}},
	}
	op, err = k.Firewalls.Insert(project, wall).RequestId("11111111-0000-4000-8000-000000000001").Do()
	wantDone(t, "firewall", done(t, k, op, err))
	_, err = k.Firewalls.Insert(project, wall).Do()
	wantReason(t, "the same firewall again", err, 409, "alreadyExists")
	op, err = k.Firewalls.Patch(project, wall.Name, &compute.Firewall{SourceRanges: []string{"192.0.2.0/25"}}).Do()
	wantDone(t, "patch", done(t, k, op, err))
	got := must[*compute.Firewall](t)(k.Firewalls.Get(project, wall.Name).Do())
	list := must[*compute.FirewallList](t)(k.Firewalls.List(project).Filter(`network eq ".*/` + lasting + `"`).Do())
	if !slices.Equal(got.SourceRanges, []string{"192.0.2.0/25"}) || len(list.Items) != 1 || list.Items[0].Name != wall.Name {
		t.Errorf("firewall %+v, list %+v", got, list.Items)
	}
	if n := must[*compute.Network](t)(k.Networks.Get(project, lasting).Do()); len(n.Subnetworks) < 4 || !n.AutoCreateSubnetworks {
		t.Errorf("network %+v", n)
	}
}

func machine(name, size, image string) *compute.Instance {
	userData := "#cloud-config\nruncmd: []\n"
	return &compute.Instance{
		Name: name, MachineType: "zones/" + zone + "/machineTypes/" + size, Labels: map[string]string{"fleet": "a"}, Tags: &compute.Tags{Items: []string{name}},
		Disks: []*compute.AttachedDisk{{Boot: true, AutoDelete: true, InitializeParams: &compute.AttachedDiskInitializeParams{SourceImage: image, DiskSizeGb: 12, DiskType: "zones/" + zone + "/diskTypes/pd-balanced"}}},
		NetworkInterfaces: []*compute.NetworkInterface{{
			Network: "global/networks/" + lasting, AccessConfigs: []*compute.AccessConfig{{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}},
		}},
		Metadata:               &compute.Metadata{Items: []*compute.MetadataItems{{Key: "user-data", Value: &userData}}},
		ShieldedInstanceConfig: &compute.ShieldedInstanceConfig{EnableSecureBoot: true, EnableVtpm: true, EnableIntegrityMonitoring: true},
	}
}

// TestWholeLife is one server's, as the SDK's users write it.
func TestWholeLife(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.service(t, account), t.Context()
	image := places(t, k)
	network(t, k)

	const request = "22222222-0000-4000-8000-000000000001"
	insert := func(i *compute.Instance) (*compute.Operation, error) {
		return k.Instances.Insert(project, zone, i).RequestId(request).Context(ctx).Do()
	}
	op, err := insert(machine("node-1", "e2-small", image))
	if err != nil || op.OperationType != "insert" || op.ClientOperationId != request || op.TargetId == 0 || last(op.TargetLink) != "node-1" {
		t.Fatalf("insert: %+v, %v", op, err)
	}
	again := must[*compute.Operation](t)(insert(machine("node-1", "e2-small", image)))
	if again.Name != op.Name {
		t.Errorf("the same request id made another operation: %s and %s", op.Name, again.Name)
	}
	wantDone(t, "insert", done(t, k, op, nil))
	_, err = k.Instances.Insert(project, zone, machine("node-1", "e2-small", image)).Do()
	wantReason(t, "the name again", err, 409, "alreadyExists")

	i := must[*compute.Instance](t)(k.Instances.Get(project, zone, "node-1").Do())
	if i.Id != op.TargetId || i.NetworkInterfaces[0].AccessConfigs[0].NatIP == "" || *i.Metadata.Items[0].Value != "#cloud-config\nruncmd: []\n" ||
		i.Disks[0].DiskSizeGb != 12 || !i.ShieldedInstanceConfig.EnableSecureBoot || i.LabelFingerprint == "" {
		t.Errorf("instance %+v", i)
	}
	found := map[string]int{}
	err = k.Instances.AggregatedList(project).Filter("labels.fleet = a").MaxResults(2).Pages(ctx, func(page *compute.InstanceAggregatedList) error {
		for scope, list := range page.Items {
			found[scope] += len(list.Instances)
		}
		return nil
	})
	listed := must[*compute.InstanceList](t)(k.Instances.List(project, zone).Filter("(labels.fleet = a) (status != TERMINATED)").Do())
	if err != nil || found["zones/"+zone] != 1 || len(listed.Items) != 1 {
		t.Errorf("by label: %v, %d, %v", found, len(listed.Items), err)
	}
	masked := must[*compute.InstanceList](t)(k.Instances.List(project, zone).Fields("items(name,status)").Do())
	if masked.Items[0].Name != "node-1" || masked.Items[0].MachineType != "" {
		t.Errorf("a mask left %+v", masked.Items[0])
	}
	c.sim.Advance(time.Minute)
	serial := must[*compute.SerialPortOutput](t)(k.Instances.GetSerialPortOutput(project, zone, "node-1").Port(1).Do())
	if !strings.Contains(serial.Contents, "Linux version") || serial.Next == 0 {
		t.Errorf("console: %+v", serial)
	}
	power(t, k)
	disks := must[*compute.DiskList](t)(k.Disks.List(project, zone).Do())
	if len(disks.Items) != 1 || len(disks.Items[0].Users) != 1 {
		t.Errorf("disks: %+v", disks.Items)
	}
	end(t, c, k)
}

// power changes what may be changed while it lives.
func power(t *testing.T, k *compute.Service) {
	t.Helper()
	get := func() *compute.Instance {
		return must[*compute.Instance](t)(k.Instances.Get(project, zone, "node-1").Do())
	}
	old := get().LabelFingerprint
	labels := &compute.InstancesSetLabelsRequest{Labels: map[string]string{"fleet": "a", "more": "b"}, LabelFingerprint: old}
	op, err := k.Instances.SetLabels(project, zone, "node-1", labels).Do()
	wantDone(t, "labels", done(t, k, op, err))
	_, err = k.Instances.SetLabels(project, zone, "node-1", labels).Do()
	wantReason(t, "labels with the old fingerprint", err, 412, "conditionNotMet")
	op, err = k.Instances.SetTags(project, zone, "node-1", &compute.Tags{Items: []string{"node-1", "b"}, Fingerprint: get().Tags.Fingerprint}).Do()
	wantDone(t, "tags", done(t, k, op, err))
	op, err = k.Instances.Reset(project, zone, "node-1").Do()
	wantDone(t, "reset", done(t, k, op, err))
	op, err = k.Instances.Stop(project, zone, "node-1").Do()
	wantDone(t, "stop", done(t, k, op, err))
	if i := get(); i.Status != "TERMINATED" || i.LastStopTimestamp == "" || i.Labels["more"] != "b" || len(i.Tags.Items) != 2 {
		t.Errorf("stopped: %+v", i)
	}
	op, err = k.Instances.Start(project, zone, "node-1").Do()
	wantDone(t, "start", done(t, k, op, err))
	if i := get(); i.Status != "RUNNING" {
		t.Errorf("started: %s", i.Status)
	}
	op, err = k.Instances.SetDeletionProtection(project, zone, "node-1").DeletionProtection(true).Do()
	wantDone(t, "protection", done(t, k, op, err))
	_, err = k.Instances.Delete(project, zone, "node-1").Do()
	wantReason(t, "the delete of a protected instance", err, 400, "invalid")
	op, err = k.Instances.SetDeletionProtection(project, zone, "node-1").DeletionProtection(false).Do()
	wantDone(t, "no protection", done(t, k, op, err))
}

func end(t *testing.T, c simulated, k *compute.Service) {
	t.Helper()
	_, err := k.Networks.Delete(project, lasting).Do()
	if err == nil {
		t.Error("a network in use was deleted")
	}
	op, err := k.Instances.Delete(project, zone, "node-1").Do()
	wantDone(t, "delete", done(t, k, op, err))
	_, err = k.Instances.Get(project, zone, "node-1").Do()
	wantReason(t, "the instance after its end", err, 404, "notFound")
	_, err = k.Disks.Get(project, zone, "node-1").Do()
	wantReason(t, "its disk", err, 404, "notFound")
	op, err = k.Firewalls.Delete(project, "conformance-ssh").Do()
	wantDone(t, "firewall's delete", done(t, k, op, err))
	op, err = k.Networks.Delete(project, lasting).Do()
	wantDone(t, "network's delete", done(t, k, op, err))
	if left := c.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d billable things are left", left)
	}
	if c.wire.requests < 10 || c.wire.answers < 40 {
		t.Errorf("%d requests and %d answers were checked: too few to mean something", c.wire.requests, c.wire.answers)
	}
}

// Capacity and quota are found late, on the operation; both are told from a
// throttle.
func TestRefusals(t *testing.T) {
	c := newCloud(t)
	k := c.service(t, account)
	image := must[*compute.Image](t)(k.Images.GetFromFamily("ubuntu-os-cloud", "ubuntu-2404-lts-amd64").Do()).SelfLink
	network(t, k)
	insert := func(name, size string, change func(*compute.Instance)) (*compute.Operation, error) {
		i := machine(name, size, image)
		if change != nil {
			change(i)
		}
		return k.Instances.Insert(project, zone, i).Do()
	}
	c.fault(t, cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectCapacity, Times: 1})
	_, err := insert("full", "e2-small", nil)
	wantReason(t, "no capacity at once", err, 503, "ZONE_RESOURCE_POOL_EXHAUSTED")
	c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(5 * time.Second), Times: 1})
	op, err := insert("full", "e2-small", nil)
	wantOpError(t, "no capacity", done(t, k, op, err), "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
	op, err = insert("first", "t2d-standard-8", nil)
	wantDone(t, "the quota's last", done(t, k, op, err))
	op, err = insert("second", "t2d-standard-8", nil)
	wantOpError(t, "no quota", done(t, k, op, err), "QUOTA_EXCEEDED")
	for _, name := range []string{"full", "second"} {
		_, err = k.Instances.Get(project, zone, name).Do()
		wantReason(t, "what the failure left of "+name, err, 404, "notFound")
	}
	for what, change := range map[string]func(*compute.Instance){
		"a wrong name":         func(i *compute.Instance) { i.Name = "Node_1" },
		"a type that is none":  func(i *compute.Instance) { i.MachineType = "zones/" + zone + "/machineTypes/e2-tiny" },
		"a type without place": func(i *compute.Instance) { i.MachineType = "e2-small" },
		"a label in capitals":  func(i *compute.Instance) { i.Labels = map[string]string{"Fleet": "a"} },
		"long user-data": func(i *compute.Instance) {
			text := strings.Repeat("x", 256<<10+1)
			i.Metadata.Items[0].Value = &text
		},
		"a small disk": func(i *compute.Instance) { i.Disks[0].InitializeParams.DiskSizeGb = 1 },
	} {
		_, err := insert("bad", "e2-small", change)
		var api *googleapi.Error
		if !errors.As(err, &api) || api.Code < 400 || api.Code > 413 {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.fault(t, cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectRateLimit, Times: 1})
	_, err = k.Instances.AggregatedList(project).Do()
	wantReason(t, "a throttled list", err, 403, "rateLimitExceeded")
}

// TestSignIn is by the SDK's own reading of credentials.
func TestSignIn(t *testing.T) {
	c := newCloud(t)
	ctx := t.Context()
	k := must[*compute.Service](t)(compute.NewService(ctx, option.WithAuthCredentialsJSON(option.ServiceAccount, c.key(t, account)), option.WithEndpoint(c.root+"/compute/v1/")))
	if zones := must[*compute.ZoneList](t)(k.Zones.List(project).Do()); len(zones.Items) == 0 {
		t.Error("no zones")
	}
	_, err := c.service(t, "invalid-1").Zones.List(project).Do()
	var grant *oauth2.RetrieveError
	if !errors.As(err, &grant) || !strings.Contains(string(grant.Body), `"invalid_grant"`) {
		t.Errorf("an account that is none: %v", err)
	}
	only := c.service(t, "readonly-1")
	if _, err := only.Zones.List(project).Do(); err != nil {
		t.Errorf("an account that may read: %v", err)
	}
	_, err = only.Networks.Insert(project, &compute.Network{Name: "x", AutoCreateSubnetworks: true}).Do()
	wantReason(t, "a write by an account that may not", err, 403, "forbidden")
	none := must[*compute.Service](t)(compute.NewService(ctx, option.WithHTTPClient(&http.Client{Transport: c.wire}), option.WithEndpoint(c.root+"/compute/v1/")))
	_, err = none.Zones.List(project).Do()
	wantReason(t, "nobody", err, 401, "required")
	wrong := option.WithTokenSource(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "ya29.wrong"}))
	other := must[*compute.Service](t)(compute.NewService(ctx, wrong, option.WithEndpoint(c.root+"/compute/v1/")))
	_, err = other.Zones.List(project).Do()
	wantReason(t, "a token that is none", err, 401, "authError")
}
