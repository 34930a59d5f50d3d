package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// EnvJoinToken is the variable that `cloud-init` reads a join token from.
const EnvJoinToken = "SLIPWAY_JOIN_TOKEN"

func (a *app) tokenCommand() *cobra.Command {
	create := a.tokenCreateCommand("create [NAME]")
	c := a.tokenCreateCommand("token [NAME]")
	c.AddCommand(create)
	return c
}

func (a *app) tokenCreateCommand(use string) *cobra.Command {
	var in client.CreateTicket
	var labels []string
	var ttl time.Duration
	c := &cobra.Command{
		Use: use, Short: "Make a join token for a machine of your own", Args: cobra.MaximumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Make a join ticket: a one-time token, bound to one new node, with the address and the CA fingerprint that go with it. A machine
that Slipway did not make joins with it. The token is shown this once; the control plane keeps a hash.`,
		Example: `  slipway token rack-7
  slipway token rack-7 -o json | slipway cloud-init --ticket - > user-data`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				if err := checkName(args[0]); err != nil {
					return err
				}
				in.Name = args[0]
			}
			if in.Labels, err = parseLabels(labels); err != nil {
				return err
			}
			if ttl > 0 {
				in.JoinTimeout = ttl.String()
			}
			return a.runToken(cmd.Context(), in)
		},
	}
	c.Flags().StringArrayVarP(&labels, "label", "l", nil, "a `label` of the node, as key=value; may be repeated")
	c.Flags().DurationVar(&ttl, "ttl", 0, "how long the token is good for, as 1h; the control plane's own when 0")
	a.addOutputFlag(c)
	return c
}

func (a *app) runToken(ctx context.Context, in client.CreateTicket) error {
	api, err := a.Client()
	if err != nil {
		return err
	}
	t, err := api.Ticket(ctx, in)
	if err != nil {
		return err
	}
	switch a.format {
	case formatJSON, formatYAML:
		return a.encode(t)
	case formatName:
		_, err := fmt.Fprintln(a.IO.Out, printable(t.Node))
		return err
	}
	a.describe([]pair{
		{"node", t.Node}, {"address", t.Address}, {"token", t.Token}, {"ca fingerprint", t.CAFingerprint},
		{"expires", t.ExpiresAt.UTC().Format(time.RFC3339)}, {"agent image", t.AgentImage},
	})
	a.say("the token works once and is not shown again; follow the node with `slipway node wait %s`", t.Node)
	return nil
}

// cloudInitOptions is what `cloud-init` was asked for.
type cloudInitOptions struct {
	p      CloudInitParams
	token  string // file
	ticket string // file
}

func (a *app) cloudInitCommand() *cobra.Command {
	o := &cloudInitOptions{}
	c := &cobra.Command{
		Use: "cloud-init", Short: "Print the user-data of a node's first boot", Args: cobra.NoArgs,
		Long: `Print the user-data with which a fresh machine installs Docker and joins a control plane. It needs no control plane itself.
Standard error says its size and each provider's limit.

The join token comes from --ticket, from --token-file ("-" is standard input) or from ` + EnvJoinToken + `; it is never a flag. The
output holds it: treat it as a secret until the machine has joined.`,
		Example: `  slipway token rack-7 -o json | slipway cloud-init --ticket - > user-data
  slipway cloud-init --name rack-7 --address cp.example.com:8443 --ca-fingerprint sha256:... --token-file token.txt`,
		RunE: func(*cobra.Command, []string) error { return a.runCloudInit(o) },
	}
	f := c.Flags()
	f.StringVar(&o.ticket, "ticket", "", "a `file` with what 'slipway token -o json' printed; - is standard input")
	f.StringVar(&o.token, "token-file", "", "a `file` that holds the join token; - is standard input")
	f.StringVar(&o.p.NodeName, "name", "", "the node's name")
	f.StringVar(&o.p.ControlPlaneAddr, "address", "", "the control plane's address for nodes, as host:port")
	f.StringVar(&o.p.CAFingerprint, "ca-fingerprint", "", "the control plane's CA, as sha256:...; the system's roots when not given")
	f.StringVar(&o.p.AgentImage, "agent-image", "", "the agent's container image; the published one when not given")
	f.StringVar(&o.p.AgentVersion, "agent-version", "", "the tag of the published image; this command's version when not given")
	f.BoolVar(&o.p.MeshEnabled, "mesh", false, "give the agent what a WireGuard mesh needs")
	f.StringVar(&o.p.DockerInstallURL, "docker-install-url", "", "where Docker's install script is; the public one when not given")
	return c
}

func (a *app) runCloudInit(o *cloudInitOptions) error {
	if a.RenderCloudInit == nil {
		return missing("cloud-init renderer")
	}
	if err := a.completeCloudInit(o); err != nil {
		return err
	}
	o.p.AgentVersion = cmp.Or(o.p.AgentVersion, a.Version.Version)
	text, err := a.RenderCloudInit(o.p)
	if err != nil {
		return usageError("", "%v", err)
	}
	if _, err := io.WriteString(a.IO.Out, text); err != nil {
		return err
	}
	a.say("%d bytes of user-data", len(text))
	if a.Clouds == nil {
		return nil
	}
	for _, p := range a.Clouds.Providers() {
		if p.UserDataLimit <= 0 {
			continue
		}
		verdict := "fits"
		if len(text) > p.UserDataLimit {
			verdict = "does NOT fit"
		}
		a.say("  %s: %s, its limit is %d bytes", p.Title, verdict, p.UserDataLimit)
	}
	return nil
}

// completeCloudInit fills in what comes from files and the environment, and
// says what is missing.
func (a *app) completeCloudInit(o *cloudInitOptions) error {
	if o.ticket != "" {
		if o.token != "" {
			return usageError("", "--ticket and --token-file exclude each other")
		}
		data, err := a.readSecret(o.ticket)
		if err != nil {
			return usageError("", "the ticket could not be read: %v", err)
		}
		var t client.JoinTicket
		if err := json.Unmarshal(data, &t); err != nil || t.Token == "" {
			return usageError("it takes what `slipway token -o json` prints", "%s holds no join ticket", o.ticket)
		}
		o.p.JoinToken = t.Token
		o.p.NodeName = cmp.Or(o.p.NodeName, t.Node)
		o.p.ControlPlaneAddr = cmp.Or(o.p.ControlPlaneAddr, t.Address)
		o.p.CAFingerprint = cmp.Or(o.p.CAFingerprint, t.CAFingerprint)
		o.p.AgentImage = cmp.Or(o.p.AgentImage, t.AgentImage)
	}
	switch {
	case o.token != "":
		data, err := a.readSecret(o.token)
		if err != nil {
			return usageError("", "the join token could not be read: %v", err)
		}
		o.p.JoinToken = strings.TrimSpace(string(data))
	case o.p.JoinToken == "":
		o.p.JoinToken = strings.TrimSpace(a.Getenv(EnvJoinToken))
	}
	for _, m := range []struct{ value, what, hint string }{
		{o.p.NodeName, "--name is missing", ""},
		{o.p.ControlPlaneAddr, "--address is missing", "it is the address that nodes reach the control plane at, as cp.example.com:8443"},
		{o.p.JoinToken, "there is no join token", "`slipway token NAME -o json | slipway cloud-init --ticket -` brings all that is needed; --token-file or " + EnvJoinToken + " bring the token alone"},
	} {
		if m.value == "" {
			return usageError(m.hint, "%s", m.what)
		}
	}
	return nil
}

// readSecret reads a small file, or standard input for "-".
func (a *app) readSecret(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.IO.In, maxSecret))
	}
	return readSmall(path)
}
