package cloudsim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestHetznerAddresses holds what becomes of addresses when their server goes:
// those that came with it go too, others stay and cost.
func TestHetznerAddresses(t *testing.T) {
	b := newBench(t)
	own := b.must("POST", "/primary_ips", map[string]any{
		"name": "mine", "type": "ipv4", "assignee_type": "server", "location": "fsn1", "labels": map[string]string{"k": "v"},
	}).text("primary_ip.id")
	if c := b.do("POST", "/primary_ips", map[string]any{"name": "mine", "type": "ipv6", "location": "fsn1"}).code(); c != "uniqueness_error" {
		t.Errorf("a name twice: %s", c)
	}
	with := func(net map[string]any) map[string]any { return map[string]any{"public_net": net} }
	if c := b.do("POST", "/servers", serverBody("x", with(map[string]any{"ipv6": atoi(t, own)}))).code(); c != "primary_ip_version_mismatch" {
		t.Errorf("an IPv4 as IPv6: %s", c)
	}
	if c := b.do("POST", "/servers", serverBody("x", with(map[string]any{"ipv4": atoi(t, own)}), map[string]any{"location": "nbg1"})).code(); c != "primary_ip_datacenter_mismatch" {
		t.Errorf("in another location: %s", c)
	}
	id := b.running("n", with(map[string]any{"ipv4": atoi(t, own)}))
	if c := b.do("POST", "/servers", serverBody("x", with(map[string]any{"ipv4": atoi(t, own)}))).code(); c != "primary_ip_assigned" {
		t.Errorf("for a second server: %s", c)
	}
	none := b.must("POST", "/servers", serverBody("none", with(map[string]any{"enable_ipv4": false, "enable_ipv6": false})))
	if none.get("server.public_net.ipv4") != nil || none.get("server.public_net.ipv6") != nil {
		t.Errorf("without addresses: %s", none.raw)
	}
	ips := b.must("GET", "/primary_ips", nil)
	if ips.count("primary_ips") != 2 || ips.text("primary_ips.0.assignee_id") != id || ips.text("primary_ips.0.auto_delete") != "false" || ips.text("primary_ips.1.auto_delete") != "true" {
		t.Errorf("addresses: %s", ips.raw)
	}
	if n := b.must("GET", "/primary_ips?label_selector=k=v&ip="+ips.text("primary_ips.0.ip"), nil).count("primary_ips"); n != 1 {
		t.Errorf("%d addresses by label and address", n)
	}
	if c := b.do("DELETE", "/primary_ips/"+own, nil).code(); c != "server_not_stopped" {
		t.Errorf("delete of a running server's address: %s", c)
	}
	b.must("DELETE", "/servers/"+id, nil)
	b.sim.Advance(time.Minute)
	left := b.must("GET", "/primary_ips", nil)
	if !cmp.Equal(left.names("primary_ips"), []string{"mine"}) || left.get("primary_ips.0.assignee_id") != nil {
		t.Errorf("after the delete: %s", left.raw)
	}
	b.must("POST", "/primary_ips/"+own+"/actions/change_protection", map[string]bool{"delete": true})
	if c := b.do("DELETE", "/primary_ips/"+own, nil).code(); c != "protected" {
		t.Errorf("delete of a protected address: %s", c)
	}
	b.must("POST", "/primary_ips/"+own+"/actions/change_protection", map[string]bool{"delete": false})
	b.must("DELETE", "/primary_ips/"+own, nil)
}

func TestHetznerAddressMoves(t *testing.T) {
	b := newBench(t)
	id := b.running("n", map[string]any{"public_net": map[string]any{"enable_ipv4": false}})
	ip := b.must("POST", "/primary_ips", map[string]any{"name": "p", "type": "ipv4", "location": "fsn1", "auto_delete": true}).text("primary_ip.id")
	assign := func() string {
		return b.do("POST", "/primary_ips/"+ip+"/actions/assign", map[string]any{"assignee_id": atoi(t, id), "assignee_type": "server"}).code()
	}
	if c := assign(); c != "server_not_stopped" {
		t.Errorf("assign to a running server: %s", c)
	}
	b.must("POST", "/servers/"+id+"/actions/poweroff", nil)
	if c := assign(); c != "locked" {
		t.Errorf("assign while it is switched off: %s", c)
	}
	b.sim.Advance(hetznerActTakes)
	for _, want := range []string{"201", "primary_ip_already_assigned"} {
		if c := assign(); c != want {
			t.Errorf("assign: %s, want %s", c, want)
		}
	}
	second := b.must("POST", "/primary_ips", map[string]any{"name": "q", "type": "ipv4", "location": "fsn1"}).text("primary_ip.id")
	if c := b.do("POST", "/primary_ips/"+second+"/actions/assign", map[string]any{"assignee_id": atoi(t, id)}).code(); c != "server_has_ipv4" {
		t.Errorf("a second address: %s", c)
	}
	b.must("POST", "/primary_ips/"+ip+"/actions/unassign", nil)
	if a := b.must("GET", "/servers/"+id, nil); a.get("server.public_net.ipv4") != nil {
		t.Errorf("after unassign: %s", a.raw)
	}
	if a := b.must("PUT", "/primary_ips/"+ip, map[string]any{"auto_delete": false, "name": "r"}); a.text("primary_ip.name") != "r" || a.text("primary_ip.auto_delete") != "false" {
		t.Errorf("update: %s", a.raw)
	}
}

// TestHetznerVolumes holds that volumes outlive their server.
func TestHetznerVolumes(t *testing.T) {
	b := newBench(t)
	vol := b.must("POST", "/volumes", map[string]any{"name": "data", "size": 10, "location": "fsn1", "format": "ext4"}).text("volume.id")
	if c := b.do("POST", "/volumes", map[string]any{"name": "data", "size": 10, "location": "fsn1"}).code(); c != "uniqueness_error" {
		t.Errorf("a name twice: %s", c)
	}
	id := b.running("n", map[string]any{"volumes": []int64{atoi(t, vol)}})
	if c := b.do("POST", "/servers", serverBody("x", map[string]any{"volumes": []int64{atoi(t, vol)}})).code(); c != "volume_already_attached" {
		t.Errorf("for a second server: %s", c)
	}
	if c := b.do("DELETE", "/volumes/"+vol, nil).code(); c != "resource_in_use" {
		t.Errorf("delete while attached: %s", c)
	}
	b.must("DELETE", "/servers/"+id, nil)
	b.sim.Advance(time.Minute)
	a := b.must("GET", "/volumes/"+vol, nil)
	if a.get("volume.server") != nil || a.text("volume.status") != "available" {
		t.Errorf("after the server's delete: %s", a.raw)
	}
	id = b.running("m")
	act := func(verb string, body any) string {
		return b.do("POST", "/volumes/"+vol+"/actions/"+verb, body).code()
	}
	for _, tt := range []struct {
		verb string
		body any
		want string
	}{
		{"attach", map[string]any{"server": 1}, "not_found"}, {"attach", map[string]any{"server": atoi(t, id)}, "201"},
		{"attach", map[string]any{"server": atoi(t, id)}, "volume_already_attached"}, {"detach", nil, "201"},
		{"resize", map[string]any{"size": 10}, "invalid_input"}, {"resize", map[string]any{"size": 20}, "201"},
		{"change_protection", map[string]any{"delete": true}, "201"}, {"shred", nil, "not_found"},
	} {
		if got := act(tt.verb, tt.body); got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.verb, tt.body, got, tt.want)
		}
	}
	if c := b.do("DELETE", "/volumes/"+vol, nil).code(); c != "protected" {
		t.Errorf("delete of a protected volume: %s", c)
	}
	act("change_protection", map[string]any{"delete": false})
	b.must("PUT", "/volumes/"+vol, map[string]any{"name": "renamed"})
	b.must("DELETE", "/volumes/"+vol, nil)
}

// TestLedger counts each billable thing from its making to its end.
func TestLedger(t *testing.T) {
	b := newBench(t)
	id := b.running("n")
	vol := b.must("POST", "/volumes", map[string]any{"name": "data", "size": 10, "location": "fsn1"}).text("volume.id")
	const lives = 199*time.Hour + 30*time.Minute
	b.sim.Advance(lives)
	b.must("DELETE", "/servers/"+id, nil)
	b.sim.Advance(hetznerDeleteTakes)
	got := b.sim.LedgerSummary()
	// 200 hours begun of (2.99 + 0.50 + 0.44) / 730 an hour: cx23, its IPv4 and
	// 10 GB of volume; with 19 % VAT.
	want := LedgerSummary{Made: 4, Left: 1, Cost: map[string]string{"EUR": "1.28"}}
	if !cmp.Equal(got, want) {
		t.Errorf("summary: %s", cmp.Diff(want, got))
	}
	kinds := map[string]int{}
	for _, e := range b.sim.Ledger() {
		kinds[e.Kind]++
		if e.Left() != (e.Kind == "volume") {
			t.Errorf("%s %s: left is %v", e.Kind, e.Name, e.Left())
		}
		if e.Kind != "volume" && e.DeletedAt.Sub(e.CreatedAt) != 9*time.Second+lives+hetznerDeleteTakes {
			t.Errorf("%s %s lived %s", e.Kind, e.Name, e.DeletedAt.Sub(e.CreatedAt))
		}
		if e.Kind == "public-ip" && e.Server != id {
			t.Errorf("address %s served %q", e.Name, e.Server)
		}
	}
	if !cmp.Equal(kinds, map[string]int{"server": 1, "public-ip": 2, "volume": 1}) {
		t.Errorf("kinds: %v", kinds)
	}
	b.must("DELETE", "/volumes/"+vol, nil)
	if left := b.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d left", left)
	}
}
