// Package crash kills a real control plane with SIGKILL, in the middle of
// creates and deletes, starts it again, and holds it to its promise: the node
// joins, or is gone, and nothing is left that costs money. The programs are
// the real ones, in processes of their own; only the cloud is simulated.
//
// The tests run with `make crash`, since they build and start programs.
package crash
