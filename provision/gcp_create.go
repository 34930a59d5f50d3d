package provision

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Create.

const (
	// gcpBootDiskGB is the boot disk's size when none is asked for.
	gcpBootDiskGB = 30
	// What a disk can have.
	gcpLeastDiskGB, gcpMostDiskGB = 10, 65536
	// gcpUser may log in, when SSHKeys say who.
	gcpUser = "ubuntu"
	// gcpMostLabels leaves room for our own among the 64 of a resource.
	gcpMostLabels = 50
	gcpImages     = "projects/ubuntu-os-cloud/global/images/family/"
	gcpPlaceTries = 4
)

// CreateServer calls POST .../zones/{zone}/instances with an ephemeral external
// IP (no reserved address to clean up later) and an auto-deleting boot disk, so
// DeleteServer needs only the one instance delete call. The insert call is
// asynchronous at the operation level, but the instance resource itself exists
// as soon as this call returns, in PROVISIONING state; its IP isn't assigned
// yet, so ipAddr is empty here, but for a repeat that meets a server which has
// one. serverID is "{zone}/{name}": GCP's zone varies per server and every
// later call needs it, so it has to travel in the id.
//
// The server is in a network without any firewall rule. AllowSSHInbound adds a
// rule that is this server's alone, by a network tag of its own. The image is
// by default Ubuntu 24.04 in the size's architecture, as a shielded VM; Image is
// a family of ubuntu-os-cloud, or projects/…/global/images/… for any other, and
// goes with Google's defaults for shielding. The disk has 30 GB of the type
// that the size's series has by default. No service account is attached, and
// the project's SSH keys are kept out; SSHKeys, as text, log in as ubuntu.
// User-data over 256 KiB is compressed.
//
// The request's id follows from the idempotency key and the options, so that
// Google answers a repeat with the first one's operation; after that the name,
// which follows from the key too, tells. A repeat in another zone is
// recognised as one as long as the first was made by this Provisioner.
//
// Capacity can turn out to be missing after the answer: GetServer then says
// ErrNotFound and why, and a repeat tries anew.
func (g *GCP) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	const op = "create server"
	if err := g.checkOpts(op, opts); err != nil {
		return "", "", err
	}
	id := identityOf(opts)
	serverID = opts.Region + "/" + gcpServerName(opts.Name, id)
	if !id.own && g.used.use(id.key, serverID) {
		if err := g.refuseOthers(ctx, op, serverID, id); err != nil {
			return "", "", err
		}
	}
	t, err := g.machineType(ctx, op, opts.Region, opts.Size)
	if err == nil {
		err = g.fits(op, t, opts)
	}
	if err == nil {
		err = g.sharedNetwork(ctx)
	}
	if err != nil {
		return "", "", err
	}
	var made gcpMade
	ipAddr, err = g.placeInNetwork(ctx, g.instanceOf(opts, id, t), opts, id, &made)
	if err == nil && opts.AllowSSHInbound {
		err = g.openSSH(ctx, serverID, opts, id)
	}
	if err != nil {
		return "", "", g.undo(ctx, opts, id, made, err)
	}
	return serverID, ipAddr, nil
}

// gcpMade is what one CreateServer has made so far.
type gcpMade struct {
	begun   bool // a create was accepted and runs
	unclear bool // a server may have been made that is not known
}

// gcpServerName is the instance's name: the server's, for people, and a part of
// the key's hash, so that the same create has the same and any other another.
func gcpServerName(name string, id identity) string {
	return strings.TrimRight(name[:min(len(name), 52)], "-") + "-" + id.key[:10]
}

// refuseOthers is for a key that was used for another name or zone before.
func (g *GCP) refuseOthers(ctx context.Context, op, serverID string, id identity) error {
	list, err := g.instances(ctx, op, map[string]string{g.labels.key(labelKey): id.key})
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.serverID() != serverID {
			return g.otherParams(op, i.serverID())
		}
	}
	return nil
}

func (g *GCP) otherParams(op, serverID string) error {
	return g.fail(ErrConflict, op, "use a new key for a new create, or repeat the old one with its own options",
		"server %q was made with this idempotency key and other options", serverID)
}

// placeInNetwork makes the network anew, once, when the one that is remembered
// is gone.
func (g *GCP) placeInNetwork(ctx context.Context, want gcpInstance, opts CreateOpts, id identity, made *gcpMade) (ipAddr string, err error) {
	ipAddr, err = g.place(ctx, want, opts, id, made)
	var e *ProviderError
	if !errors.As(err, &e) || !errors.Is(e, ErrNotFound) && !errors.Is(e, ErrInvalid) || !strings.Contains(e.Message, g.networkName()) {
		return ipAddr, err
	}
	g.networks.forgetAll()
	if netErr := g.sharedNetwork(ctx); netErr != nil {
		return "", netErr
	}
	return g.place(ctx, want, opts, id, made)
}

// place sends the create and makes sure of its outcome. At most one server can
// come of it, however often it is sent: its name is unique in its zone.
func (g *GCP) place(ctx context.Context, want gcpInstance, opts CreateOpts, id identity, made *gcpMade) (ipAddr string, err error) {
	const op = "create server"
	request := requestID(id)
	for try := 1; ; try++ {
		started, err := g.insert(ctx, want, opts, request)
		if err == nil && started.Status != "DONE" {
			made.begun, made.unclear = true, false
			return "", nil
		}
		if err != nil && !errors.Is(err, ErrConflict) && !unclear(err) {
			return "", err
		}
		made.unclear = made.unclear || err != nil && unclear(err)
		i, lookErr := g.instance(ctx, op, opts.Region, want.Name)
		switch {
		case lookErr == nil:
			made.unclear = false
			return i.ipv4(), g.adopt(op, i, id)
		case !errors.Is(lookErr, ErrNotFound) && err != nil:
			return "", unknownOutcome(err, lookErr, id)
		case !errors.Is(lookErr, ErrNotFound):
			return "", lookErr
		}
		// Google remembers a request that is over: its server failed, or was
		// deleted since. A request of its own id makes another.
		if err == nil {
			if try > 1 {
				err = started.failure(op)
			}
			request = uuid.NewString()
		}
		if err == nil {
			if try < gcpPlaceTries {
				continue
			}
			err = g.fail(ErrUnavailable, op, "try again in a moment", "Google says that the server was made, and does not have it")
		}
		if !errors.Is(err, ErrConflict) || try >= gcpPlaceTries {
			return "", notToBeSeen(err)
		}
		if err := g.freeName(ctx, op, opts.Region, want.Name); err != nil {
			return "", err
		}
		wait := pauseBefore(try+1, 0, 0)
		if !fits(ctx, wait) || sleep(ctx, wait) != nil {
			return "", notToBeSeen(err)
		}
	}
}

// freeName removes the boot disk of an earlier try, which a create that fails
// late can leave: its name is this server's alone. That of a create which runs
// right now is not an orphan.
func (g *GCP) freeName(ctx context.Context, op, zone, name string) error {
	if create, found := g.lastCreate(ctx, op, zone, name); found && create.Status != "DONE" {
		return nil
	}
	return g.removeOrphan(ctx, op, zone, name)
}

// notToBeSeen is for a name that is taken by a server which nobody can see: it
// is on its way, or on its way out.
func notToBeSeen(err error) error {
	var e *ProviderError
	if !errors.As(err, &e) || !errors.Is(e, ErrConflict) {
		return err
	}
	late := *e
	late.Class, late.Hint = ErrUnavailable, "try again in a moment, with the same idempotency key"
	return &late
}

// requestID is the same for the same create: Google then does it once.
func requestID(id identity) string {
	sum := sha256.Sum256([]byte(id.key + "/" + id.params))
	u, err := uuid.FromBytes(sum[:16])
	if err != nil {
		panic("provision: 16 bytes are a UUID: " + err.Error())
	}
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8: made in a way of one's own
	return u.String()
}

// insert is safe to repeat, for its id.
func (g *GCP) insert(ctx context.Context, want gcpInstance, opts CreateOpts, request string) (gcpOperation, error) {
	var started gcpOperation
	secrets := secretWords(opts.UserData, opts.Name, opts.Size, opts.Image, opts.Region)
	if opts.UserData != "" {
		secrets = append(secrets, want.Metadata.Items[0].Value)
	}
	err := g.send(ctx, g.api, call{
		op: "create server", method: http.MethodPost, path: g.zonal(opts.Region, "instances"), harmless: true,
		query: url.Values{"requestId": {request}}, body: want, secrets: secrets,
	}, &started)
	if err == nil && started.Status == "" {
		err = g.fail(ErrUnavailable, "create server", "", "the answer names no operation")
	}
	return started, err
}

// adopt tells whether an instance that holds the name is this create's.
func (g *GCP) adopt(op string, i gcpInstance, id identity) error {
	switch {
	case !g.labels.isOurs(i.Labels) || i.Labels[g.labels.key(labelKey)] != id.key:
		return g.fail(ErrConflict, op, "choose another name, or delete that server", "the name %q belongs to a server that another create made", i.Name)
	case i.Labels[g.labels.key(labelParams)] != id.params:
		return g.otherParams(op, i.serverID())
	case i.Status == "STOPPING" || i.Status == "DEPROVISIONING":
		return g.fail(ErrUnavailable, op, "try again in a moment, or use a new key for a new server",
			"server %q, which was made with this idempotency key, is being deleted", i.serverID())
	}
	return nil
}

// instanceOf is the description of the server.
func (g *GCP) instanceOf(opts CreateOpts, id identity, t gcpMachineType) gcpInstance {
	name := gcpServerName(opts.Name, id)
	labels := g.labels.own(opts, id)
	i := gcpInstance{
		Name: name, Description: opts.Name, MachineType: "zones/" + opts.Region + "/machineTypes/" + t.Name, Labels: labels,
		Disks: []gcpAttachedDisk{{
			Boot: true, AutoDelete: true, Type: "PERSISTENT", Mode: "READ_WRITE",
			Initialize: gcpInitialize{DiskName: name, SourceImage: gcpImageOf(opts.Image, t), DiskSizeGB: gcpBootDiskGB, Labels: labels},
		}},
		Interfaces: []gcpNetworkInterface{{
			Network: g.networkRef(), AccessConfigs: []gcpAccessConfig{{Name: "External NAT", Type: "ONE_TO_ONE_NAT"}},
		}},
		Metadata:   &gcpMetadata{Items: gcpMetadataOf(opts)},
		Scheduling: &gcpScheduling{AutomaticRestart: true, OnHostMaintenance: "MIGRATE", ProvisioningModel: "STANDARD"},
	}
	if len(t.Accelerators) > 0 || strings.HasSuffix(t.Name, "-metal") {
		i.Scheduling.OnHostMaintenance = "TERMINATE" // these cannot be moved
	}
	if opts.DiskGB != 0 {
		i.Disks[0].Initialize.DiskSizeGB = int64(opts.DiskGB)
	}
	if opts.Image == "" {
		// Secure Boot where every series has it.
		i.Shielded = &gcpShielded{SecureBoot: t.architecture() == "x86", VTPM: true, Integrity: true}
	}
	if opts.AllowSSHInbound {
		i.Tags = &gcpTags{Items: []string{g.sshName(opts.Region + "/" + name)}}
	}
	return i
}

var gcpImage = regexp.MustCompile(`^(https://[a-z.]+\.googleapis\.com/compute/v1/)?(projects/[a-z0-9.:-]{1,100}/)?global/images/(family/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkGCPImage(image string) error {
	if image == "" || gcpName.MatchString(image) || gcpImage.MatchString(image) {
		return nil
	}
	return fmt.Errorf("image %q: the name of a family of ubuntu-os-cloud, such as ubuntu-2404-lts-amd64, or projects/…/global/images/…", clip(image, 80))
}

func gcpImageOf(image string, t gcpMachineType) string {
	switch {
	case image == "":
		return gcpImages + "ubuntu-2404-lts-" + map[string]string{"x86": "amd64", "arm": "arm64"}[t.architecture()]
	case strings.Contains(image, "/"):
		return image
	}
	return gcpImages + image
}

// gcpMetadataOf has the user-data first. It is readable for everything on the
// server, and for who may read the instance.
func gcpMetadataOf(opts CreateOpts) []gcpMetadataItem {
	var items []gcpMetadataItem
	if opts.UserData != "" {
		data, encoding, _ := gcpUserData(opts.UserData) // checked before
		items = append(items, gcpMetadataItem{"user-data", data})
		if encoding != "" {
			items = append(items, gcpMetadataItem{"user-data-encoding", encoding})
		}
	}
	items = append(items, gcpMetadataItem{"block-project-ssh-keys", "TRUE"}, gcpMetadataItem{"serial-port-enable", "FALSE"})
	if len(opts.SSHKeys) == 0 {
		return items
	}
	var lines []string
	for _, k := range opts.SSHKeys {
		key, _, _ := parsePublicKey(k) // checked before
		lines = append(lines, gcpUser+":"+key.text)
	}
	// OS Login would take no notice of keys in the metadata.
	return append(items, gcpMetadataItem{"ssh-keys", strings.Join(lines, "\n")}, gcpMetadataItem{"enable-oslogin", "FALSE"})
}

// gcpUserData is the user-data as Google takes it. What is too long is
// compressed, which cloud-init understands.
func gcpUserData(data string) (value, encoding string, err error) {
	err = checkUserData(data, len(data))
	if err != nil || len(data) <= gcpUserDataLimit {
		return data, "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write([]byte(data))
	if err = errors.Join(err, z.Close()); err != nil {
		return "", "", err
	}
	value = base64.StdEncoding.EncodeToString(b.Bytes())
	if len(value) > gcpUserDataLimit {
		return "", "", fmt.Errorf("the user-data has %d bytes, %d when compressed and encoded; this provider takes %d", len(data), len(value), gcpUserDataLimit)
	}
	return value, "base64", nil
}
