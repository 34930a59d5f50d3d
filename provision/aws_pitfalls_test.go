package provision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

func awsNode(name string) provision.CreateOpts {
	return provision.CreateOpts{Region: awsRegion, Size: "t3.small", Name: name, UserData: "#cloud-config\nhostname: " + name + "\n", IdempotencyKey: "key of " + name}
}

// inAWS runs a test in a bubble with a new simulated account.
func inAWS(t *testing.T, test func(t *testing.T, c awsCloud, a *provision.AWS)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newAWSCloud(t)
		test(t, c, c.open(t, awsKey))
	})
}

func awsCreate(t *testing.T, a *provision.AWS, opts provision.CreateOpts) string {
	t.Helper()
	id, _, err := a.CreateServer(t.Context(), opts)
	if err != nil {
		t.Fatalf("create of %s: %v", opts.Name, err)
	}
	return id
}

func wantIs(t *testing.T, what string, err, class error, words ...string) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %v", what, err, class)
		return
	}
	var e *provision.ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("%s: no ProviderError in %v", what, err)
	}
	for _, w := range words {
		if !strings.Contains(e.Message+"\n"+e.Hint, w) {
			t.Errorf("%s says %q with the hint %q, want %q in it", what, e.Message, e.Hint, w)
		}
	}
}

// TestAWSHardening: what an instance has from its first second.
func TestAWSHardening(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		opts.Labels = map[string]string{"acme-node": "n1"}
		id := awsCreate(t, a, opts)
		time.Sleep(time.Minute)
		i := c.instance(t, id)
		if m := i.MetadataOptions; m.HttpTokens != types.HttpTokensStateRequired || aws.ToInt32(m.HttpPutResponseHopLimit) != 2 || m.InstanceMetadataTags != types.InstanceMetadataTagsStateDisabled {
			t.Errorf("metadata options: %+v", m)
		}
		if len(i.SecurityGroups) != 1 || aws.ToString(i.SecurityGroups[0].GroupName) != "acme-no-inbound" || i.IamInstanceProfile != nil || i.KeyName != nil {
			t.Errorf("groups %+v, profile %v, key %v", i.SecurityGroups, i.IamInstanceProfile, i.KeyName)
		}
		if g := c.group(t, aws.ToString(i.SecurityGroups[0].GroupId)); len(g.IpPermissions) != 0 {
			t.Errorf("the shared group lets in %+v", g.IpPermissions)
		}
		vols, err := c.api().DescribeVolumes(context.Background(), &ec2.DescribeVolumesInput{})
		if err != nil || len(vols.Volumes) != 1 {
			t.Fatal(err, vols)
		}
		v := vols.Volumes[0]
		if !aws.ToBool(v.Encrypted) || v.VolumeType != types.VolumeTypeGp3 || aws.ToInt32(v.Size) != 20 || !aws.ToBool(v.Attachments[0].DeleteOnTermination) {
			t.Errorf("volume: %+v", v)
		}
		nics, err := c.api().DescribeNetworkInterfaces(context.Background(), &ec2.DescribeNetworkInterfacesInput{})
		if err != nil || len(nics.NetworkInterfaces) != 1 {
			t.Fatal(err, nics)
		}
		for what, tags := range map[string][]types.Tag{"instance": i.Tags, "volume": v.Tags, "interface": nics.NetworkInterfaces[0].TagSet} {
			got := map[string]string{}
			for _, tag := range tags {
				got[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
			if got["managed-by"] != "acme" || got["Name"] != "node-1" || got["acme-node"] != "n1" || len(got["acme-key"]) != 40 || len(got["acme-params"]) != 40 {
				t.Errorf("%s has the tags %v", what, got)
			}
		}
	})
}

// TestAWSImages: the newest by the publisher himself, in the size's
// architecture; somebody else's newer one of that name is not taken.
func TestAWSImages(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		for size, arch := range map[string]string{"t3.small": "x86_64", "t4g.small": "arm64"} {
			opts := awsNode("node-" + arch)
			opts.Name, opts.Size = strings.ReplaceAll(opts.Name, "_", "-"), size
			id := awsCreate(t, a, opts)
			time.Sleep(5 * time.Second)
			images, err := c.api().DescribeImages(context.Background(), &ec2.DescribeImagesInput{ImageIds: []string{aws.ToString(c.instance(t, id).ImageId)}})
			if err != nil {
				t.Fatal(err)
			}
			image := images.Images[0]
			if string(image.Architecture) != arch || aws.ToString(image.OwnerId) != "099720109477" || !strings.HasSuffix(aws.ToString(image.Name), "20261124") {
				t.Errorf("%s got image %s of %s, %s", size, aws.ToString(image.Name), aws.ToString(image.OwnerId), image.Architecture)
			}
		}
		opts := awsNode("node-3")
		opts.Image = "ami-0123456789abcdef0"
		_, _, err := a.CreateServer(t.Context(), opts)
		wantIs(t, "an image that is not there", err, provision.ErrNotFound)
		opts.Image = "ubuntu-24.04"
		_, _, err = a.CreateServer(t.Context(), opts)
		wantIs(t, "a name for an image", err, provision.ErrInvalid, "ami-")
	})
}

func TestAWSCompressesLongUserData(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		opts.UserData += "write_files:\n- path: /etc/long\n  content: |\n" + strings.Repeat("    line after line\n", 4000)
		id := awsCreate(t, a, opts)
		time.Sleep(2 * time.Minute)
		found := false
		for _, g := range c.sim.Guests() {
			found = found || strings.HasSuffix(id, g.Server) && strings.Contains(strings.Join(g.Console, "\n"), "1 files written")
		}
		if !found {
			t.Errorf("the guest did not read it: %+v", c.sim.Guests())
		}
		var noise strings.Builder
		for i := range 6000 {
			fmt.Fprintf(&noise, "# %x\n", i*2654435761)
		}
		opts = awsNode("node-2")
		opts.UserData += noise.String()
		_, _, err := a.CreateServer(t.Context(), opts)
		wantIs(t, "user-data that is too long even so", err, provision.ErrInvalid, "when compressed", "16384")
	})
}

// TestAWSZones: a zone without capacity is followed by the others, each once;
// zones that never have the size are not tried.
func TestAWSZones(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		opts.Size = "m7g.large" // sold out in two of three zones
		id := awsCreate(t, a, opts)
		time.Sleep(5 * time.Second)
		if zone := aws.ToString(c.instance(t, id).Placement.AvailabilityZone); zone != awsRegion+"c" {
			t.Errorf("server is in %s", zone)
		}
		opts = awsNode("node-2")
		opts.Region, opts.Size = "eu-west-1", "t3.large" // sold out in all
		calls := c.calls(func() {
			_, _, err := a.CreateServer(t.Context(), opts)
			wantIs(t, "no zone with capacity", err, provision.ErrCapacity, "another size or another region")
		})
		tries := 0
		for _, call := range calls {
			if call == "create server" {
				tries++
			}
		}
		if tries != 3+2 { // and two for the group, which was too new
			t.Errorf("%d tries in three zones: %q", tries, calls)
		}
		zones := map[string]bool{}
		for i := range 8 {
			opts := awsNode(fmt.Sprintf("node-us-%d", i))
			opts.Region = "us-east-1"
			if _, _, err := a.CreateServer(t.Context(), opts); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(5 * time.Second)
		servers, err := a.ListServers(t.Context())
		if err != nil || len(servers) != 9 {
			t.Fatalf("%d servers, %v", len(servers), err)
		}
		out, err := c.api().DescribeInstances(context.Background(), &ec2.DescribeInstancesInput{}, func(o *ec2.Options) { o.Region = "us-east-1" })
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Reservations {
			zones[aws.ToString(r.Instances[0].Placement.AvailabilityZone)] = true
		}
		if len(zones) < 3 || zones["us-east-1e"] {
			t.Errorf("eight servers are in the zones %v", zones)
		}
	})
}

// TestAWSKeys: a token is good for a zone, and the key for the whole account.
func TestAWSKeys(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		id := awsCreate(t, a, opts)
		other := opts
		other.Region = "us-east-1"
		_, _, err := a.CreateServer(t.Context(), other)
		wantIs(t, "the same key in another region", err, provision.ErrConflict)

		time.Sleep(time.Minute)
		if err := a.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		_, _, err = a.CreateServer(t.Context(), opts)
		wantIs(t, "a repeat during the delete", err, provision.ErrConflict, "being deleted")
		time.Sleep(time.Minute)
		_, _, err = a.CreateServer(t.Context(), opts)
		wantIs(t, "a repeat after the delete", err, provision.ErrConflict, "new key")
	})
}

// TestAWSImageMovedOn: a repeat after a newer image was published is another
// request for EC2, and the same create for us.
func TestAWSImageMovedOn(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectListLag, Delay: cloudsim.Duration(5 * time.Second), Times: 1})
		opts := awsNode("node-1")
		id := awsCreate(t, a, opts)
		mismatch := cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectStatus, Status: 400, Code: "IdempotentParameterMismatch", Times: 1}
		c.fault(t, mismatch)
		again := awsCreate(t, c.open(t, awsKey), opts)
		if again != id {
			t.Errorf("repeat is %s, want %s", again, id)
		}
		c.fault(t, mismatch)
		_, _, err := a.CreateServer(t.Context(), awsNode("node-2"))
		wantIs(t, "a mismatch with nobody", err, provision.ErrConflict, "new key")
	})
}

// TestAWSDeleteWaitsForTheInterface, says so when there is no time, and goes on
// when it is called again.
func TestAWSDeleteWaitsForTheInterface(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectStuckDelete, Delay: cloudsim.Duration(time.Minute), Times: 1})
		opts := awsNode("node-1")
		opts.AllowSSHInbound = true
		id := awsCreate(t, a, opts)
		time.Sleep(time.Minute)
		short, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		begin := time.Now()
		err := a.DeleteServer(short, id)
		wantIs(t, "a delete without time", err, provision.ErrConflict, "is terminated", "acme-ssh-", "has a dependent object", "sg-")
		if took := time.Since(begin); took > 21*time.Second {
			t.Errorf("it took %v", took)
		}
		fresh := c.open(t, awsKey) // a process that knows nothing
		if err := fresh.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if left, err := fresh.ListResources(t.Context()); err != nil || len(left) != 1 || !left[0].Shared {
			t.Errorf("left: %+v, %v", left, err)
		}
	})
}

// TestAWSDeleteAfterEC2HasForgotten: the instance is shown for an hour; its
// group is found by its own tag later.
func TestAWSDeleteAfterEC2HasForgotten(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		opts.AllowSSHInbound = true
		id := awsCreate(t, a, opts)
		time.Sleep(time.Minute)
		if _, err := c.api().TerminateInstances(context.Background(), &ec2.TerminateInstancesInput{InstanceIds: []string{id[len(awsRegion)+1:]}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if err := a.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if left, err := a.ListResources(t.Context()); err != nil || len(left) != 1 || !left[0].Shared {
			t.Errorf("left: %+v, %v", left, err)
		}
	})
}

func TestAWSDeleteRefuses(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		id := awsCreate(t, a, awsNode("node-1"))
		time.Sleep(time.Minute)
		stranger := c.openWith(t, awsCredential(awsKey), provision.Options{ShortName: "other"})
		wantIs(t, "somebody else's server", stranger.DeleteServer(t.Context(), id), provision.ErrConflict, "managed-by=other")
		_, err := c.api().ModifyInstanceAttribute(context.Background(), &ec2.ModifyInstanceAttributeInput{
			InstanceId: aws.String(id[len(awsRegion)+1:]), DisableApiTermination: &types.AttributeBooleanValue{Value: aws.Bool(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, "a protected server", a.DeleteServer(t.Context(), id), provision.ErrConflict, "disable-api-termination")
	})
}

// TestAWSSharedGroup is closed again when somebody opened it, made again when
// somebody removed it, and is never one that was not made for this.
func TestAWSSharedGroup(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		ctx := context.Background()
		id := awsCreate(t, a, awsNode("node-1"))
		time.Sleep(time.Minute)
		group := aws.ToString(c.instance(t, id).SecurityGroups[0].GroupId)
		_, err := c.api().AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String(group), IpPermissions: []types.IpPermission{{
			IpProtocol: aws.String("tcp"), FromPort: aws.Int32(80), ToPort: aws.Int32(80), IpRanges: []types.IpRange{{CidrIp: aws.String("0.0.0.0/0")}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // until it is looked at again
		awsCreate(t, a, awsNode("node-2"))
		if g := c.group(t, group); len(g.IpPermissions) != 0 {
			t.Errorf("the group still lets in %+v", g.IpPermissions)
		}
		time.Sleep(time.Minute)
		servers, err := a.ListServers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			if err := a.DeleteServer(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := c.api().DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: aws.String(group)}); err != nil {
			t.Fatal(err)
		}
		awsCreate(t, a, awsNode("node-3")) // remembers the old one

		if _, err := c.api().CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("other-no-inbound"), Description: aws.String("x")}); err != nil {
			t.Fatal(err)
		}
		other := c.openWith(t, awsCredential(awsKey), provision.Options{ShortName: "other"})
		_, _, err = other.CreateServer(t.Context(), awsNode("node-4"))
		wantIs(t, "a foreign group of our name", err, provision.ErrConflict, "not made for this")
	})
}

func TestAWSNoDefaultVPC(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		ctx := context.Background()
		subnets, err := c.api().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subnets.Subnets {
			if _, err := c.api().DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: s.SubnetId}); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err = a.CreateServer(t.Context(), awsNode("node-1"))
		wantIs(t, "no default subnet", err, provision.ErrInvalid, "create-default-subnet")
		if _, err := c.api().DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: subnets.Subnets[0].VpcId}); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"create": func() error { _, _, err := a.CreateServer(t.Context(), awsNode("node-1")); return err }(), "preflight": a.Preflight(t.Context(), awsNode("node-1")),
		} {
			wantIs(t, what+" without a default VPC", err, provision.ErrInvalid, "create-default-vpc --region eu-central-1")
		}
		if _, err := c.api().CreateDefaultVpc(ctx, &ec2.CreateDefaultVpcInput{}); err != nil {
			t.Fatal(err)
		}
		awsCreate(t, a, awsNode("node-1"))
	})
}

// TestAWSLateFailure: a create that was accepted and given up is an error with
// its reason, until it is deleted; EC2 goes on showing it.
func TestAWSLateFailure(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		c.fault(t, cloudsim.Fault{Effect: cloudsim.EffectLateFailure, Delay: cloudsim.Duration(10 * time.Second), Times: 1})
		id := awsCreate(t, a, awsNode("node-1"))
		time.Sleep(time.Minute)
		if status, _, err := a.GetServer(t.Context(), id); status != provision.ServerStatusError || err != nil {
			t.Errorf("it is %q, %v", status, err)
		}
		servers, err := a.ListServers(t.Context())
		if err != nil || len(servers) != 1 || servers[0].Status != provision.ServerStatusError || !errors.Is(servers[0].Failure, provision.ErrCapacity) {
			t.Errorf("listed as %+v, %v", servers, err)
		}
		if err := a.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.GetServer(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("after the delete: %v", err)
		}
		if servers, err := a.ListServers(t.Context()); err != nil || len(servers) != 0 {
			t.Errorf("still listed: %+v, %v", servers, err)
		}
		if left := c.billable(); len(left) != 0 {
			t.Errorf("still billed: %v", left)
		}
	})
}

// TestAWSPartialCreate: what a failed create made goes; what does not go is
// named, and can be removed.
func TestAWSPartialCreate(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		c.fault(t, cloudsim.Fault{Call: "create server", Match: "node-1", Effect: cloudsim.EffectQuota})
		c.fault(t, cloudsim.Fault{Call: "delete firewall", Effect: cloudsim.EffectStatus, Status: 500})
		opts := awsNode("node-1")
		opts.AllowSSHInbound = true
		_, _, err := a.CreateServer(t.Context(), opts)
		wantIs(t, "a create that fails", err, provision.ErrQuota)
		left := provision.LeftBehind(err)
		if len(left) != 1 || left[0].Kind != provision.KindFirewall || !strings.HasPrefix(left[0].ID, awsRegion+"/sg-") {
			t.Fatalf("left behind: %+v", left)
		}
		c.sim.ClearFaults()
		if err := a.DeleteResource(t.Context(), left[0]); err != nil {
			t.Fatal(err)
		}
		if rs, err := a.ListResources(t.Context()); err != nil || len(rs) != 1 || !rs[0].Shared {
			t.Errorf("left: %+v, %v", rs, err)
		}
		// EC2's own clean-up can forget a disk.
		c.fault(t, cloudsim.Fault{Call: "delete volume", Effect: cloudsim.EffectLeaveBehind, Times: 1})
		id := awsCreate(t, a, awsNode("node-2"))
		time.Sleep(time.Minute)
		if err := a.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		rs, err := a.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rs = slices.DeleteFunc(rs, func(r provision.Resource) bool { return r.Shared })
		if len(rs) != 1 || rs[0].Kind != provision.KindVolume || !rs[0].Billable || rs[0].ServerID != "" {
			t.Fatalf("the audit shows %+v", rs)
		}
		if err := a.DeleteResource(t.Context(), rs[0]); err != nil || len(c.billable()) != 0 {
			t.Errorf("removing it: %v, still billed %v", err, c.billable())
		}
	})
}

// TestAWSLogsHoldNoSecret, nor does any error.
func TestAWSLogsHoldNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAWSCloud(t)
		var log bytes.Buffer
		a := c.openWith(t, strings.Replace(awsCredential(awsKey), "}", `, "role_arn": "arn:aws:iam::123456789012:role/nodes"}`, 1), provision.Options{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		const token = "swjt_abcdefghijklmnop.0123456789abcdefghijklmnopqrstuvwxyz0123456"
		c.fault(t, cloudsim.Fault{Call: "create server", Effect: cloudsim.EffectStatus, Status: 400, Code: "InvalidParameterValue", Message: "bad user data: " + token, Times: 1})
		opts := awsNode("node-1")
		opts.UserData += "# " + token + "\n"
		_, _, err := a.CreateServer(t.Context(), opts)
		text := fmt.Sprintf("%v %+v %s", err, err, log.String())
		if err == nil || log.Len() == 0 {
			t.Fatalf("error %v, log %q", err, log.String())
		}
		for _, secret := range []string{awsSecret, token, "simulated-session"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	})
}
