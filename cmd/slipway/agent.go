package main

import (
	"context"
	"os"

	"github.com/slipway-dev/slipway/internal/agent"
	"github.com/slipway-dev/slipway/internal/cli"
)

// runAgent runs the agent of this machine.
func runAgent(ctx context.Context, o cli.AgentOptions) error {
	cfg, err := agent.ConfigFromEnv(os.LookupEnv)
	if err != nil {
		return err
	}
	cfg.Version, cfg.Logger = buildVersion().Version, o.Logger
	return agent.Run(ctx, cfg)
}
