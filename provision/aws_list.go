package provision

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// List.

// ListServers calls EC2 DescribeInstances by tag in each region that is
// enabled for the account, following every page: one request per region with
// up to a thousand servers. Which regions are enabled is asked once an hour.
func (a *AWS) ListServers(ctx context.Context) ([]Server, error) {
	const op = "list servers"
	if a.mistake != nil {
		return nil, a.refused(op)
	}
	servers := []Server{}
	var mu sync.Mutex
	err := a.inEveryRegion(ctx, op, func(ctx context.Context, region string) error {
		list, err := a.ourInstances(ctx, op, region, a.labels.extra)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, i := range list {
			servers = append(servers, Server{
				ID: i.serverID(), Name: i.name, Status: i.ourStatus(), IPAddr: i.ipv4, IPv6Addr: i.ipv6,
				Region: region, Size: i.size, CreatedAt: i.created, Labels: i.labels, Failure: i.failure(),
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(servers, func(x, y Server) int { return cmp.Compare(x.ID, y.ID) })
	return servers, nil
}

// ourInstances are those of a region that still mean something: also those
// that are too new for EC2's list, and none that was deleted.
func (a *AWS) ourInstances(ctx context.Context, op, region string, labels map[string]string) ([]awsInstance, error) {
	list, err := a.instances(ctx, op, region, a.ourFilters(labels))
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	var ours []awsInstance
	for _, i := range list {
		shown[i.id] = true
		a.fresh.seen(i.serverID())
		gone := i.isDeleted() || i.state == types.InstanceStateNameTerminated && a.fresh.isRemoved(i.serverID())
		if !gone {
			ours = append(ours, i)
		}
	}
	for _, i := range a.fresh.in(region) {
		if !shown[i.id] {
			ours = append(ours, i)
		}
	}
	return ours, nil
}

func (a *AWS) instances(ctx context.Context, op, region string, filters []types.Filter) ([]awsInstance, error) {
	in := &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(1000)}
	var list []awsInstance
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeInstances)
		if err != nil {
			return nil, err
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				list = append(list, awsInstanceOf(region, i))
			}
		}
		// A page can be empty and not the last.
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return list, nil
		}
	}
}

func (a *AWS) interfaces(ctx context.Context, op, region string, filters []types.Filter) ([]types.NetworkInterface, error) {
	in := &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(1000)}
	var list []types.NetworkInterface
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeNetworkInterfaces)
		if err != nil {
			return nil, err
		}
		list = append(list, out.NetworkInterfaces...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return list, nil
		}
	}
}
