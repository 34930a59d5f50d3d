package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// app is the factory with its defaults filled in, and what is shared by the
// commands of one run.
type app struct {
	Factory
	format string // of --output
	// parsed tells that the command line was understood: an error that comes
	// before is one of usage.
	parsed bool
	// connected is the client of this run, once asked for.
	connected *client.Client
}

func newApp(f Factory) *app {
	if f.Getenv == nil {
		f.Getenv = os.Getenv
	}
	if f.IO == nil {
		f.IO = SystemStreams(f.Getenv)
	}
	if f.Clock == nil {
		f.Clock = systemClock{}
	}
	if f.Version.Version == "" {
		f.Version.Version = "dev"
	}
	if f.Version.Go == "" {
		f.Version.Go = runtime.Version()
	}
	if f.Client == nil {
		getenv, agent := f.Getenv, "slipway/"+f.Version.Version
		f.Client = func() (*client.Client, error) {
			o, err := client.Discover(getenv)
			if err != nil {
				return nil, err
			}
			o.UserAgent = agent
			return client.New(o)
		}
	}
	a := &app{Factory: f}
	connect := f.Client
	a.Client = func() (*client.Client, error) {
		if a.connected != nil {
			return a.connected, nil
		}
		c, err := connect()
		a.connected = c
		return c, err
	}
	return a
}

// close ends what the run opened.
func (a *app) close() {
	if a.connected != nil {
		a.connected.Close()
	}
}

// New returns the whole command, for Main and for the reference pages.
func New(f Factory) *cobra.Command { return newApp(f).root() }

// Main runs the command with args (without the program's name) and returns the
// exit code. What failed is told on standard error.
func Main(ctx context.Context, args []string, f Factory) int {
	a := newApp(f)
	defer a.close()
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		if !errors.Is(err, errSilent) {
			fmt.Fprintln(a.IO.Err, "interrupted")
		}
		return ExitInterrupted
	}
	if !a.parsed {
		err = asUsage(root, args, err)
	}
	a.printError(err)
	return exitCode(err)
}

// asUsage turns what the parser says into an error that names the way on.
func asUsage(root *cobra.Command, args []string, err error) error {
	var ee *exitError
	if errors.As(err, &ee) {
		return err
	}
	path := "slipway"
	if c, _, ferr := root.Find(args); ferr == nil && c != nil {
		path = c.CommandPath()
	}
	msg, hint := err.Error(), fmt.Sprintf("`%s --help` shows how it is used", path)
	// The parser's suggestions come as lines of their own.
	if first, rest, ok := strings.Cut(msg, "\n"); ok {
		msg = first
		if s := strings.Fields(strings.TrimPrefix(strings.TrimSpace(rest), "Did you mean this?")); len(s) > 0 {
			hint = "did you mean " + strings.Join(s, " or ") + "? " + hint
		}
	}
	return &exitError{code: ExitUsage, err: errors.New(msg), hint: hint}
}

const rootLong = `Slipway turns a cloud account into fleet nodes. One command creates a virtual machine at a cloud provider; its first
boot installs Docker and starts an agent that joins the control plane with a one-time token. The node counts as done
only when it has joined. Deleting it leaves nothing behind that costs money.

Try it without an account: slipway demo`

const rootExample = `  slipway demo                                     # the whole way, on a simulated cloud
  slipway serve                                    # start a control plane
  slipway account add hetzner                      # credential from HCLOUD_TOKEN
  slipway node create web-1 --account hetzner --region fsn1 --size cx23
  slipway node list
  slipway node delete web-1`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "slipway",
		Short:   "Turn a cloud account into fleet nodes",
		Long:    rootLong,
		Example: rootExample,
		Args:    unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		PersistentPreRun:           func(*cobra.Command, []string) { a.parsed = true },
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(a.IO.Out)
	root.SetErr(a.IO.Err)
	root.SetIn(a.IO.In)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err })
	root.AddGroup(
		&cobra.Group{ID: "fleet", Title: "Fleet:"},
		&cobra.Group{ID: "cloud", Title: "Clouds:"},
		&cobra.Group{ID: "run", Title: "Run:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("fleet", a.nodeCommand(), a.tokenCommand(), a.auditCommand())
	add("cloud", a.accountCommand(), a.regionsCommand(), a.sizesCommand(), a.cloudInitCommand())
	add("run", a.demoCommand(), a.serveCommand(), a.agentCommand(), a.simCommand())
	root.AddCommand(a.completionCommand(root), a.versionCommand())
	root.AddCommand(topics()...)
	return root
}

// unknownCommand words a first word that is no command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath())
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	if near := nearest(args[0], names); len(near) > 0 {
		hint = "did you mean " + quoteList(near) + "? " + hint
	}
	return usageError(hint, "%s has no command %q", cmd.CommandPath(), printable(args[0]))
}

// parent returns a command that only holds others.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: unknownCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(children...)
	return c
}

// missing says that this build has no such part.
func missing(what string) error {
	return fmt.Errorf("this build of slipway has no %s", what)
}
