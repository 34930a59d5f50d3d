package provision

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// Credential: its form.

const (
	gcpEndpoint = "https://compute.googleapis.com/compute/v1"
	gcpTokenURI = "https://oauth2.googleapis.com/token"
	gcpUniverse = "googleapis.com"
)

// gcpKey is a service account's key.
type gcpKey struct {
	Type         string `json:"type"`
	Project      string `json:"project_id"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	Email        string `json:"client_email"`
	TokenURI     string `json:"token_uri"`
	Universe     string `json:"universe_domain"`
}

const gcpKeyHint = "give the JSON key of a service account: gcloud iam service-accounts keys create key.json --iam-account=…"

// A project's id, of old with a domain before it.
var gcpProject = regexp.MustCompile(`^([a-z0-9.-]{1,100}:)?[a-z]([-a-z0-9]{1,61}[a-z0-9])?$|^[0-9]{1,20}$`)

// parseGCPKey tells each mistake apart and repeats nothing of the key.
func parseGCPKey(text string, opts Options) (gcpKey, error) {
	var key gcpKey
	hint, message := key.read(text)
	if message == "" {
		hint, message = key.settle(opts)
	}
	if message != "" {
		return gcpKey{}, &ProviderError{Provider: "gcp", Op: "open", Class: ErrUnauthorized, Message: message, Hint: hint}
	}
	return key, nil
}

func (k *gcpKey) read(text string) (hint, message string) {
	if strings.TrimSpace(text) == "" {
		return gcpKeyHint, "the credential is empty"
	}
	if err := json.Unmarshal([]byte(text), k); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) && wrongType.Field != "" {
			return gcpKeyHint, "the key's member " + wrongType.Field + " is not a text"
		}
		if strings.Contains(text, "PRIVATE KEY") {
			return gcpKeyHint, "the credential is not a JSON object; was only its private key copied?"
		}
		return gcpKeyHint + "; the file's content, not its name", "the credential is not a JSON object"
	}
	switch k.Type {
	case "service_account":
	case "":
		return gcpKeyHint, "the key has no type"
	case "authorized_user":
		return gcpKeyHint, "the credential is a person's (gcloud auth application-default login), not a service account's key"
	case "external_account", "impersonated_service_account", "external_account_authorized_user":
		// Such files name addresses to call and programs to run.
		return gcpKeyHint, "the credential is a configuration of type " + k.Type + ", which is not supported: only a service account's key is"
	default:
		return gcpKeyHint, "the credential's type is not service_account"
	}
	for _, m := range []struct{ value, name string }{
		{k.Project, "project_id"}, {k.Email, "client_email"}, {k.PrivateKey, "private_key"},
	} {
		if m.value == "" {
			return gcpKeyHint, "the key has no " + m.name
		}
	}
	return "", ""
}

// settle checks the members, and where they lead.
func (k *gcpKey) settle(opts Options) (hint, message string) {
	if !gcpProject.MatchString(k.Project) {
		return gcpKeyHint, "the key's project_id is not a project's id"
	}
	if !strings.Contains(k.Email, "@") || strings.ContainsAny(k.Email, " \t\r\n") {
		return gcpKeyHint, "the key's client_email is not an address"
	}
	if !isRSAKey(k.PrivateKey) {
		return gcpKeyHint + "; the line breaks in private_key are written as \\n", "the key's private_key is not an RSA key in PEM form"
	}
	if k.Universe != "" && k.Universe != gcpUniverse && opts.Endpoint == "" {
		return "set the endpoint to that cloud's own Compute Engine", "the key is of another cloud than Google's public one"
	}
	if k.TokenURI == "" {
		k.TokenURI = gcpTokenURI
	}
	if err := checkEndpoint(k.TokenURI); err != nil {
		return "it is " + gcpTokenURI + " in the keys that Google makes", "the key's token_uri: " + err.Error()
	}
	if opts.Endpoint == "" && !isGoogles(k.TokenURI) {
		// The key would decide whom this machine calls.
		return "it is " + gcpTokenURI + " in the keys that Google makes; for another cloud, set the endpoint too",
			"the key's token_uri leads to " + hostOf(k.TokenURI) + ", which is not Google's"
	}
	return "", ""
}

func isGoogles(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Port() != "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".googleapis.com") || host == "accounts.google.com"
}

func isRSAKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		_, ok := key.(*rsa.PrivateKey)
		return ok
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
