package provision

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAWSCredentialMistakes: each has its own message, and none repeats a
// secret.
func TestAWSCredentialMistakes(t *testing.T) {
	const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	both := `"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "` + secret + `"`
	seen := map[string]string{}
	for text, want := range map[string]string{
		"":                                 "is empty",
		"AKIAIOSFODNN7EXAMPLE":             "not a JSON object",
		"[]":                               "not a JSON object",
		"null":                             "not a JSON object",
		"{" + both + "} {}":                "not a JSON object",
		`{"access_key_id": 7}`:             "access_key_id is not a text",
		`{"use_ambient_credentials": "y"}`: "use_ambient_credentials is not true or false",
		`{"acces_key_id": "x"}`:            `a member "acces_key_id"`,
		`{}`:                               "no keys, and use_ambient_credentials is not set",
		`{"access_key_id": "AKIAIOSFODNN7EXAMPLE"}`:                                                      "no secret_access_key",
		`{"secret_access_key": "` + secret + `"}`:                                                        "no access_key_id",
		`{"session_token": "x", "use_ambient_credentials": true}`:                                        "a session_token and no keys",
		`{"access_key_id": "` + secret + `", "secret_access_key": "AKIAIOSFODNN7EXAMPLE"}`:               "is an access key's id",
		`{"access_key_id": "AK IA", "secret_access_key": "` + secret + `"}`:                              "access_key_id is not one",
		`{"access_key_id": "ASIAIOSFODNN7EXAMPLE", "secret_access_key": "` + secret + `"}`:               "is temporary",
		`{"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "` + secret[:20] + "\\n" + `x"}`: "secret_access_key holds a space",
		`{` + both + `, "region": "eu-central-1a"}`:                                                      "is none",
		`{` + both + `, "role_arn": "node"}`:                                                             "not the ARN of a role",
		`{` + both + `, "external_id": "abc"}`:                                                           "an external_id and no role_arn",
		`{` + both + `, "role_arn": "arn:aws:iam::123456789012:role/x", "external_id": "a b"}`:           "external_id is not one",
		`{` + both + `, "role_arn": "arn:aws-cn:iam::123456789012:role/x"}`:                              "different partitions",
	} {
		_, err := NewAWSFromToken(text, "acme")
		var e *ProviderError
		if !errors.As(err, &e) || !errors.Is(err, ErrUnauthorized) || !strings.Contains(e.Message, want) || e.Hint == "" {
			t.Errorf("%s: %v (%+v), want %q", text, err, e, want)
			continue
		}
		if strings.Contains(fmt.Sprintf("%v %#v", err, e), secret) {
			t.Errorf("%s: the error holds the secret", text)
		}
		if before, twice := seen[e.Message]; twice && want != "not a JSON object" {
			t.Errorf("%s and %s have the same message, %q", text, before, e.Message)
		}
		seen[e.Message] = text
	}
}

func TestAWSCredentialsThatAreFine(t *testing.T) {
	const both = `"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"`
	for _, text := range []string{
		`{` + both + `}`, " {" + both + `, "region": "eusc-de-east-1"}` + "\n", `{` + both + `, "use_ambient_credentials": true}`,
		`{"use_ambient_credentials": true}`, `{` + both + `, "role_arn": "arn:aws:iam::123456789012:role/path/x", "external_id": "a:b/c"}`,
		`{` + both + `, "region": "cn-north-1", "role_arn": "arn:aws-cn:iam::123456789012:role/x"}`,
	} {
		if _, err := NewAWSFromToken(text, ""); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := NewAWSFromToken(`{`+both+`}`, "Not A Name"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad short name: %v", err)
	}
}

// TestAWSCredentialsAreNotPrinted, but their JSON is whole: it is how they are
// kept.
func TestAWSCredentialsAreNotPrinted(t *testing.T) {
	c := AWSCredentials{AccessKeyID: "AKIA1", SecretAccessKey: "secret-value", SessionToken: "session-value", ExternalID: "external-value", RoleARN: "arn", UseAmbientCredentials: true}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.LogValue().String()} {
		if strings.Contains(text, "-value") || !strings.Contains(text, "AKIA1") {
			t.Errorf("printed as %s", text)
		}
	}
	data, err := json.Marshal(c)
	var back AWSCredentials
	if err != nil || json.Unmarshal(data, &back) != nil || back != c {
		t.Errorf("encoded as %s, %v", data, err)
	}
}

// TestAWSBadCredentialsAreRefusedByTheFirstCall: NewAWS has no error.
func TestAWSBadCredentialsAreRefusedByTheFirstCall(t *testing.T) {
	a := NewAWS(AWSCredentials{}, "acme")
	_, err := a.ListRegions(t.Context())
	var e *ProviderError
	if !errors.As(err, &e) || !errors.Is(err, ErrUnauthorized) || e.Op != "list regions" {
		t.Errorf("error is %v", err)
	}
	if _, _, err := a.CreateServer(t.Context(), CreateOpts{}); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("error is %v", err)
	}
	if _, err := a.ListResources(t.Context()); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("error is %v", err)
	}
}

// TestAWSEndpoints: an option stands for every service, the variables for one
// each, and a switch turns them off.
func TestAWSEndpoints(t *testing.T) {
	for _, c := range []struct {
		env      map[string]string
		option   string
		ec2, sts string
	}{
		{nil, "", "", ""},
		{nil, "http://sim/aws/", "http://sim/aws", "http://sim/aws"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://all"}, "", "http://all", "http://all"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_EC2": "http://ec2", "AWS_ENDPOINT_URL_STS": "http://sts"}, "", "http://ec2", "http://sts"},
		{map[string]string{"AWS_ENDPOINT_URL_EC2": "http://ec2", "AWS_ENDPOINT_URL_STS": "http://sts"}, "http://option", "http://option", "http://sts"},
		{map[string]string{"AWS_ENDPOINT_URL_EC2": "http://ec2", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "", "", ""},
	} {
		for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL_STS", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"} {
			t.Setenv(name, c.env[name])
		}
		e := awsEndpointsOf(Options{Endpoint: c.option})
		if pointed(e.ec2, "") != c.ec2 || pointed(e.sts, "") != c.sts {
			t.Errorf("%v with option %q: %q and %q", c.env, c.option, pointed(e.ec2, ""), pointed(e.sts, ""))
		}
	}
}

// TestAWSCABundle: the variable by which AWS's tools trust a simulated cloud.
func TestAWSCABundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	t.Setenv("AWS_CA_BUNDLE", file)
	if _, err := newAWSHTTP(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := newAWSHTTP(&http.Client{}); err != nil {
		t.Errorf("a client of its own: %v", err)
	}
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := newAWSHTTP(nil)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a server that shows it: %v, %v", resp, err)
	}
	h.client.CloseIdleConnections()
}
