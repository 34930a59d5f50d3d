// Package fleet keeps the life of nodes: it records what should exist, makes
// it so at the clouds, waits until it has joined, and removes it without a
// trace.
//
// The records are the truth. Everything else is a hint that may be late, lost
// or doubled: alarms, lists of servers, answers to calls. So every step is
// level-triggered and small: read the row, look at the cloud, do one thing,
// write the row if it still is what was read. A step that is interrupted at any
// instant is taken again and ends the same.
//
// Four verbs do all the work, and [Fleet.Run] and [Fleet.Sweep] are how an
// alarm clock drives them:
//
//   - Reconcile moves one node one step: it sends the create and the delete,
//     and keeps the deadline of the join.
//   - Observe reads all servers of one account in one list and brings every
//     node of the account up to date.
//   - Audit compares an account with the records and tells the difference.
//   - Sweep sets every alarm again that the records call for.
//
// The package knows what a provider is and not which, has no SQL and no HTTP:
// records are kept by a [Store], clouds are opened by [Clouds], and nodes come
// in through enroll's server half, whose registry a Fleet is.
package fleet
