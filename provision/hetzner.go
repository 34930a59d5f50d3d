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

// Each provider's files tell the same story in the same order: credential,
// wire types, errors, regions, sizes, create, get, delete, list, audit,
// preflight.

// Credential.

const (
	hetznerEndpoint      = "https://api.hetzner.cloud/v1"
	hetznerUserDataLimit = 32 << 10
	hetznerTokenLength   = 64

	// rememberFor is how long the ids of shared things are trusted before they
	// are looked at again.
	rememberFor = 10 * time.Minute
	// rememberFacts is how long what hardly ever changes is kept: the
	// account's currency, the architecture of a server type.
	rememberFacts = 24 * time.Hour
)

// Hetzner implements Provisioner, Lister, Auditor and Preflighter against the
// Hetzner Cloud API (https://docs.hetzner.cloud), token auth, no SDK.
//
// A create is one request once the account's shared things are known: a
// firewall without rules, and an SSH key that nobody holds, which keeps
// Hetzner from mailing a root password. Both are made at the first create,
// looked at again every ten minutes, and stay; neither costs anything.
//
// Names are unique in a Hetzner project, and a create is idempotent by its
// name together with the label of its key. A repeat under another name is
// recognised as one as long as the first was made by this Provisioner.
type Hetzner struct {
	api    *apiClient
	labels labeller
	logger *slog.Logger

	used      usedKeys
	firewalls *memory[int64]  // the shared firewall, by its name
	keys      *memory[int64]  // SSH keys: "name:…", "fingerprint:…", and the shared one
	types     *memory[hzType] // server types by name
	currency  *memory[string] // one entry
}

var (
	_ Provisioner = (*Hetzner)(nil)
	_ Lister      = (*Hetzner)(nil)
	_ Auditor     = (*Hetzner)(nil)
	_ Preflighter = (*Hetzner)(nil)
)

// NewHetzner returns a Hetzner provisioner authenticating with token.
func NewHetzner(token string) *Hetzner { return newHetzner(token, Options{}) }

func openHetzner(credential string, opts Options) (Provisioner, error) {
	if err := checkToken(strings.TrimSpace(credential)); err != nil {
		var e *ProviderError
		if errors.As(err, &e) {
			e.Provider, e.Op = "hetzner", "open"
			if strings.TrimSpace(credential) == "" {
				e.Hint = "put an API token of the project into HCLOUD_TOKEN"
			}
		}
		return nil, err
	}
	return newHetzner(credential, opts), nil
}

func newHetzner(token string, opts Options) *Hetzner {
	// A token from a file comes with a line break.
	token = strings.TrimSpace(token)
	return &Hetzner{
		api: newAPIClient(apiConfig{
			provider:  "hetzner",
			endpoint:  opts.endpointOr(hetznerEndpoint),
			options:   opts,
			token:     staticToken(token),
			classify:  hetznerClassify(len(token)),
			requestID: "X-Correlation-Id",
			pause:     refillPause,
		}),
		labels:    labeller{short: opts.shortName(), extra: opts.Labels},
		logger:    opts.logger().With(slog.String("provider", "hetzner")),
		used:      usedKeys{limit: 1024},
		firewalls: newMemory[int64](rememberFor),
		keys:      newMemory[int64](rememberFor),
		types:     newMemory[hzType](rememberFacts),
		currency:  newMemory[string](rememberFacts),
	}
}

// fail is an error of our own making, in the form of the provider's.
func (h *Hetzner) fail(class error, op, hint, format string, args ...any) *ProviderError {
	return &ProviderError{Provider: "hetzner", Op: op, Class: class, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// parseID reads a server's id. One that is none is ErrInvalid, never "gone".
func (h *Hetzner) parseID(op, what, id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != id {
		return 0, invalidError("hetzner", op, "%q is no %s id: a Hetzner id is a number", clip(id, 60), what)
	}
	return n, nil
}

func hzID(id int64) string { return strconv.FormatInt(id, 10) }

func (h *Hetzner) get(ctx context.Context, op, path string, query url.Values, out any) error {
	return h.api.do(ctx, call{op: op, method: http.MethodGet, path: path, query: query}, out)
}

// remove deletes one thing. One that is gone already is no error.
func (h *Hetzner) remove(ctx context.Context, op, path string) error {
	err := h.api.do(ctx, call{op: op, method: http.MethodDelete, path: path}, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Regions.

// ListRegions calls GET /locations, following every page. A region's ID is
// the location's name (fsn1), its Name the city and country.
func (h *Hetzner) ListRegions(ctx context.Context) ([]Region, error) {
	locations, err := hzList[hzLocations](ctx, h, "list regions", "/locations", nil)
	if err != nil {
		return nil, err
	}
	regions := make([]Region, 0, len(locations))
	for _, l := range locations {
		regions = append(regions, Region{ID: l.Name, Name: l.title()})
	}
	return regions, nil
}

func (l hzLocation) title() string {
	switch {
	case l.City != "" && l.Country != "":
		return l.City + ", " + l.Country
	case l.Description != "":
		return l.Description
	}
	return l.Name
}
