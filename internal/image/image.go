// Package image builds the agent's container image without Docker: an empty
// base, the one static binary, and the root certificates that it needs where no
// CA is pinned. The same inputs give the same bytes, wherever it runs.
package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// BinaryPath is where the binary is in the image, and what its entrypoint is.
const BinaryPath = "/usr/local/bin/slipway"

// rootsPath is the first place where Go's TLS looks for roots on Linux.
const rootsPath = "/etc/ssl/certs/ca-certificates.crt"

// Binary is a static Linux program.
type Binary struct {
	Arch string // as Go names it: amd64, arm64
	Path string // on the machine that builds
}

// Options say what goes into an image.
type Options struct {
	Binaries []Binary // one for each architecture
	// Roots are root certificates in PEM form; see [Roots].
	Roots []byte
	// Version and Revision are of the source; they become labels.
	Version, Revision string
	// Created is the image's and each file's time. The zero time means 1970.
	Created time.Time
}

// Build returns the images of all architectures under one index, in the order
// of Options.Binaries.
func Build(o Options) (v1.ImageIndex, error) {
	if len(o.Binaries) == 0 {
		return nil, errors.New("image: no binaries")
	}
	if o.Created.IsZero() {
		o.Created = time.Unix(0, 0)
	}
	o.Created = o.Created.UTC().Truncate(time.Second)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, b := range o.Binaries {
		if seen[b.Arch] {
			return nil, fmt.Errorf("image: two binaries for %s", b.Arch)
		}
		seen[b.Arch] = true
		img, err := o.build(b)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", b.Arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: platform(b.Arch)},
		})
	}
	return index, nil
}

func platform(arch string) *v1.Platform {
	p := &v1.Platform{OS: "linux", Architecture: arch}
	if arch == "arm64" {
		p.Variant = "v8"
	}
	return p
}

func (o Options) build(b Binary) (v1.Image, error) {
	data, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, err
	}
	if err := checkBinary(data, b.Arch); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path, err)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	// What changes seldom comes first: nodes that upgrade have it already.
	for _, files := range [][]file{
		{{rootsPath, 0o644, o.Roots}, {"/etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\n")}, {"/etc/group", 0o644, []byte("root:x:0:\n")}},
		{{BinaryPath, 0o755, data}},
	} {
		layer, err := o.layer(files)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: o.Created}, CreatedBy: "agentimage"},
		})
		if err != nil {
			return nil, err
		}
	}
	return o.configure(img, b.Arch)
}

func (o Options) configure(img v1.Image, arch string) (v1.Image, error) {
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	p := platform(arch)
	cfg.OS, cfg.Architecture, cfg.Variant = p.OS, p.Architecture, p.Variant
	cfg.Created = v1.Time{Time: o.Created}
	cfg.Config = v1.Config{
		Entrypoint: []string{BinaryPath},
		Cmd:        []string{"agent"},
		Env:        []string{"PATH=/usr/local/bin"},
		User:       "0:0", // docker.sock, and files that only root may read
		WorkingDir: "/",
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Slipway agent",
			"org.opencontainers.image.source":   "https://github.com/slipway-dev/slipway",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  o.Version,
			"org.opencontainers.image.revision": o.Revision,
		},
	}
	for k, v := range cfg.Config.Labels {
		if v == "" {
			delete(cfg.Config.Labels, k)
		}
	}
	return mutate.ConfigFile(img, cfg)
}

type file struct {
	path string
	mode int64
	data []byte
}

// layer packs files with the directories above them.
func (o Options) layer(files []file) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	made := map[string]bool{}
	for _, f := range files {
		for _, dir := range parents(f.path) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(o.header(tar.TypeDir, dir+"/", 0o755, 0)); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(o.header(tar.TypeReg, f.path[1:], f.mode, int64(len(f.data)))); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func (o Options) header(kind byte, name string, mode, size int64) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: o.Created, Format: tar.FormatPAX}
}

// parents returns the directories above an absolute path, outermost first.
func parents(path string) []string {
	var dirs []string
	for dir := strings.TrimPrefix(filepath.Dir(path), "/"); dir != "" && dir != "."; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}
