package provision

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Create.

const (
	doImageSlug = "ubuntu-24-04-x64"

	// doLooks is how often a Droplet is looked for whose create had no answer:
	// a list may show it a moment later.
	doLooks = 3
)

// CreateServer calls POST /v2/droplets: one request, and one before it that
// looks for what an earlier call with the same key made, when there is a key.
// The Droplet is made with the tag that the shared firewall covers, so that it
// is closed from its first second. Its address comes some seconds later: see
// GetServer.
//
// The image is by default ubuntu-24-04-x64; it can be a slug or the number of
// an image of the account. SSH keys that are given as text are uploaded and
// stay in the account. DiskGB cannot be chosen at DigitalOcean, and every size
// is x86. Without SSHKeys, no login is possible and no root password is mailed.
//
// When the answer is lost, the Droplet is looked for several times before
// anything is sent again. A create that fails removes what it made, for which
// it may take up to half a minute beyond its context.
func (d *DigitalOcean) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	const op = "create server"
	if err := d.checkOpts(op, opts); err != nil {
		return "", "", err
	}
	id := identityOf(opts)
	leave, err := d.creating.enter(ctx, id.key)
	if err != nil {
		return "", "", d.located(op, err)
	}
	defer leave()
	if err := d.checkFit(ctx, op, opts); err != nil {
		return "", "", err
	}
	if !id.own {
		s, found, err := d.earlier(ctx, op, opts, id)
		if err != nil || found {
			return doServerID(s, found), s.ipv4(), err
		}
	}
	made := doMade{mark: d.mark(opts, id, time.Now())}
	s, err := d.create(ctx, opts, id, &made)
	if err != nil {
		return "", "", d.undo(ctx, opts, id, &made, err)
	}
	return doID(s.ID), s.ipv4(), nil
}

func doServerID(s doDroplet, found bool) string {
	if !found {
		return ""
	}
	return doID(s.ID)
}

// located says where an error of the transport's own happened.
func (d *DigitalOcean) located(op string, err error) error {
	var e *ProviderError
	if errors.As(err, &e) {
		e.Provider, e.Op = "digitalocean", op
	}
	return err
}

// doMade is what one CreateServer has made so far for its server alone.
type doMade struct {
	mark     doCreateMark
	tag      bool // the tag of the create may exist
	server   *doDroplet
	firewall *doFirewall
	unclear  bool // a server may have been made that is not known
}

// checkOpts holds the rules that need no call.
func (d *DigitalOcean) checkOpts(op string, opts CreateOpts) error {
	for _, err := range []error{
		checkHostName(opts.Name),
		checkWord("region", opts.Region),
		checkWord("size", opts.Size),
		checkUserData(opts.UserData, doUserDataLimit),
		d.labels.check(opts.Labels),
		checkDOLabels(opts.Labels),
		checkCIDRs(opts.SSHSourceCIDRs),
		checkArchitecture(opts.Architecture),
	} {
		if err != nil {
			return invalidError("digitalocean", op, "%v", err)
		}
	}
	if opts.Image != "" {
		if err := checkWord("image", opts.Image); err != nil {
			return invalidError("digitalocean", op, "%v", err)
		}
	}
	switch {
	case opts.Architecture == "arm":
		return d.fail(ErrInvalid, op, "leave the architecture out", "DigitalOcean has no arm sizes")
	case opts.DiskGB < 0:
		return invalidError("digitalocean", op, "a disk of %d GB", opts.DiskGB)
	case len(d.markTag(d.mark(opts, identityOf(opts), time.Now()))) > doMostTag:
		return invalidError("digitalocean", op, "the labels that begin with %q are too long together: they share a tag of %d characters", d.labels.short+"-", doMostTag)
	}
	for _, t := range d.tagsFor(opts, "") {
		if len(t) > doMostTag {
			return invalidError("digitalocean", op, "label %q is longer than a tag, %d characters", clip(t, 80), doMostTag)
		}
	}
	for _, k := range opts.SSHKeys {
		if _, _, err := parsePublicKey(k); err != nil {
			return invalidError("digitalocean", op, "%v", err)
		}
	}
	return nil
}

// checkFit looks at the size, only when something was asked of its disk.
func (d *DigitalOcean) checkFit(ctx context.Context, op string, opts CreateOpts) error {
	if opts.DiskGB == 0 {
		return nil
	}
	s, err := d.sizes.get(ctx, opts.Size, func(ctx context.Context) (doSize, error) { return d.size(ctx, op, opts.Size) })
	if err != nil {
		return err
	}
	return d.fits(op, s, opts)
}

func (d *DigitalOcean) fits(op string, s doSize, opts CreateOpts) error {
	if opts.DiskGB != 0 && opts.DiskGB != s.DiskGB {
		return d.fail(ErrInvalid, op, "leave the disk size out, or choose another size",
			"the disk of size %q has %d GB and cannot be chosen, asked for were %d", s.Slug, s.DiskGB, opts.DiskGB)
	}
	return nil
}

// earlier finds the Droplet that a call with the same key made. A key that
// this Provisioner has seen with another name is looked for among all.
func (d *DigitalOcean) earlier(ctx context.Context, op string, opts CreateOpts, id identity) (doDroplet, bool, error) {
	query := url.Values{"name": {opts.Name}}
	if d.used.use(id.key, opts.Name) {
		query = url.Values{"tag_name": {d.managedTag()}}
	}
	return d.look(ctx, op, query, opts.Name, id)
}

// look finds the Droplet of a create among those of a list. Of two, which only
// a lost answer can lead to, it is the older one.
func (d *DigitalOcean) look(ctx context.Context, op string, query url.Values, name string, id identity) (doDroplet, bool, error) {
	list, err := doList[doDroplets](ctx, d, op, "/v2/droplets", query)
	if err != nil {
		return doDroplet{}, false, err
	}
	slices.SortFunc(list, func(a, b doDroplet) int { return int(a.ID - b.ID) })
	for _, s := range list {
		m, tag, ok := d.markOf(s.Tags)
		if !ok || m.key != id.key || !d.isOurs(s.Tags) {
			continue
		}
		if m.params != id.params || s.Name != name {
			return doDroplet{}, false, d.otherParams(op, "server", doID(s.ID))
		}
		d.tagsOf.put(doID(s.ID), tag)
		return s, true, nil
	}
	return doDroplet{}, false, nil
}

func (d *DigitalOcean) otherParams(op, kind, id string) error {
	return d.fail(ErrConflict, op, "use a new key for a new create, or repeat the old one with its own options",
		"%s %s was made with this idempotency key and other options", kind, id)
}

// create gathers what the request names and places the Droplet. What was
// remembered can be gone: then it is gathered anew, once.
func (d *DigitalOcean) create(ctx context.Context, opts CreateOpts, id identity, made *doMade) (doDroplet, error) {
	req := doCreateDroplet{
		Name: opts.Name, Region: opts.Region, Size: opts.Size, Image: doImageRef(opts.Image), UserData: opts.UserData, IPv6: true,
	}
	if err := d.gather(ctx, &req, opts); err != nil {
		return doDroplet{}, err
	}
	if opts.AllowSSHInbound {
		if err := d.sshFirewall(ctx, opts, id, made); err != nil {
			return doDroplet{}, err
		}
	}
	req.Tags = d.tagsFor(opts, d.markTag(made.mark))
	made.tag = true
	s, err := d.place(ctx, req, id, made)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		before := req
		d.forgetKeys(opts)
		if err := d.gather(ctx, &req, opts); err != nil {
			return doDroplet{}, err
		}
		if !slices.Equal(before.SSHKeys, req.SSHKeys) {
			s, err = d.place(ctx, req, id, made)
		}
	}
	return s, err
}

// doImageRef is a number for an image of the account, a slug for all others.
func doImageRef(image string) any {
	if image == "" {
		return doImageSlug
	}
	if n, err := strconv.ParseInt(image, 10, 64); err == nil && n > 0 {
		return n
	}
	return image
}

// gather makes sure of the firewall and fills in the ids of keys.
func (d *DigitalOcean) gather(ctx context.Context, req *doCreateDroplet, opts CreateOpts) (err error) {
	if err := d.sharedFirewall(ctx); err != nil {
		return err
	}
	req.SSHKeys, err = d.sshKeys(ctx, opts.SSHKeys)
	return err
}

// place sends the create and makes sure of its outcome. Nothing at
// DigitalOcean makes two creates one, so that after a lost answer it is looked
// for the Droplet, several times, before the create is sent again.
func (d *DigitalOcean) place(ctx context.Context, req doCreateDroplet, id identity, made *doMade) (doDroplet, error) {
	for try := 1; ; try++ {
		s, err := d.post(ctx, req)
		if err == nil {
			made.server, made.unclear = &s, false
			d.tagsOf.put(doID(s.ID), d.markTag(made.mark))
			return s, nil
		}
		if !unclear(err) {
			return doDroplet{}, err
		}
		made.unclear = true
		s, found, lookErr := d.lookAfter(ctx, req.Name, id)
		switch {
		case lookErr != nil:
			return doDroplet{}, unknownOutcome(err, lookErr, id)
		case found:
			made.server, made.unclear = &s, false
			return s, nil
		case try >= createTries || ctx.Err() != nil:
			return doDroplet{}, err
		}
	}
}

// lookAfter looks several times for a Droplet whose create had no answer.
func (d *DigitalOcean) lookAfter(ctx context.Context, name string, id identity) (doDroplet, bool, error) {
	for n := 1; ; n++ {
		s, found, err := d.look(ctx, "look for the server", url.Values{"name": {name}}, name, id)
		if err != nil || found || n == doLooks {
			return s, found, err
		}
		if wait := pauseBefore(n+1, 0, 0); !fits(ctx, wait) || sleep(ctx, wait) != nil {
			return doDroplet{}, false, nil
		}
	}
}

func (d *DigitalOcean) post(ctx context.Context, req doCreateDroplet) (doDroplet, error) {
	var one doOneDroplet
	err := d.api.do(ctx, call{
		op: "create server", method: http.MethodPost, path: "/v2/droplets", body: req,
		secrets: secretWords(req.UserData, append(req.Tags, req.Name, req.Size, req.Region)...),
	}, &one)
	if err != nil {
		return doDroplet{}, err
	}
	if one.Droplet == nil || one.Droplet.ID <= 0 {
		return doDroplet{}, d.fail(ErrUnavailable, "create server", "", "the answer names no Droplet")
	}
	return *one.Droplet, nil
}
