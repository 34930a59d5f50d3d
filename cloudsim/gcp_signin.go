package cloudsim

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sign-in: keys of service accounts, and the endpoint that gives an access
// token for what they sign. Their times are real time: who signs has no other
// clock.

const (
	gcpTokenLife = time.Hour
	gcpClockSkew = 5 * time.Minute
	gcpGrantJWT  = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	gcpBadToken  = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
	gcpBadTime   = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."
	// gcpSimToken is an access token that never ends, for tools that take one
	// as it is.
	gcpSimToken = "ya29.c." + simToken
)

// The project that Env names, and the service account whose key is handed out
// when nobody says which.
const (
	GCPProject = "slipway-sim"
	GCPAccount = "fleet"
)

// gcpScopes are those that open something here.
const gcpScopes = "https://www.googleapis.com/auth/"

var gcpAccountEmail = regexp.MustCompile(`^([a-z][a-z0-9-]{2,29})@([a-z][-a-z0-9]{1,61}[a-z0-9])\.iam\.gserviceaccount\.com$`)

// gcpToken is what an access token opens.
type gcpToken struct {
	email, project string
	scopes         []string
	readOnly       bool
	ends           time.Time
}

// gcpSignIn is the issuer of tokens. Sim.mu guards it.
type gcpSignIn struct {
	key    *rsa.PrivateKey
	tokens map[string]gcpToken
}

// gcpSigningKey is the key of all service accounts, made at its first use.
// s.mu must be held.
func (s *Sim) gcpSigningKey() (*rsa.PrivateKey, error) {
	if s.gcp.key == nil {
		s.gcp.key = s.opts.GCPKey
	}
	if s.gcp.key == nil {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, fmt.Errorf("cloudsim: %w", err)
		}
		s.gcp.key = key
	}
	return s.gcp.key, nil
}

func gcpKeyID(key *rsa.PrivateKey) string {
	sum := sha256.Sum256(key.N.Bytes())
	return hex.EncodeToString(sum[:20])
}

// GCPKey returns the JSON key of a service account of a project, as Google
// hands it out, for the cloud that is served at baseURL. An account whose name
// begins with "invalid" is not known to the token endpoint, one with "readonly"
// may only read.
func (s *Sim) GCPKey(baseURL, account, project string) ([]byte, error) {
	email := account + "@" + project + ".iam.gserviceaccount.com"
	if !gcpAccountEmail.MatchString(email) {
		return nil, fmt.Errorf("cloudsim: %q in project %q is no service account's name", account, project)
	}
	s.mu.Lock()
	key, err := s.gcpSigningKey()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cloudsim: %w", err)
	}
	baseURL = strings.TrimRight(baseURL, "/") + gcpPrefix
	return json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": gcpKeyID(key),
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": email, "client_id": "100000000000000000001", "auth_uri": baseURL + "/auth", "token_uri": baseURL + "/token",
		"universe_domain": "googleapis.com",
	})
}

// gcpKeyCall is GET /_sim/gcp/key: who asks at an address gets a key for it.
func (s *Sim) gcpKeyCall(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	account, project := q.Get("account"), q.Get("project")
	if account == "" {
		account = GCPAccount
	}
	if project == "" {
		project = GCPProject
	}
	key, err := s.GCPKey(baseOf(r), account, project)
	if err != nil {
		replyError(w, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(key) // the connection is all that can fail here
}

// gcpClaims are those of what a service account signs.
type gcpClaims struct {
	Issuer   string `json:"iss"`
	Scope    string `json:"scope"`
	Audience string `json:"aud"`
	Issued   int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

type gcpGrantError struct {
	status        int
	code, message string
}

func gcpNoGrant(format string, args ...any) *gcpGrantError {
	return &gcpGrantError{http.StatusBadRequest, "invalid_grant", fmt.Sprintf(format, args...)}
}

// gcpTokenCall is POST /token.
func (s *Sim) gcpTokenCall(w http.ResponseWriter, r *http.Request) {
	body, _, err := readBody(r)
	if err != nil {
		return
	}
	no := func(w http.ResponseWriter, e *gcpGrantError) {
		reply(w, e.status, map[string]string{"error": e.code, "error_description": e.message})
	}
	c := &call{sim: s, name: "get token", w: w, r: r, body: body}
	c.faulty(gcpName, func(w http.ResponseWriter, f Fault) {
		switch f.Effect {
		case EffectUnauthorized:
			no(w, gcpNoGrant("Invalid JWT Signature."))
		case EffectRateLimit:
			no(w, &gcpGrantError{http.StatusTooManyRequests, "rate_limit_exceeded", "Too many requests."})
		default:
			no(w, &gcpGrantError{max(f.Status, 400), "internal_failure", "Service is temporarily unavailable."})
		}
	}, func(w http.ResponseWriter) {
		form, err := url.ParseQuery(string(body))
		if err != nil || form.Get("grant_type") != gcpGrantJWT {
			no(w, &gcpGrantError{http.StatusBadRequest, "unsupported_grant_type", "Invalid grant_type: " + form.Get("grant_type")})
			return
		}
		claims, refusal := s.gcpCheckJWT(form.Get("assertion"), baseOf(r)+r.URL.Path)
		if refusal != nil {
			no(w, refusal)
			return
		}
		reply(w, http.StatusOK, map[string]any{"access_token": s.gcpMint(claims), "expires_in": int(gcpTokenLife.Seconds()) - 1, "token_type": "Bearer"})
	})
}

// gcpCheckJWT checks what was signed as the real endpoint does.
func (s *Sim) gcpCheckJWT(assertion, audience string) (gcpClaims, *gcpGrantError) {
	var c gcpClaims
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 || !gcpUnpack(parts[0], &header) || !gcpUnpack(parts[1], &c) {
		return c, gcpNoGrant("Invalid JWT: Failed JWT parsing.")
	}
	m := gcpAccountEmail.FindStringSubmatch(c.Issuer)
	now := time.Now()
	issued, expires := time.Unix(c.Issued, 0), time.Unix(c.Expires, 0)
	key, err := s.gcpSigningKey()
	switch {
	case m == nil || strings.HasPrefix(m[1], "invalid"):
		return c, gcpNoGrant("Invalid grant: account not found")
	case err != nil || header.Algorithm != "RS256" || header.KeyID != "" && header.KeyID != gcpKeyID(key) || !gcpVerifies(&key.PublicKey, parts):
		return c, gcpNoGrant("Invalid JWT Signature.")
	case c.Audience != audience && c.Audience != "https://oauth2.googleapis.com/token":
		return c, gcpNoGrant("Invalid JWT: audience is not %s", audience)
	case issued.After(now.Add(gcpClockSkew)), expires.Before(now.Add(-gcpClockSkew)), expires.Sub(issued) > gcpTokenLife, !expires.After(issued):
		return c, gcpNoGrant("%s", gcpBadTime)
	case c.Scope == "":
		return c, &gcpGrantError{http.StatusBadRequest, "invalid_scope", "Empty or missing scope not allowed."}
	}
	for scope := range strings.FieldsSeq(c.Scope) {
		if !strings.HasPrefix(scope, gcpScopes) {
			return c, &gcpGrantError{http.StatusBadRequest, "invalid_scope", scope + " is not a valid audience string."}
		}
	}
	return c, nil
}

func gcpUnpack(part string, v any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(data, v) == nil
}

func gcpVerifies(key *rsa.PublicKey, parts []string) bool {
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return err == nil && rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
}

// gcpMint makes an access token. s.mu must be held.
func (s *Sim) gcpMint(c gcpClaims) string {
	m, now := gcpAccountEmail.FindStringSubmatch(c.Issuer), time.Now()
	if s.gcp.tokens == nil {
		s.gcp.tokens = map[string]gcpToken{}
	}
	for text, t := range s.gcp.tokens {
		if t.ends.Before(now) {
			delete(s.gcp.tokens, text)
		}
	}
	text := "ya29.c." + rand.Text() + rand.Text()
	s.gcp.tokens[text] = gcpToken{
		email: c.Issuer, project: m[2], scopes: strings.Fields(c.Scope), readOnly: strings.HasPrefix(m[1], "readonly"), ends: now.Add(gcpTokenLife),
	}
	return text
}

// gcpAccess tells what a request's token opens, of a project. s.mu must be
// held.
func (s *Sim) gcpAccess(r *http.Request, project string) (gcpToken, error) {
	text, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if text == gcpSimToken {
		return gcpToken{email: GCPAccount + "@" + GCPProject + ".iam.gserviceaccount.com", project: GCPProject}, nil
	}
	t, ok := s.gcp.tokens[text]
	switch {
	case !bearer:
		return t, &gcpError{status: http.StatusUnauthorized, reason: "required", message: "Login Required.", detail: "CREDENTIALS_MISSING", rpc: "UNAUTHENTICATED"}
	case !ok:
		return t, gcpUnauthorized("", gcpBadToken)
	case t.ends.Before(time.Now()):
		return t, gcpUnauthorized("ACCESS_TOKEN_EXPIRED", gcpBadToken)
	case !t.may(r):
		return t, &gcpError{
			status: http.StatusForbidden, reason: "insufficientPermissions", message: "Request had insufficient authentication scopes.",
			detail: "ACCESS_TOKEN_SCOPE_INSUFFICIENT", rpc: "PERMISSION_DENIED",
		}
	case project != "" && project != gcpImageProject && project != t.project:
		if !gcpProjectID.MatchString(project) {
			return t, gcpInvalid("project", project, "Must be a match of regex '%s'", gcpProjectID)
		}
		return t, gcpFail(http.StatusForbidden, "forbidden", "Required 'compute.projects.get' permission for 'projects/%s'", project)
	}
	return t, nil
}

// may tells whether the token's scopes are enough for a request.
func (t gcpToken) may(r *http.Request) bool {
	need := []string{"cloud-platform"}
	reads := r.Method == http.MethodGet
	switch {
	case strings.HasPrefix(r.URL.Path, gcpPrefix+"/v1/services"):
		need = append(need, "cloud-billing", "cloud-billing.readonly")
	case strings.HasPrefix(r.URL.Path, gcpPrefix+"/v1/projects"):
		need = append(need, "cloud-platform.read-only")
	case reads:
		need = append(need, "compute", "compute.readonly", "cloud-platform.read-only")
	default:
		need = append(need, "compute")
	}
	return slices.ContainsFunc(need, func(n string) bool { return slices.Contains(t.scopes, gcpScopes+n) })
}
