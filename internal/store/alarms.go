package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/slipway-dev/slipway/internal/fleet"
)

// nearby is how far ahead a job is set at once and waits by snoozing: River
// brings jobs that are scheduled further ahead to life every 5 seconds only.
const nearby = 5 * time.Second

// Alarms implements fleet.Reader.
func (r records) Alarms(ctx context.Context) (map[fleet.Alarm]time.Time, error) {
	res := map[fleet.Alarm]time.Time{}
	err := r.sel(ctx, "SELECT kind, id, at FROM alarms WHERE at <> 0", nil, func(rows *sql.Rows) error {
		var a fleet.Alarm
		var at time.Time
		if err := rows.Scan(&a.Kind, &a.ID, scanTime{&at}); err != nil {
			return err
		}
		res[a] = at
		return nil
	})
	return res, err
}

// alarmRow is an alarm as it is kept.
type alarmRow struct {
	ring int64 // which ring counts
	at   time.Time
	job  int64 // River's id of the ring's job
}

func (r records) alarm(ctx context.Context, a fleet.Alarm) (row alarmRow, ok bool, err error) {
	err = r.sel(ctx, "SELECT ring, at, job FROM alarms WHERE kind = ? AND id = ?", []any{string(a.Kind), a.ID}, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&row.ring, scanTime{&row.at}, &row.job)
	})
	return row, ok, err
}

// Wake implements fleet.Tx. The alarm and its job are set together or not at
// all.
func (t *tx) Wake(ctx context.Context, a fleet.Alarm, at time.Time) error {
	now := t.s.now()
	row, ok, err := t.alarm(ctx, a)
	if err != nil {
		return err
	}
	if ok && row.at.After(now) && !row.at.After(at) {
		return nil
	}
	if err := t.dropJob(ctx, row.job); err != nil {
		return err
	}
	opts := &river.InsertOpts{}
	if at.Sub(now) > nearby {
		opts.ScheduledAt = at
	}
	job, err := t.s.jobs.InsertTx(ctx, t.sql, alarmJob{AlarmKind: string(a.Kind), ID: a.ID, Ring: row.ring + 1}, opts)
	if err != nil {
		return fmt.Errorf("store: alarm: %w", err)
	}
	_, err = t.exec(ctx, `INSERT INTO alarms (kind, id, ring, at, job) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (kind, id) DO UPDATE SET ring = excluded.ring, at = excluded.at, job = excluded.job`,
		string(a.Kind), a.ID, row.ring+1, micros(at), job.Job.ID)
	return err
}

// dropJob takes a job back that was not begun, so that no heap of jobs grows
// that do nothing. One that runs finds out by itself that its ring is over.
func (t *tx) dropJob(ctx context.Context, id int64) error {
	if id == 0 {
		return nil
	}
	_, err := t.s.jobs.JobDeleteTx(ctx, t.sql, id)
	if err == nil || errors.Is(err, rivertype.ErrNotFound) || errors.Is(err, rivertype.ErrJobRunning) {
		return nil
	}
	return fmt.Errorf("store: alarm: %w", err)
}

// again sets the time at which the same ring goes on, or ends the alarm when
// next is zero. It does nothing, and says so, when another ring counts by now.
//
// A row that has ended keeps its place: a job of a later ring must never find
// the number of an earlier one.
func (s *Store) again(ctx context.Context, a fleet.Alarm, ring int64, next time.Time) (counts bool, err error) {
	err = s.Update(ctx, func(ft fleet.Tx) error {
		n, err := ft.(*tx).exec(ctx, "UPDATE alarms SET at = ?, ring = ring + ? WHERE kind = ? AND id = ? AND ring = ?",
			micros(next), asInt(next.IsZero()), string(a.Kind), a.ID, ring)
		counts = n > 0
		return err
	})
	return counts, err
}
