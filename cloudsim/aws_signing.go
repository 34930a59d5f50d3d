package cloudsim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Who asks: signatures, and the roles of STS.

// awsSimKey is what Env names. Every other does as well.
const awsSimKey = "AKIASIMULATED0000000"

// awsSigner is who signed a request.
type awsSigner struct {
	key      string
	account  string
	region   string
	readOnly bool
	arn      string
}

// awsSessions has the temporary keys that were handed out. The times are real:
// the SDKs renew by the clock on the wall.
type awsSessions struct{ byKey map[string]awsSession }

type awsSession struct {
	token, account, arn string
	ends                time.Time
	readOnly            bool
}

func (s *Sim) awsSessions() *awsSessions {
	p := s.world.project(awsName, "sessions")
	if p.adapter == nil {
		p.adapter = &awsSessions{byKey: map[string]awsSession{}}
	}
	return p.adapter.(*awsSessions)
}

var awsAuthorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 +Credential=([^/, ]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request, *SignedHeaders=([a-z0-9;-]+), *Signature=([0-9a-f]{64})$`)

const awsClockAllowed = 5 * time.Minute

// awsSignerOf checks the signature's header, as far as that can be done
// without the secret.
func (s *Sim) awsSignerOf(r *http.Request, service string) (awsSigner, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return awsSigner{}, awsFail("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	m := awsAuthorization.FindStringSubmatch(header)
	if m == nil {
		return awsSigner{}, awsFail("IncompleteSignature", "Authorization header is not as Signature Version 4 has it.")
	}
	signer := awsSigner{key: m[1], region: m[3]}
	signed := strings.Split(m[5], ";")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case err != nil || at.Format("20060102") != m[2]:
		return signer, awsFail("IncompleteSignature", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP")
	case !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date"):
		return signer, awsFail("IncompleteSignature", "Host and X-Amz-Date must be signed.")
	case m[4] != service:
		return signer, awsFail("SignatureDoesNotMatch", "Credential should be scoped to correct service: '%s'.", service)
	}
	if off := time.Since(at); off > awsClockAllowed || off < -awsClockAllowed {
		if service == "ec2" {
			return signer, awsFail("RequestExpired", "Request has expired.")
		}
		return signer, awsFail("SignatureDoesNotMatch", "Signature expired: %s is now earlier than %s", m[2], time.Now().UTC().Format("20060102T150405Z"))
	}
	if service == "ec2" && !slices.ContainsFunc(awsRegions(), func(z awsRegion) bool { return z.name == signer.region && z.enabled }) {
		return signer, awsFail("AuthFailure", "AWS was not able to validate the provided access credentials")
	}
	return s.awsKnown(signer, r.Header.Get("X-Amz-Security-Token"), service)
}

// awsKnown finds the account of a key.
func (s *Sim) awsKnown(signer awsSigner, token, service string) (awsSigner, error) {
	unknown := awsFail("AuthFailure", "AWS was not able to validate the provided access credentials")
	expired := awsFail("RequestExpired", "Request has expired.")
	if service != "ec2" {
		unknown = awsFail("InvalidClientTokenId", "The security token included in the request is invalid.")
		expired = awsFail("ExpiredToken", "The security token included in the request is expired")
	}
	switch session, temporary := s.awsSessions().byKey[signer.key]; {
	case strings.Contains(signer.key, "INVALID"):
		return signer, unknown
	case strings.Contains(signer.key, "EXPIRED"):
		return signer, expired
	case temporary && session.token != token, !temporary && (token != "" || strings.HasPrefix(signer.key, "ASIA")):
		return signer, unknown
	case temporary && time.Now().After(session.ends):
		return signer, expired
	case temporary:
		signer.account, signer.readOnly, signer.arn = session.account, session.readOnly, session.arn
	default:
		signer.account, signer.readOnly = awsAccountOf(signer.key), strings.Contains(signer.key, "READONLY")
		signer.arn = "arn:aws:iam::" + signer.account + ":user/simulated"
	}
	return signer, nil
}

var (
	awsRole        = regexp.MustCompile(`^arn:aws:iam::(\d{12}):role/([\w+=,.@/-]+)$`)
	awsSessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
)

// assumeRole hands out a temporary key. A role named denied… trusts nobody,
// one named external-X wants the external id X, one named readonly… may only
// read.
func (a awsRequest) assumeRole() (awsFields, error) {
	arn, session := a.form.text("RoleArn"), a.form.text("RoleSessionName")
	external, seconds := a.form.text("ExternalId"), a.form.number("DurationSeconds", 3600)
	if err := a.parsed(); err != nil {
		return nil, err
	}
	m := awsRole.FindStringSubmatch(arn)
	switch {
	case m == nil:
		return nil, awsFail("ValidationError", "%s is invalid", arn)
	case !awsSessionName.MatchString(session):
		return nil, awsFail("ValidationError", "1 validation error detected: Value '%s' at 'roleSessionName' failed to satisfy constraint", session)
	case seconds < 900 || seconds > 43200:
		return nil, awsFail("ValidationError", "1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy constraint", seconds)
	}
	wanted, wants := strings.CutPrefix(m[2], "external-")
	if strings.HasPrefix(m[2], "denied") || wants && external != wanted {
		return nil, awsFail("AccessDenied", "User: %s is not authorized to perform: sts:AssumeRole on resource: %s", a.signer.arn, arn)
	}
	w := a.sim.world
	key := fmt.Sprintf("ASIA%016X", w.rand.Uint64())
	secret, token := fmt.Sprintf("simulated%031x", w.rand.Uint64()), fmt.Sprintf("simulated-session-%016x%016x", w.rand.Uint64(), w.rand.Uint64())
	user := fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", m[1], m[2], session)
	ends := time.Now().Add(time.Duration(seconds) * time.Second)
	a.sim.awsSessions().byKey[key] = awsSession{token: token, account: m[1], arn: user, ends: ends, readOnly: strings.HasPrefix(m[2], "readonly")}
	return awsFields{
		{"AssumedRoleUser", awsFields{{"AssumedRoleId", "AROASIMULATED:" + session}, {"Arn", user}}},
		{"Credentials", awsFields{
			{"AccessKeyId", key}, {"SecretAccessKey", secret}, {"SessionToken", token}, {"Expiration", ends.UTC().Format(time.RFC3339)},
		}},
	}, nil
}

func (a awsRequest) callerIdentity() (awsFields, error) {
	if err := a.parsed(); err != nil {
		return nil, err
	}
	return awsFields{{"UserId", "AIDASIMULATED" + a.signer.account[:4]}, {"Account", a.signer.account}, {"Arn", a.signer.arn}}, nil
}
