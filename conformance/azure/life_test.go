// Package azure has Azure's own SDK judge the simulated cloud: azidentity
// signs in, and armsubscriptions, armresources, armnetwork and armcompute
// live a server's whole life.
package azure

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions"

	"github.com/slipway-dev/slipway/cloudsim"
)

const (
	tenant       = "33333333-2222-3333-4444-555555555555"
	client       = "22222222-2222-3333-4444-555555555555"
	subscription = "11111111-2222-3333-4444-555555555555"
	secret       = "conformance-secret-0123456789"
	group        = "conformance"
	region       = "westeurope"
)

// simulated is a simulated cloud over TLS, since azidentity sends no secret
// without, and fast enough that the SDK's own waiting is short.
type simulated struct {
	sim  *cloudsim.Sim
	base string
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
	srv := httptest.NewTLSServer(sim.Handler())
	t.Cleanup(srv.Close)
	return simulated{sim: sim, base: srv.URL, wire: &wireCheck{t: t, next: srv.Client().Transport}}
}

// clients are those of one subscription.
type clients struct {
	credential azcore.TokenCredential
	locations  *armsubscriptions.Client
	groups     *armresources.ResourceGroupsClient
	resources  *armresources.Client
	nets       *armnetwork.VirtualNetworksClient
	walls      *armnetwork.SecurityGroupsClient
	ips        *armnetwork.PublicIPAddressesClient
	nics       *armnetwork.InterfacesClient
	vms        *armcompute.VirtualMachinesClient
	disks      *armcompute.DisksClient
	sizes      *armcompute.VirtualMachineSizesClient
	skus       *armcompute.ResourceSKUsClient
	usage      *armcompute.UsageClient
}

func (c simulated) options() azcore.ClientOptions {
	return azcore.ClientOptions{
		Cloud: cloud.Configuration{
			ActiveDirectoryAuthorityHost: c.base + "/",
			Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
				cloud.ResourceManager: {Endpoint: c.base + "/azure", Audience: "https://management.azure.com/"},
			},
		},
		Transport: &http.Client{Transport: c.wire},
		Retry:     policy.RetryOptions{MaxRetries: 2, RetryDelay: 10 * time.Millisecond},
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

func (c simulated) clients(t *testing.T, secret string) clients {
	t.Helper()
	cred, err := azidentity.NewClientSecretCredential(tenant, client, secret, &azidentity.ClientSecretCredentialOptions{
		ClientOptions: c.options(), DisableInstanceDiscovery: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &arm.ClientOptions{ClientOptions: c.options()}
	compute := must[*armcompute.ClientFactory](t)(armcompute.NewClientFactory(subscription, cred, o))
	network := must[*armnetwork.ClientFactory](t)(armnetwork.NewClientFactory(subscription, cred, o))
	return clients{
		credential: cred,
		locations:  must[*armsubscriptions.Client](t)(armsubscriptions.NewClient(cred, o)),
		groups:     must[*armresources.ResourceGroupsClient](t)(armresources.NewResourceGroupsClient(subscription, cred, o)),
		resources:  must[*armresources.Client](t)(armresources.NewClient(subscription, cred, o)),
		nets:       network.NewVirtualNetworksClient(), walls: network.NewSecurityGroupsClient(),
		ips: network.NewPublicIPAddressesClient(), nics: network.NewInterfacesClient(),
		vms: compute.NewVirtualMachinesClient(), disks: compute.NewDisksClient(), sizes: compute.NewVirtualMachineSizesClient(),
		skus: compute.NewResourceSKUsClient(), usage: compute.NewUsageClient(),
	}
}

var quick = &runtime.PollUntilDoneOptions{Frequency: 10 * time.Millisecond}

// done waits as the SDK does, by the headers of the answers.
func done[T any](t *testing.T) func(*runtime.Poller[T], error) T {
	return func(p *runtime.Poller[T], err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.PollUntilDone(t.Context(), quick)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// network makes what a machine hangs on, and returns the interface's id.
func (k clients) network(t *testing.T, name string) string {
	t.Helper()
	ctx := t.Context()
	if _, err := k.groups.CreateOrUpdate(ctx, group, armresources.ResourceGroup{Location: to.Ptr(region)}, nil); err != nil {
		t.Fatal(err)
	}
	net := done[armnetwork.VirtualNetworksClientCreateOrUpdateResponse](t)(k.nets.BeginCreateOrUpdate(ctx, group, "net", armnetwork.VirtualNetwork{
		Location: to.Ptr(region),
		Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{to.Ptr("10.0.0.0/16")}},
			Subnets: []*armnetwork.Subnet{{Name: to.Ptr("default"), Properties: &armnetwork.SubnetPropertiesFormat{
				AddressPrefix: to.Ptr("10.0.0.0/24"), DefaultOutboundAccess: to.Ptr(false),
			}}},
		},
	}, nil))
	wall := done[armnetwork.SecurityGroupsClientCreateOrUpdateResponse](t)(k.walls.BeginCreateOrUpdate(ctx, group, name+"-nsg", armnetwork.SecurityGroup{
		Location: to.Ptr(region),
		Properties: &armnetwork.SecurityGroupPropertiesFormat{SecurityRules: []*armnetwork.SecurityRule{{
			Name: to.Ptr("ssh"), Properties: &armnetwork.SecurityRulePropertiesFormat{
				Priority: to.Ptr[int32](1000), Direction: to.Ptr(armnetwork.SecurityRuleDirectionInbound), Access: to.Ptr(armnetwork.SecurityRuleAccessAllow),
				Protocol: to.Ptr(armnetwork.SecurityRuleProtocolTCP), SourceAddressPrefix: to.Ptr("192.0.2.0/24"), SourcePortRange: to.Ptr("*"),
				DestinationAddressPrefix: to.Ptr("*"), DestinationPortRange: to.Ptr("22"),
			},
		}}},
	}, nil))
	ip := done[armnetwork.PublicIPAddressesClientCreateOrUpdateResponse](t)(k.ips.BeginCreateOrUpdate(ctx, group, name+"-ip", armnetwork.PublicIPAddress{
		Location: to.Ptr(region), SKU: &armnetwork.PublicIPAddressSKU{Name: to.Ptr(armnetwork.PublicIPAddressSKUNameStandard)},
		Properties: &armnetwork.PublicIPAddressPropertiesFormat{
			PublicIPAllocationMethod: to.Ptr(armnetwork.IPAllocationMethodStatic), DeleteOption: to.Ptr(armnetwork.DeleteOptionsDelete),
		},
	}, nil))
	if ip.Properties.IPAddress == nil || *ip.Properties.ProvisioningState != armnetwork.ProvisioningStateSucceeded {
		t.Fatalf("public IP after the poll: %+v", ip.Properties)
	}
	nic := done[armnetwork.InterfacesClientCreateOrUpdateResponse](t)(k.nics.BeginCreateOrUpdate(ctx, group, name+"-nic", armnetwork.Interface{
		Location: to.Ptr(region),
		Properties: &armnetwork.InterfacePropertiesFormat{
			NetworkSecurityGroup: &armnetwork.SecurityGroup{ID: wall.ID},
			IPConfigurations: []*armnetwork.InterfaceIPConfiguration{{Name: to.Ptr("primary"), Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
				Subnet: &armnetwork.Subnet{ID: net.Properties.Subnets[0].ID}, PublicIPAddress: &armnetwork.PublicIPAddress{ID: ip.ID},
			}}},
		},
	}, nil))
	return *nic.ID
}

const sdkKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"

func machine(name, nic, size string) armcompute.VirtualMachine {
	return armcompute.VirtualMachine{
		Location: to.Ptr(region), Tags: map[string]*string{"fleet": to.Ptr("a")},
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: to.Ptr(armcompute.VirtualMachineSizeTypes(size))},
			StorageProfile: &armcompute.StorageProfile{
				ImageReference: &armcompute.ImageReference{Publisher: to.Ptr("Canonical"), Offer: to.Ptr("ubuntu-24_04-lts"), SKU: to.Ptr("server"), Version: to.Ptr("latest")},
				OSDisk: &armcompute.OSDisk{
					Name: to.Ptr(name + "-os"), CreateOption: to.Ptr(armcompute.DiskCreateOptionTypesFromImage), DeleteOption: to.Ptr(armcompute.DiskDeleteOptionTypesDelete),
				},
			},
			OSProfile: &armcompute.OSProfile{
				ComputerName: to.Ptr(name), AdminUsername: to.Ptr("azureuser"),
				CustomData: to.Ptr(base64.StdEncoding.EncodeToString([]byte("#cloud-config\nruncmd: []\n"))),
				LinuxConfiguration: &armcompute.LinuxConfiguration{
					DisablePasswordAuthentication: to.Ptr(true),
					SSH:                           &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{{Path: to.Ptr("/home/azureuser/.ssh/authorized_keys"), KeyData: to.Ptr(sdkKey)}}},
				},
			},
			NetworkProfile: &armcompute.NetworkProfile{NetworkInterfaces: []*armcompute.NetworkInterfaceReference{{
				ID: &nic, Properties: &armcompute.NetworkInterfaceReferenceProperties{Primary: to.Ptr(true), DeleteOption: to.Ptr(armcompute.DeleteOptionsDelete)},
			}}},
			DiagnosticsProfile: &armcompute.DiagnosticsProfile{BootDiagnostics: &armcompute.BootDiagnostics{Enabled: to.Ptr(true)}},
		},
	}
}

func wantCode(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	var e *azcore.ResponseError
	if !errors.As(err, &e) || e.StatusCode != status || e.ErrorCode != code {
		t.Errorf("%s: %v, want HTTP %d %s", what, err, status, code)
	}
}

func TestLife(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.clients(t, secret), t.Context()
	nic := k.network(t, "one")
	made := done[armcompute.VirtualMachinesClientCreateOrUpdateResponse](t)(k.vms.BeginCreateOrUpdate(ctx, group, "one", machine("one", nic, "Standard_B2s"), &armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")}))
	if *made.Properties.ProvisioningState != "Succeeded" || made.Properties.OSProfile.CustomData != nil {
		t.Errorf("after the poll: state %s, custom data %v", *made.Properties.ProvisioningState, made.Properties.OSProfile.CustomData)
	}
	_, err := k.vms.BeginCreateOrUpdate(ctx, group, "one", machine("one", nic, "Standard_B2s"), &armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
	wantCode(t, "a second create of the name", err, http.StatusPreconditionFailed, "PreconditionFailed")

	c.sim.Advance(time.Minute)
	view, err := k.vms.InstanceView(ctx, group, "one", nil)
	if err != nil || !hasStatus(view.Statuses, "PowerState/running") || !hasStatus(view.Statuses, "ProvisioningState/succeeded") {
		t.Errorf("instance view: %v, %v", view.Statuses, err)
	}
	found := 0
	for pager := k.vms.NewListPager(group, &armcompute.VirtualMachinesClientListOptions{Expand: to.Ptr(armcompute.ExpandTypeForListVMsInstanceView)}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, vm := range page.Value {
			if *vm.Tags["fleet"] == "a" && vm.Properties.InstanceView != nil {
				found++
			}
		}
	}
	byTag := 0
	for pager := k.resources.NewListByResourceGroupPager(group, &armresources.ClientListByResourceGroupOptions{Filter: to.Ptr("tagName eq 'fleet' and tagValue eq 'a'")}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		byTag += len(page.Value)
	}
	if found != 1 || byTag != 2 {
		t.Errorf("the list shows %d machines, the tag %d things; want 1, and 2: the machine and its disk", found, byTag)
	}
	checkConsole(t, c, k, "one")
	done[armcompute.VirtualMachinesClientRestartResponse](t)(k.vms.BeginRestart(ctx, group, "one", nil))

	done[armcompute.VirtualMachinesClientDeleteResponse](t)(k.vms.BeginDelete(ctx, group, "one", &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)}))
	_, err = k.vms.Get(ctx, group, "one", nil)
	wantCode(t, "get after the delete", err, http.StatusNotFound, "ResourceNotFound")
	c.sim.Advance(time.Minute)
	_, err = k.nics.Get(ctx, group, "one-nic", nil)
	wantCode(t, "the interface after the cascade", err, http.StatusNotFound, "ResourceNotFound")
	done[armnetwork.SecurityGroupsClientDeleteResponse](t)(k.walls.BeginDelete(ctx, group, "one-nsg", nil))
	done[armcompute.VirtualMachinesClientDeleteResponse](t)(k.vms.BeginDelete(ctx, group, "one", nil))
	if left := c.sim.LedgerSummary(); left.Left != 0 || left.Made != 3 {
		t.Errorf("ledger: %+v, want 3 made and 0 left", left)
	}
	done[armresources.ResourceGroupsClientDeleteResponse](t)(k.groups.BeginDelete(ctx, group, nil))
	if ok, err := k.groups.CheckExistence(ctx, group, nil); err != nil || ok.Success {
		t.Errorf("the group after its delete: %v, %v", ok, err)
	}
}

func hasStatus(statuses []*armcompute.InstanceViewStatus, code string) bool {
	for _, s := range statuses {
		if *s.Code == code {
			return true
		}
	}
	return false
}

func checkConsole(t *testing.T, c simulated, k clients, name string) {
	t.Helper()
	data, err := k.vms.RetrieveBootDiagnosticsData(t.Context(), group, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: c.wire.next}).Get(*data.SerialConsoleLogBlobURI)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "Linux version") {
		t.Errorf("console: %q, %v", text, err)
	}
}

func TestRefusals(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.clients(t, secret), t.Context()
	nic := k.network(t, "one")
	create := func(size string) error {
		p, err := k.vms.BeginCreateOrUpdate(ctx, group, "one", machine("one", nic, size), nil)
		if err == nil {
			_, err = p.PollUntilDone(ctx, quick)
		}
		return err
	}
	for _, r := range []struct {
		effect cloudsim.Effect
		status int
		code   string
	}{
		{cloudsim.EffectCapacity, http.StatusConflict, "SkuNotAvailable"},
		{cloudsim.EffectQuota, http.StatusConflict, "OperationNotAllowed"},
	} {
		if _, err := c.sim.AddFault(cloudsim.Fault{Call: "create server", Effect: r.effect, Times: 1}); err != nil {
			t.Fatal(err)
		}
		wantCode(t, string(r.effect), create("Standard_B2s"), r.status, r.code)
	}
	wantCode(t, "an unknown size", create("Standard_Nope"), http.StatusBadRequest, "InvalidParameter")

	// The SDK waits as Retry-After-Ms says, and comes back.
	if _, err := c.sim.AddFault(cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectRateLimit, Times: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.vms.NewListPager(group, nil).NextPage(ctx); err != nil {
		t.Errorf("a throttled list: %v", err)
	}
	if _, err := c.sim.AddFault(cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectRateLimit}); err != nil {
		t.Fatal(err)
	}
	_, err := k.vms.NewListPager(group, nil).NextPage(ctx)
	wantCode(t, "a list that stays throttled", err, http.StatusTooManyRequests, "TooManyRequests")

	// A create that is accepted and given up later: HTTP 200, and an error in the body.
	if _, err := c.sim.AddFault(cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(20 * time.Second), Times: 1}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a late failure", create("Standard_B2s"), http.StatusOK, "AllocationFailed")
	done[armcompute.VirtualMachinesClientDeleteResponse](t)(k.vms.BeginDelete(ctx, group, "one", nil))
	_, err = k.nics.BeginDelete(ctx, group, "one-nic", nil)
	wantCode(t, "an interface that is kept for it", err, http.StatusBadRequest, "NicReservedForAnotherVm")
	c.sim.Advance(4 * time.Minute)
	done[armnetwork.InterfacesClientDeleteResponse](t)(k.nics.BeginDelete(ctx, group, "one-nic", nil))
	done[armnetwork.PublicIPAddressesClientDeleteResponse](t)(k.ips.BeginDelete(ctx, group, "one-ip", nil))
}

func TestSignIn(t *testing.T) {
	c := newCloud(t)
	for bad, want := range map[string]string{"invalid-secret": "AADSTS7000215", "expired-secret": "AADSTS7000222"} {
		_, err := c.clients(t, bad).groups.CheckExistence(t.Context(), group, nil)
		var failed *azidentity.AuthenticationFailedError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
	_, err := c.clients(t, "readonly-secret").groups.CreateOrUpdate(t.Context(), group, armresources.ResourceGroup{Location: to.Ptr(region)}, nil)
	wantCode(t, "a write with a role that may not", err, http.StatusForbidden, "AuthorizationFailed")

	claims := `{"iss":"https://issuer.example","sub":"node","aud":"api://AzureADTokenExchange","exp":` + fmt.Sprint(c.sim.Now().Add(time.Hour).Unix()) + `}`
	assertion := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
	federated, err := azidentity.NewClientAssertionCredential(tenant, client, func(context.Context) (string, error) { return assertion, nil },
		&azidentity.ClientAssertionCredentialOptions{ClientOptions: c.options(), DisableInstanceDiscovery: true})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := federated.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
	if err != nil || tok.Token == "" {
		t.Errorf("federated: %v", err)
	}
}

func TestCatalog(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.clients(t, secret), t.Context()
	physical := 0
	for pager := k.locations.NewListLocationsPager(subscription, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Value {
			if *l.Metadata.RegionType == armsubscriptions.RegionTypePhysical {
				physical++
			}
		}
	}
	sizes := must[armcompute.VirtualMachineSizesClientListResponse](t)(k.sizes.NewListPager(region, nil).NextPage(ctx))
	skus := must[armcompute.ResourceSKUsClientListResponse](t)(k.skus.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: to.Ptr("location eq '" + region + "'")}).NextPage(ctx))
	usage := must[armcompute.UsageClientListResponse](t)(k.usage.NewListPager(region, nil).NextPage(ctx))
	if physical < 5 || len(sizes.Value) < 10 || len(skus.Value) < 10 || len(usage.Value) < 3 {
		t.Errorf("%d regions, %d sizes, %d SKUs, %d usages", physical, len(sizes.Value), len(skus.Value), len(usage.Value))
	}
}
