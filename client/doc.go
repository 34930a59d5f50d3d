// Package client talks to a Slipway control plane over its HTTP API. It owns
// the API's types: the server side uses them as well.
//
// Start with [Discover] and [New]:
//
//	o, err := client.Discover(os.Getenv)
//	...
//	c, err := client.New(o)
//	...
//	node, err := c.CreateNode(ctx, client.CreateNode{Account: "hetzner", Candidates: []client.Candidate{{Region: "fsn1", Size: "cx23"}}})
//
// Every failure that the control plane or a provider gave a reason for is an
// [*Error] with a class, a hint and the provider's request id. Calls end with
// their context. A Client is safe for use by several goroutines.
//
// Within version 1 of the API, fields and calls are added and never changed or
// taken away; a client must ignore fields that it does not know, as this one
// does.
package client
