package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/internal/agent"
	"github.com/slipway-dev/slipway/internal/cli"
)

// sim serves the simulated clouds until ctx ends.
func sim(ctx context.Context, o cli.SimOptions) error {
	opts := cloudsim.Options{Seed: o.Seed, Speed: o.Speed, GuestDir: o.GuestDir, Logger: o.Logger}
	if o.Agents {
		opts.RunContainer = guestAgent(o.Logger)
	}
	s, err := cloudsim.New(opts)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("--listen: %w", err), s.Close())
	}
	fmt.Fprintf(o.IO.Err, "simulated clouds at http://%s, %gx as fast as real time\n  in a shell:  eval \"$(slipway sim env --url http://%s)\"\n", l.Addr(), o.Speed, l.Addr())
	return errors.Join(serveHTTP(ctx, l, nil, s.Handler(), o.Logger), s.Close())
}

func simEnv(baseURL string) []cli.EnvVar {
	var vars []cli.EnvVar
	for _, v := range cloudsim.Env(baseURL) {
		vars = append(vars, cli.EnvVar{Name: v.Name, Value: v.Value})
	}
	return vars
}

// guestAgent runs the agent in a simulated guest: the same program as in the
// container, over the guest's files, with the environment that the guest's
// unit gave the container.
func guestAgent(log *slog.Logger) func(context.Context, cloudsim.Guest, cloudsim.Container) error {
	return func(ctx context.Context, g cloudsim.Guest, c cloudsim.Container) error {
		if !slices.Equal(c.Args, []string{"agent"}) {
			return fmt.Errorf("image %s: no command %q", c.Image, c.Args)
		}
		cfg, err := agent.ConfigFromEnv(func(key string) (string, bool) { v, ok := c.Env[key]; return v, ok })
		if err != nil {
			return err
		}
		// The container sees what is mounted, at the path where the guest has
		// it; a mount elsewhere would be a mistake in the unit.
		for _, p := range append([]string{cfg.IdentityDir, cfg.JoinFile}, cfg.ScrubDirs...) {
			if !mounted(c, p) {
				return fmt.Errorf("%s is not mounted into the container", p)
			}
		}
		cfg.Root, cfg.Version = g.Root, buildVersion().Version
		cfg.Logger = log.With("guest", g.Name)
		return agent.Run(ctx, cfg)
	}
}

// mounted tells whether a path of the container is the guest's own.
func mounted(c cloudsim.Container, path string) bool {
	return slices.ContainsFunc(c.Mounts, func(m cloudsim.Mount) bool {
		return (path == m.ContainerPath || strings.HasPrefix(path, m.ContainerPath+"/")) && strings.HasSuffix(m.HostPath, m.ContainerPath)
	})
}
