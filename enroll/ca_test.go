package enroll_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

func openCA(t *testing.T, dir string, opts enroll.CAOptions) *enroll.CA {
	t.Helper()
	ca, err := enroll.OpenCA(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func parseCert(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenCAMakesAndKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "ca")
	ca := openCA(t, dir, enroll.CAOptions{})
	for path, want := range map[string]fs.FileMode{dir: 0o700, dir + "/ca.key": 0o600, dir + "/ca.crt": 0o644} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
	again := openCA(t, dir, enroll.CAOptions{})
	if again.Fingerprint() != ca.Fingerprint() || string(again.CertificatePEM()) != string(ca.CertificatePEM()) {
		t.Error("the second opening gave another CA")
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files in the directory, want 2: %v", len(files), files)
	}
}

// The key decides: the certificate may be made anew, and nodes go on.
func TestOpenCAFinishesWhatWasBroken(t *testing.T) {
	dir := t.TempDir()
	want := openCA(t, dir, enroll.CAOptions{}).Fingerprint()
	remove(t, dir+"/ca.crt")
	if got := openCA(t, dir, enroll.CAOptions{}).Fingerprint(); got != want {
		t.Errorf("fingerprint %s after the certificate was lost, want %s", got, want)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestOpenCARefuses(t *testing.T) {
	late := func() time.Time { return time.Now().AddDate(11, 0, 0) }
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, dir string)
		opts enroll.CAOptions
		want string
	}{
		{"a key that the group can read", func(t *testing.T, dir string) { chmod(t, dir+"/ca.key", 0o640) }, enroll.CAOptions{}, "chmod 600"},
		{"a key that all can read", func(t *testing.T, dir string) { chmod(t, dir+"/ca.key", 0o604) }, enroll.CAOptions{}, "chmod 600"},
		{"no key beside the certificate", func(t *testing.T, dir string) { remove(t, dir+"/ca.key") }, enroll.CAOptions{}, "put the key back"},
		{"another's key", func(t *testing.T, dir string) {
			other := t.TempDir()
			openCA(t, other, enroll.CAOptions{})
			if err := os.Rename(other+"/ca.key", dir+"/ca.key"); err != nil {
				t.Fatal(err)
			}
		}, enroll.CAOptions{}, "does not belong to the key"},
		{"a damaged key", func(t *testing.T, dir string) { write(t, dir+"/ca.key", "nonsense", 0o600) }, enroll.CAOptions{}, "PEM"},
		{"an empty certificate", func(t *testing.T, dir string) { write(t, dir+"/ca.crt", "", 0o644) }, enroll.CAOptions{}, "PEM"},
		{"a CA that has ended", func(*testing.T, string) {}, enroll.CAOptions{Now: late}, "remove it (not the key)"},
		{"a life too short", func(*testing.T, string) {}, enroll.CAOptions{NodeLife: time.Second}, "a minute at least"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			openCA(t, dir, enroll.CAOptions{})
			tt.harm(t, dir)
			ca, err := enroll.OpenCA(dir, tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			if ca != nil {
				t.Error("an error, and a CA")
			}
		})
	}
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
}

func TestOpenCAAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ca")
	prints := make([]string, 16)
	var wg sync.WaitGroup
	for i := range prints {
		wg.Go(func() {
			ca, err := enroll.OpenCA(dir, enroll.CAOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			prints[i] = string(ca.Fingerprint()) + string(ca.CertificatePEM())
		})
	}
	wg.Wait()
	for _, p := range prints[1:] {
		if p != prints[0] {
			t.Fatalf("two that opened at the same time have different CAs:\n%s\n%s", prints[0], p)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files are left, want 2: %v", len(files), files)
	}
}

func TestSignNode(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ca := openCA(t, t.TempDir(), enroll.CAOptions{Now: func() time.Time { return now }, NodeLife: 48 * time.Hour})
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	ed, _, _ := ed25519.GenerateKey(rand.Reader)
	weak, _ := rsa.GenerateKey(rand.Reader, 2048)

	seen := map[string]bool{}
	for name, pub := range map[string]crypto.PublicKey{"P-256": p256.Public(), "Ed25519": ed} {
		got, err := ca.SignNode("0197-abc", pub)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := parseCert(t, got.DER)
		switch {
		case len(c.URIs) != 1 || c.URIs[0].String() != "urn:node:0197-abc":
			t.Errorf("%s: URIs %v", name, c.URIs)
		case len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth || c.KeyUsage != x509.KeyUsageDigitalSignature:
			t.Errorf("%s: usages %v %v, want client authentication alone", name, c.ExtKeyUsage, c.KeyUsage)
		case c.IsCA || !c.BasicConstraintsValid:
			t.Errorf("%s: a node's certificate may sign others", name)
		case len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses) != 0:
			t.Errorf("%s: names that nobody asked for", name)
		case !c.NotBefore.Equal(now.Add(-10*time.Minute)) || !c.NotAfter.Equal(now.Add(48*time.Hour)):
			t.Errorf("%s: good from %s to %s", name, c.NotBefore, c.NotAfter)
		case c.SerialNumber.BitLen() < 64 || c.SerialNumber.Sign() <= 0:
			t.Errorf("%s: serial %x", name, c.SerialNumber)
		case got.Serial != strings.ToLower(c.SerialNumber.Text(16)):
			t.Errorf("%s: Serial %q of %x", name, got.Serial, c.SerialNumber)
		case seen[got.Serial]:
			t.Errorf("%s: a serial came twice", name)
		}
		seen[got.Serial] = true
	}
	for name, pub := range map[string]crypto.PublicKey{"RSA": weak.Public(), "P-384": p384.Public(), "nil": nil} {
		if _, err := ca.SignNode("n", pub); err == nil {
			t.Errorf("a key of kind %s was signed", name)
		}
	}
	for _, id := range []string{"", "a b", "a/b", "a:b", "ä", "a\n", "urn:node:x", "a%20", strings.Repeat("x", 65)} {
		if _, err := ca.SignNode(id, p256.Public()); err == nil {
			t.Errorf("node id %q was signed", id)
		}
	}
}

func TestNodeCertificateDoesNotOutliveTheCA(t *testing.T) {
	dir := t.TempDir()
	openCA(t, dir, enroll.CAOptions{})
	late := time.Now().AddDate(0, 0, 3649)
	ca := openCA(t, dir, enroll.CAOptions{Now: func() time.Time { return late }, NodeLife: 7 * 24 * time.Hour})
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	got, err := ca.SignNode("n", key.Public())
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(caDER(t, ca))
	if err != nil {
		t.Fatal(err)
	}
	if got.NotAfter.After(root.NotAfter) {
		t.Errorf("the certificate ends at %s, the CA at %s", got.NotAfter, root.NotAfter)
	}
}

func TestServerCertificateRenewsItself(t *testing.T) {
	now := time.Now()
	ca := openCA(t, t.TempDir(), enroll.CAOptions{Now: func() time.Time { return now }})
	get := ca.ServerCertificate("cp.example.org", "192.0.2.1", "[2001:db8::1]")
	leaf := func() *x509.Certificate {
		t.Helper()
		c, err := get(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Certificate) != 2 || string(c.Certificate[1]) != string(caDER(t, ca)) {
			t.Fatal("the chain does not end in the CA's own certificate, so nobody can pin it")
		}
		return parseCert(t, c.Certificate[0])
	}
	first := leaf()
	for _, host := range []string{"cp.example.org", "192.0.2.1", "2001:db8::1"} {
		if err := first.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if first.VerifyHostname("example.org") == nil {
		t.Error("good for a name that it was not made for")
	}
	if len(first.ExtKeyUsage) != 1 || first.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("usages %v, want server authentication alone", first.ExtKeyUsage)
	}
	now = now.Add(3 * 24 * time.Hour)
	if !leaf().Equal(first) {
		t.Error("a new certificate in the first half of the old one's life")
	}
	now = now.Add(24 * time.Hour)
	second := leaf()
	if second.Equal(first) {
		t.Error("no new certificate in the second half of the old one's life")
	}
	if second.NotAfter.Sub(now) < 6*24*time.Hour {
		t.Errorf("the new one ends at %s already", second.NotAfter)
	}
	now = now.Add(-30 * 24 * time.Hour)
	if got := leaf(); now.Before(got.NotBefore) {
		t.Error("after the clock was set back, a certificate from the future")
	}
}
