package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Credential: its access tokens.

const (
	// azTokenEarly is how long before its end a token is replaced, so that
	// none ends in the middle of a call and its repeats.
	azTokenEarly = 5 * time.Minute
	// azAssertionType is that of RFC 7523.
	azAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// azTokens is the token source: each request asks it, and one that comes when
// the token is about to end fetches the next for all.
type azTokens struct {
	cred   azureCredential
	client *http.Client
	gate   chan struct{} // held while a token is fetched

	mu     sync.Mutex
	last   *oauth2.Token
	minted time.Time
	count  int
}

func newAzTokens(cred azureCredential, client *http.Client) *azTokens {
	return &azTokens{cred: cred, client: httpClient(client), gate: make(chan struct{}, 1)}
}

// token is a tokenFunc.
func (t *azTokens) token(ctx context.Context) (string, error) {
	if tok := t.current(); tok != nil {
		return tok.AccessToken, nil
	}
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
	case <-ctx.Done():
		return "", notSent(ctx)
	}
	if tok := t.current(); tok != nil { // fetched by whom we waited for
		return tok.AccessToken, nil
	}
	tok, err := t.fetch(ctx)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.minted = tok, time.Now()
	t.count++
	return tok.AccessToken, nil
}

func (t *azTokens) current() *oauth2.Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !t.last.Expiry.IsZero() && time.Until(t.last.Expiry) < azTokenEarly && time.Until(t.last.Expiry) < t.life()/2 {
		return nil
	}
	return t.last
}

// life is the whole life of the last token: one that was given a short one is
// not replaced at every request.
func (t *azTokens) life() time.Duration { return t.last.Expiry.Sub(t.minted) }

// generation counts the tokens that were fetched.
func (t *azTokens) generation() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// forget drops a token that the API did not accept, and tells whether another
// one may do better: that of a call which began when there was none was new.
func (t *azTokens) forget(generation int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation == t.count {
		t.last = nil
	}
	return generation > 0
}

func (t *azTokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	cfg := clientcredentials.Config{
		ClientID: t.cred.Client, ClientSecret: t.cred.Secret, TokenURL: t.cred.tokenURL(),
		Scopes: []string{t.cred.audience + "/.default"},
		// Not tried out: that would send each wrong secret twice.
		AuthStyle: oauth2.AuthStyleInParams,
	}
	assertion := ""
	if t.cred.TokenFile != "" {
		var err error
		if assertion, err = t.cred.readAssertion(); err != nil {
			return nil, err
		}
		cfg.EndpointParams = url.Values{"client_assertion_type": {azAssertionType}, "client_assertion": {assertion}}
	}
	tok, err := cfg.Token(context.WithValue(ctx, oauth2.HTTPClient, t.client))
	if err != nil {
		return nil, t.failure(ctx, err, assertion)
	}
	return tok, nil
}

// failure says why there is no token. The call that needed one was not sent,
// so that whatever may pass is worth a repeat of any call.
func (t *azTokens) failure(ctx context.Context, err error, assertion string) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) || answer.Response == nil {
		e := networkError(ctx, err, hostOf(t.cred.authority))
		if e.again == againSafe {
			e.again = againAny
		}
		e.Message = "no access token: " + e.Message
		return e
	}
	hide := &redactor{}
	secrets := []string{t.cred.Secret, assertion}
	e := &ProviderError{
		Status:     answer.Response.StatusCode,
		RetryAfter: retryAfter(answer.Response.Header, time.Now()),
		RequestID:  answer.Response.Header.Get("X-Ms-Request-Id"),
		Code:       cmp.Or(aadCode(answer.ErrorDescription), answer.ErrorCode),
		Message:    hide.clean(firstSentence(answer.ErrorDescription), secrets),
	}
	t.classify(e, answer.ErrorCode)
	if e.Message == "" {
		e.Message = fmt.Sprintf("%s gave no access token", hostOf(t.cred.authority))
	}
	return e
}

// classify goes by OAuth2's own word, and by Microsoft's numbers only for the
// text: they may change.
func (t *azTokens) classify(e *ProviderError, code string) {
	switch {
	case e.Status == http.StatusTooManyRequests:
		e.Class, e.again = ErrRateLimited, againAny
	case e.Status >= 500 || code == "temporarily_unavailable" || code == "server_error":
		e.Class, e.again = ErrUnavailable, againAny
	case e.Status == http.StatusNotFound && code == "" || e.Status < 400:
		e.Class = ErrUnavailable
		e.Hint = "the authority host does not answer as one: check authority_host"
	default:
		e.Class = ErrUnauthorized
	}
	if known, ok := aadCodes[e.Code]; ok && e.Class == ErrUnauthorized {
		e.Hint = known.hint
		if known.passes {
			e.again = againAny
		}
	} else if e.Class == ErrUnauthorized {
		e.Hint = "check tenant_id, client_id and client_secret or federated_token_file"
	}
}

// aadCodes are the answers of the token endpoint that people meet.
var aadCodes = map[string]struct {
	hint   string
	passes bool // it may go by: what was just set up has to spread
}{
	"AADSTS7000215": {hint: "the client secret is wrong: give its value, not the id of the secret"},
	"AADSTS7000222": {hint: "the client secret has expired: make a new one (az ad app credential reset)"},
	"AADSTS700016":  {hint: "there is no such application in this tenant: check client_id and tenant_id"},
	"AADSTS90002":   {hint: "there is no such tenant: check tenant_id, and that the authority host is that of its cloud"},
	"AADSTS900023":  {hint: "the tenant_id is neither an id nor a domain"},
	"AADSTS70011":   {hint: "the audience is not one of this cloud: check audience and authority_host"},
	"AADSTS500011":  {hint: "the audience is not one of this cloud: check audience and authority_host"},
	"AADSTS70021":   {hint: hintFederated, passes: true},
	"AADSTS700211":  {hint: hintFederated, passes: true},
	"AADSTS700212":  {hint: hintFederated, passes: true},
	"AADSTS700213":  {hint: hintFederated, passes: true},
	"AADSTS700024":  {hint: "the federated token is too old or not valid yet: is its file still renewed, and is this machine's clock right?"},
	"AADSTS700027":  {hint: "the federated token's signature is not accepted: is its issuer the one that the application names?"},
	"AADSTS7000112": {hint: "the application is disabled: enable it in the tenant"},
	"AADSTS53003":   {hint: "a conditional access policy of the tenant bars this application or address"},
}

const hintFederated = "the application has no federated credential with this token's issuer, subject and audience, letter by letter; one that was just made takes a minute"

var aadPattern = regexp.MustCompile(`^(AADSTS[0-9]{4,9})\b`)

func aadCode(description string) string {
	if m := aadPattern.FindStringSubmatch(description); m != nil {
		return m[1]
	}
	return ""
}

// firstSentence leaves out the trace ids and times that follow.
func firstSentence(description string) string {
	text, _, _ := strings.Cut(description, "Trace ID:")
	return clip(oneLine(text), 300)
}
