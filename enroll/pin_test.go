package enroll_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

func TestParseFingerprint(t *testing.T) {
	good := "sha256:" + strings.Repeat("0a", 32)
	if f, err := enroll.ParseFingerprint(good); err != nil || string(f) != good {
		t.Errorf("ParseFingerprint(%q) = %q, %v", good, f, err)
	}
	for _, s := range []string{"", "sha256:", good[7:], strings.ToUpper(good), good + "0", good[:70], " " + good, good + "\n", "sha512:" + good[7:], strings.Replace(good, "a", "g", 1)} {
		if f, err := enroll.ParseFingerprint(s); err == nil || f != "" {
			t.Errorf("ParseFingerprint(%q) = %q, %v, want an error", s, f, err)
		}
	}
}

// A CA certificate that is made anew over the same key keeps the fingerprint.
func TestFingerprintIsOfTheKey(t *testing.T) {
	dir := t.TempDir()
	a := openCA(t, dir, enroll.CAOptions{Name: "One"})
	remove(t, dir+"/ca.crt")
	b := openCA(t, dir, enroll.CAOptions{Name: "Two"})
	if string(a.CertificatePEM()) == string(b.CertificatePEM()) {
		t.Fatal("the certificate is the same: the test shows nothing")
	}
	if a.Fingerprint() != b.Fingerprint() {
		t.Errorf("%s and %s for one key", a.Fingerprint(), b.Fingerprint())
	}
}

func TestPinnedTLSConfigHasNoWayOut(t *testing.T) {
	if _, err := enroll.PinnedTLSConfig(""); err == nil {
		t.Error("an empty pin was taken: it must be an error, never no check")
	}
	if _, err := enroll.PinnedTLSConfig("sha256:"+enroll.Fingerprint(strings.Repeat("0", 64)), "nonsense"); err == nil {
		t.Error("a malformed pin was taken")
	}
	for what, pins := range map[string][]enroll.Fingerprint{"no pin": nil, "a pin": {"sha256:" + enroll.Fingerprint(strings.Repeat("0", 64))}} {
		cfg, err := enroll.PinnedTLSConfig(pins...)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.MinVersion != tls.VersionTLS13 {
			t.Errorf("%s: TLS below 1.3", what)
		}
		if cfg.InsecureSkipVerify && cfg.VerifyConnection == nil {
			t.Errorf("%s: nothing is checked", what)
		}
		if len(pins) == 0 && cfg.InsecureSkipVerify {
			t.Errorf("%s: the system's roots are not asked", what)
		}
	}
}

// forger makes certificates as an adversary, or a careless admin, would.
type forger struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newForger(t *testing.T, edit func(*x509.Certificate)) *forger {
	t.Helper()
	f := &forger{key: ecKey(t)}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Forged CA"}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if edit != nil {
		edit(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, f.key.Public(), f.key)
	if err != nil {
		t.Fatal(err)
	}
	f.cert = parseCert(t, der)
	return f
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (f *forger) leaf(t *testing.T, edit func(*x509.Certificate), chain ...*x509.Certificate) tls.Certificate {
	t.Helper()
	key := ecKey(t)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if edit != nil {
		edit(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, f.cert, key.Public(), f.key)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	return c
}

func serving(cert tls.Certificate) planeOption {
	return func(c *planeConfig) {
		c.tls = func(*enroll.CA) *tls.Config {
			return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
		}
	}
}

// Whoever shows a wrong chain gets nothing: no token, no request at all.
func TestJoinSendsNothingToAWrongServer(t *testing.T) {
	good := newForger(t, nil)
	evil := newForger(t, nil)
	notCA := newForger(t, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature })
	ended := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	}
	early := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
	}
	for _, tt := range []struct {
		name string
		cert tls.Certificate
		pin  *x509.Certificate
		want error // nil: any but the two below
	}{
		{"another CA", evil.leaf(t, nil, evil.cert), good.cert, enroll.ErrWrongCA},
		{"the root is not in the chain", good.leaf(t, nil), good.cert, enroll.ErrWrongCA},
		{"the pinned root beside a leaf of another", evil.leaf(t, nil, good.cert), good.cert, enroll.ErrWrongCA},
		{"both roots beside a leaf of the wrong one", evil.leaf(t, nil, evil.cert, good.cert), good.cert, enroll.ErrWrongCA},
		{"the pin is of a certificate that is no CA", notCA.leaf(t, nil, notCA.cert), notCA.cert, enroll.ErrWrongCA},
		{"the pin is of the leaf's key", selfSigned(t, good), nil, enroll.ErrWrongCA},
		{"a name that was not dialled", good.leaf(t, func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"other.example"}, nil }, good.cert), good.cert, nil},
		{"a node's certificate", good.leaf(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, good.cert), good.cert, nil},
		{"ended", good.leaf(t, ended, good.cert), good.cert, enroll.ErrClockSkew},
		{"not begun", good.leaf(t, early, good.cert), good.cert, enroll.ErrClockSkew},
		{"ended, and another CA", evil.leaf(t, ended, evil.cert), good.cert, enroll.ErrWrongCA},
		{"ended, and another name", good.leaf(t, func(c *x509.Certificate) { ended(c); c.IPAddresses = nil }, good.cert), good.cert, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlane(t, serving(tt.cert))
			if tt.pin == nil {
				tt.pin = parseCert(t, tt.cert.Certificate[0])
			}
			token := p.reg.Issue("n", "n", time.Hour)
			d := enroll.Dial{Addr: p.addr, Pins: []enroll.Fingerprint{enroll.FingerprintOf(tt.pin)}}
			_, err := enroll.Join(t.Context(), d, token, newKey(t), enroll.Facts{})
			if err == nil {
				t.Fatal("joined")
			}
			for _, e := range []error{enroll.ErrWrongCA, enroll.ErrClockSkew} {
				if got := errors.Is(err, e); got != (e == tt.want) {
					t.Errorf("errors.Is(%v, %v) is %v", err, e, got)
				}
			}
			if enroll.IsFinal(err) {
				t.Errorf("%v is final: a clock or an address can be mended", err)
			}
			if n := len(p.requests()); n != 0 {
				t.Errorf("%d requests arrived at a server that was not believed", n)
			}
			if strings.Contains(err.Error(), token.Reveal()) {
				t.Error("the error tells the token")
			}
		})
	}
}

func selfSigned(t *testing.T, like *forger) tls.Certificate {
	t.Helper()
	own := &forger{key: ecKey(t), cert: like.cert}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(3), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &x509.Certificate{SerialNumber: big.NewInt(3)}, own.key.Public(), own.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own.key}
}

func TestClockSkewSaysBothTimes(t *testing.T) {
	p := newPlane(t)
	for _, tt := range []struct {
		name string
		by   time.Duration
		want string
	}{
		{"behind", -20 * time.Minute, "set the clock"},
		{"ahead", 30 * 24 * time.Hour, "one of the two clocks is wrong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here := p.now.Now().Add(tt.by)
			d := p.dial()
			d.Now = func() time.Time { return here }
			_, err := enroll.Join(t.Context(), d, p.reg.Issue("n", "n", time.Hour), newKey(t), enroll.Facts{})
			var skew *enroll.ClockSkewError
			if !errors.As(err, &skew) {
				t.Fatalf("got %v, want a ClockSkewError", err)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), here.UTC().Format(time.RFC3339)) {
				t.Errorf("%q does not say %q, or not what the clock here says", err, tt.want)
			}
		})
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	d := p.dial()
	d.Now = func() time.Time { return p.now.Now().Add(-5 * time.Minute) }
	if _, err := enroll.Join(t.Context(), d, p.reg.Issue("m", "m", time.Hour), newKey(t), enroll.Facts{}); err != nil {
		t.Errorf("a clock that is five minutes behind: %v, want that to be forgiven", err)
	}
}

// While one CA follows another, either is good.
func TestSeveralPins(t *testing.T) {
	p := newPlane(t)
	d := p.dial()
	d.Pins = append([]enroll.Fingerprint{openCA(t, t.TempDir(), enroll.CAOptions{}).Fingerprint()}, d.Pins...)
	if _, err := enroll.Join(t.Context(), d, p.reg.Issue("n", "n", time.Hour), newKey(t), enroll.Facts{}); err != nil {
		t.Error(err)
	}
}

// Without a pin a CA of one's own is unknown, and nothing is sent.
func TestSystemRootsDoNotKnowUs(t *testing.T) {
	p := newPlane(t)
	_, err := enroll.Join(t.Context(), enroll.Dial{Addr: p.addr}, p.reg.Issue("n", "n", time.Hour), newKey(t), enroll.Facts{})
	if !errors.Is(err, enroll.ErrWrongCA) || !strings.Contains(err.Error(), "no fingerprint was given") {
		t.Errorf("got %v, want ErrWrongCA that says why", err)
	}
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestPinnedDialTLSChecksTheAddress(t *testing.T) {
	forged := newForger(t, nil)
	p := newPlane(t, serving(forged.leaf(t, func(c *x509.Certificate) { c.IPAddresses = nil }, forged.cert)))
	dial, err := enroll.PinnedDialTLS(enroll.FingerprintOf(forged.cert))
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := dial(t.Context(), "tcp", p.addr); err == nil {
		_ = conn.Close()
		t.Error("a certificate that is not good for the IP address was taken")
	}
	_, port, _ := net.SplitHostPort(p.addr)
	conn, err := dial(t.Context(), "tcp4", "localhost:"+port)
	if err != nil {
		t.Fatalf("by the name that it is good for: %v", err)
	}
	_ = conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(ctx, "tcp", p.addr); err == nil {
		t.Error("dialled though the context had ended")
	}
}

// The configuration is also used by plain HTTP clients.
func TestPinnedTLSConfigInATransport(t *testing.T) {
	p := newPlane(t)
	get := func(pin enroll.Fingerprint) error {
		cfg, err := enroll.PinnedTLSConfig(pin)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{TLSClientConfig: cfg}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get("https://" + p.addr + "/")
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}
	if err := get(p.ca.Fingerprint()); err != nil {
		t.Error(err)
	}
	if err := get(openCA(t, t.TempDir(), enroll.CAOptions{}).Fingerprint()); !errors.Is(err, enroll.ErrWrongCA) {
		t.Errorf("got %v, want ErrWrongCA", err)
	}
}
