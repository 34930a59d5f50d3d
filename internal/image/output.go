package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// refAnnotation names an image in a layout, by the OCI specification.
const refAnnotation = "org.opencontainers.image.ref.name"

// WriteLayout writes an OCI layout to a directory, in place of what is there.
func WriteLayout(dir string, index v1.ImageIndex, tag string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	l, err := layout.Write(tmp, empty.Index)
	if err != nil {
		return err
	}
	if err := l.AppendIndex(index, layout.WithAnnotations(map[string]string{refAnnotation: tag})); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// WriteDocker writes the image of one architecture as a file for `docker load`.
func WriteDocker(path string, index v1.ImageIndex, arch, ref string) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.Architecture == arch {
			img, err := index.Image(d.Digest)
			if err != nil {
				return err
			}
			return tarball.WriteToFile(path, tag, img)
		}
	}
	return fmt.Errorf("no image for %s", arch)
}

// Push sends the index and its images to the registry that ref names, under
// ref's tag, with the credentials that `docker login` keeps. It returns the
// reference by digest.
func Push(ctx context.Context, ref string, index v1.ImageIndex) (string, error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	return tag.Context().Name() + "@" + digest.String(), nil
}
