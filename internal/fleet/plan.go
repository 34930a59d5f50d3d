package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/provision"
)

// PlanNode says what a create would make and what it would cost, and makes
// nothing. What the provider can refuse beforehand is refused here.
func (f *Fleet) PlanNode(ctx context.Context, spec NodeSpec) (Plan, error) {
	a, err := f.checkCreate(ctx, spec)
	if err != nil {
		return Plan{}, err
	}
	_, cloud, err := f.open(ctx, spec.Account)
	if err != nil {
		return Plan{}, err
	}
	c := spec.Candidates[0]
	size, err := f.sizeOf(ctx, spec.Account, c)
	if err != nil {
		return Plan{}, err
	}
	n := f.newNode(spec)
	n.Attempt, n.Region, n.Size = 1, c.Region, c.Size
	n.Boot = f.boot()
	opts, err := f.createOpts(n)
	if err != nil {
		return Plan{}, invalidf("check --advertise and the node's name", "the user-data cannot be rendered: %v", err)
	}
	if p, ok := cloud.(provision.Preflighter); ok {
		callCtx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
		err := p.Preflight(callCtx, opts)
		cancel()
		if err != nil {
			return Plan{}, cloudError(a.Name, err)
		}
	}
	return Plan{
		Spec: spec, Provider: a.Provider, PriceMonthly: size.PriceMonthly, Currency: size.Currency,
		Makes: makes(a, spec, size), UserDataBytes: len(opts.UserData),
	}, nil
}

// sizeOf finds a candidate's size among those that its region has.
func (f *Fleet) sizeOf(ctx context.Context, account string, c Candidate) (provision.Size, error) {
	sizes, err := f.Sizes(ctx, account, c.Region)
	if err != nil {
		return provision.Size{}, err
	}
	i := slices.IndexFunc(sizes, func(s provision.Size) bool { return s.ID == c.Size })
	if i < 0 {
		return provision.Size{}, invalidf("list the region's sizes to see what can be had there",
			"account %s: there is no size %q in %q, or it is not sold there now", account, clip(c.Size, 60), clip(c.Region, 60))
	}
	return sizes[i], nil
}

// makes lists what a create makes, a line each.
func makes(a Account, spec NodeSpec, size provision.Size) []string {
	c := spec.Candidates[0]
	server := fmt.Sprintf("server %s: %s in %s at %s", spec.Name, c.Size, c.Region, a.Provider)
	if size.VCPUs > 0 {
		server += fmt.Sprintf(" (%d CPU, %d MB)", size.VCPUs, size.Memory)
	}
	lines := []string{server}
	for _, next := range spec.Candidates[1:] {
		lines = append(lines, fmt.Sprintf("or, without capacity there: %s in %s", next.Size, next.Region))
	}
	if !spec.AllowSSHInbound {
		return append(lines, "no inbound port is open")
	}
	from := "everywhere"
	if len(spec.SSHSourceCIDRs) > 0 {
		from = strings.Join(spec.SSHSourceCIDRs, ", ")
	}
	return append(lines, "one rule that lets SSH (TCP 22) in from "+from)
}

// renderUserData is the default of Config.RenderUserData.
func renderUserData(u UserData) (string, error) {
	return provision.RenderCloudInit(provision.CloudInitParams{
		ControlPlaneAddr: u.Address, JoinToken: u.JoinToken, CAFingerprint: u.CAFingerprint, NodeName: u.NodeName,
		AgentImage: u.AgentImage, AgentVersion: u.AgentVersion, MeshEnabled: u.MeshEnabled, ShortName: u.ShortName,
		DockerInstallURL: u.DockerInstallURL,
	})
}
