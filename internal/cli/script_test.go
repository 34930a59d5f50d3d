package cli_test

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slipway": slipway})
}

// slipway is the command as a process of its own. Its clock stands, so that
// ages can be compared; what it waits for is real.
func slipway() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(cli.Main(ctx, os.Args[1:], factory(os.Getenv)))
}

type standing struct{}

func (standing) Now() time.Time                         { return apitest.Start.Add(time.Minute) }
func (standing) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestScripts runs each script against a control plane of its own. $URL is its
// address; what becomes of a node is said by its name (see scripted).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			f := scripted()
			if filepath.Base(e.WorkDir) == "script-audit" {
				f.Report = fleet.AuditReport{Findings: []fleet.Finding{
					{Kind: fleet.FindingLeftover, Account: "prod", Resource: provision.Resource{Kind: "server", ID: "9", Name: "old", Billable: true, CreatedAt: apitest.Start.Add(-time.Hour)}, Message: "belongs to no node"},
					{Kind: fleet.FindingForeign, Account: "prod", Resource: provision.Resource{Kind: "firewall", ID: "3", Name: "other"}, Message: "another control plane's"},
				}}
			}
			url, stop, err := apitest.Serve(f, api.Options{})
			if err != nil {
				return err
			}
			e.Defer(stop)
			e.Vars = append(e.Vars, "URL="+url, client.EnvURL+"="+url, client.EnvToken+"="+apitest.Token, "HOME="+e.WorkDir,
				"TICKET="+apitest.TicketToken, "PIN="+apitest.Fingerprint)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "run": run},
	})
}

// exits runs the command in this process, which is fast, and compares its exit
// code: exits 3 node get nope. run is the same for code 0. Paths must be
// absolute. `exec slipway` runs it as a process of its own, with standard input.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	io := &cli.IOStreams{In: strings.NewReader(""), Out: ts.Stdout(), Err: ts.Stderr()}
	io.Configure(ts.Getenv)
	f := factory(ts.Getenv)
	f.IO = io
	if got := cli.Main(context.Background(), args[1:], f); got != want {
		ts.Fatalf("slipway %v: exit code %d, want %d", args[1:], got, want)
	}
}

func run(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{"0"}, args...))
}

func factory(getenv func(string) string) cli.Factory {
	return cli.Factory{
		Getenv: getenv, Clock: standing{}, Version: cli.VersionInfo{Version: "v0.1.0", Go: "go1.26"},
		Clouds: &clouds{env: getenv}, RenderCloudInit: renderCloudInit, SimEnv: simEnv,
	}
}
