package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
)

// Sealer seals credentials to a key that lies outside the database: who has
// the database, or a backup of it, and not the key file, has no credential.
// The file is an age identity, so that an operator can open a sealed value
// with the age command.
type Sealer struct{ id *age.X25519Identity }

// OpenSealer reads the key file, and makes it, 0600, when it is not there.
func OpenSealer(path string) (*Sealer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSealer(path)
	}
	if err != nil {
		return nil, fmt.Errorf("store: the key file of credentials: %w", err)
	}
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil || len(ids) != 1 {
		return nil, fmt.Errorf("store: %s holds no age identity, or more than one", path)
	}
	id, ok := ids[0].(*age.X25519Identity)
	if !ok {
		return nil, fmt.Errorf("store: %s holds an age identity of a kind that is not used here", path)
	}
	return &Sealer{id}, nil
}

func newSealer(path string) (*Sealer, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	// A half-written key must never lie under the name: it is written beside
	// and then linked, which fails when another process was faster.
	tmp, err := os.CreateTemp(filepath.Dir(path), ".age-*")
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = fmt.Fprintf(tmp, "# public key: %s\n%s\n", id.Recipient(), id)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := os.Link(tmp.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return OpenSealer(path)
		}
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Sealer{id}, nil
}

func (s *Sealer) seal(secret string) ([]byte, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, s.id.Recipient())
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, secret); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *Sealer) unseal(sealed []byte) (string, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), s.id)
	if err != nil {
		return "", errors.New("it was sealed with another key file than the one in use")
	}
	secret, err := io.ReadAll(r)
	if err != nil {
		return "", errors.New("its sealed text is damaged")
	}
	return string(secret), nil
}
