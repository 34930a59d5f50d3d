package provision

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create: the network, the zones and the image.

// awsNetwork is the default VPC of a region, and its subnets by zone.
type awsNetwork struct {
	vpc     string
	subnets []awsSubnet
}

type awsSubnet struct{ id, zone string }

// network finds the default VPC. None is made: an account that has none has
// had it removed on purpose.
func (a *AWS) network(ctx context.Context, op, region string) (awsNetwork, error) {
	return a.networks.get(ctx, region, func(ctx context.Context) (awsNetwork, error) {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true},
			&ec2.DescribeVpcsInput{Filters: []types.Filter{awsFilter("is-default", "true")}}, (*ec2.Client).DescribeVpcs)
		if err != nil {
			return awsNetwork{}, err
		}
		if len(out.Vpcs) == 0 {
			return awsNetwork{}, a.fail(ErrInvalid, op, strings.ReplaceAll(awsHintDefault, "<region>", region), "the account has no default VPC in %s", region)
		}
		n := awsNetwork{vpc: aws.ToString(out.Vpcs[0].VpcId)}
		n.subnets, err = a.defaultSubnets(ctx, op, region, n.vpc)
		return n, err
	})
}

func (a *AWS) defaultSubnets(ctx context.Context, op, region, vpc string) ([]awsSubnet, error) {
	in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{
		awsFilter("vpc-id", vpc), awsFilter("default-for-az", "true"), awsFilter("state", "available"),
	}}
	var subnets []awsSubnet
	for {
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeSubnets)
		if err != nil {
			return nil, err
		}
		for _, s := range out.Subnets {
			subnets = append(subnets, awsSubnet{id: aws.ToString(s.SubnetId), zone: aws.ToString(s.AvailabilityZone)})
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	if len(subnets) == 0 {
		return nil, a.fail(ErrInvalid, op, "make one: aws ec2 create-default-subnet --region "+region+" --availability-zone "+region+"a",
			"the default VPC of %s has no default subnet", region)
	}
	slices.SortFunc(subnets, func(x, y awsSubnet) int { return cmp.Compare(x.zone, y.zone) })
	return subnets, nil
}

// placesFor returns the subnets of zones that have the size, in an order that
// is another for each key: servers spread over the zones, and a repeat begins
// where the first try did.
func (a *AWS) placesFor(ctx context.Context, op, region, size, key string) ([]awsSubnet, error) {
	network, err := a.network(ctx, op, region)
	if err != nil {
		return nil, err
	}
	zones, err := a.zonesOf(ctx, op, region, size)
	if err != nil {
		return nil, err
	}
	if len(zones) == 0 {
		return nil, a.fail(ErrInvalid, op, "choose another size or another region", "size %q is not offered in %s", size, region)
	}
	var places []awsSubnet
	for _, s := range network.subnets {
		if zones[s.zone] {
			places = append(places, s)
		}
	}
	if len(places) == 0 {
		return nil, a.fail(ErrInvalid, op, "make a default subnet there: aws ec2 create-default-subnet --availability-zone <zone>",
			"size %q is offered in %s of %s, and the default VPC has no subnet there", size, strings.Join(sortedKeys(zones), ", "), region)
	}
	first := 0
	for _, b := range []byte(key) {
		first = (first*31 + int(b)) % len(places)
	}
	return slices.Concat(places[first:], places[:first]), nil
}

// zonesOf are the zones of the region that have the size at all.
func (a *AWS) zonesOf(ctx context.Context, op, region, size string) (map[string]bool, error) {
	return a.zones.get(ctx, region+"/"+size, func(ctx context.Context) (map[string]bool, error) {
		in := &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{awsFilter("instance-type", size)},
		}
		zones := map[string]bool{}
		for {
			out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeInstanceTypeOfferings)
			if err != nil {
				return nil, err
			}
			for _, o := range out.InstanceTypeOfferings {
				zones[aws.ToString(o.Location)] = true
			}
			if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
				return zones, nil
			}
		}
	})
}

// awsImage is an image, and how its root disk is called.
type awsImage struct {
	id, root, arch string
	leastGB        int
}

// The owners of Ubuntu's images. Names alone are no proof: anyone may publish
// an image of any name.
var awsCanonical = map[string]string{"aws": "099720109477", "aws-cn": "837727238323", "aws-us-gov": "513442679011"}

// awsImageName is Ubuntu 24.04 as Canonical publishes it.
const awsImageName = "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-%ARCH%-server-*"

// image finds the image of a create: the one that is named, or the newest
// Ubuntu 24.04 of the architecture.
func (a *AWS) image(ctx context.Context, op, region, name, arch string) (awsImage, error) {
	return a.images.get(ctx, region+"/"+arch+"/"+name, func(ctx context.Context) (awsImage, error) {
		in := &ec2.DescribeImagesInput{}
		if name != "" {
			in.ImageIds = []string{name}
		} else {
			word, vendor := "amd64", "x86_64"
			if arch == "arm" {
				word, vendor = "arm64", "arm64"
			}
			in.Owners = []string{awsCanonical[awsPartition(region)]}
			if in.Owners[0] == "" {
				return awsImage{}, a.fail(ErrInvalid, op, "name an image: Image", "who publishes Ubuntu in %s is not known here", region)
			}
			in.Filters = []types.Filter{
				awsFilter("name", strings.Replace(awsImageName, "%ARCH%", word, 1)), awsFilter("architecture", vendor),
				awsFilter("virtualization-type", "hvm"), awsFilter("root-device-type", "ebs"), awsFilter("state", "available"),
			}
		}
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeImages)
		if err != nil {
			return awsImage{}, err
		}
		if len(out.Images) == 0 && name == "" {
			return awsImage{}, a.fail(ErrUnavailable, op, "name an image: Image", "Canonical's Ubuntu 24.04 for %s is not to be seen in %s", arch, region)
		}
		if len(out.Images) == 0 {
			return awsImage{}, a.fail(ErrInvalid, op, "an image's id is good in one region only", "there is no image %q in %s", name, region)
		}
		return awsImageOf(slices.MaxFunc(out.Images, newerImage)), nil
	})
}

// newerImage orders by date: the answer has no order. Dates are ISO 8601 texts.
func newerImage(x, y types.Image) int {
	return cmp.Or(cmp.Compare(aws.ToString(x.CreationDate), aws.ToString(y.CreationDate)), cmp.Compare(aws.ToString(x.Name), aws.ToString(y.Name)))
}

func awsImageOf(i types.Image) awsImage {
	image := awsImage{id: aws.ToString(i.ImageId), root: aws.ToString(i.RootDeviceName), arch: "x86"}
	if strings.HasPrefix(string(i.Architecture), "arm64") {
		image.arch = "arm"
	}
	for _, d := range i.BlockDeviceMappings {
		if aws.ToString(d.DeviceName) == image.root && d.Ebs != nil {
			image.leastGB = int(aws.ToInt32(d.Ebs.VolumeSize))
		}
	}
	return image
}
