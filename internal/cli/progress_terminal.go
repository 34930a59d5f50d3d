package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-dev/slipway/client"
)

// terminalProgress draws a line for each node, with its stages and their
// times, over and over in the same place.
type terminalProgress struct {
	io    *IOStreams
	clock Clock
	nodes []*tracked
	drawn int // lines on the screen
	frame int
}

// maxLines bounds the lines, since what has scrolled out of a terminal cannot
// be drawn anew.
const maxLines = 16

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (p *terminalProgress) every() time.Duration         { return 100 * time.Millisecond }
func (p *terminalProgress) event(*tracked, client.Event) { p.draw() }
func (p *terminalProgress) tick()                        { p.frame++; p.draw() }
func (p *terminalProgress) done()                        { p.draw() }

func (p *terminalProgress) note(text string) {
	p.clear()
	fmt.Fprintln(p.io.Err, printable(text))
	p.draw()
}

// clear puts the cursor where the first line was, and empties all below.
func (p *terminalProgress) clear() {
	if p.drawn > 0 {
		fmt.Fprintf(p.io.Err, "\x1b[%dA\r\x1b[J", p.drawn)
		p.drawn = 0
	}
}

// draw writes all lines at once, so that they do not flicker.
func (p *terminalProgress) draw() {
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	lines := p.lines()
	for _, l := range lines {
		b.WriteString("\r\x1b[2K" + l + "\n")
	}
	if len(lines) < p.drawn {
		b.WriteString("\x1b[J")
	}
	p.drawn = len(lines)
	_, _ = io.WriteString(p.io.Err, b.String())
}

func (p *terminalProgress) lines() []string {
	now, width := p.clock.Now(), 0
	for _, t := range p.nodes {
		width = max(width, utf8.RuneCountInString(t.node.Name))
	}
	shown, rest := p.nodes, 0
	if len(shown) > maxLines {
		shown = make([]*tracked, 0, maxLines)
		for _, t := range p.nodes { // those still on their way first
			if !t.settled && len(shown) < maxLines {
				shown = append(shown, t)
			}
		}
		rest = len(p.nodes) - len(shown)
	}
	lines := make([]string, 0, len(shown)+1)
	for _, t := range shown {
		lines = append(lines, p.line(t, width, now))
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more, %d of %d done", rest, p.settled(), len(p.nodes)))
	}
	return lines
}

func (p *terminalProgress) settled() int {
	n := 0
	for _, t := range p.nodes {
		if t.settled && t.err == nil {
			n++
		}
	}
	return n
}

// line is one node's: a mark, the name, each stage with its time, and what
// happened last, cut to the terminal's width.
func (p *terminalProgress) line(t *tracked, width int, now time.Time) string {
	mark, st := string(spinner[p.frame%len(spinner)]), styleCyan
	switch {
	case t.settled && t.err == nil:
		mark, st = "✓", styleGreen
	case t.err != nil || t.phase() == "failed":
		mark, st = "✗", styleRed
	}
	text := fmt.Sprintf(" %-*s ", width, printable(t.node.Name))
	end := now
	if t.settled {
		end = t.ended
	}
	for i, s := range t.stages {
		next := end
		if i+1 < len(t.stages) {
			next = t.stages[i+1].at
		} else if t.settled {
			// The end is an instant: what counts is how long it took in all.
			text += fmt.Sprintf(" %s after %s", printable(s.phase), elapsed(t.took(now)))
			break
		}
		sep := ""
		if i+1 < len(t.stages) {
			sep = " ›"
		}
		text += fmt.Sprintf(" %s %s%s", printable(s.phase), elapsed(next.Sub(s.at)), sep)
	}
	if t.message != "" && !(t.settled && t.err == nil) {
		text += "  " + printable(t.message)
	}
	return paint(p.io.ErrColor, st, mark) + cut(text, p.io.Width-2)
}

// cut shortens s to width columns.
func cut(s string, width int) string {
	if r := []rune(s); len(r) > width && width > 1 {
		return string(r[:width-1]) + "…"
	}
	return s
}
