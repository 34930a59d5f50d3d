package provision_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

const (
	awsBase   = "http://localhost/aws"
	awsRegion = "eu-central-1"
	awsKey    = "AKIATEST000000000000"
	awsSecret = "aws-secret-0123456789-0123456789-0123456"
)

// awsCloud is a simulated account.
type awsCloud struct {
	simCloud
	wire http.RoundTripper // what the code under test goes through
}

func newAWSCloud(t *testing.T) awsCloud {
	t.Helper()
	c := newSimCloud(t, "aws")
	return awsCloud{simCloud: c, wire: c}
}

func awsCredential(key string) string {
	return fmt.Sprintf(`{"access_key_id": %q, "secret_access_key": %q, "region": "us-east-1"}`, key, awsSecret)
}

func (c awsCloud) openWith(t *testing.T, credential string, opts provision.Options) *provision.AWS {
	t.Helper()
	opts.Endpoint, opts.HTTPClient = awsBase, &http.Client{Transport: c.wire}
	if opts.ShortName == "" {
		opts.ShortName = "acme"
	}
	p, err := provision.Open("aws", credential, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.AWS)
}

func (c awsCloud) open(t *testing.T, key string) *provision.AWS {
	t.Helper()
	return c.openWith(t, awsCredential(key), provision.Options{})
}

// api is the cloud's own API, past the code under test.
func (c awsCloud) api() *ec2.Client {
	return ec2.New(ec2.Options{
		Region: awsRegion, BaseEndpoint: aws.String(awsBase), Credentials: credentials.NewStaticCredentialsProvider(awsKey, awsSecret, ""),
		HTTPClient: &http.Client{Transport: c.inMemory},
	})
}

func (c awsCloud) instance(t *testing.T, id string) types.Instance {
	t.Helper()
	_, instance, _ := strings.Cut(id, "/")
	out, err := c.api().DescribeInstances(context.Background(), &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil || len(out.Reservations) != 1 {
		t.Fatalf("instance %s: %v", id, err)
	}
	return out.Reservations[0].Instances[0]
}

func (c awsCloud) group(t *testing.T, id string) types.SecurityGroup {
	t.Helper()
	out, err := c.api().DescribeSecurityGroups(context.Background(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	return out.SecurityGroups[0]
}

// sshReachable follows the server's groups to their rules.
func (c awsCloud) sshReachable(t *testing.T, id string) bool {
	time.Sleep(2 * time.Second) // EC2 does not know it at once
	i := c.instance(t, id)
	for _, g := range i.SecurityGroups {
		for _, p := range c.group(t, aws.ToString(g.GroupId)).IpPermissions {
			if aws.ToString(p.IpProtocol) == "tcp" && aws.ToInt32(p.FromPort) <= 22 && aws.ToInt32(p.ToPort) >= 22 || aws.ToString(p.IpProtocol) == "-1" {
				return true
			}
		}
	}
	return len(i.SecurityGroups) == 0
}

func TestAWSConformance(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Around: synctest.Test, Open: func(t *testing.T) *provisiontest.Account {
		c := newAWSCloud(t)
		reopen := func(t *testing.T) provision.Provisioner { return c.open(t, awsKey) }
		return &provisiontest.Account{
			Provisioner: reopen(t), Reopen: reopen,
			Intruder: c.open(t, "AKIAINVALID000000000"), ReadOnly: c.open(t, "AKIAREADONLY00000000"),
			Region: awsRegion, Size: "t3.small", OtherSize: "t4g.small", MissingID: awsRegion + "/i-0123456789abcdef0",
			// Longer user-data is compressed: see TestAWSCompressesLongUserData.
			UserDataLimit: 0,
			StaticSizes:   true,
			Secrets:       []string{awsSecret},
			Settle:        func() { time.Sleep(45 * time.Second) }, // of the bubble's time
			Billable:      c.billable,
			SSHReachable:  func(id string) bool { return c.sshReachable(t, id) },
			Faults: provisiontest.Faults{
				LoseCreate:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectDropAfter}),
				BreakCreate: c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 500}),
				NoCapacity:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectCapacity, Times: 3}), // in each zone
				NoQuota:     c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectQuota}),
				Throttle:    c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectRateLimit}),
			},
		}
	}})
}

// TestAWSRequests counts requests as the cloud sees them: a warm create is two,
// one without a key is one, and none waits for a boot.
func TestAWSRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAWSCloud(t)
		a := c.open(t, awsKey)
		node := func(name, key string, ssh bool) provision.CreateOpts {
			return provision.CreateOpts{Region: awsRegion, Size: "t3.small", Name: name, UserData: "#cloud-config\n", IdempotencyKey: key, AllowSSHInbound: ssh}
		}
		create := func(opts provision.CreateOpts) (id string) {
			begin := time.Now()
			id, _, err := a.CreateServer(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("the create of %s waited %v", opts.Name, took)
			}
			return id
		}
		var id, ssh string
		for _, s := range []struct {
			what string
			run  func()
			want []string
		}{
			{"first create", func() { create(node("node-1", "1", false)) }, []string{
				"list servers", "list networks", "list subnets", "list size offerings", "list images", "list firewalls", "create firewall",
				"create server", "create server", "create server", // the group is too new for the first two
			}},
			{"warm create", func() { id = create(node("node-2", "2", false)) }, []string{"list servers", "create server"}},
			{"warm create without a key", func() { create(node("node-3", "", false)) }, []string{"create server"}},
			{"warm create with SSH", func() { ssh = create(node("node-4", "4", true)) }, []string{
				"list servers", "create firewall", "add firewall rule", "add firewall rule", "add firewall rule", "create server", "create tags",
			}},
			{"list", func() {
				if _, err := a.ListServers(t.Context()); err != nil {
					t.Error(err)
				}
			}, []string{"list regions", "list servers", "list servers", "list servers", "list servers", "list servers"}},
			{"list again", func() {
				if _, err := a.ListServers(t.Context()); err != nil {
					t.Error(err)
				}
			}, []string{"list servers", "list servers", "list servers", "list servers", "list servers"}},
			{"delete", func() {
				time.Sleep(time.Minute)
				if err := a.DeleteServer(t.Context(), id); err != nil {
					t.Error(err)
				}
			}, []string{"get server", "delete server"}},
			{"delete with SSH", func() {
				if err := a.DeleteServer(t.Context(), ssh); err != nil {
					t.Error(err)
				}
			}, []string{
				"get server", "delete server", "list firewalls", "list network interfaces",
				"delete firewall", "delete firewall", "delete firewall", "delete firewall", "delete firewall", "delete firewall",
			}},
		} {
			if got := c.calls(s.run); !slices.Equal(got, s.want) {
				t.Errorf("%s made the calls %q, want %q", s.what, got, s.want)
			}
		}
	})
}
