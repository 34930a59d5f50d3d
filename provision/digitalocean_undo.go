package provision

import (
	"context"
	"time"
)

// Create: when it fails.

// undo removes what a failed create made, also after the caller's context has
// ended, and says in its error what it could not remove.
//
// A Droplet that may exist is looked for only when the caller gave no key:
// with one, a repeat will find it. Until then its firewall and tag stay too.
func (d *DigitalOcean) undo(ctx context.Context, opts CreateOpts, id identity, made *doMade, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()

	if made.unclear && !id.own {
		return cause
	}
	if made.unclear {
		s, found, err := d.lookAfter(ctx, opts.Name, id)
		if err != nil {
			return &PartialError{Err: cause, Left: []Resource{{
				Kind: KindServer, Name: opts.Name, Region: opts.Region, Billable: true, CreatedAt: time.Now(),
				Labels: d.labels.own(opts, id),
			}}}
		}
		if found {
			made.server = &s
		}
	}
	var left []Resource
	if made.server != nil {
		if err := d.deleteDroplet(ctx, made.server.ID); err != nil {
			left = append(left, d.serverResource(*made.server))
		}
	}
	if made.firewall != nil {
		if err := d.remove(ctx, "remove the SSH firewall", "/v2/firewalls/"+made.firewall.ID); err != nil {
			left = append(left, d.firewallResource(*made.firewall, nil))
		}
	}
	// A tag is the only sign of what could not be removed.
	if made.tag && len(left) == 0 {
		tag := d.markTag(made.mark)
		if err := d.remove(ctx, "remove the tag", doTagPath(tag)); err != nil {
			left = append(left, d.tagResource(tag, made.mark))
		}
	}
	if len(left) > 0 {
		return &PartialError{Err: cause, Left: left}
	}
	return cause
}
