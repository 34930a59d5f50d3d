package enrolltest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// Harness is a registry under test, and the hands to work it with.
type Harness struct {
	Registry enroll.Registry
	// Issue makes a new node that waits to join, and a token for it that is
	// good for an hour.
	Issue func(t *testing.T) (nodeID, nodeName string, token enroll.Token)
	// Advance moves the registry's clock forward.
	Advance func(d time.Duration)
	// Revoke takes a node out of the fleet.
	Revoke func(t *testing.T, nodeID string)
	// Attempts is how many at once try one token. Default: 1,000.
	Attempts int
}

// TokenLife is how long the tokens of [Harness.Issue] are good.
const TokenLife = time.Hour

// Run holds a Registry to what [enroll.Registry] says. open returns a fresh
// one for each test; what it opens, t.Cleanup should close.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, *subject)
	}{
		{"Redeem/GoodToken", testGoodToken},
		{"Redeem/UnknownToken", testUnknownToken},
		{"Redeem/WrongSecret", testWrongSecret},
		{"Redeem/Expired", testExpired},
		{"Redeem/SameKeyAgain", testSameKeyAgain},
		{"Redeem/OtherKey", testOtherKey},
		{"Redeem/SigningFails", testSigningFails},
		{"Redeem/CallerWentAway", testCallerWentAway},
		{"Redeem/TokensAreApart", testTokensAreApart},
		{"Redeem/OnceOfMany", testOnceOfMany},
		{"Redeem/SameKeyAtOnce", testSameKeyAtOnce},
		{"Heartbeat/LetIn", testHeartbeat},
		{"Renew/BothUntilUsed", testRenewBoth},
		{"Renew/AnswerLost", testRenewLost},
		{"Renew/SigningFails", testRenewSigningFails},
		{"Revoke/AtOnce", testRevoke},
		{"Revoke/BeforeJoin", testRevokeBeforeJoin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			if h.Attempts == 0 {
				h.Attempts = 1000
			}
			tt.test(t, &subject{Harness: h})
		})
	}
}

type subject struct {
	Harness
	serials atomic.Int64
	signed  atomic.Int64
}

// sign stands for a CA: a certificate of a serial of its own.
func (s *subject) sign(nodeID string) (*enroll.Certificate, error) {
	s.signed.Add(1)
	now := time.Now()
	return &enroll.Certificate{
		PEM: []byte("certificate of " + nodeID), Serial: strconv.FormatInt(0x100000+s.serials.Add(1), 16),
		NotBefore: now, NotAfter: now.Add(72 * time.Hour),
	}, nil
}

func keyHash(i int) string { return fmt.Sprintf("%064x", i+1) }

func (s *subject) redeem(t *testing.T, token enroll.Token, key int) (enroll.RedeemResult, error) {
	t.Helper()
	return s.Registry.Redeem(t.Context(), request(token, key), s.sign)
}

func request(token enroll.Token, key int) enroll.RedeemRequest {
	return enroll.RedeemRequest{
		TokenID: token.ID(), SecretHash: token.SecretHash(), KeyHash: keyHash(key), Source: "192.0.2.7",
		Facts: enroll.Facts{OS: "Test OS 1", Kernel: "6.8.0", Architecture: "amd64", DockerVersion: "28.1", AgentVersion: "1.0", Hostname: "vm-1"},
	}
}

// join redeems a fresh token.
func (s *subject) join(t *testing.T) (nodeID, serial string, token enroll.Token) {
	t.Helper()
	nodeID, _, token = s.Issue(t)
	res, err := s.redeem(t, token, 0)
	if err != nil {
		t.Fatalf("Redeem of a fresh token: %v", err)
	}
	return nodeID, res.Certificate.Serial, token
}

func (s *subject) refused(t *testing.T, what string, token enroll.Token, key int) {
	t.Helper()
	before := s.signed.Load()
	_, err := s.redeem(t, token, key)
	wantErr(t, what, err, enroll.ErrTokenRefused)
	if s.signed.Load() != before {
		t.Errorf("%s: a certificate was signed for a refused token", what)
	}
	if err != nil && strings.Contains(err.Error(), token.Reveal()) {
		t.Errorf("%s: the error tells the token", what)
	}
}

func (s *subject) beat(t *testing.T, nodeID, serial string) error {
	t.Helper()
	return s.Registry.Heartbeat(t.Context(), nodeID, serial, enroll.Heartbeat{SentAt: time.Now()})
}

func (s *subject) renew(t *testing.T, nodeID, serial string) string {
	t.Helper()
	cert, err := s.Registry.Renew(t.Context(), nodeID, serial, s.sign)
	if err != nil {
		t.Fatalf("Renew with a certificate that is in force: %v", err)
	}
	return cert.Serial
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want an error that is %v", what, err, want)
	}
}

func noErr(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func testOnceOfMany(t *testing.T, s *subject) {
	nodeID, _, token := s.Issue(t)
	var won atomic.Int64
	var winner atomic.Int64
	s.atOnce(func(i int) {
		res, err := s.Registry.Redeem(t.Context(), request(token, i), s.sign)
		switch {
		case err == nil && res.NodeID == nodeID:
			won.Add(1)
			winner.Store(int64(i))
		case err == nil:
			t.Errorf("attempt %d joined as node %q, want %q", i, res.NodeID, nodeID)
		case !errors.Is(err, enroll.ErrTokenRefused) && !errors.Is(err, enroll.ErrThrottled):
			t.Errorf("attempt %d: %v, want a success or ErrTokenRefused", i, err)
		}
	})
	if won.Load() != 1 {
		t.Fatalf("of %d attempts with one token %d succeeded, want exactly 1", s.Attempts, won.Load())
	}
	_, err := s.redeem(t, token, int(winner.Load()))
	noErr(t, "the winner's key again", err)
}

func testSameKeyAtOnce(t *testing.T, s *subject) {
	_, _, token := s.Issue(t)
	s.Attempts = 20
	s.atOnce(func(i int) {
		if _, err := s.Registry.Redeem(t.Context(), request(token, 0), s.sign); err != nil {
			t.Errorf("attempt %d with the one key: %v", i, err)
		}
	})
}

// atOnce runs all attempts together, and waits for them.
func (s *subject) atOnce(try func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range s.Attempts {
		wg.Go(func() {
			<-gate
			try(i)
		})
	}
	close(gate)
	wg.Wait()
}
