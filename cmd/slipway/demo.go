package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
)

const (
	// demoSpeed makes a boot of 40 simulated seconds take two real ones.
	demoSpeed = 20
	// demoLimit is how long a demo may take before it gives up.
	demoLimit = 20 * time.Second
)

// demo runs a control plane and a simulated cloud in this process, on loopback
// ports of their own, and drives them with the same commands that a person
// would type.
func demo(ctx context.Context, o cli.DemoOptions) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	d := &demonstration{o: o, start: time.Now()}
	if err := d.prepare(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	running, stop := context.WithCancel(ctx)
	g, running := errgroup.WithContext(running)
	g.Go(func() error { return serveHTTP(running, d.simListener, nil, d.sim.Handler(), o.Logger) })
	g.Go(func() error { return d.plane.run(running) })
	err = d.show(running)
	stop()
	return errors.Join(err, g.Wait(), d.close())
}

type demonstration struct {
	o           cli.DemoOptions
	start       time.Time
	dir         string
	temp        bool
	sim         *cloudsim.Sim
	simListener net.Listener
	plane       *controlPlane
}

func (d *demonstration) prepare(ctx context.Context) (err error) {
	if d.dir = d.o.DataDir; d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "slipway-demo-"); err != nil {
			return err
		}
		d.temp = true
	}
	speed := d.o.Speed
	if speed == 0 {
		speed = demoSpeed
	}
	// An agent that finds its node deleted warns of it, rightly, and here it is
	// no news.
	agents := d.o.Logger
	if !agents.Enabled(ctx, slog.LevelInfo) {
		agents = slog.New(slog.DiscardHandler)
	}
	if d.sim, err = cloudsim.New(cloudsim.Options{
		Seed: d.o.Seed, Speed: speed, GuestDir: filepath.Join(d.dir, "guests"),
		RunContainer: guestAgent(agents), Logger: d.o.Logger,
	}); err != nil {
		return err
	}
	var lc net.ListenConfig
	if d.simListener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if err := writeGCPKey(d.sim, "http://"+d.simListener.Addr().String(), d.gcpKey()); err != nil {
		return err
	}
	d.plane, err = openControlPlane(ctx, cli.ServeOptions{
		IO: d.o.IO, Logger: d.o.Logger, DataDir: filepath.Join(d.dir, "data"), Listen: "127.0.0.1:0", APIListen: "127.0.0.1:0",
	}, planeTuning{
		// Only waiting is cut short: what is done, and in what order, is the same.
		timing:    fleet.Timing{ObserveFast: 500 * time.Millisecond, RetryBase: 200 * time.Millisecond},
		alarms:    store.RunOptions{Poll: 50 * time.Millisecond},
		heartbeat: time.Second,
	})
	return err
}

// gcpKey is where the key of Google's service account is: its tools take it as
// a file.
func (d *demonstration) gcpKey() string { return filepath.Join(d.dir, "gcp-key.json") }

func writeGCPKey(s *cloudsim.Sim, baseURL, path string) error {
	key, err := s.GCPKey(baseURL, cloudsim.GCPAccount, cloudsim.GCPProject)
	if err != nil {
		return err
	}
	return os.WriteFile(path, key, 0o600)
}

func (d *demonstration) close() error {
	var errs []error
	if d.sim != nil {
		errs = append(errs, d.sim.Close())
	}
	if d.temp {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}

// getenv is what the demo's commands take for their environment: this
// control plane, and the simulated cloud's variables.
func (d *demonstration) getenv() func(string) string {
	env := map[string]string{client.EnvDataDir: filepath.Join(d.dir, "data"), "HOME": d.dir, "GOOGLE_APPLICATION_CREDENTIALS": d.gcpKey()}
	for _, v := range cloudsim.Env("http://" + d.simListener.Addr().String()) {
		env[v.Name] = v.Value
	}
	return func(key string) string {
		if v, ok := env[key]; ok {
			return v
		}
		switch key {
		case "TERM", "NO_COLOR", "CLICOLOR_FORCE", "LANG", "LC_ALL":
			return os.Getenv(key) // how to print, and nothing else
		}
		return ""
	}
}

// place is where a demo makes its nodes at one provider.
type demoPlace struct{ provider, region, size string }

// demoPlaces has the providers that are simulated.
func demoPlaces() []demoPlace {
	return []demoPlace{
		{"hetzner", "fsn1", "cx23"},
		{"digitalocean", "fra1", "s-1vcpu-1gb"},
		{"azure", "westeurope", "Standard_B2as_v2"},
		{"aws", "eu-central-1", "t3.small"},
		{"gcp", "europe-west1-b", "e2-small"},
	}
}

// show types the commands, and counts what is left at the end.
func (d *demonstration) show(ctx context.Context) error {
	d.say("A control plane and simulated clouds run in this process. You can type each command below yourself.")
	var add, create [][]string
	var names []string
	for _, p := range demoPlaces() {
		name := "demo-" + p.provider
		add = append(add, []string{"account", "add", p.provider, "--provider", p.provider, "-o", "name"})
		args := []string{"node", "create", name, "--account", p.provider, "--region", p.region, "--size", p.size, "--no-wait", "-o", "name"}
		if d.o.Nodes == 1 {
			names = append(names, name)
		} else {
			args = append(args, "--count", strconv.Itoa(d.o.Nodes))
			for i := range d.o.Nodes {
				names = append(names, fmt.Sprintf("%s-%d", name, i+1))
			}
		}
		create = append(create, args)
	}
	steps := append(add, []string{"sizes", "--account", "hetzner", "--region", "fsn1", "--arch", "arm"})
	steps = append(steps, create...)
	steps = append(steps,
		append([]string{"node", "wait"}, names...),
		[]string{"node", "list"},
		append(append([]string{"node", "delete"}, names...), "--yes"),
		[]string{"audit"},
	)
	for _, args := range steps {
		if err := d.command(ctx, args...); err != nil {
			return err
		}
	}
	return d.ledger()
}

func (d *demonstration) command(ctx context.Context, args ...string) error {
	line := "slipway"
	for _, a := range args {
		line += " " + a
	}
	d.say("\n$ %s", line)
	getenv := d.getenv()
	f := factory()
	f.IO, f.Getenv, f.Clouds = d.o.IO, getenv, directClouds{getenv: getenv}
	if code := cli.Main(ctx, args, f); code != 0 {
		return fmt.Errorf("%s ended with code %d", line, code)
	}
	return nil
}

func (d *demonstration) ledger() error {
	sum := d.sim.LedgerSummary()
	d.say("\nThe clouds' own ledger: %d billable things made, %d left, after %d requests and %.1f s.",
		sum.Made, sum.Left, len(d.sim.Requests()), time.Since(d.start).Seconds())
	if sum.Left > 0 {
		for _, e := range d.sim.Ledger() {
			if e.Left() {
				d.say("  left: %s %s %s %s", e.Provider, e.Kind, e.ID, e.Name)
			}
		}
		return fmt.Errorf("%d billable things are left", sum.Left)
	}
	return nil
}

func (d *demonstration) say(format string, args ...any) {
	fmt.Fprintf(d.o.IO.Out, format+"\n", args...)
}
