package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Delete.

// awsDeleteTime bounds a delete whose context has no deadline: most of it is
// spent waiting for the instance's network interface to let go of its group.
const awsDeleteTime = 5 * time.Minute

// DeleteServer terminates the EC2 instance; its disk and network interface go
// with it. The shared security group is never deleted here: a single
// DeleteServer call is never its sole owner. The group that was made for this
// one instance (CreateOpts.AllowSSHInbound) is deleted once no other interface
// uses it, for which the end of the instance is waited for: up to the
// context's deadline, or five minutes. What is not done by then is an error
// that names the group, and a repeat goes on.
//
// That there is no such instance is believed after four looks within seven
// seconds, since EC2 says so of a new one too.
//
// An instance that does not carry this Provisioner's short name is refused
// with ErrConflict, and so is one that is protected from termination.
func (a *AWS) DeleteServer(ctx context.Context, id string) error {
	const op = "delete server"
	region, instance, err := a.parseID(op, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, awsDeleteTime)
	defer cancel()
	// Before its end: of a terminated instance, EC2 does not say its groups.
	i, err := a.surely(ctx, op, region, instance)
	if errors.Is(err, ErrNotFound) {
		return a.removeGroups(ctx, region, instance, map[string]string{a.labels.key(labelServer): id})
	}
	if err != nil {
		return err
	}
	if !a.labels.isOurs(i.labels) {
		return a.fail(ErrConflict, op, "delete it by hand, if that is meant: aws ec2 terminate-instances",
			"instance %s does not carry the tag %s=%s, so it was not made here", instance, managedBy, a.labels.short)
	}
	ended := i.state == types.InstanceStateNameTerminated
	if !ended && i.state != types.InstanceStateNameShuttingDown {
		if err := a.terminate(ctx, op, region, instance, a.isFresh(id)); err != nil {
			return err
		}
	}
	a.fresh.remove(id)
	if len(i.groups) == 1 && !ended {
		return nil // the shared one
	}
	key := a.labels.key(labelKey)
	if i.labels[key] == "" {
		return nil
	}
	return a.removeGroups(ctx, region, instance, map[string]string{key: i.labels[key]})
}

// surely reads an instance, and doubts that there is none: another program may
// have made it a moment ago, and EC2 does not know a new instance everywhere
// at once. Taking it for gone would leave it running for ever.
func (a *AWS) surely(ctx context.Context, op, region, instance string) (awsInstance, error) {
	for pause := time.Second; ; pause *= 2 {
		i, err := a.instance(ctx, op, region, instance)
		if !errors.Is(err, ErrNotFound) || a.fresh.isRemoved(awsID(region, instance)) || pause > awsDoubt {
			return i, err
		}
		if !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return i, a.fail(ErrUnavailable, op, "repeat the delete, with more time",
				"EC2 does not know instance %s, and there is no time to be sure of that", instance)
		}
	}
}

// awsDoubt is the longest pause before EC2's word that there is no such
// instance is taken: seven seconds in all.
const awsDoubt = 4 * time.Second

func (a *AWS) isFresh(serverID string) bool {
	_, ok := a.fresh.get(serverID)
	return ok
}

// terminate ends one instance and waits for nothing. One that does not exist
// has ended; but one that is too new to be known is asked for again.
func (a *AWS) terminate(ctx context.Context, op, region, id string, isNew bool) error {
	begin := time.Now()
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		_, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true, kind: awsWrites},
			&ec2.TerminateInstancesInput{InstanceIds: []string{id}}, (*ec2.Client).TerminateInstances)
		if !hasCode(err, "InvalidInstanceID.NotFound") {
			return err
		}
		if !isNew || time.Since(begin) > awsGrace {
			return nil
		}
		if !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}

// removeGroups deletes the SSH groups with these labels, of which there is one
// at most.
func (a *AWS) removeGroups(ctx context.Context, region, instance string, labels map[string]string) error {
	const op = "remove the SSH security group"
	labels[a.labels.key(labelRole)] = roleSSH
	groups, err := a.listGroups(ctx, op, region, a.ourFilters(labels)...)
	if err != nil {
		return err
	}
	for _, g := range groups {
		id, name := aws.ToString(g.GroupId), aws.ToString(g.GroupName)
		foreign, err := a.otherUser(ctx, op, region, id, instance)
		if err == nil && foreign != "" {
			a.logger.WarnContext(ctx, "an SSH security group is used by something else by now, and stays",
				slog.String("group", id), slog.String("name", name), slog.String("user", foreign))
			continue
		}
		if err == nil {
			err = a.removeGroup(ctx, op, region, id)
		}
		if err != nil {
			return namedFailure(err, fmt.Sprintf("instance %s is terminated, its security group %q (%s) is still there: ", instance, name, id))
		}
	}
	return nil
}

// otherUser names a network interface that uses the group and is not the
// instance's: interfaces of load balancers and the like count too.
func (a *AWS) otherUser(ctx context.Context, op, region, group, instance string) (string, error) {
	list, err := a.interfaces(ctx, op, region, []types.Filter{awsFilter("group-id", group)})
	if err != nil {
		return "", err
	}
	for _, n := range list {
		if n.Attachment != nil && aws.ToString(n.Attachment.InstanceId) == instance {
			continue
		}
		labels, _ := awsLabels(n.TagSet)
		if n.Attachment == nil && a.labels.isOurs(labels) {
			continue // the instance's own, detached and about to go
		}
		return aws.ToString(n.NetworkInterfaceId), nil
	}
	return "", nil
}
