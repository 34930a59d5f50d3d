package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/slipway-dev/slipway/internal/fleet"
)

// Options are the settings of a Store.
type Options struct {
	// Path is the database file. Its directory is made, 0700, when it is not
	// there; the file is 0600.
	Path string
	// Sealer seals the credentials of accounts.
	Sealer *Sealer
	// Logger gets what River and the migrations have to say. Default: none.
	Logger *slog.Logger
	// Now is the clock that alarms are compared with. Default: time.Now.
	Now func() time.Time
}

// Store keeps records and alarms in a SQLite file. It is safe for use by many
// goroutines.
type Store struct {
	records // reads, through the pool of readers
	write   *sql.DB
	read    *sql.DB
	held    *sql.DB // the lock
	jobs    *river.Client[*sql.Tx]
	sealer  *Sealer
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	changed chan struct{}
}

var _ fleet.Store = (*Store)(nil)

// ErrInUse tells that another process has the database open.
var ErrInUse = errors.New("another control plane runs on this data directory")

//go:embed migrations
var migrations embed.FS

// readers is how many connections read at once, beside the one that writes.
const readers = 4

// Open opens the database, brings it to this version's form, and keeps every
// other process out until Close.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Sealer == nil {
		return nil, errors.New("store: a Sealer is needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{sealer: o.Sealer, log: o.Logger, now: o.Now, changed: make(chan struct{})}
	if err := s.open(ctx, o.Path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	var err error
	if s.held, err = hold(ctx, path+".lock"); err != nil {
		return err
	}
	// A file that SQLite makes itself would be readable by all.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if s.write, err = openDB(path, false); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.write.SetMaxIdleConns(1)
	s.write.SetConnMaxLifetime(0)
	if err := migrate(ctx, s.write, s.log); err != nil {
		return err
	}
	if s.read, err = openDB(path, true); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	s.records = records{q: s.read, d: sqliteDialect, s: s}
	// This client only sets jobs; the one that works them is made by Run.
	if s.jobs, err = river.NewClient(riversqlite.New(s.write), &river.Config{Logger: s.log}); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// openDB opens a pool. Every pragma stands in the name, so that each
// connection of the pool has it.
func openDB(path string, readOnly bool) (*sql.DB, error) {
	q := url.Values{}
	for _, p := range []string{
		"busy_timeout(10000)", "journal_mode(WAL)", "foreign_keys(1)",
		// A commit is on the disk when it returns: a server that was made must
		// be on record even after the power failed.
		"synchronous(FULL)", "temp_store(MEMORY)",
	} {
		q.Add("_pragma", p)
	}
	if readOnly {
		q.Add("_pragma", "query_only(1)")
	} else {
		q.Set("_txlock", "immediate")
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return db, nil
}

// hold locks a file for as long as the returned pool is open: an exclusive
// transaction in a database of its own, whose lock the system gives back when
// the process dies, however it dies.
func hold(ctx context.Context, path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(200)")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	db.SetConnMaxLifetime(0)
	if _, err := db.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		err = errors.Join(err, db.Close())
		var e *sqlite.Error
		if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY {
			return nil, fmt.Errorf("store: %w: %s is locked", ErrInUse, path)
		}
		return nil, fmt.Errorf("store: %w", err)
	}
	return db, nil
}

// migrate brings the tables, ours and River's, to this version's form.
func migrate(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	sub, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sub, goose.WithSlog(log))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("store: migration: %w", err)
	}
	m, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: log})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("store: migration of the jobs' tables: %w", err)
	}
	return nil
}

// Close gives the files back. End Run first.
func (s *Store) Close() error {
	var err error
	for _, db := range []*sql.DB{s.read, s.write, s.held} {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return err
}

// tx is a transaction.
type tx struct {
	records
	sql    *sql.Tx
	events bool // it has added events
}

// Update implements fleet.Store.
func (s *Store) Update(ctx context.Context, fn func(fleet.Tx) error) error {
	st, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer st.Rollback() // after a commit it does nothing
	t := &tx{records: records{q: st, d: sqliteDialect, lock: true, s: s}, sql: st}
	if err := fn(t); err != nil {
		return err
	}
	if err := st.Commit(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if t.events {
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
	return nil
}

// EventsChanged implements fleet.Store.
func (s *Store) EventsChanged() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
