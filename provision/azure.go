package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// Credential.

const (
	azureEndpoint = "https://management.azure.com"
	// azureUserDataLimit is what osProfile.customData holds: 87,380 characters
	// of base64.
	azureUserDataLimit = 65535
)

// The versions of the resource providers' APIs that are spoken here, each
// pinned, so that a newer default changes nothing.
const (
	azCompute     = "2025-04-01"
	azDisks       = "2025-01-02"
	azSkus        = "2021-07-01"
	azNetwork     = "2025-01-01"
	azGroups      = "2021-04-01"
	azLocations   = "2022-12-01"
	azPermissions = "2022-04-01"
)

// Azure implements Provisioner, Lister, Auditor, Preflighter, ConsoleReader
// and Pricer against the Azure Resource Manager REST API
// (https://learn.microsoft.com/en-us/rest/api/compute/), OAuth2
// client-credentials auth, no SDK. Every request asks the token source for an
// access token; one is fetched when the last is about to expire.
//
// A server is a virtual machine, a network interface, a public IP address and
// a disk, and a network security group when SSH is asked for. All have names
// that follow from the server's name and the idempotency key, so that making
// them twice makes them once, and what a failed create left is found by name.
// The resource group, and for each region a virtual network with one subnet,
// are made at the first create, looked at again every ten minutes, and stay;
// none of them costs anything. After that a create takes four requests, three
// without an idempotency key.
//
// A server's id is the name of its virtual machine.
type Azure struct {
	api    *apiClient
	tokens *azTokens
	cred   azureCredential
	labels labeller
	logger *slog.Logger
	plain  *http.Client // for what must not see a token: prices, console logs

	endpoint string // of the API, without a slash at its end
	prices   string // address of the price list; empty: there is none

	used    usedKeys
	creates *azGates
	subnets *memory[string]           // id of the shared subnet, by region
	skus    *memory[map[string]azSku] // sizes by lower-case name, by region
	costs   *memory[map[string]Price] // by region
	nobody  func() (string, error)    // the public key that nobody holds
}

var (
	_ Provisioner   = (*Azure)(nil)
	_ Lister        = (*Azure)(nil)
	_ Auditor       = (*Azure)(nil)
	_ Preflighter   = (*Azure)(nil)
	_ ConsoleReader = (*Azure)(nil)
	_ Pricer        = (*Azure)(nil)
)

// NewAzure returns an Azure provisioner authenticating with credentialJSON: a
// client secret by default, or workload identity federation when
// credentialJSON sets federated_token_file instead.
//
//	{
//	  "tenant_id": "…", "client_id": "…", "subscription_id": "…",
//	  "client_secret": "…",            // or "federated_token_file": "/path"
//	  "resource_group": "…",           // default: the short name and "-nodes"
//	  "authority_host": "https://…",   // default: that of the endpoint's cloud
//	  "audience": "https://…"          // default: the endpoint's cloud
//	}
//
// The member names of `az ad sp create-for-rbac` are understood too.
func NewAzure(credentialJSON string) (*Azure, error) { return newAzure(credentialJSON, Options{}) }

func openAzure(credential string, opts Options) (Provisioner, error) {
	a, err := newAzure(credential, opts)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func newAzure(credentialJSON string, opts Options) (*Azure, error) {
	cred, err := parseAzureCredential(credentialJSON, opts)
	if err != nil {
		return nil, err
	}
	a := &Azure{
		cred:     cred,
		endpoint: cred.endpoint,
		prices:   cred.pricesAddress(),
		labels:   labeller{short: opts.shortName(), extra: opts.Labels},
		logger:   opts.logger().With(slog.String("provider", "azure")),
		plain:    httpClient(opts.HTTPClient),
		used:     usedKeys{limit: 1024},
		creates:  newAzGates(),
		subnets:  newMemory[string](rememberFor),
		skus:     newMemory[map[string]azSku](rememberFacts),
		costs:    newMemory[map[string]Price](rememberFacts),
		nobody:   sync.OnceValues(newNobodysRSAKey),
	}
	if isOpenHTTP(cred.authority) {
		a.logger.Warn("the authority host is not encrypted: whoever is on the way can read the client's secret", slog.String("host", hostOf(cred.authority)))
	}
	a.tokens = newAzTokens(cred, opts.HTTPClient)
	opts.HTTPClient = azClient(opts.HTTPClient)
	a.api = newAPIClient(apiConfig{
		provider:  "azure",
		endpoint:  cred.endpoint,
		options:   opts,
		token:     a.tokens.token,
		classify:  azureClassify,
		requestID: "X-Ms-Request-Id",
		pause:     refillPause,
	})
	return a, nil
}

// fail is an error of our own making, in the form of the provider's.
func (a *Azure) fail(class error, op, hint, format string, args ...any) *ProviderError {
	return &ProviderError{Provider: "azure", Op: op, Class: class, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// azName holds for the names of everything that is made here.
var azName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,78}[A-Za-z0-9])?$`)

// checkID refuses a server id that is none: it is ErrInvalid, never "gone".
func (a *Azure) checkID(op, what, id string) error {
	if !azName.MatchString(id) {
		return invalidError("azure", op, "%q is no %s id: an Azure id is the name of the resource", clip(id, 60), what)
	}
	return nil
}

// The paths of the API.

func (a *Azure) subscription() string { return "/subscriptions/" + url.PathEscape(a.cred.Subscription) }

func (a *Azure) group() string {
	return a.subscription() + "/resourceGroups/" + url.PathEscape(a.cred.Group)
}

func (a *Azure) vmPath(name string) string {
	return a.group() + "/providers/Microsoft.Compute/virtualMachines/" + name
}

func (a *Azure) networkPath(kind, name string) string {
	return a.group() + "/providers/Microsoft.Network/" + kind + "/" + name
}

func apiVersion(v string) url.Values { return url.Values{"api-version": {v}} }

// send does one call and decodes its answer into out, which may be nil. A
// token that the API takes for expired is fetched anew, once.
func (a *Azure) send(ctx context.Context, c call, out any) (*answer, error) {
	generation := a.tokens.generation()
	ans, err := a.exchange(ctx, c, out)
	var e *ProviderError
	if errors.As(err, &e) && e.Status == http.StatusUnauthorized && a.tokens.forget(generation) {
		return a.exchange(ctx, c, out)
	}
	return ans, err
}

func (a *Azure) get(ctx context.Context, op, path string, query url.Values, out any) error {
	_, err := a.send(ctx, call{op: op, method: http.MethodGet, path: path, query: query}, out)
	return err
}

func (a *Azure) put(ctx context.Context, op, path, version string, body, out any) (*answer, error) {
	return a.send(ctx, call{op: op, method: http.MethodPut, path: path, query: apiVersion(version), body: body}, out)
}

// Regions.

// ListRegions calls GET /subscriptions/{id}/locations, keeping only physical
// regions: Azure also lists logical ones, such as "europe", and its own
// staging places, where no server can be made. Whether a subscription may use
// a region shows in its sizes.
func (a *Azure) ListRegions(ctx context.Context) ([]Region, error) {
	const op = "list regions"
	locations, err := azList[azLocation](ctx, a, op, a.subscription()+"/locations", apiVersion(azLocations))
	if err != nil {
		return nil, err
	}
	regions := make([]Region, 0, len(locations))
	for _, l := range locations {
		if l.isRegion() {
			regions = append(regions, Region{ID: l.Name, Name: l.title()})
		}
	}
	return regions, nil
}

func (l azLocation) isRegion() bool {
	if !strings.EqualFold(l.Metadata.RegionType, "Physical") || l.Type != "" && !strings.EqualFold(l.Type, "Region") {
		return false
	}
	for _, staging := range []string{"stage", "stg", "euap"} {
		if strings.HasSuffix(l.Name, staging) {
			return false
		}
	}
	return l.Name != ""
}

func (l azLocation) title() string {
	if l.DisplayName == "" {
		return l.Name
	}
	return l.DisplayName
}
