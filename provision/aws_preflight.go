package provision

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Preflight.

// Preflight tells whether a create with these options would be refused, and
// makes nothing: the options themselves with the measure of the user-data,
// the credential, that the region is enabled, the size and its architecture,
// that the region offers it in a zone where the default VPC has a subnet, the
// image, the SSH key, permission (by dry runs of the calls that make
// something), that the key's earlier server has these options, and the quota
// of CPUs where it may be read (servicequotas:GetServiceQuota).
//
// What it cannot see: capacity, which shows when a server is made.
func (a *AWS) Preflight(ctx context.Context, opts CreateOpts) error {
	const op = "preflight"
	if err := a.checkOpts(op, opts); err != nil {
		return err
	}
	if err := a.checkRegion(ctx, op, opts.Region); err != nil {
		return err
	}
	id := identityOf(opts)
	plan, err := a.plan(ctx, op, opts, id.key)
	if err != nil {
		if awsGone(err) { // such as an image that is not there
			e := *asProviderError(err)
			e.Class = ErrInvalid
			return &e
		}
		return err
	}
	if err := a.checkKeyName(ctx, op, opts); err != nil {
		return err
	}
	if err := a.checkMayWrite(ctx, op, opts, id, plan); err != nil {
		return err
	}
	if !id.own {
		found, ok, err := a.withKey(ctx, op, opts.Region, id.key)
		if err != nil {
			return err
		}
		if ok {
			_, _, err := a.take(op, found, id)
			return err
		}
	}
	return a.checkQuota(ctx, op, opts)
}

func asProviderError(err error) *ProviderError {
	var e *ProviderError
	if !errors.As(err, &e) {
		return &ProviderError{Provider: "aws", Class: ErrUnavailable, Message: err.Error()}
	}
	return e
}

// checkKeyName finds a key that is given by name. One that is given as text is
// imported by the create.
func (a *AWS) checkKeyName(ctx context.Context, op string, opts CreateOpts) error {
	for _, k := range opts.SSHKeys {
		if _, isText, _ := parsePublicKey(k); isText {
			continue
		}
		if _, err := a.keyPair(ctx, opts.Region, []string{k}); err != nil {
			return err
		}
	}
	return nil
}

// checkMayWrite asks EC2 to check the calls of a create without doing them: a
// dry run ends in DryRunOperation when the call would be let through.
func (a *AWS) checkMayWrite(ctx context.Context, op string, opts CreateOpts, id identity, plan awsPlan) error {
	var groups []string
	shared, found, err := a.groupNamed(ctx, op, opts.Region, plan.vpc, a.labels.key(roleNoInbound))
	if err != nil {
		return err
	}
	if found {
		groups = []string{aws.ToString(shared.GroupId)}
	}
	in, err := a.request(opts, id, plan, plan.places[0], groups)
	if err != nil {
		return invalidError("aws", op, "%v", err)
	}
	in.DryRun, in.ClientToken = aws.Bool(true), nil
	_, err = awsCall(ctx, a, awsReq{
		op: op, region: opts.Region, harmless: true, kind: awsWrites,
		secrets: append(secretWords(opts.UserData, opts.Name, opts.Size, opts.Image, opts.Region), aws.ToString(in.UserData)),
	}, in, (*ec2.Client).RunInstances)
	if err := awsDryRun(err); err != nil || found && !opts.AllowSSHInbound {
		return err
	}
	labels := a.labels.own(opts, id)
	labels[a.labels.key(labelRole)] = roleSSH
	_, err = awsCall(ctx, a, awsReq{op: op, region: opts.Region, harmless: true, kind: awsWrites}, &ec2.CreateSecurityGroupInput{
		DryRun: aws.Bool(true), GroupName: aws.String(a.labels.key(roleSSH) + "-" + id.key[:20]), VpcId: aws.String(plan.vpc),
		Description:       aws.String("SSH to one server"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: awsTags(labels, "")}},
	}, (*ec2.Client).CreateSecurityGroup)
	return awsDryRun(err)
}

// awsDryRun is nil when a dry run went well. The group of an earlier try is no
// objection.
func awsDryRun(err error) error {
	if hasCode(err, "DryRunOperation") || hasCode(err, "InvalidGroup.Duplicate") {
		return nil
	}
	return err
}

// awsStandard are the families that share one quota: "Running On-Demand
// Standard (A, C, D, H, I, M, R, T, Z) instances", in CPUs, by region.
const (
	awsStandard      = "acdhimrtz"
	awsStandardQuota = "L-1216C47A"
)

func isStandard(size string) bool {
	family, _, _ := strings.Cut(size, ".")
	letters := strings.TrimRight(family[:strings.IndexAny(family+"0", "0123456789")], "")
	return len(letters) == 1 && strings.Contains(awsStandard, letters)
}

// checkQuota compares the region's CPU quota with what runs. An account that
// may not read its quotas is not told of them.
func (a *AWS) checkQuota(ctx context.Context, op string, opts CreateOpts) error {
	if !isStandard(opts.Size) {
		return nil
	}
	var answer struct {
		Quota struct{ Value float64 }
	}
	err := a.ask(ctx, awsQuestion{
		op: op, service: "servicequotas", region: opts.Region, target: "ServiceQuotasV20190624.GetServiceQuota",
		in:      map[string]string{"ServiceCode": "ec2", "QuotaCode": awsStandardQuota},
		address: pointed(a.endpoints.quotas, "https://servicequotas."+opts.Region+".amazonaws.com"),
	}, &answer)
	if err != nil || answer.Quota.Value <= 0 {
		return nil //nolint:nilerr // no quota to be had is no objection
	}
	shape, err := a.shape(ctx, op, opts.Region, opts.Size)
	if err != nil {
		return err
	}
	used, err := a.standardCPUs(ctx, op, opts.Region)
	if err != nil {
		return err
	}
	if limit := int(answer.Quota.Value); used+shape.vcpus > limit {
		return a.fail(ErrQuota, op, awsHintQuota, "the account may run %d CPUs of the standard families in %s, %d run, and size %q has %d",
			limit, opts.Region, used, opts.Size, shape.vcpus)
	}
	return nil
}

// standardCPUs are those of all the account's running instances, not of ours
// alone.
func (a *AWS) standardCPUs(ctx context.Context, op, region string) (int, error) {
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{awsFilter("instance-state-name", "pending", "running")}, MaxResults: aws.Int32(1000)}
	cpus := 0
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeInstances)
		if err != nil {
			return 0, err
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				if i.CpuOptions != nil && isStandard(string(i.InstanceType)) {
					cpus += int(aws.ToInt32(i.CpuOptions.CoreCount) * aws.ToInt32(i.CpuOptions.ThreadsPerCore))
				}
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return cpus, nil
		}
	}
}
