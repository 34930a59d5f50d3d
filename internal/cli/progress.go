package cli

import (
	"time"

	"github.com/slipway-dev/slipway/client"
)

// tracked is what is known of a node while a command waits for it.
type tracked struct {
	node    client.Node
	began   time.Time // of its first stage
	stages  []stage
	message string // of the last event
	settled bool
	err     error // why it will not reach the goal
	ended   time.Time
	// graceEnds is until when a failed node's server is waited for to go.
	graceEnds time.Time
}

// stage is one phase of a node and when it began.
type stage struct {
	phase string
	at    time.Time
}

func track(n client.Node, now time.Time) *tracked {
	t := &tracked{node: n, began: now}
	if !n.CreatedAt.IsZero() {
		t.began = n.CreatedAt
	}
	return t
}

// see takes an event in.
func (t *tracked) see(e client.Event) {
	if len(t.stages) == 0 {
		t.began = e.At
	}
	if n := len(t.stages); n == 0 || t.stages[n-1].phase != e.Phase {
		t.stages = append(t.stages, stage{e.Phase, e.At})
	}
	t.message = e.Message
}

func (t *tracked) phase() string {
	if n := len(t.stages); n > 0 {
		return t.stages[n-1].phase
	}
	return t.node.Phase
}

// took is how long the node has been on its way.
func (t *tracked) took(now time.Time) time.Duration {
	if t.settled {
		now = t.ended
	}
	return now.Sub(t.began)
}

// progress shows how nodes get on. Its methods are called from one goroutine.
type progress interface {
	// event shows that something happened to t.
	event(t *tracked, e client.Event)
	// tick shows that time has passed; every is how often it wants to be
	// called, 0 never.
	tick()
	every() time.Duration
	// note shows a line that belongs to no node.
	note(text string)
	// done ends the show, leaving the last state visible.
	done()
}

// newProgress picks the form: lines drawn anew on a terminal, lines one after
// the other elsewhere, and nothing when the output is for programs.
func (a *app) newProgress(nodes []*tracked) progress {
	switch {
	case a.machine():
		return silent{}
	case a.IO.Redraw:
		return &terminalProgress{io: a.IO, clock: a.Clock, nodes: nodes}
	}
	return &plainProgress{io: a.IO, clock: a.Clock, nodes: nodes, last: a.Clock.Now()}
}

// silent shows nothing.
type silent struct{}

func (silent) event(*tracked, client.Event) {}
func (silent) tick()                        {}
func (silent) every() time.Duration         { return 0 }
func (silent) note(string)                  {}
func (silent) done()                        {}
