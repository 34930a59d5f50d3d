package enroll

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RefusedError is a refusal by the control plane.
type RefusedError struct {
	// Message is the control plane's own.
	Message string
	// Final tells that the same request will be refused for ever.
	Final bool
	// RetryAfter is how long the control plane asked to wait; zero when it
	// did not.
	RetryAfter time.Duration
	// Skew is how far the control plane's clock is ahead of this one's; zero
	// when it did not say.
	Skew time.Duration
	code string
}

func (e *RefusedError) Error() string { return "the control plane refused: " + e.Message }

// Is makes errors.Is(err, ErrTokenRefused), ErrRevoked and ErrThrottled work on
// this side too.
func (e *RefusedError) Is(target error) bool {
	switch e.code {
	case codeRefused:
		return target == ErrTokenRefused
	case codeRevoked:
		return target == ErrRevoked
	case codeThrottled:
		return target == ErrThrottled
	}
	return false
}

// IsFinal tells whether repeating the call that gave err is of no use.
func IsFinal(err error) bool {
	var r *RefusedError
	return errors.As(err, &r) && r.Final
}

// Dial is how the client half reaches a control plane.
type Dial struct {
	// Addr is its address, host:port, or https://host:port.
	Addr string
	// Pins are the CA fingerprints to accept; none means the system's roots.
	Pins []Fingerprint
	// Now is what time it is. Default: time.Now.
	Now func() time.Time
	// Dialer opens the connection. Default: one with a time-out of 15 s.
	Dialer *net.Dialer
}

// Identity is what a node proves itself by.
type Identity struct {
	NodeID         string
	NodeName       string
	CertificatePEM []byte
	KeyPEM         []byte // a secret
	CAPEM          []byte
}

// String tells whose identity it is, and no more.
func (id Identity) String() string { return "node " + id.NodeName + " (" + id.NodeID + ")" }

// GoString returns what String does.
func (id Identity) GoString() string { return id.String() }

// LogValue returns what String does.
func (id Identity) LogValue() slog.Value { return slog.StringValue(id.String()) }

// Certificate returns the parsed certificate.
func (id *Identity) Certificate() (*x509.Certificate, error) {
	return parseCertificate(id.CertificatePEM)
}

// Join redeems a token for a certificate of key, which keyPEM is the PKCS#8
// form of. Store the key before the call and use the same one in a repeat:
// when an answer was lost, only that key may come again.
//
// The error is ErrWrongCA or a *ClockSkewError when the peer was not believed,
// and then nothing was sent; it is a *RefusedError when the control plane
// refused.
func Join(ctx context.Context, d Dial, token Token, keyPEM []byte, facts Facts) (*Identity, error) {
	key, err := DecodeKey(keyPEM)
	if err != nil {
		return nil, err
	}
	csr, err := request(key)
	if err != nil {
		return nil, err
	}
	var a joinAnswer
	if err := d.call(ctx, nil, PathJoin, joinBody{Token: token.Reveal(), CSR: csr, Facts: facts}, &a); err != nil {
		return nil, err
	}
	if !nodeIDForm.MatchString(a.NodeID) {
		return nil, fmt.Errorf("control plane %s: its answer names no node", d.Addr)
	}
	id := &Identity{NodeID: a.NodeID, NodeName: a.NodeName, CertificatePEM: []byte(a.Certificate), KeyPEM: keyPEM, CAPEM: []byte(a.CA)}
	if err := id.check(key, d.Pins); err != nil {
		return nil, err
	}
	return id, nil
}

// Renew returns the identity with a new certificate for a new key. The old one
// stays good until the new one was used.
func Renew(ctx context.Context, d Dial, id *Identity, newKeyPEM []byte) (*Identity, error) {
	key, err := DecodeKey(newKeyPEM)
	if err != nil {
		return nil, err
	}
	csr, err := request(key)
	if err != nil {
		return nil, err
	}
	var a renewAnswer
	if err := d.call(ctx, id, PathRenew, renewBody{CSR: csr}, &a); err != nil {
		return nil, err
	}
	next := &Identity{NodeID: id.NodeID, NodeName: id.NodeName, CertificatePEM: []byte(a.Certificate), KeyPEM: newKeyPEM, CAPEM: []byte(a.CA)}
	if err := next.check(key, d.Pins); err != nil {
		return nil, err
	}
	return next, nil
}

// SendHeartbeat tells the control plane that the node is there.
func SendHeartbeat(ctx context.Context, d Dial, id *Identity, hb Heartbeat) (HeartbeatReply, error) {
	var a HeartbeatReply
	err := d.call(ctx, id, PathHeartbeat, hb, &a)
	return a, err
}

// check makes sure that what came is what was asked for.
func (id *Identity) check(key crypto.Signer, pins []Fingerprint) error {
	cert, err := id.Certificate()
	if err != nil {
		return fmt.Errorf("the control plane's answer: %w", err)
	}
	pub, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !pub.Equal(cert.PublicKey) {
		return errors.New("the control plane's answer: a certificate for another key")
	}
	if len(cert.URIs) != 1 || cert.URIs[0].Opaque != nodeNamespace+id.NodeID {
		return errors.New("the control plane's answer: a certificate for another node")
	}
	ca, err := parseCertificate(id.CAPEM)
	if err != nil {
		return fmt.Errorf("the control plane's answer: CA: %w", err)
	}
	if err := cert.CheckSignatureFrom(ca); err != nil {
		return fmt.Errorf("the control plane's answer: %w", err)
	}
	if len(pins) > 0 {
		for _, p := range pins {
			if p == FingerprintOf(ca) {
				return nil
			}
		}
		return fmt.Errorf("the control plane's answer: %w", ErrWrongCA)
	}
	return nil
}

func request(key crypto.Signer) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "node"}}, key)
	if err != nil {
		return "", fmt.Errorf("certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// callTimeout ends one call.
const callTimeout = 30 * time.Second

// call does one POST on a connection of its own. Nodes call twice a minute: a
// connection that is kept would be dead half of the time, behind some NAT.
func (d Dial) call(ctx context.Context, id *Identity, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	transport, err := d.transport(id)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	base := "https://" + strings.TrimSuffix(strings.TrimPrefix(d.Addr, "https://"), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("control plane address %q: not host:port", d.Addr)
	}
	req.Header.Set("Content-Type", "application/json")
	// RoundTrip, not a Client: a redirect must not carry a token elsewhere.
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("control plane %s: %w", d.Addr, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return d.refused(resp)
	}
	if err := decodeAnswer(resp.Body, out); err != nil {
		return fmt.Errorf("control plane %s: its answer: %w", d.Addr, err)
	}
	return nil
}

func (d Dial) transport(id *Identity) (*http.Transport, error) {
	now := d.Now
	if now == nil {
		now = time.Now
	}
	dialer := d.Dialer
	if dialer == nil {
		dialer = &net.Dialer{Timeout: 15 * time.Second}
	}
	var certs []tls.Certificate
	if id != nil {
		pair, err := tls.X509KeyPair(id.CertificatePEM, id.KeyPEM)
		if err != nil {
			return nil, fmt.Errorf("the node's identity is damaged: %w", err)
		}
		certs = []tls.Certificate{pair}
	}
	dial, err := pinnedDial(dialer, now, certs, d.Pins...)
	if err != nil {
		return nil, err
	}
	return &http.Transport{DialTLSContext: dial, DisableKeepAlives: true, ResponseHeaderTimeout: callTimeout}, nil
}

func (d Dial) refused(resp *http.Response) error {
	e := &RefusedError{Message: fmt.Sprintf("HTTP %d", resp.StatusCode)}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	var a errorAnswer
	if decodeAnswer(resp.Body, &a) == nil && a.Code != "" {
		e.Message, e.Final, e.code = a.Message, a.Final, a.Code
		now := time.Now()
		if d.Now != nil {
			now = d.Now()
		}
		if !a.Time.IsZero() {
			e.Skew = a.Time.Sub(now)
		}
	}
	return e
}
