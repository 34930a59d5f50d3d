package image

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkBinary makes sure that a program runs on an empty base: of that
// architecture, and without a loader or libraries.
func checkBinary(data []byte, arch string) error {
	want, ok := machines[arch]
	if !ok {
		return fmt.Errorf("architecture %q is not one of amd64, arm64", arch)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return errors.New("not a Linux program")
	}
	if f.Machine != want {
		return fmt.Errorf("a program for %s, not %s", f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("not static: build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// Compile is a build of the binary.
type Compile struct {
	Dir     string // the module's
	Package string // ./cmd/slipway
	Version string // what `version` says
	Arch    string
	Output  string
	Go      string // the Go command; default "go"
}

// Run compiles a static, stripped binary that does not tell where it was built.
func (c Compile) Run(ctx context.Context) error {
	tool := c.Go
	if tool == "" {
		tool = "go"
	}
	cmd := exec.CommandContext(ctx, tool, "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+c.Version, "-o", c.Output, c.Package)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+c.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile for %s: %w\n%s", c.Arch, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
