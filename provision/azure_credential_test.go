package provision_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/cloudsim"
	"github.com/slipway-dev/slipway/provision"
)

// TestAzureCredentialMistakes: each has its own message, and none repeats a
// secret.
func TestAzureCredentialMistakes(t *testing.T) {
	const id, secret = "22222222-2222-3333-4444-555555555555", "the-secret-0123456789"
	edit := func(changes map[string]any) string {
		m := map[string]any{"tenant_id": "contoso.example", "client_id": id, "subscription_id": id, "client_secret": secret, "resource_group": "nodes"}
		for k, v := range changes {
			if m[k] = v; v == nil {
				delete(m, k)
			}
		}
		text, _ := json.Marshal(m)
		return string(text)
	}
	for _, c := range []struct{ name, credential, message string }{
		{"empty", " \n", "is empty"},
		{"not JSON", secret, "not a JSON object"},
		{"null", "null", "not a JSON object"},
		{"a list", "[]", "not a JSON object"},
		{"a number", edit(map[string]any{"client_secret": 7}), "client_secret is not a text"},
		{"no tenant", edit(map[string]any{"tenant_id": nil}), "has no tenant_id"},
		{"no client", edit(map[string]any{"client_id": nil}), "has no client_id"},
		{"no subscription", edit(map[string]any{"subscription_id": nil}), "has no subscription_id"},
		{"the client's name", edit(map[string]any{"client_id": "my-app"}), "client_id is not an id"},
		{"the subscription's name", edit(map[string]any{"subscription_id": "Pay as you go"}), "subscription_id is not an id"},
		{"a tenant that is none", edit(map[string]any{"tenant_id": "a/b"}), "tenant_id is neither"},
		{"no secret", edit(map[string]any{"client_secret": nil}), "neither client_secret nor federated_token_file"},
		{"both", edit(map[string]any{"federated_token_file": "/x"}), "both client_secret and federated_token_file"},
		{"a bad group", edit(map[string]any{"resource_group": "a/b"}), "not a resource group's name"},
		{"a bad authority", edit(map[string]any{"authority_host": "ftp://x"}), "authority_host"},
	} {
		_, err := provision.NewAzure(c.credential)
		var e *provision.ProviderError
		if !errors.As(err, &e) || !errors.Is(err, provision.ErrUnauthorized) || !strings.Contains(e.Message, c.message) || e.Hint == "" {
			t.Errorf("%s: %v, want one with %q and a hint", c.name, err, c.message)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, e), secret) {
			t.Errorf("%s: the error holds the secret", c.name)
		}
	}
	for _, good := range []string{
		edit(nil), edit(map[string]any{"resource_group": nil}),
		`{"appId":"` + id + `","password":"p","tenant":"` + id + `","subscriptionId":"` + id + `"}`,
		`{"clientId":"` + id + `","clientSecret":"p","tenantId":"` + id + `","subscriptionId":"` + id + `","activeDirectoryEndpointUrl":"https://login.chinacloudapi.cn","resourceManagerEndpointUrl":"https://management.chinacloudapi.cn/","extra":1}`,
	} {
		if _, err := provision.NewAzure(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	// A cloud that is nobody's says where its tokens come from: nobody else is
	// sent the secret.
	_, err := provision.Open("azure", edit(nil), provision.Options{Endpoint: "https://arm.example"})
	if !errors.Is(err, provision.ErrUnauthorized) || !strings.Contains(err.Error(), "where its tokens come from") {
		t.Errorf("an endpoint of nobody: %v", err)
	}
}

func TestAzureCredentialFromEnv(t *testing.T) {
	env := map[string]string{
		"AZURE_TENANT_ID": "contoso.example", "AZURE_CLIENT_ID": "22222222-2222-3333-4444-555555555555", "AZURE_SUBSCRIPTION_ID": azureSub,
		"AZURE_CLIENT_SECRET": "s", "AZURE_FEDERATED_TOKEN_FILE": "/x", "AZURE_AUTHORITY_HOST": "login.microsoftonline.us", "AZURE_RESOURCE_GROUP": "g",
	}
	text := provision.AzureCredentialFromEnv(func(k string) string { return env[k] })
	if _, err := provision.NewAzure(text); err != nil || strings.Contains(text, "/x") {
		t.Errorf("%s: %v", text, err)
	}
	if got := provision.AzureCredentialFromEnv(func(string) string { return "" }); got != "" {
		t.Errorf("from nothing: %q", got)
	}
}

// TestAzureTokens: one is fetched for all requests, anew when it ends, and a
// wrong one is said to be wrong in the words of the sign-in.
func TestAzureTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAzureCloud(t)
		p := c.open(t, azureSecret)
		regions := func() {
			t.Helper()
			if _, err := p.ListRegions(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tokens := func() (n int) {
			for _, r := range c.wire.requests {
				if strings.HasSuffix(r, "/oauth2/v2.0/token") {
					n++
				}
			}
			return n
		}
		regions()
		regions()
		if tokens() != 1 {
			t.Errorf("%d tokens for two requests", tokens())
		}
		time.Sleep(56 * time.Minute) // five minutes before its end
		regions()
		if tokens() != 2 {
			t.Errorf("%d tokens after 56 minutes, want 2", tokens())
		}
		c.fault(t, cloudsim.Fault{Call: "list locations", Effect: cloudsim.EffectUnauthorized, Times: 1})
		regions()
		if tokens() != 3 {
			t.Errorf("%d tokens after one was refused, want 3", tokens())
		}
		c.fault(t, cloudsim.Fault{Call: "get token", Effect: cloudsim.EffectStatus, Status: 503, Times: 2})
		time.Sleep(time.Hour)
		regions()
		for secret, hint := range map[string]string{"invalid-secret": "not the id of the secret", "expired-secret": "has expired"} {
			_, err := c.open(t, secret).ListRegions(t.Context())
			var e *provision.ProviderError
			if !errors.As(err, &e) || !errors.Is(err, provision.ErrUnauthorized) || !strings.Contains(e.Hint, hint) || strings.Contains(err.Error(), "Trace ID") {
				t.Errorf("%s: %v (%s)", secret, err, e.Hint)
			}
		}
	})
}

// TestAzureFederatedToken: the file is read anew for each access token.
func TestAzureFederatedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAzureCloud(t)
		file := filepath.Join(t.TempDir(), "token")
		jwt := func(subject string, life time.Duration) string {
			claims := fmt.Sprintf(`{"iss":"https://issuer.example","sub":%q,"aud":["api://AzureADTokenExchange"],"exp":%d}`, subject, c.sim.Now().Add(life).Unix())
			return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature-of-" + subject
		}
		credential, _ := json.Marshal(map[string]string{
			"tenant_id": "contoso.example", "client_id": "22222222-2222-3333-4444-555555555555", "federated_token_file": file,
			"subscription_id": azureSub, "authority_host": azureBase,
		})
		p, err := provision.Open("azure", string(credential), provision.Options{Endpoint: azureBase + "/azure", HTTPClient: &http.Client{Transport: c.wire}})
		if err != nil {
			t.Fatal(err)
		}
		try := func(content, want string) {
			t.Helper()
			if content != "" {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := p.ListRegions(t.Context())
			var e *provision.ProviderError
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && (!errors.As(err, &e) || !errors.Is(err, provision.ErrUnauthorized) || !strings.Contains(e.Message+e.Hint, want)):
				t.Errorf("%v, want one with %q", err, want)
			case want != "" && content != "" && strings.Contains(fmt.Sprintf("%+v", e), content):
				t.Errorf("the error holds the token: %v", e)
			}
		}
		try("", "cannot be read")
		try("no-jwt-but-long-enough-0123456789", "holds no JWT")
		try(jwt("invalid-node", time.Hour), "letter by letter")
		try(jwt("node", -time.Minute), "too old")
		try(jwt("node", time.Hour)+"\n", "")
		time.Sleep(2 * time.Hour)
		try("", "too old") // nobody renewed the file
		try(jwt("node", time.Hour), "")
	})
}
