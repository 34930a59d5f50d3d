package enroll_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

// Both halves in one program: a control plane that lets one node in, and the
// node.
func Example() {
	dir, err := os.MkdirTemp("", "ca")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// The control plane.
	ca, err := enroll.OpenCA(dir, enroll.CAOptions{Name: "Example CA"})
	if err != nil {
		panic(err)
	}
	registry := &enrolltest.Registry{} // a real one keeps its records
	token := registry.Issue("node-1", "web-1", time.Hour)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{
		Handler:           enroll.NewHandler(ca, registry, enroll.HandlerOptions{}),
		TLSConfig:         ca.NodeTLSConfig("127.0.0.1"),
		ReadHeaderTimeout: 10 * time.Second,
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.ServeTLS(listener, "", "") }()
	defer func() { _ = server.Close(); <-done }()

	// The node, which was given the address, the token and the fingerprint.
	ctx := context.Background()
	_, key, err := enroll.NewKey() // to be stored before the join
	if err != nil {
		panic(err)
	}
	dial := enroll.Dial{Addr: listener.Addr().String(), Pins: []enroll.Fingerprint{ca.Fingerprint()}}
	identity, err := enroll.Join(ctx, dial, token, key, enroll.Facts{OS: "Example OS"})
	if err != nil {
		panic(err)
	}
	reply, err := enroll.SendHeartbeat(ctx, dial, identity, enroll.Heartbeat{SentAt: time.Now()})
	if err != nil {
		panic(err)
	}
	fmt.Println("joined as", identity)
	fmt.Println("next heartbeat in", reply.Interval, "seconds")

	// The same token on another machine.
	_, other, err := enroll.NewKey()
	if err != nil {
		panic(err)
	}
	_, err = enroll.Join(ctx, dial, token, other, enroll.Facts{})
	fmt.Println(err)
	fmt.Println("final:", enroll.IsFinal(err))
	// Output:
	// joined as node web-1 (node-1)
	// next heartbeat in 30 seconds
	// the control plane refused: the join token is not good: unknown, expired, or used already
	// final: true
}
