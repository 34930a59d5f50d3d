package provision

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// DefaultShortName is what labels and shared things are named by when
// Options.ShortName is empty.
const DefaultShortName = "fleet"

// Options are the settings of a Provisioner; each has a default.
type Options struct {
	// Endpoint is the base address that the provider's own tools take, such
	// as the value of HCLOUD_ENDPOINT, with its version path. Default: the
	// provider's public API, see ProviderInfo.DefaultEndpoint.
	Endpoint string
	// HTTPClient sends the requests. Default: a client on
	// http.DefaultTransport. Redirects are never followed, whatever it says.
	HTTPClient *http.Client
	// ShortName is who makes the things: the value of the label managed-by and
	// the first part of label keys and of the names of shared things.
	// Lower-case letters, digits and hyphens, at most 32, beginning with a
	// letter. Default: DefaultShortName.
	ShortName string
	// Labels are put on everything that is made, and ListServers returns only
	// servers that carry them: the way to keep several fleets in one account.
	// Keys and values as in CreateOpts.Labels.
	Labels map[string]string
	// Logger gets one debug line per request and a warning for what needs
	// attention; never a credential. Default: nothing is logged.
	Logger *slog.Logger
}

// ProviderInfo describes a provider to people and to command lines.
type ProviderInfo struct {
	// Name is what Open takes.
	Name string
	// Title is the provider's own spelling.
	Title string
	// Credential says what Open's credential looks like, and where to get it.
	Credential string
	// CredentialEnv are the environment variables that hold the credential by
	// the convention of the provider's own tools, the usual one first. Where
	// several make up one credential, each is named.
	CredentialEnv []string
	// EndpointEnv is the environment variable by which the provider's own
	// tools are pointed at another endpoint; empty when there is none.
	EndpointEnv string
	// DefaultEndpoint is the public API; empty when it depends on the region.
	DefaultEndpoint string
	// UserDataLimit is the most bytes of user-data that the provider takes.
	UserDataLimit int
}

type openFunc func(credential string, opts Options) (Provisioner, error)

type provider struct {
	info ProviderInfo
	open openFunc // nil: known, and not part of this build
}

// providers has a row for each provider that this package speaks of.
func providers() []provider {
	return []provider{
		{open: openHetzner, info: ProviderInfo{
			Name: "hetzner", Title: "Hetzner Cloud",
			Credential:      "an API token of the project, read & write, 64 characters (Hetzner Console: project, Security, API tokens)",
			CredentialEnv:   []string{"HCLOUD_TOKEN"},
			EndpointEnv:     "HCLOUD_ENDPOINT",
			DefaultEndpoint: hetznerEndpoint,
			UserDataLimit:   hetznerUserDataLimit,
		}},
		{open: openDigitalOcean, info: ProviderInfo{
			Name: "digitalocean", Title: "DigitalOcean",
			Credential:      "a personal access token, dop_v1_ and 64 characters (Control Panel: API, Tokens)",
			CredentialEnv:   []string{"DIGITALOCEAN_ACCESS_TOKEN", "DIGITALOCEAN_TOKEN"},
			EndpointEnv:     "DIGITALOCEAN_API_URL",
			DefaultEndpoint: doEndpoint,
			UserDataLimit:   doUserDataLimit,
		}},
		{open: openAWS, info: ProviderInfo{
			Name: "aws", Title: "Amazon EC2",
			Credential:    "JSON: access_key_id and secret_access_key, or use_ambient_credentials; optional session_token, region, role_arn, external_id",
			CredentialEnv: []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"},
			EndpointEnv:   "AWS_ENDPOINT_URL_EC2",
			UserDataLimit: awsUserDataLimit,
		}},
		{open: openAzure, info: ProviderInfo{
			Name: "azure", Title: "Microsoft Azure",
			Credential:      "JSON: tenant_id, client_id, subscription_id, client_secret or federated_token_file, optional resource_group and authority_host",
			CredentialEnv:   []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_SUBSCRIPTION_ID", "AZURE_FEDERATED_TOKEN_FILE"},
			EndpointEnv:     "AZURE_RESOURCE_MANAGER_ENDPOINT",
			DefaultEndpoint: azureEndpoint,
			UserDataLimit:   azureUserDataLimit,
		}},
		{open: openGCP, info: ProviderInfo{
			Name: "gcp", Title: "Google Compute Engine",
			Credential:      "the JSON key of a service account (the file that GOOGLE_APPLICATION_CREDENTIALS names)",
			CredentialEnv:   []string{"GOOGLE_APPLICATION_CREDENTIALS"},
			EndpointEnv:     "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE",
			DefaultEndpoint: gcpEndpoint,
			UserDataLimit:   gcpUserDataLimit,
		}},
	}
}

// Providers describes the providers that Open opens.
func Providers() []ProviderInfo {
	var infos []ProviderInfo
	for _, p := range providers() {
		if p.open != nil {
			infos = append(infos, p.info)
		}
	}
	return infos
}

// Open returns a Provisioner for a provider of Providers. It checks the form
// of its arguments and calls nobody: whether the credential is accepted shows
// at the first call. Its errors are ErrInvalid, or ErrUnauthorized for a
// credential that cannot be one.
func Open(provider, credential string, opts Options) (Provisioner, error) {
	if err := opts.validate(provider); err != nil {
		return nil, err
	}
	for _, p := range providers() {
		switch {
		case p.info.Name != provider:
		case p.open == nil:
			return nil, invalidError(provider, "open", "%s is not part of this build; it has %s", p.info.Title, builtIn())
		default:
			return p.open(credential, opts)
		}
	}
	return nil, invalidError("", "open", "there is no provider %q; this build has %s", provider, builtIn())
}

func builtIn() string {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func (o Options) validate(provider string) error {
	if o.ShortName != "" && !validShortName(o.ShortName) {
		return invalidError(provider, "open", "short name %q: lower-case letters, digits and hyphens, at most 32, beginning with a letter and not ending with a hyphen", o.ShortName)
	}
	if o.Endpoint != "" {
		if err := checkEndpoint(o.Endpoint); err != nil {
			return invalidError(provider, "open", "endpoint: %v", err)
		}
	}
	for _, k := range sortedKeys(o.Labels) {
		if isReservedLabel(o.shortName(), k) {
			return invalidError(provider, "open", "label %q is set by this package", k)
		}
		if err := checkLabel(k, o.Labels[k]); err != nil {
			return invalidError(provider, "open", "%v", err)
		}
	}
	return nil
}

// checkEndpoint never repeats the address: it may hold a password.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("not a URL")
	case !slices.Contains([]string{"https", "http"}, u.Scheme) || u.Host == "":
		return fmt.Errorf("must be https://host/path, or http:// for a cloud on this machine or network")
	case u.User != nil:
		return fmt.Errorf("must hold no user or password")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("must have no query and no fragment")
	}
	return nil
}

func (o Options) shortName() string {
	if o.ShortName == "" {
		return DefaultShortName
	}
	return o.ShortName
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// endpointOr returns the endpoint without a slash at its end.
func (o Options) endpointOr(standard string) string {
	if o.Endpoint == "" {
		return standard
	}
	return strings.TrimRight(o.Endpoint, "/")
}
