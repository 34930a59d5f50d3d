package provision

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// Preflight.

// Preflight tells whether a create with these options would be refused, and
// makes nothing: the options themselves, the credential, whether the account is
// active and has room for one Droplet more, whether the token may make
// Droplets, the region, whether the size is sold there, the image, that the
// key was not used with other options, and the SSH keys that are given by
// name.
//
// What it cannot see: whether the token has every scope that a create and a
// delete need, and whether the size is sold out a moment later.
func (d *DigitalOcean) Preflight(ctx context.Context, opts CreateOpts) error {
	const op = "preflight"
	if err := d.checkOpts(op, opts); err != nil {
		return err
	}
	id := identityOf(opts)
	made := false
	if !id.own {
		var err error
		if _, made, err = d.look(ctx, op, url.Values{"name": {opts.Name}}, opts.Name, id); err != nil {
			return err
		}
	}
	if err := d.checkAccount(ctx, op, made); err != nil {
		return err
	}
	if err := d.checkMayWrite(ctx, op); err != nil {
		return err
	}
	s, err := d.size(ctx, op, opts.Size)
	if err != nil {
		return err
	}
	if !s.soldIn(opts.Region) {
		if err := d.checkRegion(ctx, op, opts.Region); err != nil {
			return err
		}
		return d.fail(ErrCapacity, op, hintElsewhere, "size %q is not sold in %s now", opts.Size, opts.Region)
	}
	if err := d.fits(op, s, opts); err != nil {
		return err
	}
	if err := d.checkImage(ctx, op, opts); err != nil {
		return err
	}
	for _, k := range opts.SSHKeys {
		if _, isText, _ := parsePublicKey(k); isText {
			continue
		}
		if _, err := d.sshKey(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// checkAccount looks at the account and its limit. made says that the server
// is there already, so that no further one will be made.
func (d *DigitalOcean) checkAccount(ctx context.Context, op string, made bool) error {
	var a doAccount
	if err := d.get(ctx, op, "/v2/account", nil, &a); err != nil {
		return err
	}
	if a.Account.Status == "locked" {
		return d.fail(ErrForbidden, op, "look at what DigitalOcean wrote to the account's owner, or ask its support",
			"the account is locked: %s", cmp.Or(a.Account.StatusMessage, "no reason is given"))
	}
	if a.Account.DropletLimit <= 0 || made {
		return nil
	}
	var page doDroplets
	if err := d.get(ctx, op, "/v2/droplets", url.Values{"page": {"1"}, "per_page": {"1"}}, &page); err != nil {
		return err
	}
	if page.Meta.Total != nil && *page.Meta.Total >= a.Account.DropletLimit {
		return d.fail(ErrQuota, op, hintDOLimit, "the account has %d Droplets of at most %d", *page.Meta.Total, a.Account.DropletLimit)
	}
	return nil
}

// checkMayWrite finds a token that may not make Droplets by a create that can
// have no effect: it has no size, no image and a name that is refused. A token
// without the scope is told so before the request is looked at. Any other
// answer is no objection.
func (d *DigitalOcean) checkMayWrite(ctx context.Context, op string) error {
	err := d.api.do(ctx, call{
		op: op, method: http.MethodPost, path: "/v2/droplets", body: struct {
			Name string `json:"name"`
		}{"_"}, harmless: true,
	}, nil)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrUnauthorized) || ctx.Err() != nil {
		return err
	}
	return nil
}

func (d *DigitalOcean) checkImage(ctx context.Context, op string, opts CreateOpts) error {
	name := cmp.Or(opts.Image, doImageSlug)
	var one doOneImage
	err := d.get(ctx, op, "/v2/images/"+url.PathEscape(name), nil, &one)
	switch {
	case errors.Is(err, ErrNotFound):
		return d.fail(ErrInvalid, op, "", "there is no image %q", name)
	case err != nil:
		return err
	case one.Image == nil || one.Image.Status != "" && one.Image.Status != "available":
		return d.fail(ErrInvalid, op, "", "image %q cannot be used", name)
	case len(one.Image.Regions) > 0 && !slices.Contains(one.Image.Regions, opts.Region):
		_, numErr := strconv.ParseInt(name, 10, 64)
		hint := ""
		if numErr == nil {
			hint = "add the image to that region (Control Panel: Images)"
		}
		return d.fail(ErrInvalid, op, hint, "image %q is not in region %s", name, opts.Region)
	}
	return nil
}
