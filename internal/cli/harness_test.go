package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// clock stands at a time. Its After fires at once for the durations in fires,
// and never for others.
type clock struct {
	now   time.Time
	fires map[time.Duration]bool
}

func (c clock) Now() time.Time { return c.now }

func (c clock) After(d time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	if c.fires[d] {
		ch <- c.now
	}
	return ch
}

// writer collects what is written and tells a hook of it.
type writer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	hook func(all string)
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	if w.hook != nil {
		w.hook(w.b.String())
	}
	return len(p), nil
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// world is a command with all around it.
type world struct {
	t       *testing.T
	fleet   *apitest.Fleet
	factory cli.Factory
	io      *cli.IOStreams
	out     *writer
	err     *writer
	env     map[string]string
	clouds  *clouds
}

// newWorld has a fleet with the account prod, and no terminal.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) }) // registered first, so it runs last
	f := scripted()
	url, stop, err := apitest.Serve(f, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); stop() })
	w := &world{t: t, fleet: f, out: &writer{}, err: &writer{}, env: map[string]string{}}
	w.clouds = &clouds{env: func(k string) string { return w.env[k] }}
	w.io = &cli.IOStreams{In: strings.NewReader(""), Out: w.out, Err: w.err, Width: 100}
	w.factory = cli.Factory{
		IO: w.io, Getenv: func(k string) string { return w.env[k] }, Clock: clock{now: apitest.Start.Add(time.Minute)},
		Version: cli.VersionInfo{Version: "v0.1.0", Go: "go1.26"}, Clouds: w.clouds, RenderCloudInit: renderCloudInit,
		Client: func() (*client.Client, error) {
			return client.New(client.Options{URL: url, Token: apitest.Token, Transport: transport})
		},
		SimEnv: simEnv,
	}
	return w
}

// run runs the command and returns its exit code.
func (w *world) run(args ...string) int {
	w.t.Helper()
	return w.runContext(w.t.Context(), args...)
}

func (w *world) runContext(ctx context.Context, args ...string) int {
	w.out.b.Reset()
	w.err.b.Reset()
	return cli.Main(ctx, args, w.factory)
}

// terminal makes all streams a terminal without colour, at which in was typed.
func (w *world) terminal(in string) {
	w.io.In, w.io.InTTY, w.io.OutTTY, w.io.ErrTTY, w.io.Redraw = strings.NewReader(in), true, true, true, true
}

// scripted is a fleet in which the beginning of a node's name says what
// becomes of it.
func scripted() *apitest.Fleet {
	f := apitest.New(func() time.Time { return apitest.Start })
	f.Script = func(s fleet.NodeSpec) []apitest.Step {
		word, _, _ := strings.Cut(s.Name, "-")
		switch word {
		case "stuck":
			return apitest.Boots(s)
		case "full":
			return apitest.Fails(fleet.Reason{Class: "capacity", Message: "hetzner has no cx23 in fsn1 now", Hint: "name more sizes or regions", RequestID: "req-77"})
		case "quota":
			return apitest.Fails(fleet.Reason{Class: "quota", Message: "hetzner: the project's server limit is reached"})
		case "denied":
			return apitest.Fails(fleet.Reason{Class: "unauthorized", Message: "hetzner does not accept the credential"})
		case "late":
			return apitest.Fails(fleet.Reason{Class: "join-timeout", Message: "the machine did not join within 20m"})
		case "left":
			steps := apitest.Fails(fleet.Reason{Class: "server-error", Message: "hetzner says that the server is broken"})
			last := &steps[len(steps)-1]
			edit := last.Edit
			last.Edit = func(n *fleet.Node) { edit(n); n.ServerGone, n.ServerID = false, "42" }
			return steps
		}
		return apitest.Joins(s)
	}
	f.Ending = func(n fleet.Node) []apitest.Step {
		if strings.HasPrefix(n.Name, "sticky") {
			return nil
		}
		return apitest.Goes(n)
	}
	if _, err := f.AddAccount(context.Background(), fleet.AccountSpec{Name: "prod", Provider: "hetzner", Credential: "c"}); err != nil {
		panic(err)
	}
	return f
}

// clouds are reached without a control plane.
type clouds struct {
	env  func(string) string
	fail error
}

func (*clouds) Providers() []cli.Provider {
	return []cli.Provider{
		{Name: "hetzner", Title: "Hetzner Cloud", Credential: "an API token", CredentialEnv: []string{"HCLOUD_TOKEN"}, EndpointEnv: "HCLOUD_ENDPOINT", UserDataLimit: 32 << 10},
		{Name: "tiny", Title: "Tiny Cloud", Credential: "a key", CredentialEnv: []string{"TINY_KEY"}, UserDataLimit: 100},
	}
}

func (c *clouds) Credential(provider string) (credential, source string, err error) {
	name := map[string]string{"hetzner": "HCLOUD_TOKEN", "tiny": "TINY_KEY"}[provider]
	if v := c.env(name); v != "" {
		return v, name, nil
	}
	return "", "", &client.Error{Class: client.ClassUnauthorized, Message: "no credential of " + provider + " is in the environment", Hint: "set " + name}
}

func (c *clouds) Regions(_ context.Context, provider string) ([]client.Region, error) {
	if _, _, err := c.Credential(provider); err != nil {
		return nil, err
	}
	return []client.Region{{ID: "fsn1", Name: "Falkenstein, DE"}, {ID: "nbg1", Name: "Nuremberg, DE"}}, c.fail
}

func (c *clouds) Sizes(_ context.Context, provider, region string) ([]client.Size, error) {
	if _, _, err := c.Credential(provider); err != nil {
		return nil, err
	}
	if region != "fsn1" {
		return nil, c.fail
	}
	return []client.Size{
		{ID: "cx33", Name: "CX33", VCPUs: 4, MemoryMB: 8192, DiskGB: 80, Architecture: "x86", PriceMonthly: "10.9", Currency: "EUR"},
		{ID: "big", VCPUs: 64, MemoryMB: 131072, Architecture: "x86"},
		{ID: "cax11", VCPUs: 2, MemoryMB: 4096, DiskGB: 40, Architecture: "arm", PriceMonthly: "4.51", Currency: "EUR"},
		{ID: "cx23", VCPUs: 2, MemoryMB: 4096, DiskGB: 40, Architecture: "x86", PriceMonthly: "4.15", Currency: "EUR"},
	}, c.fail
}

func (c *clouds) CheckCredential(_ context.Context, provider string) error {
	if v, _, err := c.Credential(provider); err != nil {
		return err
	} else if v == "wrong" {
		return &client.Error{Class: client.ClassUnauthorized, Message: "hetzner: list regions: the token is not valid", Hint: "make a new token", Provider: "hetzner", RequestID: "req-5"}
	}
	return c.fail
}

func renderCloudInit(p cli.CloudInitParams) (string, error) {
	if strings.Contains(p.NodeName, "\n") {
		return "", fmt.Errorf("the node's name holds a line break")
	}
	return fmt.Sprintf("#cloud-config\n# %s %s %s %s %s %v\n", p.NodeName, p.ControlPlaneAddr, p.CAFingerprint, p.AgentImage, p.AgentVersion, p.MeshEnabled) +
		"# " + p.JoinToken + "\n", nil
}

func simEnv(base string) []cli.EnvVar {
	return []cli.EnvVar{{Name: "HCLOUD_ENDPOINT", Value: base + "/hetzner/v1"}, {Name: "HCLOUD_TOKEN", Value: "it's a token"}}
}

var _ io.Writer = (*writer)(nil)
