// Package apitest has a fleet in memory and a server over it, for tests of
// what talks to the API.
package apitest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// Step is one thing that happens to a node.
type Step struct {
	Phase   fleet.Phase
	Type    string
	Message string
	// After is the time since the step before.
	After time.Duration
	// Edit changes the node; may be nil.
	Edit func(*fleet.Node)
}

// Fleet is a fleet in memory. What becomes of a node is said by Script, all at
// once: nothing happens by itself. It is safe for use by several goroutines.
type Fleet struct {
	// Now is the time of what happens; set it before use.
	Now func() time.Time
	// Script says what happens to a node right after its create. Nil means
	// that it joins.
	Script func(fleet.NodeSpec) []Step
	// Ending says what happens right after a delete. Nil means that it is
	// seen to be gone.
	Ending func(fleet.Node) []Step
	// Fail returns the error that a method fails with; nil means none.
	Fail func(method, arg string) error

	AllRegions []provision.Region
	AllSizes   map[string][]provision.Size // by region
	Report     fleet.AuditReport

	mu       sync.Mutex
	nodes    []*fleet.Node
	events   []fleet.Event
	accounts []fleet.Account
	added    []fleet.AccountSpec
	changed  chan struct{}
	calls    []string
}

// New returns an empty fleet with Hetzner-like regions and sizes.
func New(now func() time.Time) *Fleet {
	size := func(id string, cpus, gb int, price, arch string) provision.Size {
		return provision.Size{ID: id, Name: strings.ToUpper(id), VCPUs: cpus, Memory: gb * 1024, Disk: 40, PriceMonthly: price, Currency: "EUR", Architecture: arch}
	}
	return &Fleet{
		Now:        now,
		AllRegions: []provision.Region{{ID: "fsn1", Name: "Falkenstein, DE"}, {ID: "nbg1", Name: "Nuremberg, DE"}},
		AllSizes: map[string][]provision.Size{
			"fsn1": {size("cx33", 4, 8, "6.49", "x86"), size("cx23", 2, 4, "4.15", "x86"), size("cax11", 2, 4, "4.51", "arm")},
			"nbg1": {size("cx33", 4, 8, "6.49", "x86"), size("cpx62", 16, 32, "", "x86")},
		},
		changed: make(chan struct{}),
	}
}

// called notes a call and returns the error it is to fail with.
func (f *Fleet) called(method, arg string) error {
	f.calls = append(f.calls, strings.TrimSpace(method+" "+arg))
	if f.Fail != nil {
		return f.Fail(method, arg)
	}
	return nil
}

// Calls returns the calls so far, as "CreateNode web-1".
func (f *Fleet) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Added returns what AddAccount was given, credentials included.
func (f *Fleet) Added() []fleet.AccountSpec {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.added)
}

// Happen makes steps happen to the node called name.
func (f *Fleet) Happen(name string, steps ...Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		if n.Name == name && n.Phase != fleet.PhaseDeleted {
			f.happen(n, steps)
			return
		}
	}
	panic("apitest: no node " + name)
}

func (f *Fleet) happen(n *fleet.Node, steps []Step) {
	at := n.UpdatedAt
	for _, s := range steps {
		at = at.Add(s.After)
		n.Phase, n.UpdatedAt = s.Phase, at
		if s.Edit != nil {
			s.Edit(n)
		}
		f.events = append(f.events, fleet.Event{Seq: int64(len(f.events) + 1), NodeID: n.ID, Node: n.Name, At: at, Type: s.Type, Phase: s.Phase, Message: s.Message})
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// Joins is the life of a node that joins.
func Joins(fleet.NodeSpec) []Step {
	return append(Boots(fleet.NodeSpec{}), Step{fleet.PhaseJoined, "joined", "the agent joined", 20 * time.Second, func(n *fleet.Node) { n.JoinedAt = n.UpdatedAt }})
}

// Boots is the life of a node that boots and has not joined yet.
func Boots(fleet.NodeSpec) []Step {
	return []Step{
		{fleet.PhaseCreating, "create-sent", "hetzner is asked for a server", 200 * time.Millisecond, nil},
		{fleet.PhaseBooting, "server-made", "hetzner made server 42", 1100 * time.Millisecond, func(n *fleet.Node) {
			n.ServerID, n.IPAddr, n.ServerStatus = "42", "203.0.113.7", provision.ServerStatusRunning
		}},
	}
}

// Fails is the life of a node that fails for a reason, with nothing left.
func Fails(r fleet.Reason) []Step {
	return []Step{
		{fleet.PhaseCreating, "create-sent", "hetzner is asked for a server", 200 * time.Millisecond, nil},
		{fleet.PhaseFailed, "failed", r.Message, time.Second, func(n *fleet.Node) { n.Reason, n.ServerGone = r, true }},
	}
}

// Goes is the end of a node whose server is seen to be gone.
func Goes(fleet.Node) []Step {
	return []Step{{fleet.PhaseDeleted, "server-gone", "the server is gone", 3 * time.Second, func(n *fleet.Node) {
		n.ServerGone, n.DeletedAt = true, n.UpdatedAt
	}}}
}

// CreateNode records a node and lets its script happen.
func (f *Fleet) CreateNode(_ context.Context, spec fleet.NodeSpec) (fleet.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("CreateNode", spec.Name); err != nil {
		return fleet.Node{}, err
	}
	acc, err := f.account(spec.Account)
	if err != nil {
		return fleet.Node{}, err
	}
	if n, _ := f.find(spec.Name); n != nil && n.Name == spec.Name && n.Phase != fleet.PhaseDeleted {
		return fleet.Node{}, &fleet.Error{Class: "conflict", Message: "a node named " + spec.Name + " exists already", Hint: "use another name"}
	}
	n := f.insert(spec, fleet.PhasePending)
	n.Provider, n.Region, n.Size = acc.Provider, spec.Candidates[0].Region, spec.Candidates[0].Size
	for _, s := range f.AllSizes[n.Region] {
		if s.ID == n.Size {
			n.PriceMonthly, n.Currency = s.PriceMonthly, s.Currency
		}
	}
	asked := *n
	f.happen(n, []Step{{fleet.PhasePending, "requested", "a node was asked for", 0, nil}})
	script := f.Script
	if script == nil {
		script = Joins
	}
	f.happen(n, script(spec))
	return asked, nil
}

func (f *Fleet) insert(spec fleet.NodeSpec, phase fleet.Phase) *fleet.Node {
	now := f.Now()
	n := &fleet.Node{
		ID:   fmt.Sprintf("0199aaaa-0000-7000-8000-%012d", len(f.nodes)+1),
		Name: spec.Name, Account: spec.Account, Spec: spec, Phase: phase, CreatedAt: now, UpdatedAt: now, JoinBy: now.Add(20 * time.Minute),
	}
	f.nodes = append(f.nodes, n)
	return n
}

// PlanNode says what a create would make.
func (f *Fleet) PlanNode(_ context.Context, spec fleet.NodeSpec) (fleet.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("PlanNode", spec.Name); err != nil {
		return fleet.Plan{}, err
	}
	acc, err := f.account(spec.Account)
	if err != nil {
		return fleet.Plan{}, err
	}
	p := fleet.Plan{Spec: spec, Provider: acc.Provider, Makes: []string{"1 server", "1 firewall without inbound rules"}, UserDataBytes: 2048}
	for _, s := range f.AllSizes[spec.Candidates[0].Region] {
		if s.ID == spec.Candidates[0].Size {
			p.PriceMonthly, p.Currency = s.PriceMonthly, s.Currency
		}
	}
	return p, nil
}

func (f *Fleet) find(ref string) (*fleet.Node, error) {
	var hit *fleet.Node
	for _, n := range f.nodes {
		if n.ID == ref || n.Name == ref && n.Phase != fleet.PhaseDeleted {
			return n, nil
		}
		if n.Phase != fleet.PhaseDeleted && (strings.HasPrefix(n.ID, ref) || strings.HasPrefix(n.Name, ref)) {
			if hit != nil {
				return nil, &fleet.Error{Class: "conflict", Message: fmt.Sprintf("%q could be any of several nodes", ref)}
			}
			hit = n
		}
	}
	if hit == nil {
		return nil, &fleet.Error{Class: "not-found", Message: fmt.Sprintf("there is no node %q", ref), Hint: "list the nodes to see their names"}
	}
	return hit, nil
}

// Node returns one node.
func (f *Fleet) Node(_ context.Context, ref string) (fleet.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Node", ref); err != nil {
		return fleet.Node{}, err
	}
	n, err := f.find(ref)
	if err != nil {
		return fleet.Node{}, err
	}
	return *n, nil
}

// Nodes returns the nodes that q selects.
func (f *Fleet) Nodes(_ context.Context, q fleet.NodeFilter) ([]fleet.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("Nodes", q.Account); err != nil {
		return nil, err
	}
	var res []fleet.Node
	for _, n := range f.nodes {
		ok := q.Account == "" || n.Account == q.Account
		ok = ok && (q.IncludeDeleted || n.Phase != fleet.PhaseDeleted)
		ok = ok && (len(q.Phases) == 0 || slices.Contains(q.Phases, n.Phase))
		for k, v := range q.Labels {
			ok = ok && n.Spec.Labels[k] == v
		}
		if ok {
			res = append(res, *n)
		}
	}
	return res, nil
}

// DeleteNode lets the node's end happen.
func (f *Fleet) DeleteNode(_ context.Context, ref string) (fleet.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.called("DeleteNode", ref); err != nil {
		return fleet.Node{}, err
	}
	n, err := f.find(ref)
	if err != nil {
		return fleet.Node{}, err
	}
	f.happen(n, []Step{{fleet.PhaseDeleting, "delete-asked", "it was asked to be deleted", 0, nil}})
	asked := *n
	ending := f.Ending
	if ending == nil {
		ending = Goes
	}
	f.happen(n, ending(*n))
	return asked, nil
}
