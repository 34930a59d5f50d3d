package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// IOStreams is where a command reads and writes, and what is known of it. All
// knowledge of terminals is here: no command asks the operating system itself.
type IOStreams struct {
	In  io.Reader
	Out io.Writer // data, and nothing else
	Err io.Writer // progress, questions, warnings, errors

	InTTY, OutTTY, ErrTTY bool
	// OutColor and ErrColor tell whether colour is wanted there.
	OutColor, ErrColor bool
	// Redraw tells that lines on Err can be drawn anew in place.
	Redraw bool
	// Width is the terminal's, in columns; 80 where it is not known.
	Width int
}

// SystemStreams returns the process's own streams. NO_COLOR, CLICOLOR_FORCE
// and TERM=dumb count as people expect: the first takes colour away, the
// second gives it where there is no terminal, the third means a terminal
// that can neither colour nor redraw.
func SystemStreams(getenv func(string) string) *IOStreams {
	s := &IOStreams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	s.Configure(getenv)
	for _, f := range []*os.File{os.Stderr, os.Stdout} {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			s.Width = w
			break
		}
	}
	return s
}

// Configure sets colour, Redraw and Width from what is known of the terminals
// and from the environment.
func (s *IOStreams) Configure(getenv func(string) string) {
	dumb := getenv("TERM") == "dumb"
	force := getenv("CLICOLOR_FORCE")
	forced := force != "" && force != "0"
	color := func(tty bool) bool {
		if getenv("NO_COLOR") != "" {
			return false
		}
		return forced || tty && !dumb && getenv("CLICOLOR") != "0"
	}
	s.OutColor, s.ErrColor = color(s.OutTTY), color(s.ErrTTY)
	s.Redraw = s.ErrTTY && !dumb
	if s.Width <= 0 {
		s.Width = 80
	}
}

// CanAsk tells that a person is there to answer a question.
func (s *IOStreams) CanAsk() bool { return s.InTTY && s.ErrTTY }

// style is one way to stress text.
type style string

const (
	styleBold   style = "1"
	styleFaint  style = "2"
	styleRed    style = "31"
	styleGreen  style = "32"
	styleYellow style = "33"
	styleCyan   style = "36"
)

func paint(on bool, st style, s string) string {
	if !on || st == "" || s == "" {
		return s
	}
	return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
}

// printable takes out what could move a terminal's cursor or hide text, since
// names and messages come from elsewhere.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

// systemClock is the real time.
type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
