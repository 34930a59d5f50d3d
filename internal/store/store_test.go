package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/fleet/storetest"
	"github.com/slipway-dev/slipway/internal/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		os.Exit(crashHelper(dir))
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	sealer, err := store.OpenSealer(filepath.Join(dir, "keys", "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), store.Options{Path: filepath.Join(dir, "slipway.db"), Sealer: sealer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) fleet.Store { return open(t, t.TempDir()) }, time.Now)
}

func TestOnlyOneAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	sealer, err := store.OpenSealer(filepath.Join(dir, "keys", "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	opts := store.Options{Path: filepath.Join(dir, "slipway.db"), Sealer: sealer}
	if _, err := store.Open(t.Context(), opts); !errors.Is(err, store.ErrInUse) {
		t.Fatalf("a second store on the same file: error is %v; want %v", err, store.ErrInUse)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	if err := s.Update(t.Context(), func(tx fleet.Tx) error {
		return tx.InsertAccount(t.Context(), fleet.Account{Name: "a", CreatedAt: time.Now()}, "x")
	}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		if perm := info.Mode().Perm(); perm&0o077 != 0 {
			t.Errorf("%s has mode %o", strings.TrimPrefix(path, dir), perm)
		}
		return nil
	})
	if err != nil || seen < 4 {
		t.Fatalf("%d files seen: %v", seen, err)
	}
}

// TestCredentialsAreSealed looks for a planted credential in every file but
// the key's, and opens the database with another key.
func TestCredentialsAreSealed(t *testing.T) {
	const secret = "planted-credential-4711"
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Update(t.Context(), func(tx fleet.Tx) error {
		return tx.InsertAccount(t.Context(), fleet.Account{Name: "a", Source: "stored", CreatedAt: time.Now()}, secret)
	}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "slipway.db*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v: %v", files, err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds the credential, or cannot be read: %v", f, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := store.OpenSealer(filepath.Join(t.TempDir(), "age.key"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "slipway.db"), Sealer: other})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	got, err := again.Credential(t.Context(), "a")
	if err == nil || got != "" || !strings.Contains(err.Error(), "another key file") {
		t.Errorf("with another key: %q, %v", got, err)
	}
}

func TestSealerKeepsItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "age.key")
	if _, err := store.OpenSealer(path); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenSealer(path); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("the key file changed: %v", err)
	}
	for _, bad := range []string{"", "no key\n", string(first) + string(first)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.OpenSealer(path); err == nil {
			t.Errorf("a key file with %d bytes of something else is taken", len(bad))
		}
	}
}
