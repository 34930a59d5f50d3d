// Command agentimage builds the agent's container image, for several
// architectures at once and without Docker:
//
//	go run ./tools/agentimage -version v1.2.3 -out dist
//	go run ./tools/agentimage -version v1.2.3 -push -latest
//
// It writes an OCI layout (dist/agent-image) and a file for `docker load` per
// architecture (dist/agent-image-amd64.tar). SOURCE_DATE_EPOCH, in seconds
// since 1970, sets the time of everything in the image.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agentimage:", err)
		os.Exit(1)
	}
}

type settings struct {
	repo, version, revision, out, roots, archs, goTool string
	push, latest                                       bool
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	var s settings
	flags := flag.NewFlagSet("agentimage", flag.ContinueOnError)
	flags.StringVar(&s.repo, "repo", "ghcr.io/slipway-dev/agent", "the image's repository")
	flags.StringVar(&s.version, "version", "dev", "the version: the image's tag, and what the binary says")
	flags.StringVar(&s.revision, "revision", "", "the source's commit, for a label")
	flags.StringVar(&s.out, "out", "dist", "the directory to write to")
	flags.StringVar(&s.roots, "roots", "", "a file of root certificates in PEM form (default: Mozilla's)")
	flags.StringVar(&s.archs, "arch", "amd64,arm64", "the architectures")
	flags.StringVar(&s.goTool, "go", "go", "the Go command")
	flags.BoolVar(&s.push, "push", false, "push to the repository too")
	flags.BoolVar(&s.latest, "latest", false, "with -push: move the tag latest too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	created, err := epoch(getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	return s.build(ctx, created)
}

func epoch(text string) (time.Time, error) {
	if text == "" {
		return time.Unix(0, 0), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: not a number of seconds", text)
	}
	return time.Unix(n, 0), nil
}

func (s settings) build(ctx context.Context, created time.Time) error {
	out, err := filepath.Abs(s.out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	o := image.Options{Roots: image.Roots(), Version: s.version, Revision: s.revision, Created: created}
	if s.roots != "" {
		if o.Roots, err = os.ReadFile(s.roots); err != nil {
			return err
		}
	}
	archs := strings.Split(s.archs, ",")
	for _, arch := range archs {
		path := filepath.Join(out, "slipway-linux-"+arch)
		if err := (image.Compile{Package: "./cmd/slipway", Version: s.version, Arch: arch, Output: path, Go: s.goTool}).Run(ctx); err != nil {
			return err
		}
		o.Binaries = append(o.Binaries, image.Binary{Arch: arch, Path: path})
	}
	index, err := image.Build(o)
	if err != nil {
		return err
	}
	ref := s.repo + ":" + s.version
	layout := filepath.Join(out, "agent-image")
	if err := image.WriteLayout(layout, index, s.version); err != nil {
		return err
	}
	fmt.Println(layout)
	for _, arch := range archs {
		path := layout + "-" + arch + ".tar"
		if err := image.WriteDocker(path, index, arch, ref); err != nil {
			return err
		}
		fmt.Println(path)
	}
	if !s.push {
		return nil
	}
	tags := []string{s.version}
	if s.latest {
		tags = append(tags, "latest")
	}
	for _, tag := range tags {
		pushed, err := image.Push(ctx, s.repo+":"+tag, index)
		if err != nil {
			return err
		}
		fmt.Println(tag, pushed)
	}
	return nil
}
