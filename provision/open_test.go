package provision

import (
	"errors"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		what, provider, credential string
		opts                       Options
		want                       error
		text                       string
	}{
		{"good", "hetzner", "token", Options{}, nil, ""},
		{"with a line break at its end", "hetzner", "token\n", Options{}, nil, ""},
		{"no such provider", "hetzne", "token", Options{}, ErrInvalid, "this build has hetzner"},
		{"empty provider", "", "token", Options{}, ErrInvalid, "this build has"},
		{"no credential", "hetzner", " \n", Options{}, ErrUnauthorized, "empty"},
		{"two lines", "hetzner", "token\nmore", Options{}, ErrUnauthorized, "line break"},
		{"short name", "hetzner", "token", Options{ShortName: "Acme"}, ErrInvalid, "lower-case"},
		{"long short name", "hetzner", "token", Options{ShortName: strings.Repeat("a", 33)}, ErrInvalid, "at most 32"},
		{"endpoint without scheme", "hetzner", "token", Options{Endpoint: "api.example/v1"}, ErrInvalid, "https://"},
		{"endpoint of another kind", "hetzner", "token", Options{Endpoint: "file:///etc/passwd"}, ErrInvalid, "https://"},
		{"endpoint with password", "hetzner", "token", Options{Endpoint: "https://u:hunter2@api.example"}, ErrInvalid, "no user or password"},
		{"endpoint with query", "hetzner", "token", Options{Endpoint: "https://api.example?x=hunter2"}, ErrInvalid, "no query"},
		{"unreadable endpoint", "hetzner", "token", Options{Endpoint: "https://api.example:hunter2"}, ErrInvalid, "not a URL"},
		{"label of ours", "hetzner", "token", Options{ShortName: "acme", Labels: map[string]string{"acme-key": "x"}}, ErrInvalid, "set by this package"},
		{"bad label", "hetzner", "token", Options{Labels: map[string]string{"a b": "x"}}, ErrInvalid, "label key"},
	} {
		p, err := Open(c.provider, c.credential, c.opts)
		if c.want == nil && (err != nil || p == nil) || c.want != nil && (!errors.Is(err, c.want) || p != nil) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
			continue
		}
		if err != nil && (!strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "more")) {
			t.Errorf("%s: %q, want %q and no secret", c.what, err, c.text)
		}
	}
}

// TestProvidersOpen: what Providers lists can be opened, what it does not is
// refused by name.
func TestProvidersOpen(t *testing.T) {
	listed := map[string]bool{}
	for _, info := range Providers() {
		listed[info.Name] = true
		if _, err := Open(info.Name, "", Options{}); errors.Is(err, ErrInvalid) {
			t.Errorf("%s is listed and not known: %v", info.Name, err)
		}
	}
	if !listed["hetzner"] {
		t.Error("hetzner is not listed")
	}
	for _, p := range providers() {
		i := p.info
		if i.Name == "" || i.Title == "" || i.Credential == "" || len(i.CredentialEnv) == 0 || i.EndpointEnv == "" || i.UserDataLimit < 16<<10 {
			t.Errorf("incomplete: %+v", i)
		}
		if listed[i.Name] {
			continue
		}
		if _, err := Open(i.Name, "x", Options{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "not part of this build") {
			t.Errorf("%s is not listed, and Open says %v", i.Name, err)
		}
	}
}

// TestConstructorIsOpenWithDefaults: a wrong credential shows at the call.
func TestConstructorIsOpenWithDefaults(t *testing.T) {
	_, err := NewHetzner("").ListRegions(t.Context())
	if !errors.Is(err, ErrUnauthorized) {
		t.Errorf("a call without credential: %v", err)
	}
}
