package image_test

import (
	"archive/tar"
	"crypto/x509"
	"debug/elf"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/slipway-dev/slipway/internal/image"
)

// program writes the smallest thing that is a Linux program of a machine.
func program(t *testing.T, machine elf.Machine, dynamic bool) string {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	p := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if dynamic {
		p.Type = uint32(elf.PT_INTERP)
	}
	path := filepath.Join(t.TempDir(), machine.String())
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, part := range []any{h, p, []byte("the program")} {
		if err := binary.Write(f, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func options(t *testing.T) image.Options {
	return image.Options{
		Binaries: []image.Binary{
			{Arch: "amd64", Path: program(t, elf.EM_X86_64, false)},
			{Arch: "arm64", Path: program(t, elf.EM_AARCH64, false)},
		},
		Roots: []byte("the roots\n"), Version: "v1.2.3", Revision: "abc", Created: time.Unix(1_700_000_000, 5),
	}
}

func build(t *testing.T, o image.Options) v1.ImageIndex {
	t.Helper()
	index, err := image.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digest(t *testing.T, d interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := d.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func images(t *testing.T, index v1.ImageIndex) map[string]v1.Image {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, d := range m.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		all[d.Platform.String()] = img
	}
	return all
}

func TestBuild(t *testing.T) {
	index := build(t, options(t))
	all := images(t, index)
	if len(all) != 2 || all["linux/amd64"] == nil || all["linux/arm64/v8"] == nil {
		t.Fatalf("platforms %v", all)
	}
	for platform, img := range all {
		cfg, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Platform().String() != platform || !cfg.Created.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s: config says %s, made at %s", platform, cfg.Platform(), cfg.Created)
		}
		want := v1.Config{
			Entrypoint: []string{image.BinaryPath}, Cmd: []string{"agent"}, User: "0:0", WorkingDir: "/", StopSignal: "SIGTERM",
			Env: []string{"PATH=/usr/local/bin"},
			Labels: map[string]string{
				"org.opencontainers.image.title": "Slipway agent", "org.opencontainers.image.source": "https://github.com/slipway-dev/slipway",
				"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.revision": "abc",
			},
		}
		if diff := cmp.Diff(want, cfg.Config); diff != "" {
			t.Errorf("%s: config (-want +got):\n%s", platform, diff)
		}
		if diff := cmp.Diff(map[string]string{
			"etc": "drwxr-xr-x", "etc/ssl": "drwxr-xr-x", "etc/ssl/certs": "drwxr-xr-x", "usr": "drwxr-xr-x", "usr/local": "drwxr-xr-x", "usr/local/bin": "drwxr-xr-x",
			"etc/ssl/certs/ca-certificates.crt": "-rw-r--r--", "etc/passwd": "-rw-r--r--", "etc/group": "-rw-r--r--", "usr/local/bin/slipway": "-rwxr-xr-x",
		}, files(t, img)); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", platform, diff)
		}
	}
}

func files(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	got := map[string]string{}
	r := mutate.Extract(img)
	defer func() { _ = r.Close() }()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s: owner %d:%d %q, time %s", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		got[h.Name] = h.FileInfo().Mode().String()
	}
}

// The same inputs give the same bytes; other inputs give others.
func TestBuildIsReproducible(t *testing.T) {
	want := digest(t, build(t, options(t)))
	if got := digest(t, build(t, options(t))); got != want {
		t.Errorf("%s, then %s", want, got)
	}
	for what, edit := range map[string]func(*image.Options){
		"version": func(o *image.Options) { o.Version = "v1.2.4" },
		"roots":   func(o *image.Options) { o.Roots = nil },
		"time":    func(o *image.Options) { o.Created = time.Time{} },
		"archs":   func(o *image.Options) { o.Binaries = o.Binaries[:1] },
	} {
		o := options(t)
		edit(&o)
		if digest(t, build(t, o)) == want {
			t.Errorf("another %s gave the same image", what)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	good := program(t, elf.EM_X86_64, false)
	for _, tt := range []struct {
		name string
		bins []image.Binary
		want string
	}{
		{"nothing", nil, "no binaries"},
		{"a program that needs a loader", []image.Binary{{Arch: "amd64", Path: program(t, elf.EM_X86_64, true)}}, "CGO_ENABLED=0"},
		{"another architecture's", []image.Binary{{Arch: "arm64", Path: good}}, "EM_X86_64"},
		{"an unknown architecture", []image.Binary{{Arch: "mips", Path: good}}, "not one of"},
		{"a script", []image.Binary{{Arch: "amd64", Path: text}}, "not a Linux program"},
		{"no file", []image.Binary{{Arch: "amd64", Path: text + "x"}}, "no such file"},
		{"one twice", []image.Binary{{Arch: "amd64", Path: good}, {Arch: "amd64", Path: good}}, "two binaries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := image.Build(image.Options{Binaries: tt.bins}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestWriteLayout(t *testing.T) {
	index := build(t, options(t))
	dir := filepath.Join(t.TempDir(), "agent-image")
	for range 2 { // the second replaces the first
		if err := image.WriteLayout(dir, index, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	l, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(l); err != nil {
		t.Error(err)
	}
	m, err := l.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != 1 || m.Manifests[0].Digest.String() != digest(t, index) || m.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Errorf("manifests %+v, want the one index", m.Manifests)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("left beside it: %v", entries)
	}
}

func TestWriteDocker(t *testing.T) {
	index := build(t, options(t))
	path := filepath.Join(t.TempDir(), "agent.tar")
	if err := image.WriteDocker(path, index, "arm64", "ghcr.io/slipway-dev/agent:v1.2.3"); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("ghcr.io/slipway-dev/agent:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := img.ConfigFile()
	if err != nil || cfg.Architecture != "arm64" {
		t.Errorf("%v, %v", cfg, err)
	}
	if err := image.WriteDocker(path, index, "mips", "x:y"); err == nil {
		t.Error("wrote an image for an architecture that is not there")
	}
	if err := image.WriteDocker(path, index, "arm64", "not a reference"); err == nil {
		t.Error("took a malformed reference")
	}
}

func TestPush(t *testing.T) {
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	index := build(t, options(t))
	repo := strings.TrimPrefix(srv.URL, "http://") + "/team/agent"
	byDigest, err := image.Push(t.Context(), repo+":v1.2.3", index)
	if err != nil {
		t.Fatal(err)
	}
	if want := repo + "@" + digest(t, index); byDigest != want {
		t.Errorf("pushed %s, want %s", byDigest, want)
	}
	ref, err := name.ParseReference(byDigest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(got); err != nil {
		t.Error(err)
	}
	if _, err := image.Push(t.Context(), "BAD ref", index); err == nil {
		t.Error("took a malformed reference")
	}
	srv.Close()
	if _, err := image.Push(t.Context(), repo+":v1.2.3", index); err == nil {
		t.Error("pushed to a registry that is gone")
	}
}

func TestRoots(t *testing.T) {
	n := 0
	for rest := image.Roots(); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !c.IsCA {
			t.Errorf("%s is no CA", c.Subject)
		}
	}
	if n < 80 {
		t.Errorf("%d roots", n)
	}
}

func TestCompile(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":  "module example.com/x\n\ngo 1.26\n",
		"main.go": "package main\n\nvar version string\n\nfunc main() { print(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "x")
	c := image.Compile{Dir: dir, Package: ".", Version: "v9.9.9", Arch: "amd64", Output: out}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "v9.9.9") || strings.Contains(string(data), dir) {
		t.Error("the binary does not know its version, or tells where it was built")
	}
	build(t, image.Options{Binaries: []image.Binary{{Arch: "amd64", Path: out}}})
	c.Package = "./nothing"
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("got %v, want the compiler's words", err)
	}
}
