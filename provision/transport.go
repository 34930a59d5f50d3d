package provision

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// The transport of the providers that are spoken to over plain HTTP and JSON
// is a chain of steps. Each step is one file, does one thing, and passes the
// call on. From the caller to the network:
//
//	retry    sends it again, where that cannot do harm
//	log      one debug line per attempt
//	errors   turns what is not a success into a *ProviderError
//	govern   waits when the account's request limit comes near
//	timeout  gives the attempt its own time limit
//	auth     puts the credential on it
//	agent    says who calls
//	http     sends it and reads the answer, up to a size

// call is one request to a provider's API.
type call struct {
	op     string // what is tried, for people: "create server"
	method string
	path   string // below the endpoint, beginning with a slash
	query  url.Values
	body   any // sent as JSON; nil for none
	// harmless says of a POST that doing it twice is like doing it once.
	harmless bool
	// secrets are texts of the body that no error may repeat.
	secrets []string

	payload []byte      // the encoded body
	header  http.Header // filled along the chain
}

// safe tells whether the call may be sent again when it is not known whether
// it had an effect.
func (c *call) safe() bool { return c.method != http.MethodPost || c.harmless }

// with returns a copy of the call with one more header, so that a repeat
// starts from a clean one.
func (c *call) with(key, value string) *call {
	next := *c
	next.header = c.header.Clone()
	if next.header == nil {
		next.header = http.Header{}
	}
	next.header.Set(key, value)
	return &next
}

// answer is a whole response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// step is one link of the chain.
type step func(ctx context.Context, c *call) (*answer, error)

// apiConfig is what differs between providers.
type apiConfig struct {
	provider string
	endpoint string // without a slash at its end
	options  Options
	// token returns the credential of one request.
	token tokenFunc
	// classify reads a provider's error body into e: Code, Message, Class,
	// Hint and again. What it leaves empty goes by the HTTP status.
	classify func(e *ProviderError, body []byte)
	// requestID is the header that has the provider's id of the call.
	requestID string
	// pause is how long to wait before the next request, given what the
	// rate-limit headers say.
	pause pauseFunc
}

// apiClient sends calls through the chain.
type apiClient struct {
	provider string
	send     step
}

const (
	attemptTimeout = 30 * time.Second
	maxAnswerBytes = 16 << 20
)

func newAPIClient(cfg apiConfig) *apiClient {
	hide := &redactor{}
	logger := cfg.options.logger().With(slog.String("provider", cfg.provider))

	if isOpenHTTP(cfg.endpoint) {
		logger.Warn("the endpoint is not encrypted: whoever is on the way can read the credential", slog.String("host", hostOf(cfg.endpoint)))
	}
	send := sendHTTP(httpClient(cfg.options.HTTPClient), cfg.endpoint, maxAnswerBytes)
	send = withAgent(send, cfg.options.shortName())
	send = withAuth(send, cfg.token, hide)
	send = withTimeout(send, attemptTimeout)
	send = withGovernor(send, newGovernor(cfg.pause))
	send = withErrors(send, cfg, hide)
	send = withLog(send, logger)
	send = withRetry(send, newRetrier())
	return &apiClient{provider: cfg.provider, send: send}
}

// do sends c and decodes the answer's JSON into out, which may be nil.
func (a *apiClient) do(ctx context.Context, c call, out any) error {
	if c.body != nil {
		payload, err := json.Marshal(c.body)
		if err != nil {
			return invalidError(a.provider, c.op, "the request cannot be encoded")
		}
		c.payload = payload
	}
	ans, err := a.send(ctx, &c)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(ans.body, out); err != nil {
		// Not the decoder's text: it may quote the answer.
		return &ProviderError{
			Provider: a.provider, Op: c.op, Class: ErrUnavailable,
			Message: "the answer is not the JSON that was expected; is the endpoint right?",
		}
	}
	return nil
}
