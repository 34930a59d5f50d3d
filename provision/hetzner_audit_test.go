package provision_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/provision"
)

func TestHetznerAuditShowsEveryKind(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, sshOpts("node-1"))
		ours := object{"managed-by": "acme"}
		f.add("volumes", object{"name": "our volume", "labels": ours, "server": nil})
		f.add("volumes", object{"name": "foreign volume"})
		f.add("primary_ips", object{"name": "our free address", "labels": ours, "assignee_id": nil})
		f.add("primary_ips", object{"name": "foreign address", "assignee_id": 7})
		f.add("ssh_keys", object{"name": "foreign key"})
		f.add("firewalls", object{"name": "foreign firewall"})
		f.add("firewalls", object{"name": "attached", "labels": ours, "applied_to": []any{object{"type": "server", "server": object{"id": 77}}}})

		rs, err := h.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rs {
			if r.CreatedAt.IsZero() {
				t.Errorf("%s %s has no time", r.Kind, r.Name)
			}
			owner := map[string]string{id: "node", "": "none"}[r.ServerID]
			if owner == "" {
				owner = r.ServerID
			}
			got = append(got, fmt.Sprintf("%s %s, of %s, billable %v, shared %v", r.Kind, r.Name, owner, r.Billable, r.Shared))
		}
		slices.Sort(got)
		want := []string{
			"firewall acme-no-inbound, of none, billable false, shared true",
			"firewall attached, of 77, billable false, shared false",
			"firewall node-1-ssh, of node, billable false, shared false",
			"public-ip our free address, of none, billable true, shared false",
			"public-ip " + f.addressName() + ", of node, billable true, shared false",
			"server node-1, of node, billable true, shared false",
			"ssh-key acme-no-login, of none, billable false, shared true",
			"volume our volume, of none, billable true, shared false",
		}
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		for _, r := range rs {
			if r.Kind == provision.KindVolume || r.Kind == provision.KindSSHKey || r.Kind == provision.KindPublicIP && r.ServerID == "" {
				if err := h.DeleteResource(t.Context(), r); err != nil {
					t.Errorf("removing %s %s: %v", r.Kind, r.Name, err)
				}
			}
		}
		for table, name := range map[string]string{"volumes": "foreign volume", "ssh_keys": "foreign key"} {
			if got := f.names(table); !slices.Equal(got, []string{name}) {
				t.Errorf("%s left: %v", table, got)
			}
		}
		mustCreate(t, h, nodeOpts("node-2")) // the shared key comes back
	})
}

func (f *fakeHetzner) addressName() string { return f.tables["primary_ips"][0]["name"].(string) }

// TestHetznerFleetsInOneProject: Options.Labels keep the servers of two
// fleets apart; the audit sees both.
func TestHetznerFleetsInOneProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeHetzner()
		open := func(fleet string) *provision.Hetzner {
			p, err := provision.Open("hetzner", goodToken, provision.Options{
				HTTPClient: &http.Client{Transport: f}, ShortName: "acme", Labels: map[string]string{"acme-fleet": fleet},
			})
			if err != nil {
				t.Fatal(err)
			}
			return p.(*provision.Hetzner)
		}
		one, two := open("one"), open("two")
		id := mustCreate(t, one, nodeOpts("node-1"))
		mustCreate(t, two, nodeOpts("node-2"))
		list, err := one.ListServers(t.Context())
		if err != nil || len(list) != 1 || list[0].ID != id || list[0].Labels["acme-fleet"] != "one" {
			t.Errorf("fleet one sees %+v, %v", list, err)
		}
		opts := nodeOpts("node-3")
		opts.Labels = map[string]string{"acme-fleet": "two"}
		if _, _, err := one.CreateServer(t.Context(), opts); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("a create under another fleet's label: %v", err)
		}
		rs, err := one.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		servers := 0
		for _, r := range rs {
			if r.Kind == provision.KindServer {
				servers++
			}
		}
		if servers != 2 || len(f.names("firewalls")) != 1 {
			t.Errorf("the audit sees %d servers, firewalls %v", servers, f.names("firewalls"))
		}
	})
}

func TestHetznerPreflight(t *testing.T) {
	bad := func(change func(o *provision.CreateOpts)) provision.CreateOpts {
		opts := nodeOpts("node-1")
		change(&opts)
		return opts
	}
	for _, c := range []struct {
		what string
		opts provision.CreateOpts
		prep func(f *fakeHetzner, h *provision.Hetzner)
		want error
	}{
		{"good", nodeOpts("node-1"), nil, nil},
		{"arm", bad(func(o *provision.CreateOpts) { o.Size = "cax11"; o.Architecture = "arm" }), nil, nil},
		{"not sold there", bad(func(o *provision.CreateOpts) { o.Region = "ash" }), nil, provision.ErrInvalid},
		{"sold out", nodeOpts("node-1"), func(f *fakeHetzner, _ *provision.Hetzner) {
			f.tables["server_types"][0]["locations"] = []object{{"name": "fsn1", "available": false}}
		}, provision.ErrCapacity},
		{"not sold any more", nodeOpts("node-1"), func(f *fakeHetzner, _ *provision.Hetzner) {
			f.tables["server_types"][0]["locations"] = []object{{"name": "fsn1", "available": true, "deprecation": object{"unavailable_after": "1999-01-01T00:00:00Z"}}}
		}, provision.ErrInvalid},
		{"wrong architecture", bad(func(o *provision.CreateOpts) { o.Architecture = "arm" }), nil, provision.ErrInvalid},
		{"unknown image", bad(func(o *provision.CreateOpts) { o.Image = "windows-3.1" }), nil, provision.ErrInvalid},
		{"image of the other architecture", bad(func(o *provision.CreateOpts) { o.Image = "arm-only" }), func(f *fakeHetzner, _ *provision.Hetzner) {
			f.add("images", object{"name": "arm-only", "status": "available", "architecture": "arm"})
		}, provision.ErrInvalid},
		{"unknown image id", bad(func(o *provision.CreateOpts) { o.Image = "424242" }), nil, provision.ErrInvalid},
		{"name taken", nodeOpts("node-1"), func(f *fakeHetzner, h *provision.Hetzner) {
			f.add("servers", object{"name": "node-1", "status": "running", "_born": time.Now()})
		}, provision.ErrConflict},
		{"unknown key", bad(func(o *provision.CreateOpts) { o.SSHKeys = []string{"nobody"} }), nil, provision.ErrInvalid},
		{"key as text", bad(func(o *provision.CreateOpts) { o.SSHKeys = []string{somebodysKey} }), nil, nil},
		{"disk", bad(func(o *provision.CreateOpts) { o.DiskGB = 500 }), nil, provision.ErrInvalid},
	} {
		hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
			if c.prep != nil {
				c.prep(f, h)
			}
			err := h.Preflight(t.Context(), c.opts)
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.what, err, c.want)
			}
			if n := f.count("POST"); n != 0 {
				t.Errorf("%s: %d POST requests", c.what, n)
			}
		})
	}
}
