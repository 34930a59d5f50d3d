package enrolltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

func testGoodToken(t *testing.T, s *subject) {
	nodeID, name, token := s.Issue(t)
	res, err := s.redeem(t, token, 0)
	if err != nil {
		t.Fatalf("Redeem of a fresh token: %v", err)
	}
	if res.NodeID != nodeID || res.NodeName != name {
		t.Errorf("Redeem: joined as %q (%s), want %q (%s)", res.NodeID, res.NodeName, nodeID, name)
	}
	if res.Certificate == nil || string(res.Certificate.PEM) != "certificate of "+nodeID {
		t.Errorf("Redeem: the certificate is not the one that sign made for the node: %+v", res.Certificate)
	}
	noErr(t, "a heartbeat with the certificate", s.beat(t, nodeID, res.Certificate.Serial))
}

func testUnknownToken(t *testing.T, s *subject) {
	s.Issue(t)
	s.refused(t, "a token that nobody issued", enroll.NewToken(), 0)
}

func testWrongSecret(t *testing.T, s *subject) {
	_, _, token := s.Issue(t)
	r := request(token, 0)
	r.SecretHash[31] ^= 1
	_, err := s.Registry.Redeem(t.Context(), r, s.sign)
	wantErr(t, "a wrong secret", err, enroll.ErrTokenRefused)
	_, err = s.redeem(t, token, 1)
	noErr(t, "the right secret, after a wrong one", err)
}

func testExpired(t *testing.T, s *subject) {
	_, _, token := s.Issue(t)
	_, _, used := s.Issue(t)
	if _, err := s.redeem(t, used, 0); err != nil {
		t.Fatal(err)
	}
	s.Advance(TokenLife - time.Minute)
	_, err := s.redeem(t, used, 0)
	noErr(t, "the same key a minute before the token's end", err)
	s.Advance(2 * time.Minute)
	s.refused(t, "a token past its end", token, 0)
	s.refused(t, "a used token past its end, with its key", used, 0)
}

func testSameKeyAgain(t *testing.T, s *subject) {
	nodeID, first, token := s.join(t)
	res, err := s.redeem(t, token, 0)
	if err != nil {
		t.Fatalf("the same token with the same key, after a lost answer: %v", err)
	}
	if res.NodeID != nodeID {
		t.Errorf("the second answer names node %q, want %q", res.NodeID, nodeID)
	}
	noErr(t, "a heartbeat with the second certificate", s.beat(t, nodeID, res.Certificate.Serial))
	_ = first // whether the lost certificate is good is for the registry to decide
}

func testOtherKey(t *testing.T, s *subject) {
	nodeID, serial, token := s.join(t)
	s.refused(t, "a used token with another key", token, 1)
	s.refused(t, "and once more", token, 2)
	noErr(t, "a heartbeat of the node, after a stranger came with its token", s.beat(t, nodeID, serial))
	_, err := s.redeem(t, token, 0)
	noErr(t, "the node's own key, after a stranger's", err)
}

func testSigningFails(t *testing.T, s *subject) {
	_, _, token := s.Issue(t)
	broken := errors.New("the signer is away")
	_, err := s.Registry.Redeem(t.Context(), request(token, 0), func(string) (*enroll.Certificate, error) { return nil, broken })
	wantErr(t, "a signer that fails", err, broken)
	_, err = s.redeem(t, token, 1)
	noErr(t, "another key, after the signer failed", err)
}

func testCallerWentAway(t *testing.T, s *subject) {
	_, _, token := s.Issue(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = s.Registry.Redeem(ctx, request(token, 0), s.sign) // may have worked or not
	_, err := s.redeem(t, token, 0)
	noErr(t, "the same key, after a call whose caller went away", err)
}

func testTokensAreApart(t *testing.T, s *subject) {
	one, _, tokenOne := s.Issue(t)
	two, _, tokenTwo := s.Issue(t)
	if one == two {
		t.Fatalf("Issue made node %q twice", one)
	}
	mixed := request(tokenOne, 0)
	mixed.SecretHash = tokenTwo.SecretHash()
	_, err := s.Registry.Redeem(t.Context(), mixed, s.sign)
	wantErr(t, "one token's id with another's secret", err, enroll.ErrTokenRefused)
	resTwo, err := s.redeem(t, tokenTwo, 2)
	noErr(t, "the second token", err)
	resOne, err := s.redeem(t, tokenOne, 1)
	noErr(t, "the first token", err)
	if t.Failed() {
		return
	}
	if resOne.NodeID != one || resTwo.NodeID != two {
		t.Errorf("joined as %q and %q, want %q and %q", resOne.NodeID, resTwo.NodeID, one, two)
	}
	wantErr(t, "one node's id with the other's certificate", s.beat(t, one, resTwo.Certificate.Serial), enroll.ErrRevoked)
}

func testHeartbeat(t *testing.T, s *subject) {
	nodeID, serial, _ := s.join(t)
	noErr(t, "a heartbeat", s.beat(t, nodeID, serial))
	noErr(t, "another", s.beat(t, nodeID, serial))
	wantErr(t, "a serial that was never signed", s.beat(t, nodeID, "abad1dea"), enroll.ErrRevoked)
	wantErr(t, "no serial", s.beat(t, nodeID, ""), enroll.ErrRevoked)
	wantErr(t, "a node that is none", s.beat(t, "no-such-node", serial), enroll.ErrRevoked)
	waiting, _, _ := s.Issue(t)
	wantErr(t, "a node that has not joined", s.beat(t, waiting, serial), enroll.ErrRevoked)
	_, err := s.Registry.Renew(t.Context(), waiting, serial, s.sign)
	wantErr(t, "a renewal of a node that has not joined", err, enroll.ErrRevoked)
}

func testRenewBoth(t *testing.T, s *subject) {
	nodeID, old, _ := s.join(t)
	next := s.renew(t, nodeID, old)
	noErr(t, "the old certificate, while the new one is not used", s.beat(t, nodeID, old))
	noErr(t, "the new certificate", s.beat(t, nodeID, next))
	wantErr(t, "the old certificate, after the new one was used", s.beat(t, nodeID, old), enroll.ErrRevoked)
	_, err := s.Registry.Renew(t.Context(), nodeID, old, s.sign)
	wantErr(t, "a renewal with the old certificate, after the new one was used", err, enroll.ErrRevoked)
	last := s.renew(t, nodeID, next)
	noErr(t, "the certificate after that", s.beat(t, nodeID, last))
}

func testRenewLost(t *testing.T, s *subject) {
	nodeID, old, _ := s.join(t)
	for range 3 {
		s.renew(t, nodeID, old) // the answer does not arrive
	}
	noErr(t, "the old certificate, after three lost answers", s.beat(t, nodeID, old))
	next := s.renew(t, nodeID, old)
	noErr(t, "the new certificate, after three lost answers", s.beat(t, nodeID, next))
}

func testRenewSigningFails(t *testing.T, s *subject) {
	nodeID, serial, _ := s.join(t)
	broken := errors.New("the signer is away")
	_, err := s.Registry.Renew(t.Context(), nodeID, serial, func(string) (*enroll.Certificate, error) { return nil, broken })
	wantErr(t, "a signer that fails", err, broken)
	noErr(t, "the certificate, after a renewal that failed", s.beat(t, nodeID, serial))
	s.renew(t, nodeID, serial)
}

func testRevoke(t *testing.T, s *subject) {
	nodeID, old, token := s.join(t)
	next := s.renew(t, nodeID, old)
	other, otherSerial, _ := s.join(t)
	s.Revoke(t, nodeID)
	before := s.signed.Load()
	for _, serial := range []string{old, next} {
		wantErr(t, "a heartbeat of a node that was taken out", s.beat(t, nodeID, serial), enroll.ErrRevoked)
		_, err := s.Registry.Renew(t.Context(), nodeID, serial, s.sign)
		wantErr(t, "a renewal of a node that was taken out", err, enroll.ErrRevoked)
	}
	if s.signed.Load() != before {
		t.Error("a certificate was signed for a node that was taken out")
	}
	s.refused(t, "the token of a node that was taken out, with its key", token, 0)
	noErr(t, "a heartbeat of another node", s.beat(t, other, otherSerial))
}

func testRevokeBeforeJoin(t *testing.T, s *subject) {
	nodeID, _, token := s.Issue(t)
	s.Revoke(t, nodeID)
	s.refused(t, "the unused token of a node that was taken out", token, 0)
}
