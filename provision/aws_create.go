package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Create.

// awsMostGB is the largest gp3 volume that EC2 starts from with a plain image.
const awsMostGB = 16 << 10

// CreateServer launches an EC2 instance: resolves the current Ubuntu 24.04
// AMI, the account's default VPC and subnet, ensures the shared no-inbound
// security group exists, and runs one instance with opts as its user-data.
// AllowSSHInbound makes a second group, for this instance alone.
//
// The image is by default Canonical's newest, in the size's architecture;
// Image is an AMI's id. The root disk is an encrypted gp3 volume of 20 GB
// unless DiskGB says otherwise, and goes with the server. The metadata service
// answers only to IMDSv2 sessions, with a hop limit of 2, so that containers
// on a bridge reach it. There is no instance profile. User-data over 16 KiB is
// compressed. At most one of SSHKeys, EC2's limit: the name of a key pair of
// the region, or an ed25519 or RSA public key, which is imported and stays.
//
// RunInstances is sent with a ClientToken made from IdempotencyKey: a repeat
// returns the same instance. Before it, the key is looked for among the
// region's instances, since a token is good for one zone and for some time.
// When a zone has no capacity, the region's other zones are tried. A create
// that fails removes what it made, for which it may take up to half a minute
// beyond its context.
//
// The address is mostly empty: EC2 assigns it a little later. Capacity can
// turn out to be missing after the answer: GetServer then says
// ServerStatusError, and Server.Failure why.
func (a *AWS) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	const op = "create server"
	if err := a.checkOpts(op, opts); err != nil {
		return "", "", err
	}
	id := identityOf(opts)
	if !id.own {
		leave, err := a.creates.enter(ctx, id.key)
		if err != nil {
			return "", "", a.stopped(ctx, op)
		}
		defer leave()
		found, ok, err := a.earlier(ctx, op, opts, id)
		if err != nil {
			return "", "", err
		}
		if ok {
			return a.take(op, found, id)
		}
	}
	var made awsMade
	inst, err := a.create(ctx, opts, id, &made)
	if err != nil {
		return "", "", a.undo(ctx, opts, id, &made, err)
	}
	a.fresh.made(inst)
	return inst.serverID(), inst.ipv4, nil
}

// awsMade is what one CreateServer has made so far for its server alone.
type awsMade struct {
	instance     *awsInstance
	group        string
	groupName    string
	groupLabels  map[string]string
	groupEarlier bool // an earlier call with the same key made it
	unclear      bool // an instance may have been made that is not known
}

func (a *AWS) stopped(ctx context.Context, op string) error {
	e := notSent(ctx)
	e.Provider, e.Op = "aws", op
	return e
}

// errTooLong is user-data that does not fit even when it is compressed.
type errTooLong struct{ raw, packed int }

func (e errTooLong) Error() string {
	return fmt.Sprintf("the user-data has %d bytes, %d when compressed; this provider takes %d", e.raw, e.packed, awsUserDataLimit)
}

// checkOpts holds the rules that need no call.
func (a *AWS) checkOpts(op string, opts CreateOpts) error {
	if a.mistake != nil {
		return a.refused(op)
	}
	for _, err := range []error{
		checkHostName(opts.Name),
		checkWord("region", opts.Region),
		checkWord("size", opts.Size),
		checkUserData(opts.UserData, 1<<20), // as it is; what goes out is measured below
		a.labels.check(opts.Labels),
		checkCIDRs(opts.SSHSourceCIDRs),
		checkArchitecture(opts.Architecture),
		awsCheckKeys(opts.SSHKeys),
	} {
		if err != nil {
			return invalidError("aws", op, "%v", err)
		}
	}
	if _, err := awsUserData(opts.UserData); err != nil {
		return invalidError("aws", op, "%v", err)
	}
	_, named := opts.Labels[awsNameTag]
	for k := range opts.Labels {
		named = named || strings.HasPrefix(strings.ToLower(k), "aws:")
	}
	switch {
	case !awsRegionPattern.MatchString(opts.Region):
		return invalidError("aws", op, "%q is no region: a region is a code such as eu-central-1, without a zone's letter", clip(opts.Region, 60))
	case opts.Image != "" && !strings.HasPrefix(opts.Image, "ami-"):
		return invalidError("aws", op, "%q is no image: at EC2 it is an id such as ami-0123456789abcdef0, good in one region", clip(opts.Image, 60))
	case opts.DiskGB < 0 || opts.DiskGB > awsMostGB:
		return invalidError("aws", op, "a disk of %d GB: EC2 makes them up to %d", opts.DiskGB, awsMostGB)
	case named:
		return invalidError("aws", op, "the label %q is the server's name at EC2", awsNameTag)
	}
	return nil
}

// earlier looks for the server of a key: in the region, and everywhere when
// the key was used with another region before.
func (a *AWS) earlier(ctx context.Context, op string, opts CreateOpts, id identity) (awsInstance, bool, error) {
	found, ok, err := a.withKey(ctx, op, opts.Region, id.key)
	if err != nil || ok || !a.used.use(id.key, opts.Region) {
		return found, ok, err
	}
	regions, err := a.enabledRegions(ctx, op)
	if err != nil {
		return found, false, err
	}
	for _, region := range regions {
		if region == opts.Region {
			continue
		}
		if found, ok, err = a.withKey(ctx, op, region, id.key); err != nil || ok {
			return found, ok, err
		}
	}
	return awsInstance{}, false, nil
}

// withKey is the instance of a key in a region. One that is terminated is
// none; EC2 itself refuses to use its token again.
func (a *AWS) withKey(ctx context.Context, op, region, key string) (awsInstance, bool, error) {
	list, err := a.instances(ctx, op, region, a.ourFilters(map[string]string{a.labels.key(labelKey): key}))
	if err != nil {
		return awsInstance{}, false, err
	}
	for _, i := range append(list, a.fresh.in(region)...) {
		if i.labels[a.labels.key(labelKey)] == key && i.state != types.InstanceStateNameTerminated {
			return i, true, nil
		}
	}
	return awsInstance{}, false, nil
}

// take returns a server that was found, when it is this create's.
func (a *AWS) take(op string, i awsInstance, id identity) (serverID, ipAddr string, err error) {
	if !a.labels.isOurs(i.labels) || i.labels[a.labels.key(labelKey)] != id.key {
		return "", "", a.fail(ErrConflict, op, "", "instance %s was made by another create", i.id)
	}
	if i.labels[a.labels.key(labelParams)] != id.params {
		return "", "", a.otherParams(op, "server "+i.serverID())
	}
	if i.state == types.InstanceStateNameShuttingDown || i.state == types.InstanceStateNameTerminated {
		return "", "", a.fail(ErrConflict, op, "use a new key for a new server",
			"server %s, which was made with this idempotency key, is being deleted", i.serverID())
	}
	return i.serverID(), i.ipv4, nil
}

func (a *AWS) otherParams(op, what string) error {
	return a.fail(ErrConflict, op, "use a new key for a new create, or repeat the old one with its own options",
		"%s was made with this idempotency key and other options", what)
}

// awsPlan is what a create's request names.
type awsPlan struct {
	places []awsSubnet
	vpc    string
	image  awsImage
	shared string // security group
	key    string // key pair; empty: none
	diskGB int
}

// plan gathers it. All of it is remembered, so that the next one is free.
func (a *AWS) plan(ctx context.Context, op string, opts CreateOpts, key string) (awsPlan, error) {
	var p awsPlan
	shape, err := a.shape(ctx, op, opts.Region, opts.Size)
	if err != nil {
		return p, err
	}
	if opts.Architecture != "" && opts.Architecture != shape.arch {
		return p, a.fail(ErrInvalid, op, "leave the architecture out, or choose a size that has it",
			"size %q is %s, asked for was %s", opts.Size, shape.arch, opts.Architecture)
	}
	if p.places, err = a.placesFor(ctx, op, opts.Region, opts.Size, key); err != nil {
		return p, err
	}
	network, err := a.network(ctx, op, opts.Region)
	if err != nil {
		return p, err
	}
	p.vpc = network.vpc
	if p.image, err = a.image(ctx, op, opts.Region, opts.Image, shape.arch); err != nil {
		return p, err
	}
	if p.image.arch != shape.arch {
		return p, a.fail(ErrInvalid, op, "choose an image of the size's architecture", "image %s is %s, size %q is %s", p.image.id, p.image.arch, opts.Size, shape.arch)
	}
	p.diskGB = opts.DiskGB
	if p.diskGB == 0 {
		p.diskGB = max(awsDiskGB, p.image.leastGB)
	}
	if p.diskGB < p.image.leastGB {
		return p, a.fail(ErrInvalid, op, "", "a disk of %d GB: image %s needs %d", p.diskGB, p.image.id, p.image.leastGB)
	}
	return p, nil
}

// create gathers what the request names and places the server. What was
// remembered can be gone: then it is gathered anew, once.
func (a *AWS) create(ctx context.Context, opts CreateOpts, id identity, made *awsMade) (awsInstance, error) {
	const op = "create server"
	for try := 0; ; try++ {
		inst, err := a.createOnce(ctx, op, opts, id, made)
		if err == nil || try > 0 || !awsGone(err) {
			return inst, err
		}
		a.forget(opts)
	}
}

// awsGone tells whether a create was refused for something that it only
// remembered.
func awsGone(err error) bool {
	var e *ProviderError
	return errors.As(err, &e) && errors.Is(e, ErrNotFound) && !strings.HasPrefix(e.Code, "InvalidInstanceID")
}

func (a *AWS) forget(opts CreateOpts) {
	a.networks.forget(opts.Region)
	a.groups.forget(opts.Region)
	a.images.forgetAll()
	a.keys.forgetAll()
}

func (a *AWS) createOnce(ctx context.Context, op string, opts CreateOpts, id identity, made *awsMade) (awsInstance, error) {
	plan, err := a.plan(ctx, op, opts, id.key)
	if err != nil {
		return awsInstance{}, err
	}
	_, known := a.groups.peek(opts.Region)
	if plan.shared, err = a.sharedGroup(ctx, opts.Region); err != nil {
		return awsInstance{}, err
	}
	if plan.key, err = a.keyPair(ctx, opts.Region, opts.SSHKeys); err != nil {
		return awsInstance{}, err
	}
	groups := []string{plan.shared}
	if opts.AllowSSHInbound {
		ssh, err := a.sshGroup(ctx, opts, id, plan.vpc, made)
		if err != nil {
			return awsInstance{}, err
		}
		groups = append(groups, ssh)
	}
	inst, err := a.place(ctx, opts, id, plan, groups, !known || opts.AllowSSHInbound, made)
	if err != nil {
		return awsInstance{}, err
	}
	if err := a.checkClosed(op, inst, groups, made); err != nil {
		return awsInstance{}, err
	}
	if opts.AllowSSHInbound {
		a.nameServer(ctx, opts.Region, made.group, inst.serverID())
	}
	return inst, nil
}

// checkClosed makes sure that the server has the groups that were asked for
// and no other: no server is handed out open.
func (a *AWS) checkClosed(op string, i awsInstance, groups []string, made *awsMade) error {
	want := map[string]bool{}
	for _, g := range groups {
		want[g] = true
	}
	for _, g := range i.groups {
		if !want[g] && made.instance != nil {
			return a.fail(ErrUnavailable, op, "try again", "instance %s came with security group %s, which was not asked for, and is removed", i.id, g)
		}
		delete(want, g)
	}
	if len(want) == 0 || made.instance == nil {
		return nil
	}
	return a.fail(ErrUnavailable, op, "try again", "instance %s came without its security groups, and is removed", i.id)
}

// launched is how old the instance of an answer may be to have been made by
// this very call, by EC2's clock and ours.
const launched = time.Minute

func awsToken(short string, id identity) *string {
	return aws.String(shortHash([]byte(short + "\x00" + id.key)))
}
