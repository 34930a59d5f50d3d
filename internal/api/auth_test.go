package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
)

func TestTokenIsRequired(t *testing.T) {
	f, url := start(t, api.Options{})
	before := len(f.Calls())
	for name, header := range map[string]string{
		"none":          "",
		"wrong":         "Bearer swat_wrong",
		"prefix":        "Bearer " + apitest.Token[:20],
		"longer":        "Bearer " + apitest.Token + "x",
		"other scheme":  "Basic " + apitest.Token,
		"without":       apitest.Token,
		"empty":         "Bearer ",
		"scheme alone":  "Bearer",
		"twice in one":  "Bearer " + apitest.Token + " " + apitest.Token,
		"comma in list": "Bearer x, Bearer " + apitest.Token,
	} {
		for _, path := range []string{"/v1/nodes", "/v1/info", "/v1/openapi.json", "/v1/events", "/nothing"} {
			t.Run(name+path, func(t *testing.T) {
				resp, data := send(t, "GET", url+path, "", http.Header{"Authorization": {header}})
				if resp.StatusCode != http.StatusUnauthorized {
					t.Fatalf("answered %d: %s", resp.StatusCode, data)
				}
				if !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("WWW-Authenticate is %q", resp.Header.Get("WWW-Authenticate"))
				}
				if p := problemOf(t, resp, data); p.Class != "unauthorized" || p.Hint == "" {
					t.Errorf("problem is %+v", p)
				}
				if strings.Contains(string(data), apitest.Token) {
					t.Error("the answer shows the token")
				}
			})
		}
	}
	if n := len(f.Calls()); n != before {
		t.Errorf("the fleet was called: %v", f.Calls())
	}
	if resp, data := send(t, "GET", url+"/v1/nodes", "", http.Header{"Authorization": {"bearer " + apitest.Token}}); resp.StatusCode != http.StatusOK {
		t.Errorf("the right token with a lower-case scheme: %d %s", resp.StatusCode, data)
	}
}

func TestNoTokenNoServer(t *testing.T) {
	if _, err := api.New(apitest.New(fixed), api.Options{}); err == nil {
		t.Error("a handler without a token was made")
	}
}

func TestOpenToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api-token")
	first, err := api.OpenToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) < 43 {
		t.Errorf("the token has %d characters", len(first))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if m := info.Mode().Perm(); m != 0o600 {
		t.Errorf("the file has mode %o", m)
	}
	again, err := api.OpenToken(path)
	if err != nil || again != first {
		t.Errorf("opened again: same %v, error %v", again == first, err)
	}
	if other := api.NewToken(); other == first {
		t.Error("two tokens are equal")
	}

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := api.OpenToken(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that the group can read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.OpenToken(path); err == nil || strings.Contains(err.Error(), "short\n") {
		t.Errorf("a token that is too short: %v", err)
	}
	if _, err := api.OpenToken(filepath.Join(t.TempDir(), "no", "dir")); err == nil {
		t.Error("a missing directory is no error")
	}
}
