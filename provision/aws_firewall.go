package provision

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create: the security groups.
//
// Every server gets its region's shared group without inbound rules: all
// inbound is dropped, all outbound and its replies pass. SSH opt-in adds a
// second one, the server's own; rules of several groups add up. The VPC's
// default group is never used: it lets its members talk to each other.

// awsGroupWait is how long a group that was just made may be unknown to the
// calls that name it.
const awsGroupWait = 30 * time.Second

// sharedGroup returns the group without inbound rules, made at first need and
// brought back to none when somebody gave it some.
func (a *AWS) sharedGroup(ctx context.Context, region string) (id string, err error) {
	return a.groups.get(ctx, region, func(ctx context.Context) (string, error) {
		const op = "ensure the security group without inbound rules"
		network, err := a.network(ctx, op, region)
		if err != nil {
			return "", err
		}
		name := a.labels.key(roleNoInbound)
		g, _, err := a.ensureGroup(ctx, op, region, network.vpc, name, "No inbound traffic", a.labels.shared(roleNoInbound))
		if err != nil {
			return "", err
		}
		labels, _ := awsLabels(g.Tags)
		if labels[a.labels.key(labelRole)] != roleNoInbound || !a.labels.isOurs(labels) {
			return "", a.fail(ErrConflict, op, "rename or tag that group, or use another short name",
				"there is a security group %q (%s) that was not made for this; it may have rules, so it is not used", name, aws.ToString(g.GroupId))
		}
		if len(g.IpPermissions) > 0 {
			a.logger.WarnContext(ctx, "the shared security group had inbound rules and is brought back to none",
				slog.String("region", region), slog.String("group", aws.ToString(g.GroupId)), slog.Int("rules", len(g.IpPermissions)))
			err = a.revoke(ctx, op, region, g)
		}
		return aws.ToString(g.GroupId), err
	})
}

func (a *AWS) revoke(ctx context.Context, op, region string, g types.SecurityGroup) error {
	_, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true, kind: awsWrites},
		&ec2.RevokeSecurityGroupIngressInput{GroupId: g.GroupId, IpPermissions: g.IpPermissions}, (*ec2.Client).RevokeSecurityGroupIngress)
	if hasCode(err, "InvalidPermission.NotFound") {
		return nil
	}
	return err
}

// ensureGroup returns the group of that name, made now when there is none;
// made says which. Names are unique in a VPC, so that of two who make it at
// the same time one is told so, and a lost answer is found by a second look.
func (a *AWS) ensureGroup(ctx context.Context, op, region, vpc, name, about string, labels map[string]string) (g types.SecurityGroup, made bool, err error) {
	g, found, err := a.groupNamed(ctx, op, region, vpc, name)
	if err != nil || found {
		return g, false, err
	}
	return a.createGroup(ctx, op, region, vpc, name, about, labels)
}

func (a *AWS) createGroup(ctx context.Context, op, region, vpc, name, about string, labels map[string]string) (g types.SecurityGroup, made bool, err error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, kind: awsWrites}, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String(name), Description: aws.String(about), VpcId: aws.String(vpc),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: awsTags(labels, name)}},
	}, (*ec2.Client).CreateSecurityGroup)
	if err == nil && aws.ToString(out.GroupId) != "" {
		return types.SecurityGroup{GroupId: out.GroupId, GroupName: aws.String(name), Tags: awsTags(labels, name), VpcId: aws.String(vpc)}, true, nil
	}
	if err != nil && !unclear(err) && !hasCode(err, "InvalidGroup.Duplicate") {
		return g, false, err
	}
	cause := err
	if cause == nil {
		cause = a.fail(ErrUnavailable, op, "", "the answer names no security group")
	}
	// A new group can be missing from lists for a moment.
	for pause := time.Second; ; pause *= 2 {
		g, found, err := a.groupNamed(ctx, op, region, vpc, name)
		switch {
		case err != nil:
			return g, false, err
		case found:
			return g, false, nil
		case !hasCode(cause, "InvalidGroup.Duplicate") || pause > 8*time.Second || !fits(ctx, pause) || sleep(ctx, pause) != nil:
			return g, false, cause
		}
	}
}

func (a *AWS) groupNamed(ctx context.Context, op, region, vpc, name string) (types.SecurityGroup, bool, error) {
	list, err := a.listGroups(ctx, op, region, awsFilter("group-name", name), awsFilter("vpc-id", vpc))
	if err != nil || len(list) == 0 {
		return types.SecurityGroup{}, false, err
	}
	return list[0], true, nil
}

func (a *AWS) listGroups(ctx context.Context, op, region string, filters ...types.Filter) ([]types.SecurityGroup, error) {
	in := &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: aws.Int32(1000)}
	var all []types.SecurityGroup
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeSecurityGroups)
		if err != nil {
			return nil, err
		}
		all = append(all, out.SecurityGroups...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
}

// sshGroup makes the server's own group, before the server, since it is named
// in the create call. Its name follows from the create's key: one of the same
// create, made before an answer was lost, is used again.
func (a *AWS) sshGroup(ctx context.Context, opts CreateOpts, id identity, vpc string, made *awsMade) (string, error) {
	const op = "make the SSH security group"
	name := a.labels.key(roleSSH) + "-" + id.key[:20]
	labels := a.labels.own(opts, id)
	labels[a.labels.key(labelRole)] = roleSSH
	labels[a.labels.key(labelCreated)] = time.Now().UTC().Format(time.RFC3339)
	g, isNew, err := a.createGroup(ctx, op, opts.Region, vpc, name, "SSH to one server", labels)
	if err != nil {
		return "", err
	}
	group := aws.ToString(g.GroupId)
	if isNew {
		made.group, made.groupName, made.groupLabels = group, name, labels
	} else {
		has, _ := awsLabels(g.Tags)
		switch {
		case !a.labels.isOurs(has) || has[a.labels.key(labelRole)] != roleSSH || has[a.labels.key(labelKey)] != id.key:
			return "", a.fail(ErrConflict, op, "rename or remove that group", "there is a security group %q (%s) that was not made for this", name, group)
		case has[a.labels.key(labelParams)] != id.params:
			return "", a.otherParams(op, "security group "+group)
		}
		made.groupEarlier = made.groupEarlier || made.group != group
		made.group, made.groupName, made.groupLabels = group, name, has
	}
	return group, a.letSSHIn(ctx, op, opts, group)
}

func (a *AWS) letSSHIn(ctx context.Context, op string, opts CreateOpts, group string) error {
	sources := opts.SSHSourceCIDRs
	if len(sources) == 0 {
		sources = anywhere()
	}
	rule := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(22), ToPort: aws.Int32(22)}
	for _, cidr := range sources {
		if strings.Contains(cidr, ":") {
			rule.Ipv6Ranges = append(rule.Ipv6Ranges, types.Ipv6Range{CidrIpv6: aws.String(cidr), Description: aws.String("SSH")})
		} else {
			rule.IpRanges = append(rule.IpRanges, types.IpRange{CidrIp: aws.String(cidr), Description: aws.String("SSH")})
		}
	}
	err := a.untilKnown(ctx, true, func() error {
		_, err := awsCall(ctx, a, awsReq{op: op, region: opts.Region, harmless: true, kind: awsWrites},
			&ec2.AuthorizeSecurityGroupIngressInput{GroupId: aws.String(group), IpPermissions: []types.IpPermission{rule}},
			(*ec2.Client).AuthorizeSecurityGroupIngress)
		return err
	})
	if hasCode(err, "InvalidPermission.Duplicate") {
		return nil // by an earlier call, whose answer was lost
	}
	return err
}

// untilKnown repeats a call that names a group which may be too new to be
// known everywhere.
func (a *AWS) untilKnown(ctx context.Context, isNew bool, do func() error) error {
	begin := time.Now()
	for pause := 500 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := do()
		unknown := hasCode(err, "InvalidGroup.NotFound") || hasCode(err, "InvalidGroupId.NotFound")
		if !unknown || !isNew || time.Since(begin)+pause > awsGroupWait || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}

// nameServer writes the server's id on its SSH group, so that a delete finds
// it when EC2 has forgotten the instance. The group is found without it as
// long as the instance is known, so that a failure is no harm.
func (a *AWS) nameServer(ctx context.Context, region, group, serverID string) {
	_, err := awsCall(ctx, a, awsReq{op: "label the SSH security group", region: region, harmless: true, kind: awsWrites}, &ec2.CreateTagsInput{
		Resources: []string{group}, Tags: []types.Tag{{Key: aws.String(a.labels.key(labelServer)), Value: aws.String(serverID)}},
	}, (*ec2.Client).CreateTags)
	if err != nil {
		a.logger.WarnContext(ctx, "the SSH security group could not be labelled", slog.String("group", group), slog.Any("error", err))
	}
}

// removeGroup deletes a group. While the network interface of a server that
// was terminated still holds it, which can take a minute or more, it comes
// back until the context ends; what is not done by then is said.
func (a *AWS) removeGroup(ctx context.Context, op, region, group string) error {
	for pause := 2 * time.Second; ; pause = min(2*pause, 15*time.Second) {
		_, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true, kind: awsWrites},
			&ec2.DeleteSecurityGroupInput{GroupId: aws.String(group)}, (*ec2.Client).DeleteSecurityGroup)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		inUse := hasCode(err, "DependencyViolation") || hasCode(err, "InvalidGroup.InUse")
		if !inUse || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			return err
		}
	}
}
