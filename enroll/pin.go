package enroll

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"
)

// Fingerprint names a CA by its public key: "sha256:" and 64 lower-case
// hexadecimal digits over the SubjectPublicKeyInfo.
type Fingerprint string

var fingerprintForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseFingerprint checks the form of a fingerprint.
func ParseFingerprint(s string) (Fingerprint, error) {
	if !fingerprintForm.MatchString(s) {
		return "", fmt.Errorf("%q is not a CA fingerprint: sha256: and 64 lower-case hexadecimal digits", s)
	}
	return Fingerprint(s), nil
}

// FingerprintOf returns the fingerprint of a CA's certificate.
func FingerprintOf(cert *x509.Certificate) Fingerprint {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return Fingerprint("sha256:" + hex.EncodeToString(sum[:]))
}

// ErrWrongCA tells that the peer showed no certificate chain from a CA that
// was pinned. Nothing was sent to it.
var ErrWrongCA = errors.New("the control plane's CA is not the one that was pinned")

// ErrClockSkew is what every [*ClockSkewError] is.
var ErrClockSkew = errors.New("the clocks of the node and the control plane do not agree")

// ClockSkewError tells that the peer's certificate is right but for the time:
// one of the two clocks is wrong. Nothing was sent. A leaf lives for days
// only, so the times tell roughly what the control plane's clock says.
type ClockSkewError struct {
	Now, NotBefore, NotAfter time.Time
}

func (e *ClockSkewError) Error() string {
	if e.Now.Before(e.NotBefore) {
		return fmt.Sprintf("the control plane's certificate is not valid before %s, and the clock here says %s (%s behind): set the clock",
			e.NotBefore.UTC().Format(time.RFC3339), e.Now.UTC().Format(time.RFC3339), e.NotBefore.Sub(e.Now).Round(time.Second))
	}
	return fmt.Sprintf("the control plane's certificate ended at %s, and the clock here says %s: one of the two clocks is wrong, or the control plane is not the one that runs now",
		e.NotAfter.UTC().Format(time.RFC3339), e.Now.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrClockSkew) true.
func (e *ClockSkewError) Is(target error) bool { return target == ErrClockSkew }

// PinnedTLSConfig returns a client's TLS configuration that accepts only
// servers whose chain ends in a CA with one of the fingerprints, with the
// usual checks of name, purpose and time on top. Without a fingerprint the
// system's roots are asked, as always: there is no way to ask for no check.
//
// Several fingerprints serve the days in which one CA follows another.
//
// TLS does not tell a server's IP address the way it tells its name, so with
// this configuration an address that was dialled as an IP is not compared with
// the certificate's addresses. [PinnedDialTLS] does compare it.
func PinnedTLSConfig(pins ...Fingerprint) (*tls.Config, error) {
	if len(pins) == 0 {
		return &tls.Config{MinVersion: tls.VersionTLS13}, nil
	}
	for _, p := range pins {
		if _, err := ParseFingerprint(string(p)); err != nil {
			return nil, err
		}
	}
	pins = slices.Clone(pins)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The check below replaces the standard one, which knows only the
		// system's roots. VerifyConnection also runs on resumed sessions.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return verifyPinned(cs, cs.ServerName, pins, time.Now())
		},
	}, nil
}

// PinnedDialTLS returns a function for http.Transport.DialTLSContext that opens
// connections under [PinnedTLSConfig], and checks that the certificate is good
// for the name or the IP address that is dialled.
func PinnedDialTLS(pins ...Fingerprint) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	return pinnedDial(&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}, time.Now, nil, pins...)
}

func pinnedDial(d *net.Dialer, now func() time.Time, certs []tls.Certificate, pins ...Fingerprint) (func(context.Context, string, string) (net.Conn, error), error) {
	base, err := PinnedTLSConfig(pins...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		cfg := base.Clone()
		cfg.ServerName, cfg.Certificates = host, certs
		if len(pins) > 0 {
			cfg.VerifyConnection = func(cs tls.ConnectionState) error { return verifyPinned(cs, host, pins, now()) }
		}
		raw, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			if len(pins) == 0 {
				err = explain(err, now())
			}
			return nil, err
		}
		return conn, nil
	}, nil
}

// explain gives a failed check against the system's roots the same two names
// that a failed pin check has.
func explain(err error, now time.Time) error {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w: no fingerprint was given, and the system's roots do not know it: %w", ErrWrongCA, err)
	}
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return &ClockSkewError{Now: now, NotBefore: invalid.Cert.NotBefore, NotAfter: invalid.Cert.NotAfter}
	}
	return err
}

// verifyPinned checks a server's chain. Who it is comes before what time it
// is, so that a wrong clock is told from a wrong CA.
func verifyPinned(cs tls.ConnectionState, host string, pins []Fingerprint, now time.Time) error {
	if len(cs.PeerCertificates) == 0 {
		return ErrWrongCA
	}
	leaf := cs.PeerCertificates[0]
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	var root *x509.Certificate
	for _, c := range cs.PeerCertificates {
		switch {
		case c.IsCA && slices.Contains(pins, FingerprintOf(c)):
			roots.AddCert(c)
			root = c
		case c != leaf:
			between.AddCert(c)
		}
	}
	if root == nil {
		shown := "none"
		if last := cs.PeerCertificates[len(cs.PeerCertificates)-1]; last.IsCA {
			shown = string(FingerprintOf(last))
		}
		return fmt.Errorf("%w: pinned %v, shown %s", ErrWrongCA, pins, shown)
	}
	verify := func(at time.Time) error {
		_, err := leaf.Verify(x509.VerifyOptions{
			DNSName: host, Roots: roots, Intermediates: between, CurrentTime: at,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	err := verify(now)
	if err == nil {
		return nil
	}
	// Right at a time when both are valid: then only the time is wrong.
	both := leaf.NotBefore
	if root.NotBefore.After(both) {
		both = root.NotBefore
	}
	for _, c := range []*x509.Certificate{leaf, root} {
		if (now.Before(c.NotBefore) || now.After(c.NotAfter)) && verify(both.Add(time.Second)) == nil {
			return &ClockSkewError{Now: now, NotBefore: c.NotBefore, NotAfter: c.NotAfter}
		}
	}
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return fmt.Errorf("%w: it stands in the chain, but did not sign the certificate", ErrWrongCA)
	}
	return fmt.Errorf("the control plane's certificate is not good for %s: %w", host, err)
}
