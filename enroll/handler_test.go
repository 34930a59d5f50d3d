package enroll_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

type answer struct {
	status     int
	retryAfter int
	header     http.Header
	Code       string    `json:"code"`
	Message    string    `json:"message"`
	Final      bool      `json:"final"`
	Time       time.Time `json:"time"`
	body       string
}

// post sends a raw request, with a client certificate if id is not nil.
func (p *plane) post(t *testing.T, id *enroll.Identity, method, path, body string) answer {
	t.Helper()
	cfg, err := enroll.PinnedTLSConfig(p.ca.Fingerprint())
	if err != nil {
		t.Fatal(err)
	}
	if id != nil {
		pair, err := tls.X509KeyPair(id.CertificatePEM, id.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	tr := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
	a.retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
	_ = json.Unmarshal(data, &a)
	return a
}

func joinJSON(t *testing.T, token string, csr string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"token": token, "csr": csr, "facts": map[string]string{"os": "Test OS"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Unknown, wrong, expired, used, malformed, of a node that is gone: nobody can
// tell one from another.
func TestRefusedTokensLookTheSame(t *testing.T) {
	p := newPlane(t)
	csr := vectorCSR(t, "p256")
	expired := p.reg.Issue("expired", "expired", time.Minute)
	p.now.Advance(2 * time.Minute)
	used := p.reg.Issue("used", "used", time.Hour)
	if _, err := enroll.Join(t.Context(), p.dial(), used, newKey(t), enroll.Facts{}); err != nil {
		t.Fatal(err)
	}
	gone := p.reg.Issue("gone", "gone", time.Hour)
	p.reg.Revoke("gone")
	fresh := p.reg.Issue("fresh", "fresh", time.Hour)
	wrong := fresh.Reveal()[:22] + enroll.NewToken().Reveal()[22:]

	var first *answer
	for what, token := range map[string]string{
		"unknown": enroll.NewToken().Reveal(), "wrong secret": wrong, "expired": expired.Reveal(),
		"used": used.Reveal(), "node gone": gone.Reveal(), "malformed": "hello", "empty": "",
	} {
		a := p.post(t, nil, "POST", enroll.PathJoin, joinJSON(t, token, csr))
		if a.status != http.StatusForbidden || a.Code != "token_refused" || !a.Final {
			t.Errorf("%s: HTTP %d, %s", what, a.status, a.body)
		}
		a.header.Del("Date")
		if first == nil {
			first = &a
			continue
		}
		if a.Message != first.Message || len(a.body) != len(first.body) || len(a.header) != len(first.header) {
			t.Errorf("%s differs from the others:\n%s\n%s", what, a.body, first.body)
		}
	}
	if n := p.reg.Node("fresh"); n.Joined {
		t.Error("a node joined with a wrong secret")
	}
	log := p.log.String()
	for _, why := range []string{"no such token", "secret is wrong", "has expired", "used with another key", "node is gone", "malformed"} {
		if !strings.Contains(log, why) {
			t.Errorf("the log does not say %q", why)
		}
	}
	for _, token := range []enroll.Token{expired, used, gone, fresh} {
		p.quiet(t, token)
		if !strings.Contains(log, token.ID()) {
			t.Errorf("the log does not name token %s", token.ID())
		}
	}
}

// A refusal comes after the same time, whatever the registry had to look at.
func TestRefusalsTakeTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := openCA(t, t.TempDir(), enroll.CAOptions{})
		reg := &enrolltest.Registry{}
		h := enroll.NewHandler(ca, reg, enroll.HandlerOptions{})
		csr := vectorCSR(t, "p256")
		var took []time.Duration
		for _, token := range []string{"malformed", enroll.NewToken().Reveal(), reg.Issue("n", "n", -time.Hour).Reveal()} {
			start := time.Now()
			w := serve(t, h, joinJSON(t, token, csr))
			if w.status != http.StatusForbidden {
				t.Fatalf("HTTP %d", w.status)
			}
			took = append(took, time.Since(start))
		}
		for _, d := range took {
			if d != took[0] || d < 50*time.Millisecond {
				t.Fatalf("refusals took %v", took)
			}
		}
		start := time.Now()
		if w := serve(t, h, joinJSON(t, reg.Issue("m", "m", time.Hour).Reveal(), csr)); w.status != http.StatusOK || time.Since(start) != 0 {
			t.Errorf("a good token: HTTP %d after %s, want 200 at once", w.status, time.Since(start))
		}
	})
}

func TestHandlerRefusesWildRequests(t *testing.T) {
	p := newPlane(t)
	id := p.join(t, "n")
	token := p.reg.Issue("m", "m", time.Hour)
	good := vectorCSR(t, "p256")
	body := joinJSON(t, token.Reveal(), good)
	for _, tt := range []struct {
		name, method, path, body string
		id                       *enroll.Identity
		status                   int
		code                     string
		final                    bool
	}{
		{"GET join", "GET", enroll.PathJoin, "", nil, 405, "", false},
		{"PUT join", "PUT", enroll.PathJoin, body, nil, 405, "", false},
		{"GET heartbeat", "GET", enroll.PathHeartbeat, "", id, 405, "", false},
		{"another path", "POST", "/enroll/v1/other", body, nil, 404, "", false},
		{"the token in the URL", "POST", enroll.PathJoin + "?token=" + token.Reveal(), joinJSON(t, "", good), nil, 403, "token_refused", true},
		{"no body", "POST", enroll.PathJoin, "", nil, 400, "bad_request", true},
		{"not JSON", "POST", enroll.PathJoin, "token=x", nil, 400, "bad_request", true},
		{"a list", "POST", enroll.PathJoin, "[]", nil, 400, "bad_request", true},
		{"an unknown field", "POST", enroll.PathJoin, strings.Replace(body, `"csr"`, `"node_id":"x","csr"`, 1), nil, 400, "bad_request", true},
		{"something behind", "POST", enroll.PathJoin, body + "{}", nil, 400, "bad_request", true},
		{"too large", "POST", enroll.PathJoin, `{"token":"` + strings.Repeat("x", 17<<10) + `"}`, nil, 400, "bad_request", true},
		{"too large by spaces", "POST", enroll.PathJoin, body + strings.Repeat(" ", 17<<10), nil, 400, "bad_request", true},
		{"heartbeat without a certificate", "POST", enroll.PathHeartbeat, "{}", nil, 401, "no_identity", true},
		{"renew without a certificate", "POST", enroll.PathRenew, `{"csr":""}`, nil, 401, "no_identity", true},
		{"renew without a request", "POST", enroll.PathRenew, `{}`, id, 400, "bad_request", true},
		{"heartbeat, not JSON", "POST", enroll.PathHeartbeat, `x`, id, 400, "bad_request", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := p.post(t, tt.id, tt.method, tt.path, tt.body)
			if a.status != tt.status || a.Code != tt.code || a.Final != tt.final {
				t.Errorf("HTTP %d, code %q, final %v, want %d, %q, %v:\n%s", a.status, a.Code, a.Final, tt.status, tt.code, tt.final, a.body)
			}
			if tt.code != "" && a.Time.IsZero() {
				t.Error("the answer does not say what time it is")
			}
		})
	}
	if p.reg.Node("m").Joined {
		t.Error("a node joined by a request that was refused")
	}
	p.quiet(t, token)
}

func TestJoinThrottledBySource(t *testing.T) {
	p := newPlane(t, func(c *planeConfig) { c.handler.JoinsPerMinute = 3 })
	body := joinJSON(t, enroll.NewToken().Reveal(), vectorCSR(t, "p256"))
	for i := range 3 {
		if a := p.post(t, nil, "POST", enroll.PathJoin, body); a.status != 403 {
			t.Fatalf("attempt %d: HTTP %d", i+1, a.status)
		}
	}
	a := p.post(t, nil, "POST", enroll.PathJoin, body)
	if a.status != 429 || a.Code != "throttled" || a.Final || a.retryAfter < 1 || a.retryAfter > 20 {
		t.Fatalf("HTTP %d, Retry-After %d: %s", a.status, a.retryAfter, a.body)
	}
	_, err := enroll.Join(t.Context(), p.dial(), enroll.NewToken(), newKey(t), enroll.Facts{})
	var r *enroll.RefusedError
	if !errors.As(err, &r) || !errors.Is(err, enroll.ErrThrottled) || r.Final || r.RetryAfter < time.Second {
		t.Errorf("the client half: %v (%+v)", err, r)
	}
	p.now.Advance(20 * time.Second)
	if a := p.post(t, nil, "POST", enroll.PathJoin, body); a.status != 403 {
		t.Errorf("after the pause: HTTP %d", a.status)
	}
}

func TestFactsAreCleaned(t *testing.T) {
	p := newPlane(t)
	token := p.reg.Issue("n", "n", time.Hour)
	_, err := enroll.Join(t.Context(), p.dial(), token, newKey(t), enroll.Facts{
		OS: "Ubuntu\n24.04\x1b[31m", Kernel: strings.Repeat("k", 500), Hostname: "vm\u202e-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := p.reg.Node("n").Facts
	want := enroll.Facts{OS: "Ubuntu24.04[31m", Kernel: strings.Repeat("k", 128), Hostname: "vm-1"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if src := p.reg.Node("n").Source; src != "127.0.0.1" {
		t.Errorf("source %q", src)
	}
}

func TestAnswersAreNotCached(t *testing.T) {
	p := newPlane(t)
	a := p.post(t, nil, "POST", enroll.PathJoin, joinJSON(t, p.reg.Issue("n", "n", time.Hour).Reveal(), vectorCSR(t, "p256")))
	if a.status != 200 || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("HTTP %d, %v", a.status, a.header)
	}
	var got struct {
		NodeID      string    `json:"node_id"`
		NodeName    string    `json:"node_name"`
		Certificate string    `json:"certificate"`
		CA          string    `json:"ca"`
		Time        time.Time `json:"time"`
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(a.body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.NodeID != "n" || got.CA != string(p.ca.CertificatePEM()) || !got.Time.Equal(p.now.Now().Truncate(time.Millisecond)) {
		t.Errorf("answer %+v", got)
	}
}
