package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// secretFile returns what the file at path holds, and fills it first, 0600, when
// there is no such file. A file that others can read is refused.
func secretFile(path string, fill func() []byte) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newSecretFile(path, fill()); err != nil {
			return nil, err
		}
		return data, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): run `chmod 600 %s`", path, m, path)
	}
	return data, nil
}

// newSecretFile writes the file whole or not at all. When another process was
// faster, its content counts.
func newSecretFile(path string, data []byte) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // made 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	} else if err != nil {
		return nil, err
	}
	return data, nil
}

// tokenKey is what join tokens are derived with.
func tokenKey(dataDir string) ([]byte, error) {
	key, err := secretFile(filepath.Join(dataDir, "keys", "token.key"), func() []byte {
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails: crypto/rand ends the program first
		return b
	})
	if err == nil && len(key) < 32 {
		err = errors.New("it is cut short: put back the whole file; without it, nodes that are on their way cannot join")
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the join tokens: %w", err)
	}
	return key, nil
}

// fleetID tells this control plane's things from those of others in the same
// account. It is made once and never changes.
func fleetID(dataDir string) (string, error) {
	id, err := secretFile(filepath.Join(dataDir, "fleet-id"), func() []byte { return []byte(uuid.NewString()) })
	if err != nil {
		return "", fmt.Errorf("the fleet's id: %w", err)
	}
	return string(id), nil
}
