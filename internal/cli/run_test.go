package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/cli"
)

func TestSimLedger(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_sim/ledger" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"summary":{"made":2,"left":1,"cost":{"EUR":"0.02"}},"entries":[
			{"provider":"hetzner","project":"x","kind":"server","id":"1","name":"web-1","created_at":"2026-03-01T12:00:00Z","deleted_at":"2026-03-01T12:30:00Z","hourly":0.0067,"currency":"EUR"},
			{"provider":"hetzner","project":"x","kind":"public-ip","id":"2","name":"ip","server":"1","created_at":"2026-03-01T12:00:00Z","hourly":0.0008,"currency":"EUR"}]}`)
	}))
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	w := newWorld(t)
	w.env[cli.EnvSimURL] = s.URL
	if code := w.run("sim", "ledger"); code != 0 {
		t.Fatal(w.err)
	}
	want := "hetzner\tserver\t1\tweb-1\t2026-03-01T12:00:00Z\t2026-03-01T12:30:00Z\t0.0067 EUR\n" +
		"hetzner\tpublic-ip\t2\tip\t2026-03-01T12:00:00Z\t\t0.0008 EUR\n"
	if d := cmp.Diff(want, w.out.String()); d != "" {
		t.Error(d)
	}
	if got := w.err.String(); got != "2 billed ever, 1 left, 0.02 EUR\n" {
		t.Errorf("%q", got)
	}
	if w.run("sim", "ledger", "--open", "-o", "name"); w.out.String() != "public-ip/2\n" {
		t.Errorf("%q", w.out)
	}
	if code := w.run("sim", "ledger", "--url", s.URL+"/other"); code != cli.ExitFailed || !strings.Contains(w.err.String(), "is no simulated cloud") {
		t.Errorf("%d %s", code, w.err)
	}
}

// TestWhatRuns: the commands that run something hand over what was asked.
func TestWhatRuns(t *testing.T) {
	var got any
	w := newWorld(t)
	w.factory.Serve = func(_ context.Context, o cli.ServeOptions) error { got = o; return nil }
	w.factory.Agent = func(_ context.Context, o cli.AgentOptions) error { got = o; return nil }
	w.factory.Sim = func(_ context.Context, o cli.SimOptions) error { got = o; return nil }
	w.factory.Demo = func(_ context.Context, o cli.DemoOptions) error { got = o; return nil }
	w.env[client.EnvDataDir] = "/data"
	for _, c := range []struct {
		args string
		want any
	}{
		{"serve", cli.ServeOptions{DataDir: "/data", Listen: ":8443", APIListen: "127.0.0.1:8440"}},
		{"serve --data-dir /d --listen :1 --api-listen :2 --advertise cp:1 --agent-image i --join-timeout 5m --api-host a,b",
			cli.ServeOptions{DataDir: "/d", Listen: ":1", APIListen: ":2", Advertise: "cp:1", AgentImage: "i", JoinTimeout: 5 * 60e9, APIHosts: []string{"a", "b"}}},
		{"agent", cli.AgentOptions{}},
		{"sim", cli.SimOptions{Listen: "127.0.0.1:8450", Seed: 1, Speed: 1, Agents: true}},
		{"sim --listen :3 --seed 7 --speed 60 --guest-dir /g --agents=false", cli.SimOptions{Listen: ":3", Seed: 7, Speed: 60, GuestDir: "/g"}},
		{"demo", cli.DemoOptions{Nodes: 1, Seed: 1}},
		{"demo --nodes 5 --speed 30 --data-dir /d", cli.DemoOptions{Nodes: 5, Seed: 1, Speed: 30, DataDir: "/d"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			got = nil
			if code := w.run(strings.Fields(c.args)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, w.err)
			}
			ignore := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(&cli.IOStreams{}, &slog.Logger{})}
			if d := cmp.Diff(c.want, got, ignore...); d != "" {
				t.Error(d)
			}
		})
	}
	for _, args := range []string{"demo --nodes 0", "demo --speed -1", "sim --speed 0", "serve --log-level loud", "agent --log-format xml", "serve extra"} {
		if code := w.run(strings.Fields(args)...); code != cli.ExitUsage {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
	w.factory.Serve = func(ctx context.Context, _ cli.ServeOptions) error { <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := w.runContext(ctx, "serve"); code != cli.ExitInterrupted {
		t.Errorf("serve that was stopped: %d", code)
	}
	w.factory.Serve = func(context.Context, cli.ServeOptions) error {
		return fmt.Errorf("listen: %w", errors.New("address in use"))
	}
	if code := w.run("serve"); code != cli.ExitFailed || !strings.Contains(w.err.String(), "error: listen: address in use") {
		t.Errorf("%d %s", code, w.err)
	}
}

// TestLogs: the form and level that were asked for, on standard error.
func TestLogs(t *testing.T) {
	w := newWorld(t)
	w.factory.Serve = func(_ context.Context, o cli.ServeOptions) error {
		o.Logger.Debug("quiet")
		o.Logger.Info("hello", "k", "v")
		return nil
	}
	for args, want := range map[string]string{"serve": "level=INFO msg=hello k=v\n", "serve --log-format json": `"msg":"hello","k":"v"}` + "\n"} {
		w.run(strings.Fields(args)...)
		if !strings.HasSuffix(w.err.String(), want) || strings.Contains(w.err.String(), "quiet") {
			t.Errorf("%s: %q", args, w.err)
		}
	}
	w.terminal("")
	if w.run("serve", "--log-level", "debug"); !strings.Contains(w.err.String(), "DBG quiet") {
		t.Errorf("%q", w.err)
	}
	if w.run("serve", "--log-level", "error"); w.err.String() != "" {
		t.Errorf("%q", w.err)
	}
}

// TestNothingWired: a part that the build lacks is named, and help needs none.
func TestNothingWired(t *testing.T) {
	w := newWorld(t)
	w.factory.Clouds, w.factory.RenderCloudInit, w.factory.SimEnv = nil, nil, nil
	for _, args := range []string{"serve", "agent", "sim", "sim env", "demo", "regions --provider hetzner", "account add x --provider hetzner", "account check", "cloud-init"} {
		if code := w.run(strings.Fields(args)...); code != cli.ExitFailed || !strings.Contains(w.err.String(), "this build of slipway has no") {
			t.Errorf("%s: %d %s", args, code, w.err)
		}
	}
	w.factory.Client = func() (*client.Client, error) { panic("help asked for a control plane") }
	for _, args := range []string{"", "--help", "node --help", "node create --help", "help exit-codes", "version", "completion bash"} {
		if code := w.run(strings.Fields(args)...); code != 0 {
			t.Errorf("%s: %d %s", args, code, w.err)
		}
	}
}
