package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// TestExitCodes has each code at least once.
func TestExitCodes(t *testing.T) {
	create := func(name string, more ...string) []string {
		return append([]string{"node", "create", name, "--region", "fsn1", "--size", "cx23"}, more...)
	}
	seen := map[int]bool{}
	for _, c := range []struct {
		name string
		args []string
		set  func(*world)
		want int
		says string // on standard error
	}{
		{"joined", create("web-1"), nil, cli.ExitOK, ""},
		{"join timeout", create("late-1"), nil, cli.ExitFailed, "did not join"},
		{"provider in trouble", []string{"regions", "--account", "prod"}, fails("Regions", provision.ErrUnavailable), cli.ExitFailed, "unavailable"},
		{"fault of the control plane", []string{"node", "list"}, fails("Nodes", errors.New("torn")), cli.ExitFailed, "its log says more"},
		{"name in use", create("taken-1"), func(w *world) { w.run(create("taken-1")...) }, cli.ExitFailed, "exists already"},
		{"flag", []string{"node", "list", "--nope"}, nil, cli.ExitUsage, "--nope"},
		{"argument", []string{"node", "get"}, nil, cli.ExitUsage, "slipway node get --help"},
		{"too many arguments", []string{"version", "x"}, nil, cli.ExitUsage, ""},
		{"command", []string{"frobnicate"}, nil, cli.ExitUsage, "frobnicate"},
		{"input", create("Web"), nil, cli.ExitUsage, "web would do"},
		{"refused as invalid", create("web-1"), fails("CreateNode", &fleet.Error{Class: "invalid", Message: "the address is private", Hint: "use --advertise"}), cli.ExitUsage, "use --advertise"},
		{"no such node", []string{"node", "get", "nope"}, nil, cli.ExitNotFound, "nope"},
		{"no such region", []string{"sizes", "--account", "prod", "--region", "mars"}, nil, cli.ExitNotFound, "mars"},
		{"credential", []string{"account", "check", "prod"}, fails("CheckAccount", &fleet.Error{Class: "unauthorized", Message: "no"}), cli.ExitCredentials, ""},
		{"permission", []string{"account", "check", "prod"}, fails("CheckAccount", provision.ErrForbidden), cli.ExitCredentials, ""},
		{"no credential", []string{"regions", "--provider", "hetzner"}, nil, cli.ExitCredentials, "HCLOUD_TOKEN"},
		{"capacity", create("full-1"), nil, cli.ExitNoCapacity, "left behind: nothing"},
		{"quota", create("quota-1"), nil, cli.ExitNoCapacity, ""},
		{"quota at once", create("web-1"), fails("CreateNode", provision.ErrQuota), cli.ExitNoCapacity, "left behind: nothing"},
		{"timeout", create("stuck-1", "--timeout", "5m"), func(w *world) {
			w.factory.Clock = clock{now: w.factory.Clock.Now(), fires: map[time.Duration]bool{5 * time.Minute: true}}
		}, cli.ExitTimeout, "goes on"},
		{"no yes", []string{"node", "delete", "web-1"}, func(w *world) { w.run(create("web-1")...) }, cli.ExitRefused, "--yes"},
		{"said no", []string{"account", "rm", "prod"}, func(w *world) { w.terminal("n\n") }, cli.ExitRefused, "not confirmed"},
		{"in use", []string{"account", "rm", "prod", "--yes"}, func(w *world) { w.run(create("web-1")...) }, cli.ExitRefused, "in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.set != nil {
				c.set(w)
			}
			got := w.run(c.args...)
			if got != c.want {
				t.Errorf("exit code %d, want %d: %s", got, c.want, w.err)
			}
			if !strings.Contains(w.err.String(), c.says) {
				t.Errorf("%q does not stand in %s", c.says, w.err)
			}
			if got != cli.ExitOK && !strings.Contains(w.err.String(), "error: ") {
				t.Errorf("no error is told: %s", w.err)
			}
			seen[got] = true
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := w.runContext(ctx, "node", "list")
		if got != cli.ExitInterrupted || strings.Contains(w.err.String(), "error") {
			t.Errorf("exit code %d: %s", got, w.err)
		}
		seen[got] = true
	})
	for code := range tableOfCodes(t) {
		if !seen[code] {
			t.Errorf("code %d stands in the table and no case here ends with it", code)
		}
	}
	for code := range seen {
		if _, ok := tableOfCodes(t)[code]; !ok {
			t.Errorf("code %d is not in the table", code)
		}
	}
}

// tableOfCodes reads docs/reference/exit-codes.md.
func tableOfCodes(t *testing.T) map[int]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[int]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(cells[1])); err == nil {
			codes[n] = strings.TrimSpace(cells[2])
		}
	}
	if len(codes) < 9 {
		t.Fatalf("only %d codes in the table", len(codes))
	}
	return codes
}

func fails(method string, err error) func(*world) {
	return func(w *world) {
		w.fleet.Fail = func(m, _ string) error {
			if m == method {
				return err
			}
			return nil
		}
	}
}
