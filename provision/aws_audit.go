package provision

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Audit.

// ListResources lists, by tag and in each enabled region, instances, volumes,
// network interfaces, elastic addresses, security groups and key pairs. A
// resource's ID is "<region>/<EC2's own id>". It makes no change; but when the
// shared security group has got rules, or is gone, the next create puts that
// right.
func (a *AWS) ListResources(ctx context.Context) ([]Resource, error) {
	const op = "audit"
	if a.mistake != nil {
		return nil, a.refused(op)
	}
	var all []Resource
	var mu sync.Mutex
	err := a.inEveryRegion(ctx, op, func(ctx context.Context, region string) error {
		list, err := a.resourcesIn(ctx, op, region)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, list...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y Resource) int { return cmp.Compare(x.ID, y.ID) })
	return all, nil
}

func (a *AWS) resourcesIn(ctx context.Context, op, region string) ([]Resource, error) {
	instances, err := a.ourInstances(ctx, op, region, nil)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, i := range instances {
		if i.state != types.InstanceStateNameTerminated {
			all = append(all, a.instanceResource(i))
		}
	}
	for _, list := range []func(context.Context, string, string) ([]Resource, error){
		a.volumeResources, a.interfaceResources, a.addressResources, a.groupResources, a.keyResources,
	} {
		more, err := list(ctx, op, region)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (a *AWS) instanceResource(i awsInstance) Resource {
	return Resource{
		Kind: KindServer, ID: i.serverID(), Name: i.name, Region: i.region, ServerID: i.serverID(), CreatedAt: i.created, Labels: i.labels,
		// Billing ends when the end begins.
		Billable: i.state != types.InstanceStateNameShuttingDown,
	}
}

// resource is what all kinds have in common.
func (a *AWS) resource(kind, region, id, server string, tags []types.Tag) Resource {
	r := Resource{Kind: kind, ID: awsID(region, id), Region: region}
	if server != "" {
		r.ServerID = awsID(region, server)
	}
	r.Labels, r.Name = awsLabels(tags)
	r.CreatedAt, _ = time.Parse(time.RFC3339, r.Labels[a.labels.key(labelCreated)])
	return r
}

func (a *AWS) volumeResources(ctx context.Context, op, region string) ([]Resource, error) {
	in := &ec2.DescribeVolumesInput{Filters: a.ourFilters(nil), MaxResults: aws.Int32(500)}
	var all []Resource
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeVolumes)
		if err != nil {
			return nil, err
		}
		for _, v := range out.Volumes {
			server := ""
			if len(v.Attachments) > 0 {
				server = aws.ToString(v.Attachments[0].InstanceId)
			}
			r := a.resource(KindVolume, region, aws.ToString(v.VolumeId), server, v.Tags)
			r.CreatedAt, r.Billable = aws.ToTime(v.CreateTime), true
			all = append(all, r)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
}

func (a *AWS) interfaceResources(ctx context.Context, op, region string) ([]Resource, error) {
	list, err := a.interfaces(ctx, op, region, a.ourFilters(nil))
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, n := range list {
		server := ""
		var since time.Time
		if n.Attachment != nil {
			server, since = aws.ToString(n.Attachment.InstanceId), aws.ToTime(n.Attachment.AttachTime)
		}
		r := a.resource(KindNetworkInterface, region, aws.ToString(n.NetworkInterfaceId), server, n.TagSet)
		r.CreatedAt = since
		all = append(all, r)
	}
	return all, nil
}

// addressResources are addresses that somebody allocated and tagged as ours:
// a create makes none, since a server's own address goes with it.
func (a *AWS) addressResources(ctx context.Context, op, region string) ([]Resource, error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, &ec2.DescribeAddressesInput{Filters: a.ourFilters(nil)}, (*ec2.Client).DescribeAddresses)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, d := range out.Addresses {
		r := a.resource(KindPublicIP, region, aws.ToString(d.AllocationId), aws.ToString(d.InstanceId), d.Tags)
		r.Name, r.Billable = cmp.Or(r.Name, aws.ToString(d.PublicIp)), true
		all = append(all, r)
	}
	return all, nil
}

func (a *AWS) groupResources(ctx context.Context, op, region string) ([]Resource, error) {
	groups, err := a.listGroups(ctx, op, region, a.ourFilters(nil)...)
	if err != nil {
		return nil, err
	}
	a.groups.forget(region)
	var all []Resource
	for _, g := range groups {
		id := aws.ToString(g.GroupId)
		r := a.resource(KindFirewall, region, id, "", g.Tags)
		r.Name, r.ServerID = aws.ToString(g.GroupName), r.Labels[a.labels.key(labelServer)]
		if r.Labels[a.labels.key(labelRole)] == roleNoInbound {
			r.Shared, r.ServerID = true, ""
			a.recheckGroup(ctx, region, g)
		}
		all = append(all, r)
	}
	return all, nil
}

// recheckGroup compares what is remembered of the shared group with what a
// list shows, so that creates can go on without looking.
func (a *AWS) recheckGroup(ctx context.Context, region string, g types.SecurityGroup) {
	switch {
	case aws.ToString(g.GroupName) != a.labels.key(roleNoInbound):
	case len(g.IpPermissions) > 0:
		a.logger.WarnContext(ctx, "the shared security group has inbound rules; the next create brings it back to none",
			slog.String("region", region), slog.String("group", aws.ToString(g.GroupId)), slog.Int("rules", len(g.IpPermissions)))
	default:
		if n, ok := a.networks.peek(region); ok && n.vpc == aws.ToString(g.VpcId) {
			a.groups.put(region, aws.ToString(g.GroupId))
		}
	}
}

func (a *AWS) keyResources(ctx context.Context, op, region string) ([]Resource, error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, &ec2.DescribeKeyPairsInput{Filters: a.ourFilters(nil)}, (*ec2.Client).DescribeKeyPairs)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, k := range out.KeyPairs {
		r := a.resource(KindSSHKey, region, aws.ToString(k.KeyPairId), "", k.Tags)
		r.Name, r.CreatedAt = aws.ToString(k.KeyName), aws.ToTime(k.CreateTime)
		r.Shared = r.Labels[a.labels.key(labelRole)] == roleLogin
		all = append(all, r)
	}
	return all, nil
}

// DeleteResource removes one resource. A server goes with all that was made
// for it, as by DeleteServer. One that something else still uses is
// ErrConflict, after some waiting for what is already on its way out.
func (a *AWS) DeleteResource(ctx context.Context, r Resource) error {
	const op = "remove resource"
	if r.Kind == KindServer && r.ID == "" {
		return a.deleteUnnamed(ctx, r)
	}
	if r.Kind == KindServer {
		return a.DeleteServer(ctx, r.ID)
	}
	m := awsThingPattern.FindStringSubmatch(r.ID)
	if m == nil {
		return invalidError("aws", op, "%q is no id of a %s: it is a region and EC2's id", clip(r.ID, 60), clip(r.Kind, 40))
	}
	ctx, cancel := context.WithTimeout(ctx, awsDeleteTime)
	defer cancel()
	req, id := awsReq{op: op, region: m[1], harmless: true, kind: awsWrites}, aws.String(m[2])
	var err error
	switch r.Kind {
	case KindFirewall:
		a.groups.forget(m[1])
		return a.removeGroup(ctx, op, m[1], m[2])
	case KindPublicIP:
		_, err = awsCall(ctx, a, req, &ec2.ReleaseAddressInput{AllocationId: id}, (*ec2.Client).ReleaseAddress)
	case KindSSHKey:
		a.keys.forgetAll()
		_, err = awsCall(ctx, a, req, &ec2.DeleteKeyPairInput{KeyPairId: id}, (*ec2.Client).DeleteKeyPair)
	case KindVolume:
		_, err = awsCall(ctx, a, req, &ec2.DeleteVolumeInput{VolumeId: id}, (*ec2.Client).DeleteVolume)
	case KindNetworkInterface:
		_, err = awsCall(ctx, a, req, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: id}, (*ec2.Client).DeleteNetworkInterface)
	default:
		return invalidError("aws", op, "EC2 has no resource of kind %q", clip(r.Kind, 40))
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// deleteUnnamed removes the server of a create whose answer and look-up were
// both lost, if there is one: see PartialError.
func (a *AWS) deleteUnnamed(ctx context.Context, r Resource) error {
	key := r.Labels[a.labels.key(labelKey)]
	if key == "" || !awsRegionPattern.MatchString(r.Region) {
		return invalidError("aws", "remove resource", "a server without id is found by its region and its labels")
	}
	i, found, err := a.withKey(ctx, "remove resource", r.Region, key)
	if err != nil || !found {
		return err
	}
	return a.DeleteServer(ctx, i.serverID())
}
