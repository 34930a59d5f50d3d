package cli_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// screen is what a terminal shows after s was written to it.
func screen(s string) string {
	var lines [][]rune
	row, col := 0, 0
	at := func() {
		for len(lines) <= row {
			lines = append(lines, nil)
		}
	}
	for i := 0; i < len(s); {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, "\x1b["):
			j := strings.IndexFunc(rest[2:], func(r rune) bool { return r >= 'A' && r <= 'z' }) + 2
			n := 0
			for _, c := range rest[2:j] {
				n = n*10 + int(c-'0')
			}
			at()
			switch rest[j] {
			case 'A':
				row -= n
			case 'K':
				lines[row] = nil
			case 'J':
				lines = lines[:row]
			}
			i += j + 1
			continue
		case rest[0] == '\r':
			col = 0
		case rest[0] == '\n':
			row, col = row+1, 0
		default:
			at()
			r := []rune(rest)[0]
			for len(lines[row]) <= col {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][col] = r
			col++
			i += len(string(r))
			continue
		}
		i++
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(string(l) + "\n")
	}
	return b.String()
}

func TestTerminalProgress(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	if code := w.run("node", "create", "web-1", "--region", "fsn1", "--size", "cx23"); code != 0 {
		t.Fatalf("exit code %d: %s", code, w.err)
	}
	want := "✓ web-1  pending 0.2s › creating 1.1s › booting 20s › joined after 21s\n" +
		"next: `slipway node list` shows the fleet, `slipway node delete web-1` ends the costs\n"
	if d := cmp.Diff(want, screen(w.err.String())); d != "" {
		t.Error(d)
	}
	wantOut := "NAME   PHASE   PROVIDER  REGION  SIZE  ADDRESS      AGE   A MONTH\n" +
		"web-1  joined  hetzner   fsn1    cx23  203.0.113.7   1m  4.15 EUR\n"
	if d := cmp.Diff(wantOut, w.out.String()); d != "" {
		t.Error(d)
	}
}

// TestTerminalProgressOfSeveral: one line each, in the order asked for, cut to the width.
func TestTerminalProgressOfSeveral(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	w.io.Width = 60
	w.run("node", "create", "web-1", "--region", "fsn1", "--size", "cx23")
	if code := w.run("node", "create", "full-1", "--region", "fsn1", "--size", "cx23"); code != cli.ExitNoCapacity {
		t.Fatalf("exit code %d", code)
	}
	got := strings.Split(screen(w.err.String()), "\n")[0]
	if want := "✗ full-1  pending 0.2s › creating 1.0s › failed after 1.2s…"; got != want {
		t.Errorf("line is\n%q, want\n%q", got, want)
	}
}

// TestSpinner: time alone moves the spinner and the running stage.
func TestSpinner(t *testing.T) {
	w := newWorld(t)
	w.terminal("")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.factory.Clock = clock{now: apitest.Start.Add(8 * time.Second), fires: map[time.Duration]bool{100 * time.Millisecond: true}}
	w.err.hook = func(all string) {
		if strings.Contains(screen(all), "⠸ stuck-1  pending 0.2s › creating 1.1s › booting 6.7s") {
			cancel()
		}
	}
	if code := w.runContext(ctx, "node", "create", "stuck-1", "--region", "fsn1", "--size", "cx23"); code != cli.ExitInterrupted {
		t.Errorf("exit code %d: %s", code, screen(w.err.String()))
	}
}

// TestPlainProgressBreaksSilence: build servers kill what says nothing.
func TestPlainProgressBreaksSilence(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &running{t: apitest.Start, tick: make(chan time.Time)}
	w.factory.Clock = c
	w.err.hook = func(all string) {
		switch {
		case strings.Contains(all, "still waiting"):
			cancel()
		case strings.Contains(all, "booting"):
			go c.pass(ctx, time.Minute)
		}
	}
	w.runContext(ctx, "node", "create", "stuck-1", "--region", "fsn1", "--size", "cx23")
	if want := "stuck-1  booting  1m00s  still waiting\n"; !strings.Contains(w.err.String(), want) {
		t.Errorf("no %q in %s", want, w.err)
	}
}

// running is a clock that a test moves; every timer fires when it moves.
type running struct {
	mu   sync.Mutex
	t    time.Time
	tick chan time.Time
}

func (c *running) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *running) After(time.Duration) <-chan time.Time { return c.tick }

func (c *running) pass(ctx context.Context, d time.Duration) {
	c.mu.Lock()
	c.t = c.t.Add(d)
	now := c.t
	c.mu.Unlock()
	select {
	case c.tick <- now:
	case <-ctx.Done():
	}
}

func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		name      string
		args      []string
		when      string
		lines     []string
		forbidden string
	}{
		{"create", []string{"node", "create", "stuck-1", "--region", "fsn1", "--size", "cx23"}, "booting",
			[]string{"interrupted: the create of stuck-1 goes on", "slipway node wait stuck-1", "slipway node delete stuck-1"}, "error:"},
		{"delete", []string{"node", "delete", "sticky-1", "--yes"}, "deleting",
			[]string{"interrupted: the delete of sticky-1 goes on", "slipway node wait --for deleted sticky-1"}, "error:"},
		{"events", []string{"node", "events", "sticky-1", "-f"}, "", []string{"interrupted"}, "error:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if code := w.run("node", "create", "sticky-1", "--region", "fsn1", "--size", "cx23"); code != 0 {
				t.Fatal(w.err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.when != "" {
				w.err.hook = func(all string) {
					if strings.Contains(all, c.when) {
						cancel()
					}
				}
			} else {
				w.out.hook = func(all string) {
					if strings.Contains(all, "joined") {
						cancel()
					}
				}
			}
			if code := w.runContext(ctx, c.args...); code != cli.ExitInterrupted {
				t.Errorf("exit code %d", code)
			}
			for _, l := range c.lines {
				if !strings.Contains(w.err.String(), l) {
					t.Errorf("no %q in %s", l, w.err)
				}
			}
			if strings.Contains(w.err.String(), c.forbidden) {
				t.Errorf("an interrupt is told as an error: %s", w.err)
			}
		})
	}
}

// TestLeftBehind: a failed node's server is waited for to go, and what is not
// seen to be gone is named.
func TestLeftBehind(t *testing.T) {
	create := []string{"node", "create", "left-1", "--region", "fsn1", "--size", "cx23"}
	t.Run("gone after a while", func(t *testing.T) {
		w := newWorld(t)
		w.err.hook = func(all string) {
			if strings.Contains(all, "failed") && !strings.Contains(all, "server-gone") {
				w.err.hook = nil
				go w.fleet.Happen("left-1", apitest.Step{Phase: fleet.PhaseFailed, Type: "server-gone", Message: "its server is gone", Edit: func(n *fleet.Node) { n.ServerGone = true }})
			}
		}
		if code := w.run(create...); code != cli.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(w.err.String(), "left behind: nothing") {
			t.Error(w.err)
		}
	})
	t.Run("not gone", func(t *testing.T) {
		w := newWorld(t)
		c := &running{t: apitest.Start, tick: make(chan time.Time)}
		w.factory.Clock = c
		w.err.hook = func(all string) {
			if strings.Contains(all, "failed") {
				w.err.hook = nil
				go c.pass(t.Context(), time.Hour)
			}
		}
		if code := w.run(create...); code != cli.ExitFailed {
			t.Errorf("exit code %d", code)
		}
		if want := "left behind:\n  server 42 at hetzner (being removed)\n"; !strings.Contains(w.err.String(), want) {
			t.Error(w.err)
		}
	})
}
