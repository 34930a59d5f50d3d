package cloudsim

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (a answer) names(key string) []string {
	var out []string
	for i := range max(0, a.count(key)) {
		out = append(out, a.text(fmt.Sprintf("%s.%d.name", key, i)))
	}
	return out
}

func TestHetznerCatalogue(t *testing.T) {
	b := newBench(t)
	if got := b.must("GET", "/locations", nil).names("locations"); !cmp.Equal(got, []string{"fsn1", "nbg1", "hel1", "ash", "hil", "sin"}) {
		t.Errorf("locations: %v", got)
	}
	if got := b.must("GET", "/locations?name=ash", nil).text("locations.0.network_zone"); got != "us-east" {
		t.Errorf("location by name: %s", got)
	}
	types := b.must("GET", "/server_types?per_page=50", nil)
	kinds := map[string]int{}
	for i := range types.count("server_types") {
		at := fmt.Sprintf("server_types.%d.", i)
		kinds[types.text(at+"architecture")]++
		kinds[types.text(at+"cpu_type")]++
		if types.count(at+"prices") != types.count(at+"locations") || types.count(at+"prices") < 1 {
			t.Errorf("%s: %d prices for %d locations", types.text(at+"name"), types.count(at+"prices"), types.count(at+"locations"))
		}
		for j := range types.count(at + "locations") {
			l := fmt.Sprintf("%slocations.%d.", at, j)
			if types.text(l+"available") == "false" {
				kinds["unavailable"]++
			}
			if types.get(l+"deprecation") != nil {
				kinds["deprecated"]++
				if types.text(l+"recommended") != "false" {
					t.Errorf("%s is recommended and deprecated", types.text(at+"name"))
				}
			}
		}
	}
	for _, k := range []string{"x86", "arm", "shared", "dedicated", "unavailable", "deprecated"} {
		if kinds[k] == 0 {
			t.Errorf("no server type is %s: %v", k, kinds)
		}
	}
	one := b.must("GET", "/server_types?name=cx23", nil)
	if got := one.text("server_types.0.prices.0.price_monthly.net"); got != "2.9900000000" {
		t.Errorf("cx23 costs %s net", got)
	}
	if got := one.text("server_types.0.prices.0.price_monthly.gross"); !strings.HasPrefix(got, "3.5581") {
		t.Errorf("cx23 costs %s gross", got)
	}
	if a := b.must("GET", "/server_types/"+one.text("server_types.0.id"), nil); a.text("server_type.name") != "cx23" {
		t.Errorf("server type by id: %s", a.raw)
	}
	if c := b.do("GET", "/server_types/cx23", nil).code(); c != "not_found" {
		t.Errorf("server type by name in the path: %s", c)
	}
	for query, want := range map[string]int{
		"name=ubuntu-24.04": 2, "name=ubuntu-24.04&architecture=arm": 1, "name=ubuntu-24.04&architecture=arm&architecture=x86": 2,
		"type=system&architecture=x86": 5, "type=snapshot": 0, "name=nope": 0,
	} {
		if got := b.must("GET", "/images?"+query, nil).count("images"); got != want {
			t.Errorf("%d images with %s, want %d", got, query, want)
		}
	}
	if got := b.must("GET", "/pricing", nil).text("pricing.currency"); got != "EUR" {
		t.Errorf("currency: %s", got)
	}
	for _, kind := range []string{"networks", "placement_groups", "isos", "certificates", "load_balancers", "load_balancer_types", "floating_ips"} {
		if got := b.must("GET", "/"+kind, nil).count(kind); got != 0 {
			t.Errorf("%d %s", got, kind)
		}
	}
}

func TestHetznerLists(t *testing.T) {
	b := newBench(t)
	for i := range 7 {
		b.running(fmt.Sprintf("n%d", i), map[string]any{"labels": map[string]string{"odd": fmt.Sprint(i%2 == 1), "i": fmt.Sprint(i)}})
	}
	b.server("late")
	for query, want := range map[string]string{
		"":                                          "n0 n1 n2 n3 n4 n5 n6 late",
		"name=n3":                                   "n3",
		"name=n":                                    "",
		"status=initializing":                       "late",
		"status=running&status=initializing":        "n0 n1 n2 n3 n4 n5 n6 late",
		"label_selector=odd=true":                   "n1 n3 n5",
		"label_selector=odd!=true":                  "n0 n2 n4 n6 late",
		"label_selector=!odd":                       "late",
		"label_selector=i in (1,2),odd":             "n1 n2",
		"label_selector=odd=true&name=n3":           "n3",
		"sort=name":                                 "late n0 n1 n2 n3 n4 n5 n6",
		"sort=name:desc":                            "n6 n5 n4 n3 n2 n1 n0 late",
		"sort=created:desc&sort=id":                 "late n6 n5 n4 n3 n2 n1 n0",
		"sort=id:desc&per_page=3":                   "late n6 n5",
		"per_page=3&page=3":                         "n6 late",
		"per_page=3&page=4":                         "",
		"label_selector=odd=true&per_page=2":        "n1 n3",
		"label_selector=odd=true&per_page=2&page=2": "n5",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		a := b.must("GET", "/servers?"+q.Encode(), nil)
		if got := strings.Join(a.names("servers"), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"per_page=3":         `{"page":1,"per_page":3,"previous_page":null,"next_page":2,"last_page":3,"total_entries":8}`,
		"per_page=3&page=2":  `{"page":2,"per_page":3,"previous_page":1,"next_page":3,"last_page":3,"total_entries":8}`,
		"per_page=3&page=3":  `{"page":3,"per_page":3,"previous_page":2,"next_page":null,"last_page":3,"total_entries":8}`,
		"per_page=99":        `{"page":1,"per_page":50,"previous_page":null,"next_page":null,"last_page":1,"total_entries":8}`,
		"name=nobody&page=1": `{"page":1,"per_page":25,"previous_page":null,"next_page":null,"last_page":1,"total_entries":0}`,
	} {
		if a := b.must("GET", "/servers?"+query, nil); !strings.Contains(a.raw, want) {
			t.Errorf("%s: no %s in the answer", query, want)
		}
	}
	if a := b.must("GET", "/servers?name=nobody", nil); !strings.Contains(a.raw, `"servers":[]`) {
		t.Errorf("an empty list is %s", a.raw)
	}
}

func TestHetznerPower(t *testing.T) {
	b := newBench(t)
	id := b.running("n")
	act := func(verb string, body any) {
		t.Helper()
		a := b.must("POST", "/servers/"+id+"/actions/"+verb, body)
		if a.status != 201 || a.text("action.resources.0.type") != "server" || a.text("action.resources.0.id") != id {
			t.Errorf("%s: %d %s", verb, a.status, a.raw)
		}
		b.sim.Advance(hetznerActTakes)
	}
	status := func() string { return b.must("GET", "/servers/"+id, nil).text("server.status") }
	act("reboot", nil)
	if s := status(); s != "running" {
		t.Errorf("after a reboot: %s", s)
	}
	act("poweroff", nil)
	if s := status(); s != "off" {
		t.Errorf("after poweroff: %s", s)
	}
	if c := b.do("POST", "/servers/"+id+"/actions/reboot", nil).code(); c != "unsupported_error" {
		t.Errorf("reboot of a server that is off: %s", c)
	}
	act("poweron", nil)
	if s := status(); s != "starting" {
		t.Errorf("after poweron: %s", s)
	}
	b.sim.Advance(startTakes)
	act("shutdown", nil)
	act("change_protection", map[string]bool{"delete": true, "rebuild": true})
	if a := b.do("DELETE", "/servers/"+id, nil); a.code() != "protected" || a.status != 403 {
		t.Errorf("delete of a protected server: %d %s", a.status, a.code())
	}
	act("change_protection", map[string]bool{"delete": false, "rebuild": false})
	b.must("PUT", "/servers/"+id, map[string]any{"name": "renamed", "labels": map[string]string{"x": "y"}})
	a := b.must("PUT", "/servers/"+id, map[string]any{})
	if a.text("server.name") != "renamed" || a.text("server.labels.x") != "y" {
		t.Errorf("an empty update changed something: %s", a.raw)
	}
	list := b.must("GET", "/servers/"+id+"/actions?sort=id:desc", nil)
	if list.text("actions.0.command") != "change_protection" || list.count("actions") != 8 {
		t.Errorf("%d actions, latest %s", list.count("actions"), list.text("actions.0.command"))
	}
	for _, path := range []string{"/servers/actions/", "/actions/"} {
		if a := b.must("GET", path+list.text("actions.0.id"), nil); a.text("action.command") != "change_protection" {
			t.Errorf("%s: %s", path, a.raw)
		}
	}
	if n := b.must("GET", "/servers/actions?status=success", nil).count("actions"); n != 8 {
		t.Errorf("%d actions on servers", n)
	}
	b.must("DELETE", "/servers/"+id, nil)
}

func TestHetznerFirewalls(t *testing.T) {
	b := newBench(t)
	in := func(protocol, port string, ips ...string) map[string]any {
		r := map[string]any{"direction": "in", "protocol": protocol, "source_ips": ips}
		if port != "" {
			r["port"] = port
		}
		return r
	}
	for _, tt := range []struct {
		rule any
		good bool
	}{
		{in("tcp", "22", "0.0.0.0/0", "::/0"), true}, {in("udp", "80-85", "192.0.2.0/24"), true}, {in("icmp", "", "::/0"), true},
		{in("tcp", "", "::/0"), false}, {in("icmp", "1", "::/0"), false}, {in("tcp", "0", "::/0"), false}, {in("tcp", "65536", "::/0"), false},
		{in("tcp", "x", "::/0"), false}, {in("sctp", "1", "::/0"), false}, {in("tcp", "22"), false}, {in("tcp", "22", "192.0.2.1/24"), false},
		{in("tcp", "22", "192.0.2.1"), false}, {map[string]any{"direction": "up", "protocol": "icmp", "source_ips": []string{"::/0"}}, false},
		{map[string]any{"direction": "out", "protocol": "icmp", "destination_ips": []string{"::/0"}}, true},
		{map[string]any{"direction": "out", "protocol": "icmp", "source_ips": []string{"::/0"}}, false},
	} {
		a := b.do("POST", "/firewalls", map[string]any{"name": fmt.Sprint("fw", tt.rule), "rules": []any{tt.rule}})
		if (a.status == 201) != tt.good {
			t.Errorf("rule %v: %d %s", tt.rule, a.status, a.raw)
		}
	}
	fw := b.must("POST", "/firewalls", map[string]any{"name": "f", "labels": map[string]string{"k": "v"}}).text("firewall.id")
	if c := b.do("POST", "/firewalls", map[string]any{"name": "f"}).code(); c != "uniqueness_error" {
		t.Errorf("a name twice: %s", c)
	}
	if c := b.do("PUT", "/firewalls/"+fw, map[string]any{"name": ""}).code(); c != "invalid_input" {
		t.Errorf("no name: %s", c)
	}
	id := b.running("n", map[string]any{"labels": map[string]string{"role": "web"}})
	onServer := func() string { return b.must("GET", "/servers/"+id, nil).text("server.public_net.firewalls.0.status") }
	target := map[string]any{"type": "server", "server": map[string]any{"id": atoi(t, id)}}
	act := func(verb string, body map[string]any) answer {
		return b.do("POST", "/firewalls/"+fw+"/actions/"+verb, body)
	}

	if a := act("apply_to_resources", map[string]any{"apply_to": []any{target}}); a.count("actions") != 1 || onServer() != "pending" {
		t.Errorf("apply: %s, on the server %q", a.raw, onServer())
	}
	b.sim.Advance(hetznerApplyTakes)
	if s := onServer(); s != "applied" {
		t.Errorf("a second later: %s", s)
	}
	if c := act("apply_to_resources", map[string]any{"apply_to": []any{target}}).code(); c != "firewall_already_applied" {
		t.Errorf("apply again: %s", c)
	}
	if a := b.must("GET", "/firewalls/"+fw, nil); a.text("firewall.applied_to.0.server.id") != id {
		t.Errorf("applied to: %s", a.raw)
	}
	for range 2 { // the second time there is nothing, which is no error
		if a := act("remove_from_resources", map[string]any{"remove_from": []any{target}}); a.status != 201 {
			t.Errorf("remove: %s", a.raw)
		}
	}
	bySelector := []any{map[string]any{"type": "label_selector", "label_selector": map[string]string{"selector": "role=web"}}}
	act("apply_to_resources", map[string]any{"apply_to": bySelector})
	if s := onServer(); s != "pending" {
		t.Errorf("by label: %q", s)
	}
	if c := act("remove_from_resources", map[string]any{"remove_from": []any{target}}).code(); c != "firewall_managed_by_label_selector" {
		t.Errorf("removed from one server of a selector: %s", c)
	}
	if c := b.do("DELETE", "/firewalls/"+fw, nil).code(); c != "resource_in_use" {
		t.Errorf("delete with a selector: %s", c)
	}
	act("remove_from_resources", map[string]any{"remove_from": bySelector})
	if s := onServer(); s != "" {
		t.Errorf("afterwards: %q", s)
	}
	if c := act("apply_to_resources", map[string]any{"apply_to": []any{map[string]any{"type": "server", "server": map[string]int{"id": 1}}}}).code(); c != "firewall_resource_not_found" {
		t.Errorf("on an unknown server: %s", c)
	}
	act("set_rules", map[string]any{"rules": []any{in("tcp", "22", "::/0")}})
	if n := b.must("GET", "/firewalls?label_selector=k=v", nil).count("firewalls.0.rules"); n != 1 {
		t.Errorf("%d rules were set", n)
	}
	act("set_rules", map[string]any{"rules": []any{}})
	if n := b.must("GET", "/firewalls/"+fw, nil).count("firewall.rules"); n != 0 {
		t.Errorf("%d rules are left", n)
	}
	b.must("DELETE", "/firewalls/"+fw, nil)
}

func TestHetznerKeys(t *testing.T) {
	b := newBench(t)
	made := b.must("POST", "/ssh_keys", map[string]any{"name": "a", "public_key": keyA + "\n", "labels": map[string]string{"k": "v"}})
	id := made.text("ssh_key.id")
	// As `ssh-keygen -l -E md5` says it of the same key.
	const want = "f6:30:3b:37:be:d0:bd:53:68:42:b1:de:ca:19:0e:49"
	print := made.text("ssh_key.fingerprint")
	if print != want {
		t.Errorf("fingerprint %s, want %s", print, want)
	}
	for query, n := range map[string]int{"fingerprint=" + print: 1, "fingerprint=00": 0, "name=a": 1, "label_selector=k=v": 1, "label_selector=k=w": 0} {
		if got := b.must("GET", "/ssh_keys?"+query, nil).count("ssh_keys"); got != n {
			t.Errorf("%s: %d keys", query, got)
		}
	}
	for _, ref := range []any{"a", atoi(t, id)} {
		a := b.must("POST", "/servers", serverBody(fmt.Sprint("with-", ref), map[string]any{"ssh_keys": []any{ref, ref}}))
		if a.get("root_password") != nil {
			t.Errorf("with a key there is a root password: %v", a.get("root_password"))
		}
	}
	if a := b.must("PUT", "/ssh_keys/"+id, map[string]any{"name": "b"}); a.text("ssh_key.name") != "b" || a.text("ssh_key.labels.k") != "v" {
		t.Errorf("update: %s", a.raw)
	}
	if a := b.must("DELETE", "/ssh_keys/"+id, nil); a.status != 204 {
		t.Errorf("delete: %d", a.status)
	}
	if c := b.do("DELETE", "/ssh_keys/"+id, nil).code(); c != "not_found" {
		t.Errorf("delete again: %s", c)
	}
}
