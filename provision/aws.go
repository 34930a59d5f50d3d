package provision

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Credential: see aws_credential.go.

const (
	awsUserDataLimit = 16 << 10

	// awsHome is the region that is asked about regions when the credential
	// names none: every account of the commercial partition has it.
	awsHome = "us-east-1"
	// awsGrace is how long a new instance may be unknown to EC2's own lists.
	awsGrace = 3 * time.Minute
	// awsAtOnce is how many regions are asked at the same time.
	awsAtOnce = 8
)

// AWS implements Provisioner, Lister, Auditor, Preflighter, ConsoleReader and
// Pricer against the EC2 API, over aws-sdk-go-v2. Unlike with a single bearer
// token and a location-agnostic server id, an EC2 instance id is only valid in
// the region it was created in: a server's id is "<region>/<instance id>", and
// a region-scoped client is built lazily per call. The credentials are shared
// between them, so that a role is assumed once per session, not once per call.
//
// A create is at most two requests once a region's shared things are known:
// the default VPC and its subnets, a security group without inbound rules
// (made at the first create, looked at again every ten minutes, and kept; it
// costs nothing), the current Ubuntu image, and the zones that have the size.
type AWS struct {
	creds     AWSCredentials
	mistake   error // of the credentials; every call fails with it
	endpoints awsEndpoints
	identity  aws.CredentialsProvider
	http      *awsHTTP

	labels  labeller
	logger  *slog.Logger
	hide    *redactor
	retrier *retrier
	pace    *awsPace

	used     usedKeys // by which region each key was used with
	creates  *azGates
	networks *memory[awsNetwork]       // by region
	groups   *memory[string]           // the shared group, by region
	images   *memory[awsImage]         // by region and architecture
	shapes   *memory[awsShape]         // by region and size
	zones    *memory[map[string]bool]  // those that have a size, by region and size
	keys     *memory[string]           // key pairs, by region and key
	regions  *memory[[]types.Region]   // one entry
	costs    *memory[map[string]Price] // by region
	fresh    *awsFresh
}

var (
	_ Provisioner   = (*AWS)(nil)
	_ Lister        = (*AWS)(nil)
	_ Auditor       = (*AWS)(nil)
	_ Preflighter   = (*AWS)(nil)
	_ ConsoleReader = (*AWS)(nil)
	_ Pricer        = (*AWS)(nil)
)

// NewAWS returns an AWS provisioner authenticating with creds. shortName
// namespaces the security group it creates; empty is DefaultShortName.
// Credentials that cannot be right are refused by the first call.
func NewAWS(creds AWSCredentials, shortName string) *AWS {
	opts := Options{ShortName: shortName}
	a := newAWS(creds, opts)
	if err := opts.validate("aws"); err != nil {
		a.mistake = err
	}
	return a
}

// NewAWSFromToken builds an AWS provisioner from JSON-encoded AWSCredentials.
func NewAWSFromToken(token, shortName string) (*AWS, error) {
	opts := Options{ShortName: shortName}
	if err := opts.validate("aws"); err != nil {
		return nil, err
	}
	return awsFromToken(token, opts)
}

func openAWS(credential string, opts Options) (Provisioner, error) {
	a, err := awsFromToken(credential, opts)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func awsFromToken(token string, opts Options) (*AWS, error) {
	creds, err := parseAWSCredentials(token)
	if err != nil {
		return nil, err
	}
	return newAWS(creds, opts), nil
}

func newAWS(creds AWSCredentials, opts Options) *AWS {
	creds = creds.trimmed()
	a := &AWS{
		creds: creds, mistake: creds.check(),
		endpoints: awsEndpointsOf(opts),
		labels:    labeller{short: opts.shortName(), extra: opts.Labels},
		logger:    opts.logger().With(slog.String("provider", "aws")),
		hide:      &redactor{},
		retrier:   newRetrier(),
		pace:      newAWSPace(),
		used:      usedKeys{limit: 1024},
		creates:   newAzGates(),
		networks:  newMemory[awsNetwork](rememberFor),
		groups:    newMemory[string](rememberFor),
		images:    newMemory[awsImage](time.Hour),
		shapes:    newMemory[awsShape](rememberFacts),
		zones:     newMemory[map[string]bool](rememberFacts),
		keys:      newMemory[string](rememberFor),
		regions:   newMemory[[]types.Region](time.Hour),
		costs:     newMemory[map[string]Price](rememberFacts),
		fresh:     &awsFresh{known: map[string]awsNew{}},
	}
	var err error
	if a.http, err = newAWSHTTP(opts.HTTPClient); err != nil && a.mistake == nil {
		a.mistake = err
	}
	a.identity = a.credentials()
	for _, address := range a.endpoints.all() {
		if isOpenHTTP(address) {
			a.logger.Warn("the endpoint is not encrypted: whoever is on the way can read the user-data", slog.String("host", hostOf(address)))
		}
	}
	return a
}

// fail is an error of our own making, in the form of the provider's.
func (a *AWS) fail(class error, op, hint, format string, args ...any) *ProviderError {
	return &ProviderError{Provider: "aws", Op: op, Class: class, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// home is the region that is asked about the account.
func (a *AWS) home() string {
	if a.creds.Region != "" {
		return a.creds.Region
	}
	return awsHome
}

var (
	awsRegionPattern = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-\d+$`)
	awsThingPattern  = regexp.MustCompile(`^([a-z]{2,}(?:-[a-z]+)+-\d+)/([a-z]+-(?:[0-9a-f]{8}|[0-9a-f]{17}))$`)
	awsInstanceID    = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

// parseID reads a server's id, "<region>/<instance id>". One that is none is
// ErrInvalid, never "gone": in another region, EC2 would say not found.
func (a *AWS) parseID(op, id string) (region, instance string, err error) {
	m := awsThingPattern.FindStringSubmatch(id)
	if m == nil || !awsInstanceID.MatchString(m[2]) {
		return "", "", invalidError("aws", op, "%q is no server id: it is a region and an instance id, as eu-central-1/i-0123456789abcdef0", clip(id, 60))
	}
	return m[1], m[2], nil
}

func awsID(region, thing string) string { return region + "/" + thing }

// Regions.

// ListRegions calls EC2 DescribeRegions: the regions that are enabled for the
// account. A region's ID is its code (eu-central-1), its Name where it is. The
// question goes to the credential's region, or to us-east-1 when it names none.
func (a *AWS) ListRegions(ctx context.Context) ([]Region, error) {
	all, err := a.readRegions(ctx, "list regions")
	if err != nil {
		return nil, err
	}
	a.regions.put("", all)
	var regions []Region
	for _, name := range a.enabled(all) {
		regions = append(regions, Region{ID: name, Name: awsRegionTitle(name)})
	}
	return regions, nil
}

// readRegions reads all regions of the partition, also those that are not
// enabled.
func (a *AWS) readRegions(ctx context.Context, op string) ([]types.Region, error) {
	out, err := awsCall(ctx, a, awsReq{op: op, region: a.home(), harmless: true},
		&ec2.DescribeRegionsInput{AllRegions: aws.Bool(true)}, (*ec2.Client).DescribeRegions)
	if err != nil {
		return nil, err
	}
	return out.Regions, nil
}

// enabledRegions are those that servers can be in.
func (a *AWS) enabledRegions(ctx context.Context, op string) ([]string, error) {
	all, err := a.regions.get(ctx, "", func(ctx context.Context) ([]types.Region, error) { return a.readRegions(ctx, op) })
	if err != nil {
		return nil, err
	}
	return a.enabled(all), nil
}

func (a *AWS) enabled(all []types.Region) []string {
	var names []string
	for _, r := range all {
		name := aws.ToString(r.RegionName)
		if aws.ToString(r.OptInStatus) != "not-opted-in" && awsRegionPattern.MatchString(name) && awsPartition(name) == awsPartition(a.home()) {
			names = append(names, name)
		}
	}
	return names
}

// checkRegion is nil when the region exists and is enabled for the account.
func (a *AWS) checkRegion(ctx context.Context, op, region string) error {
	all, err := a.regions.get(ctx, "", func(ctx context.Context) ([]types.Region, error) { return a.readRegions(ctx, op) })
	if err != nil {
		return err
	}
	for _, r := range all {
		if aws.ToString(r.RegionName) != region {
			continue
		}
		if aws.ToString(r.OptInStatus) == "not-opted-in" {
			return a.fail(ErrInvalid, op, "enable it (AWS console: Account, AWS Regions; it takes some minutes), or choose another",
				"the region %q is not enabled for this account", region)
		}
		return nil
	}
	return a.fail(ErrInvalid, op, "list the regions to see what there is", "there is no region %q for this account", region)
}

// inEveryRegion runs do for each enabled region, some at a time. The first
// failure ends it: a part of a list is no list.
func (a *AWS) inEveryRegion(ctx context.Context, op string, do func(ctx context.Context, region string) error) error {
	regions, err := a.enabledRegions(ctx, op)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var once sync.Once
	var first error
	slots := make(chan struct{}, awsAtOnce)
	for _, region := range regions {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := do(ctx, region); err != nil {
				once.Do(func() { first = err; cancel(err) })
			}
		})
	}
	all.Wait()
	return first
}
