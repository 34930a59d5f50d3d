package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

func (a *app) auditCommand() *cobra.Command {
	var accounts []string
	var remove, yes bool
	c := &cobra.Command{
		Use: "audit", Short: "Compare accounts with the records, and remove what is left over", Args: cobra.NoArgs,
		Long: `List what exists at the providers and should not (leftover), what should exist and does not (missing), what is not as it
was made (drift), and what carries another control plane's mark (foreign). With --delete, leftovers are removed; nothing
else ever is.

It ends with code 0 when there is neither a leftover nor anything missing, and every account could be read whole; with 1
otherwise.`,
		Example: "  slipway audit\n  slipway audit --account prod --delete",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := a.Client()
			if err != nil {
				return err
			}
			r, err := api.Audit(cmd.Context(), accounts...)
			if err != nil {
				return err
			}
			if remove {
				if r, err = a.removeLeftovers(cmd.Context(), api, r, accounts, yes); err != nil {
					return err
				}
			}
			return a.showReport(r, remove)
		},
	}
	c.Flags().StringSliceVar(&accounts, "account", nil, "only these accounts")
	c.Flags().BoolVar(&remove, "delete", false, "remove what is left over")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.addOutputFlag(c)
	a.completeAccount(c)
	return c
}

// removeLeftovers asks, and has removed what r lists as left over.
func (a *app) removeLeftovers(ctx context.Context, api *client.Client, r client.AuditReport, accounts []string, yes bool) (client.AuditReport, error) {
	var b strings.Builder
	n := 0
	for _, f := range r.Findings {
		if f.Kind == "leftover" {
			n++
			fmt.Fprintf(&b, "  %s\n", printable(findingLine(f)))
		}
	}
	if n == 0 {
		return r, nil
	}
	if err := a.confirm(yes, fmt.Sprintf("This removes %s at the provider:\n%s", count(n, "thing"), b.String())); err != nil {
		return r, err
	}
	return api.RemoveLeftovers(ctx, accounts...)
}

func findingLine(f client.Finding) string {
	parts := []string{f.Account, f.Resource}
	for _, s := range []string{f.ID, f.Name, f.Age} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if f.Billable {
		parts = append(parts, "costs money")
	}
	return strings.Join(parts, "  ")
}

func findingView() view[client.Finding] {
	return view[client.Finding]{
		name: func(f client.Finding) string { return f.Resource + "/" + f.ID },
		columns: []column[client.Finding]{
			{title: "KIND", cell: func(f client.Finding) string { return f.Kind }, style: func(f client.Finding) style {
				if f.Kind == "foreign" || f.Removed {
					return styleFaint
				}
				return styleYellow
			}},
			{title: "ACCOUNT", cell: func(f client.Finding) string { return f.Account }},
			{title: "WHAT", cell: func(f client.Finding) string { return f.Resource }},
			{title: "ID", cell: func(f client.Finding) string { return f.ID }},
			{title: "NAME", cell: func(f client.Finding) string { return f.Name }},
			{title: "NODE", cell: func(f client.Finding) string { return f.Node }},
			{title: "AGE", cell: func(f client.Finding) string { return f.Age }, right: true},
			{title: "COSTS", cell: func(f client.Finding) string {
				if f.Billable {
					return "yes"
				}
				return "no"
			}},
			{title: "STATE", cell: findingState},
		},
	}
}

func findingState(f client.Finding) string {
	switch {
	case f.Removed:
		return "removed"
	case f.Error != "":
		return "not removed: " + f.Error
	}
	return f.Message
}

// showReport prints the report and returns an error when the audit is not
// clean.
func (a *app) showReport(r client.AuditReport, removed bool) error {
	switch a.format {
	case formatJSON, formatYAML:
		if err := a.encode(r); err != nil {
			return err
		}
	default:
		if err := show(a, findingView(), r.Findings, false); err != nil {
			return err
		}
	}
	open, gone := 0, 0
	for _, f := range r.Findings {
		switch {
		case f.Removed:
			gone++
		case f.Kind == "leftover" || f.Kind == "missing":
			open++
		}
	}
	for _, e := range r.Errors {
		a.say("not read: %s", e)
	}
	switch {
	case !r.Complete:
		return &exitError{code: ExitFailed, err: fmt.Errorf("the audit is not complete: %s could not be read", count(len(r.Errors), "account")),
			hint: "run it again when the provider answers; nothing is known of what those accounts hold"}
	case open > 0 && removed:
		return &exitError{code: ExitFailed, err: fmt.Errorf("%s could not be put right", count(open, "finding")), hint: "the table says why; run it again later"}
	case open > 0:
		return &exitError{code: ExitFailed, err: fmt.Errorf("%s not as the records have it", count(open, "finding")), hint: "`slipway audit --delete` removes leftovers"}
	}
	if !a.machine() {
		line := count(len(r.Accounts), "account") + " audited, nothing left behind"
		if gone > 0 {
			line = count(gone, "leftover") + " removed, nothing left behind"
		}
		a.say("%s", line)
	}
	return nil
}
