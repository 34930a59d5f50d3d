package agent

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

func (w *world) stored() record {
	w.t.Helper()
	rec, ok, err := vault{w.root + testIdentity}.load()
	if err != nil || !ok {
		w.t.Fatalf("stored identity: %v, %v", ok, err)
	}
	return rec
}

func TestRenew(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	first := w.stored()
	// Chance is one half: 65 % of 72 hours and ten minutes from its begin.
	r.step(46*time.Hour + 30*time.Minute)
	if n := w.reg.Node("n-1"); n.Renewals != 0 {
		t.Fatalf("renewed at %d %% of its life", 46*100/72)
	}
	r.step(time.Hour)
	if n := w.reg.Node("n-1"); n.Renewals != 1 || n.Heartbeats != 3 || len(n.Serials) != 1 {
		t.Fatalf("the registry saw %+v\n%s", n, w.log)
	}
	second := w.stored()
	if second.Key == first.Key || second.Certificate == first.Certificate {
		t.Error("the renewed identity has the old key or certificate")
	}
	if second.Previous != nil {
		t.Error("the old certificate is kept though the new one was seen to work")
	}
	for range 5 {
		r.step(40 * time.Second)
	}
	if n := w.reg.Node("n-1"); n.Renewals != 1 || n.Heartbeats != 8 {
		t.Errorf("the registry saw %+v", n)
	}
	r.end()
}

func TestRenewalMoment(t *testing.T) {
	w := newWorld(t)
	w.joined()
	rec := w.stored()
	cert, err := rec.identity().Certificate()
	if err != nil {
		t.Fatal(err)
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	for _, chance := range []float64{0, 0.25, 0.999} {
		a := &agent{cfg: w.config(), rec: rec}
		a.cfg.Random = func() float64 { return chance }
		a.planRenewal()
		if part := float64(a.renewAt.Sub(cert.NotBefore)) / float64(life); part < 0.5 || part > 0.8 {
			t.Errorf("chance %v: at %.2f of the certificate's life, want 0.5 to 0.8", chance, part)
		}
	}
}

// The control plane noted a renewal whose answer never came, or came and was
// forgotten by a restored backup: the node goes on with what works.
func TestRenewalFails(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	before := w.stored()
	w.answerWith(func(rw http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != enroll.PathRenew {
			return false
		}
		rw.WriteHeader(http.StatusBadGateway)
		return true
	})
	r.step(50 * time.Hour)
	if n := w.reg.Node("n-1"); n.Heartbeats != 2 || w.stored().Certificate != before.Certificate {
		t.Errorf("a renewal that failed kept the heartbeat: %+v", n)
	}
	w.wantLog("certificate not renewed", 1)
	w.answerWith(nil)
	r.step(time.Minute)
	if n := w.reg.Node("n-1"); n.Renewals != 1 || n.Heartbeats != 3 {
		t.Errorf("it was not tried again: %+v", n)
	}
}

func TestRenewedCertificateIsUnknown(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	old := w.stored()
	serials := w.reg.Node("n-1").Serials
	w.answerWith(func(rw http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path != enroll.PathHeartbeat || len(req.TLS.PeerCertificates) == 0 {
			return false
		}
		if serial := req.TLS.PeerCertificates[0].SerialNumber.Text(16); serial == serials[0] {
			return false
		}
		rw.WriteHeader(http.StatusForbidden)
		_, _ = rw.Write([]byte(`{"code":"revoked","message":"this node is no longer let in","final":true}`))
		return true
	})
	r.step(50 * time.Hour)
	if got := w.stored(); got.Certificate != old.Certificate || got.Previous != nil {
		t.Errorf("it did not go back to the certificate that works\n%s", w.log)
	}
	if n := w.reg.Node("n-1"); n.Renewals != 1 || n.Heartbeats != 2 {
		t.Errorf("the registry saw %+v", n)
	}
	w.wantLog("the renewed certificate is not let in", 1)
}

func TestRevoked(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	w.reg.Revoke("n-1")
	for range 5 {
		if d := r.step(retryFinal); d != retryFinal {
			t.Errorf("the pause is %s, want %s: the process stays, and is quiet", d, retryFinal)
		}
	}
	w.wantLog("this node is no longer let in", 1)
	r.end()
}

func TestOffForLong(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	r.end()
	w.clock.Advance(20 * 24 * time.Hour) // the certificate has run out
	r = w.run(w.config())
	r.asleep()
	if n := w.reg.Node("n-1"); n.Renewals != 1 || n.Heartbeats != 2 {
		t.Errorf("after three weeks: %+v\n%s", n, w.log)
	}
	r.end()
	w.clock.Advance(60 * 24 * time.Hour) // and past the grace
	r = w.run(w.config())
	if d := r.asleep(); d != retryFinal {
		t.Errorf("past the grace the pause is %s, want %s", d, retryFinal)
	}
	w.wantLog("the node's certificate has run out", 2) // not renewed, and what the heartbeat failed by
}

func TestRestartWithoutToken(t *testing.T) {
	w := newWorld(t)
	r, token := w.joined()
	r.end()
	requests := len(w.requests())
	// The machine starts again: cloud-init writes its records anew.
	w.boot(token, w.ca.Fingerprint())
	if err := os.Remove(w.root + testJoinFile); err != nil {
		t.Fatal(err)
	}
	r = w.run(w.config())
	r.asleep()
	if got := w.requests()[requests:]; len(got) != 1 || got[0] != enroll.PathHeartbeat {
		t.Errorf("requests %v, want one heartbeat", got)
	}
	w.noTrace(token)
	r.end()
}

// cloud-init may run everything again: an identity wins over a used token.
func TestRestartWithTheUsedToken(t *testing.T) {
	w := newWorld(t)
	r, token := w.joined()
	r.end()
	w.boot(token, w.ca.Fingerprint())
	r = w.run(w.config())
	r.asleep()
	if n := w.reg.Node("n-1"); n.Heartbeats != 2 || n.Misused != 0 {
		t.Errorf("the registry saw %+v\n%s", n, w.log)
	}
	if exists(w.root + testJoinFile) {
		t.Error("the join file is still there")
	}
	w.noTrace(token)
	r.end()
}

// A crash between the storing of the identity and the tidying up.
func TestRestartAfterACrashBeforeTidying(t *testing.T) {
	w := newWorld(t)
	r, token := w.joined()
	r.end()
	w.boot(token, w.ca.Fingerprint())
	left := w.root + testIdentity + "/" + pendingFile + ".123"
	writeTest(t, left, "half a key", 0o600)
	r = w.run(w.config())
	r.asleep()
	if exists(left) {
		t.Error("what an interrupted write left is still there")
	}
	w.noTrace(token)
	r.end()
}

// A disk that was copied to another machine carries an identity that is not
// this machine's.
func TestCopyOfADisk(t *testing.T) {
	w := newWorld(t)
	r, used := w.joined()
	r.end()
	beats := w.reg.Node("n-1").Heartbeats

	writeTest(t, w.root+"/var/lib/cloud/data/instance-id", "i-2\n", 0o644)
	r = w.run(w.config())
	if d := r.asleep(); d != retryFinal {
		t.Errorf("the pause is %s, want %s", d, retryFinal)
	}
	w.wantLog("this disk is a copy of another node's", 1)
	if n := w.reg.Node("n-1"); n.Heartbeats != beats {
		t.Error("two machines use one identity")
	}
	r.end()

	// With the used token, as cloud-init would write it from the same user-data.
	w.boot(used, w.ca.Fingerprint())
	writeTest(t, w.root+"/var/lib/cloud/data/instance-id", "i-2\n", 0o644)
	r = w.run(w.config())
	if d := r.asleep(); d != retryFinal {
		t.Errorf("with the used token the pause is %s, want %s", d, retryFinal)
	}
	r.end()

	// With a token of its own it becomes a node of its own.
	own := w.reg.Issue("n-2", "web-2", time.Hour)
	w.boot(own, w.ca.Fingerprint())
	writeTest(t, w.root+"/var/lib/cloud/data/instance-id", "i-2\n", 0o644)
	r = w.run(w.config())
	r.asleep()
	if n := w.reg.Node("n-2"); !n.Joined || n.Heartbeats != 1 {
		t.Errorf("the copy did not join as itself: %+v\n%s", n, w.log)
	}
	if got := w.stored(); got.NodeID != "n-2" || got.MachineID != "instance:i-2" {
		t.Errorf("stored %s, %s", got.NodeID, got.MachineID)
	}
	r.end()
}

func TestOtherMachine(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"dmi:1", "dmi:1", false}, {"dmi:1", "dmi:2", true}, {"instance:1", "instance:2", true},
		{"dmi:1", "instance:1", false}, {"", "dmi:1", false}, {"dmi:1", "", false}, {"", "", false},
	} {
		if got := otherMachine(tt.a, tt.b); got != tt.want {
			t.Errorf("otherMachine(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestMachineID(t *testing.T) {
	root := t.TempDir()
	c := Config{Root: root}
	if got := c.machineID(); got != "" {
		t.Errorf("with nothing to go by: %q", got)
	}
	// What cloud-init calls a machine whose metadata service did not answer.
	writeTest(t, root+"/var/lib/cloud/data/instance-id", "iid-datasource-none\n", 0o644)
	if got := c.machineID(); got != "" {
		t.Errorf("no datasource: %q", got)
	}
	writeTest(t, root+"/var/lib/cloud/data/instance-id", "i-0ABC\n", 0o644)
	if got := c.machineID(); got != "instance:i-0abc" {
		t.Errorf("by instance id: %q", got)
	}
	writeTest(t, root+"/sys/class/dmi/id/product_uuid", "EC2A-1\n", 0o400)
	if got := c.machineID(); got != "dmi:ec2a-1" {
		t.Errorf("by firmware: %q", got)
	}
}

func TestDamagedIdentity(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON": "{", "empty": "", "no key": `{"node_id":"n-1","certificate":"","key":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			writeTest(t, w.root+testIdentity+"/"+identityFile, text, 0o600)
			err := Run(t.Context(), w.config())
			if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "new join token") {
				t.Errorf("got %v, want an error that says what to do", err)
			}
		})
	}
}

func TestThrottled(t *testing.T) {
	w := newWorld(t)
	r, _ := w.joined()
	for asked, want := range map[string]time.Duration{"90": 90 * time.Second, "999999999": retryFinal} {
		w.answerWith(func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Retry-After", asked)
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = rw.Write([]byte(`{"code":"throttled","message":"later","final":false}`))
			return true
		})
		if d := r.step(40 * time.Second); d != want {
			t.Errorf("asked to wait for %s s, the pause is %s, want %s", asked, d, want)
		}
	}
	w.answerWith(nil)
	if d := r.step(time.Minute); d != 38*time.Second {
		t.Errorf("let in again, the pause is %s", d)
	}
	w.wantLog("the control plane has heard from this node", 2)
}
