package provision

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Get.

// gcpBootTime is how long after its creation an instance in a state that is
// not known here is taken to be on its way.
const gcpBootTime = 10 * time.Minute

// GetServer calls GET .../zones/{zone}/instances/{name}, id being the
// "{zone}/{name}" CreateServer returned. Google's states become ours so:
//
//	PENDING, PROVISIONING, STAGING    pending
//	RUNNING                           running
//	REPAIRING                         pending: it is moved to another host
//	PENDING_STOP, STOPPING,
//	SUSPENDING, DEPROVISIONING        error; a deleted one is soon ErrNotFound
//	STOPPED, SUSPENDED, TERMINATED    error: it exists, and does not run
//	states yet to come                pending for ten minutes, running after
//	                                  that: not knowing is no failure
//
// When there is no such instance, its zone's operations tell more: while the
// create still runs, the state is pending; when the create was accepted and
// failed later, as for lack of capacity, the ErrNotFound has the code and the
// words of that. The address is empty until there is one.
func (g *GCP) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	const op = "get server"
	zone, name, err := g.parseID(op, "server", id)
	if err != nil {
		return "", "", err
	}
	i, err := g.instance(ctx, op, zone, name)
	switch {
	case err == nil:
		return i.ourStatus(time.Now()), i.ipv4(), nil
	case !errors.Is(err, ErrNotFound):
		return "", "", err
	}
	create, found := g.lastCreate(ctx, op, zone, name)
	switch {
	case !found:
		return "", "", err
	case create.Status != "DONE":
		return ServerStatusPending, "", nil
	}
	return "", "", gaveUp(err, create)
}

// gaveUp puts what became of the create into the error that the server does
// not exist.
func gaveUp(err error, create gcpOperation) error {
	var e, why *ProviderError
	if !errors.As(create.failure("create server"), &why) || !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Code, told.Hint = why.Code, why.Hint
	told.Message = "the create was accepted and failed later: " + why.Error()
	return &told
}

func (g *GCP) instance(ctx context.Context, op, zone, name string) (gcpInstance, error) {
	var i gcpInstance
	err := g.get(ctx, op, g.zonal(zone, "instances/"+name), url.Values{"fields": {gcpInstanceFields}}, &i)
	if err == nil && i.Name == "" {
		err = g.fail(ErrUnavailable, op, "", "the answer names no server")
	}
	return i, err
}

// lastCreate finds the newest create of an instance by its target. It is there
// to tell more: when the operations cannot be read, there is no more to tell.
func (g *GCP) lastCreate(ctx context.Context, op, zone, name string) (newest gcpOperation, found bool) {
	query := url.Values{"filter": {`targetLink eq ".*/zones/` + zone + `/instances/` + name + `"`}}
	list, err := gcpList[gcpOperation](ctx, g, g.api, op, g.zonal(zone, "operations"), query)
	if err != nil {
		return newest, false
	}
	for _, o := range list {
		isCreate := o.Type == "insert" && lastPart(o.TargetLink) == name
		// One that was deleted since is gone, however its create ended.
		isDelete := o.Type == "delete" && lastPart(o.TargetLink) == name
		if (isCreate || isDelete) && !o.Inserted.Before(newest.Inserted) {
			newest, found = o, isCreate
		}
	}
	return newest, found
}

func (i gcpInstance) ourStatus(now time.Time) ServerStatus {
	switch i.Status {
	case "PENDING", "PROVISIONING", "STAGING", "REPAIRING":
		return ServerStatusPending
	case "RUNNING":
		return ServerStatusRunning
	case "PENDING_STOP", "STOPPING", "SUSPENDING", "DEPROVISIONING", "STOPPED", "SUSPENDED", "TERMINATED":
		return ServerStatusError
	default:
		return unlessOld(now.Sub(i.Created) < gcpBootTime, ServerStatusRunning)
	}
}
