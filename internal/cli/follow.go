package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/client"
)

// goal is what a command waits for.
type goal struct {
	phase string // joined or deleted
	// verb names, in messages, what goes on: "the create", "the delete".
	verb string
}

var (
	goalJoined  = goal{"joined", "the create"}
	goalDeleted = goal{"deleted", "the delete"}
)

// errWaitTimeout is the cause when --timeout ends the wait.
var errWaitTimeout = errors.New("timed out waiting")

// removalGrace is how long a failed node's server is waited for to go, so that
// what is left behind can be said for sure.
const removalGrace = 30 * time.Second

// follower waits for nodes.
type follower struct {
	*app
	c     *client.Client
	goal  goal
	after since
	nodes []*tracked
	show  progress
}

// since says, for each node's id, after which sequence number its events count.
type since map[string]int64

// oldest is the number after which the stream must begin.
func (s since) oldest() int64 {
	first, res := true, int64(0)
	for _, seq := range s {
		if first || seq < res {
			first, res = false, seq
		}
	}
	return res
}

// sinceLast is after each node's last event so far; sinceFirst before its
// first.
func sinceLast(ctx context.Context, c *client.Client, nodes []client.Node) (since, error) {
	return seqs(ctx, c, nodes, func(events []client.Event) int64 { return events[len(events)-1].Seq })
}

func sinceFirst(ctx context.Context, c *client.Client, nodes []client.Node) (since, error) {
	return seqs(ctx, c, nodes, func(events []client.Event) int64 { return events[0].Seq - 1 })
}

func seqs(ctx context.Context, c *client.Client, nodes []client.Node, pick func([]client.Event) int64) (since, error) {
	res := since{}
	for _, n := range nodes {
		events, err := c.Events(ctx, n.ID)
		if err != nil {
			return nil, err
		}
		res[n.ID] = 0
		if len(events) > 0 {
			res[n.ID] = pick(events)
		}
	}
	return res, nil
}

// follow waits until every node is at the goal or will not reach it, showing
// what happens to them after a point. It returns the nodes as they are at the end, and the error of
// the first, in order, that will not reach it. timeout 0 means no limit.
func (a *app) follow(ctx context.Context, c *client.Client, nodes []client.Node, after since, g goal, timeout time.Duration) ([]client.Node, error) {
	f := &follower{app: a, c: c, goal: g, after: after}
	now := a.Clock.Now()
	for _, n := range nodes {
		f.nodes = append(f.nodes, track(n, now))
	}
	f.show = a.newProgress(f.nodes)
	err := f.run(ctx, timeout)
	f.show.done()
	res := make([]client.Node, len(f.nodes))
	for i, t := range f.nodes {
		res[i] = t.node
	}
	if err != nil {
		return res, f.stopped(ctx, err)
	}
	return res, f.failures()
}

type watched struct {
	event client.Event
	err   error
	note  string
}

func (f *follower) run(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// What was reached before the watch began shows in the record, and its
	// events may be older than after.
	for _, t := range f.nodes {
		f.judge(t, f.Clock.Now())
	}
	if f.allSettled() {
		return nil
	}
	in, stop := f.watch(ctx)
	defer func() { cancel(nil); stop() }()
	var deadline <-chan time.Time
	if timeout > 0 {
		deadline = f.Clock.After(timeout)
	}
	for !f.allSettled() {
		var tick <-chan time.Time
		if d := f.pause(); d > 0 {
			tick = f.Clock.After(d)
		}
		select {
		case w := <-in:
			switch {
			case w.err != nil:
				return w.err
			case w.note != "":
				f.show.note(w.note)
			default:
				if err := f.take(ctx, w.event); err != nil {
					return err
				}
			}
		case <-tick:
			f.show.tick()
			f.endGraces()
		case <-deadline:
			return errWaitTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// pause is how long to wait at most for an event.
func (f *follower) pause() time.Duration {
	d := f.show.every()
	now := f.Clock.Now()
	for _, t := range f.nodes {
		if !t.settled && !t.graceEnds.IsZero() {
			left := max(t.graceEnds.Sub(now), time.Millisecond)
			if d == 0 || left < d {
				d = left
			}
		}
	}
	return d
}

// watch reads the event stream in a goroutine that ends with ctx; stop waits
// for its end.
func (f *follower) watch(ctx context.Context) (in <-chan watched, stop func()) {
	ch, done := make(chan watched), make(chan struct{})
	send := func(w watched) bool {
		select {
		case ch <- w:
			return true
		case <-ctx.Done():
			return false
		}
	}
	o := client.WatchOptions{After: f.after.oldest(), OnReconnect: func(err error) {
		why := ""
		if err != nil {
			why = ": " + err.Error()
		}
		send(watched{note: "connection to the control plane lost, trying again" + why})
	}}
	if len(f.nodes) == 1 {
		o.Node = f.nodes[0].node.ID
	}
	go func() {
		defer close(done)
		for e, err := range f.c.Watch(ctx, o) {
			if !send(watched{event: e, err: err}) || err != nil {
				return
			}
		}
	}()
	return ch, func() { <-done }
}

func (f *follower) allSettled() bool {
	for _, t := range f.nodes {
		if !t.settled {
			return false
		}
	}
	return true
}

// take brings an event to its node. The record is read anew when the event
// says that the node is at its goal or will not reach it, since it tells more.
func (f *follower) take(ctx context.Context, e client.Event) error {
	for _, t := range f.nodes {
		if t.node.ID != e.NodeID || t.settled || e.Seq <= f.after[e.NodeID] {
			continue
		}
		t.see(e)
		t.node.Phase = e.Phase
		if f.decides(e.Phase) {
			n, err := f.c.Node(ctx, t.node.ID)
			switch {
			case err == nil:
				t.node = n
				// What the event said has happened, whatever came after.
				t.node.Phase = e.Phase
			case client.ClassOf(err) != client.ClassNotFound:
				return err
			}
		}
		f.judge(t, e.At)
		f.show.event(t, e)
	}
	return nil
}

// decides tells that a node in phase is at the goal or will not reach it.
func (f *follower) decides(phase string) bool {
	return phase == f.goal.phase || f.goal == goalJoined && (phase == "failed" || phase == "deleting" || phase == "deleted")
}

// judge settles t when it is at the goal or will not reach it.
func (f *follower) judge(t *tracked, at time.Time) {
	n := t.node
	settle := func(err error) { t.settled, t.err, t.ended = true, err, at }
	switch {
	case n.Phase == f.goal.phase:
		settle(nil)
	case n.Phase == "failed" && f.goal == goalJoined:
		if !n.ServerGone && t.graceEnds.IsZero() {
			t.graceEnds = f.Clock.Now().Add(removalGrace)
		}
		if n.ServerGone || !f.Clock.Now().Before(t.graceEnds) {
			settle(aboutMachines(client.ErrorFromReason(n)))
		}
	case f.goal == goalJoined && (n.Phase == "deleting" || n.Phase == "deleted"):
		settle(&client.Error{Class: client.ClassConflict, Message: fmt.Sprintf("node %s was deleted before it joined", n.Name)})
	}
}

func (f *follower) endGraces() {
	now := f.Clock.Now()
	for _, t := range f.nodes {
		if !t.settled && !t.graceEnds.IsZero() && !now.Before(t.graceEnds) {
			f.judge(t, now)
		}
	}
}

// failures returns the first node's error, after telling the others'.
func (f *follower) failures() error {
	var first error
	for _, t := range f.nodes {
		switch {
		case t.err == nil:
		case first == nil:
			first = t.err
		default:
			f.printError(t.err)
		}
	}
	return first
}

// stopped words a wait that ended before its goal: the work goes on.
func (f *follower) stopped(ctx context.Context, err error) error {
	var open []string
	for _, t := range f.nodes {
		if !t.settled {
			open = append(open, t.node.Name)
		}
	}
	names := strings.Join(open, " ")
	next := fmt.Sprintf("follow it with `slipway node wait %s`, undo it with `slipway node delete %s`", names, names)
	if f.goal == goalDeleted {
		next = fmt.Sprintf("follow it with `slipway node wait --for deleted %s`", names)
	}
	switch {
	case errors.Is(err, errWaitTimeout):
		return &exitError{code: ExitTimeout, hint: next, err: fmt.Errorf("%s: %s of %s goes on", errWaitTimeout, f.goal.verb, strings.Join(open, ", "))}
	case ctx.Err() != nil:
		fmt.Fprintf(f.IO.Err, "interrupted: %s of %s goes on\n%s  %s\n", f.goal.verb, strings.Join(open, ", "), paint(f.IO.ErrColor, styleCyan, "next:"), next)
		return marked{context.Canceled, errSilent}
	}
	return err
}
