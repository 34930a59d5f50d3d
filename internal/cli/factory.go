// Package cli is the command line: commands, output, progress and exit codes.
//
// It knows the API's client and nothing else of the product. What a command
// needs beyond that (running a control plane, an agent, a simulated cloud,
// reaching a cloud without a control plane) is a field of [Factory] that the
// main program fills in.
package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/slipway-dev/slipway/client"
)

// Factory is what the commands depend on. Cheap things are plain fields; what
// costs or can fail is a function, so that help and completion of words touch
// neither network nor files. A nil function means that this program was built
// without that part; the command says so.
type Factory struct {
	// IO is where commands read and write. Nil means the process's own.
	IO *IOStreams
	// Getenv reads the environment. Nil means os.Getenv.
	Getenv func(string) string
	// Clock is the time that progress, ages and time-outs go by. Nil means
	// the system's.
	Clock Clock
	// Version describes this build.
	Version VersionInfo

	// Client returns the client of the control plane that the person means,
	// by the usual order (see [client.Discover]). Nil means client.Discover
	// over Getenv.
	Client func() (*client.Client, error)

	// Serve runs a control plane until ctx ends.
	Serve func(ctx context.Context, o ServeOptions) error
	// Agent runs the node's agent until ctx ends. Its configuration comes from the
	// environment.
	Agent func(ctx context.Context, o AgentOptions) error
	// Sim serves the simulated clouds until ctx ends.
	Sim func(ctx context.Context, o SimOptions) error
	// SimEnv returns the variables that point each ecosystem's tools at a
	// simulated cloud that is served at baseURL.
	SimEnv func(baseURL string) []EnvVar
	// Demo shows the whole way on the simulated cloud and ends by itself.
	Demo func(ctx context.Context, o DemoOptions) error

	// Clouds reaches the clouds straight from this machine, with credentials
	// from the environment.
	Clouds Clouds
	// RenderCloudInit returns the user-data of a node's first boot.
	RenderCloudInit func(p CloudInitParams) (string, error)
}

// VersionInfo describes a build.
type VersionInfo struct {
	Version string `json:"version"`          // "v0.3.0", or "dev"
	Commit  string `json:"commit,omitempty"` // of the source; empty when not known
	Date    string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go      string `json:"go,omitempty"`     // of the compiler
}

// EnvVar is one environment variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ServeOptions is what `serve` was asked for.
type ServeOptions struct {
	IO *IOStreams
	// Logger writes to standard error in the form and from the level asked for.
	Logger *slog.Logger

	DataDir   string // never empty
	Listen    string // the nodes' listener, host:port
	APIListen string // the API's listener, host:port
	// APIHosts are names and addresses, beside the listener's own, that the
	// API's certificate is to be good for.
	APIHosts []string
	// Advertise is the address that nodes are told, host:port; empty means
	// that Listen's address decides.
	Advertise string
	// AgentImage overrides the agent's container image; empty means the published one.
	AgentImage string
	// JoinTimeout is how long a node may take to join; zero means the default.
	JoinTimeout time.Duration
}

// AgentOptions is what `agent` was asked for.
type AgentOptions struct {
	IO     *IOStreams
	Logger *slog.Logger
}

// SimOptions is what `sim` was asked for.
type SimOptions struct {
	IO     *IOStreams
	Logger *slog.Logger

	Listen string  // host:port
	Seed   uint64  // of all that is random
	Speed  float64 // simulated seconds per second, over 0
	// GuestDir is where guests' files live; empty means a temporary directory
	// that is removed at the end.
	GuestDir string
	// Agents tells to run the agents of the guests.
	Agents bool
}

// DemoOptions is what `demo` was asked for.
type DemoOptions struct {
	IO     *IOStreams
	Logger *slog.Logger

	Nodes int     // how many to make at each provider
	Speed float64 // simulated seconds per second; 0 means the demo's own
	Seed  uint64
	// DataDir keeps the records when set; empty means a temporary directory.
	DataDir string
}

// Clouds reaches the clouds without a control plane. Errors that come from a
// provider are *client.Error, so that one place words them for people and
// picks the exit code.
type Clouds interface {
	// Providers lists what is known, in the order in which to show it. It
	// touches no network.
	Providers() []Provider
	// Credential returns the provider's credential as the environment has it,
	// in the form that an account takes, and where it was found, as
	// "HCLOUD_TOKEN". When there is none the error is a *client.Error of
	// class unauthorized that names the variables to set. It touches no network.
	Credential(provider string) (credential, source string, err error)
	// Regions lists the regions of a provider, with the credential from the
	// environment.
	Regions(ctx context.Context, provider string) ([]client.Region, error)
	// Sizes lists what can be had in one region.
	Sizes(ctx context.Context, provider, region string) ([]client.Size, error)
	// CheckCredential asks the provider whether the credential in the
	// environment works. It makes nothing.
	CheckCredential(ctx context.Context, provider string) error
}

// Provider describes one provider.
type Provider struct {
	Name          string   // "hetzner"
	Title         string   // "Hetzner Cloud"
	Credential    string   // what a credential looks like, for people
	CredentialEnv []string // variables that hold it, for people
	EndpointEnv   string   // variable that overrides the API's address; may be empty
	UserDataLimit int      // bytes
}

// CloudInitParams is what a first boot needs to know.
type CloudInitParams struct {
	ControlPlaneAddr string
	JoinToken        string
	CAFingerprint    string
	NodeName         string
	AgentImage       string // empty: the published one of AgentVersion
	AgentVersion     string
	MeshEnabled      bool
	DockerInstallURL string // empty: the public one
}

// Clock is the time as commands see it.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets the time once d has passed.
	After(d time.Duration) <-chan time.Time
}
