package cli_test

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
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
	os.Exit(cli.Main(ctx, os.Args[1:], cli.Factory{
		Clock: standing{}, Version: cli.VersionInfo{Version: "v0.1.0", Go: "go1.26"},
		Clouds: &clouds{env: os.Getenv}, RenderCloudInit: renderCloudInit, SimEnv: simEnv,
	}))
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
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// exits runs the command and compares its exit code: exits 3 node get nope.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	// The shell keeps the code, which the script language itself does not tell.
	line := append([]string{"-c", `"$@"; c=$?; [ $c = ` + args[0] + ` ] || { echo "exit code $c, want ` + args[0] + `" >&2; exit 1; }`, "sh", "slipway"}, args[1:]...)
	if err := ts.Exec("sh", line...); err != nil {
		ts.Fatalf("slipway %v: %v", args[1:], err)
	}
}
