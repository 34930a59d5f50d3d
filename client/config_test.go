package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api/apitest"
)

func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	if err := client.WriteConfig(dir, client.Config{URL: "https://127.0.0.1:8440", CAFingerprint: apitest.Fingerprint, TokenFile: "api-token"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, client.ConfigFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	file := filepath.Join(dir, "api-token")
	for _, c := range []struct {
		name string
		env  map[string]string
		want client.Options
	}{
		{"file", nil, client.Options{URL: "https://127.0.0.1:8440", CAFingerprint: apitest.Fingerprint, TokenFile: file}},
		{"same address", map[string]string{client.EnvURL: "https://127.0.0.1:8440/"}, client.Options{URL: "https://127.0.0.1:8440", CAFingerprint: apitest.Fingerprint, TokenFile: file}},
		// A token is not sent to where it was not made for.
		{"other address", map[string]string{client.EnvURL: "https://evil.example:8440"}, client.Options{URL: "https://evil.example:8440"}},
		{"all from the environment", map[string]string{client.EnvURL: "https://a", client.EnvCAFingerprint: "sha256:x", client.EnvTokenFile: "/t"},
			client.Options{URL: "https://a", CAFingerprint: "sha256:x", TokenFile: "/t"}},
		{"token wins over file", map[string]string{client.EnvToken: "t", client.EnvTokenFile: "/t"}, client.Options{URL: "https://127.0.0.1:8440", CAFingerprint: apitest.Fingerprint, Token: "t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := client.Discover(func(k string) string {
				if k == client.EnvDataDir {
					return dir
				}
				return c.env[k]
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDiscoverNothing(t *testing.T) {
	dir := t.TempDir()
	getenv := func(k string) string { return map[string]string{client.EnvDataDir: dir}[k] }
	_, err := client.Discover(getenv)
	if !errors.Is(err, client.ErrNoControlPlane) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, client.ConfigFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = client.Discover(getenv); err == nil || !strings.Contains(err.Error(), dir) || errors.Is(err, client.ErrNoControlPlane) {
		t.Errorf("a broken file: %v", err)
	}
}

func TestDataDir(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{client.EnvDataDir: "/d", "XDG_DATA_HOME": "/x", "HOME": "/h"}, "/d"},
		{map[string]string{"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/slipway"},
		{map[string]string{"XDG_DATA_HOME": "relative", "HOME": "/h"}, "/h/.local/share/slipway"},
		{nil, "slipway-data"},
	} {
		if got := client.DataDir(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %s, want %s", c.env, got, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []client.Options{
		{}, {URL: "127.0.0.1:8440"}, {URL: "ftp://a"}, {URL: "http://cp.example.com"}, {URL: "http://10.0.0.1:8440"}, {URL: "https://user:pw@a"},
		{URL: "https://a", CAFingerprint: "sha256:short"}, {URL: "https://a b"},
	} {
		if _, err := client.New(o); client.ClassOf(err) != client.ClassInvalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, url := range []string{"https://a", "https://[::1]:1/", "http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"} {
		if _, err := client.New(client.Options{URL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	c := dial(t, client.Options{URL: plain(t, withAccount(t)), TokenFile: path})
	if _, err := c.Info(t.Context()); client.ClassOf(err) != client.ClassUnauthorized || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	for _, text := range []string{"wrong", apitest.Token + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := c.Info(t.Context())
		if right := strings.TrimSpace(text) == apitest.Token; right != (err == nil) {
			t.Errorf("%v", err)
		}
	}
}
