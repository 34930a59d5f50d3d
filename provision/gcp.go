package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Credential.

// gcpUserDataLimit is what one value of an instance's metadata holds.
const gcpUserDataLimit = 256 << 10

// GCP implements Provisioner, Lister, Auditor, Preflighter, ConsoleReader and
// Pricer against the Compute Engine REST API
// (https://cloud.google.com/compute/docs/reference/rest/v1), a service account
// JSON key exchanged for an OAuth2 access token via JWT bearer auth, no SDK.
//
// The network named "default" lets SSH, RDP and ICMP in from everywhere, so
// servers are put into a network of their own, "<short>-nodes", which has no
// firewall rule: nothing comes in, not even from each other. It is made at the
// first create, looked at again every ten minutes, and stays; it costs nothing.
// After that a create is one request, and a second one when SSH is asked for.
//
// A server's id is "{zone}/{name}", where name is the server's name and a part
// of the idempotency key's hash.
type GCP struct {
	api    *apiClient
	tokens *gcpTokens
	key    gcpKey
	labels labeller
	logger *slog.Logger

	manager *apiClient // Resource Manager: the permissions
	billing *apiClient // Cloud Billing: the prices

	used     usedKeys
	networks *memory[bool]                      // the shared network is there
	types    *memory[gcpMachineType]            // by "zone/name"
	costs    *memory[map[string]Price]          // by zone
	skus     *memory[map[string][]gcpPricedSKU] // by region; one entry
}

var (
	_ Provisioner   = (*GCP)(nil)
	_ Lister        = (*GCP)(nil)
	_ Auditor       = (*GCP)(nil)
	_ Preflighter   = (*GCP)(nil)
	_ ConsoleReader = (*GCP)(nil)
	_ Pricer        = (*GCP)(nil)
)

// NewGCP returns a GCP provisioner authenticating with credentialJSON, a
// service account key's raw JSON content. The project ID is read from the key
// itself, not a separate field.
//
// The key's token_uri has to be Google's, unless Options.Endpoint names another
// cloud. Configurations of the type external_account are refused: they name
// addresses to call and programs to run.
func NewGCP(credentialJSON string) (*GCP, error) { return newGCP(credentialJSON, Options{}) }

func openGCP(credential string, opts Options) (Provisioner, error) {
	g, err := newGCP(credential, opts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func newGCP(credentialJSON string, opts Options) (*GCP, error) {
	key, err := parseGCPKey(credentialJSON, opts)
	if err != nil {
		return nil, err
	}
	if err := checkGCPLabels(opts.Labels); err != nil {
		return nil, invalidError("gcp", "open", "%v", err)
	}
	g := &GCP{
		key:      key,
		tokens:   newGCPTokens(key, opts.HTTPClient),
		labels:   labeller{short: opts.shortName(), extra: opts.Labels},
		logger:   opts.logger().With(slog.String("provider", "gcp")),
		used:     usedKeys{limit: 1024},
		networks: newMemory[bool](rememberFor),
		types:    newMemory[gcpMachineType](rememberFacts),
		costs:    newMemory[map[string]Price](rememberFacts),
		skus:     newMemory[map[string][]gcpPricedSKU](rememberFacts),
	}
	if isOpenHTTP(key.TokenURI) {
		g.logger.Warn("the token endpoint is not encrypted: whoever is on the way can read the access token", slog.String("host", hostOf(key.TokenURI)))
	}
	client := func(endpoint string) *apiClient {
		return newAPIClient(apiConfig{provider: "gcp", endpoint: endpoint, options: opts, token: g.tokens.token, classify: gcpClassify})
	}
	endpoint := opts.endpointOr(gcpEndpoint)
	g.api = client(endpoint)
	g.manager = client(gcpSibling(endpoint, "https://cloudresourcemanager.googleapis.com"))
	g.billing = client(gcpSibling(endpoint, "https://cloudbilling.googleapis.com"))
	return g, nil
}

// gcpSibling is the address of another of Google's APIs: beside the endpoint,
// when that is another cloud's.
func gcpSibling(endpoint, public string) string {
	if endpoint == gcpEndpoint {
		return public
	}
	return strings.TrimSuffix(endpoint, "/compute/v1")
}

// fail is an error of our own making, in the form of the provider's.
func (g *GCP) fail(class error, op, hint, format string, args ...any) *ProviderError {
	return &ProviderError{Provider: "gcp", Op: op, Class: class, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// gcpName holds for the names of everything, RFC 1035 in lower case.
var gcpName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// parseID takes a server's or a disk's id apart: "{zone}/{name}". One that is
// none is ErrInvalid, never "gone".
func (g *GCP) parseID(op, what, id string) (zone, name string, err error) {
	zone, name, ok := strings.Cut(id, "/")
	if !ok || !gcpName.MatchString(zone) || !gcpName.MatchString(name) {
		return "", "", invalidError("gcp", op, "%q is no %s id: at Google it is the zone, a slash, and the name", clip(id, 130), what)
	}
	return zone, name, nil
}

// The paths of the API.

func (g *GCP) project() string { return "/projects/" + url.PathEscape(g.key.Project) }

func (g *GCP) global(collection string) string { return g.project() + "/global/" + collection }

func (g *GCP) zonal(zone, collection string) string {
	return g.project() + "/zones/" + zone + "/" + collection
}

// lastPart is the name at the end of a resource's URL. The rest is opaque:
// the API writes one host and answers at another.
func lastPart(address string) string { return address[strings.LastIndexByte(address, '/')+1:] }

// send does one call. A token that the API does not take is fetched anew,
// once.
func (g *GCP) send(ctx context.Context, api *apiClient, c call, out any) error {
	generation := g.tokens.generation()
	err := api.do(ctx, c, out)
	var e *ProviderError
	if errors.As(err, &e) && e.Status == http.StatusUnauthorized && g.tokens.forget(generation) {
		return api.do(ctx, c, out)
	}
	return err
}

func (g *GCP) get(ctx context.Context, op, path string, query url.Values, out any) error {
	return g.send(ctx, g.api, call{op: op, method: http.MethodGet, path: path, query: query}, out)
}

// remove starts the removal of one thing. One that is gone already is no
// error, and no operation.
func (g *GCP) remove(ctx context.Context, op, path string) (started gcpOperation, err error) {
	err = g.send(ctx, g.api, call{op: op, method: http.MethodDelete, path: path}, &started)
	if errors.Is(err, ErrNotFound) {
		return gcpOperation{}, nil
	}
	return started, err
}

// gcpList reads every page of a list, or fails: it never returns a part. An
// empty page with a token is legal.
func gcpList[T any](ctx context.Context, g *GCP, api *apiClient, op, path string, query url.Values) ([]T, error) {
	all := []T{}
	query = cloneQuery(query)
	seen := map[string]bool{}
	for {
		var page gcpPage[T]
		if err := g.send(ctx, api, call{op: op, method: http.MethodGet, path: path, query: query}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextPageToken == "" {
			return all, nil
		}
		if seen[page.NextPageToken] {
			return nil, g.fail(ErrUnavailable, op, "", "the list leads from a page back to one that was read")
		}
		seen[page.NextPageToken] = true
		query.Set("pageToken", page.NextPageToken)
	}
}

func cloneQuery(query url.Values) url.Values {
	clone := url.Values{}
	for k, v := range query {
		clone[k] = slices.Clone(v)
	}
	return clone
}

// Regions.

// ListRegions returns GCP zones (e.g. us-central1-a), not regions: Compute
// Engine places an instance in a zone, and CreateServer/GetServer/DeleteServer
// all need that zone, so this interface's "region" maps to a GCE zone for this
// provider. Zones that are down or given up are left out.
func (g *GCP) ListRegions(ctx context.Context) ([]Region, error) {
	zones, err := gcpList[gcpZone](ctx, g, g.api, "list regions", g.project()+"/zones", nil)
	if err != nil {
		return nil, err
	}
	regions := make([]Region, 0, len(zones))
	for _, z := range zones {
		if z.isOpen() {
			regions = append(regions, Region{ID: z.Name, Name: z.title()})
		}
	}
	return regions, nil
}

func (z gcpZone) isOpen() bool {
	if z.Deprecated != nil && (z.Deprecated.State == "OBSOLETE" || z.Deprecated.State == "DELETED") {
		return false
	}
	return z.Status == "UP"
}

// title is the zone with its region's name, which the API does not put into
// words.
func (z gcpZone) title() string {
	return cmp.Or(strings.TrimSpace(z.Name+" ("+lastPart(z.Region)+")"), z.Name)
}
