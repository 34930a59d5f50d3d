package provision

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Preflight.

// Preflight tells whether a create with these options would be refused, and
// makes nothing: the options themselves, the credential, whether it may
// write, the location, whether the size is sold and available there and has
// the architecture, the image, that the name is free (or held by this very
// create), and the SSH keys that are given by name.
//
// What it cannot see: Hetzner shows a project's limits nowhere, so ErrQuota
// comes from the create alone; and a size that is available can be sold out a
// moment later.
func (h *Hetzner) Preflight(ctx context.Context, opts CreateOpts) error {
	const op = "preflight"
	if err := h.checkOpts(op, opts); err != nil {
		return err
	}
	if err := h.checkRegion(ctx, op, opts.Region); err != nil {
		return err
	}
	if err := h.checkMayWrite(ctx, op); err != nil {
		return err
	}
	t, err := h.checkSize(ctx, op, opts)
	if err != nil {
		return err
	}
	if err := h.checkImage(ctx, op, opts, t.Architecture); err != nil {
		return err
	}
	if err := h.checkName(ctx, op, opts); err != nil {
		return err
	}
	return h.checkKeyNames(ctx, opts.SSHKeys)
}

// checkMayWrite finds a read-only token by a write that can have no effect: it
// names an SSH key that cannot exist, since ids begin at 1. A token that may
// not write is told so before the key is looked for. Any other answer is no
// objection.
func (h *Hetzner) checkMayWrite(ctx context.Context, op string) error {
	err := h.api.do(ctx, call{
		op: op, method: http.MethodPut, path: "/ssh_keys/0", body: hzSetLabels{Labels: map[string]string{}},
	}, nil)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrUnauthorized) || ctx.Err() != nil {
		return err
	}
	return nil
}

func (h *Hetzner) checkSize(ctx context.Context, op string, opts CreateOpts) (hzType, error) {
	t, err := h.serverType(ctx, op, opts.Size)
	if err != nil {
		return t, err
	}
	offer := t.offer(opts.Region, time.Now())
	switch {
	case !offer.priced:
		return t, h.fail(ErrInvalid, op, "list the sizes of the region to see what there is", "size %q is not sold in %s", opts.Size, opts.Region)
	case !offer.sold && !offer.until.IsZero() && !time.Now().Before(offer.until):
		return t, h.fail(ErrInvalid, op, "list the sizes of the region to see what there is",
			"size %q is not sold in %s any more, since %s", opts.Size, opts.Region, offer.until.Format(time.DateOnly))
	case !offer.sold:
		return t, h.fail(ErrCapacity, op, hintElsewhere, "size %q is not available in %s now", opts.Size, opts.Region)
	}
	return t, h.fits(op, t, opts)
}

func (h *Hetzner) checkImage(ctx context.Context, op string, opts CreateOpts, architecture string) error {
	name := opts.Image
	if name == "" {
		name = hetznerImage
	}
	if n, err := strconv.ParseInt(name, 10, 64); err == nil {
		return h.checkImageID(ctx, op, n, architecture)
	}
	images, err := hzList[hzImages](ctx, h, op, "/images", url.Values{"name": {name}})
	if err != nil {
		return err
	}
	var have []string
	for _, i := range images {
		if i.Architecture == architecture && i.Status != "unavailable" {
			return nil
		}
		have = append(have, i.Architecture)
	}
	if len(have) == 0 {
		return h.fail(ErrInvalid, op, "", "there is no image %q", name)
	}
	return h.fail(ErrInvalid, op, "", "image %q is there for %s, size %q is %s", name, strings.Join(have, ", "), opts.Size, architecture)
}

func (h *Hetzner) checkImageID(ctx context.Context, op string, id int64, architecture string) error {
	var one hzOneImage
	err := h.get(ctx, op, "/images/"+hzID(id), nil, &one)
	switch {
	case errors.Is(err, ErrNotFound):
		return h.fail(ErrInvalid, op, "", "there is no image with id %d", id)
	case err != nil:
		return err
	case one.Image == nil || one.Image.Architecture != architecture:
		return h.fail(ErrInvalid, op, "choose an image of the size's architecture, or give it by name",
			"image %d is not made for %s", id, architecture)
	}
	return nil
}

// checkName lets a server of this very create pass: its repeat will find it.
func (h *Hetzner) checkName(ctx context.Context, op string, opts CreateOpts) error {
	s, found, err := h.serverByName(ctx, opts.Name)
	if err != nil || !found {
		return err
	}
	if s.Status == "deleting" {
		return h.fail(ErrUnavailable, op, "try again in a moment", "the name %q still belongs to server %d, which is being deleted", s.Name, s.ID)
	}
	return h.adopt(s, identityOf(opts))
}

// checkKeyNames finds the keys that are given by name. Those given as text are
// uploaded by the create.
func (h *Hetzner) checkKeyNames(ctx context.Context, keys []string) error {
	for _, k := range keys {
		if _, isText, _ := parsePublicKey(k); isText {
			continue
		}
		if _, err := h.sshKey(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
