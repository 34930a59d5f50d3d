package provision

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Delete.

// hetznerDeleteTime bounds a delete whose context has no deadline: most of it
// is spent waiting for the server to let go of its SSH firewall.
const hetznerDeleteTime = 2 * time.Minute

// DeleteServer calls DELETE /servers/{id}, again while another action still
// runs on it, and then removes the SSH firewall that was made for it, which
// can take until the server is gone. Its primary IPs go with it; volumes that
// somebody attached stay. The name can be used again when GetServer says
// ErrNotFound.
//
// A server that is protected from deletion is ErrConflict, with the way to
// lift that as hint.
func (h *Hetzner) DeleteServer(ctx context.Context, id string) error {
	n, err := h.parseID("delete server", "server", id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hetznerDeleteTime)
	defer cancel()
	if err := h.deleteServer(ctx, n); err != nil {
		return err
	}
	const op = "remove the SSH firewall"
	selector := h.labels.selector(map[string]string{h.labels.key(labelServer): hzID(n)})
	firewalls, err := hzList[hzFirewalls](ctx, h, op, "/firewalls", url.Values{"label_selector": {selector}})
	if err != nil {
		return err
	}
	for _, f := range firewalls {
		if err := h.removeFirewall(ctx, op, f.ID); err != nil {
			return namedFailure(err, fmt.Sprintf("server %d is deleted, its firewall %q (id %d) is not yet: ", n, f.Name, f.ID))
		}
	}
	return nil
}

// namedFailure puts words before a ProviderError's message.
func namedFailure(err error, words string) error {
	var e *ProviderError
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Message = words + e.Message
	if named.Hint == "" {
		named.Hint = "repeat the delete"
	}
	return &named
}
