package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Credential.

// AWSCredentials is the JSON shape of an AWS credential: EC2 has no single
// bearer token the way Hetzner and DigitalOcean do. Printing one shows no
// secret; encoding it as JSON does.
type AWSCredentials struct {
	AccessKeyID     string `json:"access_key_id,omitempty"`
	SecretAccessKey string `json:"secret_access_key,omitempty"`
	SessionToken    string `json:"session_token,omitempty"`
	// Region is asked about the account itself, such as which regions are
	// enabled. Servers are made in CreateOpts.Region. Default: us-east-1; an
	// account of another partition (aws-cn, aws-us-gov) has to name one.
	Region string `json:"region,omitempty"`
	// RoleARN, when set, is assumed via STS AssumeRole on top of whichever base
	// credentials resolve below: the base credentials then only need
	// sts:AssumeRole on this one ARN, not direct EC2 permissions, matching
	// least-privilege IAM practice.
	RoleARN string `json:"role_arn,omitempty"`
	// UseAmbientCredentials, with AccessKeyID/SecretAccessKey both empty,
	// resolves this program's own AWS identity (env vars, shared config, or an
	// EC2 instance profile) instead of a stored static key. Without it, that
	// identity is never used.
	UseAmbientCredentials bool `json:"use_ambient_credentials,omitempty"`
	// ExternalID goes with RoleARN when the role is somebody else's and its
	// trust policy asks for one (sts:ExternalId).
	ExternalID string `json:"external_id,omitempty"`
}

// String names the key and the role, never a secret.
func (c AWSCredentials) String() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"access_key_id", c.AccessKeyID}, {"secret_access_key", hidden(c.SecretAccessKey)}, {"session_token", hidden(c.SessionToken)},
		{"region", c.Region}, {"role_arn", c.RoleARN}, {"external_id", hidden(c.ExternalID)},
	} {
		if p.value != "" {
			parts = append(parts, p.name+"="+p.value)
		}
	}
	if c.UseAmbientCredentials {
		parts = append(parts, "use_ambient_credentials")
	}
	return "AWSCredentials(" + strings.Join(parts, " ") + ")"
}

// GoString is String: %#v shows no secret either.
func (c AWSCredentials) GoString() string { return c.String() }

// LogValue is String.
func (c AWSCredentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

func hidden(s string) string {
	if s == "" {
		return ""
	}
	return redacted
}

const awsCredentialHint = `give JSON: {"access_key_id": "AKIA…", "secret_access_key": "…", "region": "eu-central-1"}, or {"use_ambient_credentials": true}; role_arn and external_id when a role is to be assumed`

func awsMistake(hint, format string, args ...any) error {
	return &ProviderError{Provider: "aws", Op: "open", Class: ErrUnauthorized, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// parseAWSCredentials tells each mistake apart and repeats no value.
func parseAWSCredentials(text string) (AWSCredentials, error) {
	var c AWSCredentials
	text = strings.TrimSpace(text)
	if text == "" {
		return c, awsMistake(awsCredentialHint, "the credential is empty")
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if err == nil && d.More() {
		err = errors.New("more than one value")
	}
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		want := "a text"
		if wrongType.Type.Kind().String() == "bool" {
			want = "true or false"
		}
		return AWSCredentials{}, awsMistake(awsCredentialHint, "the credential's member %s is not %s", wrongType.Field, want)
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return AWSCredentials{}, awsMistake(awsCredentialHint, "the credential has a member %q, which is none of AWS's", clip(name, 40))
	case err != nil || !strings.HasPrefix(text, "{"):
		return AWSCredentials{}, awsMistake(awsCredentialHint, "the credential is not a JSON object")
	}
	c = c.trimmed()
	return c, c.check()
}

func (c AWSCredentials) trimmed() AWSCredentials {
	for _, s := range []*string{&c.AccessKeyID, &c.SecretAccessKey, &c.SessionToken, &c.Region, &c.RoleARN, &c.ExternalID} {
		*s = strings.TrimSpace(*s)
	}
	return c
}

var (
	awsRoleARN    = regexp.MustCompile(`^arn:aws(-[a-z-]+)?:iam::\d{12}:role/[\x21-\x7e]{1,512}$`)
	awsExternalID = regexp.MustCompile(`^[\w+=,.@:/-]{2,}$`) // its length is checked apart
	awsKeyID      = regexp.MustCompile(`^[A-Za-z0-9_]{4,128}$`)
)

// check finds what can never work, before anything is sent.
func (c AWSCredentials) check() error {
	switch {
	case c.AccessKeyID == "" && c.SecretAccessKey != "":
		return awsMistake(awsCredentialHint, "the credential has a secret_access_key and no access_key_id")
	case c.AccessKeyID != "" && c.SecretAccessKey == "":
		return awsMistake(awsCredentialHint, "the credential has an access_key_id and no secret_access_key")
	case c.AccessKeyID == "" && c.SessionToken != "":
		return awsMistake(awsCredentialHint, "the credential has a session_token and no keys")
	case c.AccessKeyID == "" && !c.UseAmbientCredentials:
		return awsMistake(awsCredentialHint, "the credential has no keys, and use_ambient_credentials is not set: this program's own AWS identity is not used unasked")
	case awsLooksLikeKeyID(c.SecretAccessKey):
		return awsMistake("swap the two", "the credential's secret_access_key is an access key's id")
	case c.AccessKeyID != "" && !awsKeyID.MatchString(c.AccessKeyID):
		return awsMistake("it has about 20 letters and digits, as AKIA…", "the credential's access_key_id is not one")
	case strings.HasPrefix(c.AccessKeyID, "ASIA") && c.SessionToken == "":
		return awsMistake("give session_token too, or a long-lived key (AKIA…)", "the credential's key is temporary (ASIA…) and has no session_token")
	case c.Region != "" && !awsRegionPattern.MatchString(c.Region):
		return awsMistake("a region is a code such as eu-central-1, without a zone's letter", "the credential's region %q is none", clip(c.Region, 40))
	case c.RoleARN != "" && !awsRoleARN.MatchString(c.RoleARN):
		return awsMistake("it looks like arn:aws:iam::123456789012:role/name", "the credential's role_arn is not the ARN of a role")
	case c.RoleARN == "" && c.ExternalID != "":
		return awsMistake("give role_arn too, or leave external_id out", "the credential has an external_id and no role_arn")
	case c.ExternalID != "" && (len(c.ExternalID) > 1224 || !awsExternalID.MatchString(c.ExternalID)):
		return awsMistake("2 to 1224 of letters, digits and +=,.@:/-", "the credential's external_id is not one")
	case c.RoleARN != "" && awsPartition(awsOr(c.Region, awsHome)) != strings.Split(c.RoleARN, ":")[1]:
		return awsMistake("name a region of the role's own partition", "the credential's role_arn and its region belong to different partitions of AWS")
	}
	for name, value := range map[string]string{"secret_access_key": c.SecretAccessKey, "session_token": c.SessionToken} {
		if value != "" && checkToken(value) != nil {
			return awsMistake("copy it again, whole and without quotes around it", "the credential's %s holds a space, a line break or a character that is not ASCII", name)
		}
	}
	return nil
}

func awsLooksLikeKeyID(s string) bool {
	return len(s) == 20 && (strings.HasPrefix(s, "AKIA") || strings.HasPrefix(s, "ASIA"))
}

func awsOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// awsPartition is the family of regions that share accounts.
func awsPartition(region string) string {
	for prefix, partition := range map[string]string{
		"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b", "us-isof-": "aws-iso-f", "eu-isoe-": "aws-iso-e", "eusc-": "aws-eusc",
	} {
		if strings.HasPrefix(region, prefix) {
			return partition
		}
	}
	return "aws"
}

// awsIdentityError is why no credentials could be had: nothing was sent to
// EC2.
type awsIdentityError struct{ err error }

func (e *awsIdentityError) Error() string { return e.err.Error() }
func (e *awsIdentityError) Unwrap() error { return e.err }

// credentials is the source of what requests are signed with: the static keys
// or this program's own identity, and a role on top when one is named. What it
// hands out is kept until shortly before its end, and told to the redactor.
func (a *AWS) credentials() aws.CredentialsProvider {
	var base aws.CredentialsProvider
	if a.creds.AccessKeyID != "" {
		base = credentials.NewStaticCredentialsProvider(a.creds.AccessKeyID, a.creds.SecretAccessKey, a.creds.SessionToken)
	} else {
		base = &awsAmbient{}
	}
	for _, secret := range []string{a.creds.SecretAccessKey, a.creds.SessionToken, a.creds.ExternalID} {
		if secret != "" {
			a.hide.learn(secret)
		}
	}
	source := base
	if a.creds.RoleARN != "" {
		client := sts.New(sts.Options{
			Region: a.home(), Credentials: aws.NewCredentialsCache(base), HTTPClient: a.http,
			BaseEndpoint: a.endpoints.sts, Retryer: aws.NopRetryer{},
		})
		source = stscreds.NewAssumeRoleProvider(client, a.creds.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = a.labels.short + "-provision"
			if a.creds.ExternalID != "" {
				o.ExternalID = aws.String(a.creds.ExternalID)
			}
		})
	}
	cache := aws.NewCredentialsCache(source)
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		c, err := cache.Retrieve(ctx)
		if err != nil {
			return c, &awsIdentityError{err}
		}
		for _, secret := range []string{c.SecretAccessKey, c.SessionToken} {
			if secret != "" {
				a.hide.learn(secret)
			}
		}
		return c, nil
	})
}

// awsAmbient is this program's own AWS identity, looked for at its first use,
// as every AWS tool does it and over the SDK's own HTTP client: some of the
// places are on this machine.
type awsAmbient struct {
	mu     sync.Mutex
	source aws.CredentialsProvider
}

func (p *awsAmbient) Retrieve(ctx context.Context) (aws.Credentials, error) {
	source, err := p.find(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	return source.Retrieve(ctx)
}

func (p *awsAmbient) find(ctx context.Context) (aws.CredentialsProvider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.source != nil {
		return p.source, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	p.source = cfg.Credentials
	return p.source, nil
}
