package fleet

import (
	"context"
	"time"
)

// overdue is by how much an alarm may be late before a sweep takes it for
// lost: longer than any job runs.
const overdue = 90 * time.Second

// Sweep sets every alarm again that the records call for: all of them at a
// start, later those that are missing or overdue. Whatever became of the
// alarms, nothing but time is lost.
func (f *Fleet) Sweep(ctx context.Context, first bool) error {
	wanted, err := f.wantedAlarms(ctx)
	if err != nil {
		return err
	}
	set, err := f.store.Alarms(ctx)
	if err != nil {
		return err
	}
	now := f.now()
	var due []Alarm
	for _, a := range wanted {
		at, ok := set[a]
		if first || !ok || now.Sub(at) > overdue {
			due = append(due, a)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return f.store.Update(ctx, func(tx Tx) error {
		for _, a := range due {
			if err := tx.Wake(ctx, a, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// wantedAlarms are those that must be set, as the records are now.
func (f *Fleet) wantedAlarms(ctx context.Context) ([]Alarm, error) {
	nodes, err := f.store.Nodes(ctx, NodeQuery{Unsettled: true})
	if err != nil {
		return nil, err
	}
	var res []Alarm
	for _, n := range nodes {
		res = append(res, Alarm{AlarmNode, n.ID})
	}
	accounts, err := f.store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		nodes, left, err := f.toObserve(ctx, a.Name)
		if err != nil {
			return nil, err
		}
		if len(nodes)+len(left) > 0 {
			res = append(res, Alarm{AlarmAccount, a.Name})
		}
	}
	return res, nil
}
