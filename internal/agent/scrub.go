package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/enroll"
)

// maxScrub is the largest file that is looked through. cloud-init's records
// of a user-data of some kilobytes are far below it.
const maxScrub = 8 << 20

// scrub overwrites every copy of the token in the files below the directories:
// in place and with the same length, so that what reads the file next finds it
// whole, and no freed block of the disk keeps the token. It returns how many
// copies there were. Links are not followed. It goes on after a failure.
func scrub(dirs []string, tokenID string) (int, error) {
	if tokenID == "" {
		return 0, nil
	}
	form := regexp.MustCompile(regexp.QuoteMeta(enroll.TokenPrefix+tokenID+".") + `[A-Za-z0-9_-]{43}`)
	found := 0
	var errs []error
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
				return nil
			}
			if !d.Type().IsRegular() {
				return nil
			}
			n, err := scrubFile(path, form)
			found += n
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

func scrubFile(path string, form *regexp.Regexp) (int, error) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScrub {
		return 0, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	places := form.FindAllIndex(data, -1)
	for _, p := range places {
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), p[1]-p[0]), int64(p[0])); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(places) == 0 {
		return 0, nil
	}
	if err := f.Sync(); err != nil {
		return len(places), fmt.Errorf("%s: %w", path, err)
	}
	return len(places), nil
}

// destroy overwrites a file, then removes it. No file is success.
func destroy(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = io.WriteString(f, strings.Repeat("x", int(min(info.Size(), maxScrub))))
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if rerr := os.Remove(path); err == nil {
		err = rerr
	}
	return err
}
