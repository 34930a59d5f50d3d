package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

// TestAWSRegions: those that are enabled; one that is not is told from a wrong
// key, to which EC2 says the same.
func TestAWSRegions(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		regions, err := a.ListRegions(t.Context())
		if err != nil || len(regions) != 5 || !slices.Contains(regions, provision.Region{ID: awsRegion, Name: "Europe (Frankfurt)"}) {
			t.Errorf("%+v, %v", regions, err)
		}
		for region, words := range map[string]string{"af-south-1": "not enabled", "eu-central-9": "no region"} {
			opts := awsNode("node-1")
			opts.Region = region
			_, _, err := a.CreateServer(t.Context(), opts)
			wantIs(t, "create in "+region, err, provision.ErrInvalid, words)
			wantIs(t, "preflight in "+region, a.Preflight(t.Context(), opts), provision.ErrInvalid, words)
			_, _, err = a.GetServer(t.Context(), region+"/i-0123456789abcdef0")
			wantIs(t, "get in "+region, err, provision.ErrInvalid, words)
		}
	})
}

// TestAWSRoles: a role is assumed once, whatever the number of calls and
// regions; one that may not be assumed says why.
func TestAWSRoles(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, _ *provision.AWS) {
		withRole := func(role, more string) *provision.AWS {
			return c.openWith(t, strings.Replace(awsCredential(awsKey), "}", `, "role_arn": "arn:aws:iam::123456789012:role/`+role+`"`+more+`}`, 1), provision.Options{})
		}
		a := withRole("external-42", `, "external_id": "42"`)
		calls := c.calls(func() {
			awsCreate(t, a, awsNode("node-1"))
			if _, err := a.ListServers(t.Context()); err != nil {
				t.Error(err)
			}
		})
		assumed := 0
		for _, call := range calls {
			if call == "assume role" {
				assumed++
			}
		}
		if assumed != 1 {
			t.Errorf("the role was assumed %d times: %q", assumed, calls)
		}
		for role, more := range map[string]string{"external-43": `, "external_id": "44"`, "external-45": "", "denied": ""} {
			_, err := withRole(role, more).ListRegions(t.Context())
			wantIs(t, "role "+role, err, provision.ErrForbidden, "cannot be assumed", "external_id")
		}
		_, _, err := withRole("readonly", "").CreateServer(t.Context(), awsNode("node-2"))
		wantIs(t, "a role that may only read", err, provision.ErrForbidden, "permissions/aws.json")
	})
}

func TestAWSSessionIsOver(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, _ *provision.AWS) {
		_, err := c.open(t, "AKIAEXPIRED000000000").ListRegions(t.Context())
		wantIs(t, "an expired key", err, provision.ErrUnauthorized, "session is over")
	})
}

// TestAWSAmbient: this program's own identity is used when it is asked for.
func TestAWSAmbient(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	c := newAWSCloud(t)
	ambient := func() *provision.AWS {
		return c.openWith(t, `{"use_ambient_credentials": true, "region": "us-east-1"}`, provision.Options{})
	}
	_, err := ambient().ListRegions(t.Context())
	wantIs(t, "no identity", err, provision.ErrUnauthorized, "no AWS identity", "instance profile")

	t.Setenv("AWS_ACCESS_KEY_ID", awsKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", awsSecret)
	if regions, err := ambient().ListRegions(t.Context()); err != nil || len(regions) == 0 {
		t.Errorf("with an identity: %+v, %v", regions, err)
	}
}

const awsPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPEn5yq6XcTQ1UlvAZ0CyHs2K9CG1cLsqTmPBNKqbFC me@example"

func TestAWSSSHKeys(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		opts.SSHKeys = []string{awsPublicKey}
		id := awsCreate(t, a, opts)
		time.Sleep(5 * time.Second)
		key := c.instance(t, id).KeyName
		if key == nil || !strings.HasPrefix(*key, "acme-") {
			t.Fatalf("key pair is %v", key)
		}
		opts = awsNode("node-2")
		opts.SSHKeys = []string{*key} // by its name
		if calls := c.calls(func() { awsCreate(t, c.open(t, awsKey), opts) }); slices.Contains(calls, "create ssh key") {
			t.Errorf("calls: %q", calls)
		}
		for what, keys := range map[string][]string{
			"an unknown name": {"nobody"}, "two keys": {awsPublicKey, *key},
			"a type that EC2 does not take": {"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="},
		} {
			opts := awsNode("node-3")
			opts.SSHKeys = keys
			_, _, err := a.CreateServer(t.Context(), opts)
			wantIs(t, what, err, provision.ErrInvalid)
			wantIs(t, "preflight of "+what, a.Preflight(t.Context(), opts), provision.ErrInvalid)
		}
	})
}

func TestAWSConsole(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		opts := awsNode("node-1")
		id := awsCreate(t, a, opts)
		if text, err := a.ConsoleOutput(t.Context(), id); text != "" || err != nil {
			t.Errorf("right after the create: %q, %v", text, err)
		}
		opts = awsNode("node-2")
		opts.Size = "t2.micro" // has no latest
		old := awsCreate(t, a, opts)
		time.Sleep(time.Minute)
		for _, id := range []string{id, old} {
			if text, err := a.ConsoleOutput(t.Context(), id); !strings.Contains(text, "Linux version") || err != nil {
				t.Errorf("console of %s: %q, %v", id, text, err)
			}
		}
		_, err := a.ConsoleOutput(t.Context(), awsRegion+"/i-0123456789abcdef0")
		wantIs(t, "console of nobody", err, provision.ErrNotFound)
	})
}

func TestAWSPrices(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		var prices map[string]provision.Price
		calls := c.calls(func() {
			for range 2 {
				var err error
				if prices, err = a.Prices(t.Context(), "us-east-1"); err != nil {
					t.Fatal(err)
				}
			}
		})
		if want := (provision.Price{Hourly: "0.0208", Monthly: "15.184", Currency: "USD"}); prices["t3.small"] != want {
			t.Errorf("t3.small costs %+v, want %+v", prices["t3.small"], want)
		}
		if len(prices) < 15 || len(calls) != 3 {
			t.Errorf("%d prices by %d calls", len(prices), len(calls))
		}
		c.fault(t, cloudsim.Fault{Call: "get prices", Effect: cloudsim.EffectStatus, Status: 400, Code: "AccessDeniedException"})
		for _, region := range []string{"eu-west-1", "cn-north-1"} {
			if prices, err := a.Prices(t.Context(), region); err != nil || prices == nil || len(prices) != 0 {
				t.Errorf("prices that cannot be had in %s: %v, %v", region, prices, err)
			}
		}
	})
}

func TestAWSPreflight(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		refuse := func(what string, class error, words string, change func(o *provision.CreateOpts)) {
			t.Helper()
			opts := awsNode("node-1")
			change(&opts)
			wantIs(t, what, a.Preflight(t.Context(), opts), class, words)
		}
		refuse("an unknown size", provision.ErrInvalid, "no size", func(o *provision.CreateOpts) { o.Size = "t9.huge" })
		refuse("a size that is not there", provision.ErrInvalid, "not offered", func(o *provision.CreateOpts) { o.Region, o.Size = "ap-southeast-1", "m8g.medium" })
		refuse("a wrong architecture", provision.ErrInvalid, "asked for was arm", func(o *provision.CreateOpts) { o.Architecture = "arm" })
		refuse("an image that is not there", provision.ErrInvalid, "ami-", func(o *provision.CreateOpts) { o.Image = "ami-0123456789abcdef0" })
		refuse("a disk that is too small", provision.ErrInvalid, "needs 8", func(o *provision.CreateOpts) { o.DiskGB = 4 })
		refuse("a label that is the name", provision.ErrInvalid, "Name", func(o *provision.CreateOpts) { o.Labels = map[string]string{"Name": "x"} })
		for i := range 3 {
			opts := awsNode(fmt.Sprintf("big-%d", i))
			opts.Size = "m7i.48xlarge"
			awsCreate(t, a, opts)
		}
		time.Sleep(time.Minute)
		refuse("a quota that is nearly used up", provision.ErrQuota, "576 run", func(o *provision.CreateOpts) { o.Size = "m7i.48xlarge" })
		opts := awsNode("big-3")
		opts.Size = "m7i.48xlarge"
		_, _, err := a.CreateServer(t.Context(), opts)
		wantIs(t, "the create, too", err, provision.ErrQuota, "Service Quotas")
		// Quotas that may not be read are no objection.
		c.fault(t, cloudsim.Fault{Call: "get quota", Effect: cloudsim.EffectStatus, Status: 400, Code: "AccessDeniedException"})
		if err := a.Preflight(t.Context(), awsNode("node-1")); err != nil {
			t.Error(err)
		}
	})
}

// TestAWSSlowsDownBeforeItIsRefused: EC2 shows nothing of its limits.
func TestAWSSlowsDownBeforeItIsRefused(t *testing.T) {
	inAWS(t, func(t *testing.T, c awsCloud, a *provision.AWS) {
		var all sync.WaitGroup
		begin := time.Now()
		for i := range 60 {
			all.Go(func() {
				if _, _, err := a.CreateServer(t.Context(), awsNode(fmt.Sprintf("node-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took < 20*time.Second || took > 45*time.Second {
			t.Errorf("60 creates at two a second took %v", took)
		}
		for _, r := range c.sim.Requests() {
			if r.Status == 503 {
				t.Fatalf("refused: %+v", r)
			}
		}
	})
}
