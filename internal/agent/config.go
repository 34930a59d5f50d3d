package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// The environment that the agent is configured by.
const (
	EnvAddr        = "CONTROL_PLANE_ADDR" // host:port, or https://host:port
	EnvNodeName    = "NODE_NAME"
	EnvIdentityDir = "AGENT_IDENTITY_DIR"
	EnvJoinFile    = "JOIN_FILE"  // holds JOIN_TOKEN and CA_FINGERPRINT
	EnvScrubDirs   = "SCRUB_DIRS" // directories, separated by colons, in which copies of the token are overwritten
)

// Keys in the join file.
const (
	keyToken       = "JOIN_TOKEN"
	keyFingerprint = "CA_FINGERPRINT"
)

// Config is what an agent needs to know.
type Config struct {
	Addr        string
	NodeName    string
	IdentityDir string
	JoinFile    string
	ScrubDirs   []string

	// Version is the agent's own, told to the control plane.
	Version string
	// Root is put before every path, so that an agent can run for another
	// machine's files. Default: "/".
	Root string
	// Clock is the time. Default: the system's.
	Clock Clock
	// Random returns a number in [0,1), for jitter. Default: math/rand/v2.
	Random func() float64
	// Logger gets what happens. Default: none.
	Logger *slog.Logger
}

// Clock is the time as the agent sees it.
type Clock interface {
	Now() time.Time
	// Sleep waits, and returns the context's error when it ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ConfigFromEnv reads the configuration from the environment.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	get := func(key, def string) string {
		if v, ok := lookup(key); ok && v != "" {
			return v
		}
		return def
	}
	c := Config{
		Addr:        get(EnvAddr, ""),
		NodeName:    get(EnvNodeName, ""),
		IdentityDir: get(EnvIdentityDir, ""),
		JoinFile:    get(EnvJoinFile, ""),
	}
	for _, d := range strings.Split(get(EnvScrubDirs, ""), ":") {
		if d != "" {
			c.ScrubDirs = append(c.ScrubDirs, d)
		}
	}
	switch {
	case c.Addr == "":
		return Config{}, fmt.Errorf("%s is not set: the control plane's address, host:port", EnvAddr)
	case c.IdentityDir == "":
		return Config{}, fmt.Errorf("%s is not set: the directory that keeps the node's identity", EnvIdentityDir)
	}
	return c, nil
}

// path returns where a path of the node is.
func (c Config) path(p string) string {
	if c.Root == "" {
		return p
	}
	return filepath.Join(c.Root, p)
}

// ticket is what a join file holds.
type ticket struct {
	token enroll.Token
	pins  []enroll.Fingerprint
}

// readTicket reads a join file: lines of KEY=VALUE. Its errors never repeat a
// value.
func readTicket(path string) (ticket, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return ticket{}, err
	}
	values := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			values[key] = value
		}
	}
	var t ticket
	if t.token, err = enroll.ParseToken(values[keyToken]); err != nil {
		return ticket{}, fmt.Errorf("%s: %s: %w", path, keyToken, err)
	}
	for _, f := range strings.Split(values[keyFingerprint], ",") {
		if f == "" {
			continue
		}
		pin, err := enroll.ParseFingerprint(f)
		if err != nil {
			return ticket{}, fmt.Errorf("%s: %s: %w", path, keyFingerprint, err)
		}
		t.pins = append(t.pins, pin)
	}
	return t, nil
}
