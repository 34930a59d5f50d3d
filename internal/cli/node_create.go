package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/client"
)

// createOptions is what `node create` was asked for.
type createOptions struct {
	in         client.CreateNode
	region     string
	size       string
	candidates []string
	labels     []string
	sshKeys    []string
	join       time.Duration
	count      int
	dryRun     bool
	wait       bool
	noWait     bool
	timeout    time.Duration
}

const createLong = `Create a node and wait until it has joined. A name is made up when none is given.

With --candidate, several places and sizes are tried in order while the provider has no capacity. A node that fails on
its way has its server removed; the error says what is left behind.

Ctrl-C and --timeout end the waiting, not the work: the control plane goes on.`

const createExample = `  slipway node create web-1 --account hetzner --region fsn1 --size cx23
  slipway node create --count 3 --candidate fsn1/cx23 --candidate nbg1/cx23 -l role=web
  slipway node create --region fsn1 --size cx23 --dry-run`

func (a *app) nodeCreateCommand() *cobra.Command {
	o := &createOptions{}
	c := &cobra.Command{
		Use: "create [NAME]", Short: "Create a node and wait until it has joined", Args: cobra.MaximumNArgs(1),
		Long: createLong, Example: createExample, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.in.Name = args[0]
			}
			return a.runCreate(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.in.Account, "account", "", "the account to create it with; not needed when there is one only")
	f.StringVar(&o.region, "region", "", "where; 'slipway regions' lists them")
	f.StringVar(&o.size, "size", "", "how large; 'slipway sizes' lists them with prices")
	f.StringArrayVar(&o.candidates, "candidate", nil, "a `region/size` that would do; repeat it for those to try next")
	f.StringArrayVarP(&o.labels, "label", "l", nil, "a `label` as key=value; may be repeated")
	f.IntVar(&o.count, "count", 1, "how many nodes; with a name they are called NAME-1, NAME-2 and so on")
	f.BoolVar(&o.in.AllowSSHInbound, "allow-ssh", false, "open TCP 22; without it a node has no open port")
	f.StringArrayVar(&o.in.SSHSourceCIDRs, "ssh-from", nil, "a `cidr` from which SSH is let in, with --allow-ssh; may be repeated")
	f.StringArrayVar(&o.sshKeys, "ssh-key", nil, "an SSH public `key`, as text, as @file, or by its name at the provider; may be repeated")
	f.StringVar(&o.in.Image, "image", "", "the provider's image; Ubuntu 24.04 when not given")
	f.StringVar(&o.in.Architecture, "arch", "", "x86 or arm; the size's own when not given")
	f.IntVar(&o.in.DiskGB, "disk", 0, "size of the boot disk in `GB`, where it is free to choose")
	f.BoolVar(&o.in.Mesh, "mesh", false, "give the agent what a WireGuard mesh needs")
	f.DurationVar(&o.join, "join-timeout", 0, "how long the node may take to join; the control plane's own when 0")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be made and what it costs; make nothing")
	f.BoolVar(&o.wait, "wait", true, "wait until it has joined")
	f.BoolVar(&o.noWait, "no-wait", false, "return as soon as the control plane has noted it")
	a.addTimeout(c, &o.timeout)
	a.addOutputFlag(c)
	a.completeAccount(c)
	a.completePlace(c)
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions([]string{"x86", "arm"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) runCreate(ctx context.Context, o *createOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	api, err := a.Client()
	if err != nil {
		return err
	}
	if o.in.Account == "" {
		if o.in.Account, err = a.onlyAccount(ctx, api); err != nil {
			return err
		}
	}
	requests := o.requests()
	if o.dryRun {
		return a.runPlan(ctx, api, requests)
	}
	if err := a.checkPlaces(ctx, api, o.in); err != nil {
		return err
	}
	nodes, err := a.ask(ctx, api, requests)
	if len(nodes) == 0 {
		if client.ClassOf(err) == client.ClassUnreachable {
			return err // whether it was noted is not known
		}
		return aboutMachines(a.explainCreate(ctx, api, o.in, err))
	}
	if o.noWait || !o.wait {
		if err == nil && !a.machine() {
			a.say("the create goes on; follow it with `slipway node wait %s`", strings.Join(names(nodes), " "))
		}
		return a.showAfter(nodes, o.count == 1, err)
	}
	after, serr := sinceFirst(ctx, api, nodes)
	if serr != nil {
		return serr
	}
	nodes, ferr := a.follow(ctx, api, nodes, after, goalJoined, o.timeout)
	if ferr != nil && client.ClassOf(ferr) != "" {
		ferr = a.explainCreate(ctx, api, o.in, ferr)
	}
	if ferr == nil && err == nil && !a.machine() {
		a.say("next: `slipway node list` shows the fleet, `slipway node delete %s` ends the costs", strings.Join(names(nodes), " "))
	}
	return a.showAfter(nodes, o.count == 1, a.both(err, ferr))
}

func names(nodes []client.Node) []string {
	var res []string
	for _, n := range nodes {
		res = append(res, n.Name)
	}
	return res
}

// complete checks the flags and turns them into the request.
func (o *createOptions) complete() (err error) {
	if o.in.Name != "" {
		if err := checkName(o.in.Name); err != nil {
			return err
		}
	}
	if o.count < 1 || o.count > 1000 {
		return usageError("", "--count must be from 1 to 1000")
	}
	if o.in.Labels, err = parseLabels(o.labels); err != nil {
		return err
	}
	for _, c := range o.candidates {
		region, size, ok := strings.Cut(c, "/")
		if !ok || region == "" || size == "" {
			return usageError("write it as --candidate fsn1/cx23", "%q is not a candidate of the form region/size", printable(c))
		}
		o.in.Candidates = append(o.in.Candidates, client.Candidate{Region: region, Size: size})
	}
	switch {
	case o.region != "" && o.size != "":
		o.in.Candidates = append([]client.Candidate{{Region: o.region, Size: o.size}}, o.in.Candidates...)
	case o.region != "":
		return usageError("`slipway sizes --region "+o.region+"` lists them with prices", "--size is missing")
	case o.size != "":
		return usageError("`slipway regions` lists them", "--region is missing")
	case len(o.in.Candidates) == 0:
		return usageError("`slipway regions` and `slipway sizes --region REGION` list what there is", "--region and --size are missing")
	}
	if len(o.in.SSHSourceCIDRs) > 0 && !o.in.AllowSSHInbound {
		return usageError("add --allow-ssh, or take --ssh-from away", "--ssh-from has no effect without --allow-ssh")
	}
	if o.join > 0 {
		o.in.JoinTimeout = o.join.String()
	}
	o.in.SSHKeys, err = readKeys(o.sshKeys)
	return err
}

// readKeys replaces @file by what the file holds.
func readKeys(words []string) ([]string, error) {
	var keys []string
	for _, w := range words {
		path, ok := strings.CutPrefix(w, "@")
		if !ok {
			keys = append(keys, w)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usageError("", "--ssh-key: %v", err)
		}
		text := strings.TrimSpace(string(data))
		if strings.Contains(text, "PRIVATE KEY") {
			return nil, usageError("name the file that ends in .pub", "--ssh-key: %s holds a private key, which stays with you", path)
		}
		keys = append(keys, text)
	}
	return keys, nil
}

// requests are the creates to send, one for each node.
func (o *createOptions) requests() []client.CreateNode {
	res := make([]client.CreateNode, o.count)
	for i := range res {
		res[i] = o.in
		if o.count > 1 && o.in.Name != "" {
			res[i].Name = fmt.Sprintf("%s-%d", o.in.Name, i+1)
		}
	}
	return res
}

// parallel is how many calls are sent at a time.
const parallel = 8

// ask sends the creates. It returns the nodes that were noted, in order, and the errors of
// the others.
func (a *app) ask(ctx context.Context, api *client.Client, requests []client.CreateNode) ([]client.Node, error) {
	nodes, errs := make([]client.Node, len(requests)), make([]error, len(requests))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, r := range requests {
		g.Go(func() error {
			nodes[i], errs[i] = api.CreateNode(ctx, r)
			return nil
		})
	}
	_ = g.Wait() // errors are kept by place
	var made []client.Node
	var first error
	for i := range nodes {
		switch {
		case errs[i] == nil:
			made = append(made, nodes[i])
		case first == nil:
			first = errs[i]
		case ctx.Err() == nil:
			a.printError(errs[i])
		}
	}
	return made, first
}

func (a *app) runPlan(ctx context.Context, api *client.Client, requests []client.CreateNode) error {
	var plans []client.Plan
	var priced []client.Node
	for _, r := range requests {
		p, err := api.Plan(ctx, r)
		if err != nil {
			return a.explainCreate(ctx, api, r, err)
		}
		plans = append(plans, p)
		priced = append(priced, client.Node{PriceMonthly: p.PriceMonthly, Currency: p.Currency})
	}
	if a.format != formatTable {
		return show(a, planView(), plans, len(plans) == 1)
	}
	for _, p := range plans {
		fmt.Fprintf(a.IO.Out, "would create %s: %s in %s at %s (account %s)\n", printable(p.Name), printable(p.Size), printable(p.Region), printable(p.Provider), printable(p.Account))
		for _, m := range p.Makes {
			fmt.Fprintf(a.IO.Out, "  %s\n", printable(m))
		}
		fmt.Fprintf(a.IO.Out, "  user-data of %d bytes\n", p.UserDataSize)
	}
	cost := costLine(priced)
	if cost == "" {
		cost = "not known: the provider names no price"
	}
	fmt.Fprintf(a.IO.Out, "cost: %s\nnothing was made\n", printable(cost))
	return nil
}

func planView() view[client.Plan] {
	return view[client.Plan]{
		name: func(p client.Plan) string { return p.Name },
		columns: []column[client.Plan]{
			{title: "NAME", cell: func(p client.Plan) string { return p.Name }},
			{title: "PROVIDER", cell: func(p client.Plan) string { return p.Provider }},
			{title: "REGION", cell: func(p client.Plan) string { return p.Region }},
			{title: "SIZE", cell: func(p client.Plan) string { return p.Size }},
			{title: "A MONTH", cell: func(p client.Plan) string { return price(p.PriceMonthly, p.Currency) }, right: true},
			{title: "MAKES", cell: func(p client.Plan) string { return strings.Join(p.Makes, "; ") }},
		},
	}
}
