package cli

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

func (a *app) nodeCommand() *cobra.Command {
	c := parent("node", "Create, list, follow and delete nodes",
		a.nodeCreateCommand(), a.nodeListCommand(), a.nodeGetCommand(), a.nodeWaitCommand(), a.nodeEventsCommand(), a.nodeDeleteCommand())
	c.Aliases = []string{"nodes"}
	c.Long = `A node is a fleet member: the record of a server that should exist, and whether it joined. Its phase goes
pending, creating, booting, joined, deleting, deleted; or failed, with a reason.

Commands take a node's name, its id, or a prefix of either that no other node has.`
	return c
}

func nodeView(now time.Time) view[client.Node] {
	return view[client.Node]{
		name: func(n client.Node) string { return n.Name },
		columns: []column[client.Node]{
			{title: "NAME", cell: func(n client.Node) string { return n.Name }},
			{title: "PHASE", cell: func(n client.Node) string { return n.Phase }, style: phaseStyle},
			{title: "PROVIDER", cell: func(n client.Node) string { return n.Provider }},
			{title: "REGION", cell: func(n client.Node) string { return n.Region }},
			{title: "SIZE", cell: func(n client.Node) string { return n.Size }},
			{title: "ADDRESS", cell: func(n client.Node) string { return n.IPAddr }},
			{title: "AGE", cell: func(n client.Node) string { return age(now.Sub(n.CreatedAt)) }, right: true},
			{title: "A MONTH", cell: func(n client.Node) string { return price(n.PriceMonthly, n.Currency) }, right: true},
			{title: "ACCOUNT", cell: func(n client.Node) string { return n.Account }, wide: true},
			{title: "SERVER", cell: func(n client.Node) string { return n.ServerID }, wide: true},
			{title: "SEEN", cell: func(n client.Node) string { return ago(now, n.LastSeenAt) }, wide: true, right: true},
			{title: "ID", cell: func(n client.Node) string { return n.ID }, wide: true},
			{title: "LABELS", cell: func(n client.Node) string { return joinLabels(n.Labels) }, wide: true},
			{title: "REASON", cell: reasonText, wide: true},
		},
	}
}

func phaseStyle(n client.Node) style {
	switch n.Phase {
	case "joined":
		return styleGreen
	case "failed":
		return styleRed
	case "deleted":
		return styleFaint
	}
	return styleYellow
}

func ago(now time.Time, t *time.Time) string {
	if t == nil {
		return ""
	}
	return age(now.Sub(*t))
}

func reasonText(n client.Node) string {
	if n.Reason == nil {
		return ""
	}
	return n.Reason.Message
}

func joinLabels(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// parseLabels reads key=value words.
func parseLabels(words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, usageError("write it as --label role=web", "%q is not a label of the form key=value", printable(w))
		}
		m[k] = v
	}
	return m, nil
}

func (a *app) nodeListCommand() *cobra.Command {
	var labels, phases []string
	var f client.NodeFilter
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List nodes", Args: cobra.NoArgs,
		Long: "List nodes, with what they cost a month. Where the output is not a terminal, columns are separated by tabs and there is no title line.",
		Example: `  slipway node list
  slipway node list -l role=web -o wide
  slipway node list --phase failed -o json`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Labels, err = parseLabels(labels); err != nil {
				return err
			}
			f.Phases = phases
			api, err := a.Client()
			if err != nil {
				return err
			}
			nodes, err := api.Nodes(cmd.Context(), f)
			if err != nil {
				return err
			}
			if err := show(a, nodeView(a.Clock.Now()), nodes, false); err != nil {
				return err
			}
			a.listFooter(nodes)
			return nil
		},
	}
	c.Flags().StringArrayVarP(&labels, "label", "l", nil, "only nodes with this `label`, as key=value; may be repeated")
	c.Flags().StringVar(&f.Account, "account", "", "only nodes of this account")
	c.Flags().StringSliceVar(&phases, "phase", nil, "only nodes in these phases")
	c.Flags().BoolVar(&f.IncludeDeleted, "all", false, "deleted nodes too")
	a.addOutputFlag(c)
	a.completeAccount(c)
	_ = c.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(
		[]string{"pending", "creating", "booting", "joined", "deleting", "deleted", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// listFooter says, to people alone, how many there are and what they cost.
func (a *app) listFooter(nodes []client.Node) {
	if a.machine() || !a.IO.OutTTY {
		return
	}
	if len(nodes) == 0 {
		a.say("no nodes; `slipway node create` makes one")
		return
	}
	line := count(len(nodes), "node")
	var live []client.Node
	for _, n := range nodes {
		if n.Phase != "deleted" && !n.ServerGone {
			live = append(live, n)
		}
	}
	if cost := costLine(live); cost != "" {
		line += ", " + cost
	}
	a.say("%s", line)
}

func (a *app) nodeGetCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "get NODE...", Aliases: []string{"show", "describe"}, Short: "Show nodes with all that is known of them",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.Client()
			if err != nil {
				return err
			}
			nodes, err := a.resolve(cmd.Context(), api, args)
			if err != nil {
				return err
			}
			if a.format != formatTable {
				return show(a, nodeView(a.Clock.Now()), nodes, len(args) == 1)
			}
			for i, n := range nodes {
				if i > 0 {
					fmt.Fprintln(a.IO.Out)
				}
				a.describe(nodePairs(n))
			}
			return nil
		},
	}
	a.addOutputFlag(c)
	return c
}

func nodePairs(n client.Node) []pair {
	p := []pair{
		{"name", n.Name}, {"id", n.ID}, {"phase", n.Phase},
		{"account", n.Account}, {"provider", n.Provider}, {"region", n.Region}, {"size", n.Size},
		{"server", strings.TrimSpace(n.ServerID + " " + n.ServerStatus)}, {"address", n.IPAddr}, {"IPv6", n.IPv6Addr},
		{"a month", price(n.PriceMonthly, n.Currency)}, {"labels", joinLabels(n.Labels)},
		{"created", n.CreatedAt.UTC().Format(time.RFC3339)},
	}
	if n.JoinedAt == nil {
		p = append(p, pair{"join by", stamp(n.JoinBy)})
	}
	p = append(p, pair{"joined", stamp(n.JoinedAt)}, pair{"seen", stamp(n.LastSeenAt)}, pair{"deleted", stamp(n.DeletedAt)})
	if f := n.Facts; f != nil {
		p = append(p, pair{"system", f.OS}, pair{"kernel", f.Kernel}, pair{"architecture", f.Architecture},
			pair{"docker", f.DockerVersion}, pair{"agent", f.AgentVersion}, pair{"hostname", f.Hostname})
	}
	if r := n.Reason; r != nil {
		p = append(p, pair{"reason", r.Message}, pair{"class", r.Class}, pair{"next", r.Hint}, pair{"request id", r.RequestID})
		left := "nothing"
		if !n.ServerGone {
			left = "perhaps server " + n.ServerID + ", being removed"
			if n.ServerID == "" {
				left = "perhaps a server, being looked for"
			}
		}
		p = append(p, pair{"left behind", left})
	}
	return p
}

// resolve gets every node that refs name, or the error of the first that
// names none.
func (a *app) resolve(ctx context.Context, api *client.Client, refs []string) ([]client.Node, error) {
	var nodes []client.Node
	seen := map[string]bool{}
	for _, r := range refs {
		n, err := api.Node(ctx, r)
		if err != nil {
			return nil, a.explainRef(ctx, api, r, err)
		}
		if !seen[n.ID] {
			seen[n.ID] = true
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// explainRef adds names that are near to an error about a node that is not
// found.
func (a *app) explainRef(ctx context.Context, api *client.Client, ref string, err error) error {
	if client.ClassOf(err) != client.ClassNotFound {
		return err
	}
	hint := "`slipway node list` shows all nodes"
	if nodes, lerr := api.Nodes(ctx, client.NodeFilter{}); lerr == nil {
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		if near := nearest(ref, names); len(near) > 0 {
			hint = "did you mean " + quoteList(near) + "? " + hint
		}
	}
	return &exitError{code: ExitNotFound, err: err, hint: hint}
}

func (a *app) nodeWaitCommand() *cobra.Command {
	var until string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait NODE...", Short: "Wait until nodes have joined, or are gone", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeNodes,
		Example: "  slipway node wait web-1 --timeout 10m\n  slipway node wait web-1 --for deleted",
		RunE: func(cmd *cobra.Command, args []string) error {
			g := goalJoined
			switch until {
			case goalJoined.phase:
			case goalDeleted.phase:
				g = goalDeleted
			default:
				return usageError("--for takes joined or deleted", "nodes cannot be waited for to be %q", printable(until))
			}
			api, err := a.Client()
			if err != nil {
				return err
			}
			nodes, err := a.resolve(cmd.Context(), api, args)
			if err != nil {
				return err
			}
			seqs := sinceLast
			if g == goalJoined {
				seqs = sinceFirst // the stages so far belong to the picture
			}
			after, err := seqs(cmd.Context(), api, nodes)
			if err != nil {
				return err
			}
			nodes, ferr := a.follow(cmd.Context(), api, nodes, after, g, timeout)
			return a.showAfter(nodes, len(args) == 1, ferr)
		},
	}
	c.Flags().StringVar(&until, "for", goalJoined.phase, "what to wait for: joined or deleted")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"joined", "deleted"}, cobra.ShellCompDirectiveNoFileComp))
	a.addTimeout(c, &timeout)
	a.addOutputFlag(c)
	return c
}

func (a *app) addTimeout(c *cobra.Command, d *time.Duration) {
	c.Flags().DurationVar(d, "timeout", 0, "how long to wait at most, as 10m; 0 waits without end. The work goes on after it")
}

// showAfter prints nodes once a wait has ended, also when it failed, and
// returns the wait's error.
func (a *app) showAfter(nodes []client.Node, one bool, waitErr error) error {
	if err := show(a, nodeView(a.Clock.Now()), nodes, one); err != nil && waitErr == nil {
		return err
	}
	return waitErr
}

func (a *app) nodeEventsCommand() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "events NODE", Short: "Show a node's timeline", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeNodes,
		Long: "Show what happened to a node and when. The timeline is kept after the node's end. With --follow it goes on until Ctrl-C, and JSON is one object a line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.Client()
			if err != nil {
				return err
			}
			if follow {
				return a.followEvents(cmd.Context(), api, args[0])
			}
			events, err := api.Events(cmd.Context(), args[0])
			if err != nil {
				return a.explainRef(cmd.Context(), api, args[0], err)
			}
			return show(a, eventView(events), events, false)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events as they happen")
	a.addOutputFlag(c)
	return c
}
