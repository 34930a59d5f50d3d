package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

func (a *app) accountCommand() *cobra.Command {
	c := parent("account", "Register, check and remove credentials at providers",
		a.accountAddCommand(), a.accountListCommand(), a.accountCheckCommand(), a.accountRemoveCommand())
	c.Aliases = []string{"accounts"}
	c.Long = `An account is one credential at one provider, under a name. The control plane stores it encrypted, or reads it from its
own environment. A credential is never a flag, since flags show in process lists and shell histories.`
	return c
}

func accountView() view[client.Account] {
	return view[client.Account]{
		name: func(x client.Account) string { return x.Name },
		columns: []column[client.Account]{
			{title: "NAME", cell: func(x client.Account) string { return x.Name }},
			{title: "PROVIDER", cell: func(x client.Account) string { return x.Provider }},
			{title: "CREDENTIAL", cell: func(x client.Account) string { return x.Source }},
			{title: "ENDPOINT", cell: func(x client.Account) string { return x.Endpoint }},
			{title: "OBSERVED", cell: func(x client.Account) string { return stamp(x.ObservedAt) }},
			{title: "LAST ERROR", cell: func(x client.Account) string { return x.LastError }, style: func(client.Account) style { return styleRed }},
		},
	}
}

// addOptions is what `account add` was asked for.
type addOptions struct {
	in        client.AddAccount
	file      string
	serverEnv bool
}

func (a *app) accountAddCommand() *cobra.Command {
	o := &addOptions{}
	c := &cobra.Command{
		Use: "add NAME", Short: "Register a credential under a name", Args: cobra.ExactArgs(1),
		Long: `Register a credential and ask the provider whether it works; one that does not is not kept.

The credential comes from --credential-file ("-" is standard input), or else from the provider's usual variables in this
command's environment, such as HCLOUD_TOKEN. With --from-server-env the control plane reads its own environment at each
use and stores nothing. The provider's usual variable for its address, such as HCLOUD_ENDPOINT, counts unless --endpoint
is given. The provider is NAME unless --provider is given.`,
		Example: `  HCLOUD_TOKEN=... slipway account add hetzner
  slipway account add prod --provider hetzner --credential-file token.txt
  pass show hcloud | slipway account add prod --provider hetzner --credential-file -`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.providerNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.in.Name = args[0]
			return a.runAccountAdd(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.in.Provider, "provider", "", "the provider; NAME when not given")
	f.StringVar(&o.file, "credential-file", "", "a `file` that holds the credential; - is standard input")
	f.BoolVar(&o.serverEnv, "from-server-env", false, "the control plane reads its own environment; nothing is stored")
	f.StringVar(&o.in.Endpoint, "endpoint", "", "the provider's API `address`, when it is not the public one")
	a.addOutputFlag(c)
	a.completeProvider(c)
	return c
}

func (a *app) runAccountAdd(ctx context.Context, o *addOptions) error {
	if err := checkName(o.in.Name); err != nil {
		return usageError("a name is 1 to 63 lower-case letters, digits and hyphens", "%q cannot be an account's name", printable(o.in.Name))
	}
	p, err := a.provider(o.in.Provider, o.in.Name)
	if err != nil {
		return err
	}
	o.in.Provider = p.Name
	source := "the control plane's environment"
	if o.serverEnv {
		if o.file != "" {
			return usageError("", "--from-server-env and --credential-file exclude each other")
		}
		o.in.Source = "env"
	} else {
		o.in.Source = "stored"
		if o.in.Credential, source, err = a.readCredential(o.file, p); err != nil {
			return err
		}
	}
	if o.in.Endpoint == "" && p.EndpointEnv != "" {
		o.in.Endpoint = a.Getenv(p.EndpointEnv)
	}
	api, err := a.Client()
	if err != nil {
		return err
	}
	acc, err := api.AddAccount(ctx, o.in)
	if err != nil {
		return err
	}
	if !a.machine() {
		a.say("account %s: credential of %s from %s; next: `slipway regions --account %s`", acc.Name, p.Title, source, acc.Name)
	}
	return show(a, accountView(), []client.Account{acc}, true)
}

// readCredential returns the credential and where it was found.
func (a *app) readCredential(file string, p Provider) (credential, source string, err error) {
	var data []byte
	switch {
	case file == "" && a.Clouds == nil:
		return "", "", missing("access to clouds")
	case file == "":
		return a.Clouds.Credential(p.Name)
	case file == "-":
		if a.IO.InTTY {
			a.say("reading the credential from standard input; end it with Ctrl-D")
		}
		source = "standard input"
		data, err = io.ReadAll(io.LimitReader(a.IO.In, maxSecret))
	default:
		source = file
		data, err = readSmall(file)
	}
	if err != nil {
		return "", "", usageError("", "the credential could not be read: %v", err)
	}
	credential = strings.TrimSpace(string(data))
	if credential == "" {
		return "", "", usageError("a credential of "+p.Title+" is "+p.Credential, "%s holds no credential", source)
	}
	return credential, source, nil
}

// maxSecret bounds what is read as a credential or token.
const maxSecret = 128 << 10

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSecret))
}

// provider finds the provider called name, or fallback when name is empty.
func (a *app) provider(name, fallback string) (Provider, error) {
	if a.Clouds == nil {
		return Provider{}, missing("access to clouds")
	}
	word := name
	if word == "" {
		word = fallback
	}
	var known []string
	for _, p := range a.Clouds.Providers() {
		if p.Name == word {
			return p, nil
		}
		known = append(known, p.Name)
	}
	hint := "the providers are " + quoteList(known)
	if near := nearest(word, known); len(near) > 0 && len(known) > 1 {
		hint = "did you mean " + quoteList(near) + "? " + hint
	}
	if name == "" && fallback != "" {
		return Provider{}, usageError(hint, "%q is no provider; name the account's with --provider", printable(fallback))
	}
	return Provider{}, &exitError{code: ExitNotFound, hint: hint, err: fmt.Errorf("there is no provider %q", printable(word))}
}

func (a *app) accountListCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List accounts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.Client()
			if err != nil {
				return err
			}
			list, err := api.Accounts(cmd.Context())
			if err != nil {
				return err
			}
			if len(list) == 0 && a.IO.OutTTY && !a.machine() {
				a.say("no accounts; `slipway account add hetzner` registers one")
			}
			return show(a, accountView(), list, false)
		},
	}
	a.addOutputFlag(c)
	return c
}

func (a *app) accountCheckCommand() *cobra.Command {
	var provider string
	c := &cobra.Command{
		Use: "check [NAME]", Short: "Ask a provider whether a credential works", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeAccounts,
		Long: `Ask a provider whether a credential works: the one of account NAME, through the control plane; or, with --provider, the one
in this command's environment, without a control plane. Nothing is made.`,
		Example: "  slipway account check prod\n  HCLOUD_TOKEN=... slipway account check --provider hetzner",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && provider != "":
				return usageError("", "name either an account or, with --provider, a provider")
			case len(args) == 1:
				return a.checkAccount(cmd.Context(), args[0])
			}
			p, err := a.directProvider(provider)
			if err != nil {
				return err
			}
			if err := a.Clouds.CheckCredential(cmd.Context(), p.Name); err != nil {
				return err
			}
			return a.checked(checkResult{Provider: p.Name, Works: true}, "the credential of "+p.Title+" works")
		},
	}
	c.Flags().StringVar(&provider, "provider", "", "check the credential in this command's environment")
	a.addOutputFlag(c)
	a.completeProvider(c)
	return c
}

// checkResult is what a check answers to programs.
type checkResult struct {
	Account  string `json:"account,omitempty"`
	Provider string `json:"provider,omitempty"`
	Works    bool   `json:"works"`
}

func (a *app) checkAccount(ctx context.Context, name string) error {
	api, err := a.Client()
	if err != nil {
		return err
	}
	if err := api.CheckAccount(ctx, name); err != nil {
		if client.ClassOf(err) == client.ClassNotFound {
			if e := a.explainAccount(ctx, api, name, err); e != nil {
				return e
			}
		}
		return err
	}
	return a.checked(checkResult{Account: name, Works: true}, "the credential of account "+name+" works")
}

func (a *app) checked(r checkResult, line string) error {
	switch a.format {
	case formatJSON, formatYAML:
		return a.encode(r)
	case formatName:
		line = r.Account + r.Provider
	}
	_, err := fmt.Fprintln(a.IO.Out, printable(line))
	return err
}

func (a *app) accountRemoveCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm", "delete"}, Short: "Forget a credential", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeAccounts,
		Long: "Forget an account and its credential. It is refused while nodes use it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := a.Client()
			if err != nil {
				return err
			}
			if err := a.confirm(yes, fmt.Sprintf("This forgets account %s and its credential.\n", printable(args[0]))); err != nil {
				return err
			}
			if err := api.RemoveAccount(cmd.Context(), args[0]); err != nil {
				if client.ClassOf(err) == client.ClassNotFound {
					if e := a.explainAccount(cmd.Context(), api, args[0], err); e != nil {
						return e
					}
				}
				return err
			}
			switch a.format {
			case formatJSON, formatYAML:
				return a.encode(map[string]any{"account": args[0], "removed": true})
			case formatName:
				fmt.Fprintln(a.IO.Out, printable(args[0]))
			default:
				fmt.Fprintf(a.IO.Out, "account %s is forgotten\n", printable(args[0]))
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.addOutputFlag(c)
	return c
}
