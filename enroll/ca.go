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
	"regexp"
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
	backDate   = 10 * time.Minute
	nodeLife   = 72 * time.Hour
	serverLife = 7 * 24 * time.Hour
	caKeyFile  = "ca.key"
	caCertFile = "ca.crt"
	// maxNodeID is the most bytes of a node id: the standard's bound of a
	// common name.
	maxNodeID = 64
)

// nodeNamespace is where node ids live among the URNs. The common name says
// the same for people; only the URI is ever read.
const nodeNamespace = "node:"

var nodeIDForm = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

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
	DER       []byte // the same
	Serial    string // hexadecimal
	NotBefore time.Time
	NotAfter  time.Time
}

// OpenCA reads the CA in dir, or makes one when dir has none: a P-256 key in
// ca.key (0600) and a certificate for ten years in ca.crt. A key that others
// can read is refused, and a certificate without its key is no reason to make
// another CA. Of two processes that make one at the same time, both end up with
// the same; one that was interrupted is finished by the next.
func OpenCA(dir string, opts CAOptions) (*CA, error) {
	if opts.Name == "" {
		opts.Name = "Fleet CA"
	}
	if opts.NodeLife == 0 {
		opts.NodeLife = nodeLife
	}
	if opts.NodeLife < time.Minute {
		return nil, fmt.Errorf("CA: a node's certificate cannot live for %s: a minute at least", opts.NodeLife)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("CA: %w", err)
	}
	keyPath, path := filepath.Join(dir, caKeyFile), filepath.Join(dir, caCertFile)
	// The key is made first, so that a certificate without one was not made
	// here just now: it has lost its key.
	_, err := os.Stat(path)
	hasCert := err == nil
	if _, err := os.Stat(keyPath); hasCert && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("CA key %s is not there, but its certificate is: put the key back, or remove %s for a new CA (every node must then be made again)", keyPath, path)
	}
	key, err := openKey(keyPath)
	if err != nil {
		return nil, fmt.Errorf("CA key: %w", err)
	}
	ca := &CA{key: key, opts: opts}
	if !hasCert {
		if err := ca.makeCertificate(); err != nil {
			return nil, err
		}
		if err := createFile(path, ca.pem, 0o644); err != nil {
			return nil, fmt.Errorf("CA certificate: %w", err)
		}
	}
	if ca.pem, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	if err := ca.load(path); err != nil {
		return nil, err
	}
	return ca, nil
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
// Ed25519): the node's id as its one subject alternative name, urn:node:<id>,
// for client authentication alone, good from ten minutes ago. Who the node is
// comes from the caller, never from a request.
func (ca *CA) SignNode(nodeID string, pub crypto.PublicKey) (*Certificate, error) {
	if err := checkPublicKey(pub); err != nil {
		return nil, err
	}
	if !nodeIDForm.MatchString(nodeID) || len(nodeID) > maxNodeID {
		return nil, fmt.Errorf("%q cannot stand in a certificate as a node's id: 1 to %d of A-Z a-z 0-9 . _ -", nodeID, maxNodeID)
	}
	now := ca.opts.Now()
	t := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: nodeID},
		URIs:      []*url.URL{{Scheme: "urn", Opaque: nodeNamespace + nodeID}},
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
		PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), DER: der,
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

// newSerial returns a serial of 126 random bits, above zero.
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
