package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/agent"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
)

// output collects what is written from anywhere.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var (
	joinToken = regexp.MustCompile(enroll.TokenPattern)
	apiToken  = regexp.MustCompile(`swat_[A-Za-z0-9_-]{43}`)
)

func TestDemo(t *testing.T) {
	var all output
	log := slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))
	err := demo(t.Context(), cli.DemoOptions{IO: &cli.IOStreams{In: strings.NewReader(""), Out: &all, Err: &all, Width: 80}, Logger: log, Nodes: 2, Seed: 1})
	out := all.String()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wants := []string{", 0 left", "nothing left behind"}
	for _, p := range demoPlaces() {
		wants = append(wants, "demo-"+p.provider+"-2")
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q", want)
		}
	}
	if joinToken.MatchString(out) || apiToken.MatchString(out) {
		t.Error("a token is in the output or the log")
	}
}

// place is a control plane and a simulated cloud in this process.
type place struct {
	t       *testing.T
	dir     string
	out     *output // of everything, the logs at debug level
	sim     *cloudsim.Sim
	simAddr string
	gcpKey  string
	plane   *controlPlane
}

const canary = "canary0canary0canary0canary0canary0canary0canary0canary0canary00"

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), out: &output{}}
	log := slog.New(slog.NewTextHandler(p.out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if p.sim, err = cloudsim.New(cloudsim.Options{Seed: 1, Speed: 50, GuestDir: filepath.Join(p.dir, "guests"), RunContainer: guestAgent(log), Logger: log}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.simAddr = l.Addr().String()
	p.gcpKey = filepath.Join(t.TempDir(), "gcp-key.json")
	if err := writeGCPKey(p.sim, "http://"+p.simAddr, p.gcpKey); err != nil {
		t.Fatal(err)
	}
	p.plane, err = openControlPlane(t.Context(), cli.ServeOptions{Logger: log, DataDir: filepath.Join(p.dir, "data"), Listen: "127.0.0.1:0", APIListen: "127.0.0.1:0"},
		planeTuning{timing: fleet.Timing{ObserveFast: 200 * time.Millisecond, RetryBase: 100 * time.Millisecond}, alarms: store.RunOptions{Poll: 20 * time.Millisecond}, heartbeat: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = serveHTTP(ctx, l, nil, p.sim.Handler(), log) })
	wg.Go(func() {
		if err := p.plane.run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
		if err := p.sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// run types a command, and returns its exit code and what it printed.
func (p *place) run(env map[string]string, args ...string) (int, string) {
	p.t.Helper()
	getenv := func(key string) string {
		if v, ok := env[key]; ok {
			return v
		}
		switch key {
		case "SLIPWAY_DATA_DIR":
			return filepath.Join(p.dir, "data")
		case "HCLOUD_TOKEN":
			return canary
		case "GOOGLE_APPLICATION_CREDENTIALS":
			return p.gcpKey
		}
		for _, v := range cloudsim.Env("http://" + p.simAddr) {
			if v.Name == key {
				return v.Value
			}
		}
		return ""
	}
	var out output
	f := factory()
	f.IO, f.Getenv, f.Clouds = &cli.IOStreams{In: strings.NewReader(""), Out: &out, Err: &out, Width: 80}, getenv, directClouds{getenv: getenv}
	code := cli.Main(p.t.Context(), args, f)
	_, _ = p.out.Write([]byte(out.String()))
	return code, out.String()
}

func (p *place) ok(args ...string) string {
	p.t.Helper()
	code, out := p.run(nil, args...)
	if code != 0 {
		p.t.Fatalf("slipway %s: code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// TestNoSecretAnywhere plants a credential, lives a node's life, and looks for
// it and for every token in the logs, the records and the guest's files.
func TestNoSecretAnywhere(t *testing.T) {
	p := newPlace(t)
	p.ok("account", "add", "c", "--provider", "hetzner")
	p.ok("node", "create", "web", "--region", "fsn1", "--size", "cx23")
	p.ok("account", "list", "-o", "json")
	p.ok("node", "get", "web", "-o", "json")
	// The agent's last look for copies of the token comes right after the join.
	deadline := time.After(10 * time.Second)
	for !strings.Contains(p.out.String(), "copies of the used join token overwritten") {
		select {
		case <-deadline:
			t.Fatal("the agent did not overwrite the token's copies")
		case <-time.After(10 * time.Millisecond):
		}
	}
	token, err := os.ReadFile(filepath.Join(p.dir, "data", "api-token"))
	if err != nil {
		t.Fatal(err)
	}
	look := func(what string, data []byte) {
		if m := joinToken.Find(data); m != nil {
			t.Errorf("%s holds a join token", what)
		}
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s holds the cloud's credential", what)
		}
		if bytes.Contains(data, bytes.TrimSpace(token)) && what != "data/api-token" {
			t.Errorf("%s holds the API token", what)
		}
	}
	look("the output or the log", []byte(p.out.String()))
	files := 0
	err = filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		name, _ := filepath.Rel(p.dir, path)
		look(name, data)
		return nil
	})
	if err != nil || files < 12 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
	p.ok("node", "delete", "web", "--yes")
	if left := p.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d billable things are left", left)
	}
}

// TestEveryProvider lives a node's life at each provider of this build, with
// the credential from the environment as the provider's own tools have it.
func TestEveryProvider(t *testing.T) {
	p := newPlace(t)
	for _, at := range demoPlaces() {
		p.ok("account", "add", at.provider, "--provider", at.provider)
		p.ok("account", "check", at.provider)
		p.ok("regions", "--provider", at.provider)
		name := "n-" + at.provider
		p.ok("node", "create", name, "--account", at.provider, "--region", at.region, "--size", at.size, "--timeout", "60s")
		p.ok("node", "delete", name, "--yes", "--timeout", "60s")
		p.ok("audit", "--account", at.provider)
	}
	if left := p.sim.LedgerSummary().Left; left != 0 {
		t.Errorf("%d billable things are left", left)
	}
}

// TestWhatPeopleGetWrong has the message and the exit code for each.
func TestWhatPeopleGetWrong(t *testing.T) {
	p := newPlace(t)
	p.ok("account", "add", "c", "--provider", "hetzner")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + gone.Addr().String() + "/hetzner/v1"
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		says []string
	}{
		{"unknown region", nil, []string{"node", "create", "x", "--region", "fsn9", "--size", "cx23"}, 3, []string{"fsn9", "did you mean fsn1"}},
		{"unknown size", nil, []string{"node", "create", "x", "--region", "fsn1", "--size", "cx99"}, 3, []string{"cx99", "slipway sizes"}},
		{"bad name", nil, []string{"node", "create", "bad_name", "--region", "fsn1", "--size", "cx23"}, 2, []string{"bad_name", "bad-name would do"}},
		{"wrong credential", map[string]string{"HCLOUD_TOKEN": "invalid"}, []string{"account", "add", "d", "--provider", "hetzner"}, 4, []string{"credential not accepted", "request id"}},
		{"no credential", map[string]string{"HCLOUD_TOKEN": ""}, []string{"regions", "--provider", "hetzner"}, 4, []string{"HCLOUD_TOKEN is not set"}},
		{"cloud not reachable", map[string]string{"HCLOUD_ENDPOINT": nowhere}, []string{"regions", "--provider", "hetzner"}, 1, []string{"cannot reach 127.0.0.1", "check the endpoint"}},
		{"no control plane", map[string]string{"SLIPWAY_DATA_DIR": t.TempDir()}, []string{"node", "list"}, 1, []string{"no control plane is known", "slipway serve"}},
		{"wrong fingerprint", map[string]string{"SLIPWAY_CA_FINGERPRINT": "sha256:" + strings.Repeat("0", 64)}, []string{"node", "list"}, 1, []string{"CA"}},
		{"unknown node", nil, []string{"node", "get", "nope"}, 3, []string{"there is no node", "slipway node list"}},
		{"delete without a yes", nil, []string{"node", "delete", "nope"}, 3, []string{"there is no node"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out := p.run(tt.env, tt.args...)
			if code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			for _, s := range tt.says {
				if !strings.Contains(out, s) {
					t.Errorf("it does not say %q:\n%s", s, out)
				}
			}
		})
	}
	if made := p.sim.LedgerSummary().Made; made != 0 {
		t.Errorf("%d billable things were made by mistakes", made)
	}
}

// TestWrongFingerprintAndUsedToken joins by hand, as a machine of one's own
// does, with what can be wrong.
func TestWrongFingerprintAndUsedToken(t *testing.T) {
	p := newPlace(t)
	ticket, err := p.plane.fleet.Ticket(t.Context(), fleet.NodeSpec{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	join := func(fingerprint string, until string) string {
		root := t.TempDir()
		file := filepath.Join(root, "join.env")
		if err := os.WriteFile(file, []byte("JOIN_TOKEN="+ticket.Token+"\nCA_FINGERPRINT="+fingerprint+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out output
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- agent.Run(ctx, agent.Config{Addr: ticket.Address, NodeName: "own", IdentityDir: "/id", JoinFile: "/join.env", Root: root,
				Logger: slog.New(slog.NewTextHandler(&out, nil))})
		}()
		for ctx.Err() == nil && !strings.Contains(out.String(), until) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if joinToken.MatchString(out.String()) {
			t.Error("the token is in the agent's log")
		}
		return out.String()
	}
	if out := join("sha256:"+strings.Repeat("0", 64), "not joined yet"); !strings.Contains(out, "not the one that was pinned") {
		t.Errorf("wrong fingerprint: %s", out)
	}
	if n, err := p.plane.fleet.Node(t.Context(), "own"); err != nil || n.Phase != fleet.PhaseBooting {
		t.Errorf("after the wrong fingerprint the node is %s, %v", n.Phase, err)
	}
	if out := join(ticket.CAFingerprint, "msg=joined"); !strings.Contains(out, "msg=joined") {
		t.Errorf("join: %s", out)
	}
	if out := join(ticket.CAFingerprint, "not joined yet"); !strings.Contains(out, "used already") {
		t.Errorf("used token: %s", out)
	}
}
