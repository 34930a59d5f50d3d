// Package conformance is where strangers judge: the official SDK of each
// provider drives the simulated cloud through a server's whole life, and every
// body that we send or read decodes strictly into the SDK's own types. It is a
// module of its own so that nobody who uses the library downloads the SDKs.
package conformance
