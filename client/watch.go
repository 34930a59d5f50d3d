package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// WatchOptions says which events to follow.
type WatchOptions struct {
	// After is the sequence number after which to begin; 0 begins with the
	// oldest event that is kept.
	After int64
	// Node limits it to one node: id, name or unique prefix.
	Node string
	// OnReconnect is called before each new try after a lost connection, with
	// what ended the last one. It may be nil.
	OnReconnect func(err error)
}

const (
	// idleLimit is how long a stream may be silent: the control plane sends a
	// sign of life every 15 seconds.
	idleLimit    = 45 * time.Second
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Second
	maxLine      = 1 << 20
)

var errIdle = errors.New("the event stream fell silent")

// Watch yields events: those after o.After, then each new one as it happens.
// A lost connection is taken up again where it ended, without gap or repeat, until ctx
// ends. The sequence ends with an error when ctx ends, when the first
// connection fails, or when the control plane refuses.
func (c *Client) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after, connected, backoff := o.After, false, firstBackoff
		for {
			more := true
			err := c.stream(ctx, after, o.Node, func() { connected, backoff = true, firstBackoff }, func(e Event) bool {
				if e.Seq <= after {
					return true // seen before the connection broke
				}
				after = e.Seq
				more = yield(e, nil)
				return more
			})
			if !more {
				return
			}
			if ctx.Err() != nil {
				yield(Event{}, context.Cause(ctx))
				return
			}
			if err != nil && (!connected || refused(err)) {
				yield(Event{}, err)
				return
			}
			if o.OnReconnect != nil {
				o.OnReconnect(err)
			}
			if err := c.sleep(ctx, backoff/2+rand.N(backoff/2)); err != nil {
				yield(Event{}, err)
				return
			}
			backoff = min(2*backoff, maxBackoff)
		}
	}
}

// refused tells that trying again will give the same answer.
func refused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests
}

// stream reads one connection's events until it ends or each returns false.
func (c *Client) stream(ctx context.Context, after int64, node string, opened func(), each func(Event) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := url.Values{"after": {seqString(after)}}
	if node != "" {
		q.Set("node", node)
	}
	h := http.Header{"Accept": {"text/event-stream"}}
	if after > 0 {
		h.Set("Last-Event-ID", seqString(after))
	}
	resp, err := c.send(ctx, call{method: http.MethodGet, path: "/v1/events", query: q, header: h}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	opened()
	silence := time.AfterFunc(idleLimit, func() { cancel(errIdle) })
	defer silence.Stop()
	err = readEvents(resp.Body, func() { silence.Reset(idleLimit) }, each)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// readEvents parses a stream of server-sent events. alive is called for every
// line, each for every event named "node" or without a name.
func readEvents(r io.Reader, alive func(), each func(Event) bool) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 4096), maxLine)
	var data strings.Builder
	name, id := "", int64(0)
	for sc.Scan() {
		alive()
		line := strings.TrimSuffix(sc.Text(), "\r")
		if line == "" {
			if data.Len() > 0 && (name == "" || name == "node") {
				var e Event
				if err := json.Unmarshal([]byte(data.String()), &e); err != nil {
					return err
				}
				if e.Seq == 0 {
					e.Seq = id
				}
				if !each(e) {
					return nil
				}
			}
			data.Reset()
			name = ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			if data.Len() > 0 {
				data.WriteByte('\n')
			}
			data.WriteString(value)
		case "event":
			name = value
		case "id":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				id = n
			}
		}
	}
	return sc.Err()
}
