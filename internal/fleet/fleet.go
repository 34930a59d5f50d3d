package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Config is what a Fleet is made from. The first group is needed, the rest has
// defaults.
type Config struct {
	Store  Store
	Clouds Clouds
	// TokenKey is the key that join tokens are derived with; at least 32
	// bytes. The same key must be there after a restart.
	TokenKey []byte
	// FleetID tells this fleet's things from those of others in the same
	// account: 1 to 63 of [a-z0-9-]. It never changes.
	FleetID string
	// Advertise is the address, host:port, that nodes are told.
	Advertise string

	// CAFingerprint is what nodes pin; empty means the system's roots.
	CAFingerprint string
	// ShortName is the value of managed-by and the first part of label keys.
	// Default: "slipway".
	ShortName string
	// AgentImage and AgentVersion choose the agent; see
	// provision.CloudInitParams.
	AgentImage   string
	AgentVersion string
	// DockerInstallURL is for mirrors and closed networks; see
	// provision.CloudInitParams.
	DockerInstallURL string
	// RenderUserData renders the user-data of a node. Default:
	// provision.RenderCloudInit.
	RenderUserData func(p UserData) (string, error)
	// LookupHost resolves Advertise's host. Default: the system's resolver.
	LookupHost func(ctx context.Context, host string) ([]netip.Addr, error)
	// Clock is what time it is. Default: the system's.
	Clock Clock
	// Logger gets what is not a node's own story. Default: none.
	Logger *slog.Logger
	Timing Timing
}

// Timing are the durations that the engine works by; each zero has a default.
type Timing struct {
	// JoinTimeout is how long a node has from its create to its join, when
	// its spec does not say: 30 minutes. A join token lives as long.
	JoinTimeout time.Duration
	// ObserveFast and ObserveSlow are the pauses between two lists of an
	// account while something is on its way there (5 s), and else (60 s).
	ObserveFast time.Duration
	ObserveSlow time.Duration
	// CreateWindow is how long after a create call was sent its effect may
	// still surface: 2 minutes. It must be longer than CallTimeout.
	CreateWindow time.Duration
	// CallTimeout ends a create or delete call: 45 s.
	CallTimeout time.Duration
	// MissingFloor is the least time between the first list that misses a
	// server and the conclusion that it is lost: 30 s.
	MissingFloor time.Duration
	// AuditFloor is the least age of a thing that an audit calls a leftover:
	// 5 minutes.
	AuditFloor time.Duration
	// RetryBase and RetryMax bound the pause before a failed call is sent
	// again: 2 s, 60 s.
	RetryBase time.Duration
	RetryMax  time.Duration
	// DeleteRepeat is after how long a delete that shows no effect is sent
	// again: 2 minutes.
	DeleteRepeat time.Duration
	// SeenEvery is how often a node's heartbeats are written down: 30 s.
	SeenEvery time.Duration
}

// Clouds opens accounts.
type Clouds interface {
	// Open returns the Provisioner of an account, with Options.Labels that
	// hold the fleet's id under the key <ShortName>-fleet. credential is empty
	// for an account of Source "env": the environment has it.
	Open(ctx context.Context, a Account, credential string) (provision.Provisioner, error)
}

// Clock tells the time.
type Clock interface{ Now() time.Time }

// UserData is what a node's user-data is rendered from.
type UserData struct {
	Boot
	NodeName    string
	JoinToken   string
	MeshEnabled bool
}

// Fleet is the engine. It has no goroutines of its own and holds nothing that
// a restart would miss.
type Fleet struct {
	cfg    Config
	store  Store
	log    *slog.Logger
	timing Timing

	mu     sync.Mutex
	clouds map[string]openCloud // by account name
	sizes  map[sizesKey]sizesEntry
	seen   map[string]time.Time // node id: last heartbeat
	noted  map[string]time.Time // node id: last heartbeat that was written
	met    map[string]string    // node id: the server that the provider knew before its delete
	// badLooks counts, by account, the lists in a row that failed.
	badLooks map[string]int
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// New returns a Fleet. It calls nobody.
func New(c Config) (*Fleet, error) {
	switch {
	case c.Store == nil || c.Clouds == nil:
		return nil, errors.New("fleet: a Store and Clouds are needed")
	case len(c.TokenKey) < 32:
		return nil, errors.New("fleet: the token key must have at least 32 bytes")
	case !validFleetID(c.FleetID):
		return nil, fmt.Errorf("fleet: fleet id %q: 1 to 63 of a-z, 0-9 and '-'", c.FleetID)
	}
	if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
		return nil, fmt.Errorf("fleet: the advertised address %q is not of the form host:port", c.Advertise)
	}
	if c.ShortName == "" {
		c.ShortName = "slipway"
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.LookupHost == nil {
		c.LookupHost = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.RenderUserData == nil {
		c.RenderUserData = renderUserData
	}
	t, err := c.Timing.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Fleet{
		cfg: c, store: c.Store, log: c.Logger, timing: t,
		clouds: map[string]openCloud{}, sizes: map[sizesKey]sizesEntry{},
		seen: map[string]time.Time{}, noted: map[string]time.Time{}, met: map[string]string{}, badLooks: map[string]int{},
	}, nil
}

func (t Timing) withDefaults() (Timing, error) {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&t.JoinTimeout, 30 * time.Minute}, {&t.ObserveFast, 5 * time.Second}, {&t.ObserveSlow, time.Minute},
		{&t.CreateWindow, 2 * time.Minute}, {&t.CallTimeout, 45 * time.Second}, {&t.MissingFloor, 30 * time.Second},
		{&t.AuditFloor, 5 * time.Minute}, {&t.RetryBase, 2 * time.Second}, {&t.RetryMax, time.Minute},
		{&t.DeleteRepeat, 2 * time.Minute}, {&t.SeenEvery, 30 * time.Second},
	} {
		if *d.v < 0 {
			return t, errors.New("fleet: a duration is negative")
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if t.CreateWindow <= t.CallTimeout {
		return t, errors.New("fleet: CreateWindow must be longer than CallTimeout")
	}
	return t, nil
}

// boot is what user-data is rendered from by the settings of now.
func (f *Fleet) boot() Boot {
	c := f.cfg
	return Boot{
		Address: c.Advertise, CAFingerprint: c.CAFingerprint, ShortName: c.ShortName,
		AgentImage: c.AgentImage, AgentVersion: c.AgentVersion, DockerInstallURL: c.DockerInstallURL,
	}
}

func (f *Fleet) now() time.Time { return f.cfg.Clock.Now().UTC().Truncate(time.Microsecond) }

// label is the key of one of the fleet's labels.
func (f *Fleet) label(suffix string) string { return f.cfg.ShortName + "-" + suffix }

// Suffixes of the fleet's own labels; provision has others.
const (
	labelFleet   = "fleet"   // the fleet's id, set by Clouds
	labelNode    = "node"    // the node's id
	labelAttempt = "attempt" // which of its attempts made it
)
