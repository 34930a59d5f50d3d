package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Delete.

// doDeleteTime bounds a delete whose context has no deadline: most of it is
// spent waiting for another action on the Droplet to end.
const doDeleteTime = 2 * time.Minute

// DeleteServer calls DELETE /v2/droplets/{id}, again while another action
// still runs on it, and removes the tag of its create and the SSH firewall
// that was made for it. Volumes and reserved IPs that somebody attached stay.
// The Droplet is gone when GetServer says ErrNotFound, some seconds later.
//
// What a Droplet's tags are is remembered from its create and from lists; one
// that is not known is read first.
func (d *DigitalOcean) DeleteServer(ctx context.Context, id string) error {
	const op = "delete server"
	n, err := d.parseID(op, "server", id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, doDeleteTime)
	defer cancel()
	tag, known := d.tagsOf.peek(id)
	if !known {
		s, err := d.droplet(ctx, op, n)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, tag, _ = d.markOf(s.Tags)
	}
	if err := d.deleteDroplet(ctx, n); err != nil {
		return err
	}
	if err := d.removeWithMark(ctx, tag); err != nil {
		return namedFailure(err, fmt.Sprintf("server %d is deleted, what was made for it is not yet: ", n))
	}
	d.tagsOf.forget(id)
	return nil
}

// removeWithMark removes what one create made beside its Droplet: the SSH
// firewall, and last the tag by which both are found.
func (d *DigitalOcean) removeWithMark(ctx context.Context, tag string) error {
	m, ok := d.readMark(tag)
	if !ok {
		return nil
	}
	if m.ssh {
		if err := d.removeSSHFirewall(ctx, m.key); err != nil {
			return err
		}
	}
	return d.remove(ctx, "remove the tag", doTagPath(tag))
}

// deleteDroplet deletes one Droplet. While another action runs on it, it comes
// back until the context ends.
func (d *DigitalOcean) deleteDroplet(ctx context.Context, id int64) error {
	for pause := time.Second; ; pause = min(2*pause, 5*time.Second) {
		err := d.remove(ctx, "delete server", "/v2/droplets/"+doID(id))
		if !isPendingEvent(err) || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}

func isPendingEvent(err error) bool {
	var e *ProviderError
	return errors.As(err, &e) && e.Status == 422 && strings.Contains(strings.ToLower(e.Message), "pending event")
}
