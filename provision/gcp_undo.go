package provision

import (
	"context"
	"time"
)

// Create: when it fails.

// undo removes what a failed create made, also after the caller's context has
// ended, and says in its error what it could not remove. A server that may
// exist stays when there is a key by which a repeat finds it.
func (g *GCP) undo(ctx context.Context, opts CreateOpts, id identity, made gcpMade, cause error) error {
	if !made.begun && (!made.unclear || !id.own) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	serverID := opts.Region + "/" + gcpServerName(opts.Name, id)
	if err := g.DeleteServer(ctx, serverID); err != nil {
		return &PartialError{Err: cause, Left: []Resource{{
			Kind: KindServer, ID: serverID, Name: opts.Name, Region: opts.Region, ServerID: serverID, CreatedAt: time.Now(),
			Labels: g.labels.own(opts, id), Billable: true,
		}}}
	}
	return cause
}
