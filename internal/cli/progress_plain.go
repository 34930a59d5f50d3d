package cli

import (
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
)

// plainProgress writes a line for each event, for logs and for terminals that
// cannot redraw. After a long silence it says what is waited for, since build
// servers kill what says nothing.
type plainProgress struct {
	io    *IOStreams
	clock Clock
	nodes []*tracked
	last  time.Time
}

const plainSilence = 30 * time.Second

func (p *plainProgress) every() time.Duration { return plainSilence }

func (p *plainProgress) event(t *tracked, e client.Event) {
	p.last = p.clock.Now()
	fmt.Fprintf(p.io.Err, "%s  %s  %s  %s\n", printable(t.node.Name), printable(e.Phase), elapsed(e.At.Sub(t.began)), printable(e.Message))
}

func (p *plainProgress) tick() {
	now := p.clock.Now()
	if now.Sub(p.last) < plainSilence {
		return
	}
	p.last = now
	for _, t := range p.nodes {
		if !t.settled {
			fmt.Fprintf(p.io.Err, "%s  %s  %s  still waiting\n", printable(t.node.Name), printable(t.phase()), elapsed(t.took(now)))
		}
	}
}

func (p *plainProgress) note(text string) { fmt.Fprintln(p.io.Err, printable(text)) }

func (p *plainProgress) done() {}
