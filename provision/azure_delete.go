package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Delete.

// azureDeleteTime bounds a delete whose context has no deadline. Azure takes
// half a minute to two for a machine, and keeps the interface of one that
// failed for three.
const azureDeleteTime = 5 * time.Minute

// DeleteServer deletes only the virtual machine: its network interface,
// public IP and OS disk were all created with deleteOption "Delete", which
// cascades their deletion from this one call. It waits until the machine is
// gone, and then looks for each of them, and for the security group of SSH,
// by name: what the cascade left, or a failed create, is removed as well. The
// shared network stays. Volumes that somebody attached stay too.
//
// Azure takes its time. When the context ends before, the error is
// ErrUnavailable, the delete goes on, and a repeat looks at what is left.
func (a *Azure) DeleteServer(ctx context.Context, id string) error {
	const op = "delete server"
	if err := a.checkID(op, "server", id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, azureDeleteTime)
	defer cancel()
	if err := a.deleteMachine(ctx, op, id); err != nil {
		return err
	}
	left, err := a.removeParts(ctx, op, namesOf(id))
	if err != nil {
		return namedFailure(err, fmt.Sprintf("server %q is deleted, %s not yet: ", id, describeResources(left)))
	}
	return nil
}

// deleteMachine deletes the machine, hard since nothing on it is kept, and
// waits until it is gone.
func (a *Azure) deleteMachine(ctx context.Context, op, name string) error {
	query := apiVersion(azCompute)
	query.Set("forceDeletion", "true")
	return a.untilFree(ctx, func() error {
		return a.remove(ctx, op, call{path: a.vmPath(name), query: query})
	})
}

// remove deletes one thing and waits until it is gone. One that is gone
// already is no error.
func (a *Azure) remove(ctx context.Context, op string, c call) error {
	c.op, c.method = op, http.MethodDelete
	ans, err := a.send(ctx, c, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || ans.status != http.StatusAccepted {
		return err
	}
	return a.await(ctx, op, ans)
}

// untilFree does something again and again while it fails because something
// else has to end first, until the context does not allow another try.
func (a *Azure) untilFree(ctx context.Context, do func() error) error {
	for pause := 2 * time.Second; ; pause = min(2*pause, 20*time.Second) {
		err := do()
		if !isAzBusy(err) || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}

// azKind is a kind of part that a server has.
type azKind struct {
	kind     string // ours
	path     func(name string) string
	version  string
	billable bool
}

func (a *Azure) kindOf(kind string) (azKind, bool) {
	network := func(collection string) func(string) string {
		return func(name string) string { return a.networkPath(collection, name) }
	}
	disks := func(name string) string { return a.group() + "/providers/Microsoft.Compute/disks/" + name }
	kinds := map[string]azKind{
		KindNetworkInterface: {path: network("networkInterfaces"), version: azNetwork},
		KindPublicIP:         {path: network("publicIPAddresses"), version: azNetwork, billable: true},
		KindFirewall:         {path: network("networkSecurityGroups"), version: azNetwork},
		KindNetwork:          {path: network("virtualNetworks"), version: azNetwork},
		KindVolume:           {path: disks, version: azDisks, billable: true},
	}
	k, ok := kinds[kind]
	k.kind = kind
	return k, ok
}

// removeParts removes the parts of a server whose machine is gone, in the
// order in which they let go of each other, and returns what is left.
func (a *Azure) removeParts(ctx context.Context, op string, names azNames) (left []Resource, err error) {
	for _, part := range []struct{ kind, name string }{
		{KindNetworkInterface, names.nic}, {KindPublicIP, names.ip}, {KindFirewall, names.nsg}, {KindVolume, names.disk},
	} {
		kind, _ := a.kindOf(part.kind)
		head, partErr := a.vanish(ctx, op, kind, part.name, names.vm)
		if partErr == nil {
			continue
		}
		err = partErr
		left = append(left, Resource{
			Kind: part.kind, ID: part.name, Name: part.name, Region: head.Location, ServerID: names.vm,
			CreatedAt: a.createdAt(head.Tags), Labels: head.Tags, Billable: kind.billable,
		})
		if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			ctx = context.WithoutCancel(ctx) // one look at each of the others
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Second)
			defer cancel()
		}
	}
	return left, err
}

// isPartOf tells whether a thing with the name of a server's part is one. A
// disk that Azure made without copying the machine's tags counts by its name.
func (a *Azure) isPartOf(tags map[string]string, kind azKind, server string) bool {
	if kind.kind == KindVolume && tags[managedBy] == "" {
		return true
	}
	return a.labels.isOurs(tags) && tags[a.labels.key(labelServer)] == server
}

// vanish removes one part, as far as it is this server's, and comes back
// while the cascade, or what holds the part, is not done.
func (a *Azure) vanish(ctx context.Context, op string, kind azKind, name, server string) (azHead, error) {
	var head azHead
	err := a.untilFree(ctx, func() error {
		var part struct {
			azHead
			Properties azState `json:"properties"`
		}
		err := a.get(ctx, op, kind.path(name), apiVersion(kind.version), &part)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		head = part.azHead
		if !a.isPartOf(head.Tags, kind, server) {
			a.logger.WarnContext(ctx, "something has the name of a server's part and not its labels; it stays",
				slog.String("kind", kind.kind), slog.String("name", name))
			return nil
		}
		if strings.EqualFold(part.Properties.ProvisioningState, "Deleting") {
			e := a.fail(ErrUnavailable, op, "repeat the delete", "%s %q is still being deleted", kind.kind, name)
			e.again = againAny
			return e
		}
		return a.remove(ctx, op, call{path: kind.path(name), query: apiVersion(kind.version)})
	})
	return head, err
}
