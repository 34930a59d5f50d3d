package provision_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

func TestHetznerSharedFirewallIsBroughtBackToNoRules(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-1"))
		f.tables["firewalls"][0]["rules"] = []any{object{"direction": "in", "protocol": "tcp", "port": "1-65535"}}
		// The audit sees it, changes nothing, and makes the next create look.
		if _, err := h.ListResources(t.Context()); err != nil || f.count("POST /firewalls/") != 0 {
			t.Errorf("audit: %v, %d changes", err, f.count("POST /firewalls/"))
		}
		mustCreate(t, h, nodeOpts("node-2"))
		if rules := f.tables["firewalls"][0]["rules"].([]any); len(rules) != 0 {
			t.Errorf("rules are %v", rules)
		}
		if len(f.names("firewalls")) != 1 {
			t.Errorf("firewalls: %v", f.names("firewalls"))
		}
	})
}

func TestHetznerForeignSharedThingsAreRefused(t *testing.T) {
	for table, name := range map[string]string{"firewalls": "acme-no-inbound", "ssh_keys": "acme-no-login"} {
		hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
			f.add(table, object{"name": name, "labels": object{"managed-by": "acme"}, "rules": []any{}, "fingerprint": "x"})
			_, _, err := h.CreateServer(t.Context(), nodeOpts("node-1"))
			if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), name) || f.count("POST /servers") != 0 {
				t.Errorf("%s: %v", table, err)
			}
		})
	}
}

func TestHetznerSharedThingsOfALostAnswerAreFound(t *testing.T) {
	for _, request := range []string{"POST /firewalls", "POST /ssh_keys"} {
		for what, fl := range map[string]fault{
			"lost answer": {after: true}, "taken by another meanwhile": {status: 409, code: "uniqueness_error"}, "broken": {status: 503},
		} {
			hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
				f.fault(request, fl)
				_, _, err := h.CreateServer(t.Context(), nodeOpts("node-1"))
				if fl.after && err != nil {
					t.Errorf("%s, %s: %v", request, what, err)
				}
				if !fl.after { // nothing was made: said so, and good at the next try
					if err == nil || f.count("POST /servers") != 0 {
						t.Errorf("%s, %s: no error", request, what)
					}
					mustCreate(t, h, nodeOpts("node-1"))
				}
				if len(f.names("firewalls")) != 1 || len(f.names("ssh_keys")) != 1 {
					t.Errorf("%s, %s: %v %v", request, what, f.names("firewalls"), f.names("ssh_keys"))
				}
			})
		}
	}
}

func sshOpts(name string) provision.CreateOpts {
	opts := nodeOpts(name)
	opts.AllowSSHInbound = true
	opts.SSHSourceCIDRs = []string{"198.51.100.0/24", "2001:db8::/32"}
	return opts
}

func TestHetznerSSHFirewall(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, sshOpts("node-1"))
		i := slices.Index(f.names("firewalls"), "node-1-ssh")
		if i < 0 {
			t.Fatalf("firewalls: %v", f.names("firewalls"))
		}
		fw := f.tables["firewalls"][i]
		rule := fw["rules"].([]any)[0].(object)
		if len(fw["rules"].([]any)) != 1 || rule["direction"] != "in" || rule["protocol"] != "tcp" || rule["port"] != "22" ||
			!slices.Equal(rule["source_ips"].([]any), []any{"198.51.100.0/24", "2001:db8::/32"}) {
			t.Errorf("rules: %v", fw["rules"])
		}
		labels := fw["labels"].(object)
		if labels["acme-server"] != id || labels["acme-node"] != "node-1" || labels["managed-by"] != "acme" || labels["acme-role"] != "ssh" {
			t.Errorf("labels: %v", labels)
		}
	})
}

func TestHetznerSSHFirewallLeftByAnEarlierServerMakesWay(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.add("firewalls", object{"name": "node-1-ssh", "rules": []any{}, "labels": object{
			"managed-by": "acme", "acme-role": "ssh", "acme-key": "an-older-key",
		}})
		mustCreate(t, h, sshOpts("node-1"))
		if got := f.names("firewalls"); len(got) != 2 {
			t.Errorf("firewalls: %v", got)
		}
	})
}

func TestHetznerForeignSSHFirewallIsLeftAlone(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.add("firewalls", object{"name": "node-1-ssh", "rules": []any{}})
		_, _, err := h.CreateServer(t.Context(), sshOpts("node-1"))
		if !errors.Is(err, provision.ErrConflict) || f.count("DELETE") != 0 || f.count("POST /servers") != 0 {
			t.Errorf("%v, %d deletes", err, f.count("DELETE"))
		}
	})
}

// TestHetznerSSHFirewallOfACreateWithUnknownOutcomeStays: its server may
// exist, and the repeat finds both.
func TestHetznerSSHFirewallOfACreateWithUnknownOutcomeStays(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.fault("POST /servers", fault{after: true})
		f.fault("GET /servers", slices.Repeat([]fault{{status: 503}}, 5)...)
		if _, _, err := h.CreateServer(t.Context(), sshOpts("node-1")); !errors.Is(err, provision.ErrUnavailable) {
			t.Fatal(err)
		}
		if f.count("DELETE") != 0 {
			t.Error("something was removed though the outcome is unknown")
		}
		id := mustCreate(t, openHetzner(t, f, goodToken), sshOpts("node-1"))
		if !f.sshReachable(id) || len(f.names("servers")) != 1 || len(f.names("firewalls")) != 2 {
			t.Errorf("servers %v, firewalls %v", f.names("servers"), f.names("firewalls"))
		}
	})
}

// TestHetznerFoundServerStaysWhenALaterStepFails: what a look-up found may be
// an earlier call's, and is never removed by this one.
func TestHetznerFoundServerStaysWhenALaterStepFails(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-0"))
		put := fmt.Sprintf("PUT /firewalls/%d", f.lastID+1) // the next object is the SSH firewall
		f.fault(put, slices.Repeat([]fault{{status: 503}}, 5)...)
		f.fault("POST /servers", fault{after: true})
		_, _, err := h.CreateServer(t.Context(), sshOpts("node-1"))
		if !errors.Is(err, provision.ErrUnavailable) || f.count(put) != 5 {
			t.Fatalf("%v after %d tries", err, f.count(put))
		}
		if f.count("DELETE") != 0 || len(f.names("servers")) != 2 || len(f.names("firewalls")) != 2 {
			t.Errorf("%d deletes; servers %v, firewalls %v", f.count("DELETE"), f.names("servers"), f.names("firewalls"))
		}
		id := mustCreate(t, h, sshOpts("node-1"))
		time.Sleep(time.Minute)
		if err := h.DeleteServer(t.Context(), id); err != nil || len(f.names("firewalls")) != 1 {
			t.Errorf("%v, firewalls %v", err, f.names("firewalls"))
		}
	})
}

// TestHetznerMadeServerIsRemovedWhenALaterStepFails is the other half.
func TestHetznerMadeServerIsRemovedWhenALaterStepFails(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		mustCreate(t, h, nodeOpts("node-0"))
		f.fault(fmt.Sprintf("PUT /firewalls/%d", f.lastID+1), slices.Repeat([]fault{{status: 503}}, 5)...)
		_, _, err := h.CreateServer(t.Context(), sshOpts("node-1"))
		if !errors.Is(err, provision.ErrUnavailable) || provision.LeftBehind(err) != nil {
			t.Fatal(err)
		}
		if got := f.billable(); len(got) != 2 || len(f.names("firewalls")) != 1 {
			t.Errorf("on the bill %v, firewalls %v", got, f.names("firewalls"))
		}
	})
}

// TestHetznerSSHFirewallOfOtherOptionsIsAConflict: a firewall that was made
// for other sources must not serve this create.
func TestHetznerSSHFirewallOfOtherOptionsIsAConflict(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		f.fault("POST /servers", fault{status: 503})
		f.fault("GET /servers", slices.Repeat([]fault{{status: 503}}, 5)...)
		if _, _, err := h.CreateServer(t.Context(), sshOpts("node-1")); !errors.Is(err, provision.ErrUnavailable) {
			t.Fatal(err)
		}
		opts := sshOpts("node-1")
		opts.SSHSourceCIDRs = nil
		_, _, err := openHetzner(t, f, goodToken).CreateServer(t.Context(), opts)
		if !errors.Is(err, provision.ErrConflict) || len(f.names("servers")) != 0 {
			t.Errorf("%v, servers %v", err, f.names("servers"))
		}
	})
}

func TestHetznerDeleteEndsWithoutADeadline(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, sshOpts("node-1"))
		other := mustCreate(t, h, nodeOpts("node-2"))
		time.Sleep(time.Minute)
		// Somebody put the firewall on another server too.
		f.find("servers", other)["public_net"].(object)["firewalls"] = f.find("servers", id)["public_net"].(object)["firewalls"]
		begin := time.Now()
		err := h.DeleteServer(context.WithoutCancel(t.Context()), id)
		if took := time.Since(begin); !errors.Is(err, provision.ErrConflict) || took > 2*time.Minute || took < time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestHetznerIDsAreNumbers(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		for _, id := range []string{"", "0", "-5", "+5", "05", "5 ", "5/actions", "9223372036854775808", "0x5", "five"} {
			if err := h.DeleteServer(t.Context(), id); !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("%q: %v", id, err)
			}
		}
		if len(f.requests) != 0 {
			t.Errorf("requests: %v", f.requests)
		}
	})
}

func TestHetznerDeleteWaitsForTheSSHFirewall(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, sshOpts("node-1"))
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := h.DeleteServer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < fakeDeleting || took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		if got := f.names("firewalls"); !slices.Equal(got, []string{"acme-no-inbound"}) {
			t.Errorf("firewalls: %v", got)
		}
	})
}

func TestHetznerDeleteNamesTheFirewallThatStays(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, sshOpts("node-1"))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := h.DeleteServer(ctx, id)
		var e *provision.ProviderError
		if !errors.Is(err, provision.ErrConflict) || !strings.Contains(err.Error(), "node-1-ssh") || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if err := h.DeleteServer(t.Context(), id); err != nil || len(f.names("firewalls")) != 1 {
			t.Errorf("repeat: %v, firewalls %v", err, f.names("firewalls"))
		}
	})
}

func TestHetznerDeleteOfAProtectedServerSaysHowToLiftIt(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, nodeOpts("node-1"))
		f.tables["servers"][0]["_protected"] = true
		err := h.DeleteServer(t.Context(), id)
		var e *provision.ProviderError
		if !errors.Is(err, provision.ErrConflict) || !errors.As(err, &e) || !strings.Contains(e.Hint, "disable-protection "+id+" delete") {
			t.Errorf("got %v", err)
		}
	})
}

func TestHetznerDeleteRequests(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		id := mustCreate(t, h, nodeOpts("node-1"))
		time.Sleep(time.Minute)
		got := f.since(func() {
			if err := h.DeleteServer(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
		if want := []string{"DELETE /servers/" + id, "GET /firewalls"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
