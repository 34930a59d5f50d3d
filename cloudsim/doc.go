// Package cloudsim simulates clouds: one world of servers, addresses,
// firewalls and keys behind the real wire formats of real providers, so that
// their official SDKs and command-line clients work against it unchanged.
//
// It is honest. Servers take time, fail, run out and cost; answers get lost;
// limits are kept, with the real headers. A guest boots only when its user-data
// is what a real cloud-init would accept: the files are written, the units are
// read, and the container that they start is run by the caller
// ([Options.RunContainer]). The ledger ([Sim.Ledger]) lists every billable
// thing ever made, and whether it is gone.
//
// The package shares no code with the clients that are tested against it.
// Under /_sim/ it answers questions that no cloud does: the ledger, the log of
// requests, the guests, faults, and the clock.
package cloudsim
