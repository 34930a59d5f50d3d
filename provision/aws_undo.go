package provision

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create: when it fails.

// undo removes what a failed create made, also after the caller's context has
// ended, and says in its error what it could not remove.
//
// An instance that may exist is looked for only when the caller gave no key:
// with one, a repeat will find it, and until then it may be another caller's.
func (a *AWS) undo(ctx context.Context, opts CreateOpts, id identity, made *awsMade, cause error) error {
	if made.instance == nil && made.group == "" && !made.unclear {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()

	if made.unclear && id.own {
		if err := a.findUnknown(ctx, opts, id, made); err != nil {
			left := []Resource{{
				Kind: KindServer, Name: opts.Name, Region: opts.Region, Billable: true, CreatedAt: time.Now(), Labels: a.labels.own(opts, id),
			}}
			return &PartialError{Err: cause, Left: append(left, a.groupLeft(opts.Region, made)...)}
		}
	}
	var left []Resource
	if made.instance != nil {
		if err := a.terminate(ctx, "remove the server", opts.Region, made.instance.id, true); err != nil {
			left = append(left, a.instanceResource(*made.instance))
		} else {
			a.fresh.remove(made.instance.serverID())
		}
	}
	// While it is not known whether there is a server, a repeat may need its
	// group; and one of an earlier call may have a server already.
	keep := made.unclear && !id.own || made.groupEarlier && made.instance == nil
	if made.group != "" && !keep {
		if err := a.removeGroup(ctx, "remove the SSH security group", opts.Region, made.group); err != nil {
			left = append(left, a.groupLeft(opts.Region, made)...)
		}
	}
	if len(left) > 0 {
		return &PartialError{Err: cause, Left: left}
	}
	return cause
}

func (a *AWS) groupLeft(region string, made *awsMade) []Resource {
	if made.group == "" {
		return nil
	}
	return []Resource{{
		Kind: KindFirewall, ID: awsID(region, made.group), Name: made.groupName, Region: region, CreatedAt: time.Now(), Labels: made.groupLabels,
	}}
}

// findUnknown looks for the instance of a create without key whose outcome is
// not known, more than once: a new one can be missing from lists.
func (a *AWS) findUnknown(ctx context.Context, opts CreateOpts, id identity, made *awsMade) error {
	for pause := time.Second; ; pause *= 2 {
		found, ok, err := a.withKey(ctx, "look for the server", opts.Region, id.key)
		if err != nil {
			return err
		}
		if ok {
			if found.state != types.InstanceStateNameShuttingDown {
				made.instance = &found
			}
			return nil
		}
		if pause > 8*time.Second || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return nil
		}
	}
}
