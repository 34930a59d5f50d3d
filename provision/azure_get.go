package provision

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Get.

// azureBootTime is how long after its creation a machine that does not run is
// taken to be on its way, by the time of its creation and our own clock.
const azureBootTime = 10 * time.Minute

// GetServer calls GET .../virtualMachines/{id} plus a second call for the
// public IP's address. Azure's provisioning state and, when that is
// Succeeded, its power state become ours so:
//
//	Creating, Updating, Migrating   pending
//	Succeeded, running              running
//	Succeeded, starting or none yet pending
//	Succeeded, stopping, stopped,   pending for ten minutes from the
//	deallocating, deallocated       machine's creation, error after that
//	Failed, Canceled                error
//	Deleting                        error; soon it is ErrNotFound
//	states yet to come, unknown     pending for ten minutes, running after
//	                                that: not knowing is no failure
//
// The address is empty until there is one.
func (a *Azure) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	const op = "get server"
	if err := a.checkID(op, "server", id); err != nil {
		return "", "", err
	}
	query := apiVersion(azCompute)
	query.Set("$expand", "instanceView")
	var vm azVM
	if err := a.get(ctx, op, a.vmPath(id), query, &vm); err != nil {
		return "", "", err
	}
	if vm.Name == "" {
		return "", "", a.fail(ErrUnavailable, op, "", "the answer names no server")
	}
	address, err := a.addressOf(ctx, op, namesOf(vm.Name))
	if err != nil {
		return "", "", err
	}
	return vm.ourStatus(time.Now()), address, nil
}

func (vm azVM) ourStatus(now time.Time) ServerStatus {
	isNew := vm.Properties.TimeCreated != nil && now.Sub(*vm.Properties.TimeCreated) < azureBootTime
	switch strings.ToLower(vm.Properties.ProvisioningState) {
	case "creating", "updating", "migrating":
		return ServerStatusPending
	case "failed", "canceled", "deleting":
		return ServerStatusError
	case "succeeded":
	default:
		return unlessOld(isNew, ServerStatusRunning)
	}
	switch strings.ToLower(vm.powerState()) {
	case "running":
		return ServerStatusRunning
	case "", "starting":
		return ServerStatusPending
	case "stopping", "stopped", "deallocating", "deallocated":
		return unlessOld(isNew, ServerStatusError)
	default:
		return unlessOld(isNew, ServerStatusRunning)
	}
}

// unlessOld is pending for a new server, and old for another.
func unlessOld(isNew bool, old ServerStatus) ServerStatus {
	if isNew {
		return ServerStatusPending
	}
	return old
}

func (vm azVM) powerState() string { return vm.state("PowerState/") }

// state is what follows a prefix in the codes of the instance view.
func (vm azVM) state(prefix string) string {
	if vm.Properties.InstanceView == nil {
		return ""
	}
	for _, s := range vm.Properties.InstanceView.Statuses {
		if len(s.Code) > len(prefix) && strings.EqualFold(s.Code[:len(prefix)], prefix) {
			return s.Code[len(prefix):]
		}
	}
	return ""
}

// failure says why a machine failed after its create was accepted, by the
// code that stands in its status: ProvisioningState/failed/AllocationFailed.
func (a *Azure) failure(vm azVM) error {
	code, ok := cutFold(vm.state("ProvisioningState/"), "failed/")
	if !ok {
		return nil
	}
	reason := azReason{Code: code}
	for _, s := range vm.Properties.InstanceView.Statuses {
		if strings.HasSuffix(s.Code, "/"+code) {
			reason.Message = s.Message
		}
	}
	e := a.fail(nil, "create server", "", "")
	azureExplain(e, reason)
	if e.Class == nil {
		e.Class = ErrUnavailable
	}
	e.Message = oneLine(clip(e.Message, maxErrorBody))
	if errors.Is(e, ErrRateLimited) { // a server that failed is no reason to wait
		e.Class = ErrUnavailable
	}
	return e
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}
