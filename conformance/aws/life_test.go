// Package aws has AWS's own SDK judge the simulated cloud: service/sts signs
// in, and service/ec2 lives a server's whole life.
package aws

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/slipway-dev/slipway/cloudsim"
)

const (
	region = "eu-central-1"
	keyID  = "AKIACONFORMANCE00000"
	secret = "conformance-secret-0123456789-0123456789"
	sdkKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"
)

// simulated is a simulated cloud that is fast enough that the SDK's own waiting
// is short.
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
	srv := httptest.NewServer(sim.Handler())
	t.Cleanup(srv.Close)
	return simulated{sim: sim, base: srv.URL + "/aws", wire: &wireCheck{t: t, checked: map[string]int{}}}
}

func (c simulated) client(creds sdk.CredentialsProvider) *ec2.Client {
	return ec2.New(ec2.Options{
		Region: region, BaseEndpoint: sdk.String(c.base), Credentials: creds, APIOptions: []func(*middleware.Stack) error{c.wire.add},
	})
}

func (c simulated) sts(key string) *sts.Client {
	return sts.New(sts.Options{
		Region: region, BaseEndpoint: sdk.String(c.base), Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""),
		APIOptions: []func(*middleware.Stack) error{c.wire.add},
	})
}

func static(key string) sdk.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(key, secret, "")
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

func wantCode(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	var api smithy.APIError
	var resp *awshttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &resp) || api.ErrorCode() != code || resp.HTTPStatusCode() != status {
		t.Errorf("%s: %v, want %s with HTTP %d", what, err, code, status)
		return
	}
	if resp.ServiceRequestID() == "" {
		t.Errorf("%s: no request id", what)
	}
}

// places lists what there is, and returns the newest image and the first subnet.
func places(t *testing.T, k *ec2.Client) (image, subnet string) {
	t.Helper()
	ctx := t.Context()
	regions := must[*ec2.DescribeRegionsOutput](t)(k.DescribeRegions(ctx, &ec2.DescribeRegionsInput{AllRegions: sdk.Bool(true)}))
	enabled := must[*ec2.DescribeRegionsOutput](t)(k.DescribeRegions(ctx, &ec2.DescribeRegionsInput{}))
	zones := must[*ec2.DescribeAvailabilityZonesOutput](t)(k.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{}))
	if len(regions.Regions) <= len(enabled.Regions) || len(zones.AvailabilityZones) != 3 {
		t.Errorf("%d regions, %d enabled, %d zones", len(regions.Regions), len(enabled.Regions), len(zones.AvailabilityZones))
	}
	sizes := 0
	for p := ec2.NewDescribeInstanceTypesPaginator(k, &ec2.DescribeInstanceTypesInput{MaxResults: sdk.Int32(5)}); p.HasMorePages(); {
		sizes += len(must[*ec2.DescribeInstanceTypesOutput](t)(p.NextPage(ctx)).InstanceTypes)
	}
	offers := must[*ec2.DescribeInstanceTypeOfferingsOutput](t)(k.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{{Name: sdk.String("instance-type"), Values: []string{"t3.small"}}},
	}))
	if sizes < 15 || len(offers.InstanceTypeOfferings) != 3 {
		t.Errorf("%d sizes, %d zones with t3.small", sizes, len(offers.InstanceTypeOfferings))
	}
	images := must[*ec2.DescribeImagesOutput](t)(k.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"099720109477"}, Filters: []types.Filter{
		{Name: sdk.String("name"), Values: []string{"ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*"}},
	}}))
	newest := slices.MaxFunc(images.Images, func(x, y types.Image) int { return strings.Compare(*x.CreationDate, *y.CreationDate) })
	vpcs := must[*ec2.DescribeVpcsOutput](t)(k.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{{Name: sdk.String("is-default"), Values: []string{"true"}}}}))
	subnets := must[*ec2.DescribeSubnetsOutput](t)(k.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: sdk.String("vpc-id"), Values: []string{*vpcs.Vpcs[0].VpcId}}}}))
	return *newest.ImageId, *subnets.Subnets[0].SubnetId
}

func firewall(t *testing.T, k *ec2.Client, name string) string {
	t.Helper()
	ctx := t.Context()
	group := must[*ec2.CreateSecurityGroupOutput](t)(k.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: sdk.String(name), Description: sdk.String("conformance"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{{Key: sdk.String("fleet"), Value: sdk.String("a")}}}},
	}))
	in := &ec2.DescribeSecurityGroupsInput{GroupIds: []string{*group.GroupId}}
	if err := ec2.NewSecurityGroupExistsWaiter(k).Wait(ctx, in, time.Minute); err != nil {
		t.Fatal(err)
	}
	rules := []types.IpPermission{{
		IpProtocol: sdk.String("tcp"), FromPort: sdk.Int32(22), ToPort: sdk.Int32(22),
		IpRanges: []types.IpRange{{CidrIp: sdk.String("192.0.2.0/24"), Description: sdk.String("SSH")}}, Ipv6Ranges: []types.Ipv6Range{{CidrIpv6: sdk.String("2001:db8::/32")}},
	}}
	allow := &ec2.AuthorizeSecurityGroupIngressInput{GroupId: group.GroupId, IpPermissions: rules}
	_, err := k.AuthorizeSecurityGroupIngress(ctx, allow)
	for range 50 { // the group is too new for a second
		if err == nil {
			break
		}
		wantCode(t, "a rule for a group that is too new", err, 400, "InvalidGroup.NotFound")
		c := time.NewTimer(10 * time.Millisecond)
		<-c.C
		_, err = k.AuthorizeSecurityGroupIngress(ctx, allow)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.AuthorizeSecurityGroupIngress(ctx, allow)
	wantCode(t, "the same rule again", err, 400, "InvalidPermission.Duplicate")
	got := must[*ec2.DescribeSecurityGroupsOutput](t)(k.DescribeSecurityGroups(ctx, in))
	list := must[*ec2.DescribeSecurityGroupRulesOutput](t)(k.DescribeSecurityGroupRules(ctx, &ec2.DescribeSecurityGroupRulesInput{}))
	if len(got.SecurityGroups[0].IpPermissions) != 2 || len(list.SecurityGroupRules) != 2 {
		t.Errorf("rules: %+v", got.SecurityGroups[0].IpPermissions)
	}
	return *group.GroupId
}

func launch(image, subnet, group, size, token string) *ec2.RunInstancesInput {
	tags := []types.Tag{{Key: sdk.String("fleet"), Value: sdk.String("a")}, {Key: sdk.String("Name"), Value: sdk.String("node-1")}}
	in := &ec2.RunInstancesInput{
		ImageId: sdk.String(image), InstanceType: types.InstanceType(size), MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), ClientToken: sdk.String(token),
		UserData: sdk.String(base64.StdEncoding.EncodeToString([]byte("#cloud-config\nruncmd: []\n"))), KeyName: sdk.String("me"),
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: sdk.Int32(0), SubnetId: sdk.String(subnet), Groups: []string{group}, AssociatePublicIpAddress: sdk.Bool(true),
		}},
		BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: sdk.String("/dev/sda1"), Ebs: &types.EbsBlockDevice{VolumeSize: sdk.Int32(12), VolumeType: types.VolumeTypeGp3, Encrypted: sdk.Bool(true)}}},
		MetadataOptions:     &types.InstanceMetadataOptionsRequest{HttpTokens: types.HttpTokensStateRequired, HttpPutResponseHopLimit: sdk.Int32(1)},
	}
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: tags})
	}
	return in
}

func patient(o *ec2.InstanceRunningWaiterOptions) {
	o.MinDelay, o.MaxDelay = 10*time.Millisecond, 50*time.Millisecond
}

func byFleet() []types.Filter {
	return []types.Filter{{Name: sdk.String("tag:fleet"), Values: []string{"a"}}}
}

// TestWholeLife is one server's, as the SDK's users write it.
func TestWholeLife(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.client(static(keyID)), t.Context()
	image, subnet := places(t, k)
	group := firewall(t, k, "conformance")
	must[*ec2.ImportKeyPairOutput](t)(k.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: sdk.String("me"), PublicKeyMaterial: []byte(sdkKey)}))
	keys := must[*ec2.DescribeKeyPairsOutput](t)(k.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{IncludePublicKey: sdk.Bool(true)}))
	if len(keys.KeyPairs) != 1 || *keys.KeyPairs[0].PublicKey != sdkKey {
		t.Errorf("key pairs: %+v", keys.KeyPairs)
	}

	in := launch(image, subnet, group, "t3.small", "token-1")
	run := must[*ec2.RunInstancesOutput](t)(k.RunInstances(ctx, in))
	id := *run.Instances[0].InstanceId
	if run.Instances[0].State.Name != types.InstanceStateNamePending || run.Instances[0].PublicIpAddress != nil {
		t.Errorf("right after the launch: %s at %v", run.Instances[0].State.Name, run.Instances[0].PublicIpAddress)
	}
	byID := &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
	if err := ec2.NewInstanceRunningWaiter(k, patient).Wait(ctx, byID, time.Minute); err != nil {
		t.Fatal(err)
	}
	again := must[*ec2.RunInstancesOutput](t)(k.RunInstances(ctx, in))
	other := *in
	other.UserData = nil
	_, err := k.RunInstances(ctx, &other)
	wantCode(t, "the token with another request", err, 400, "IdempotentParameterMismatch")
	if *again.Instances[0].InstanceId != id || again.Instances[0].PublicIpAddress == nil {
		t.Errorf("the same token: %+v", again.Instances[0])
	}
	c.sim.Advance(time.Minute)
	seen := 0
	for p := ec2.NewDescribeInstancesPaginator(k, &ec2.DescribeInstancesInput{Filters: byFleet(), MaxResults: sdk.Int32(5)}); p.HasMorePages(); {
		for _, r := range must[*ec2.DescribeInstancesOutput](t)(p.NextPage(ctx)).Reservations {
			seen += len(r.Instances)
		}
	}
	status := must[*ec2.DescribeInstanceStatusOutput](t)(k.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: []string{id}}))
	console := must[*ec2.GetConsoleOutputOutput](t)(k.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: sdk.String(id), Latest: sdk.Bool(true)}))
	text, err := base64.StdEncoding.DecodeString(sdk.ToString(console.Output))
	if seen != 1 || len(status.InstanceStatuses) != 1 || err != nil || !strings.Contains(string(text), "Linux version") {
		t.Errorf("%d instances, status %+v, console %q, %v", seen, status.InstanceStatuses, text, err)
	}
	parts(t, k, id)
	power(t, k, id)
	end(t, c, k, id, group)
	for _, action := range []string{
		"AllocateAddress", "AuthorizeSecurityGroupIngress", "CreateSecurityGroup", "CreateTags", "DeleteKeyPair", "DeleteSecurityGroup", "DeleteTags",
		"DescribeAddresses", "DescribeAvailabilityZones", "DescribeImages", "DescribeInstanceStatus", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes",
		"DescribeInstances", "DescribeKeyPairs", "DescribeNetworkInterfaces", "DescribeRegions", "DescribeSecurityGroupRules", "DescribeSecurityGroups",
		"DescribeSubnets", "DescribeTags", "DescribeVolumes", "DescribeVpcs", "GetConsoleOutput", "ImportKeyPair", "RebootInstances", "ReleaseAddress",
		"RunInstances", "StartInstances", "StopInstances", "TerminateInstances",
	} {
		if c.wire.checked[action] == 0 {
			t.Errorf("no answer of %s was checked", action)
		}
	}
}

// parts looks at what belongs to the instance, and at tags and addresses.
func parts(t *testing.T, k *ec2.Client, id string) {
	t.Helper()
	ctx := t.Context()
	volumes := must[*ec2.DescribeVolumesOutput](t)(k.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: byFleet()}))
	if len(volumes.Volumes) != 1 || *volumes.Volumes[0].Size != 12 || !*volumes.Volumes[0].Encrypted || *volumes.Volumes[0].Attachments[0].InstanceId != id {
		t.Errorf("volumes: %+v", volumes.Volumes)
	}
	cards := must[*ec2.DescribeNetworkInterfacesOutput](t)(k.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: byFleet()}))
	if len(cards.NetworkInterfaces) != 1 || *cards.NetworkInterfaces[0].Attachment.InstanceId != id {
		t.Errorf("interfaces: %+v", cards.NetworkInterfaces)
	}
	must[*ec2.CreateTagsOutput](t)(k.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: sdk.String("more"), Value: sdk.String("b")}}}))
	tags := must[*ec2.DescribeTagsOutput](t)(k.DescribeTags(ctx, &ec2.DescribeTagsInput{Filters: []types.Filter{{Name: sdk.String("resource-id"), Values: []string{id}}}}))
	must[*ec2.DeleteTagsOutput](t)(k.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: sdk.String("more")}}}))
	if len(tags.Tags) != 3 {
		t.Errorf("tags: %+v", tags.Tags)
	}
	ip := must[*ec2.AllocateAddressOutput](t)(k.AllocateAddress(ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc}))
	list := must[*ec2.DescribeAddressesOutput](t)(k.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{AllocationIds: []string{*ip.AllocationId}}))
	must[*ec2.ReleaseAddressOutput](t)(k.ReleaseAddress(ctx, &ec2.ReleaseAddressInput{AllocationId: ip.AllocationId}))
	if len(list.Addresses) != 1 || *list.Addresses[0].PublicIp != *ip.PublicIp {
		t.Errorf("addresses: %+v", list.Addresses)
	}
}

func power(t *testing.T, k *ec2.Client, id string) {
	t.Helper()
	ctx, byID := t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
	must[*ec2.RebootInstancesOutput](t)(k.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{id}}))
	must[*ec2.StopInstancesOutput](t)(k.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{id}}))
	err := ec2.NewInstanceStoppedWaiter(k, func(o *ec2.InstanceStoppedWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, 50*time.Millisecond
	}).Wait(ctx, byID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	must[*ec2.StartInstancesOutput](t)(k.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}}))
	if err := ec2.NewInstanceRunningWaiter(k, patient).Wait(ctx, byID, time.Minute); err != nil {
		t.Fatal(err)
	}
}

func end(t *testing.T, c simulated, k *ec2.Client, id, group string) {
	t.Helper()
	ctx, byID := t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}
	must[*ec2.TerminateInstancesOutput](t)(k.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))
	err := ec2.NewInstanceTerminatedWaiter(k, func(o *ec2.InstanceTerminatedWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, 20*time.Millisecond
	}).Wait(ctx, byID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	gone := must[*ec2.DescribeInstancesOutput](t)(k.DescribeInstances(ctx, byID)).Reservations[0].Instances[0]
	if len(gone.SecurityGroups) != 0 || gone.PublicIpAddress != nil || *gone.StateReason.Code != "Client.UserInitiatedShutdown" {
		t.Errorf("a terminated instance: %+v", gone)
	}
	drop := &ec2.DeleteSecurityGroupInput{GroupId: sdk.String(group)}
	if _, err := k.DeleteSecurityGroup(ctx, drop); err != nil { // the interface still holds it
		wantCode(t, "a group that is held", err, 400, "DependencyViolation")
		c.sim.Advance(time.Minute)
		must[*ec2.DeleteSecurityGroupOutput](t)(k.DeleteSecurityGroup(ctx, drop))
	}
	must[*ec2.DeleteKeyPairOutput](t)(k.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: sdk.String("me")}))
	_, err = k.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{group}})
	wantCode(t, "the group after its end", err, 400, "InvalidGroup.NotFound")
	c.sim.Advance(2 * time.Hour)
	_, err = k.DescribeInstances(ctx, byID)
	wantCode(t, "the instance after an hour", err, 400, "InvalidInstanceID.NotFound")
	for _, e := range c.sim.Ledger() {
		if e.Left() {
			t.Errorf("left: %+v", e)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := newCloud(t)
	k, ctx := c.client(static(keyID)), t.Context()
	image, subnet := places(t, k)
	group := firewall(t, k, "conformance")
	must[*ec2.ImportKeyPairOutput](t)(k.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: sdk.String("me"), PublicKeyMaterial: []byte(sdkKey)}))
	run := func(size, token string, change func(in *ec2.RunInstancesInput)) error {
		in := launch(image, subnet, group, size, token)
		if change != nil {
			change(in)
		}
		_, err := k.RunInstances(ctx, in)
		return err
	}
	c.fault(t, cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectCapacity, Times: 3}) // the SDK comes back for a 500
	wantCode(t, "no capacity", run("t3.small", "1", nil), 500, "InsufficientInstanceCapacity")
	c.fault(t, cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectQuota, Times: 1})
	wantCode(t, "no quota", run("t3.small", "2", nil), 400, "VcpuLimitExceeded")
	wantCode(t, "a family without quota", run("g5.xlarge", "3", nil), 400, "VcpuLimitExceeded")
	wantCode(t, "a wrong architecture", run("t4g.small", "4", nil), 400, "InvalidParameterValue")
	wantCode(t, "a dry run", run("t3.small", "5", func(in *ec2.RunInstancesInput) { in.DryRun = sdk.Bool(true) }), 412, "DryRunOperation")
	wantCode(t, "a group beside the interface", run("t3.small", "6", func(in *ec2.RunInstancesInput) { in.SecurityGroupIds = []string{group} }), 400, "InvalidParameterCombination")
	wantCode(t, "long user-data", run("t3.small", "7", func(in *ec2.RunInstancesInput) {
		in.UserData = sdk.String(base64.StdEncoding.EncodeToString(make([]byte, 16385)))
	}), 400, "InvalidParameterValue")

	// The SDK waits and comes back by itself; three times in all.
	c.fault(t, cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectRateLimit, Times: 2})
	if _, err := k.DescribeInstances(ctx, &ec2.DescribeInstancesInput{}); err != nil {
		t.Errorf("a throttled list: %v", err)
	}
	c.fault(t, cloudsim.Fault{Call: "list servers", Effect: cloudsim.EffectRateLimit, Times: 3})
	_, err := k.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	wantCode(t, "a list that stays throttled", err, 503, "RequestLimitExceeded")

	// A create that is accepted and given up later.
	c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(5 * time.Second), Times: 1})
	out := must[*ec2.RunInstancesOutput](t)(k.RunInstances(ctx, launch(image, subnet, group, "t3.small", "8")))
	c.sim.Advance(time.Minute)
	byID := &ec2.DescribeInstancesInput{InstanceIds: []string{*out.Instances[0].InstanceId}}
	i := must[*ec2.DescribeInstancesOutput](t)(k.DescribeInstances(ctx, byID)).Reservations[0].Instances[0]
	if i.State.Name != types.InstanceStateNameTerminated || *i.StateReason.Code != "Server.InsufficientInstanceCapacity" {
		t.Errorf("a late failure: %+v", i)
	}
	wantCode(t, "its token again", run("t3.small", "8", nil), 400, "IdempotentInstanceTerminated")
}

func TestSignIn(t *testing.T) {
	c := newCloud(t)
	ctx := t.Context()
	who := must[*sts.GetCallerIdentityOutput](t)(c.sts(keyID).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	if len(*who.Account) != 12 || !strings.Contains(*who.Arn, *who.Account) {
		t.Errorf("caller: %+v", who)
	}
	_, err := c.sts("AKIAINVALID").GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	wantCode(t, "a wrong key at STS", err, 403, "InvalidClientTokenId")
	for key, want := range map[string]string{"AKIAINVALID": "AuthFailure", "ASIANOBODY0000000000": "AuthFailure"} {
		_, err := c.client(static(key)).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
		wantCode(t, "the key "+key, err, 401, want)
	}
	_, err = c.client(sdk.AnonymousCredentials{}).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	wantCode(t, "no signature", err, 403, "MissingAuthenticationToken")
	_, err = c.client(static("AKIAREADONLY")).CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: sdk.String("x"), Description: sdk.String("x")})
	wantCode(t, "a write with a policy that may not", err, 403, "UnauthorizedOperation")
	_, err = c.client(static(keyID)).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{}, func(o *ec2.Options) { o.Region = "af-south-1" })
	wantCode(t, "a region that is not enabled", err, 401, "AuthFailure")

	role := stscreds.NewAssumeRoleProvider(c.sts(keyID), "arn:aws:iam::123456789012:role/external-7", func(o *stscreds.AssumeRoleOptions) { o.ExternalID = sdk.String("7") })
	if _, err := c.client(sdk.NewCredentialsCache(role)).DescribeVpcs(ctx, &ec2.DescribeVpcsInput{}); err != nil {
		t.Errorf("with a role: %v", err)
	}
	_, err = stscreds.NewAssumeRoleProvider(c.sts(keyID), "arn:aws:iam::123456789012:role/denied").Retrieve(context.Background())
	wantCode(t, "a role that trusts nobody", err, 403, "AccessDenied")
	if c.wire.checked["AssumeRole"] == 0 || c.wire.checked["GetCallerIdentity"] == 0 {
		t.Errorf("checked: %v", c.wire.checked)
	}
}
