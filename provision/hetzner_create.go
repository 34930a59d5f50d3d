package provision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Create.

const (
	hetznerImage = "ubuntu-24.04"

	// createTries is how often a create is sent in all when its answer is lost
	// and no server is found.
	createTries = 3
	// nameTries is how often it is sent in all while the name is still held by
	// a server that is being deleted: nothing comes of such a call.
	nameTries = 6
	// cleanUpTime is how long the removal of what a failed create made may take
	// beyond the caller's context.
	cleanUpTime = 30 * time.Second
)

// CreateServer calls POST /servers: one request, once the account's shared
// things are known. The firewall is part of it, so that the server is closed
// from its first second, and its answer has the IPv4 address.
//
// The image is by default ubuntu-24.04, in the architecture of the size. SSH
// keys that are given as text are uploaded and stay in the project. DiskGB
// cannot be chosen at Hetzner. Without SSHKeys, no login is possible and no
// root password is mailed.
//
// When the answer is lost, the server is looked up by its name and the label
// of its key before anything is sent again. A create that fails removes what
// it made, for which it may take up to half a minute beyond its context.
func (h *Hetzner) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	if err := h.checkOpts("create server", opts); err != nil {
		return "", "", err
	}
	id := identityOf(opts)
	if !id.own && h.used.use(id.key, opts.Name) {
		if err := h.refuseOtherName(ctx, opts, id); err != nil {
			return "", "", err
		}
	}
	if err := h.checkFit(ctx, "create server", opts); err != nil {
		return "", "", err
	}
	var made made
	srv, err := h.create(ctx, opts, id, &made)
	if err != nil {
		return "", "", h.undo(ctx, opts, id, &made, err)
	}
	return hzID(srv.ID), srv.ipv4(), nil
}

// made is what one CreateServer has made so far for its server alone.
type made struct {
	server   *hzServer
	firewall *hzFirewall
	unclear  bool // a server may have been made that is not known
}

// checkOpts holds the rules that need no call.
func (h *Hetzner) checkOpts(op string, opts CreateOpts) error {
	for _, err := range []error{
		checkHostName(opts.Name),
		checkWord("region", opts.Region),
		checkWord("size", opts.Size),
		checkUserData(opts.UserData, hetznerUserDataLimit),
		h.labels.check(opts.Labels),
		checkCIDRs(opts.SSHSourceCIDRs),
		checkArchitecture(opts.Architecture),
	} {
		if err != nil {
			return invalidError("hetzner", op, "%v", err)
		}
	}
	if opts.Image != "" {
		if err := checkWord("image", opts.Image); err != nil {
			return invalidError("hetzner", op, "%v", err)
		}
	}
	if opts.DiskGB < 0 {
		return invalidError("hetzner", op, "a disk of %d GB", opts.DiskGB)
	}
	for _, k := range opts.SSHKeys {
		if _, _, err := parsePublicKey(k); err != nil {
			return invalidError("hetzner", op, "%v", err)
		}
	}
	return nil
}

// checkFit looks at the size, only when something was asked of it.
func (h *Hetzner) checkFit(ctx context.Context, op string, opts CreateOpts) error {
	if opts.Architecture == "" && opts.DiskGB == 0 {
		return nil
	}
	t, err := h.types.get(ctx, opts.Size, func(ctx context.Context) (hzType, error) {
		return h.serverType(ctx, op, opts.Size)
	})
	if err != nil {
		return err
	}
	return h.fits(op, t, opts)
}

func (h *Hetzner) fits(op string, t hzType, opts CreateOpts) error {
	if opts.Architecture != "" && opts.Architecture != t.Architecture {
		return h.fail(ErrInvalid, op, "leave the architecture out, or choose a size that has it",
			"size %q is %s, asked for was %s", t.Name, t.Architecture, opts.Architecture)
	}
	if opts.DiskGB != 0 && opts.DiskGB != t.DiskGB {
		return h.fail(ErrInvalid, op, "leave the disk size out, or choose another size",
			"the disk of size %q has %d GB and cannot be chosen, asked for were %d", t.Name, t.DiskGB, opts.DiskGB)
	}
	return nil
}

// create gathers what the request names and places the server. What was
// remembered can be gone: then it is gathered anew, once.
func (h *Hetzner) create(ctx context.Context, opts CreateOpts, id identity, made *made) (hzServer, error) {
	req := hzCreateServer{
		Name: opts.Name, ServerType: opts.Size, Image: opts.Image, Location: opts.Region,
		UserData: opts.UserData, Labels: h.labels.own(opts, id),
		PublicNet: hzPublicNet{EnableIPv4: true, EnableIPv6: true}, StartAfterCreate: true,
	}
	if req.Image == "" {
		req.Image = hetznerImage
	}
	var ssh *hzFirewall
	if opts.AllowSSHInbound {
		f, err := h.sshFirewall(ctx, opts, id, made)
		if err != nil {
			return hzServer{}, err
		}
		ssh = &f
	}
	if err := h.gather(ctx, &req, opts, ssh); err != nil {
		return hzServer{}, err
	}
	srv, err := h.place(ctx, req, id, made)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		before := req
		h.forget(opts)
		if err := h.gather(ctx, &req, opts, ssh); err != nil {
			return hzServer{}, err
		}
		if !slices.Equal(before.Firewalls, req.Firewalls) || !slices.Equal(before.SSHKeys, req.SSHKeys) {
			srv, err = h.place(ctx, req, id, made)
		}
	}
	if err != nil {
		return hzServer{}, err
	}
	if err := h.checkClosed(srv, req, made); err != nil {
		return hzServer{}, err
	}
	if ssh != nil {
		if err := h.nameServer(ctx, *ssh, srv.ID); err != nil {
			return hzServer{}, err
		}
	}
	return srv, nil
}

// gather fills in the ids of firewalls and keys.
func (h *Hetzner) gather(ctx context.Context, req *hzCreateServer, opts CreateOpts, ssh *hzFirewall) error {
	shared, err := h.sharedFirewall(ctx)
	if err != nil {
		return err
	}
	req.Firewalls = []hzFirewallRef{{Firewall: shared}}
	if ssh != nil {
		req.Firewalls = append(req.Firewalls, hzFirewallRef{Firewall: ssh.ID})
	}
	req.SSHKeys, err = h.sshKeys(ctx, opts.SSHKeys)
	return err
}

// forget drops the ids that a create of these options remembers.
func (h *Hetzner) forget(opts CreateOpts) {
	h.firewalls.forgetAll()
	if len(opts.SSHKeys) == 0 {
		h.keys.forget(roleNoLogin)
		return
	}
	for _, k := range opts.SSHKeys {
		h.keys.forget("name:" + k)
		if key, isText, err := parsePublicKey(k); isText && err == nil {
			h.keys.forget("fingerprint:" + key.fingerprint)
		}
	}
}

// place sends the create and makes sure of its outcome: names are unique, so
// that whatever happened to the answer, the name tells. At most one server
// can come of it, however often it is sent.
func (h *Hetzner) place(ctx context.Context, req hzCreateServer, id identity, made *made) (hzServer, error) {
	for try := 1; ; try++ {
		srv, err := h.postServer(ctx, req)
		if err == nil {
			made.server, made.unclear = &srv, false
			return srv, nil
		}
		taken := hasCode(err, "uniqueness_error")
		if !taken && !unclear(err) {
			return hzServer{}, err
		}
		made.unclear = made.unclear || !taken
		found, ok, lookErr := h.serverByName(ctx, req.Name)
		switch {
		case lookErr != nil:
			return hzServer{}, unknownOutcome(err, lookErr, id)
		case ok && found.Status != "deleting":
			return found, h.take(found, id, made)
		case ok:
			err = h.fail(ErrUnavailable, "create server", "try again in a moment",
				"the name %q still belongs to server %d, which is being deleted", req.Name, found.ID)
		case taken:
			err = h.fail(ErrUnavailable, "create server", "try again in a moment, with the same idempotency key",
				"the name %q is taken, and no server of that name is to be seen", req.Name)
		}
		// Not there, not there any more, or not there yet: after a pause, the
		// name tells again.
		wait, tries := pauseBefore(try+1, 0, 0), createTries
		if ok || taken {
			tries = nameTries
		}
		if try >= tries || !fits(ctx, wait) || sleep(ctx, wait) != nil {
			return hzServer{}, err
		}
	}
}

func (h *Hetzner) postServer(ctx context.Context, req hzCreateServer) (hzServer, error) {
	var one hzOneServer
	err := h.api.do(ctx, call{
		op: "create server", method: http.MethodPost, path: "/servers", body: req,
		secrets: secretWords(req.UserData, req.Name, req.ServerType, req.Image, req.Location),
	}, &one)
	if err != nil {
		return hzServer{}, err
	}
	if one.Server == nil || one.Server.ID <= 0 {
		return hzServer{}, h.fail(ErrUnavailable, "create server", "", "the answer names no server")
	}
	return *one.Server, nil
}

func (h *Hetzner) serverByName(ctx context.Context, name string) (hzServer, bool, error) {
	list, err := hzList[hzServers](ctx, h, "look for the server", "/servers", url.Values{"name": {name}})
	if err != nil {
		return hzServer{}, false, err
	}
	for _, s := range list {
		if strings.EqualFold(s.Name, name) { // host names are the same in either case
			return s, true, nil
		}
	}
	return hzServer{}, false, nil
}

// unknownOutcome says that neither the create nor the look after it had an
// answer.
func unknownOutcome(err, lookErr error, id identity) error {
	var e, look *ProviderError
	if !errors.As(err, &e) || !errors.As(lookErr, &look) {
		return lookErr
	}
	both := *e
	both.Message = fmt.Sprintf("%s; whether a server was made is not known, since looking for it failed too: %s", oneLine(e.Message), oneLine(look.Message))
	both.Hint = "repeat with the same idempotency key: it finds the server, if there is one"
	if id.own {
		both.Hint = "the audit finds the server, if there is one; with an idempotency key, a repeat would"
	}
	both.cause = errors.Join(e.cause, look.cause)
	return &both
}

// take adopts a server that was found. One of a create without key can only be
// this call's own; with a key, it and its firewall may be an earlier call's,
// and stay whatever happens next.
func (h *Hetzner) take(s hzServer, id identity, made *made) error {
	made.unclear = false
	if err := h.adopt(s, id); err != nil {
		return err
	}
	if id.own {
		made.server = &s
	} else {
		made.firewall = nil
	}
	return nil
}

// adopt tells whether a server that holds the name is this create's.
func (h *Hetzner) adopt(s hzServer, id identity) error {
	const op = "create server"
	if !h.labels.isOurs(s.Labels) || s.Labels[h.labels.key(labelKey)] != id.key {
		return h.fail(ErrConflict, op, "choose another name, or delete that server",
			"the name %q belongs to server %d, which another create made", s.Name, s.ID)
	}
	if s.Labels[h.labels.key(labelParams)] != id.params {
		return h.otherParams(op, "server", s.ID)
	}
	return nil
}

func (h *Hetzner) otherParams(op, kind string, id int64) error {
	return h.fail(ErrConflict, op, "use a new key for a new create, or repeat the old one with its own options",
		"%s %d was made with this idempotency key and other options", kind, id)
}

// refuseOtherName is for a key that was used with another name before.
func (h *Hetzner) refuseOtherName(ctx context.Context, opts CreateOpts, id identity) error {
	selector := h.labels.selector(map[string]string{h.labels.key(labelKey): id.key})
	list, err := hzList[hzServers](ctx, h, "create server", "/servers", url.Values{"label_selector": {selector}})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name != opts.Name {
			return h.otherParams("create server", "server", s.ID)
		}
	}
	return nil
}

// checkClosed makes sure that the server has the firewalls that were asked
// for: no server is handed out open.
func (h *Hetzner) checkClosed(s hzServer, req hzCreateServer, made *made) error {
	for _, want := range req.Firewalls {
		if slices.Contains(s.PublicNet.Firewalls, hzApplied{ID: want.Firewall}) {
			continue
		}
		if made.server != nil {
			return h.fail(ErrUnavailable, "create server", "try again", "server %d came without firewall %d, and is removed", s.ID, want.Firewall)
		}
		return h.fail(ErrConflict, "create server", "attach the firewall, or delete the server",
			"server %d was made by an earlier call with this key, and firewall %d is not attached to it", s.ID, want.Firewall)
	}
	return nil
}
