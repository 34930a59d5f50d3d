package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/cli"
)

func TestConfirmDelete(t *testing.T) {
	for _, c := range []struct {
		name    string
		tty     bool
		in      string
		args    []string
		code    int
		deleted bool
	}{
		{"yes", true, "y\n", nil, 0, true},
		{"word", true, "YES\n", nil, 0, true},
		{"no", true, "n\n", nil, 7, false},
		{"return", true, "\n", nil, 7, false},
		{"end of input", true, "", nil, 7, false},
		{"something else", true, "yep\n", nil, 7, false},
		{"flag on a terminal", true, "", []string{"--yes"}, 0, true},
		{"no terminal", false, "y\n", nil, 7, false},
		{"flag without a terminal", false, "", []string{"-y"}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, n := range []string{"web-1", "web-2"} {
				if code := w.run("node", "create", n, "--region", "fsn1", "--size", "cx23", "--no-wait"); code != 0 {
					t.Fatal(w.err)
				}
			}
			w.io.In = strings.NewReader(c.in)
			if c.tty {
				w.terminal(c.in)
			}
			if code := w.run(append([]string{"node", "delete", "web-1", "web-2"}, c.args...)...); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, w.err)
			}
			asked := "This deletes 2 nodes with all that was made for them:\n" +
				"  web-1  joined  hetzner  fsn1  cx23  203.0.113.7  4.15 EUR a month\n" +
				"  web-2  joined  hetzner  fsn1  cx23  203.0.113.7  4.15 EUR a month\n" +
				"Together: 8.30 EUR a month\nGo on? [y/N] "
			if c.tty && len(c.args) == 0 != strings.HasPrefix(w.err.String(), asked) {
				t.Errorf("asked: %s", w.err)
			}
			deleted := false
			for _, call := range w.fleet.Calls() {
				deleted = deleted || strings.HasPrefix(call, "DeleteNode")
			}
			if deleted != c.deleted {
				t.Errorf("deleted: %v", deleted)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name         string
		tty          bool
		env          map[string]string
		color, draws bool
	}{
		{"terminal", true, nil, true, true},
		{"pipe", false, nil, false, false},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false, true},
		{"empty NO_COLOR", true, map[string]string{"NO_COLOR": ""}, true, true},
		{"forced in a pipe", false, map[string]string{"CLICOLOR_FORCE": "1"}, true, false},
		{"not forced", false, map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		{"NO_COLOR wins", false, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false, false},
		{"dumb", true, map[string]string{"TERM": "dumb"}, false, false},
		{"CLICOLOR off", true, map[string]string{"CLICOLOR": "0"}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &cli.IOStreams{OutTTY: c.tty, ErrTTY: c.tty, InTTY: c.tty}
			s.Configure(func(k string) string { return c.env[k] })
			if s.OutColor != c.color || s.ErrColor != c.color || s.Redraw != c.draws || s.Width != 80 || s.CanAsk() != c.tty {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestColour(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	w.io.OutColor, w.io.ErrColor = true, true
	w.run("node", "create", "web-1", "--region", "fsn1", "--size", "cx23")
	if code := w.run("node", "list"); code != 0 {
		t.Fatal(w.err)
	}
	want := "\x1b[2mNAME\x1b[0m   \x1b[2mPHASE\x1b[0m   \x1b[2mPROVIDER\x1b[0m  \x1b[2mREGION\x1b[0m  \x1b[2mSIZE\x1b[0m  \x1b[2mADDRESS\x1b[0m      \x1b[2mAGE\x1b[0m   \x1b[2mA MONTH\x1b[0m\n" +
		"web-1  \x1b[32mjoined\x1b[0m  hetzner   fsn1    cx23  203.0.113.7   1m  4.15 EUR\n"
	if d := cmp.Diff(want, w.out.String()); d != "" {
		t.Error(d)
	}
	if got := w.err.String(); got != "1 node, 4.15 EUR a month\n" {
		t.Errorf("the footer is %q", got)
	}
	w.run("node", "get", "nope")
	if !strings.HasPrefix(w.err.String(), "\x1b[31merror:\x1b[0m ") {
		t.Errorf("%q", w.err)
	}
}

// TestWide: the titles for people, and every column.
func TestWide(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	w.run("node", "create", "full-1", "--region", "fsn1", "--size", "cx23", "-l", "b=2", "-l", "a=1")
	w.run("node", "list", "-o", "wide")
	want := "NAME    PHASE   PROVIDER  REGION  SIZE  ADDRESS  AGE   A MONTH  ACCOUNT  SERVER  SEEN  ID                                    LABELS   REASON\n" +
		"full-1  failed  hetzner   fsn1    cx23            1m  4.15 EUR  prod                   0199aaaa-0000-7000-8000-000000000001  a=1,b=2  hetzner has no cx23 in fsn1 now\n"
	if d := cmp.Diff(want, w.out.String()); d != "" {
		t.Error(d)
	}
	if got := w.err.String(); got != "1 node\n" {
		t.Errorf("a node without a server costs something: %q", got)
	}
	w.run("node", "get", "full-1")
	for _, line := range []string{"phase        failed\n", "reason       hetzner has no cx23 in fsn1 now\n", "request id   req-77\n", "left behind  nothing\n"} {
		if !strings.Contains(w.out.String(), line) {
			t.Errorf("no %q in %s", line, w.out)
		}
	}
	w.run("account", "list")
	if !strings.HasPrefix(w.out.String(), "NAME  PROVIDER  CREDENTIAL") {
		t.Error(w.out)
	}
	w.run("node", "delete", "full-1", "-y")
	w.run("node", "list")
	if w.out.String() != "" || !strings.Contains(w.err.String(), "no nodes; `slipway node create` makes one") {
		t.Errorf("%q %q", w.out, w.err)
	}
}

// TestHostileText: what others wrote cannot move the cursor or hide a line.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	code := w.run("node", "get", "x\x1b[2J\r\nerror: all is well")
	if code != cli.ExitNotFound {
		t.Errorf("exit code %d", code)
	}
	if s := w.err.String(); strings.ContainsAny(s, "\x1b\r") || strings.Count(s, "\n") > 2 {
		t.Errorf("%q", s)
	}
}

// TestMachineOutputIsSilent: with -o json and its like, standard error is
// empty unless something fails, and standard output is one document.
func TestMachineOutputIsSilent(t *testing.T) {
	for _, format := range []string{"json", "yaml", "name"} {
		t.Run(format, func(t *testing.T) {
			w := newWorld(t)
			w.terminal("")
			for _, args := range [][]string{
				{"node", "create", "web-1", "--region", "fsn1", "--size", "cx23"}, {"node", "list"}, {"node", "get", "web-1"}, {"node", "wait", "web-1"},
				{"node", "events", "web-1"}, {"node", "create", "x", "--region", "fsn1", "--size", "cx23", "--dry-run"}, {"account", "list"}, {"account", "check", "prod"},
				{"regions", "--account", "prod"}, {"sizes", "--account", "prod", "--region", "fsn1"}, {"audit"}, {"token", "t-1"}, {"version"}, {"sim", "env"},
				{"node", "delete", "web-1", "--yes"}, {"node", "delete", "-l", "no=ne", "--yes"},
			} {
				if code := w.run(append(args, "-o", format)...); code != 0 {
					t.Errorf("%v: exit code %d: %s", args, code, w.err)
				}
				if w.err.String() != "" {
					t.Errorf("%v -o %s says %q", args, format, w.err)
				}
				if strings.Contains(w.out.String(), "\x1b") {
					t.Errorf("%v -o %s paints", args, format)
				}
				if format == "json" && !strings.HasPrefix(w.out.String(), "[") && !strings.HasPrefix(w.out.String(), "{") {
					t.Errorf("%v -o json prints %q", args, w.out)
				}
			}
		})
	}
}
