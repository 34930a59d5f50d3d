package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// variable is one environment variable that counts.
type variable struct{ name, what string }

var variables = []variable{
	{client.EnvURL, "address of the control plane's API, as https://127.0.0.1:8440"},
	{client.EnvCAFingerprint, "its CA, as sha256: and 64 hex digits; empty means the system's roots"},
	{client.EnvTokenFile, "file with the API token"},
	{client.EnvToken, "the API token itself; wins over the file"},
	{client.EnvDataDir, "data directory of a control plane on this machine, where client.json says all three"},
	{EnvJoinToken, "join token for `slipway cloud-init`"},
	{EnvSimURL, "address of a simulated cloud for `slipway sim env` and `slipway sim ledger`"},
	{"HCLOUD_TOKEN", "credential of Hetzner Cloud, for `account add` and for `regions`, `sizes` and `account check` without a control plane"},
	{"HCLOUD_ENDPOINT", "address of Hetzner's API when it is not the public one"},
	{"NO_COLOR", "when set, no colour"},
	{"CLICOLOR_FORCE", "when set and not 0, colour where there is no terminal"},
	{"TERM", "when dumb, neither colour nor lines drawn anew"},
}

// topics are the pages of help that belong to no command.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "The exit codes and what they mean", Long: exitCodesText()},
		{Use: "environment", Short: "The environment variables that count", Long: environmentText()},
	}
}

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("Every command ends with one of these codes:\n\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %-12s %s\n", e.code, e.word, e.when)
	}
	b.WriteString("\nWith several nodes, the first failure in the order given decides.")
	return b.String()
}

func environmentText() string {
	var b strings.Builder
	b.WriteString("A flag wins over a variable, a variable over a file. Credentials and tokens are never flags.\n\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "  %-24s %s\n", v.name, v.what)
	}
	b.WriteString("\nA control plane that runs on this machine is found without any of them.")
	return strings.TrimRight(b.String(), "\n")
}
