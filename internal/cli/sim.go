package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// EnvSimURL is the variable that says where a simulated cloud is served.
const EnvSimURL = "SLIPWAY_SIM_URL"

const (
	simListen = "127.0.0.1:8450"
	simURL    = "http://" + simListen
)

func (a *app) simCommand() *cobra.Command {
	var o SimOptions
	var l logFlags
	c := &cobra.Command{
		Use: "sim", Short: "Serve the simulated clouds", Args: unknownCommand,
		Long: `Serve the simulated clouds, in the providers' own wire formats, with a clock, faults and a ledger of everything that ever
cost money. ` + "`slipway sim env`" + ` prints the variables that point each provider's own tools, and Slipway, at them.

Under /_sim/ is what no cloud has: GET /_sim/ledger, GET /_sim/requests, POST /_sim/faults, POST /_sim/clock.`,
		Example: "  slipway sim --speed 10 &\n  eval \"$(slipway sim env)\"\n  hcloud server list",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if a.Sim == nil {
				return missing("simulated cloud")
			}
			if o.Speed <= 0 {
				return usageError("", "--speed must be over 0")
			}
			o.IO = a.IO
			if o.Logger, err = a.logger(l); err != nil {
				return err
			}
			return a.Sim(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", simListen, "`address` to serve at")
	f.Uint64Var(&o.Seed, "seed", 1, "of all that is random")
	f.Float64Var(&o.Speed, "speed", 1, "simulated seconds per second")
	f.StringVar(&o.GuestDir, "guest-dir", "", "where the guests' files live; otherwise they go at the end")
	f.BoolVar(&o.Agents, "agents", true, "run the agents of the guests, so that they really join")
	addLogFlags(c, &l)
	_ = c.MarkFlagDirname("guest-dir")
	c.AddCommand(a.simEnvCommand(), a.simLedgerCommand())
	return c
}

func (a *app) simURLFlag(c *cobra.Command, base *string) {
	c.Flags().StringVar(base, "url", "", "where it is served; "+EnvSimURL+", or "+simURL+", when not given")
}

func (a *app) simBase(flag string) (string, error) {
	base := flag
	if base == "" {
		base = a.Getenv(EnvSimURL)
	}
	if base == "" {
		base = simURL
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usageError("an address looks like "+simURL, "%q is not the address of a simulated cloud", printable(base))
	}
	return strings.TrimRight(base, "/"), nil
}

func (a *app) simEnvCommand() *cobra.Command {
	var base string
	c := &cobra.Command{
		Use: "env", Short: "Print the variables that point tools at the simulated clouds", Args: cobra.NoArgs,
		Example: "  eval \"$(slipway sim env)\"",
		RunE: func(*cobra.Command, []string) error {
			if a.SimEnv == nil {
				return missing("simulated cloud")
			}
			u, err := a.simBase(base)
			if err != nil {
				return err
			}
			vars := a.SimEnv(u)
			switch a.format {
			case formatJSON, formatYAML:
				return a.encode(vars)
			case formatName:
				for _, v := range vars {
					fmt.Fprintln(a.IO.Out, v.Name)
				}
				return nil
			}
			for _, v := range vars {
				fmt.Fprintf(a.IO.Out, "export %s=%s\n", v.Name, shellQuote(v.Value))
			}
			return nil
		},
	}
	a.simURLFlag(c, &base)
	a.addOutputFlag(c)
	return c
}

// shellQuote writes s so that a POSIX shell reads it as one word.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ledger is what GET /_sim/ledger answers.
type ledger struct {
	Summary struct {
		Made int               `json:"made"`
		Left int               `json:"left"`
		Cost map[string]string `json:"cost"` // by currency
	} `json:"summary"`
	Entries []ledgerEntry `json:"entries"`
}

// ledgerEntry is one thing that costs money, or did.
type ledgerEntry struct {
	Provider  string    `json:"provider"`
	Kind      string    `json:"kind"`
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Server    string    `json:"server,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	Hourly    float64   `json:"hourly"`
	Currency  string    `json:"currency"`
}

func (a *app) simLedgerCommand() *cobra.Command {
	var base string
	var open bool
	c := &cobra.Command{
		Use: "ledger", Short: "List everything that a simulated cloud ever billed", Args: cobra.NoArgs,
		Long: "List everything that the simulated clouds ever billed, and whether it is gone. With --open, only what still costs money.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := a.simBase(base)
			if err != nil {
				return err
			}
			l, err := readLedger(cmd.Context(), u)
			if err != nil {
				return err
			}
			if open {
				l.Entries = slices.DeleteFunc(l.Entries, func(e ledgerEntry) bool { return !e.DeletedAt.IsZero() })
			}
			if err := show(a, ledgerView(), l.Entries, false); err != nil {
				return err
			}
			if !a.machine() {
				line := fmt.Sprintf("%d billed ever, %d left", l.Summary.Made, l.Summary.Left)
				for _, cur := range slices.Sorted(maps.Keys(l.Summary.Cost)) {
					line += fmt.Sprintf(", %s %s", l.Summary.Cost[cur], cur)
				}
				a.say("%s", line)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&open, "open", false, "only what still costs money")
	a.simURLFlag(c, &base)
	a.addOutputFlag(c)
	return c
}

func ledgerView() view[ledgerEntry] {
	return view[ledgerEntry]{
		name: func(e ledgerEntry) string { return e.Kind + "/" + e.ID },
		columns: []column[ledgerEntry]{
			{title: "PROVIDER", cell: func(e ledgerEntry) string { return e.Provider }},
			{title: "KIND", cell: func(e ledgerEntry) string { return e.Kind }},
			{title: "ID", cell: func(e ledgerEntry) string { return e.ID }},
			{title: "NAME", cell: func(e ledgerEntry) string { return e.Name }},
			{title: "CREATED", cell: func(e ledgerEntry) string { return e.CreatedAt.UTC().Format(time.RFC3339) }},
			{title: "DELETED", cell: func(e ledgerEntry) string { return stamp(&e.DeletedAt) }},
			{title: "AN HOUR", cell: func(e ledgerEntry) string { return fmt.Sprintf("%.4f %s", e.Hourly, e.Currency) }, right: true},
			{title: "SERVER", cell: func(e ledgerEntry) string { return e.Server }, wide: true},
		},
	}
}

// readLedger gets the ledger of the simulated clouds at base.
func readLedger(ctx context.Context, base string) (ledger, error) {
	var l ledger
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/_sim/ledger", nil)
	if err != nil {
		return l, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return l, simError(base, err)
	}
	defer resp.Body.Close()
	err = json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&l)
	if resp.StatusCode != http.StatusOK || err != nil {
		return l, &client.Error{Class: client.ClassUnreachable, Message: fmt.Sprintf("what answers at %s (%s) is no simulated cloud", base, resp.Status),
			Hint: "check --url and " + EnvSimURL, Err: err}
	}
	return l, nil
}

func simError(base string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		if errors.Is(err, context.Canceled) {
			return err
		}
		err = ue.Err
	}
	hint := "check the address"
	if errors.Is(err, syscall.ECONNREFUSED) {
		hint = "nothing listens there: start one with `slipway sim`, or name its address with --url or " + EnvSimURL
	}
	return &client.Error{Class: client.ClassUnreachable, Message: fmt.Sprintf("the simulated cloud at %s is not reachable: %v", base, err), Hint: hint, Err: err}
}
