package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Audit compares accounts, all of them when none is named, with the records.
// It changes nothing. An account that cannot be read whole is in the report's
// Errors: what it would have shown is not known.
func (f *Fleet) Audit(ctx context.Context, accounts ...string) (AuditReport, error) {
	names, err := f.accountNames(ctx, accounts)
	if err != nil {
		return AuditReport{}, err
	}
	r := AuditReport{At: f.now(), Accounts: names, Errors: map[string]error{}}
	for _, name := range names {
		findings, err := f.auditAccount(ctx, name)
		if err != nil {
			r.Errors[name] = err
		}
		r.Findings = append(r.Findings, findings...)
	}
	return r, ctx.Err()
}

// RemoveLeftovers audits, and removes the findings of kind leftover that a
// second audit shows as well. Each finding says what became of it.
func (f *Fleet) RemoveLeftovers(ctx context.Context, accounts ...string) (AuditReport, error) {
	r, err := f.Audit(ctx, accounts...)
	if err != nil {
		return r, err
	}
	for _, name := range r.Accounts {
		if r.Errors[name] != nil || !slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Account == name && x.Kind == FindingLeftover }) {
			continue
		}
		again, err := f.auditAccount(ctx, name)
		if err != nil {
			r.Errors[name] = err
			continue
		}
		_, cloud, err := f.open(ctx, name)
		if err != nil {
			r.Errors[name] = err
			continue
		}
		for i := range r.Findings {
			x := &r.Findings[i]
			if x.Account != name || x.Kind != FindingLeftover {
				continue
			}
			if !slices.ContainsFunc(again, x.same) {
				x.Message += "; a second look did not show it, so it was left alone"
				continue
			}
			if _, x.Err = f.removeOne(ctx, cloud, x.Resource); x.Err == nil {
				x.Removed = true
				x.Err = f.noteRemoved(ctx, *x)
			}
		}
	}
	return r, ctx.Err()
}

func (x Finding) same(y Finding) bool {
	return x.Kind == y.Kind && x.Resource.Kind == y.Resource.Kind && x.Resource.ID == y.Resource.ID
}

func (f *Fleet) accountNames(ctx context.Context, accounts []string) ([]string, error) {
	all, err := f.store.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	if len(accounts) == 0 {
		return names, nil
	}
	for _, a := range accounts {
		if !slices.Contains(names, a) {
			return nil, f.accountError(ctx, a, ErrNotFound)
		}
	}
	return accounts, nil
}

// auditAccount lists the cloud first and reads the records after: whatever is
// made in between is on record, and cannot look like a leftover.
func (f *Fleet) auditAccount(ctx context.Context, account string) ([]Finding, error) {
	_, cloud, err := f.open(ctx, account)
	if err != nil {
		return nil, err
	}
	began := f.now()
	resources, incomplete, err := f.listResources(ctx, cloud)
	if err != nil {
		return nil, cloudError(account, err)
	}
	b := books{f: f, account: account, began: began, byID: map[string]Node{}, byServer: map[string]Node{}}
	if b.nodes, err = f.store.Nodes(ctx, NodeQuery{Account: account}); err != nil {
		return nil, err
	}
	if b.left, err = f.store.Left(ctx, account); err != nil {
		return nil, err
	}
	for _, n := range b.nodes {
		b.byID[n.ID] = n
		if n.ServerID != "" {
			b.byServer[n.ServerID] = n
		}
	}
	return b.compare(resources), incomplete
}

// listResources lists what carries our labels; servers alone where the
// provider cannot list the rest, which makes the report incomplete.
func (f *Fleet) listResources(ctx context.Context, cloud provision.Provisioner) (rs []provision.Resource, incomplete, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	if a, ok := cloud.(provision.Auditor); ok {
		rs, err := a.ListResources(ctx)
		return rs, nil, err
	}
	l, ok := cloud.(provision.Lister)
	if !ok {
		return nil, nil, errors.New("the provider has no list to compare with")
	}
	servers, err := l.ListServers(ctx)
	for _, s := range servers {
		rs = append(rs, provision.Resource{Kind: provision.KindServer, ID: s.ID, Name: s.Name, Region: s.Region, ServerID: s.ID, CreatedAt: s.CreatedAt, Labels: s.Labels, Billable: true})
	}
	return rs, errors.New("only servers could be listed"), err
}

// noteRemoved writes a removal into the timeline of the node it belonged to,
// and takes it off the list of what was left behind.
func (f *Fleet) noteRemoved(ctx context.Context, x Finding) error {
	return f.store.Update(ctx, func(tx Tx) error {
		left, err := tx.Left(ctx, x.Account)
		if err != nil {
			return err
		}
		for _, l := range left {
			if l.Resource.Kind == x.Resource.Kind && l.Resource.ID == x.Resource.ID {
				if err := tx.DropLeft(ctx, l); err != nil {
					return err
				}
			}
		}
		n, err := tx.Node(ctx, x.NodeID)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		message := fmt.Sprintf("leftover %s %s was removed after an audit", x.Resource.Kind, x.Resource.ID)
		if err := f.event(ctx, tx, n, "leftover-removed", message); err != nil {
			return err
		}
		return tx.Wake(ctx, Alarm{AlarmNode, n.ID}, f.now())
	})
}

// Patrol audits every account and logs what it finds.
func (f *Fleet) Patrol(ctx context.Context) error {
	r, err := f.Audit(ctx)
	if err != nil {
		return err
	}
	for _, x := range r.Findings {
		if x.Kind != FindingForeign {
			f.log.WarnContext(ctx, "audit finding", "kind", x.Kind, "account", x.Account, "resource", x.Resource.Kind, "id", x.Resource.ID, "node", x.Node, "message", x.Message)
		}
	}
	for name, err := range r.Errors {
		f.log.WarnContext(ctx, "audit incomplete", "account", name, "error", err)
	}
	return nil
}

// young tells whether a thing is too young, or its node too freshly gone, to
// be called a leftover.
func (f *Fleet) young(at, began time.Time) bool {
	return !at.IsZero() && began.Sub(at) < f.timing.AuditFloor
}
