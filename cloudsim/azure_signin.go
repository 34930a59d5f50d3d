package cloudsim

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Sign-in: the OAuth2 token endpoint of Microsoft Entra, and the documents by
// which MSAL finds it. Their paths begin with the tenant, at the root.

// What Env names. Every other of the form does as well: each subscription is
// an account of its own.
const (
	azureTenantID       = "51a71a7e-0000-4000-8000-000000000001"
	azureClientID       = "51a71a7e-0000-4000-8000-000000000002"
	azureSubscriptionID = "51a71a7e-0000-4000-8000-000000000003"
)

// azureTokenLife is how long an access token is good.
const azureTokenLife = time.Hour

// What is not accepted begins so: client secrets, and subjects of federated
// tokens.
const (
	azureInvalid  = "invalid"
	azureExpired  = "expired"
	azureReadOnly = "readonly"
)

var azureSignInPath = regexp.MustCompile(`^/([A-Za-z0-9.-]+)/(oauth2/v2\.0/token|v2\.0/\.well-known/openid-configuration|discovery/instance)$`)

// azureSignIn answers what belongs to sign-in and hands on the rest.
func (s *Sim) azureSignIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := azureSignInPath.FindStringSubmatch(r.URL.Path)
		switch {
		case m == nil:
			next.ServeHTTP(w, r)
		case m[2] == "oauth2/v2.0/token":
			s.azureTokenCall(w, r, m[1])
		case m[2] == "discovery/instance":
			reply(w, http.StatusOK, map[string]any{
				"tenant_discovery_endpoint": baseOf(r) + "/" + azureTenantID + "/v2.0/.well-known/openid-configuration",
				"api-version":               "1.1",
				"metadata": []any{map[string]any{
					"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host},
				}},
			})
		default:
			authority := baseOf(r) + "/" + m[1]
			reply(w, http.StatusOK, map[string]any{
				"issuer": authority + "/v2.0", "authorization_endpoint": authority + "/oauth2/v2.0/authorize",
				"token_endpoint": authority + "/oauth2/v2.0/token", "jwks_uri": authority + "/discovery/v2.0/keys",
				"token_endpoint_auth_methods_supported": []string{"client_secret_post", "private_key_jwt"},
				"response_types_supported":              []string{"code", "id_token"},
				"subject_types_supported":               []string{"pairwise"},
				"id_token_signing_alg_values_supported": []string{"RS256"},
			})
		}
	})
}

// azureToken is what an access token says.
type azureToken struct {
	client   string
	readOnly bool
}

type azureClaims struct {
	Client   string `json:"appid"`
	Tenant   string `json:"tid"`
	Expires  int64  `json:"exp"`
	ReadOnly bool   `json:"readonly,omitempty"`
	ID       string `json:"uti"`
}

// azureTokenCall is POST /{tenant}/oauth2/v2.0/token.
func (s *Sim) azureTokenCall(w http.ResponseWriter, r *http.Request, tenant string) {
	body, _, err := readBody(r)
	if err != nil {
		return
	}
	c := &call{sim: s, name: "get token", w: w, r: r, body: body}
	c.faulty(azureName, func(w http.ResponseWriter, f Fault) {
		status := f.Status
		if status == 0 {
			status = map[Effect]int{EffectRateLimit: 429, EffectUnauthorized: 401}[f.Effect]
		}
		s.azureSignInError(w, max(status, 400), "temporarily_unavailable", "AADSTS90033: A transient error has occurred. Please try again.")
	}, func(w http.ResponseWriter) {
		form, err := url.ParseQuery(string(body))
		if r.Method != http.MethodPost || err != nil {
			s.azureSignInError(w, http.StatusBadRequest, "invalid_request", "AADSTS900144: The request body must contain the following parameter: 'grant_type'.")
			return
		}
		readOnly, refusal := azureCheckGrant(form, c.now)
		if refusal != nil {
			s.azureSignInError(w, refusal.status, refusal.code, refusal.message)
			return
		}
		claims := azureClaims{
			Client: form.Get("client_id"), Tenant: tenant, Expires: c.now.Add(azureTokenLife).Unix(), ReadOnly: readOnly, ID: s.azureID(),
		}
		text, _ := json.Marshal(claims) // texts and numbers
		// Times of the answer are in real time: what reads it waits in real time.
		life := int(azureTokenLife.Seconds() / s.opts.Speed)
		reply(w, http.StatusOK, map[string]any{
			"token_type": "Bearer", "expires_in": max(life, 60), "ext_expires_in": max(life, 60),
			"access_token": "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(text) + ".simulated",
		})
	})
}

// azureCheckGrant checks the form of a client-credentials grant.
func azureCheckGrant(form url.Values, now time.Time) (readOnly bool, refusal *azureError) {
	no := func(status int, code, message string) (bool, *azureError) {
		return false, &azureError{status: status, code: code, message: message}
	}
	secret, assertion := form.Get("client_secret"), form.Get("client_assertion")
	switch {
	case form.Get("grant_type") != "client_credentials":
		return no(400, "unsupported_grant_type", "AADSTS70003: The app requested an unsupported grant type '"+form.Get("grant_type")+"'.")
	case !azureUUID.MatchString(form.Get("client_id")):
		return no(400, "unauthorized_client", "AADSTS700016: Application with identifier '"+form.Get("client_id")+"' was not found in the directory.")
	case !azureScope(form.Get("scope")):
		return no(400, "invalid_scope", "AADSTS70011: The provided request must include a 'scope' input parameter. The provided value for the input parameter 'scope' is not valid.")
	case strings.HasPrefix(secret, azureInvalid):
		return no(401, "invalid_client", "AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID.")
	case strings.HasPrefix(secret, azureExpired):
		return no(401, "invalid_client", "AADSTS7000222: The provided client secret keys for app are expired.")
	case secret != "":
		return strings.HasPrefix(secret, azureReadOnly), nil
	case form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || assertion == "":
		return no(401, "invalid_client", "AADSTS7000218: The request body must contain the following parameter: 'client_assertion' or 'client_secret'.")
	}
	return azureCheckAssertion(assertion, now)
}

// azureCheckAssertion looks at the claims of a federated token. There is no
// signature to check: nobody has signed it.
func azureCheckAssertion(assertion string, now time.Time) (bool, *azureError) {
	no := func(message string) (bool, *azureError) {
		return false, &azureError{status: 401, code: "invalid_client", message: message}
	}
	parts := strings.Split(assertion, ".")
	var claims struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience any    `json:"aud"`
		Expires  int64  `json:"exp"`
	}
	if len(parts) != 3 {
		return no("AADSTS50027: JWT token is invalid or malformed.")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return no("AADSTS50027: JWT token is invalid or malformed.")
	}
	audience, _ := json.Marshal(claims.Audience) // a text or a list of texts
	switch {
	case !strings.Contains(string(audience), `"api://AzureADTokenExchange"`):
		return no("AADSTS700212: No matching federated identity record found for presented assertion audience.")
	case claims.Issuer == "" || strings.HasPrefix(claims.Subject, azureInvalid) || claims.Subject == "":
		return no("AADSTS700213: No matching federated identity record found for presented assertion subject '" + claims.Subject + "'.")
	case claims.Expires != 0 && now.Unix() > claims.Expires:
		return no("AADSTS700024: Client assertion is not within its valid time range.")
	}
	return strings.HasPrefix(claims.Subject, azureReadOnly), nil
}

// azureScope accepts the API's audience in all the forms that clients send:
// with one slash or two before ".default", among other scopes.
func azureScope(scope string) bool {
	for _, s := range strings.Fields(scope) {
		audience, ok := strings.CutSuffix(s, "/.default")
		if ok && strings.Contains(strings.TrimRight(audience, "/"), "://") {
			return true
		}
	}
	return false
}

func (s *Sim) azureSignInError(w http.ResponseWriter, status int, code, description string) {
	trace := s.azureID()
	number := strings.TrimPrefix(strings.SplitN(description, ":", 2)[0], "AADSTS")
	now := s.clockNow().UTC().Format("2006-01-02 15:04:05Z")
	w.Header().Set("X-Ms-Request-Id", trace)
	reply(w, status, map[string]any{
		"error": code, "error_description": description + " Trace ID: " + trace + " Correlation ID: " + trace + " Timestamp: " + now,
		"error_codes": []json.Number{json.Number(number)}, "timestamp": now, "trace_id": trace, "correlation_id": trace,
		"error_uri": "https://login.microsoftonline.com/error?code=" + number,
	})
}

// azureTokenOf reads the request's access token.
func (s *Sim) azureTokenOf(r *http.Request, now time.Time) (azureToken, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || text == "" {
		return azureToken{}, azureFail(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	parts := strings.Split(text, ".")
	var claims azureClaims
	if len(parts) == 3 {
		data, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(data, &claims) // one that is not ours stays empty
	}
	switch {
	case claims.Client == "":
		return azureToken{}, azureFail(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	case now.Unix() > claims.Expires:
		return azureToken{}, azureFail(http.StatusUnauthorized, "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time.")
	}
	return azureToken{client: claims.Client, readOnly: claims.ReadOnly}, nil
}
