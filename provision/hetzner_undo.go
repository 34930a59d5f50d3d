package provision

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Create: when it fails.

// undo removes what a failed create made, also after the caller's context has
// ended, and says in its error what it could not remove.
//
// A server that may exist is looked for only when the caller gave no key: with
// one, a repeat will find it, and until then it may be another caller's.
func (h *Hetzner) undo(ctx context.Context, opts CreateOpts, id identity, made *made, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()

	if made.unclear && id.own {
		if err := h.findUnknown(ctx, opts, id, made); err != nil {
			return &PartialError{Err: cause, Left: []Resource{{
				Kind: KindServer, Name: opts.Name, Region: opts.Region, Billable: true, CreatedAt: time.Now(),
				Labels: h.labels.own(opts, id),
			}}}
		}
	}
	var left []Resource
	if made.server != nil {
		if err := h.deleteServer(ctx, made.server.ID); err != nil {
			left = append(left, h.serverResource(*made.server))
		}
	}
	// While it is not known whether there is a server, a repeat may need its
	// firewall.
	if made.firewall != nil && (!made.unclear || id.own) {
		if err := h.removeFirewall(ctx, "remove the SSH firewall", made.firewall.ID); err != nil {
			left = append(left, h.firewallResource(*made.firewall))
		}
	}
	if len(left) > 0 {
		return &PartialError{Err: cause, Left: left}
	}
	return cause
}

// findUnknown looks for the server of a create without key whose outcome is
// not known.
func (h *Hetzner) findUnknown(ctx context.Context, opts CreateOpts, id identity, made *made) error {
	s, found, err := h.serverByName(ctx, opts.Name)
	if err != nil {
		return err
	}
	if found && h.adopt(s, id) == nil {
		made.server = &s
	}
	return nil
}

// deleteServer deletes one server and waits for nothing.
func (h *Hetzner) deleteServer(ctx context.Context, id int64) error {
	err := h.remove(ctx, "delete server", "/servers/"+hzID(id))
	var e *ProviderError
	if errors.As(err, &e) && e.Code == "protected" {
		e.Hint = fmt.Sprintf("lift its protection (hcloud server disable-protection %d delete, or in the Console), then repeat", id)
	}
	return err
}
