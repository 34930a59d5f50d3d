package provision

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Get.

// GetServer calls EC2 DescribeInstances. EC2's states become ours so:
//
//	pending               pending
//	running               running
//	stopping, stopped     error: it does not run, and its disk costs
//	shutting-down         error; soon it is terminated
//	terminated            ErrNotFound when it was deleted on request; error
//	                      when EC2 gave it up, while EC2 still shows it (about
//	                      an hour) and until DeleteServer is called
//	states yet to come    pending: not knowing is no failure
//
// A server that this Provisioner made within the last three minutes and that
// EC2 does not show yet is pending.
func (a *AWS) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	const op = "get server"
	region, instance, err := a.parseID(op, id)
	if err != nil {
		return "", "", err
	}
	i, err := a.instance(ctx, op, region, instance)
	if err != nil {
		return "", "", err
	}
	if i.isDeleted() || a.fresh.isRemoved(id) && i.state == types.InstanceStateNameTerminated {
		return "", "", a.fail(ErrNotFound, op, "", "instance %s is terminated", instance)
	}
	return i.ourStatus(), i.ipv4, nil
}

// instance reads one instance, or returns what is remembered of one that is
// too new to be known.
func (a *AWS) instance(ctx context.Context, op, region, id string) (awsInstance, error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true},
		&ec2.DescribeInstancesInput{InstanceIds: []string{id}}, (*ec2.Client).DescribeInstances)
	if err != nil && !hasCode(err, "InvalidInstanceID.NotFound") {
		return awsInstance{}, err
	}
	if err == nil {
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				if aws.ToString(i.InstanceId) == id {
					a.fresh.seen(awsID(region, id))
					return awsInstanceOf(region, i), nil
				}
			}
		}
		err = a.fail(ErrNotFound, op, "", "there is no instance %s in %s", id, region)
	}
	if fresh, ok := a.fresh.get(awsID(region, id)); ok {
		return fresh, nil
	}
	return awsInstance{}, err
}

func (i awsInstance) ourStatus() ServerStatus {
	switch i.state {
	case types.InstanceStateNameRunning:
		return ServerStatusRunning
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated, types.InstanceStateNameStopping, types.InstanceStateNameStopped:
		return ServerStatusError
	}
	return ServerStatusPending
}

// isDeleted tells an instance that somebody terminated from one that EC2 gave
// up, or that ended itself.
func (i awsInstance) isDeleted() bool {
	return i.state == types.InstanceStateNameTerminated && (i.reason == "" || i.reason == "Client.UserInitiatedShutdown")
}

// failure is why a server is in error, where EC2 tells.
func (i awsInstance) failure() error {
	if i.ourStatus() != ServerStatusError || i.reason == "" || i.reason == "Client.UserInitiatedShutdown" {
		return nil
	}
	e := &ProviderError{Provider: "aws", Op: "run server"}
	awsClassify(e, i.reason, i.reasonText)
	if e.Class == nil {
		e.Class = ErrUnavailable
	}
	if errors.Is(e, ErrUnauthorized) || errors.Is(e, ErrRateLimited) {
		e.Class = ErrUnavailable // of EC2's own doing: nobody asked for anything
	}
	return e
}
