package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// New returns the whole command.
func New(f Factory) *cobra.Command {
	a := newApp(f)
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "Turn cloud accounts into fleet nodes",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	_ = a
	return root
}

// app is the factory with its defaults filled in.
type app struct {
	Factory
}

func newApp(f Factory) *app {
	if f.Getenv == nil {
		f.Getenv = os.Getenv
	}
	if f.IO == nil {
		f.IO = SystemStreams(f.Getenv)
	}
	if f.Clock == nil {
		f.Clock = systemClock{}
	}
	if f.Client == nil {
		f.Client = func() (*client.Client, error) {
			o, err := client.Discover(f.Getenv)
			if err != nil {
				return nil, err
			}
			o.UserAgent = "slipway/" + f.Version.Version
			return client.New(o)
		}
	}
	return &app{Factory: f}
}

// Main runs the command with args (without the program's name) and returns the
// exit code. It prints what failed.
func Main(ctx context.Context, args []string, f Factory) int {
	root := New(f)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return 1
	}
	return 0
}
