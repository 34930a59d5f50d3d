package enroll

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// CAOptions are the settings of a CA; each has a default.
type CAOptions struct {
	// Name is the subject of a CA that is made now. Default: "Fleet CA".
	Name string
	// NodeLife is how long a node's certificate is good for. Default: 72 hours.
	NodeLife time.Duration
	// Now is what time it is. Default: time.Now.
	Now func() time.Time
}

const (
	caLife = 10 * 365 * 24 * time.Hour
	// backDate makes up for clocks that are slow.
	backDate     = 10 * time.Minute
	nodeLife     = 72 * time.Hour
	serverLife   = 7 * 24 * time.Hour
	caKeyFile    = "ca.key"
	caCertFile   = "ca.crt"
	nodeIDPrefix = "urn:node:"
)

// CA signs the certificates of nodes, and of the control plane itself.
type CA struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
	opts CAOptions
}

// Certificate is one that the CA signed.
type Certificate struct {
	PEM       []byte // the certificate alone
	Serial    string // hexadecimal
	NotBefore time.Time
	NotAfter  time.Time
}

// OpenCA reads the CA in dir, or makes one when dir has none: a P-256 key in
// ca.key (0600) and a certificate for ten years in ca.crt. A key that others
// can read is refused. Of two processes that make one at the same time, both
// end up with the same.
func OpenCA(dir string, opts CAOptions) (*CA, error) {
	if opts.Name == "" {
		opts.Name = "Fleet CA"
	}
	if opts.NodeLife == 0 {
		opts.NodeLife = nodeLife
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("CA: %w", err)
	}
	key, err := openKey(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("CA key: %w", err)
	}
	ca := &CA{key: key, opts: opts}
	path := filepath.Join(dir, caCertFile)
	if ca.pem, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		if err := ca.makeCertificate(); err != nil {
			return nil, err
		}
		// The key decides who the CA is; a certificate that another process
		// writes over this one is as good.
		if err := writeFile(path, ca.pem, 0o644); err != nil {
			return nil, fmt.Errorf("CA certificate: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	return ca, ca.load(path)
}

func (ca *CA) load(path string) error {
	cert, err := parseCertificate(ca.pem)
	if err != nil {
		return fmt.Errorf("CA certificate %s: %w", path, err)
	}
	pub, ok := ca.key.Public().(*ecdsa.PublicKey)
	if !ok || !pub.Equal(cert.PublicKey) {
		return fmt.Errorf("CA certificate %s does not belong to the key beside it: put back the pair, or remove both for a new CA (every node must then be made again)", path)
	}
	if now := ca.opts.Now(); now.After(cert.NotAfter) {
		return fmt.Errorf("CA certificate %s ended at %s: remove it (not the key) and start again, which makes a new one with the same fingerprint", path, cert.NotAfter.UTC().Format(time.RFC3339))
	}
	ca.cert = cert
	return nil
}

func (ca *CA) makeCertificate() error {
	now := ca.opts.Now()
	t := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: ca.opts.Name},
		NotBefore: now.Add(-backDate), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, ca.key.Public(), ca.key)
	if err != nil {
		return fmt.Errorf("CA certificate: %w", err)
	}
	ca.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return nil
}

// Fingerprint returns what nodes pin.
func (ca *CA) Fingerprint() Fingerprint { return FingerprintOf(ca.cert) }

// CertificatePEM returns the CA's own certificate.
func (ca *CA) CertificatePEM() []byte { return ca.pem }

// SignNode returns a client certificate for a node's public key (P-256 or
// Ed25519). Who the node is comes from the caller, never from a request.
func (ca *CA) SignNode(nodeID string, pub crypto.PublicKey) (*Certificate, error) {
	if err := checkPublicKey(pub); err != nil {
		return nil, err
	}
	if nodeID == "" {
		return nil, errors.New("a certificate needs a node id")
	}
	now := ca.opts.Now()
	t := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: nodeID},
		URIs:      []*url.URL{{Scheme: "urn", Opaque: "node:" + url.PathEscape(nodeID)}},
		NotBefore: now.Add(-backDate), NotAfter: now.Add(ca.opts.NodeLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return ca.sign(t, pub)
}

func (ca *CA) sign(t *x509.Certificate, pub crypto.PublicKey) (*Certificate, error) {
	if t.NotAfter.After(ca.cert.NotAfter) {
		t.NotAfter = ca.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, pub, ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return &Certificate{
		PEM:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Serial: serialText(t.SerialNumber), NotBefore: t.NotBefore, NotAfter: t.NotAfter,
	}, nil
}

func checkPublicKey(pub crypto.PublicKey) error {
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return errors.New("the key must be ECDSA P-256 or Ed25519")
}

// newSerial returns a serial of 127 random bits, above zero.
func newSerial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}

func serialText(n *big.Int) string { return hex.EncodeToString(n.Bytes()) }

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no certificate in PEM form")
	}
	return x509.ParseCertificate(block.Bytes)
}
