package apitest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// Events returns a node's timeline.
func (f *Fleet) Events(_ context.Context, ref string) ([]fleet.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Events", ref); err != nil {
		return nil, err
	}
	n, err := f.find(ref)
	if err != nil {
		return nil, err
	}
	return f.after(0, n.ID), nil
}

func (f *Fleet) after(seq int64, nodeID string) []fleet.Event {
	var res []fleet.Event
	for _, e := range f.events {
		if e.Seq > seq && (nodeID == "" || e.NodeID == nodeID) {
			res = append(res, e)
		}
	}
	return res
}

// Watch yields events after seq, then new ones until ctx ends.
func (f *Fleet) Watch(ctx context.Context, seq int64, ref string) iter.Seq2[fleet.Event, error] {
	return func(yield func(fleet.Event, error) bool) {
		for {
			f.mu.Lock()
			err := f.called("Watch", fmt.Sprint(ref, " ", seq))
			events, changed := f.after(seq, ref), f.changed
			f.mu.Unlock()
			if err != nil {
				yield(fleet.Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				seq = e.Seq
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *Fleet) account(name string) (fleet.Account, error) {
	for _, a := range f.accounts {
		if a.Name == name {
			return a, nil
		}
	}
	return fleet.Account{}, &fleet.Error{Class: "not-found", Message: fmt.Sprintf("there is no account %q", name), Hint: "list the accounts to see their names"}
}

// AddAccount records an account.
func (f *Fleet) AddAccount(_ context.Context, spec fleet.AccountSpec) (fleet.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("AddAccount", spec.Name); err != nil {
		return fleet.Account{}, err
	}
	if _, err := f.account(spec.Name); err == nil {
		return fleet.Account{}, &fleet.Error{Class: "conflict", Message: "an account named " + spec.Name + " exists already", Hint: "use another name"}
	}
	source := spec.Source
	if source == "" {
		source = "stored"
	}
	a := fleet.Account{Name: spec.Name, Provider: spec.Provider, Endpoint: spec.Endpoint, Source: source, CreatedAt: f.Now()}
	f.accounts, f.added = append(f.accounts, a), append(f.added, spec)
	return a, nil
}

// Accounts returns all accounts.
func (f *Fleet) Accounts(context.Context) ([]fleet.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Accounts", ""); err != nil {
		return nil, err
	}
	return append([]fleet.Account(nil), f.accounts...), nil
}

// CheckAccount fails for accounts that do not exist.
func (f *Fleet) CheckAccount(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("CheckAccount", name); err != nil {
		return err
	}
	_, err := f.account(name)
	return err
}

// RemoveAccount forgets an account, unless a live node uses it.
func (f *Fleet) RemoveAccount(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("RemoveAccount", name); err != nil {
		return err
	}
	for _, n := range f.nodes {
		if n.Account == name && n.Phase != fleet.PhaseDeleted {
			return &fleet.Error{Class: "refused", Message: fmt.Sprintf("account %s is in use: node %s is %s", name, n.Name, n.Phase), Hint: "delete its nodes first"}
		}
	}
	for i, a := range f.accounts {
		if a.Name == name {
			f.accounts = append(f.accounts[:i:i], f.accounts[i+1:]...)
			return nil
		}
	}
	_, err := f.account(name)
	return err
}

// Regions returns AllRegions.
func (f *Fleet) Regions(_ context.Context, account string) ([]provision.Region, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Regions", account); err != nil {
		return nil, err
	}
	_, err := f.account(account)
	return f.AllRegions, err
}

// Sizes returns AllSizes of the region.
func (f *Fleet) Sizes(_ context.Context, account, region string) ([]provision.Size, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Sizes", account+" "+region); err != nil {
		return nil, err
	}
	if _, err := f.account(account); err != nil {
		return nil, err
	}
	sizes, ok := f.AllSizes[region]
	if !ok {
		return nil, &fleet.Error{Class: "not-found", Message: fmt.Sprintf("account %s: no region %q", account, region)}
	}
	return sizes, nil
}

// Ticket records a node that joins by hand.
func (f *Fleet) Ticket(_ context.Context, spec fleet.NodeSpec) (fleet.JoinTicket, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Ticket", spec.Name); err != nil {
		return fleet.JoinTicket{}, err
	}
	n := f.insert(spec, fleet.PhaseBooting)
	if spec.JoinTimeout > 0 {
		n.JoinBy = n.CreatedAt.Add(spec.JoinTimeout)
	}
	f.happen(n, []Step{{fleet.PhaseBooting, "requested", "a ticket was asked for", 0, nil}})
	return fleet.JoinTicket{Node: *n, Address: "cp.example.com:8443", Token: TicketToken, CAFingerprint: Fingerprint, AgentImage: "ghcr.io/slipway-dev/slipway:v0.1.0"}, nil
}

// What tickets hold.
const (
	TicketToken = "swjt_aaaabbbbccccdddd.0123456789012345678901234567890123456789012"
	Fingerprint = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// Audit returns Report.
func (f *Fleet) Audit(_ context.Context, accounts ...string) (fleet.AuditReport, error) {
	return f.audit("Audit", accounts, false)
}

// RemoveLeftovers returns Report with its leftovers removed.
func (f *Fleet) RemoveLeftovers(_ context.Context, accounts ...string) (fleet.AuditReport, error) {
	return f.audit("RemoveLeftovers", accounts, true)
}

func (f *Fleet) audit(method string, accounts []string, remove bool) (fleet.AuditReport, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called(method, fmt.Sprint(accounts)); err != nil {
		return fleet.AuditReport{}, err
	}
	r := f.Report
	r.Accounts, r.At = accounts, f.Now()
	if len(accounts) == 0 {
		for _, a := range f.accounts {
			r.Accounts = append(r.Accounts, a.Name)
		}
	}
	r.Findings = append([]fleet.Finding(nil), r.Findings...)
	for i, x := range r.Findings {
		r.Findings[i].Removed = remove && x.Kind == fleet.FindingLeftover && x.Err == nil
	}
	return r, nil
}

// Start is when the clocks of tests begin.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
