package fleet

import (
	"context"
	"iter"
)

// watchPage is how many events are read at a time.
const watchPage = 500

// Watch yields all events after a sequence number, then each new one as it is
// committed, until ctx ends; of one node when nodeRef is not empty. It ends
// with an error when the node is unknown or the store fails; the end of ctx is
// no error.
func (f *Fleet) Watch(ctx context.Context, afterSeq int64, nodeRef string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		nodeID := ""
		if nodeRef != "" {
			n, err := f.find(ctx, nodeRef)
			if err != nil {
				yield(Event{}, err)
				return
			}
			nodeID = n.ID
		}
		for {
			// Asked before the read, so that nothing falls between the two.
			changed := f.store.EventsChanged()
			events, err := f.store.Events(ctx, nodeID, afterSeq, watchPage)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				afterSeq = e.Seq
			}
			if len(events) == watchPage {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
