package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect is what differs between databases. Queries are written with ? for
// their arguments.
type dialect struct {
	// numbered placeholders ($1) instead of ?
	numbered bool
	// forUpdate is what a SELECT ends with to lock what it read. SQLite has
	// one writer at a time and needs none.
	forUpdate string
	// isUnique tells whether an error is that of a unique index.
	isUnique func(error) bool
}

var sqliteDialect = dialect{isUnique: func(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}}

// bind turns the placeholders of a query into those of the database.
func (d dialect) bind(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// querier is a pool or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// records reads through a querier: outside a transaction, or inside one, where
// what it reads is locked.
type records struct {
	q    querier
	d    dialect
	lock bool
	s    *Store
}

func (r records) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := r.q.ExecContext(ctx, r.d.bind(query), args...)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return res.RowsAffected()
}

// sel runs a SELECT that locks its rows inside a transaction, and calls scan
// for each.
func (r records) sel(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if r.lock && r.d.forUpdate != "" {
		query += " " + r.d.forUpdate
	}
	rows, err := r.q.QueryContext(ctx, r.d.bind(query), args...)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// micros is a time as it is kept; 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// scanTime scans into a time.
type scanTime struct{ t *time.Time }

func (s scanTime) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is kept as %T", v)
	}
	*s.t = fromMicros(n)
	return nil
}

// scanJSON scans JSON text into a value.
type scanJSON struct{ v any }

func (s scanJSON) Scan(v any) error {
	switch text := v.(type) {
	case string:
		return json.Unmarshal([]byte(text), s.v)
	case []byte:
		return json.Unmarshal(text, s.v)
	}
	return fmt.Errorf("JSON is kept as %T", v)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("store: records have nothing that cannot be encoded: " + err.Error())
	}
	return string(text)
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
