package enroll_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

func beat(t *testing.T, d enroll.Dial, id *enroll.Identity) error {
	t.Helper()
	_, err := enroll.SendHeartbeat(t.Context(), d, id, enroll.Heartbeat{Facts: enroll.Facts{Kernel: "6.8"}, SentAt: d.Now()})
	return err
}

func renew(t *testing.T, d enroll.Dial, id *enroll.Identity) (*enroll.Identity, error) {
	t.Helper()
	return enroll.Renew(t.Context(), d, id, newKey(t))
}

func TestWholeLife(t *testing.T) {
	p := newPlane(t, func(c *planeConfig) { c.handler.HeartbeatInterval = 45 * time.Second })
	token := p.reg.Issue("n-1", "web-1", time.Hour)
	key := newKey(t)
	id, err := enroll.Join(t.Context(), p.dial(), token, key, enroll.Facts{OS: "Test OS"})
	if err != nil {
		t.Fatal(err)
	}
	if id.NodeID != "n-1" || id.NodeName != "web-1" || string(id.CAPEM) != string(p.ca.CertificatePEM()) || string(id.KeyPEM) != string(key) {
		t.Errorf("identity %v", id)
	}
	if cert, err := id.Certificate(); err != nil || cert.NotAfter.Sub(p.now.Now()) > 72*time.Hour || cert.NotAfter.Sub(p.now.Now()) < 71*time.Hour {
		t.Errorf("certificate until %v (%v)", cert.NotAfter, err)
	}
	reply, err := enroll.SendHeartbeat(t.Context(), p.dial(), id, enroll.Heartbeat{Facts: enroll.Facts{Kernel: "6.8"}, SentAt: p.now.Now()})
	if err != nil || reply.Interval != 45 || reply.Time.IsZero() {
		t.Errorf("heartbeat: %+v, %v", reply, err)
	}
	next, err := renew(t, p.dial(), id)
	if err != nil {
		t.Fatal(err)
	}
	if string(next.KeyPEM) == string(id.KeyPEM) || next.NodeID != id.NodeID || next.NodeName != id.NodeName {
		t.Error("the renewed identity has the old key, or another name")
	}
	if err := beat(t, p.dial(), id); err != nil {
		t.Errorf("the old one, while the new one was not used: %v", err)
	}
	if err := beat(t, p.dial(), next); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if err := beat(t, p.dial(), id); !errors.Is(err, enroll.ErrRevoked) {
		t.Errorf("the old one, after the new one was used: %v", err)
	}
	p.reg.Revoke("n-1")
	if err := beat(t, p.dial(), next); !errors.Is(err, enroll.ErrRevoked) || !enroll.IsFinal(err) {
		t.Errorf("after the node was taken out: %v, want ErrRevoked, final", err)
	}
	if _, err := renew(t, p.dial(), next); !errors.Is(err, enroll.ErrRevoked) || !enroll.IsFinal(err) {
		t.Errorf("renewal after the node was taken out: %v, want ErrRevoked, final", err)
	}
	if n := p.reg.Node("n-1"); n.Heartbeats != 3 || n.Renewals != 1 || n.Facts.Kernel != "6.8" {
		t.Errorf("the registry saw %+v", n)
	}
	p.quiet(t, token)
	if strings.Contains(p.log.String(), "PRIVATE KEY") {
		t.Error("the log holds a key")
	}
}

// Over the whole way: one token, many machines, real TLS.
func TestOneOfManyJoins(t *testing.T) {
	p := newPlane(t)
	token := p.reg.Issue("n", "n", time.Hour)
	var joined, refused atomic.Int64
	var wg sync.WaitGroup
	for range 40 {
		key := newKey(t)
		wg.Go(func() {
			switch _, err := enroll.Join(t.Context(), p.dial(), token, key, enroll.Facts{}); {
			case err == nil:
				joined.Add(1)
			case errors.Is(err, enroll.ErrTokenRefused) && enroll.IsFinal(err):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if joined.Load() != 1 || refused.Load() != 39 {
		t.Errorf("%d joined, %d were refused, want 1 and 39", joined.Load(), refused.Load())
	}
}

func TestJoinAgainAfterALostAnswer(t *testing.T) {
	var lose atomic.Bool
	lose.Store(true)
	p := newPlane(t, func(c *planeConfig) {
		c.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !lose.Swap(false) {
					h.ServeHTTP(w, r)
					return
				}
				h.ServeHTTP(discard{}, r) // the effect, without the answer
				panic(http.ErrAbortHandler)
			})
		}
	})
	token, key := p.reg.Issue("n", "n", time.Hour), newKey(t)
	if _, err := enroll.Join(t.Context(), p.dial(), token, key, enroll.Facts{}); err == nil || enroll.IsFinal(err) {
		t.Fatalf("with the answer lost: %v, want an error that is not final", err)
	}
	if !p.reg.Node("n").Joined {
		t.Fatal("the effect is not there: the test shows nothing")
	}
	if _, err := enroll.Join(t.Context(), p.dial(), token, newKey(t), enroll.Facts{}); !errors.Is(err, enroll.ErrTokenRefused) {
		t.Errorf("with another key: %v, want ErrTokenRefused", err)
	}
	id, err := enroll.Join(t.Context(), p.dial(), token, key, enroll.Facts{})
	if err != nil {
		t.Fatalf("with the same key: %v", err)
	}
	if err := beat(t, p.dial(), id); err != nil {
		t.Error(err)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestRenewAfterTheEnd(t *testing.T) {
	p := newPlane(t)
	id, other := p.join(t, "n"), p.join(t, "other")
	p.now.Advance(10 * 24 * time.Hour) // switched off for longer than the certificate lives
	if err := beat(t, p.dial(), id); err == nil || enroll.IsFinal(err) {
		t.Errorf("a heartbeat with an ended certificate: %v, want an error that is not final", err)
	}
	next, err := renew(t, p.dial(), id)
	if err != nil {
		t.Fatalf("a renewal within the grace: %v", err)
	}
	if err := beat(t, p.dial(), next); err != nil {
		t.Error(err)
	}
	p.reg.Revoke("other")
	if _, err := renew(t, p.dial(), other); !errors.Is(err, enroll.ErrRevoked) {
		t.Errorf("a renewal within the grace of a node that was taken out: %v, want ErrRevoked", err)
	}
	p.now.Advance(40 * 24 * time.Hour)
	if _, err := renew(t, p.dial(), next); !enroll.IsFinal(err) {
		t.Errorf("a renewal past the grace: %v, want a final error", err)
	}
	if n := p.reg.Node("n"); n.Heartbeats != 1 || n.Renewals != 1 {
		t.Errorf("the registry saw %+v", n)
	}
}

// A control plane whose clock was set back must not turn its fleet away for
// good.
func TestControlPlanesClockSetBack(t *testing.T) {
	p := newPlane(t)
	id := p.join(t, "n")
	d := p.dial()
	here := p.now.Now()
	d.Now = func() time.Time { return here.Add(-time.Hour) }
	p.now.Advance(-time.Hour)
	if err := beat(t, d, id); err == nil || enroll.IsFinal(err) {
		t.Errorf("got %v, want an error that is not final", err)
	}
	p.now.Advance(time.Hour)
	if err := beat(t, p.dial(), id); err != nil {
		t.Error(err)
	}
}

// Certificates that another CA, or this one for another purpose, signed.
func TestStrangersCertificates(t *testing.T) {
	p, q := newPlane(t), newPlane(t)
	stranger := q.join(t, "n")
	p.join(t, "n")
	if err := beat(t, p.dial(), stranger); err == nil {
		t.Error("another CA's node was let in")
	}
	server, err := p.ca.ServerCertificate("n")(nil)
	if err != nil {
		t.Fatal(err)
	}
	asNode := identityOf(t, server)
	if err := beat(t, p.dial(), asNode); err == nil {
		t.Error("the control plane's own certificate was taken for a node's")
	}
	if p.reg.Node("n").Heartbeats != 0 {
		t.Error("a heartbeat was noted")
	}
}

// No redirect is followed: a token goes to the one address that it is for.
func TestNoRedirects(t *testing.T) {
	q := newPlane(t)
	p := newPlane(t, func(c *planeConfig) {
		c.wrap = func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+q.addr+enroll.PathJoin, http.StatusTemporaryRedirect)
			})
		}
	})
	d := p.dial()
	d.Pins = append(d.Pins, q.ca.Fingerprint())
	_, err := enroll.Join(t.Context(), d, p.reg.Issue("n", "n", time.Hour), newKey(t), enroll.Facts{})
	if err == nil || enroll.IsFinal(err) || !strings.Contains(err.Error(), "307") {
		t.Errorf("got %v, want an error that says 307", err)
	}
	if len(q.requests()) != 0 {
		t.Error("the redirect was followed")
	}
}

// Whatever a broken or hostile control plane answers, it ends as an error, and
// not as an identity that does not work.
func TestWildAnswers(t *testing.T) {
	other := openCA(t, t.TempDir(), enroll.CAOptions{})
	var body func(good map[string]string) string
	status := http.StatusOK
	p := newPlane(t, func(c *planeConfig) {
		c.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := serveTo(h, r)
				good := map[string]string{}
				_ = json.Unmarshal(rec, &good)
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body(good)))
			})
		}
	})
	edit := func(key, value string) func(map[string]string) string {
		return func(m map[string]string) string { m[key] = value; data, _ := json.Marshal(m); return string(data) }
	}
	pair := func(nodeID string) string {
		signer, err := enroll.DecodeKey(newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.ca.SignNode(nodeID, signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		return string(c.PEM)
	}
	for _, tt := range []struct {
		name   string
		status int
		body   func(map[string]string) string
		ok     bool
	}{
		{"a newer control plane says more", 200, edit("news", "yes"), true},
		{"empty", 200, func(map[string]string) string { return "" }, false},
		{"HTML", 200, func(map[string]string) string { return "<html>" }, false},
		{"too long", 200, edit("news", strings.Repeat("x", 20<<10)), false},
		{"no certificate", 200, edit("certificate", ""), false},
		{"a certificate for another key", 200, edit("certificate", pair("n")), false},
		{"another node id", 200, edit("node_id", "m"), false},
		{"no node id", 200, edit("node_id", ""), false},
		{"a node id that climbs", 200, edit("node_id", "../../x"), false},
		{"another CA", 200, edit("ca", string(other.CertificatePEM())), false},
		{"no CA", 200, edit("ca", ""), false},
		{"a proxy's 502", 502, func(map[string]string) string { return "Bad Gateway" }, false},
		{"403 by somebody else", 403, func(map[string]string) string { return "Forbidden" }, false},
		{"204", 204, func(map[string]string) string { return "" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body, status = tt.body, tt.status
			id, err := enroll.Join(t.Context(), p.dial(), p.reg.Issue("n", "n", time.Hour), newKey(t), enroll.Facts{})
			if (err == nil) != tt.ok || (id != nil) != tt.ok {
				t.Errorf("got %v, %v", id, err)
			}
			if enroll.IsFinal(err) {
				t.Errorf("%v is final, though the control plane did not say so", err)
			}
		})
	}
}

type brokenRegistry struct {
	*enrolltest.Registry
	err error
}

func (b *brokenRegistry) Redeem(context.Context, enroll.RedeemRequest, func(string) (*enroll.Certificate, error)) (enroll.RedeemResult, error) {
	return enroll.RedeemResult{}, b.err
}

// Trouble behind the door is not final, and its words stay inside.
func TestRegistryInTrouble(t *testing.T) {
	reg := &brokenRegistry{Registry: &enrolltest.Registry{}, err: errors.New("disk full at /secret/place")}
	p := newPlane(t, func(c *planeConfig) { c.reg = reg })
	_, err := enroll.Join(t.Context(), p.dial(), enroll.NewToken(), newKey(t), enroll.Facts{})
	var r *enroll.RefusedError
	if !errors.As(err, &r) || r.Final || r.RetryAfter == 0 || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v (%+v), want a refusal that is not final and tells nothing", err, r)
	}
	if !strings.Contains(p.log.String(), "disk full") {
		t.Error("the log does not tell either")
	}
	reg.err = fmt.Errorf("slow down: %w", enroll.ErrThrottled)
	if _, err = enroll.Join(t.Context(), p.dial(), enroll.NewToken(), newKey(t), enroll.Facts{}); !errors.Is(err, enroll.ErrThrottled) || enroll.IsFinal(err) {
		t.Errorf("got %v, want ErrThrottled", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	ca := openCA(t, t.TempDir(), enroll.CAOptions{})
	for _, a := range []string{addr, "https://" + addr, "no such address", "", "::::", "127.0.0.1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := enroll.Join(ctx, enroll.Dial{Addr: a, Pins: pins(ca)}, enroll.NewToken(), newKey(t), enroll.Facts{})
		cancel()
		if err == nil || enroll.IsFinal(err) {
			t.Errorf("address %q: %v, want an error that is not final", a, err)
		}
	}
}

func TestIdentityIsRedacted(t *testing.T) {
	p := newPlane(t)
	id := p.join(t, "n")
	var out strings.Builder
	fmt.Fprintf(&out, "%v %+v %#v %s %v", id, id, id, id, *id)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "id", id)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "id", id)
	if s := out.String(); !strings.Contains(s, "n-name") || strings.Contains(s, "PRIVATE") || strings.Contains(s, "45 45 45") {
		t.Errorf("an identity prints as %s", s)
	}
}
