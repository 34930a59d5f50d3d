// Package enrolltest holds what every [enroll.Registry] must do, sentence by
// sentence ([Run]), and a registry in memory that does it ([Registry]), for
// tests and for trying things out.
package enrolltest

import (
	"context"
	"crypto/subtle"
	"fmt"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// Registry is an [enroll.Registry] in memory. The zero value is ready to use;
// it is safe for concurrent use.
type Registry struct {
	// Now is what time it is. Default: time.Now. Set it before the first use.
	Now func() time.Time

	mu     sync.Mutex
	tokens map[string]*token
	nodes  map[string]*Node
}

var _ enroll.Registry = (*Registry)(nil)

type token struct {
	nodeID     string
	secretHash [32]byte
	expires    time.Time
	keyHash    string // empty until it is used
}

// Node is what a Registry knows of a node.
type Node struct {
	ID, Name string
	Joined   bool
	Revoked  bool
	// Misused counts the attempts with another key after the token's use.
	Misused    int
	Heartbeats int
	Renewals   int
	Facts      enroll.Facts
	Source     string
	// Serials are those of the certificates that are let in, newest last.
	Serials []string
}

// Issue makes a node, if there is none of that id, and a token for it that is
// good for life.
func (r *Registry) Issue(nodeID, name string, life time.Duration) enroll.Token {
	t := enroll.NewToken()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes, r.tokens = map[string]*Node{}, map[string]*token{}
	}
	if r.nodes[nodeID] == nil {
		r.nodes[nodeID] = &Node{ID: nodeID, Name: name}
	}
	r.tokens[t.ID()] = &token{nodeID: nodeID, secretHash: t.SecretHash(), expires: r.now().Add(life)}
	return t
}

// Revoke takes a node out: its tokens and its certificates end at once.
func (r *Registry) Revoke(nodeID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.nodes[nodeID]; n != nil {
		n.Revoked = true
	}
}

// Node returns what is known of a node; its zero value if there is none.
func (r *Registry) Node(nodeID string) Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[nodeID]
	if n == nil {
		return Node{}
	}
	c := *n
	c.Serials = append([]string(nil), n.Serials...)
	return c
}

func (r *Registry) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

func refuse(why string) error { return fmt.Errorf("%w: %s", enroll.ErrTokenRefused, why) }

// Redeem does what the interface says.
func (r *Registry) Redeem(ctx context.Context, req enroll.RedeemRequest, sign func(string) (*enroll.Certificate, error)) (enroll.RedeemResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return enroll.RedeemResult{}, err
	}
	t := r.tokens[req.TokenID]
	switch {
	case t == nil:
		return enroll.RedeemResult{}, refuse("there is no such token")
	case subtle.ConstantTimeCompare(t.secretHash[:], req.SecretHash[:]) != 1:
		return enroll.RedeemResult{}, refuse("its secret is wrong")
	case !r.now().Before(t.expires):
		return enroll.RedeemResult{}, refuse("it has expired")
	}
	n := r.nodes[t.nodeID]
	switch {
	case n.Revoked:
		return enroll.RedeemResult{}, refuse("its node is gone")
	case t.keyHash != "" && t.keyHash != req.KeyHash:
		n.Misused++
		return enroll.RedeemResult{}, refuse("it was used with another key")
	}
	cert, err := sign(n.ID)
	if err != nil {
		return enroll.RedeemResult{}, err
	}
	t.keyHash = req.KeyHash
	n.Joined, n.Facts, n.Source = true, req.Facts, req.Source
	n.let(cert.Serial)
	return enroll.RedeemResult{NodeID: n.ID, NodeName: n.Name, Certificate: cert}, nil
}

// Renew does what the interface says.
func (r *Registry) Renew(ctx context.Context, nodeID, serial string, sign func(string) (*enroll.Certificate, error)) (*enroll.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.letIn(ctx, nodeID, serial)
	if err != nil {
		return nil, err
	}
	cert, err := sign(nodeID)
	if err != nil {
		return nil, err
	}
	n.Renewals++
	n.Serials = []string{serial} // an answer that was lost leaves nothing behind
	n.let(cert.Serial)
	return cert, nil
}

// Heartbeat does what the interface says.
func (r *Registry) Heartbeat(ctx context.Context, nodeID, serial string, hb enroll.Heartbeat) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.letIn(ctx, nodeID, serial)
	if err != nil {
		return err
	}
	n.Heartbeats++
	n.Facts = hb.Facts
	if newest := n.Serials[len(n.Serials)-1]; serial == newest {
		n.Serials = []string{newest}
	}
	return nil
}

func (r *Registry) letIn(ctx context.Context, nodeID, serial string) (*Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := r.nodes[nodeID]
	if n == nil || n.Revoked {
		return nil, fmt.Errorf("%w: the node is gone", enroll.ErrRevoked)
	}
	for _, s := range n.Serials {
		if s == serial {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%w: the certificate is not in force", enroll.ErrRevoked)
}

// let adds a serial to those that are let in: the last two count.
func (n *Node) let(serial string) {
	n.Serials = append(n.Serials, serial)
	if len(n.Serials) > 2 {
		n.Serials = n.Serials[len(n.Serials)-2:]
	}
}
