// Command slipway turns cloud accounts into fleet nodes, and back. This package
// is nothing but wiring: the one place where all rooms meet.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/provision"
)

// shortName is what everything that this program makes at a provider, and on a
// node, is named by.
const shortName = "slipway"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], factory())
	stop()
	os.Exit(code)
}

func factory() cli.Factory {
	return cli.Factory{
		Version: buildVersion(),
		Serve:   serve,
		Agent:   runAgent,
		Sim:     sim,
		SimEnv:  simEnv,
		Demo:    demo,
		Clouds:  directClouds{getenv: os.Getenv},
		RenderCloudInit: func(p cli.CloudInitParams) (string, error) {
			return provision.RenderCloudInit(provision.CloudInitParams{
				ControlPlaneAddr: p.ControlPlaneAddr,
				JoinToken:        p.JoinToken,
				CAFingerprint:    p.CAFingerprint,
				NodeName:         p.NodeName,
				AgentImage:       p.AgentImage,
				AgentVersion:     p.AgentVersion,
				MeshEnabled:      p.MeshEnabled,
				DockerInstallURL: p.DockerInstallURL,
				ShortName:        shortName,
			})
		},
	}
}
