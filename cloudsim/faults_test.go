package cloudsim

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestFaultsAnswer(t *testing.T) {
	for _, tt := range []struct {
		fault Fault
		want  string
	}{
		{Fault{Effect: EffectCapacity}, "412 resource_unavailable"},
		{Fault{Effect: EffectQuota}, "403 resource_limit_exceeded"},
		{Fault{Effect: EffectRateLimit}, "429 rate_limit_exceeded"},
		{Fault{Effect: EffectUnauthorized}, "401 unauthorized"},
		{Fault{Effect: EffectStatus, Status: 503}, "503 service_error"},
		{Fault{Effect: EffectStatus, Status: 502}, "502 bad_gateway"},
		{Fault{Effect: EffectStatus, Status: 418}, "418 server_error"},
		{Fault{Effect: EffectStatus, Status: 503, Code: "maintenance", Message: "back soon"}, "503 maintenance"},
	} {
		b := newBench(t)
		tt.fault.Call, tt.fault.Times = "create server", 1
		b.fault(tt.fault)
		a := b.do("POST", "/servers", serverBody("n"))
		if got := fmt.Sprint(a.status, " ", a.code()); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.fault, got, tt.want)
		}
		if tt.fault.Message != "" && a.text("error.message") != tt.fault.Message {
			t.Errorf("message %q", a.text("error.message"))
		}
		if a.header.Get("X-Correlation-Id") == "" || a.header.Get("RateLimit-Limit") == "" {
			t.Errorf("%s: headers %v", tt.want, a.header)
		}
		if tt.fault.Effect == EffectRateLimit && a.header.Get("RateLimit-Remaining") != "0" {
			t.Errorf("throttled with %s requests left", a.header.Get("RateLimit-Remaining"))
		}
		if made := b.sim.LedgerSummary().Made; made != 0 {
			t.Errorf("%s: %d things were made", tt.want, made)
		}
		b.server("n") // once is over
	}
}

func TestFaultRules(t *testing.T) {
	b := newBench(t)
	id := b.running("web-1")
	b.fault(Fault{Call: "*", Match: "web-*", Provider: "azure", Effect: EffectQuota})
	b.fault(Fault{Call: "get *", Match: "web-*", Skip: 1, Times: 2, Effect: EffectStatus, Status: 500})
	b.fault(Fault{Call: "get server", Effect: EffectStatus, Status: 503})
	var got []string
	for range 4 {
		got = append(got, b.do("GET", "/servers/"+id, nil).code())
	}
	// The older rule passes its first call on to the younger one.
	if want := "service_error server_error server_error service_error"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if c := b.do("GET", "/locations/1", nil).code(); c != "200" {
		t.Errorf("another call: %s", c)
	}
	rules := b.sim.Faults()
	if len(rules) != 3 || rules[0].Hits != 0 || rules[1].Hits != 3 || rules[2].Hits != 2 {
		t.Errorf("hits: %+v", rules)
	}
	b.sim.ClearFaults()
	b.must("GET", "/servers/"+id, nil)
	for _, bad := range []Fault{
		{Effect: "explode"}, {}, {Effect: EffectCapacity}, {Effect: EffectStatus, Call: "*", Status: 200}, {Effect: EffectSlowBoot, Delay: -1},
		{Effect: EffectQuota, Call: "[", Status: 1}, {Effect: EffectQuota, Call: "*", Match: "["}, {Effect: EffectQuota, Call: "*", Times: -1},
	} {
		if _, err := b.sim.AddFault(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestFaultsOnTheWire needs real connections: some end without an answer.
func TestFaultsOnTheWire(t *testing.T) {
	b := newBench(t)
	srv := httptest.NewServer(b.sim.Handler())
	defer srv.Close()
	client := srv.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true // an idle connection that ends is tried again
	create := func(name string) error {
		req, err := http.NewRequest("POST", srv.URL+hetznerPrefix+"/servers", strings.NewReader(`{"name":"`+name+`","server_type":"cx23","image":"ubuntu-24.04"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	b.fault(Fault{Call: "create server", Match: "before", Effect: EffectDropBefore})
	b.fault(Fault{Call: "create server", Match: "after", Effect: EffectDropAfter})
	for name, made := range map[string]int{"before": 0, "after": 1} {
		err := create(name)
		if !errors.Is(err, io.EOF) && (err == nil || !strings.Contains(err.Error(), "reset")) {
			t.Errorf("%s: %v, want a cut connection", name, err)
		}
		if n := b.must("GET", "/servers?name="+name, nil).count("servers"); n != made {
			t.Errorf("%s: %d servers were made, want %d", name, n, made)
		}
	}
	for _, r := range b.sim.Requests() {
		if r.Call == "create server" && (r.Status != 0 || r.Fault == "") {
			t.Errorf("log: %+v", r)
		}
	}
	b.fault(Fault{Call: "create server", Match: "slow*", Effect: EffectDelay, Delay: Duration(30 * time.Millisecond)})
	b.fault(Fault{Call: "create server", Match: "late*", Effect: EffectDelayAnswer, Delay: Duration(30 * time.Millisecond)})
	for _, name := range []string{"slow", "late"} {
		began := time.Now()
		if err := create(name); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 30*time.Millisecond {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

func TestFaultsOnServers(t *testing.T) {
	b := newBench(t)
	b.fault(Fault{Match: "stuck", Effect: EffectStuckDelete, Delay: Duration(time.Hour)})
	b.fault(Fault{Match: "hidden", Effect: EffectListLag, Delay: Duration(time.Minute)})
	stuck, hidden, later := b.running("stuck"), b.server("hidden"), b.running("later")

	if n := b.must("GET", "/servers?name=hidden", nil).count("servers"); n != 0 {
		t.Errorf("the hidden server is listed")
	}
	b.must("GET", "/servers/"+hidden, nil)
	b.sim.Advance(time.Minute)
	if n := b.must("GET", "/servers?name=hidden", nil).count("servers"); n != 1 {
		t.Errorf("the hidden server is not listed a minute later")
	}
	b.fault(Fault{Match: "later", Effect: EffectStuckDelete, Delay: Duration(time.Hour)}) // after its create
	for _, id := range []string{stuck, later} {
		b.must("DELETE", "/servers/"+id, nil)
		b.sim.Advance(30 * time.Minute)
		if s := b.must("GET", "/servers/"+id, nil).text("server.status"); s != "deleting" {
			t.Errorf("half an hour into its delete the server is %s", s)
		}
		b.sim.Advance(31 * time.Minute)
		if c := b.do("GET", "/servers/"+id, nil).code(); c != "not_found" {
			t.Errorf("an hour into its delete: %s", c)
		}
	}
}

func TestFaultsOnBoots(t *testing.T) {
	b := newBench(t)
	b.fault(Fault{Match: "never", Effect: EffectNoBoot})
	b.fault(Fault{Match: "slow", Effect: EffectSlowBoot, Delay: Duration(time.Hour)})
	b.fault(Fault{Match: "dies", Effect: EffectBootDies})
	body := map[string]any{"user_data": agentUserData}
	ids := map[string]string{}
	for _, name := range []string{"never", "slow", "dies", "good"} {
		ids[name] = b.server(name, body)
	}
	b.sim.Advance(10 * time.Minute)
	check := func(want map[string]string) {
		t.Helper()
		for _, g := range b.sim.Guests() {
			if got := fmt.Sprint(g.Stage, len(g.Containers)); got != want[g.Name] {
				t.Errorf("%s: %s, want %s\n%s", g.Name, got, want[g.Name], strings.Join(g.Console, "\n"))
			}
		}
	}
	check(map[string]string{"never": "failed0", "slow": "booting0", "dies": "off0", "good": "up1"})
	if s := b.must("GET", "/servers/"+ids["never"], nil).text("server.status"); s != "running" {
		t.Errorf("the provider says of a server that does not boot: %s", s)
	}
	if s := b.must("GET", "/servers/"+ids["dies"], nil).text("server.status"); s != "off" {
		t.Errorf("the provider says of a server that died: %s", s)
	}
	b.must("POST", "/servers/"+ids["dies"]+"/actions/poweron", nil)
	b.sim.Advance(time.Hour)
	check(map[string]string{"never": "failed0", "slow": "up1", "dies": "up1", "good": "up1"})
}
