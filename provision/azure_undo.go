package provision

import (
	"context"
	"strings"
	"time"
)

// Create: when it fails.

// undo removes what a failed create made, by the names that it gave, also
// after the caller's context has ended, and says in its error what it could
// not remove. Delete options do nothing for a machine that never came to be.
//
// A machine that came to be all the same, since the answer was lost, stays
// when there is a key by which a repeat finds it, unless it is one that Azure
// itself gave up.
func (a *Azure) undo(ctx context.Context, opts CreateOpts, id identity, names azNames, cause error) error {
	const op = "undo the create"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()

	vm, found, err := a.lookFor(ctx, op, names.vm, unclear(cause))
	if err != nil {
		return a.allLeft(opts, id, names, cause)
	}
	if found {
		if a.adopt(op, vm, id) != nil || !id.own && !strings.EqualFold(vm.Properties.ProvisioningState, "Failed") {
			return cause
		}
		if err := a.deleteMachine(ctx, op, names.vm); err != nil {
			return &PartialError{Err: cause, Left: []Resource{a.vmResource(vm)}} // its parts go with it
		}
	}
	if left, err := a.removeParts(ctx, op, names); err != nil {
		return &PartialError{Err: cause, Left: left}
	}
	return cause
}

// lookFor looks for the machine; several times when it may appear late.
func (a *Azure) lookFor(ctx context.Context, op, name string, late bool) (vm azVM, found bool, err error) {
	for pause := time.Second; ; pause *= 2 {
		vm, found, err = a.machine(ctx, op, name)
		if found || err != nil || !late || pause > 4*time.Second || sleep(ctx, pause) != nil {
			return vm, found, err
		}
	}
}

// allLeft is for a cleaning that could not even begin: what is there can be
// told by the server's name, and goes with it.
func (a *Azure) allLeft(opts CreateOpts, id identity, names azNames, cause error) error {
	return &PartialError{Err: cause, Left: []Resource{{
		Kind: KindServer, ID: names.vm, Name: opts.Name, Region: opts.Region, ServerID: names.vm, CreatedAt: time.Now(),
		Labels: a.labels.own(opts, id), Billable: true,
	}}}
}
