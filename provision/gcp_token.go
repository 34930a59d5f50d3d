package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
)

// Credential: its access tokens.

// gcpTokenEarly is how long before its end a token is replaced.
const gcpTokenEarly = 5 * time.Minute

// The scopes of the tokens: compute, and for the preflight and the prices the
// right to read. What may be done within them, roles decide.
var gcpScopes = []string{
	"https://www.googleapis.com/auth/compute",
	"https://www.googleapis.com/auth/cloud-platform.read-only",
	"https://www.googleapis.com/auth/cloud-billing.readonly",
}

// gcpTokens is the token source: each request asks it, and one that comes when
// the token is about to end fetches the next for all.
type gcpTokens struct {
	key    gcpKey
	client *http.Client
	gate   chan struct{} // held while a token is fetched

	mu     sync.Mutex
	last   *oauth2.Token
	minted time.Time
	count  int
}

func newGCPTokens(key gcpKey, client *http.Client) *gcpTokens {
	return &gcpTokens{key: key, client: httpClient(client), gate: make(chan struct{}, 1)}
}

// token is a tokenFunc.
func (t *gcpTokens) token(ctx context.Context) (string, error) {
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

func (t *gcpTokens) current() *oauth2.Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return nil
	}
	left, life := time.Until(t.last.Expiry), t.last.Expiry.Sub(t.minted)
	if !t.last.Expiry.IsZero() && left < gcpTokenEarly && left < life/2 {
		return nil
	}
	return t.last
}

// generation counts the tokens that were fetched.
func (t *gcpTokens) generation() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// forget drops a token that the API did not accept, and tells whether another
// one may do better: that of a call which began when there was none was new.
func (t *gcpTokens) forget(generation int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation == t.count {
		t.last = nil
	}
	return generation > 0
}

// boundTransport ties requests to a context, which package jwt does not, and
// keeps the error that it flattens to a text.
type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
	err  error
}

func (b *boundTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r.WithContext(b.ctx))
	b.err = err
	return resp, err
}

func (t *gcpTokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	bound := &boundTransport{ctx: ctx, next: t.client.Transport}
	if bound.next == nil {
		bound.next = http.DefaultTransport
	}
	client := *t.client
	client.Transport = bound
	cfg := jwt.Config{
		Email: t.key.Email, PrivateKey: []byte(t.key.PrivateKey), PrivateKeyID: t.key.PrivateKeyID,
		Scopes: gcpScopes, TokenURL: t.key.TokenURI,
	}
	tok, err := cfg.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &client)).Token()
	if err == nil && tok.AccessToken == "" {
		err = errors.New("no token in the answer")
	}
	if err != nil {
		return nil, t.failure(ctx, err, bound.err)
	}
	return tok, nil
}

// failure says why there is no token. The call that needed one was not sent,
// so that whatever may pass is worth a repeat of any call.
func (t *gcpTokens) failure(ctx context.Context, err, sendErr error) error {
	host := hostOf(t.key.TokenURI)
	var answer *oauth2.RetrieveError
	switch {
	case sendErr != nil || ctx.Err() != nil:
		e := networkError(ctx, sendErr, host)
		if e.again == againSafe {
			e.again = againAny
		}
		e.Message = "no access token: " + e.Message
		return e
	case !errors.As(err, &answer) || answer.Response == nil:
		return &ProviderError{Class: ErrUnavailable, Message: host + " does not answer as a token endpoint", Hint: "check token_uri in the key"}
	}
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(answer.Body, &body) // what is no JSON stays empty
	e := &ProviderError{
		Status: answer.Response.StatusCode, RetryAfter: retryAfter(answer.Response.Header, time.Now()),
		Code: clip(oneLine(body.Error), 100), Message: clip(oneLine(body.Description), 300),
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("%s gave no access token", host)
	}
	gcpTokenClass(e)
	return e
}

func gcpTokenClass(e *ProviderError) {
	text := strings.ToLower(e.Message)
	switch {
	case e.Status == http.StatusTooManyRequests:
		e.Class, e.again = ErrRateLimited, againAny
		return
	case e.Status >= 500:
		e.Class, e.again = ErrUnavailable, againAny
		return
	case e.Code == "" || e.Status < 400:
		e.Class, e.Hint = ErrUnavailable, "that was not a token endpoint's answer: check token_uri in the key"
		return
	}
	e.Class = ErrUnauthorized
	switch {
	case strings.Contains(text, "reasonable timeframe") || strings.Contains(text, "short-lived"):
		e.Hint = "this machine's clock is wrong: set it, and repeat"
	case strings.Contains(text, "account not found"):
		e.Hint = "the service account does not exist any more, or was just made: check client_email"
	case strings.Contains(text, "signature"):
		e.Hint = "the key was deleted or disabled, or is another account's: make a new one (gcloud iam service-accounts keys create)"
	case e.Code == "unauthorized_client":
		e.Hint = "the service account is disabled, or may not have these scopes"
	default:
		e.Hint = hintGCPKey
	}
}
