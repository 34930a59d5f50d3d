package provision

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create: the instance.

// place runs the instance in the first zone that has capacity. Sending the
// same request again is safe: its token makes one instance of it. A token is
// good for one zone only, so that the next zone is tried only after a refusal
// in words: then nothing was made.
func (a *AWS) place(ctx context.Context, opts CreateOpts, id identity, plan awsPlan, groups []string, newGroups bool, made *awsMade) (awsInstance, error) {
	var err error
	for _, place := range plan.places {
		in, encodeErr := a.request(opts, id, plan, place, groups)
		if encodeErr != nil {
			return awsInstance{}, invalidError("aws", "create server", "%v", encodeErr)
		}
		var inst awsInstance
		err = a.untilKnown(ctx, newGroups, func() error {
			inst, err = a.run(ctx, opts, in, made)
			return err
		})
		switch {
		case err == nil:
			return inst, a.own(inst, id, made)
		case hasCode(err, "IdempotentParameterMismatch"):
			return a.mismatch(ctx, opts, id, made, err)
		case !errors.Is(err, ErrCapacity):
			return awsInstance{}, err
		}
	}
	return awsInstance{}, err
}

// request is the whole RunInstances call. Everything in it follows from the
// options, the key and what is remembered, so that a repeat is the same.
func (a *AWS) request(opts CreateOpts, id identity, plan awsPlan, place awsSubnet, groups []string) (*ec2.RunInstancesInput, error) {
	data, err := awsUserData(opts.UserData)
	if err != nil {
		return nil, err
	}
	in := &ec2.RunInstancesInput{
		ClientToken: awsToken(a.labels.short, id), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		ImageId: aws.String(plan.image.id), InstanceType: types.InstanceType(opts.Size),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorStop,
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: aws.String(place.id), Groups: groups,
			AssociatePublicIpAddress: aws.Bool(true), DeleteOnTermination: aws.Bool(true),
		}},
		BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: aws.String(plan.image.root), Ebs: &types.EbsBlockDevice{
			VolumeSize: aws.Int32(int32(plan.diskGB)), VolumeType: types.VolumeTypeGp3, //nolint:gosec // checked against awsMostGB
			Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true),
		}}},
		MetadataOptions: &types.InstanceMetadataOptionsRequest{
			HttpEndpoint: types.InstanceMetadataEndpointStateEnabled, HttpTokens: types.HttpTokensStateRequired,
			HttpPutResponseHopLimit: aws.Int32(awsHops), InstanceMetadataTags: types.InstanceMetadataTagsStateDisabled,
		},
	}
	if data != "" {
		in.UserData = aws.String(data)
	}
	if plan.key != "" {
		in.KeyName = aws.String(plan.key)
	}
	tags := awsTags(a.labels.own(opts, id), opts.Name)
	for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: tags})
	}
	return in, nil
}

// awsHops is how far an answer of the metadata service may travel: one hop is
// the machine, the second a container on its bridge.
const awsHops = 2

func (a *AWS) run(ctx context.Context, opts CreateOpts, in *ec2.RunInstancesInput, made *awsMade) (awsInstance, error) {
	out, err := awsCall(ctx, a, awsReq{
		op: "create server", region: opts.Region, harmless: true, kind: awsRuns,
		secrets: append(secretWords(opts.UserData, opts.Name, opts.Size, opts.Image, opts.Region), aws.ToString(in.UserData)),
	}, in, (*ec2.Client).RunInstances)
	if err != nil {
		made.unclear = made.unclear || unclear(err)
		return awsInstance{}, err
	}
	made.unclear = false
	if len(out.Instances) == 0 || !awsInstanceID.MatchString(aws.ToString(out.Instances[0].InstanceId)) {
		made.unclear = true
		return awsInstance{}, a.fail(ErrUnavailable, "create server", "", "the answer names no instance")
	}
	return awsInstanceOf(opts.Region, out.Instances[0]), nil
}

// own tells whether the instance of an answer was made by this call. The
// answer to a repeat is the instance as it is now, which can be on its way out.
func (a *AWS) own(i awsInstance, id identity, made *awsMade) error {
	if id.own || time.Since(i.created) < launched {
		made.instance = &i
	}
	switch i.state {
	case types.InstanceStateNameShuttingDown, types.InstanceStateNameTerminated:
		made.instance = nil
		return a.fail(ErrConflict, "create server", "use a new key for a new server",
			"server %s, which was made with this idempotency key, is being deleted", i.serverID())
	}
	return nil
}

// mismatch is for a token that EC2 knows with another request. The same
// options can make another request later, such as when there is a newer image;
// the labels tell.
func (a *AWS) mismatch(ctx context.Context, opts CreateOpts, id identity, made *awsMade, cause error) (awsInstance, error) {
	const op = "create server"
	for pause := time.Second; ; pause *= 2 {
		found, ok, err := a.withKey(ctx, op, opts.Region, id.key)
		if err != nil {
			return awsInstance{}, err
		}
		if ok {
			_, _, err := a.take(op, found, id)
			return found, err
		}
		// A new instance can be missing from lists for a moment.
		if pause > 4*time.Second || !fits(ctx, pause) || sleep(ctx, pause) != nil {
			made.unclear = false
			return awsInstance{}, cause
		}
	}
}
