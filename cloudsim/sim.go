package cloudsim

import (
	"context"
	"crypto/rsa"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"
)

// Options are the settings of a simulated cloud; each has a default.
type Options struct {
	// Seed is what everything random is made from: addresses, ids, delays. The
	// same seed and the same requests give the same answers.
	Seed uint64
	// Speed is how many simulated seconds pass in a real one. Default: 1.
	Speed float64
	// Manual makes the clock stand still but for [Sim.Advance].
	Manual bool
	// Start is what time it is at the beginning. Default: now; with Manual,
	// 2026-01-01 00:00 UTC.
	Start time.Time
	// GuestDir is where guests' files live, a folder for each. Default: a
	// temporary directory that Close removes.
	GuestDir string
	// RunContainer runs a container that a guest's units start, until ctx ends
	// with the guest. An error makes the unit fail; it is started again as the
	// unit says. Default: containers start and do nothing.
	RunContainer func(ctx context.Context, g Guest, c Container) error
	// GCPKey signs for Google's service accounts. Default: one that is made at
	// its first use.
	GCPKey *rsa.PrivateKey
	// Logger gets what happens. Default: none.
	Logger *slog.Logger
}

// maxSpeed is a day in a second.
const maxSpeed = 86_400

// EnvVar is an environment variable.
type EnvVar struct{ Name, Value string }

// Sim is a simulated cloud. Its methods can be called at any time from
// anywhere.
type Sim struct {
	opts    Options
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	guests  sync.WaitGroup // goroutines that belong to guests
	loop    sync.WaitGroup
	tempDir string
	started time.Time // real

	mu       sync.Mutex
	closed   bool
	start    time.Time     // simulated time at started
	advanced time.Duration // by Advance
	events   eventQueue
	wake     chan struct{} // told when the next event may have changed
	world    *world
	gcp      gcpSignIn
	faults   []*fault
	nextRule int
	requests []Request
	dropped  int // requests that fell off the log
	handler  http.Handler
}

// New returns a simulated cloud that runs until Close.
func New(opts Options) (*Sim, error) {
	if opts.Speed < 0 || math.IsNaN(opts.Speed) || opts.Speed > maxSpeed {
		return nil, fmt.Errorf("cloudsim: speed %v is not from above 0 to %d", opts.Speed, maxSpeed)
	}
	if opts.Speed == 0 {
		opts.Speed = 1
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Start.IsZero() {
		opts.Start = time.Now().UTC()
		if opts.Manual {
			opts.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
	s := &Sim{opts: opts, log: opts.Logger, started: time.Now(), start: opts.Start, wake: make(chan struct{}, 1)}
	if opts.GuestDir == "" {
		dir, err := os.MkdirTemp("", "cloudsim-")
		if err != nil {
			return nil, fmt.Errorf("cloudsim: %w", err)
		}
		s.tempDir, s.opts.GuestDir = dir, dir
	} else if err := os.MkdirAll(opts.GuestDir, 0o700); err != nil {
		return nil, fmt.Errorf("cloudsim: %w", err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.world = newWorld(rand.New(rand.NewPCG(opts.Seed, 0x5ea)))
	s.handler = s.routes()
	if !opts.Manual {
		s.loop.Go(s.run)
	}
	return s, nil
}

// Close ends every guest, waits for the ends, and removes the temporary files.
// From then on the clouds still answer, but nothing happens in them.
func (s *Sim) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.loop.Wait()
	s.guests.Wait()
	if s.tempDir != "" {
		return os.RemoveAll(s.tempDir)
	}
	return nil
}

// Handler serves every provider, each under its name, and the control calls
// under /_sim/.
func (s *Sim) Handler() http.Handler { return s.handler }

// Env returns the variables that point each ecosystem's own tools at this
// cloud when it is served at baseURL.
func (s *Sim) Env(baseURL string) []EnvVar { return Env(baseURL) }

// Env returns the variables that point each ecosystem's own tools at a
// simulated cloud that is served at baseURL.
func Env(baseURL string) []EnvVar {
	for len(baseURL) > 0 && baseURL[len(baseURL)-1] == '/' {
		baseURL = baseURL[:len(baseURL)-1]
	}
	return []EnvVar{
		{"HCLOUD_ENDPOINT", baseURL + hetznerPrefix},
		{"HCLOUD_TOKEN", simToken},
		{"DIGITALOCEAN_API_URL", baseURL},
		{"DIGITALOCEAN_ACCESS_TOKEN", doSimToken},
		{"DIGITALOCEAN_TOKEN", doSimToken},
		{"AWS_ENDPOINT_URL_EC2", baseURL + awsPrefix},
		{"AWS_ENDPOINT_URL_STS", baseURL + awsPrefix},
		{"AWS_ENDPOINT_URL_PRICING", baseURL + awsPrefix},
		{"AWS_ENDPOINT_URL_SERVICE_QUOTAS", baseURL + awsPrefix},
		{"AWS_ACCESS_KEY_ID", awsSimKey},
		{"AWS_SECRET_ACCESS_KEY", simToken[:40]},
		{"AWS_REGION", "eu-central-1"},
		{"AWS_DEFAULT_REGION", "eu-central-1"},
		{"AZURE_RESOURCE_MANAGER_ENDPOINT", baseURL + azurePrefix},
		{"AZURE_AUTHORITY_HOST", baseURL + "/"},
		{"AZURE_TENANT_ID", azureTenantID},
		{"AZURE_CLIENT_ID", azureClientID},
		{"AZURE_CLIENT_SECRET", simToken},
		{"AZURE_SUBSCRIPTION_ID", azureSubscriptionID},
		{"ARM_TENANT_ID", azureTenantID},
		{"ARM_CLIENT_ID", azureClientID},
		{"ARM_CLIENT_SECRET", simToken},
		{"ARM_SUBSCRIPTION_ID", azureSubscriptionID},
		{"CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", baseURL + gcpPrefix + gcpCompute + "/"},
		{"CLOUDSDK_CORE_PROJECT", GCPProject},
		{"GOOGLE_COMPUTE_CUSTOM_ENDPOINT", baseURL + gcpPrefix + gcpCompute + "/"},
		{"GOOGLE_CLOUD_PROJECT", GCPProject},
		{"GOOGLE_PROJECT", GCPProject},
		{"GOOGLE_OAUTH_ACCESS_TOKEN", gcpSimToken},
	}
}

// doSimToken has the form of the provider's.
const doSimToken = "dop_v1_" + simToken

// simToken is 64 characters long, as the provider's are; it opens nothing but
// a simulated project.
const simToken = "simulated0simulated0simulated0simulated0simulated0simulated00000"
