package provision

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Delete.

// gcpDeleteTime bounds a delete whose context has no deadline.
const gcpDeleteTime = 2 * time.Minute

// DeleteServer calls DELETE .../zones/{zone}/instances/{name}. The boot disk
// (autoDelete: true) and the ephemeral external IP go with it; no separate
// cleanup call is needed for them. The server's SSH rule, if there is one, is
// removed by its name. When the server is gone already, the disk that a failed
// create can leave is looked for, and removed.
//
// It does not wait for the server's end, which takes Google up to two minutes:
// GetServer says ErrNotFound then. Disks that somebody attached stay. A server
// that is protected from deletion is ErrConflict, with the way to lift that as
// hint.
func (g *GCP) DeleteServer(ctx context.Context, id string) error {
	const op = "delete server"
	zone, name, err := g.parseID(op, "server", id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gcpDeleteTime)
	defer cancel()
	started, err := g.remove(ctx, op, g.zonal(zone, "instances/"+name))
	switch {
	case hasCode(err, "resourceNotReady") && g.isStopping(ctx, zone, name):
	case err != nil:
		return err
	case started.Name == "":
		if err := g.removeOrphan(ctx, op, zone, name); err != nil {
			return namedFailure(err, fmt.Sprintf("server %q is gone, its disk is not yet: ", id))
		}
	}
	if _, err := g.remove(ctx, "remove the SSH firewall", g.global("firewalls/"+g.sshName(id))); err != nil {
		return namedFailure(err, fmt.Sprintf("server %q is deleted, its firewall %q is not yet: ", id, g.sshName(id)))
	}
	return nil
}

// isStopping tells whether a delete that was refused as untimely is one that
// runs already.
func (g *GCP) isStopping(ctx context.Context, zone, name string) bool {
	i, err := g.instance(ctx, "delete server", zone, name)
	return err == nil && (i.Status == "STOPPING" || i.Status == "DEPROVISIONING")
}

// removeOrphan removes the boot disk of a server that is gone, when it is ours
// and nothing uses it.
func (g *GCP) removeOrphan(ctx context.Context, op, zone, name string) error {
	var disk gcpDisk
	err := g.get(ctx, op, g.zonal(zone, "disks/"+name), nil, &disk)
	if errors.Is(err, ErrNotFound) || err == nil && (len(disk.Users) > 0 || !g.labels.isOurs(disk.Labels)) {
		return nil
	}
	if err == nil {
		_, err = g.remove(ctx, op, g.zonal(zone, "disks/"+name))
	}
	return err
}
