package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
)

// Events implements fleet.Reader.
func (r records) Events(ctx context.Context, nodeID string, after int64, limit int) ([]fleet.Event, error) {
	query, args := "SELECT seq, node_id, node, at, type, phase, message FROM events WHERE seq > ?", []any{after}
	if nodeID != "" {
		query, args = query+" AND node_id = ?", append(args, nodeID)
	}
	query += " ORDER BY seq"
	if limit > 0 {
		query, args = query+" LIMIT ?", append(args, limit)
	}
	var res []fleet.Event
	err := r.sel(ctx, query, args, func(rows *sql.Rows) error {
		var e fleet.Event
		if err := rows.Scan(&e.Seq, &e.NodeID, &e.Node, scanTime{&e.At}, &e.Type, &e.Phase, &e.Message); err != nil {
			return err
		}
		res = append(res, e)
		return nil
	})
	return res, err
}

// AddEvent implements fleet.Tx.
func (t *tx) AddEvent(ctx context.Context, e fleet.Event) error {
	t.events = true
	_, err := t.exec(ctx, "INSERT INTO events (node_id, node, at, type, phase, message) VALUES (?, ?, ?, ?, ?, ?)",
		e.NodeID, e.Node, micros(e.At), e.Type, string(e.Phase), e.Message)
	return err
}

// Token implements fleet.Reader.
func (r records) Token(ctx context.Context, id string) (fleet.TokenRecord, error) {
	var k fleet.TokenRecord
	found := false
	err := r.sel(ctx, "SELECT id, node_id, attempt, secret_hash, state, created_at, expires_at, used_at, key_hash, misused_at FROM tokens WHERE id = ?", []any{id},
		func(rows *sql.Rows) error {
			found = true
			var hash string
			err := rows.Scan(&k.ID, &k.NodeID, &k.Attempt, &hash, &k.State, scanTime{&k.CreatedAt}, scanTime{&k.ExpiresAt}, scanTime{&k.UsedAt}, &k.KeyHash, scanTime{&k.MisusedAt})
			if err != nil {
				return err
			}
			b, err := hex.DecodeString(hash)
			if err != nil || copy(k.SecretHash[:], b) != len(k.SecretHash) {
				return fmt.Errorf("token %s: its hash is damaged", k.ID)
			}
			return nil
		})
	if err == nil && !found {
		err = fmt.Errorf("token: %w", fleet.ErrNotFound)
	}
	return k, err
}

// PutToken implements fleet.Tx.
func (t *tx) PutToken(ctx context.Context, k fleet.TokenRecord) error {
	_, err := t.exec(ctx, `INSERT INTO tokens (id, node_id, attempt, secret_hash, state, created_at, expires_at, used_at, key_hash, misused_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET node_id = excluded.node_id, attempt = excluded.attempt, secret_hash = excluded.secret_hash,
			state = excluded.state, created_at = excluded.created_at, expires_at = excluded.expires_at, used_at = excluded.used_at,
			key_hash = excluded.key_hash, misused_at = excluded.misused_at`,
		k.ID, k.NodeID, k.Attempt, hex.EncodeToString(k.SecretHash[:]), string(k.State), micros(k.CreatedAt), micros(k.ExpiresAt),
		micros(k.UsedAt), k.KeyHash, micros(k.MisusedAt))
	return err
}

// KillTokens implements fleet.Tx.
func (t *tx) KillTokens(ctx context.Context, nodeID string) (int, error) {
	n, err := t.exec(ctx, "UPDATE tokens SET state = 'dead' WHERE node_id = ? AND state = 'live'", nodeID)
	return int(n), err
}

const accountSelect = "SELECT name, provider, endpoint, source, created_at, last_error, observed_at FROM accounts"

func (r records) selectAccounts(ctx context.Context, where string, args ...any) ([]fleet.Account, error) {
	var res []fleet.Account
	err := r.sel(ctx, accountSelect+where, args, func(rows *sql.Rows) error {
		var a fleet.Account
		if err := rows.Scan(&a.Name, &a.Provider, &a.Endpoint, &a.Source, scanTime{&a.CreatedAt}, &a.LastError, scanTime{&a.ObservedAt}); err != nil {
			return err
		}
		res = append(res, a)
		return nil
	})
	return res, err
}

// Account implements fleet.Reader.
func (r records) Account(ctx context.Context, name string) (fleet.Account, error) {
	found, err := r.selectAccounts(ctx, " WHERE name = ?", name)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("account %s: %w", name, fleet.ErrNotFound)
	}
	if err != nil {
		return fleet.Account{}, err
	}
	return found[0], nil
}

// Accounts implements fleet.Reader.
func (r records) Accounts(ctx context.Context) ([]fleet.Account, error) {
	return r.selectAccounts(ctx, " ORDER BY name")
}

// Credential implements fleet.Reader.
func (r records) Credential(ctx context.Context, account string) (string, error) {
	var sealed []byte
	found := false
	err := r.sel(ctx, "SELECT sealed FROM accounts WHERE name = ?", []any{account}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&sealed)
	})
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", fmt.Errorf("account %s: %w", account, fleet.ErrNotFound)
	case len(sealed) == 0:
		return "", nil
	}
	credential, err := r.s.sealer.unseal(sealed)
	if err != nil {
		return "", fmt.Errorf("store: the credential of account %s: %w", account, err)
	}
	return credential, nil
}

// InsertAccount implements fleet.Tx.
func (t *tx) InsertAccount(ctx context.Context, a fleet.Account, credential string) error {
	var sealed []byte
	if credential != "" {
		var err error
		if sealed, err = t.s.sealer.seal(credential); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	_, err := t.exec(ctx, "INSERT INTO accounts (name, provider, endpoint, source, sealed, created_at, last_error, observed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		a.Name, a.Provider, a.Endpoint, a.Source, sealed, micros(a.CreatedAt), a.LastError, micros(a.ObservedAt))
	if err != nil && t.d.isUnique(err) {
		return fmt.Errorf("account %s: %w", a.Name, fleet.ErrConflict)
	}
	return err
}

// SetAccountHealth implements fleet.Tx.
func (t *tx) SetAccountHealth(ctx context.Context, name, lastError string, observedAt time.Time) error {
	return t.one(ctx, "account "+name, "UPDATE accounts SET last_error = ?, observed_at = ? WHERE name = ?", lastError, micros(observedAt), name)
}

// DeleteAccount implements fleet.Tx.
func (t *tx) DeleteAccount(ctx context.Context, name string) error {
	if err := t.one(ctx, "account "+name, "DELETE FROM accounts WHERE name = ?", name); err != nil {
		return err
	}
	_, err := t.exec(ctx, "DELETE FROM alarms WHERE kind = ? AND id = ?", string(fleet.AlarmAccount), name)
	return err
}

// one runs a statement that must meet a row.
func (t *tx) one(ctx context.Context, what, query string, args ...any) error {
	n, err := t.exec(ctx, query, args...)
	if err == nil && n == 0 {
		return fmt.Errorf("%s: %w", what, fleet.ErrNotFound)
	}
	return err
}

// Left implements fleet.Reader.
func (r records) Left(ctx context.Context, account string) ([]fleet.Left, error) {
	query, args := "SELECT account, node_id, resource, at FROM left_behind", []any(nil)
	if account != "" {
		query, args = query+" WHERE account = ?", []any{account}
	}
	var res []fleet.Left
	err := r.sel(ctx, query+" ORDER BY at, account, kind, id", args, func(rows *sql.Rows) error {
		var l fleet.Left
		if err := rows.Scan(&l.Account, &l.NodeID, scanJSON{&l.Resource}, scanTime{&l.At}); err != nil {
			return err
		}
		res = append(res, l)
		return nil
	})
	return res, err
}

// PutLeft implements fleet.Tx.
func (t *tx) PutLeft(ctx context.Context, l fleet.Left) error {
	_, err := t.exec(ctx, `INSERT INTO left_behind (account, kind, id, node_id, resource, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (account, kind, id) DO UPDATE SET node_id = excluded.node_id, resource = excluded.resource`,
		l.Account, l.Resource.Kind, l.Resource.ID, l.NodeID, asJSON(l.Resource), micros(l.At))
	return err
}

// DropLeft implements fleet.Tx.
func (t *tx) DropLeft(ctx context.Context, l fleet.Left) error {
	_, err := t.exec(ctx, "DELETE FROM left_behind WHERE account = ? AND kind = ? AND id = ?", l.Account, l.Resource.Kind, l.Resource.ID)
	return err
}
