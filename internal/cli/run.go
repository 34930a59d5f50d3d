package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// logFlags are the flags of commands that log.
type logFlags struct{ level, format string }

func addLogFlags(c *cobra.Command, l *logFlags) {
	c.Flags().StringVar(&l.level, "log-level", "info", "debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", "text", "text or json")
	_ = c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// logger returns the logger to standard error.
func (a *app) logger(l logFlags) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, usageError("--log-level takes debug, info, warn or error", "there is no log level %q", printable(l.level))
	}
	switch l.format {
	case "json":
		return slog.New(slog.NewJSONHandler(a.IO.Err, &slog.HandlerOptions{Level: level})), nil
	case "text":
		if a.IO.ErrTTY {
			return slog.New(tint.NewTextHandler(a.IO.Err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !a.IO.ErrColor})), nil
		}
		return slog.New(slog.NewTextHandler(a.IO.Err, &slog.HandlerOptions{Level: level})), nil
	}
	return nil, usageError("--log-format takes text or json", "there is no log format %q", printable(l.format))
}

func (a *app) serveCommand() *cobra.Command {
	var o ServeOptions
	var l logFlags
	c := &cobra.Command{
		Use: "serve", Short: "Run a control plane", Args: cobra.NoArgs,
		Long: `Run a control plane: the API for people, the door at which nodes join, and the work of creating, watching and
deleting. It keeps its records in the data directory and takes up its work where it ended, also after kill -9.

It listens twice. Nodes come to --listen, which must be reachable from where they run; --advertise is the address that
they are told. People come to --api-listen, on loopback unless told otherwise, with the token in the file api-token of
the data directory. Commands on the same machine find both by themselves.`,
		Example: "  slipway serve --advertise cp.example.com:8443",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if a.Serve == nil {
				return missing("control plane")
			}
			if o.DataDir == "" {
				o.DataDir = client.DataDir(a.Getenv)
			}
			o.IO = a.IO
			if o.Logger, err = a.logger(l); err != nil {
				return err
			}
			return a.Serve(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.DataDir, "data-dir", "", "where the records are kept; "+client.EnvDataDir+", or ~/.local/share/slipway, when not given")
	f.StringVar(&o.Listen, "listen", ":8443", "`address` at which nodes join")
	f.StringVar(&o.APIListen, "api-listen", "127.0.0.1:8440", "`address` of the API")
	f.StringSliceVar(&o.APIHosts, "api-host", nil, "another name or address that the API's certificate is to be good for; may be repeated")
	f.StringVar(&o.Advertise, "advertise", "", "the `host:port` that nodes are told; must be reachable from a cloud's machine")
	f.StringVar(&o.AgentImage, "agent-image", "", "the agent's container image; the published one when not given")
	f.DurationVar(&o.JoinTimeout, "join-timeout", 0, "how long a node may take to join; the default when 0")
	addLogFlags(c, &l)
	_ = c.MarkFlagDirname("data-dir")
	return c
}

func (a *app) agentCommand() *cobra.Command {
	var l logFlags
	c := &cobra.Command{
		Use: "agent", Short: "Run a node's agent (the container's program)", Args: cobra.NoArgs,
		Long: `Run the agent of a node: it joins the control plane with its one-time token, then sends signs of life and renews its
certificate. It is what the agent's container runs; its configuration comes from the environment that the first boot
wrote, not from flags.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Agent == nil {
				return missing("agent")
			}
			log, err := a.logger(l)
			if err != nil {
				return err
			}
			return a.Agent(cmd.Context(), AgentOptions{IO: a.IO, Logger: log})
		},
	}
	addLogFlags(c, &l)
	return c
}

func (a *app) demoCommand() *cobra.Command {
	var o DemoOptions
	var l logFlags
	c := &cobra.Command{
		Use: "demo", Short: "Show the whole way on a simulated cloud, without an account", Args: cobra.NoArgs,
		Long: `Start a control plane and a simulated cloud in this process, create nodes, watch them join, show what they would cost,
delete them, and audit. It ends by itself, with code 0 only if every node joined and nothing is left. Nothing leaves this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if a.Demo == nil {
				return missing("demo")
			}
			if o.Nodes < 1 || o.Nodes > 100 {
				return usageError("", "--nodes must be from 1 to 100")
			}
			if o.Speed < 0 {
				return usageError("", "--speed must not be negative")
			}
			o.IO = a.IO
			if o.Logger, err = a.logger(l); err != nil {
				return err
			}
			return a.Demo(cmd.Context(), o)
		},
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 1, "how many nodes to create at each provider")
	c.Flags().Float64Var(&o.Speed, "speed", 0, "simulated seconds per second; the demo's own when 0")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "of all that is random in the simulated cloud")
	c.Flags().StringVar(&o.DataDir, "data-dir", "", "keep the records there; otherwise they go with the demo")
	addLogFlags(c, &l)
	c.Flags().Lookup("log-level").DefValue = "warn"
	l.level = "warn"
	return c
}

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.Version
			switch a.format {
			case formatJSON, formatYAML:
				return a.encode(v)
			case formatName:
				_, err := fmt.Fprintln(a.IO.Out, v.Version)
				return err
			}
			line := "slipway " + v.Version
			for _, s := range []string{v.Commit, v.Date, v.Go} {
				if s != "" {
					line += " " + s
				}
			}
			_, err := fmt.Fprintln(a.IO.Out, line)
			return err
		},
	}
	a.addOutputFlag(c)
	return c
}
