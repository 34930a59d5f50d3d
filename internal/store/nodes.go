package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
)

// column is one column of the table of nodes: how a value gets in and out.
type column struct {
	name string
	get  func(n *fleet.Node) any
	into func(n *fleet.Node) any
}

func text[T ~string](name string, at func(*fleet.Node) *T) column {
	return column{name, func(n *fleet.Node) any { return string(*at(n)) }, func(n *fleet.Node) any { return at(n) }}
}

func number[T ~int | ~int64](name string, at func(*fleet.Node) *T) column {
	return column{name, func(n *fleet.Node) any { return int64(*at(n)) }, func(n *fleet.Node) any { return at(n) }}
}

func flag(name string, at func(*fleet.Node) *bool) column {
	return column{name, func(n *fleet.Node) any { return asInt(*at(n)) }, func(n *fleet.Node) any { return at(n) }}
}

func instant(name string, at func(*fleet.Node) *time.Time) column {
	return column{name, func(n *fleet.Node) any { return micros(*at(n)) }, func(n *fleet.Node) any { return scanTime{at(n)} }}
}

func document[T any](name string, at func(*fleet.Node) *T) column {
	return column{name, func(n *fleet.Node) any { return asJSON(at(n)) }, func(n *fleet.Node) any { return scanJSON{at(n)} }}
}

// nodeColumns are all columns; id is the first, version the last.
var nodeColumns = []column{
	text("id", func(n *fleet.Node) *string { return &n.ID }),
	text("name", func(n *fleet.Node) *string { return &n.Name }),
	text("account", func(n *fleet.Node) *string { return &n.Account }),
	text("provider", func(n *fleet.Node) *string { return &n.Provider }),
	document("spec", func(n *fleet.Node) *fleet.NodeSpec { return &n.Spec }),
	text("phase", func(n *fleet.Node) *fleet.Phase { return &n.Phase }),
	number("attempt", func(n *fleet.Node) *int { return &n.Attempt }),
	text("idempotency_key", func(n *fleet.Node) *string { return &n.IdempotencyKey }),
	instant("create_sent_at", func(n *fleet.Node) *time.Time { return &n.CreateSentAt }),
	flag("doubt", func(n *fleet.Node) *bool { return &n.Doubt }),
	number("candidate", func(n *fleet.Node) *int { return &n.Candidate }),
	number("tries", func(n *fleet.Node) *int { return &n.Tries }),
	document("boot", func(n *fleet.Node) *fleet.Boot { return &n.Boot }),
	text("server_id", func(n *fleet.Node) *string { return &n.ServerID }),
	{
		"server_status",
		func(n *fleet.Node) any { return string(n.ServerStatus) },
		func(n *fleet.Node) any { return &n.ServerStatus },
	},
	text("ip_addr", func(n *fleet.Node) *string { return &n.IPAddr }),
	text("ipv6_addr", func(n *fleet.Node) *string { return &n.IPv6Addr }),
	text("region", func(n *fleet.Node) *string { return &n.Region }),
	text("size", func(n *fleet.Node) *string { return &n.Size }),
	instant("listed_at", func(n *fleet.Node) *time.Time { return &n.ListedAt }),
	instant("running_at", func(n *fleet.Node) *time.Time { return &n.RunningAt }),
	instant("missing_since", func(n *fleet.Node) *time.Time { return &n.MissingSince }),
	number("misses", func(n *fleet.Node) *int { return &n.Misses }),
	instant("delete_sent_at", func(n *fleet.Node) *time.Time { return &n.DeleteSentAt }),
	instant("ended_at", func(n *fleet.Node) *time.Time { return &n.EndedAt }),
	document("reason", func(n *fleet.Node) *fleet.Reason { return &n.Reason }),
	flag("server_gone", func(n *fleet.Node) *bool { return &n.ServerGone }),
	instant("join_by", func(n *fleet.Node) *time.Time { return &n.JoinBy }),
	instant("created_at", func(n *fleet.Node) *time.Time { return &n.CreatedAt }),
	instant("joined_at", func(n *fleet.Node) *time.Time { return &n.JoinedAt }),
	instant("deleted_at", func(n *fleet.Node) *time.Time { return &n.DeletedAt }),
	instant("updated_at", func(n *fleet.Node) *time.Time { return &n.UpdatedAt }),
	text("cert_serial", func(n *fleet.Node) *string { return &n.CertSerial }),
	text("prev_serial", func(n *fleet.Node) *string { return &n.PrevSerial }),
	document("facts", func(n *fleet.Node) *fleet.Facts { return &n.Facts }),
	text("price_monthly", func(n *fleet.Node) *string { return &n.PriceMonthly }),
	text("currency", func(n *fleet.Node) *string { return &n.Currency }),
	number("version", func(n *fleet.Node) *int64 { return &n.Version }),
}

// The statements that are made from the columns.
var nodeSelect, nodeInsert, nodeUpdate = nodeStatements()

func nodeStatements() (sel, ins, upd string) {
	var names, marks, sets []string
	for i, c := range nodeColumns {
		names = append(names, c.name)
		marks = append(marks, "?")
		if i > 0 {
			sets = append(sets, c.name+" = ?")
		}
	}
	sel = "SELECT " + strings.Join(names, ", ") + ", COALESCE((SELECT seen.at FROM seen WHERE seen.node_id = nodes.id), 0) FROM nodes"
	ins = "INSERT INTO nodes (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	upd = "UPDATE nodes SET " + strings.Join(sets, ", ") + " WHERE id = ? AND version = ?"
	return sel, ins, upd
}

func (r records) selectNodes(ctx context.Context, where string, args ...any) ([]fleet.Node, error) {
	var res []fleet.Node
	err := r.sel(ctx, nodeSelect+where, args, func(rows *sql.Rows) error {
		var n fleet.Node
		into := make([]any, 0, len(nodeColumns)+1)
		for _, c := range nodeColumns {
			into = append(into, c.into(&n))
		}
		if err := rows.Scan(append(into, scanTime{&n.LastSeenAt})...); err != nil {
			return err
		}
		res = append(res, n)
		return nil
	})
	return res, err
}

// Node implements fleet.Reader.
func (r records) Node(ctx context.Context, id string) (fleet.Node, error) {
	found, err := r.selectNodes(ctx, " WHERE id = ?", id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("node %s: %w", id, fleet.ErrNotFound)
	}
	if err != nil {
		return fleet.Node{}, err
	}
	return found[0], nil
}

// Nodes implements fleet.Reader.
func (r records) Nodes(ctx context.Context, q fleet.NodeQuery) ([]fleet.Node, error) {
	var where []string
	var args []any
	if q.Account != "" {
		where, args = append(where, "account = ?"), append(args, q.Account)
	}
	if len(q.Phases) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(q.Phases)), ", ")
		where = append(where, "phase IN ("+marks+")")
		for _, p := range q.Phases {
			args = append(args, string(p))
		}
	}
	if q.Ref != "" {
		where = append(where, "(substr(id, 1, ?) = ? OR substr(name, 1, ?) = ?)")
		n := len([]rune(q.Ref))
		args = append(args, n, q.Ref, n, q.Ref)
	}
	if q.Unsettled {
		where = append(where, "(phase IN ('pending', 'creating', 'booting', 'deleting') OR phase = 'failed' AND server_gone = 0)")
	}
	clause := ""
	if len(where) > 0 {
		clause = " WHERE " + strings.Join(where, " AND ")
	}
	return r.selectNodes(ctx, clause+" ORDER BY created_at, id", args...)
}

// InsertNode implements fleet.Tx.
func (t *tx) InsertNode(ctx context.Context, n fleet.Node) error {
	args := make([]any, 0, len(nodeColumns))
	for _, c := range nodeColumns {
		args = append(args, c.get(&n))
	}
	_, err := t.exec(ctx, nodeInsert, args...)
	if err != nil && t.d.isUnique(err) {
		return fmt.Errorf("node %s: %w", n.Name, fleet.ErrConflict)
	}
	return err
}

// UpdateNode implements fleet.Tx.
func (t *tx) UpdateNode(ctx context.Context, n *fleet.Node) error {
	next := *n
	next.Version++
	args := make([]any, 0, len(nodeColumns)+1)
	for _, c := range nodeColumns[1:] {
		args = append(args, c.get(&next))
	}
	count, err := t.exec(ctx, nodeUpdate, append(args, n.ID, n.Version)...)
	if err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("node %s: %w", n.ID, fleet.ErrStale)
	}
	n.Version = next.Version
	return nil
}

// Seen implements fleet.Tx.
func (t *tx) Seen(ctx context.Context, nodeID string, at time.Time) error {
	_, err := t.exec(ctx, "INSERT INTO seen (node_id, at) VALUES (?, ?) ON CONFLICT (node_id) DO UPDATE SET at = excluded.at", nodeID, micros(at))
	return err
}
