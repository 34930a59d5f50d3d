package provision_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

const doToken = "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// doCloud is a simulated account at DigitalOcean.
type doCloud struct{ simCloud }

func newDOCloud(t *testing.T) doCloud {
	t.Helper()
	return doCloud{newSimCloud(t, "digitalocean")}
}

func (c doCloud) open(t *testing.T, token string) *provision.DigitalOcean {
	t.Helper()
	p, err := provision.Open("digitalocean", token, provision.Options{
		Endpoint: "http://localhost/digitalocean", HTTPClient: &http.Client{Transport: c}, ShortName: "acme",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.DigitalOcean)
}

// call asks the API itself, past the code under test.
func (c doCloud) call(t *testing.T, method, path, body string, out any) {
	t.Helper()
	c.ask(t, doToken, method, "/digitalocean/v2"+path, body, out)
}

type doWireFirewall struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Tags     []string `json:"tags"`
	Inbound  []doWire `json:"inbound_rules"`
	Outbound []doWire `json:"outbound_rules"`
}

type doWire struct {
	Protocol, Ports string
	Sources         struct{ Addresses []string }
	Destinations    struct{ Addresses []string }
}

func (c doCloud) firewalls(t *testing.T) []doWireFirewall {
	t.Helper()
	var page struct{ Firewalls []doWireFirewall }
	c.call(t, http.MethodGet, "/firewalls?per_page=200", "", &page)
	return page.Firewalls
}

// covering are the firewalls that count for a Droplet, by its tags.
func (c doCloud) covering(t *testing.T, id string) []doWireFirewall {
	t.Helper()
	var one struct{ Droplet struct{ Tags []string } }
	c.call(t, http.MethodGet, "/droplets/"+id, "", &one)
	var cover []doWireFirewall
	for _, f := range c.firewalls(t) {
		if slices.ContainsFunc(f.Tags, func(tag string) bool { return slices.Contains(one.Droplet.Tags, tag) }) {
			cover = append(cover, f)
		}
	}
	return cover
}

func (c doCloud) sshReachable(t *testing.T, id string) bool {
	cover := c.covering(t, id)
	for _, f := range cover {
		for _, r := range f.Inbound {
			if r.Protocol == "tcp" && slices.Contains([]string{"22", "0", "all"}, r.Ports) {
				return true
			}
		}
	}
	return len(cover) == 0
}

func (c doCloud) account(t *testing.T) *provisiontest.Account {
	reopen := func(t *testing.T) provision.Provisioner { return c.open(t, doToken) }
	return &provisiontest.Account{
		Provisioner: reopen(t), Reopen: reopen,
		Intruder: c.open(t, "invalid-token-1234567890"), ReadOnly: c.open(t, "readonly-token-1234567890"),
		Region: "fra1", Size: "s-1vcpu-1gb", OtherSize: "s-2vcpu-2gb", MissingID: "999999999", UserDataLimit: 64 << 10,
		Secrets:      []string{doToken, "invalid-token-1234567890", "readonly-token-1234567890"},
		Settle:       func() { time.Sleep(time.Minute) }, // of the bubble's time
		Billable:     c.billable,
		SSHReachable: func(id string) bool { return c.sshReachable(t, id) },
		Faults: provisiontest.Faults{
			LoseCreate:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectDropAfter}),
			BreakCreate: c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectStatus, Status: 502}),
			NoCapacity:  c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectCapacity}),
			NoQuota:     c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectQuota}),
			Throttle:    c.atCreate(t, cloudsim.Fault{Effect: cloudsim.EffectRateLimit}),
		},
	}
}

func TestDigitalOceanConformance(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Around: synctest.Test, Open: func(t *testing.T) *provisiontest.Account {
		return newDOCloud(t).account(t)
	}})
}

// inDO runs a test of one simulated account in a bubble.
func inDO(t *testing.T, test func(t *testing.T, c doCloud, d *provision.DigitalOcean)) {
	synctest.Test(t, func(t *testing.T) {
		c := newDOCloud(t)
		test(t, c, c.open(t, doToken))
	})
}

func doOpts(name string) provision.CreateOpts {
	opts := nodeOpts(name)
	opts.Region, opts.Size = "fra1", "s-1vcpu-1gb"
	return opts
}

func TestDigitalOceanRequests(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		var id string
		unkeyed := doOpts("node-3")
		unkeyed.IdempotencyKey = ""
		for _, step := range []struct {
			what string
			run  func()
			want []string
		}{
			{"first create", func() { mustCreate(t, d, doOpts("node-1")) }, []string{
				"list servers", "list firewalls", "create tag", "create firewall", "list ssh keys", "create ssh key", "list ssh keys", "create server",
			}},
			{"warm create", func() { id = mustCreate(t, d, doOpts("node-2")) }, []string{"list servers", "create server"}},
			{"warm create without key", func() { mustCreate(t, d, unkeyed) }, []string{"create server"}},
			{"list", func() {
				if _, err := d.ListServers(t.Context()); err != nil {
					t.Error(err)
				}
			}, []string{"list servers"}},
			{"delete", func() {
				time.Sleep(time.Minute)
				if err := d.DeleteServer(t.Context(), id); err != nil {
					t.Error(err)
				}
			}, []string{"delete server", "delete tag"}},
		} {
			if got := c.calls(step.run); !slices.Equal(got, step.want) {
				t.Errorf("%s made the calls %v, want %v", step.what, got, step.want)
			}
		}
	})
}

// A firewall that names no outbound rule lets nothing out: the node would
// never join.
func TestDigitalOceanFirewallLetsEverythingOut(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		opts := doOpts("node-1")
		opts.AllowSSHInbound, opts.SSHSourceCIDRs = true, []string{"198.51.100.0/24"}
		id := mustCreate(t, d, opts)
		cover := c.covering(t, id)
		if len(cover) != 2 {
			t.Fatalf("%d firewalls cover the Droplet, want the shared one and its own", len(cover))
		}
		for _, f := range cover {
			var out []string
			for _, r := range f.Outbound {
				if slices.Contains(r.Destinations.Addresses, "0.0.0.0/0") && slices.Contains(r.Destinations.Addresses, "::/0") {
					out = append(out, r.Protocol)
				}
			}
			slices.Sort(out)
			if !slices.Equal(out, []string{"icmp", "tcp", "udp"}) {
				t.Errorf("firewall %s lets out %q", f.Name, out)
			}
			for _, r := range f.Inbound {
				if !slices.Equal(r.Sources.Addresses, opts.SSHSourceCIDRs) {
					t.Errorf("firewall %s lets in %v", f.Name, r.Sources.Addresses)
				}
			}
		}
	})
}

// Somebody opened the shared firewall, or took its tag or outbound rules away:
// the audit says so, and the next create brings it back before it makes one
// more.
func TestDigitalOceanBringsTheFirewallBack(t *testing.T) {
	const all = `{"protocol":"tcp","ports":"0","destinations":{"addresses":["0.0.0.0/0","::/0"]}},` +
		`{"protocol":"udp","ports":"0","destinations":{"addresses":["0.0.0.0/0","::/0"]}},{"protocol":"icmp","destinations":{"addresses":["0.0.0.0/0","::/0"]}}`
	for what, body := range map[string]string{
		"inbound rule":  `{"name":"acme-no-inbound","tags":["managed-by:acme"],"inbound_rules":[{"protocol":"tcp","ports":"80","sources":{"addresses":["0.0.0.0/0"]}}],"outbound_rules":[` + all + `]}`,
		"no tag":        `{"name":"acme-no-inbound","tags":[],"inbound_rules":[],"outbound_rules":[` + all + `]}`,
		"less outbound": `{"name":"acme-no-inbound","tags":["managed-by:acme"],"inbound_rules":[],"outbound_rules":[{"protocol":"icmp","destinations":{"addresses":["0.0.0.0/0"]}}]}`,
	} {
		t.Run(what, func(t *testing.T) {
			inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
				mustCreate(t, d, doOpts("node-1"))
				c.call(t, http.MethodPut, "/firewalls/"+c.firewalls(t)[0].ID, body, nil)
				if _, err := d.ListResources(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := c.calls(func() { mustCreate(t, d, doOpts("node-2")) })
				if i, j := slices.Index(got, "update firewall"), slices.Index(got, "create server"); i < 0 || j < i {
					t.Errorf("calls %v: the firewall is not brought back before the create", got)
				}
				f := c.firewalls(t)[0]
				if len(f.Inbound) != 0 || len(f.Outbound) != 3 || !slices.Contains(f.Tags, "managed-by:acme") {
					t.Errorf("the firewall is %+v", f)
				}
			})
		})
	}
}

// Without telling anybody, somebody deleted the firewall: a create makes it
// again within minutes.
func TestDigitalOceanMakesALostFirewallAgain(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		mustCreate(t, d, doOpts("node-1"))
		c.call(t, http.MethodDelete, "/firewalls/"+c.firewalls(t)[0].ID, "", nil)
		time.Sleep(3 * time.Minute)
		id := mustCreate(t, d, doOpts("node-2"))
		if c.sshReachable(t, id) {
			t.Error("the Droplet is open")
		}
	})
}

// A delete leaves no tag behind, but those of labels that others may have.
func TestDigitalOceanDeleteTakesItsTag(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		for name, fresh := range map[string]bool{"node-1": false, "node-2": true} {
			opts := doOpts(name)
			opts.AllowSSHInbound = true
			opts.Labels = map[string]string{"env": "prod", "acme-node": name}
			id := mustCreate(t, d, opts)
			time.Sleep(time.Minute)
			p := d
			if fresh { // which knows nothing of the Droplet
				p = c.open(t, doToken)
			}
			if err := p.DeleteServer(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		var page struct{ Tags []struct{ Name string } }
		c.call(t, http.MethodGet, "/tags?per_page=200", "", &page)
		for _, tag := range page.Tags {
			if tag.Name != "managed-by:acme" && tag.Name != "env:prod" {
				t.Errorf("tag %s is left", tag.Name)
			}
		}
		if n := len(c.firewalls(t)); n != 1 {
			t.Errorf("%d firewalls are left, want the shared one", n)
		}
	})
}

// The audit finds a create's tag whose Droplet never came, or went another
// way, and removes it; it never removes one that Droplets share.
func TestDigitalOceanAuditFindsTags(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		opts := doOpts("node-1")
		opts.Labels = map[string]string{"acme-node": "n1"}
		id := mustCreate(t, d, opts)
		time.Sleep(time.Minute)
		c.call(t, http.MethodDelete, "/droplets/"+id, "", nil) // by hand, in the control panel
		time.Sleep(time.Minute)
		rs, err := d.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, r := range rs {
			if r.Kind != provision.KindTag {
				continue
			}
			found++
			if r.Labels["acme-node"] != "n1" || r.CreatedAt.IsZero() || r.Billable || r.Shared {
				t.Errorf("the tag is shown as %+v", r)
			}
			if err := d.DeleteResource(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if found != 1 {
			t.Errorf("%d tags are found, want 1: %+v", found, rs)
		}
		err = d.DeleteResource(t.Context(), provision.Resource{Kind: provision.KindTag, ID: "managed-by:acme"})
		if !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("removing the tag of all: %v", err)
		}
	})
}

// Another action runs on the Droplet, as it does while it is new: the delete
// waits for its end.
func TestDigitalOceanDeleteWaitsForAPendingEvent(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		id := mustCreate(t, d, doOpts("node-1"))
		c.fault(t, cloudsim.Fault{Call: "delete server", Times: 9, Effect: cloudsim.EffectStatus, Status: 422, Code: "unprocessable_entity", Message: "Droplet already has a pending event."})
		if err := d.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, _, err := d.GetServer(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("after the delete: %v", err)
		}
	})
}

// A list may show a Droplet some seconds after its create: the lost answer of
// a create is looked for more than once.
func TestDigitalOceanLostAnswerAndALateList(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		c.fault(t, cloudsim.Fault{Times: 1, Effect: cloudsim.EffectListLag, Delay: cloudsim.Duration(2 * time.Second)})
		c.fault(t, cloudsim.Fault{Call: "create server", Times: 1, Effect: cloudsim.EffectDropAfter})
		mustCreate(t, d, doOpts("node-1"))
		time.Sleep(time.Minute)
		if list, err := d.ListServers(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%d servers, %v", len(list), err)
		}
	})
}

// The preflight knows the account's limit and state.
func TestDigitalOceanPreflightKnowsTheLimit(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		var account struct {
			Account struct {
				DropletLimit int `json:"droplet_limit"`
			}
		}
		c.call(t, http.MethodGet, "/account", "", &account)
		for i := range account.Account.DropletLimit {
			mustCreate(t, d, doOpts("node-"+string(rune('a'+i/26))+string(rune('a'+i%26))))
		}
		if err := d.Preflight(t.Context(), doOpts("one-more")); !errors.Is(err, provision.ErrQuota) {
			t.Errorf("preflight of one too many: %v", err)
		}
		if err := d.Preflight(t.Context(), doOpts("node-aa")); err != nil {
			t.Errorf("preflight of a repeat: %v", err)
		}
		_, _, err := d.CreateServer(t.Context(), doOpts("one-more"))
		if !errors.Is(err, provision.ErrQuota) {
			t.Errorf("create of one too many: %v", err)
		}
	})
}

// Neither the password of root is mailed nor a login possible: every Droplet
// has a key.
func TestDigitalOceanEveryDropletHasAKey(t *testing.T) {
	inDO(t, func(t *testing.T, c doCloud, d *provision.DigitalOcean) {
		mustCreate(t, d, doOpts("node-1"))
		var page struct {
			Keys []struct {
				ID   int64
				Name string
			} `json:"ssh_keys"`
		}
		c.call(t, http.MethodGet, "/account/keys", "", &page)
		if len(page.Keys) != 1 || page.Keys[0].Name != "acme-no-login" {
			t.Fatalf("keys %+v", page.Keys)
		}
		// Removed behind our back: the create finds out and makes another.
		c.call(t, http.MethodDelete, "/account/keys/"+jsonNumber(page.Keys[0].ID), "", nil)
		mustCreate(t, d, doOpts("node-2"))
	})
}

func jsonNumber(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}
