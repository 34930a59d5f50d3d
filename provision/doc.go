// Package provision makes and removes cloud servers, the same way at every
// provider, for programs that run a fleet.
//
// # Start here
//
// [Open] takes a provider's short name and its credential, and returns a
// [Provisioner]. Five calls are all that most programs need:
//
//	p, err := provision.Open("hetzner", token, provision.Options{ShortName: "acme"})
//	regions, err := p.ListRegions(ctx)
//	sizes, err := p.ListSizes(ctx, "fsn1")
//	id, ip, err := p.CreateServer(ctx, provision.CreateOpts{
//		Region: "fsn1", Size: "cx23", Name: "node-1",
//		UserData:       userData, // see RenderCloudInit
//		IdempotencyKey: "node-1/attempt-1",
//	})
//	status, ip, err := p.GetServer(ctx, id)
//	err = p.DeleteServer(ctx, id)
//
// More powers are found by type assertion, as in package io: [Lister] reads
// the state of all servers in one sweep (poll that, not GetServer, when there
// are many), [Auditor] finds and removes whatever was left behind,
// [Preflighter] tells beforehand that a create would be refused,
// [ConsoleReader] reads a serial console and [Pricer] finds prices.
//
// # What it promises
//
// Nothing leaks. Name each create by [CreateOpts].IdempotencyKey and keep the
// key before the call: whatever happens to the call, the answer or the
// program, a repeat finds the same server. What a failed create could not
// remove again is in the error, see [LeftBehind], and [Auditor] finds all
// that was ever made by its labels.
//
// Nothing is open. A server has a firewall without inbound rules from its
// first second. [CreateOpts].AllowSSHInbound adds one rule for TCP 22, and
// takes it away with the server.
//
// Nothing is vague. Every failure is one of nine classes ([ErrCapacity] and
// its siblings), found by errors.Is, at every provider. A [*ProviderError]
// has the rest: the provider's code, its request id, what to do next.
//
// # What is made at a provider
//
// Everything carries the label managed-by with [Options].ShortName as value,
// and the labels of Options and CreateOpts. Beside them a server has
// <short>-key and <short>-params, hashes of the idempotency key and of the
// parameters, by which a repeat is recognised. Things that serve the whole
// account (the firewall without rules, a key that nobody holds) are made
// once, and show as [Resource].Shared.
//
// # Calls and their repeats
//
// A Provisioner is safe for use by many goroutines; use one per account, since
// it keeps that account's request limit in mind and slows down before the
// provider refuses. Calls that read are repeated on network errors and on a
// provider's bad moments, with growing pauses, within the caller's context; a
// call that makes something is sent again only when it is certain that it had
// no effect. Redirects are never followed. Each attempt has its own time
// limit, so a context without deadline is no danger, but give one.
//
// Credentials, user-data and passwords appear in no error and no log line.
//
// # Compatibility
//
// What this package exports stays. Structs gain fields at their end, new
// powers come as new optional interfaces, new error codes of providers are
// sorted into the existing classes. A text in Error() or Hint is for people
// and may change at any time: decide by class. Use field names in struct
// literals. Labels on things at the provider are part of the promise: a newer
// version recognises what an older one made.
package provision
