package provision

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAnswerError(t *testing.T) {
	cfg := apiConfig{provider: "hetzner", classify: hetznerClassify(64), requestID: "X-Correlation-Id", pause: refillPause}
	e := answerError(cfg, &answer{
		status: 409, body: []byte(`{"error":{"code":"uniqueness_error","message":"name is\nalready used"}}`),
		header: http.Header{"X-Correlation-Id": {"c-17"}},
	})
	e.Provider, e.Op = "hetzner", "create server"
	const want = "hetzner: create server: conflict: name is already used (uniqueness_error, HTTP 409, request id c-17)"
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e.Error(), want)
	}
}

func TestClassByStatusWithoutCode(t *testing.T) {
	cfg := apiConfig{classify: hetznerClassify(64), pause: refillPause}
	for status, want := range map[int]error{
		301: ErrUnavailable, 400: ErrInvalid, 401: ErrUnauthorized, 403: ErrForbidden, 404: ErrNotFound, 405: ErrInvalid,
		408: ErrUnavailable, 409: ErrConflict, 410: ErrInvalid, 412: ErrConflict, 413: ErrInvalid, 418: ErrInvalid, 422: ErrInvalid,
		423: ErrUnavailable, 429: ErrRateLimited, 500: ErrUnavailable, 502: ErrUnavailable, 503: ErrUnavailable, 504: ErrUnavailable, 599: ErrUnavailable,
	} {
		for _, body := range []string{"", "<html>", `{"error":{"code":"a_code_yet_to_come"}}`, `{"error":"text"}`, "null"} {
			if e := answerError(cfg, &answer{status: status, body: []byte(body), header: http.Header{}}); !errors.Is(e, want) {
				t.Errorf("HTTP %d with %q is %v, want %v", status, body, e.Class, want)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "0": 0, "-5": 0, "99999999999999999999": 0, "soon": 0,
		"Tue, 01 Dec 2026 12:00:30 GMT": 30 * time.Second,
		"Tue, 01 Dec 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestRateLimitWithoutRetryAfterWaitsForTheNextGrant(t *testing.T) {
	h := http.Header{}
	h.Set("RateLimit-Limit", "3600")
	h.Set("RateLimit-Remaining", "0")
	h.Set("RateLimit-Reset", "1000003600")
	if got := pauseFunc(refillPause).afterRefusal(h, time.Unix(1000000000, 0)); got != time.Second {
		t.Errorf("waits %v, want 1s: one request a second is granted, the reset is when all are", got)
	}
}

func TestNetworkError(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wrap := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://api.example/v1?name=x", Err: err}
	}
	for _, c := range []struct {
		what  string
		ctx   context.Context
		err   error
		again again
		text  string
	}{
		{"refused", t.Context(), wrap(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}), againAny, "cannot reach api.example: dial tcp: connection refused"},
		{"no such host", t.Context(), wrap(&net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}), againAny, "cannot reach api.example: lookup api.example: no such host"},
		{"reset", t.Context(), wrap(&net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}), againSafe, "the connection to api.example broke: read tcp: reset"},
		{"slow", t.Context(), wrap(context.DeadlineExceeded), againSafe, "api.example did not answer within 30s"},
		{"stopped", ended, wrap(context.Canceled), againNever, "stopped while waiting for api.example: context canceled"},
		{"certificate", t.Context(), wrap(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), againNever, "api.example shows a certificate that is not trusted"},
	} {
		e := networkError(c.ctx, c.err, "api.example")
		if e.again != c.again || !strings.HasPrefix(e.Message, c.text) || !errors.Is(e, ErrUnavailable) || strings.Contains(e.Message, "name=x") {
			t.Errorf("%s: again %v, %q; want %v, %q", c.what, e.again, e.Message, c.again, c.text)
		}
	}
	if err := networkError(ended, context.Canceled, "h"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}
}
