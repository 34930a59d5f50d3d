package enroll_test

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

// The handler does not lean on the handshake: whatever the listener let
// through, only a node's own certificate of this CA counts.
func TestWhoIsANode(t *testing.T) {
	dir := t.TempDir()
	ca := openCA(t, dir, enroll.CAOptions{})
	caCert := parseCert(t, caDER(t, ca))
	data, err := os.ReadFile(dir + "/ca.key")
	if err != nil {
		t.Fatal(err)
	}
	caKey, err := enroll.DecodeKey(data)
	if err != nil {
		t.Fatal(err)
	}
	stranger := newForger(t, nil)

	reg := &enrolltest.Registry{}
	h := enroll.NewHandler(ca, reg, enroll.HandlerOptions{})
	serial := big.NewInt(0x1234)
	token := reg.Issue("n", "n", time.Hour)
	_, err = reg.Redeem(t.Context(), enroll.RedeemRequest{TokenID: token.ID(), SecretHash: token.SecretHash(), KeyHash: "k"},
		func(string) (*enroll.Certificate, error) { return &enroll.Certificate{Serial: "1234"}, nil })
	if err != nil {
		t.Fatal(err)
	}
	urn := func(s string) []*url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return []*url.URL{u}
	}
	for name, tt := range map[string]struct {
		edit   func(*x509.Certificate)
		parent *x509.Certificate
		key    crypto.Signer
		want   int
	}{
		"a node":                     {func(*x509.Certificate) {}, caCert, caKey, 200},
		"the name does not count":    {func(c *x509.Certificate) { c.Subject.CommonName = "other" }, caCert, caKey, 200},
		"of another CA":              {func(*x509.Certificate) {}, stranger.cert, stranger.key, 401},
		"for servers":                {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, caCert, caKey, 401},
		"for nothing":                {func(c *x509.Certificate) { c.ExtKeyUsage = nil }, caCert, caKey, 401},
		"a CA":                       {func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }, caCert, caKey, 401},
		"without a node id":          {func(c *x509.Certificate) { c.URIs = nil }, caCert, caKey, 401},
		"with two node ids":          {func(c *x509.Certificate) { c.URIs = append(c.URIs, urn("urn:node:m")...) }, caCert, caKey, 401},
		"another kind of name":       {func(c *x509.Certificate) { c.URIs = urn("urn:uuid:n") }, caCert, caKey, 401},
		"another scheme":             {func(c *x509.Certificate) { c.URIs = urn("https://node:1/n") }, caCert, caKey, 401},
		"an empty node id":           {func(c *x509.Certificate) { c.URIs = urn("urn:node:") }, caCert, caKey, 401},
		"a node id that is none":     {func(c *x509.Certificate) { c.URIs = urn("urn:node:n%20") }, caCert, caKey, 401},
		"ended":                      {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, caCert, caKey, 401},
		"not begun":                  {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }, caCert, caKey, 401},
		"another node's id":          {func(c *x509.Certificate) { c.URIs = urn("urn:node:m") }, caCert, caKey, 403},
		"a serial that is not noted": {func(c *x509.Certificate) { c.SerialNumber = big.NewInt(0x99) }, caCert, caKey, 403},
	} {
		t.Run(name, func(t *testing.T) {
			c := &x509.Certificate{
				SerialNumber: serial, Subject: pkix.Name{CommonName: "n"}, URIs: urn("urn:node:n"),
				NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			}
			tt.edit(c)
			der, err := x509.CreateCertificate(rand.Reader, c, tt.parent, ecKey(t).Public(), tt.key)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, enroll.PathHeartbeat, strings.NewReader(`{"facts":{},"sent_at":"2026-03-01T12:00:00Z"}`))
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{parseCert(t, der)}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("HTTP %d, want %d: %s", w.Code, tt.want, w.Body)
			}
		})
	}
}
