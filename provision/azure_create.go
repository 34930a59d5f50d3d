package provision

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Create.

const (
	// azureUser may log in, when SSHKeys say who.
	azureUser = "azureuser"
	// azureDiskGB is the boot disk's size when none is asked for.
	azureDiskGB = 64
	// The image has 30 GB; a disk that a server can start from ends at 4 TB.
	azLeastDiskGB, azMostDiskGB = 30, 4095
)

// CreateServer provisions a resource group (idempotent, never deleted), a
// shared per-region virtual network and subnet (idempotent, never deleted),
// then a public IP, network interface and virtual machine unique to this
// server. No network security group is created: a Standard SKU public IP is
// closed to inbound traffic by default unless one explicitly allows it. Only
// AllowSSHInbound makes one, for this server alone.
//
// The image is by default Canonical's Ubuntu 24.04 in the size's architecture
// and generation, with trusted launch (Secure Boot, vTPM) where the size has
// it; Image is publisher:offer:sku:version or the id of an image, and goes
// without trusted launch. The disk is a StandardSSD_LRS of 64 GB unless
// DiskGB says otherwise. User-data goes as custom data, compressed when it
// would not fit otherwise. There is never a password. SSHKeys log in as
// azureuser; without any, the key is one whose private half was thrown away.
// A name there is that of an SSH public key resource in the resource group.
//
// The virtual machine's create call is made on the condition that there is
// none of the name, and the name follows from Name and IdempotencyKey: a
// repeat finds the server. A create that fails removes what it made, for
// which it may take up to half a minute beyond its context.
//
// The answer may have no address yet, and capacity can turn out to be missing
// after it: GetServer then says ServerStatusError, and Server.Failure why.
func (a *Azure) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	const op = "create server"
	if err := a.checkOpts(op, opts); err != nil {
		return "", "", err
	}
	id := identityOf(opts)
	if !id.own && a.used.use(id.key, opts.Name) {
		if err := a.refuseOtherName(ctx, opts, id); err != nil {
			return "", "", err
		}
	}
	names := namesOf(azServerName(opts.Name, id))
	leave, err := a.creates.enter(ctx, names.vm)
	if err != nil {
		return "", "", a.named(op, err)
	}
	defer leave()
	if !id.own {
		// Anything made before this look could change a server that is there.
		vm, found, err := a.machine(ctx, op, names.vm)
		if err != nil {
			return "", "", err
		}
		if found {
			return a.take(ctx, vm, id)
		}
	}
	return a.make(ctx, opts, id, names)
}

// make makes the parts and then the whole.
func (a *Azure) make(ctx context.Context, opts CreateOpts, id identity, names azNames) (serverID, ipAddr string, err error) {
	const op = "create server"
	sku, err := a.skuOf(ctx, op, opts.Region, opts.Size)
	if err != nil {
		return "", "", err
	}
	want, err := a.machineOf(ctx, opts, id, names, sku)
	if err != nil {
		return "", "", err
	}
	subnet, err := a.sharedSubnet(ctx, opts.Region)
	if err != nil {
		return "", "", err
	}
	address, begun, err := a.makeParts(ctx, opts, id, names, subnet)
	if err == nil {
		err = a.place(ctx, opts, names, want)
	}
	if err == nil {
		return names.vm, address, nil
	}
	if isTaken(err) {
		// Somebody made it since we looked, or it was we and the answer is lost.
		vm, found, lookErr := a.machine(ctx, op, names.vm)
		switch {
		case lookErr != nil:
			return "", "", unknownOutcome(err, lookErr, id)
		case found:
			return a.take(ctx, vm, id)
		}
	}
	if !begun {
		return "", "", err // refused in words at the first step: nothing was made
	}
	return "", "", a.undo(ctx, opts, id, names, err)
}

// makeParts makes what the machine hangs on; begun tells that some of it may
// be there. A shared network that is remembered can be gone: then it is made
// anew, once.
func (a *Azure) makeParts(ctx context.Context, opts CreateOpts, id identity, names azNames, subnet string) (address string, begun bool, err error) {
	tags := a.partTags(id, names.vm)
	if opts.AllowSSHInbound {
		if err := a.putSecurityGroup(ctx, opts, names, tags); err != nil {
			return "", unclear(err), err
		}
		begun = true
	}
	ip, err := a.putPublicIP(ctx, opts.Region, names, tags)
	if errors.Is(err, ErrNotFound) { // the resource group is gone
		a.subnets.forgetAll()
		if subnet, err = a.sharedSubnet(ctx, opts.Region); err == nil {
			ip, err = a.putPublicIP(ctx, opts.Region, names, tags)
		}
	}
	if err != nil {
		return "", begun || unclear(err), err
	}
	err = a.putInterface(ctx, opts.Region, subnet, names, tags, opts.AllowSSHInbound)
	if errors.Is(err, ErrNotFound) || hasCode(err, "InvalidResourceReference") {
		a.subnets.forget(strings.ToLower(opts.Region))
		if subnet, err = a.sharedSubnet(ctx, opts.Region); err == nil {
			err = a.putInterface(ctx, opts.Region, subnet, names, tags, opts.AllowSSHInbound)
		}
	}
	return ip.Properties.IPAddress, true, err
}

// place sends the create. It is safe to repeat: the condition lets one of
// them make the server, and the others are told.
func (a *Azure) place(ctx context.Context, opts CreateOpts, names azNames, want azVM) error {
	_, err := a.send(ctx, call{
		op: "create server", method: http.MethodPut, path: a.vmPath(names.vm),
		query: apiVersion(azCompute), body: want, header: http.Header{"If-None-Match": {"*"}},
		secrets: append(secretWords(opts.UserData, opts.Name, opts.Size, opts.Image, opts.Region), want.Properties.OS.CustomData),
	}, nil)
	return err
}

// isTaken tells whether a create was refused because there is a machine of
// the name.
func isTaken(err error) bool {
	var e *ProviderError
	return errors.As(err, &e) && (e.Status == http.StatusPreconditionFailed || e.Code == "PropertyChangeNotAllowed" || unclear(err))
}

// machine reads one virtual machine.
func (a *Azure) machine(ctx context.Context, op, name string) (vm azVM, found bool, err error) {
	err = a.get(ctx, op, a.vmPath(name), apiVersion(azCompute), &vm)
	if errors.Is(err, ErrNotFound) {
		return vm, false, nil
	}
	if err == nil && vm.Name == "" {
		err = a.fail(ErrUnavailable, op, "", "the answer names no server")
	}
	return vm, err == nil, err
}

// take returns a server that was found, when it is this create's.
func (a *Azure) take(ctx context.Context, vm azVM, id identity) (serverID, ipAddr string, err error) {
	const op = "create server"
	if err := a.adopt(op, vm, id); err != nil {
		return "", "", err
	}
	if strings.EqualFold(vm.Properties.ProvisioningState, "Deleting") {
		return "", "", a.fail(ErrUnavailable, op, "try again in a moment, or use a new key for a new server",
			"server %q, which was made with this idempotency key, is being deleted", vm.Name)
	}
	address, err := a.addressOf(ctx, op, namesOf(vm.Name))
	return vm.Name, address, err
}

// adopt tells whether a machine that holds the name is this create's.
func (a *Azure) adopt(op string, vm azVM, id identity) error {
	if !a.labels.isOurs(vm.Tags) || vm.Tags[a.labels.key(labelKey)] != id.key {
		return a.fail(ErrConflict, op, "choose another name, or delete that server", "the name %q belongs to a server that another create made", vm.Name)
	}
	if vm.Tags[a.labels.key(labelParams)] != id.params {
		return a.otherParams(op, vm.Name)
	}
	return nil
}

func (a *Azure) otherParams(op, name string) error {
	return a.fail(ErrConflict, op, "use a new key for a new create, or repeat the old one with its own options",
		"server %q was made with this idempotency key and other options", name)
}

// refuseOtherName is for a key that was used with another name before.
func (a *Azure) refuseOtherName(ctx context.Context, opts CreateOpts, id identity) error {
	vms, err := a.machines(ctx, "create server")
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if a.labels.isOurs(vm.Tags) && vm.Tags[a.labels.key(labelKey)] == id.key && vm.Properties.OS.ComputerName != opts.Name {
			return a.otherParams("create server", vm.Name)
		}
	}
	return nil
}

// named gives an error that did not come through the transport its place.
func (a *Azure) named(op string, err error) error {
	var e *ProviderError
	if errors.As(err, &e) {
		e.Provider, e.Op = "azure", op
	}
	return err
}

// azServerName is the machine's name: the server's, for people, and a part of
// the key's hash, so that the same create has the same and any other another.
func azServerName(name string, id identity) string {
	base := strings.Trim(strings.ToLower(name)[:min(len(name), 45)], "-")
	return base + "-" + id.key[:10]
}

var (
	azHostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	azNumber   = regexp.MustCompile(`^[0-9]+$`)
)

// checkAzureName holds Azure's rule for the host name of a Linux server, less
// the dots, with which some images end in half a name.
func checkAzureName(name string) error {
	if err := checkHostName(name); err != nil {
		return err
	}
	if azHostName.MatchString(name) && !azNumber.MatchString(name) {
		return nil
	}
	would := strings.Trim(strings.ReplaceAll(suggestHostName(name), ".", "-"), "-")
	would = strings.Trim(would[:min(len(would), 60)], "-")
	if azNumber.MatchString(would) {
		would = "node-" + would
	}
	return fmt.Errorf("name %q: at Azure a name is made of letters, digits and hyphens, at most 63, not of digits alone; %q would do", clip(name, 80), would)
}

// checkOpts holds the rules that need no call.
func (a *Azure) checkOpts(op string, opts CreateOpts) error {
	_, dataErr := azCustomData(opts.UserData)
	_, imageErr := azImageOf(opts.Image)
	for _, err := range []error{
		checkAzureName(opts.Name),
		checkWord("region", opts.Region),
		checkWord("size", opts.Size),
		dataErr, imageErr,
		a.labels.check(opts.Labels),
		checkCIDRs(opts.SSHSourceCIDRs),
		checkArchitecture(opts.Architecture),
		checkAzureKeys(opts.SSHKeys),
	} {
		if err != nil {
			return invalidError("azure", op, "%v", err)
		}
	}
	if opts.DiskGB != 0 && (opts.DiskGB < azLeastDiskGB || opts.DiskGB > azMostDiskGB) {
		return invalidError("azure", op, "a disk of %d GB: from %d to %d at Azure", opts.DiskGB, azLeastDiskGB, azMostDiskGB)
	}
	if opts.AllowSSHInbound && len(azSources(opts.SSHSourceCIDRs)) == 0 {
		return invalidError("azure", op, "the SSH sources are IPv6 alone, and a server at Azure has an IPv4 address alone")
	}
	if n := len(opts.Labels) + len(a.labels.extra); n > azMostTags {
		return invalidError("azure", op, "%d labels: at Azure at most %d", n, azMostTags)
	}
	return nil
}

// azMostTags leaves room for our own among the 50 that a resource can have.
const azMostTags = 40

// azCustomData is the user-data as Azure takes it. What is too long is
// compressed, which cloud-init understands.
func azCustomData(data string) (string, error) {
	err := checkUserData(data, len(data))
	if err != nil || len(data) <= azureUserDataLimit {
		return base64.StdEncoding.EncodeToString([]byte(data)), err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write([]byte(data))
	if err = errors.Join(err, z.Close()); err != nil {
		return "", err
	}
	if b.Len() > azureUserDataLimit {
		return "", fmt.Errorf("the user-data has %d bytes, %d when compressed; this provider takes %d", len(data), b.Len(), azureUserDataLimit)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
