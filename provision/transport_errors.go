package provision

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const maxErrorBody = 4 << 10

// withErrors turns every failure into a *ProviderError that says where, what
// and of which class, and holds no credential.
func withErrors(next step, cfg apiConfig, hide *redactor) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		ans, err := next(ctx, c)
		var e *ProviderError
		switch {
		case err == nil && ans.status >= 200 && ans.status <= 299:
			return ans, nil
		case err == nil:
			e = answerError(cfg, ans)
		case !errors.As(err, &e):
			e = networkError(ctx, err, hostOf(cfg.endpoint))
		}
		e.Provider, e.Op = cfg.provider, c.op
		e.Body = clip(hide.clean(e.Body, c.secrets), maxErrorBody)
		e.Message = hide.clean(e.Message, c.secrets)
		e.Code = clip(oneLine(hide.clean(e.Code, c.secrets)), 100)
		if e.cause != nil {
			e.cause = hide.cause(e.cause, c.secrets)
		}
		return nil, e
	}
}

func answerError(cfg apiConfig, ans *answer) *ProviderError {
	e := &ProviderError{
		Status: ans.status, Body: string(ans.body),
		RequestID:  ans.header.Get(cfg.requestID),
		RetryAfter: retryAfter(ans.header, time.Now()),
		again:      againOfStatus(ans.status),
	}
	cfg.classify(e, ans.body)
	if e.Class == nil {
		e.Class = classOfStatus(e.Status)
	}
	if errors.Is(e.Class, ErrRateLimited) && e.RetryAfter == 0 {
		e.RetryAfter = cfg.pause.afterRefusal(ans.header, time.Now())
	}
	if e.Message == "" && ans.status >= 300 && ans.status <= 399 {
		e.Message = fmt.Sprintf("redirected to %q, which is not followed", hostOf(ans.header.Get("Location")))
		e.Hint = "set the endpoint to the API's own address"
	}
	return e
}

func againOfStatus(status int) again {
	switch status {
	case http.StatusTooManyRequests:
		return againAny
	case http.StatusRequestTimeout, http.StatusLocked, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return againSafe
	}
	return againNever
}

// networkError is for a call that got no answer.
func networkError(ctx context.Context, err error, host string) *ProviderError {
	e := &ProviderError{Class: ErrUnavailable, cause: err}
	var notTrusted *tls.CertificateVerificationError
	switch {
	case ctx.Err() != nil:
		e.cause = ctx.Err()
		e.Message = "stopped while waiting for " + host + ": " + ctx.Err().Error()
	case errors.As(err, &notTrusted):
		e.Message = fmt.Sprintf("%s shows a certificate that is not trusted: %v", host, inner(err))
		e.Hint = "check the endpoint, and the clock and the root certificates of this machine"
	case neverSent(err):
		e.again = againAny
		e.Message = fmt.Sprintf("cannot reach %s: %v", host, inner(err))
		e.Hint = "check the endpoint and this machine's network"
	case errors.Is(err, context.DeadlineExceeded):
		e.again = againSafe
		e.Message = fmt.Sprintf("%s did not answer within %v", host, attemptTimeout)
	default:
		e.again = againSafe
		e.Message = fmt.Sprintf("the connection to %s broke: %v", host, inner(err))
	}
	return e
}

// notSent is for a call whose context ended before it was sent.
func notSent(ctx context.Context) *ProviderError {
	return &ProviderError{
		Class: ErrUnavailable, again: againAny, cause: ctx.Err(),
		Message: "stopped before anything was sent: " + ctx.Err().Error(),
	}
}

// neverSent tells whether the request cannot have left: there was no
// connection to send it on.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// inner takes off the method and the URL that net/http puts around its errors.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the provider"
	}
	return u.Host
}

// retryAfter reads Retry-After in both of its forms.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 && seconds < 1<<31 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
