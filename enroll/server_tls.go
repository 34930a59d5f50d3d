package enroll

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// ServerCertificate returns a function for tls.Config.GetCertificate that
// serves a certificate for the hosts (names and IP addresses), with the CA's
// own behind it so that a client can pin it. It is good for a week and is made
// anew in its second half, so that nothing on disk can run out.
func (ca *CA) ServerCertificate(hosts ...string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s := &serverCert{ca: ca, hosts: slices.Clone(hosts)}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.get() }
}

type serverCert struct {
	ca    *CA
	hosts []string

	mu   sync.Mutex
	cert *tls.Certificate
	made time.Time
}

func (s *serverCert) get() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.ca.opts.Now()
	// A clock that was set back makes a new one too.
	if s.cert != nil && now.Sub(s.made) < serverLife/2 && !now.Before(s.made.Add(-backDate)) {
		return s.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "control plane"},
		NotBefore: now.Add(-backDate), NotAfter: now.Add(serverLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range s.hosts {
		if ip := net.ParseIP(strings.Trim(h, "[]")); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else if h != "" {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	signed, err := s.ca.sign(t, key.Public())
	if err != nil {
		return nil, err
	}
	leaf, err := parseCertificate(signed.PEM)
	if err != nil {
		return nil, err
	}
	s.cert = &tls.Certificate{Certificate: [][]byte{leaf.Raw, s.ca.cert.Raw}, PrivateKey: key, Leaf: leaf}
	s.made = now
	return s.cert, nil
}

// NodeTLSConfig returns the configuration of the listener that nodes come in
// by: the control plane's certificate for the hosts, and a request for a
// client certificate, which a node that joins does not have yet. A
// certificate that is shown must be of this CA; whether it is good now is
// asked at each call, not at the handshake alone.
func (ca *CA) NodeTLSConfig(hosts ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: ca.ServerCertificate(hosts...),
		ClientAuth:     tls.RequestClientCert,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 {
				return nil
			}
			// Time is left to the handler: a certificate that has run out
			// may still be renewed.
			return cs.PeerCertificates[0].CheckSignatureFrom(ca.cert)
		},
	}
}

// peer is who calls, by the certificate that was shown.
type peer struct {
	nodeID, serial      string
	notBefore, notAfter time.Time
}

// identify returns who a peer is by its certificate. Whether the certificate
// is good at the time is for the caller to say.
func (ca *CA) identify(cs *tls.ConnectionState) (peer, bool) {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return peer{}, false
	}
	leaf := cs.PeerCertificates[0]
	if leaf.CheckSignatureFrom(ca.cert) != nil || leaf.IsCA || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return peer{}, false
	}
	if len(leaf.URIs) != 1 || leaf.URIs[0].Scheme != "urn" {
		return peer{}, false
	}
	id, ok := strings.CutPrefix(leaf.URIs[0].Opaque, nodeNamespace)
	if !ok || !nodeIDForm.MatchString(id) {
		return peer{}, false
	}
	return peer{nodeID: id, serial: serialText(leaf.SerialNumber), notBefore: leaf.NotBefore, notAfter: leaf.NotAfter}, true
}
