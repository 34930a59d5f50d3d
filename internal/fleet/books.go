package fleet

import (
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// books are the records of one account, as read after its list.
type books struct {
	f        *Fleet
	account  string
	began    time.Time // of the list
	nodes    []Node
	left     []Left
	byID     map[string]Node
	byServer map[string]Node
}

// compare says what the list and the records disagree about.
func (b books) compare(resources []provision.Resource) []Finding {
	var res []Finding
	shown := map[string]bool{}
	for _, r := range resources {
		shown[r.Kind+"/"+r.ID] = true
		if x, ok := b.judge(r); ok {
			res = append(res, x)
		}
	}
	for _, l := range b.left {
		if !shown[l.Resource.Kind+"/"+l.Resource.ID] {
			n := b.byID[l.NodeID]
			res = append(res, b.finding(FindingLeftover, l.Resource, n, "a failed create left it behind; the provider's list does not show it now"))
		}
	}
	for _, n := range b.nodes {
		if x, ok := b.missing(n, shown); ok {
			res = append(res, x)
		}
	}
	return res
}

// judge says what a listed thing is, if not what it should be.
func (b books) judge(r provision.Resource) (Finding, bool) {
	if r.Shared {
		return Finding{}, false
	}
	fleetID, labelled := r.Labels[b.f.label(labelFleet)]
	n, known := b.owner(r)
	switch {
	case labelled && fleetID != b.f.cfg.FleetID:
		return b.finding(FindingForeign, r, Node{}, fmt.Sprintf("it belongs to another control plane, with fleet id %s", clip(fleetID, 63))), true
	case !labelled && !known:
		return b.finding(FindingForeign, r, Node{}, "it carries no fleet id, and no node's server: it is not for this control plane to remove"), true
	case b.f.young(r.CreatedAt, b.began):
		return Finding{}, false
	case !known:
		return b.finding(FindingLeftover, r, Node{}, "no node of this control plane's records has it"), true
	}
	return b.judgeOwned(r, n)
}

// judgeOwned is for a thing whose node is on record.
func (b books) judgeOwned(r provision.Resource, n Node) (Finding, bool) {
	ended := n.Phase == PhaseDeleted || n.Phase == PhaseFailed && n.ServerGone
	ending := !ended && (n.Phase == PhaseDeleting || n.Phase == PhaseFailed)
	switch {
	case ended && b.f.young(latest(n.DeletedAt, n.EndedAt), b.began):
		return Finding{}, false
	case ended:
		return b.finding(FindingLeftover, r, n, fmt.Sprintf("its node %s is %s", n.Name, n.Phase)), true
	case ending && b.f.young(n.EndedAt, b.began):
		return Finding{}, false
	case ending:
		return b.finding(FindingLeftover, r, n, fmt.Sprintf("the removal of node %s takes since %s", n.Name, n.EndedAt.Format(time.RFC3339))), true
	case r.Kind == provision.KindServer && n.ServerID != "" && n.ServerID != r.ID:
		return b.finding(FindingLeftover, r, n, fmt.Sprintf("node %s has server %s, and does not need this one", n.Name, n.ServerID)), true
	}
	return Finding{}, false
}

// owner finds the node that a thing belongs to: by its label, or by the server
// that it serves.
func (b books) owner(r provision.Resource) (Node, bool) {
	if n, ok := b.byID[r.Labels[b.f.label(labelNode)]]; ok {
		return n, true
	}
	if r.ServerID != "" {
		n, ok := b.byServer[r.ServerID]
		return n, ok
	}
	return Node{}, false
}

// missing tells of a live node whose server the list does not show.
func (b books) missing(n Node, shown map[string]bool) (Finding, bool) {
	if n.Phase != PhaseBooting && n.Phase != PhaseJoined || n.ServerID == "" || shown[provision.KindServer+"/"+n.ServerID] {
		return Finding{}, false
	}
	if b.f.young(n.CreateSentAt, b.began) {
		return Finding{}, false
	}
	r := provision.Resource{Kind: provision.KindServer, ID: n.ServerID, Name: n.Name, Region: n.Region, ServerID: n.ServerID}
	return b.finding(FindingMissing, r, n, fmt.Sprintf("node %s is %s, and the list does not show its server", n.Name, n.Phase)), true
}

func (b books) finding(kind FindingKind, r provision.Resource, n Node, message string) Finding {
	return Finding{Kind: kind, Account: b.account, Resource: r, Node: n.Name, NodeID: n.ID, Message: message}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
