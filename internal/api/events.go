package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
)

type watchInput struct {
	After       int64  `query:"after" minimum:"0" doc:"begin after this sequence number; 0 begins with the oldest event"`
	LastEventID int64  `header:"Last-Event-ID" minimum:"0" doc:"as after, and wins when it is larger: what an EventSource sends when it connects again"`
	Node        string `query:"node" maxLength:"128" doc:"of this node only: id, name or unique prefix"`
}

// writeLimit is how long one event may take to be taken by the other side.
const writeLimit = 10 * time.Second

func (s *service) registerEvents() {
	op := huma.Operation{
		OperationID: "watch-events", Method: http.MethodGet, Path: "/v1/events", Tags: []string{"nodes"},
		Summary: "Follow events",
		Description: "A stream of server-sent events: those after the sequence number, then each new one as it happens. " +
			"The id of each is its sequence number, its name is node, its data an Event. A comment line comes every 15 seconds. " +
			"The stream does not end by itself; after a lost connection, connect again with Last-Event-ID.",
	}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The stream.", Content: map[string]*huma.MediaType{"text/event-stream": {
			Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.Event](), true, "Event"),
		}}},
		"default": problemResponse(s.api.OpenAPI()),
	}
	huma.Register(s.api, op, func(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
		node, err := s.watched(ctx, in.Node)
		if err != nil {
			return nil, s.problem(ctx, op.OperationID, err)
		}
		after := max(in.After, in.LastEventID)
		return &huma.StreamResponse{Body: func(hc huma.Context) { s.stream(hc, after, node) }}, nil
	})
}

// watched returns the id of the node that ref means, so that an unknown one is
// an answer and not a stream that stays silent.
func (s *service) watched(ctx context.Context, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	n, err := s.fleet.Node(ctx, ref)
	if err == nil {
		return n.ID, nil
	}
	// A deleted node still has its timeline.
	events, eventsErr := s.fleet.Events(ctx, ref)
	if eventsErr != nil || len(events) == 0 {
		return "", err
	}
	return events[0].NodeID, nil
}

type item struct {
	event fleet.Event
	err   error
}

// stream writes events until the caller goes or the fleet ends the sequence.
func (s *service) stream(hc huma.Context, after int64, node string) {
	_, w := humago.Unwrap(hc)
	ctx, cancel := context.WithCancel(hc.Context())
	items := make(chan item)
	done := make(chan struct{})
	go func() { // ends with ctx, and is waited for below
		defer close(done)
		for e, err := range s.fleet.Watch(ctx, after, node) {
			select {
			case items <- item{e, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() { cancel(); <-done }()

	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	send := func(format string, args ...any) bool {
		// Not every writer has deadlines; one without must do without.
		_ = rc.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return false
		}
		return rc.Flush() == nil
	}
	// The opening comment brings the headers to the caller at once.
	if !send(": slipway events\nretry: 1000\n\n") {
		return
	}
	tick := time.NewTicker(s.opts.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case it := <-items:
			if it.err != nil {
				if ctx.Err() == nil {
					s.opts.Logger.ErrorContext(ctx, "event stream ended", "request_id", requestID(ctx), "error", it.err)
				}
				return
			}
			data, err := json.Marshal(wireEvent(it.event))
			if err != nil || !send("id: %d\nevent: node\ndata: %s\n\n", it.event.Seq, data) {
				return
			}
		case <-tick.C:
			if !send(": keep-alive\n\n") {
				return
			}
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}
