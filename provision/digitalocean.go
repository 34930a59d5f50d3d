package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Credential.

const (
	doEndpoint      = "https://api.digitalocean.com"
	doUserDataLimit = 64 << 10

	// doRememberFirewall is short: nothing tells when somebody removed the
	// shared firewall, and a Droplet made without it would be open.
	doRememberFirewall = 2 * time.Minute
)

// DigitalOcean implements Provisioner, Lister, Auditor and Preflighter against
// the DigitalOcean API v2 (https://docs.digitalocean.com/reference/api/),
// token auth, no SDK.
//
// A create is two requests once the account's shared things are known: a look
// for a Droplet that an earlier call with the same key made, and the create
// itself. A create without key is one. The shared things are a firewall
// without inbound rules, which covers whatever carries the tag
// "managed-by:<short name>", and an SSH key that nobody holds, which keeps
// DigitalOcean from mailing a root password. Both stay; neither costs anything.
//
// Names are not unique at DigitalOcean, and there are tags instead of labels:
// single words of lower-case letters here, since case does not tell them
// apart. A label is the tag "key:value", and stays in the account. What serves
// one server alone (the hash of its key, the labels whose key begins with the
// short name) is one tag more, which goes with its server.
//
// A create is idempotent by its name and its key. A repeat under another name
// is recognised as one as long as the first was made by this Provisioner; two
// at the same moment are one as long as they go through this Provisioner.
type DigitalOcean struct {
	api    *apiClient
	labels labeller
	logger *slog.Logger

	used      usedKeys
	creating  gates           // one create of a key at a time
	tagsOf    *memory[string] // the create tag of a Droplet, by its id
	firewalls *memory[string] // the id of the shared firewall, by its name
	keys      *memory[int64]  // SSH keys: "name:…", "fingerprint:…", and the shared one
	sizes     *memory[doSize] // by slug
}

var (
	_ Provisioner = (*DigitalOcean)(nil)
	_ Lister      = (*DigitalOcean)(nil)
	_ Auditor     = (*DigitalOcean)(nil)
	_ Preflighter = (*DigitalOcean)(nil)
)

// NewDigitalOcean returns a DigitalOcean provisioner authenticating with
// token.
func NewDigitalOcean(token string) *DigitalOcean { return newDigitalOcean(token, Options{}) }

func openDigitalOcean(credential string, opts Options) (Provisioner, error) {
	if err := checkToken(strings.TrimSpace(credential)); err != nil {
		var e *ProviderError
		if errors.As(err, &e) {
			e.Provider, e.Op = "digitalocean", "open"
			if strings.TrimSpace(credential) == "" {
				e.Hint = "put a personal access token into DIGITALOCEAN_ACCESS_TOKEN"
			}
		}
		return nil, err
	}
	if err := checkDOLabels(opts.Labels); err != nil {
		return nil, invalidError("digitalocean", "open", "%v", err)
	}
	return newDigitalOcean(credential, opts), nil
}

func newDigitalOcean(token string, opts Options) *DigitalOcean {
	token = strings.TrimSpace(token)
	return &DigitalOcean{
		api: newAPIClient(apiConfig{
			provider: "digitalocean",
			// The tools of this provider take the address without the version;
			// with it is what people write.
			endpoint:  strings.TrimSuffix(opts.endpointOr(doEndpoint), "/v2"),
			options:   opts,
			token:     staticToken(token),
			classify:  doClassify(token),
			requestID: "X-Request-Id",
			pause:     slidingPause,
		}),
		labels:    labeller{short: opts.shortName(), extra: opts.Labels},
		logger:    opts.logger().With(slog.String("provider", "digitalocean")),
		used:      usedKeys{limit: 1024},
		tagsOf:    newMemory[string](rememberFacts),
		firewalls: newMemory[string](doRememberFirewall),
		keys:      newMemory[int64](rememberFor),
		sizes:     newMemory[doSize](rememberFor),
	}
}

// slidingPause is for a limit over the last hour, where reset is the moment
// when the oldest request leaves it and one more may go out. While a tenth of
// it is left there is no pause; below that it grows, until with nothing left
// requests wait for that moment.
func slidingPause(limit, remaining int, untilReset time.Duration) time.Duration {
	low := min(limit/10, 100)
	if limit <= 0 || remaining >= low || untilReset <= 0 {
		return 0
	}
	scarce := float64(low-max(remaining, 0)) / float64(low)
	return min(topPause, time.Duration(float64(untilReset)*scarce))
}

// fail is an error of our own making, in the form of the provider's.
func (d *DigitalOcean) fail(class error, op, hint, format string, args ...any) *ProviderError {
	return &ProviderError{Provider: "digitalocean", Op: op, Class: class, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// parseID reads a number that DigitalOcean gave. One that is none is
// ErrInvalid, never "gone".
func (d *DigitalOcean) parseID(op, what, id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != id {
		return 0, invalidError("digitalocean", op, "%q is no %s id: it is a number at DigitalOcean", clip(id, 60), what)
	}
	return n, nil
}

func doID(id int64) string { return strconv.FormatInt(id, 10) }

func (d *DigitalOcean) get(ctx context.Context, op, path string, query url.Values, out any) error {
	return d.api.do(ctx, call{op: op, method: http.MethodGet, path: path, query: query}, out)
}

// remove deletes one thing. One that is gone already is no error.
func (d *DigitalOcean) remove(ctx context.Context, op, path string) error {
	err := d.api.do(ctx, call{op: op, method: http.MethodDelete, path: path}, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Regions.

// ListRegions calls GET /v2/regions, following every page. A region's ID is
// its slug (fra1). One that takes no new Droplets is left out.
func (d *DigitalOcean) ListRegions(ctx context.Context) ([]Region, error) {
	all, err := doList[doRegions](ctx, d, "list regions", "/v2/regions", nil)
	if err != nil {
		return nil, err
	}
	regions := make([]Region, 0, len(all))
	for _, r := range all {
		if r.Available {
			regions = append(regions, Region{ID: r.Slug, Name: r.Name})
		}
	}
	return regions, nil
}
