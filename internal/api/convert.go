package api

import (
	"maps"
	"slices"
	"time"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func wireNode(n fleet.Node) client.Node {
	w := client.Node{
		ID: n.ID, Name: n.Name, Phase: string(n.Phase), Account: n.Account, Provider: n.Provider,
		Region: n.Region, Size: n.Size, ServerID: n.ServerID, ServerStatus: string(n.ServerStatus),
		IPAddr: n.IPAddr, IPv6Addr: n.IPv6Addr, Labels: visibleLabels(n.Spec.Labels),
		PriceMonthly: n.PriceMonthly, Currency: n.Currency, ServerGone: n.ServerGone,
		CreatedAt: n.CreatedAt.UTC(), JoinBy: at(n.JoinBy), JoinedAt: at(n.JoinedAt), LastSeenAt: at(n.LastSeenAt), DeletedAt: at(n.DeletedAt),
	}
	if n.Reason != (fleet.Reason{}) {
		w.Reason = &client.Reason{Class: n.Reason.Class, Message: n.Reason.Message, Hint: n.Reason.Hint, RequestID: n.Reason.RequestID}
	}
	if n.Facts != (fleet.Facts{}) {
		f := client.Facts(n.Facts)
		w.Facts = &f
	}
	return w
}

func wireEvent(e fleet.Event) client.Event {
	return client.Event{Seq: e.Seq, NodeID: e.NodeID, Node: e.Node, At: e.At.UTC(), Type: e.Type, Phase: string(e.Phase), Message: e.Message}
}

func wireAccount(a fleet.Account) client.Account {
	return client.Account{Name: a.Name, Provider: a.Provider, Source: a.Source, Endpoint: a.Endpoint,
		CreatedAt: a.CreatedAt.UTC(), ObservedAt: at(a.ObservedAt), LastError: a.LastError}
}

func wireRegion(r provision.Region) client.Region { return client.Region{ID: r.ID, Name: r.Name} }

func wireSize(s provision.Size) client.Size {
	return client.Size{ID: s.ID, Name: s.Name, VCPUs: s.VCPUs, MemoryMB: s.Memory, DiskGB: s.Disk, Architecture: s.Architecture,
		PriceMonthly: s.PriceMonthly, Currency: s.Currency, UnavailableAfter: at(s.UnavailableAfter)}
}

// WireRegions returns regions as the API sends them.
func WireRegions(in []provision.Region) []client.Region { return mapped(in, wireRegion) }

// WireSizes returns sizes as the API sends them.
func WireSizes(in []provision.Size) []client.Size { return mapped(in, wireSize) }

func wirePlan(p fleet.Plan) client.Plan {
	w := client.Plan{Name: p.Spec.Name, Account: p.Spec.Account, Provider: p.Provider, PriceMonthly: p.PriceMonthly,
		Currency: p.Currency, Makes: orEmpty(p.Makes), UserDataSize: p.UserDataBytes}
	if len(p.Spec.Candidates) > 0 {
		w.Region, w.Size = p.Spec.Candidates[0].Region, p.Spec.Candidates[0].Size
	}
	return w
}

func wireTicket(t fleet.JoinTicket) client.JoinTicket {
	return client.JoinTicket{NodeID: t.Node.ID, Node: t.Node.Name, Address: t.Address, Token: t.Token,
		CAFingerprint: t.CAFingerprint, ExpiresAt: t.Node.JoinBy.UTC(), AgentImage: t.AgentImage}
}

func wireReport(r fleet.AuditReport) client.AuditReport {
	w := client.AuditReport{At: r.At.UTC(), Accounts: orEmpty(r.Accounts), Findings: []client.Finding{}, Complete: len(r.Errors) == 0}
	for _, f := range r.Findings {
		wf := client.Finding{Kind: string(f.Kind), Account: f.Account, Resource: f.Resource.Kind, ID: f.Resource.ID, Name: f.Resource.Name,
			Node: f.Node, Billable: f.Resource.Billable, Message: f.Message, Removed: f.Removed}
		if !f.Resource.CreatedAt.IsZero() && r.At.After(f.Resource.CreatedAt) {
			wf.Age = r.At.Sub(f.Resource.CreatedAt).Round(time.Second).String()
		}
		if f.Err != nil {
			wf.Error = ProblemOf(f.Err).Detail
		}
		w.Findings = append(w.Findings, wf)
	}
	for _, account := range slices.Sorted(maps.Keys(r.Errors)) {
		w.Errors = append(w.Errors, account+": "+ProblemOf(r.Errors[account]).Detail)
	}
	return w
}

func specOf(in client.CreateNode) (fleet.NodeSpec, error) {
	timeout, err := duration(in.JoinTimeout)
	if err != nil {
		return fleet.NodeSpec{}, err
	}
	spec := fleet.NodeSpec{
		Name: in.Name, Account: in.Account, Labels: maps.Clone(in.Labels), AllowSSHInbound: in.AllowSSHInbound,
		SSHKeys: in.SSHKeys, SSHSourceCIDRs: in.SSHSourceCIDRs, Image: in.Image, Architecture: in.Architecture,
		DiskGB: in.DiskGB, MeshEnabled: in.Mesh, JoinTimeout: timeout,
	}
	for _, c := range in.Candidates {
		spec.Candidates = append(spec.Candidates, fleet.Candidate(c))
	}
	return spec, checkLabels(in.Labels)
}

func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, invalid("join_timeout: %q is not a duration: write it as 20m or 1h30m", s)
	}
	return d, nil
}

// mapped turns every element of in; the result is never nil, so that an empty
// list is sent as [].
func mapped[A, B any](in []A, f func(A) B) []B {
	res := make([]B, 0, len(in))
	for _, v := range in {
		res = append(res, f(v))
	}
	return res
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
