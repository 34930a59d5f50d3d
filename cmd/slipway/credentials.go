package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/provision"
)

// credentialFromEnv reads a credential as the provider's own tools would, in
// the form that an account takes. source says where it was found.
func credentialFromEnv(provider string, getenv func(string) string) (credential, source string, err error) {
	info, err := providerInfo(provider)
	if err != nil {
		return "", "", err
	}
	switch provider {
	case "aws":
		credential, source, err = awsFromEnv(getenv)
	case "azure":
		credential, source = provision.AzureCredentialFromEnv(getenv), "AZURE_TENANT_ID and its kin"
	case "gcp":
		source = info.CredentialEnv[0]
		credential, err = fileOf(getenv(source), source)
	default:
		credential, source, err = tokenFromEnv(info, getenv)
	}
	if err != nil {
		return "", "", err
	}
	if credential == "" {
		return "", "", &client.Error{
			Class:    client.ClassUnauthorized,
			Provider: provider,
			Message:  fmt.Sprintf("no credential for %s: %s is not set", info.Title, strings.Join(info.CredentialEnv, " or ")),
			Hint:     "it is " + info.Credential,
		}
	}
	return credential, source, nil
}

// tokenFromEnv reads NAME, or the file that NAME_FILE names.
func tokenFromEnv(info provision.ProviderInfo, getenv func(string) string) (token, source string, err error) {
	for _, name := range info.CredentialEnv {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v, name, nil
		}
		if file := getenv(name + "_FILE"); file != "" {
			token, err = fileOf(file, name+"_FILE")
			return token, name + "_FILE", err
		}
	}
	return "", "", nil
}

// fileOf reads the file that a variable names; no name is no credential.
func fileOf(path, variable string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%w: the file that %s names: %w", provision.ErrUnauthorized, variable, err)
	}
	return strings.TrimSpace(string(data)), nil
}

func awsFromEnv(getenv func(string) string) (credential, source string, err error) {
	c := provision.AWSCredentials{
		AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"), Region: getenv("AWS_REGION"),
	}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return "", "", nil
	}
	if c.Region == "" {
		c.Region = getenv("AWS_DEFAULT_REGION")
	}
	data, err := json.Marshal(c)
	return string(data), "AWS_ACCESS_KEY_ID", err
}
