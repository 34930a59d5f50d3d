package enroll

import (
	"context"
	"errors"
)

// What a Registry refuses with, wrapped or not.
var (
	// ErrTokenRefused: the token is unknown, wrong, expired, used with another
	// key, or of a node that is gone. The outward answer is the same for all
	// of them, and final.
	ErrTokenRefused = errors.New("the token is refused")
	// ErrRevoked: the node, or this certificate of it, is no longer let in.
	ErrRevoked = errors.New("the node is no longer let in")
	// ErrThrottled: too many attempts; later.
	ErrThrottled = errors.New("too many attempts")
)

// Registry is the memory behind the server half: which tokens are good, and
// which nodes are. Package enrolltest holds what each method must do.
type Registry interface {
	// Redeem burns the token and calls sign, in one transaction: of any number
	// of calls with one token, only those with one and the same KeyHash ever
	// succeed, and a failure of sign leaves the token unburnt. A token that was
	// burnt with this KeyHash signs again while it has not expired. Else it
	// fails with ErrTokenRefused.
	Redeem(ctx context.Context, r RedeemRequest, sign func(nodeID string) (*Certificate, error)) (RedeemResult, error)
	// Renew calls sign for a node that is let in with the certificate of that
	// serial, and notes the new serial; both are let in until the new one was
	// used. Else it fails with ErrRevoked.
	Renew(ctx context.Context, nodeID, serial string, sign func(nodeID string) (*Certificate, error)) (*Certificate, error)
	// Heartbeat notes a sign of life of a node that is let in with that
	// serial. Else it fails with ErrRevoked.
	Heartbeat(ctx context.Context, nodeID, serial string, hb Heartbeat) error
}

// RedeemRequest is one attempt to join.
type RedeemRequest struct {
	TokenID    string
	SecretHash [32]byte // to be compared in constant time
	KeyHash    string   // SHA-256 of the request's public key (SPKI), hexadecimal
	Source     string   // the remote address, for the record
	Facts      Facts
}

// RedeemResult is a success.
type RedeemResult struct {
	NodeID, NodeName string
	Certificate      *Certificate
}
