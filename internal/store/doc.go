// Package store keeps the fleet's records and its alarms: all SQL of the
// program is here.
//
// Records are in one SQLite file in WAL mode, beside a lock file that keeps a
// second control plane off the same directory. One connection writes, a few
// read; see [Open]. The SQL is what SQLite and PostgreSQL both understand:
// placeholders and the few words that differ stand in one place, dialect.go,
// and each database has its own migrations, so that another database is another
// dialect and not another store.
//
// Alarms are rows, and River is the clock that makes them ring; see [Store.Run].
// A job says which ring of which alarm it is for, and does nothing when the
// row says that another one counts by now: so jobs may be lost, doubled, late
// or stuck, and a sweep over the records makes good for it.
//
// Credentials of accounts are sealed with age to a key that lies in a file
// outside the database, see [OpenSealer].
package store
