package provision

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Sizes.

// awsDiskGB is the root disk's size when none is asked for.
const awsDiskGB = 20

// awsCuratedSizes are instance types that a fleet would choose: general
// purpose, burstable and compute, x86 and Arm, of the current generations.
// EC2's own catalogue has close to a thousand. CPUs and memory as EC2 documents
// them; the disk is a separate thing at EC2, so Disk is 0.
func awsCuratedSizes() []Size {
	var sizes []Size
	for line := range strings.Lines(awsCatalogue) {
		var s Size
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		s.ID, s.Name, s.Architecture = fields[0], fields[0], fields[1]
		s.VCPUs, s.Memory = atoi(fields[2]), atoi(fields[3])*1024
		sizes = append(sizes, s)
	}
	return sizes
}

// awsCatalogue is type, architecture, CPUs and GiB of memory.
const awsCatalogue = `
t3.micro        x86  2   1
t3.small        x86  2   2
t3.medium       x86  2   4
t3.large        x86  2   8
t3.xlarge       x86  4  16
t3.2xlarge      x86  8  32
t3a.small       x86  2   2
t3a.medium      x86  2   4
t3a.large       x86  2   8
t3a.xlarge      x86  4  16
t4g.micro       arm  2   1
t4g.small       arm  2   2
t4g.medium      arm  2   4
t4g.large       arm  2   8
t4g.xlarge      arm  4  16
t4g.2xlarge     arm  8  32
m7i-flex.large  x86  2   8
m7i-flex.xlarge x86  4  16
m7i-flex.2xlarge x86 8  32
m7i-flex.4xlarge x86 16 64
m7i.large       x86  2   8
m7i.xlarge      x86  4  16
m8i-flex.large  x86  2   8
m8i-flex.xlarge x86  4  16
m8i.large       x86  2   8
m7g.medium      arm  1   4
m7g.large       arm  2   8
m7g.xlarge      arm  4  16
m8g.medium      arm  1   4
m8g.large       arm  2   8
m8g.xlarge      arm  4  16
c7i-flex.large  x86  2   4
c7i-flex.xlarge x86  4   8
c7i-flex.2xlarge x86 8  16
c7i.large       x86  2   4
c7i.xlarge      x86  4   8
c7i.2xlarge     x86  8  16
c8g.large       arm  2   4
r7i.large       x86  2  16
r7g.large       arm  2  16
`

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}

// ListSizes returns a static list of current types, not a live API call
// (unlike Hetzner/DigitalOcean, EC2's own catalog is too large to be a useful
// picker). region is accepted to satisfy Provisioner but unused: nearly every
// listed type is available in every commercial AWS region, and Preflight tells
// about the one that is not. Any other type can be used in a create too.
func (a *AWS) ListSizes(_ context.Context, _ string) ([]Size, error) { return awsCuratedSizes(), nil }

// awsShape is what a create has to know of a size.
type awsShape struct {
	arch  string
	vcpus int
}

// shape knows the curated sizes, and asks EC2 about every other.
func (a *AWS) shape(ctx context.Context, op, region, size string) (awsShape, error) {
	for _, s := range awsCuratedSizes() {
		if s.ID == size {
			return awsShape{s.Architecture, s.VCPUs}, nil
		}
	}
	return a.shapes.get(ctx, region+"/"+size, func(ctx context.Context) (awsShape, error) {
		in := &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(size)}}
		out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).DescribeInstanceTypes)
		if hasCode(err, "InvalidInstanceType") || err == nil && len(out.InstanceTypes) == 0 {
			return awsShape{}, a.fail(ErrInvalid, op, "list the sizes to see what there is", "there is no size %q in %s", size, region)
		}
		if err != nil {
			return awsShape{}, err
		}
		t := out.InstanceTypes[0]
		var s awsShape
		if t.ProcessorInfo != nil {
			for _, arch := range t.ProcessorInfo.SupportedArchitectures {
				switch arch {
				case types.ArchitectureTypeX8664:
					s.arch = "x86"
				case types.ArchitectureTypeArm64:
					s.arch = "arm"
				}
			}
		}
		if t.VCpuInfo != nil {
			s.vcpus = int(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
		}
		if s.arch == "" {
			return s, a.fail(ErrInvalid, op, "list the sizes to see what there is", "size %q is neither x86 nor arm, of 64 bits", size)
		}
		return s, nil
	})
}

// awsRegionTitle is where a region is, as AWS names it.
func awsRegionTitle(code string) string {
	if title := awsRegionTitles[code]; title != "" {
		return title
	}
	return code
}

var awsRegionTitles = map[string]string{
	"af-south-1": "Africa (Cape Town)", "ap-east-1": "Asia Pacific (Hong Kong)", "ap-east-2": "Asia Pacific (Taipei)",
	"ap-northeast-1": "Asia Pacific (Tokyo)", "ap-northeast-2": "Asia Pacific (Seoul)", "ap-northeast-3": "Asia Pacific (Osaka)",
	"ap-south-1": "Asia Pacific (Mumbai)", "ap-south-2": "Asia Pacific (Hyderabad)", "ap-southeast-1": "Asia Pacific (Singapore)",
	"ap-southeast-2": "Asia Pacific (Sydney)", "ap-southeast-3": "Asia Pacific (Jakarta)", "ap-southeast-4": "Asia Pacific (Melbourne)",
	"ap-southeast-5": "Asia Pacific (Malaysia)", "ap-southeast-6": "Asia Pacific (New Zealand)", "ap-southeast-7": "Asia Pacific (Thailand)",
	"ca-central-1": "Canada (Central)", "ca-west-1": "Canada West (Calgary)", "cn-north-1": "China (Beijing)", "cn-northwest-1": "China (Ningxia)",
	"eu-central-1": "Europe (Frankfurt)", "eu-central-2": "Europe (Zurich)", "eu-north-1": "Europe (Stockholm)", "eu-south-1": "Europe (Milan)",
	"eu-south-2": "Europe (Spain)", "eu-west-1": "Europe (Ireland)", "eu-west-2": "Europe (London)", "eu-west-3": "Europe (Paris)",
	"eusc-de-east-1": "EU Sovereign Cloud (Brandenburg)", "il-central-1": "Israel (Tel Aviv)", "me-central-1": "Middle East (UAE)",
	"me-south-1": "Middle East (Bahrain)", "mx-central-1": "Mexico (Central)", "sa-east-1": "South America (São Paulo)",
	"us-east-1": "US East (N. Virginia)", "us-east-2": "US East (Ohio)", "us-gov-east-1": "AWS GovCloud (US-East)",
	"us-gov-west-1": "AWS GovCloud (US-West)", "us-west-1": "US West (N. California)", "us-west-2": "US West (Oregon)",
}
