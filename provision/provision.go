package provision

import (
	"context"
	"time"
)

// Provisioner creates and manages servers at a cloud provider.
//
// Every implementation keeps the same contract, which package provisiontest
// checks sentence by sentence:
//
//   - CreateServer is idempotent per CreateOpts.IdempotencyKey. It returns as
//     soon as the provider has named the server; it never waits for a boot.
//   - GetServer of a server that does not exist, or no longer, fails with an
//     error that is ErrNotFound.
//   - DeleteServer of a server that does not exist is no error. It covers all
//     that was made for that server alone.
//   - No call outlives its context, but for the removal of what a failed
//     create made, which takes at most half a minute.
//   - Every failure has exactly one of the classes of this package (see
//     ErrCapacity and its siblings).
type Provisioner interface {
	ListRegions(ctx context.Context) ([]Region, error)
	ListSizes(ctx context.Context, region string) ([]Size, error)
	// CreateServer returns the provider's own server id and, when the
	// provider assigns one immediately, its public IPv4 address (empty
	// until GetServer reports one, for providers that assign it later).
	CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error)
	GetServer(ctx context.Context, id string) (status ServerStatus, ipAddr string, err error)
	DeleteServer(ctx context.Context, id string) error
}

// Lister is implemented by a Provisioner that can read all servers it made in
// one sweep, whatever their number: the way to observe a fleet.
type Lister interface {
	// ListServers returns every server that carries this Provisioner's
	// labels (ShortName and Options.Labels), in any region and any state.
	// It returns all of them or an error, never a part.
	ListServers(ctx context.Context) ([]Server, error)
}

// Auditor is implemented by a Provisioner that can list and remove everything
// it makes, not servers alone.
type Auditor interface {
	// ListResources returns every resource that carries this Provisioner's
	// ShortName label, of every kind that CreateServer makes or that
	// DeleteServer can leave behind.
	ListResources(ctx context.Context) ([]Resource, error)
	// DeleteResource removes one resource that ListResources returned.
	// Not found is success.
	DeleteResource(ctx context.Context, r Resource) error
}

// Preflighter is implemented by a Provisioner that can tell, without making
// anything, whether a CreateServer with the same options would be refused.
type Preflighter interface {
	Preflight(ctx context.Context, opts CreateOpts) error
}

// ConsoleReader is implemented by a Provisioner whose provider hands out a
// server's serial console.
type ConsoleReader interface {
	ConsoleOutput(ctx context.Context, id string) (string, error)
}

// Pricer is implemented by a Provisioner whose ListSizes has no prices but
// whose provider publishes them elsewhere.
type Pricer interface {
	// Prices returns the monthly list prices of a region by Size.ID. A size
	// whose price cannot be had is absent, never guessed.
	Prices(ctx context.Context, region string) (map[string]Price, error)
}

// Region is one region/location a provider can create a server in.
type Region struct {
	ID   string
	Name string
}

// Size is one server size/plan a provider offers.
type Size struct {
	ID     string
	Name   string
	VCPUs  int
	Memory int // MB
	Disk   int // GB
	// PriceMonthly is the provider's own listed monthly price, in its
	// native currency string. Empty when the provider does not return a
	// price for this size.
	PriceMonthly string
	Currency     string
	// Architecture is "x86" or "arm"; empty when the provider does not say.
	Architecture string
	// UnavailableAfter is when the provider stops selling this size in the
	// region asked for; zero when no end is announced.
	UnavailableAfter time.Time
}

// Price is the list price of one size.
type Price struct {
	Monthly  string // decimal, in Currency
	Hourly   string // decimal, in Currency; empty when not published
	Currency string // ISO 4217
}

// CreateOpts describes the server CreateServer should provision.
type CreateOpts struct {
	Region string
	Size   string
	Name   string
	// UserData is the cloud-init script run on first boot.
	UserData string
	// AllowSSHInbound opts into an inbound rule for TCP 22, off by default:
	// a node needs no inbound port, its agent always dials out. The rule is
	// the server's own and goes away with it.
	AllowSSHInbound bool
	// IdempotencyKey names this create: a repeat with the same key returns
	// the same server, also when the first answer was lost; a repeat with
	// the same key and other options is ErrConflict. Any string. Empty means
	// that this call is a create of its own.
	IdempotencyKey string
	// Labels are put on the server beside the Provisioner's own. Keys and
	// values of [a-z0-9_-], up to 63 characters, work at every provider.
	Labels map[string]string
	// SSHKeys are the SSH keys that may log in: a public key in
	// authorized_keys form, or the name of a key that the provider's account
	// holds already, where the provider has such. Default: none.
	SSHKeys []string
	// SSHSourceCIDRs limits AllowSSHInbound to these sources. Default:
	// everywhere, IPv4 and IPv6.
	SSHSourceCIDRs []string
	// Image is the provider's own image id or name. Default: Ubuntu 24.04 in
	// the size's architecture.
	Image string
	// Architecture is "x86" or "arm". Default: the size's own. One that the
	// size does not have is ErrInvalid.
	Architecture string
	// DiskGB is the boot disk's size in GB, at providers where it is free to
	// choose; elsewhere one that differs from the size's is ErrInvalid.
	// Default: the size's own, or the provider's stated default.
	DiskGB int
}

// Server is one server as a list shows it.
type Server struct {
	ID        string
	Name      string
	Status    ServerStatus
	IPAddr    string // public IPv4; empty when none yet
	IPv6Addr  string // public IPv6; empty when none
	Region    string
	Size      string
	CreatedAt time.Time
	Labels    map[string]string
	// Failure says why Status is ServerStatusError, where the provider tells:
	// a *ProviderError with its class, such as ErrCapacity for a create that
	// was accepted and given up later. Nil otherwise.
	Failure error
}

// Resource is one thing at the provider that carries our labels.
type Resource struct {
	// Kind is one of the Kind constants.
	Kind      string
	ID        string
	Name      string
	Region    string // empty for global things
	ServerID  string // the server that it serves or is attached to; empty when none
	CreatedAt time.Time
	Labels    map[string]string
	// Billable tells that the provider charges for it.
	Billable bool
	// Shared tells that it serves the whole account, not one server: never
	// a leftover.
	Shared bool
}

// The kinds of resources, in the words of no provider.
const (
	KindServer           = "server"
	KindPublicIP         = "public-ip"
	KindVolume           = "volume"
	KindFirewall         = "firewall"
	KindSSHKey           = "ssh-key"
	KindNetwork          = "network"
	KindNetworkInterface = "network-interface"
	KindTag              = "tag"
)

// ServerStatus is a provider-reported server lifecycle state, normalized
// across providers into a small common vocabulary.
type ServerStatus string

// The three server states GetServer normalizes every provider's own status
// string into.
const (
	ServerStatusPending ServerStatus = "pending"
	ServerStatusRunning ServerStatus = "running"
	ServerStatusError   ServerStatus = "error"
)
