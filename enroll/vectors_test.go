package enroll_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

// The vectors were made by OpenSSL and by another language's HMAC, not by this
// package.

func readVectors(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestTokenVectors(t *testing.T) {
	var v struct {
		Comment string `json:"comment"`
		Derive  []struct {
			Key, Context, Token, ID string
			SecretHash              string `json:"secret_sha256"`
		} `json:"derive"`
		Refused []struct{ Why, Token string } `json:"refused"`
	}
	readVectors(t, "token.json", &v)
	if len(v.Derive) == 0 || len(v.Refused) == 0 {
		t.Fatal("no vectors")
	}
	for _, d := range v.Derive {
		key, err := hex.DecodeString(d.Key)
		if err != nil {
			t.Fatal(err)
		}
		got := enroll.DeriveToken(key, d.Context)
		hash := got.SecretHash()
		if got.Reveal() != d.Token || got.ID() != d.ID || hex.EncodeToString(hash[:]) != d.SecretHash {
			t.Errorf("context %q: got %s, want %s", d.Context, got.Reveal(), d.Token)
		}
		if parsed, err := enroll.ParseToken(d.Token); err != nil || parsed != got {
			t.Errorf("ParseToken(%s) = %v, %v", d.Token, parsed, err)
		}
	}
	for _, r := range v.Refused {
		if _, err := enroll.ParseToken(r.Token); err == nil {
			t.Errorf("%s: %q was taken for a token", r.Why, r.Token)
		}
	}
}

func TestPinVectors(t *testing.T) {
	var v struct {
		Comment string                                            `json:"comment"`
		Pins    []struct{ Name, Certificate, Fingerprint string } `json:"pins"`
	}
	readVectors(t, "pin.json", &v)
	if len(v.Pins) == 0 {
		t.Fatal("no vectors")
	}
	for _, p := range v.Pins {
		block, _ := pem.Decode([]byte(p.Certificate))
		if block == nil {
			t.Fatalf("%s: not PEM", p.Name)
		}
		if got := enroll.FingerprintOf(parseCert(t, block.Bytes)); string(got) != p.Fingerprint {
			t.Errorf("%s: %s, want %s", p.Name, got, p.Fingerprint)
		}
		if _, err := enroll.ParseFingerprint(p.Fingerprint); err != nil {
			t.Error(err)
		}
	}
}

type csrVectors struct {
	Comment  string `json:"comment"`
	Requests []struct {
		Name     string `json:"name"`
		CSR      string `json:"csr"`
		Accepted bool   `json:"accepted"`
		KeyHash  string `json:"key_sha256"`
		Why      string `json:"why"`
	} `json:"requests"`
}

func vectorCSR(t testing.TB, name string) string {
	t.Helper()
	var v csrVectors
	readVectors(t, "csr.json", &v)
	for _, r := range v.Requests {
		if r.Name == name {
			return r.CSR
		}
	}
	t.Fatalf("no vector %q", name)
	return ""
}

// keyNoter remembers what the registry was told.
type keyNoter struct {
	*enrolltest.Registry
	last enroll.RedeemRequest
}

func (k *keyNoter) Redeem(ctx context.Context, r enroll.RedeemRequest, sign func(string) (*enroll.Certificate, error)) (enroll.RedeemResult, error) {
	k.last = r
	return k.Registry.Redeem(ctx, r, sign)
}

func TestCSRVectors(t *testing.T) {
	var v csrVectors
	readVectors(t, "csr.json", &v)
	if len(v.Requests) == 0 {
		t.Fatal("no vectors")
	}
	reg := &keyNoter{Registry: &enrolltest.Registry{}}
	h := enroll.NewHandler(openCA(t, t.TempDir(), enroll.CAOptions{}), reg, enroll.HandlerOptions{})
	for _, r := range v.Requests {
		t.Run(r.Name, func(t *testing.T) {
			token := reg.Issue("node-1", "web-1", time.Hour)
			a := serve(t, h, joinJSON(t, token.Reveal(), r.CSR))
			if !r.Accepted {
				if a.status != http.StatusBadRequest || !strings.Contains(a.body, r.Why) {
					t.Errorf("HTTP %d, want 400 that says %q: %s", a.status, r.Why, a.body)
				}
				return
			}
			if a.status != http.StatusOK || reg.last.KeyHash != r.KeyHash {
				t.Fatalf("HTTP %d, key %s, want 200 and %s: %s", a.status, reg.last.KeyHash, r.KeyHash, a.body)
			}
			var got struct{ Certificate string }
			if err := json.Unmarshal([]byte(a.body), &got); err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode([]byte(got.Certificate))
			// Whatever the request asked to be called.
			if c := parseCert(t, block.Bytes); c.Subject.String() != "CN=node-1" || c.URIs[0].String() != "urn:node:node-1" {
				t.Errorf("certificate of %s, %v", c.Subject, c.URIs)
			}
		})
	}
}

// serve posts a join to a handler without a network.
func serve(t testing.TB, h http.Handler, body string) answer {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", enroll.PathJoin, strings.NewReader(body)))
	a := answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a)
	return a
}

// FuzzJoin feeds the door that is open to everybody.
func FuzzJoin(f *testing.F) {
	csr := vectorCSR(f, "p256")
	reg := &enrolltest.Registry{}
	token := reg.Issue("node-1", "web-1", time.Hour)
	dir := f.TempDir()
	ca, err := enroll.OpenCA(dir, enroll.CAOptions{})
	if err != nil {
		f.Fatal(err)
	}
	h := enroll.NewHandler(ca, reg, enroll.HandlerOptions{JoinsPerMinute: 1 << 30})
	good, _ := json.Marshal(map[string]any{"token": token.Reveal(), "csr": csr})
	f.Add(string(good))
	f.Add(`{"token":"","csr":"","facts":{"os":"x"}}`)
	f.Add(`{"csr":"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"}`)
	f.Add(`[`)
	f.Add(strings.Repeat("[", 10_000))
	f.Fuzz(func(t *testing.T, body string) {
		a := serve(t, h, body)
		switch a.status {
		case http.StatusOK:
			if !strings.Contains(body, token.ID()) {
				t.Errorf("joined by %q", body)
			}
		case http.StatusBadRequest, http.StatusForbidden:
			if !a.Final || a.Code == "" || a.Time.IsZero() {
				t.Errorf("a refusal without its parts: %s", a.body)
			}
		default:
			t.Errorf("HTTP %d for %q", a.status, body)
		}
	})
}
