package hetzner

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"github.com/slipway-dev/slipway/cloudsim"
)

// session is the SDK with a context, and what most of its calls need after
// them: no error, and the end of their actions.
type session struct {
	t   *testing.T
	ctx context.Context
	api *hcloud.Client
}

func newSession(t *testing.T) (session, cloud) {
	c := newCloud(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return session{t, ctx, c.client(token)}, c
}

func (s session) wait(err error, actions ...*hcloud.Action) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.api.Action.WaitFor(s.ctx, actions...); err != nil {
		s.t.Fatal(err)
	}
}

func (s session) refused(what string, err error, code hcloud.ErrorCode) {
	s.t.Helper()
	if !hcloud.IsError(err, code) {
		s.t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func (s session) server(name string, change func(*hcloud.ServerCreateOpts)) *hcloud.Server {
	s.t.Helper()
	opts := hcloud.ServerCreateOpts{
		Name: name, ServerType: &hcloud.ServerType{Name: "cpx22"}, Image: &hcloud.Image{Name: "debian-13"}, Location: &hcloud.Location{Name: "nbg1"},
	}
	if change != nil {
		change(&opts)
	}
	res, _, err := s.api.Server.Create(s.ctx, opts)
	s.wait(err, append(res.NextActions, res.Action)...)
	return res.Server
}

func (s session) delete(server *hcloud.Server) {
	s.t.Helper()
	res, _, err := s.api.Server.DeleteWithResult(s.ctx, server)
	s.wait(err, res.Action)
}

func TestAddresses(t *testing.T) {
	s, c := newSession(t)
	made, _, err := s.api.PrimaryIP.Create(s.ctx, hcloud.PrimaryIPCreateOpts{
		Name: "mine", Type: hcloud.PrimaryIPTypeIPv4, AssigneeType: "server", Location: "nbg1", Labels: map[string]string{"k": "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := s.server("a-1", func(o *hcloud.ServerCreateOpts) {
		o.PublicNet = &hcloud.ServerCreatePublicNet{EnableIPv4: true, IPv4: made.PrimaryIP}
	})
	if !server.PublicNet.IPv4.IP.Equal(made.PrimaryIP.IP) || server.PublicNet.IPv6.IP != nil && !server.PublicNet.IPv6.IsUnspecified() {
		t.Errorf("public net: %+v", server.PublicNet)
	}
	_, err = s.api.PrimaryIP.Delete(s.ctx, made.PrimaryIP)
	s.refused("delete of a running server's address", err, hcloud.ErrorCodeServerNotStopped)
	off, _, err := s.api.Server.Poweroff(s.ctx, server)
	s.wait(err, off)
	un, _, err := s.api.PrimaryIP.Unassign(s.ctx, made.PrimaryIP.ID)
	s.wait(err, un)
	back, _, err := s.api.PrimaryIP.Assign(s.ctx, hcloud.PrimaryIPAssignOpts{ID: made.PrimaryIP.ID, AssigneeID: server.ID, AssigneeType: "server"})
	s.wait(err, back)
	_, _, err = s.api.PrimaryIP.Update(s.ctx, made.PrimaryIP, hcloud.PrimaryIPUpdateOpts{Name: "renamed", AutoDelete: hcloud.Ptr(false)})
	s.wait(err)
	s.delete(server)
	left, err := s.api.PrimaryIP.All(s.ctx)
	if err != nil || len(left) != 1 || left[0].Name != "renamed" || left[0].AssigneeID != 0 {
		t.Fatalf("after the server's delete: %+v, %v", left, err)
	}
	if sum := c.sim.LedgerSummary(); sum.Left != 1 {
		t.Errorf("ledger: %+v, want the address that nobody uses and somebody pays", sum)
	}
	if _, err := s.api.PrimaryIP.Delete(s.ctx, left[0]); err != nil {
		t.Error(err)
	}
}

func TestVolumes(t *testing.T) {
	s, c := newSession(t)
	made, _, err := s.api.Volume.Create(s.ctx, hcloud.VolumeCreateOpts{
		Name: "data", Size: 10, Location: &hcloud.Location{Name: "nbg1"}, Format: hcloud.Ptr(hcloud.VolumeFormatExt4),
	})
	s.wait(err, append(made.NextActions, made.Action)...)
	server := s.server("v-1", func(o *hcloud.ServerCreateOpts) { o.Volumes = []*hcloud.Volume{made.Volume} })
	if len(server.Volumes) != 1 {
		t.Errorf("volumes: %v", server.Volumes)
	}
	_, err = s.api.Volume.Delete(s.ctx, made.Volume)
	s.refused("delete while attached", err, hcloud.ErrorCodeResourceInUse)
	a, _, err := s.api.Volume.Detach(s.ctx, made.Volume)
	s.wait(err, a)
	a, _, err = s.api.Volume.Attach(s.ctx, made.Volume, server)
	s.wait(err, a)
	_, _, err = s.api.Volume.Attach(s.ctx, made.Volume, server)
	s.refused("attach twice", err, hcloud.ErrorCodeVolumeAlreadyAttached)
	a, _, err = s.api.Volume.Resize(s.ctx, made.Volume, 20)
	s.wait(err, a)
	_, _, err = s.api.Volume.Update(s.ctx, made.Volume, hcloud.VolumeUpdateOpts{Name: "renamed"})
	s.wait(err)
	s.delete(server)
	v, _, err := s.api.Volume.GetByName(s.ctx, "renamed")
	if err != nil || v == nil || v.Server != nil || v.Size != 20 {
		t.Fatalf("after the server's delete: %+v, %v", v, err)
	}
	if _, err := s.api.Volume.Delete(s.ctx, v); err != nil {
		t.Error(err)
	}
	if left := c.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d things are left", left)
	}
}

// TestServerTroubles has what a server's owner runs into after its create.
func TestServerTroubles(t *testing.T) {
	s, c := newSession(t)
	server := s.server("t-1", nil)
	on := hcloud.ServerChangeProtectionOpts{Delete: hcloud.Ptr(true), Rebuild: hcloud.Ptr(true)}
	a, _, err := s.api.Server.ChangeProtection(s.ctx, server, on)
	s.wait(err, a)
	_, _, err = s.api.Server.DeleteWithResult(s.ctx, server)
	s.refused("delete of a protected server", err, hcloud.ErrorCodeProtected)
	a, _, err = s.api.Server.ChangeProtection(s.ctx, server, hcloud.ServerChangeProtectionOpts{Delete: hcloud.Ptr(false), Rebuild: hcloud.Ptr(false)})
	s.wait(err, a)

	if _, err := c.sim.AddFault(cloudsim.Fault{Call: "delete server", Effect: cloudsim.EffectStatus, Status: 423, Code: "locked", Times: 1}); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.api.Server.DeleteWithResult(s.ctx, server)
	s.refused("delete while something else runs", err, hcloud.ErrorCodeLocked)

	if _, _, err := s.api.Server.Update(s.ctx, server, hcloud.ServerUpdateOpts{Name: "t-2", Labels: map[string]string{"x": "y"}}); err != nil {
		t.Error(err)
	}
	off, _, err := s.api.Server.Shutdown(s.ctx, server)
	s.wait(err, off)
	if got, _, err := s.api.Server.GetByID(s.ctx, server.ID); err != nil || got.Status != hcloud.ServerStatusOff || got.Name != "t-2" {
		t.Errorf("after the shutdown: %+v, %v", got, err)
	}
	up, _, err := s.api.Server.Poweron(s.ctx, server)
	s.wait(err, up)
	actions, err := s.api.Server.Action.All(s.ctx, hcloud.ActionListOpts{Sort: []string{"id:desc"}})
	if err != nil || len(actions) != 6 || actions[0].ID != up.ID {
		t.Errorf("%d actions, %v", len(actions), err)
	}
	one, _, err := s.api.Server.Action.GetByID(s.ctx, up.ID)
	if err != nil || one == nil || one.Command != "start_server" {
		t.Errorf("action: %+v, %v", one, err)
	}
	s.delete(server)
	_, _, err = s.api.Server.DeleteWithResult(s.ctx, server)
	s.refused("delete again", err, hcloud.ErrorCodeNotFound)
}

func TestFirewalls(t *testing.T) {
	s, _ := newSession(t)
	server := s.server("f-1", func(o *hcloud.ServerCreateOpts) { o.Labels = map[string]string{"role": "web"} })
	_, all, _ := net.ParseCIDR("::/0")
	ssh := hcloud.FirewallRule{Direction: hcloud.FirewallRuleDirectionIn, Protocol: hcloud.FirewallRuleProtocolTCP, Port: hcloud.Ptr("22"), SourceIPs: []net.IPNet{*all}, Description: hcloud.Ptr("ssh")}
	made, _, err := s.api.Firewall.Create(s.ctx, hcloud.FirewallCreateOpts{Name: "ssh", Rules: []hcloud.FirewallRule{ssh}})
	s.wait(err, made.Actions...)
	direct := []hcloud.FirewallResource{{Type: hcloud.FirewallResourceTypeServer, Server: &hcloud.FirewallResourceServer{ID: server.ID}}}
	actions, _, err := s.api.Firewall.ApplyResources(s.ctx, made.Firewall, direct)
	s.wait(err, actions...)
	_, _, err = s.api.Firewall.ApplyResources(s.ctx, made.Firewall, direct)
	s.refused("apply twice", err, hcloud.ErrorCodeFirewallAlreadyApplied)
	actions, _, err = s.api.Firewall.RemoveResources(s.ctx, made.Firewall, direct)
	s.wait(err, actions...)
	byLabel := []hcloud.FirewallResource{{Type: hcloud.FirewallResourceTypeLabelSelector, LabelSelector: &hcloud.FirewallResourceLabelSelector{Selector: "role=web"}}}
	actions, _, err = s.api.Firewall.ApplyResources(s.ctx, made.Firewall, byLabel)
	s.wait(err, actions...)
	got, _, err := s.api.Server.GetByID(s.ctx, server.ID)
	if err != nil || len(got.PublicNet.Firewalls) != 1 || got.PublicNet.Firewalls[0].Status != hcloud.FirewallStatusApplied {
		t.Errorf("on the server: %+v, %v", got.PublicNet.Firewalls, err)
	}
	_, _, err = s.api.Firewall.RemoveResources(s.ctx, made.Firewall, direct)
	s.refused("removed from one server of a selector", err, hcloud.ErrorCodeFirewallManagedByLabelSelector)
	fw, _, err := s.api.Firewall.GetByName(s.ctx, "ssh")
	if err != nil || len(fw.Rules) != 1 || *fw.Rules[0].Description != "ssh" || len(fw.AppliedTo) != 1 || len(fw.AppliedTo[0].AppliedToResources) != 1 {
		t.Errorf("firewall: %+v, %v", fw, err)
	}
	actions, _, err = s.api.Firewall.SetRules(s.ctx, made.Firewall, hcloud.FirewallSetRulesOpts{Rules: []hcloud.FirewallRule{}})
	s.wait(err, actions...)
	if _, _, err := s.api.Firewall.Update(s.ctx, made.Firewall, hcloud.FirewallUpdateOpts{Name: "closed"}); err != nil {
		t.Error(err)
	}
}

// TestNothingElse has the kinds that a fleet does not make, of which there are
// none, and the one that is gone.
func TestNothingElse(t *testing.T) {
	s, _ := newSession(t)
	for name, count := range map[string]func() (int, error){
		"networks":            func() (int, error) { l, err := s.api.Network.All(s.ctx); return len(l), err },
		"placement groups":    func() (int, error) { l, err := s.api.PlacementGroup.All(s.ctx); return len(l), err },
		"ISOs":                func() (int, error) { l, err := s.api.ISO.All(s.ctx); return len(l), err },
		"certificates":        func() (int, error) { l, err := s.api.Certificate.All(s.ctx); return len(l), err },
		"load balancers":      func() (int, error) { l, err := s.api.LoadBalancer.All(s.ctx); return len(l), err },
		"load balancer types": func() (int, error) { l, err := s.api.LoadBalancerType.All(s.ctx); return len(l), err },
		"floating IPs":        func() (int, error) { l, err := s.api.FloatingIP.All(s.ctx); return len(l), err },
	} {
		if n, err := count(); n != 0 || err != nil {
			t.Errorf("%d %s, %v", n, name, err)
		}
	}
	_, err := s.api.Datacenter.All(s.ctx) //nolint:staticcheck // that it is gone is the point
	s.refused("datacenters", err, hcloud.ErrorDeprecatedAPIEndpoint)
}
