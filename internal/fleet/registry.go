package fleet

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

var _ enroll.Registry = (*Fleet)(nil)

// Redeem lets a node in: in one transaction the token is used, the
// certificate is signed and the node has joined. The same token with the same
// key gets another certificate until the token's end, for an answer may be
// lost; with another key it is refused, and the node's timeline says so.
func (f *Fleet) Redeem(ctx context.Context, r enroll.RedeemRequest, sign func(nodeID string) (*enroll.Certificate, error)) (enroll.RedeemResult, error) {
	var res enroll.RedeemResult
	var refusal error // one that is on record, so that the transaction commits
	err := f.store.Update(ctx, func(tx Tx) error {
		t, n, err := f.tokenFor(ctx, tx, r)
		if err != nil {
			return err
		}
		if t.State == TokenUsed && subtle.ConstantTimeCompare([]byte(t.KeyHash), []byte(r.KeyHash)) != 1 {
			refusal = refuseToken("it was used with another key")
			return f.noteMisuse(ctx, tx, t, n, r.Source)
		}
		cert, err := sign(n.ID)
		if err != nil {
			return err
		}
		res = enroll.RedeemResult{NodeID: n.ID, NodeName: n.Name, Certificate: cert}
		return f.join(ctx, tx, t, n, r, cert.Serial)
	})
	if err == nil {
		err = refusal
	}
	if err != nil {
		return enroll.RedeemResult{}, err
	}
	f.sawNode(res.NodeID, f.now(), true)
	return res, nil
}

func refuseToken(why string) error { return fmt.Errorf("%w: %s", enroll.ErrTokenRefused, why) }

// tokenFor returns the token of a request and its node, if it may be used.
func (f *Fleet) tokenFor(ctx context.Context, tx Tx, r enroll.RedeemRequest) (TokenRecord, Node, error) {
	t, err := tx.Token(ctx, r.TokenID)
	if errors.Is(err, ErrNotFound) {
		return t, Node{}, refuseToken("there is no such token")
	}
	if err != nil {
		return t, Node{}, err
	}
	if subtle.ConstantTimeCompare(t.SecretHash[:], r.SecretHash[:]) != 1 {
		return t, Node{}, refuseToken("its secret is wrong")
	}
	n, err := tx.Node(ctx, t.NodeID)
	if err != nil {
		return t, n, err
	}
	switch {
	case t.State != TokenLive && t.State != TokenUsed:
		return t, n, refuseToken("it was ended")
	case !f.now().Before(t.ExpiresAt):
		return t, n, refuseToken("it has expired")
	case t.Attempt != n.Attempt:
		return t, n, refuseToken("it is of an earlier attempt")
	case n.Phase != PhaseCreating && n.Phase != PhaseBooting && n.Phase != PhaseJoined:
		return t, n, refuseToken("its node is " + string(n.Phase))
	}
	return t, n, nil
}

// noteMisuse tells once in the timeline that a second machine came with a
// token: somebody has read it.
func (f *Fleet) noteMisuse(ctx context.Context, tx Tx, t TokenRecord, n Node, source string) error {
	if !t.MisusedAt.IsZero() {
		return nil
	}
	t.MisusedAt = f.now()
	if err := tx.PutToken(ctx, t); err != nil {
		return err
	}
	return f.event(ctx, tx, n, "token-misused", fmt.Sprintf(
		"its join token came a second time, with another key, from %s, and was refused: if that was not you, somebody can read this node's user-data", hostOf(source)))
}

func (f *Fleet) join(ctx context.Context, tx Tx, t TokenRecord, n Node, r enroll.RedeemRequest, serial string) error {
	now := f.now()
	again := t.State == TokenUsed
	if !again {
		t.State, t.UsedAt, t.KeyHash = TokenUsed, now, r.KeyHash
		if err := tx.PutToken(ctx, t); err != nil {
			return err
		}
		n.JoinedAt = now
	}
	n.PrevSerial, n.CertSerial = n.CertSerial, serial
	n.Facts = Facts(r.Facts)
	kind, message := "joined", "its agent joined from "+hostOf(r.Source)
	switch {
	case again:
		kind, message = "joined-again", "its agent asked again for its certificate, with the same key"
	case n.Phase == PhaseBooting:
		n.Phase = PhaseJoined
	case n.Phase == PhaseCreating:
		// The answer to the create is still awaited; see Fleet.created.
		kind, message = "agent-came", message+" before its provider answered"
	}
	if err := f.save(ctx, tx, &n); err != nil {
		return err
	}
	if err := tx.Seen(ctx, n.ID, now); err != nil {
		return err
	}
	return f.event(ctx, tx, n, kind, message)
}

// Renew signs a new certificate for a node whose present one is in force. The
// old one stays good until the new one was used, for the answer may be lost.
func (f *Fleet) Renew(ctx context.Context, nodeID, serial string, sign func(nodeID string) (*enroll.Certificate, error)) (*enroll.Certificate, error) {
	var cert *enroll.Certificate
	err := f.store.Update(ctx, func(tx Tx) error {
		n, err := tx.Node(ctx, nodeID)
		if err := inForce(n, serial, err); err != nil {
			return err
		}
		if cert, err = sign(n.ID); err != nil {
			return err
		}
		n.PrevSerial, n.CertSerial = serial, cert.Serial
		return f.save(ctx, tx, &n)
	})
	if err != nil {
		return nil, err
	}
	f.sawNode(nodeID, f.now(), false)
	return cert, nil
}

// inForce refuses a certificate that is not the node's, or no longer.
func inForce(n Node, serial string, err error) error {
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: there is no such node", enroll.ErrRevoked)
	case err != nil:
		return err
	case n.JoinedAt.IsZero() || n.Phase != PhaseJoined && n.Phase != PhaseCreating:
		return fmt.Errorf("%w: the node is %s", enroll.ErrRevoked, n.Phase)
	case serial == "" || serial != n.CertSerial && serial != n.PrevSerial:
		return fmt.Errorf("%w: the certificate is not in force", enroll.ErrRevoked)
	}
	return nil
}

// Heartbeat notes that a node lives. Most heartbeats cost one read: the time
// is written down every Timing.SeenEvery, the rest only when it changed. After
// a crash a node can look that much older than it is.
func (f *Fleet) Heartbeat(ctx context.Context, nodeID, serial string, hb enroll.Heartbeat) error {
	n, err := f.store.Node(ctx, nodeID)
	if err := inForce(n, serial, err); err != nil {
		return err
	}
	now := f.now()
	facts := Facts(hb.Facts)
	rotate := serial == n.CertSerial && n.PrevSerial != ""
	changed := rotate || facts != n.Facts
	if due := f.sawNode(nodeID, now, changed); !due && !changed {
		return nil
	}
	return f.store.Update(ctx, func(tx Tx) error {
		if err := tx.Seen(ctx, nodeID, now); err != nil || !changed {
			return err
		}
		n, err := tx.Node(ctx, nodeID)
		if err := inForce(n, serial, err); err != nil {
			return err
		}
		n.Facts = facts
		if serial == n.CertSerial {
			n.PrevSerial = ""
		}
		return f.save(ctx, tx, &n)
	})
}

// sawNode notes a sign of life and tells whether it is time to write it down.
func (f *Fleet) sawNode(nodeID string, at time.Time, written bool) (due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[nodeID] = at
	due = written || at.Sub(f.noted[nodeID]) >= f.timing.SeenEvery
	if due {
		f.noted[nodeID] = at
	}
	return due
}

// hostOf is the address of a peer without its port.
func hostOf(source string) string {
	if host, _, err := net.SplitHostPort(source); err == nil {
		return host
	}
	if source == "" {
		return "an unknown address"
	}
	return clip(source, 64)
}
