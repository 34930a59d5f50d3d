package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/client"
)

// deleteOptions is what `node delete` was asked for.
type deleteOptions struct {
	labels  []string
	yes     bool
	wait    bool
	noWait  bool
	timeout time.Duration
}

func (a *app) nodeDeleteCommand() *cobra.Command {
	o := &deleteOptions{}
	c := &cobra.Command{
		Use: "delete NODE...", Aliases: []string{"rm"}, Short: "Delete nodes and wait until they are gone", ValidArgsFunction: a.completeNodes,
		Long: `Delete nodes with all that was made for them at the provider, and wait until each is seen to be gone. It works from
every phase. A node's access ends at once.

On a terminal it shows what goes and what it costs a month, and asks. Without one it does nothing unless --yes is given.`,
		Example: "  slipway node delete web-1 web-2\n  slipway node delete -l role=web --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runDelete(cmd.Context(), o, args)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.labels, "label", "l", nil, "delete all nodes with this `label`, as key=value; with several, all must fit")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.wait, "wait", true, "wait until they are seen to be gone")
	f.BoolVar(&o.noWait, "no-wait", false, "return as soon as the control plane has noted it")
	a.addTimeout(c, &o.timeout)
	a.addOutputFlag(c)
	return c
}

func (a *app) runDelete(ctx context.Context, o *deleteOptions, refs []string) error {
	api, err := a.Client()
	if err != nil {
		return err
	}
	nodes, err := a.chosen(ctx, api, o, refs)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		if !a.machine() {
			a.say("no node has these labels; nothing to delete")
		}
		return show(a, nodeView(a.Clock.Now()), nodes, false)
	}
	if err := a.confirm(o.yes, deleteQuestion(nodes)); err != nil {
		return err
	}
	after, err := sinceLast(ctx, api, nodes)
	if err != nil {
		return err
	}
	nodes, derr := a.askDelete(ctx, api, nodes)
	if len(nodes) == 0 {
		return derr
	}
	one := len(refs) == 1
	if o.noWait || !o.wait {
		if derr == nil && !a.machine() {
			a.say("the delete goes on; follow it with `slipway node wait --for deleted %s`", strings.Join(names(nodes), " "))
		}
		return a.showAfter(nodes, one, derr)
	}
	nodes, ferr := a.follow(ctx, api, nodes, after, goalDeleted, o.timeout)
	if ferr == nil && derr == nil && !a.machine() {
		a.say("%s gone; left behind: nothing", strings.Join(names(nodes), ", "))
	}
	if a.machine() {
		return a.showAfter(nodes, one, a.both(derr, ferr))
	}
	return a.both(derr, ferr)
}

// chosen are the nodes that names or labels select.
func (a *app) chosen(ctx context.Context, api *client.Client, o *deleteOptions, refs []string) ([]client.Node, error) {
	labels, err := parseLabels(o.labels)
	switch {
	case err != nil:
		return nil, err
	case len(refs) == 0 && labels == nil:
		return nil, usageError("name nodes, or select them with -l key=value", "nothing says which nodes to delete")
	case len(refs) > 0 && labels != nil:
		return nil, usageError("", "nodes are selected either by name or by --label")
	case labels != nil:
		return api.Nodes(ctx, client.NodeFilter{Labels: labels})
	}
	return a.resolve(ctx, api, refs)
}

// deleteQuestion lists what goes and what it costs.
func deleteQuestion(nodes []client.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This deletes %s with all that was made for them:\n", count(len(nodes), "node"))
	if len(nodes) == 1 {
		b.Reset()
		b.WriteString("This deletes 1 node with all that was made for it:\n")
	}
	for _, n := range nodes {
		line := []string{n.Name, n.Phase}
		for _, s := range []string{n.Provider, n.Region, n.Size, n.IPAddr} {
			if s != "" {
				line = append(line, s)
			}
		}
		if p := price(n.PriceMonthly, n.Currency); p != "" {
			line = append(line, p+" a month")
		}
		fmt.Fprintf(&b, "  %s\n", printable(strings.Join(line, "  ")))
	}
	if cost := costLine(nodes); cost != "" && len(nodes) > 1 {
		fmt.Fprintf(&b, "Together: %s\n", cost)
	}
	return b.String()
}

// askDelete sends the deletes. It returns the nodes for which it was noted, in
// order, and the first error of the others.
func (a *app) askDelete(ctx context.Context, api *client.Client, nodes []client.Node) ([]client.Node, error) {
	errs := make([]error, len(nodes))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range nodes {
		g.Go(func() error {
			n, err := api.DeleteNode(ctx, nodes[i].ID)
			if err == nil {
				nodes[i] = n
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait() // errors are kept by place
	var noted []client.Node
	var first error
	for i, n := range nodes {
		switch {
		case errs[i] == nil:
			noted = append(noted, n)
		case first == nil:
			first = errs[i]
		case ctx.Err() == nil:
			a.printError(errs[i])
		}
	}
	return noted, first
}
