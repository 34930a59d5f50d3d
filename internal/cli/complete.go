package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// completionLimit is how long the shell waits for words: a person has pressed
// a key.
const completionLimit = 2 * time.Second

// completing runs f against the control plane; what fails gives no words.
func (a *app) completing(cmd *cobra.Command, f func(ctx context.Context, api *client.Client) []string) ([]string, cobra.ShellCompDirective) {
	api, err := a.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionLimit)
	defer cancel()
	return f(ctx, api), cobra.ShellCompDirectiveNoFileComp
}

// completeNodes offers the names of nodes that are not on the line yet.
func (a *app) completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completing(cmd, func(ctx context.Context, api *client.Client) []string {
		nodes, err := api.Nodes(ctx, client.NodeFilter{})
		if err != nil {
			return nil
		}
		var words []string
		for _, n := range nodes {
			if !contains(args, n.Name) {
				words = append(words, cobra.CompletionWithDesc(n.Name, n.Phase+" "+n.Region+" "+n.Size))
			}
		}
		return words
	})
}

func (a *app) completeAccounts(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completing(cmd, func(ctx context.Context, api *client.Client) []string {
		accounts, err := api.Accounts(ctx)
		if err != nil {
			return nil
		}
		return accountNames(accounts)
	})
}

func (a *app) completeAccount(c *cobra.Command) {
	_ = c.RegisterFlagCompletionFunc("account", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completeAccounts(cmd, nil, word)
	})
}

func (a *app) providerNames() []string {
	if a.Clouds == nil {
		return nil
	}
	var words []string
	for _, p := range a.Clouds.Providers() {
		words = append(words, p.Name)
	}
	return words
}

func (a *app) completeProvider(c *cobra.Command) {
	_ = c.RegisterFlagCompletionFunc("provider", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return a.providerNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// completePlace offers regions, and the sizes of the region on the line.
func (a *app) completePlace(c *cobra.Command) {
	account := func(ctx context.Context, cmd *cobra.Command, api *client.Client) string {
		if name, _ := cmd.Flags().GetString("account"); name != "" {
			return name
		}
		name, err := a.onlyAccount(ctx, api)
		if err != nil {
			return ""
		}
		return name
	}
	_ = c.RegisterFlagCompletionFunc("region", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.completing(cmd, func(ctx context.Context, api *client.Client) []string {
			regions, err := api.Regions(ctx, account(ctx, cmd, api))
			if err != nil {
				return nil
			}
			var words []string
			for _, r := range regions {
				words = append(words, cobra.CompletionWithDesc(r.ID, r.Name))
			}
			return words
		})
	})
	_ = c.RegisterFlagCompletionFunc("size", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.completing(cmd, func(ctx context.Context, api *client.Client) []string {
			region, _ := cmd.Flags().GetString("region")
			if region == "" {
				return nil
			}
			sizes, err := api.Sizes(ctx, account(ctx, cmd, api), region)
			if err != nil {
				return nil
			}
			var words []string
			for _, s := range sizes {
				words = append(words, cobra.CompletionWithDesc(s.ID, memory(s.MemoryMB)+" "+price(s.PriceMonthly, s.Currency)))
			}
			return words
		})
	})
}

func (a *app) completionCommand(root *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print the completion script of a shell",
		Long: `Print the script that lets a shell complete commands, flags, and the names of nodes, accounts, regions and sizes.`,
		Example: `  source <(slipway completion bash)
  slipway completion zsh > "${fpath[1]}/_slipway"
  slipway completion fish > ~/.config/fish/completions/slipway.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("bash, zsh or fish", "name one shell")
			}
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.IO.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.IO.Out)
			case "fish":
				return root.GenFishCompletion(a.IO.Out, true)
			}
			return usageError("bash, zsh or fish", "there is no completion for %q", printable(args[0]))
		},
	}
	return c
}
