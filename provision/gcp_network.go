package provision

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// The shared network, and the rules for SSH. Neither has labels at Google: ours
// stand in the description.

func (g *GCP) networkName() string { return g.labels.short + "-nodes" }

func (g *GCP) networkRef() string { return "global/networks/" + g.networkName() }

// describe writes labels as a description.
func describe(labels map[string]string) string {
	var words []string
	for _, k := range sortedKeys(labels) {
		words = append(words, k+"="+labels[k])
	}
	return strings.Join(words, " ")
}

// described reads them back. What is not of the form is left out.
func described(text string) map[string]string {
	labels := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		if k, v, ok := strings.Cut(word, "="); ok {
			labels[k] = v
		}
	}
	return labels
}

// sharedNetwork sees to it that the network is there.
func (g *GCP) sharedNetwork(ctx context.Context) error {
	_, err := g.networks.get(ctx, g.networkName(), g.makeNetwork)
	return err
}

// Google takes up to a minute for a network and its subnets.
const (
	networkTries = 60
	networkPause = 2 * time.Second
)

// makeNetwork finds the network or makes it. It is one with a subnet in every
// region, those yet to come too, so that there is nothing to make for each.
func (g *GCP) makeNetwork(ctx context.Context) (bool, error) {
	const op = "make the shared network"
	for range networkTries {
		var n gcpNetwork
		err := g.get(ctx, op, g.global("networks/"+g.networkName()), nil, &n)
		switch {
		case err == nil && n.AutoSubnets && len(n.Subnets) == 0:
			// Somebody else makes it right now.
			if !fits(ctx, networkPause) || sleep(ctx, networkPause) != nil {
				return false, g.fail(ErrUnavailable, op, "try again in a moment", "the network %q is being made, and is not ready yet", g.networkName())
			}
			continue
		case err == nil:
			return true, g.checkNetwork(op, n)
		case !errors.Is(err, ErrNotFound):
			return false, err
		}
		var started gcpOperation
		err = g.send(ctx, g.api, call{
			op: op, method: http.MethodPost, path: g.global("networks"), harmless: true, // the name is unique
			body: gcpNetwork{Name: g.networkName(), Description: describe(g.labels.shared(roleNetwork)), AutoSubnets: true},
		}, &started)
		if err == nil {
			return true, g.await(ctx, op, g.global("operations/"), started)
		}
		if !errors.Is(err, ErrConflict) {
			return false, err
		}
		// Taken, and not to be seen yet.
		if !fits(ctx, networkPause) || sleep(ctx, networkPause) != nil {
			return false, err
		}
	}
	return false, g.fail(ErrUnavailable, op, "try again in a moment", "the network %q is being made, and is not ready yet", g.networkName())
}

// checkNetwork refuses a network of that name that another made: its rules are
// theirs.
func (g *GCP) checkNetwork(op string, n gcpNetwork) error {
	switch {
	case !g.labels.isOurs(described(n.Description)):
		return g.fail(ErrConflict, op, "rename or delete it, or use another short name", "the network %q was made by somebody else", n.Name)
	case !n.AutoSubnets:
		return g.fail(ErrConflict, op, "delete it: it is made anew", "the network %q has no subnets of its own in each region", n.Name)
	}
	return nil
}

// await waits until an operation has ended, and returns what it ended with.
func (g *GCP) await(ctx context.Context, op, path string, o gcpOperation) error {
	name := o.Name
	for pause := time.Second; o.Status != "DONE"; pause = min(2*pause, 5*time.Second) {
		if !gcpName.MatchString(name) {
			return g.fail(ErrUnavailable, op, "", "the answer names no operation")
		}
		if !fits(ctx, pause) || sleep(ctx, pause) != nil {
			e := g.fail(ErrUnavailable, op, "repeat the call", "Google is not done yet, and the time is up")
			e.cause = context.DeadlineExceeded
			if ctx.Err() != nil {
				e.cause = ctx.Err()
			}
			return e
		}
		o = gcpOperation{}
		err := g.get(ctx, op, path+name, nil, &o)
		if errors.Is(err, ErrNotFound) {
			return nil // forgotten: it ended long ago, and the resource tells how
		}
		if err != nil {
			return err
		}
	}
	return o.failure(op)
}

// gcpSSHName is what the SSH rule of a server is called, and the tag by which
// the rule finds it: both follow from the server's id, so that they can be
// removed without a look.
func (g *GCP) sshName(serverID string) string {
	return g.labels.short + "-ssh-" + shortHash([]byte(serverID))[:20]
}

// sshPriority is before the end of a row that has nothing else in it.
const sshPriority = 1000

// openSSH makes the rule that lets SSH in, for this server alone. Google takes
// no IPv4 and IPv6 sources in one rule, and the network has no IPv6.
func (g *GCP) openSSH(ctx context.Context, serverID string, opts CreateOpts, id identity) error {
	const op = "make the SSH firewall"
	labels := map[string]string{
		managedBy: g.labels.short, g.labels.key(labelRole): roleSSH,
		g.labels.key(labelServer): serverID, g.labels.key(labelKey): id.key,
	}
	err := g.send(ctx, g.api, call{
		op: op, method: http.MethodPost, path: g.global("firewalls"), harmless: true, // the name is unique
		body: gcpFirewall{
			Name: g.sshName(serverID), Description: describe(labels), Network: g.networkRef(), Direction: "INGRESS", Priority: sshPriority,
			Allowed: []gcpAllowed{{Protocol: "tcp", Ports: []string{"22"}}}, SourceRanges: gcpSources(opts.SSHSourceCIDRs),
			TargetTags: []string{g.sshName(serverID)},
		},
	}, nil)
	if errors.Is(err, ErrConflict) {
		return nil // made by an earlier try: the name is this server's alone
	}
	return err
}

// gcpSources are the IPv4 sources among those asked for.
func gcpSources(cidrs []string) []string {
	if len(cidrs) == 0 {
		cidrs = anywhere()
	}
	var v4 []string
	for _, c := range cidrs {
		if !strings.Contains(c, ":") {
			v4 = append(v4, c)
		}
	}
	return v4
}
