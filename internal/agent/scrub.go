package agent

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	forms := tokenForms(tokenID)
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
			n, err := scrubFile(path, forms)
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

// form is how a token stands in a file.
type form struct {
	pattern *regexp.Regexp
	instead []byte // of the same length as what pattern matches
}

// secretChars is the length of a token's secret in text.
const secretChars = 43

// tokenForms returns the forms that a copy may have: as it is, and in base64,
// since some clouds hand user-data on in it and cloud-init notes down what it
// got. There it starts at any of three places in a group of four characters.
func tokenForms(tokenID string) []form {
	known := enroll.TokenPrefix + tokenID + "."
	size := len(known) + secretChars
	forms := []form{{
		regexp.MustCompile(regexp.QuoteMeta(known) + `[A-Za-z0-9_-]{` + strconv.Itoa(secretChars) + `}`),
		bytes.Repeat([]byte("x"), size),
	}}
	for before := range 3 {
		// The characters that depend on nothing but what is known, and then on
		// nothing but the token.
		first := (before*8 + 5) / 6
		sure, last := (before+len(known))*8/6, (before+size)*8/6
		encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		text := encode(strings.Repeat("x", before) + known)[first:sure]
		forms = append(forms, form{
			regexp.MustCompile(regexp.QuoteMeta(text) + `[A-Za-z0-9+/]{` + strconv.Itoa(last-sure) + `}`),
			[]byte(encode(strings.Repeat("x", before+size+2))[first:last]),
		})
	}
	return forms
}

func scrubFile(path string, forms []form) (int, error) {
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
	found := 0
	for _, form := range forms {
		for _, p := range form.pattern.FindAllIndex(data, -1) {
			if _, err := f.WriteAt(form.instead, int64(p[0])); err != nil {
				return found, fmt.Errorf("%s: %w", path, err)
			}
			found++
		}
	}
	if found == 0 {
		return 0, nil
	}
	if err := f.Sync(); err != nil {
		return found, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
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
