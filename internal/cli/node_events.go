package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-dev/slipway/client"
)

func eventView(events []client.Event) view[client.Event] {
	var began time.Time
	if len(events) > 0 {
		began = events[0].At
	}
	return view[client.Event]{
		name: func(e client.Event) string { return e.Type },
		columns: []column[client.Event]{
			{title: "TIME", cell: func(e client.Event) string { return e.At.UTC().Format(time.RFC3339) }},
			{title: "AFTER", cell: func(e client.Event) string { return elapsed(e.At.Sub(began)) }, right: true},
			{title: "PHASE", cell: func(e client.Event) string { return e.Phase }},
			{title: "EVENT", cell: func(e client.Event) string { return e.Type }},
			{title: "WHAT", cell: func(e client.Event) string { return e.Message }},
			{title: "SEQ", cell: func(e client.Event) string { return fmt.Sprint(e.Seq) }, wide: true, right: true},
			{title: "NODE ID", cell: func(e client.Event) string { return e.NodeID }, wide: true},
		},
	}
}

// followEvents prints events as they come, a line each.
func (a *app) followEvents(ctx context.Context, api *client.Client, ref string) error {
	var began time.Time
	for e, err := range api.Watch(ctx, client.WatchOptions{Node: ref, OnReconnect: func(error) {
		if !a.machine() {
			a.say("connection to the control plane lost, trying again")
		}
	}}) {
		if err != nil {
			return a.explainRef(ctx, api, ref, err)
		}
		if began.IsZero() {
			began = e.At
		}
		switch a.format {
		case formatJSON:
			b, err := json.Marshal(e)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.IO.Out, string(b))
		case formatYAML:
			fmt.Fprintln(a.IO.Out, "---")
			if err := a.encode(e); err != nil {
				return err
			}
		case formatName:
			fmt.Fprintln(a.IO.Out, printable(e.Type))
		default:
			fmt.Fprintf(a.IO.Out, "%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), elapsed(e.At.Sub(began)),
				printable(e.Phase), printable(e.Type), printable(e.Message))
		}
	}
	return nil
}
