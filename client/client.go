package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// Options says how to reach a control plane.
type Options struct {
	// URL is the API's address, as https://127.0.0.1:8440. Plain http is
	// taken for loopback addresses only, since the token goes with it.
	URL string
	// Token is the API token. TokenFile is a file that holds it, read at each
	// call, so that a changed token counts at once. Token wins.
	Token     string
	TokenFile string
	// CAFingerprint is the pin of the control plane's CA, sha256:<64 hex>.
	// Empty means that the system's roots decide.
	CAFingerprint string
	// UserAgent is sent with each call; empty means a plain one.
	UserAgent string
	// Transport replaces the HTTP transport, and with it CAFingerprint.
	Transport http.RoundTripper
}

// Client calls one control plane.
type Client struct {
	base  *url.URL
	opts  Options
	http  *http.Client
	sleep func(ctx context.Context, d time.Duration) error
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 64 << 20

// New returns a client. It sends nothing yet.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, &Error{Class: ClassInvalid, Message: fmt.Sprintf("%q is not the address of a control plane", o.URL),
			Hint: "an address looks like https://127.0.0.1:8440"}
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, &Error{Class: ClassInvalid, Message: fmt.Sprintf("%s would send the API token unencrypted", o.URL),
			Hint: "use https, with " + EnvCAFingerprint + " when the certificate is the control plane's own"}
	}
	if u.User != nil {
		return nil, &Error{Class: ClassInvalid, Message: "the control plane's address must not hold a user or password"}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawQuery, u.Fragment = "", ""
	rt := o.Transport
	if rt == nil {
		if rt, err = transport(o.CAFingerprint); err != nil {
			return nil, err
		}
	}
	if o.UserAgent == "" {
		o.UserAgent = "slipway-client"
	}
	return &Client{base: u, opts: o, sleep: sleep, http: &http.Client{
		Transport: rt,
		// The API never redirects; following one would carry the token along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func transport(fingerprint string) (http.RoundTripper, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		ResponseHeaderTimeout: 2 * time.Minute, // an audit or a check waits for a provider
	}
	if fingerprint == "" {
		return t, nil
	}
	pin, err := enroll.ParseFingerprint(fingerprint)
	if err != nil {
		return nil, &Error{Class: ClassInvalid, Message: "the CA fingerprint is not usable: " + err.Error(),
			Hint: "it is printed by `slipway serve`, as sha256: and 64 hex digits", Err: err}
	}
	// The dialler also compares an IP address that was dialled with the
	// certificate; the configuration serves connections through a proxy.
	if t.DialTLSContext, err = enroll.PinnedDialTLS(pin); err != nil {
		return nil, err
	}
	if t.TLSClientConfig, err = enroll.PinnedTLSConfig(pin); err != nil {
		return nil, err
	}
	return t, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the control plane's address.
func (c *Client) URL() string { return c.base.String() }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

type call struct {
	method string
	path   string // with every segment escaped
	query  url.Values
	body   any
	header http.Header
}

// do sends one call and decodes the answer into out, when out is not nil. A
// call that may be repeated safely is sent again, twice at most, when the
// connection broke without an answer.
func (c *Client) do(ctx context.Context, in call, out any) error {
	var body []byte
	if in.body != nil {
		var err error
		if body, err = json.Marshal(in.body); err != nil {
			return err
		}
	}
	repeatable := in.method == http.MethodGet || in.method == http.MethodDelete || in.header.Get("Idempotency-Key") != ""
	for try := 0; ; try++ {
		resp, err := c.send(ctx, in, body)
		if err != nil {
			if repeatable && try < 2 && brokeOff(err) && ctx.Err() == nil {
				continue
			}
			return err
		}
		defer resp.Body.Close()
		if out == nil || resp.StatusCode == http.StatusNoContent {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
			return nil
		}
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
			return &Error{Class: ClassUnavailable, Status: resp.StatusCode, Err: err,
				Message: fmt.Sprintf("the answer of %s was not readable: %v", c.base.Host, err)}
		}
		return nil
	}
}

// send sends a call and returns an answer of the 200 family, or an error.
func (c *Client) send(ctx context.Context, in call, body []byte) (*http.Response, error) {
	u := *c.base
	u.RawQuery = in.query.Encode()
	full, err := url.Parse(strings.TrimSuffix(c.base.String(), "/") + in.path)
	if err != nil {
		return nil, err
	}
	full.RawQuery = u.RawQuery
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, in.method, full.String(), r)
	if err != nil {
		return nil, err
	}
	for k, v := range in.header {
		req.Header[k] = v
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.answerError(resp)
	}
	return resp, nil
}

func (c *Client) token() (string, error) {
	if c.opts.Token != "" || c.opts.TokenFile == "" {
		return c.opts.Token, nil
	}
	data, err := os.ReadFile(c.opts.TokenFile)
	if err != nil {
		return "", &Error{Class: ClassUnauthorized, Message: "the API token could not be read: " + err.Error(), Err: err,
			Hint: "the control plane makes the file at its first start; " + EnvTokenFile + " names another, " + EnvToken + " holds the token itself"}
	}
	return strings.TrimSpace(string(data)), nil
}

// answerError turns an answer that is not of the 200 family into an Error.
func (c *Client) answerError(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p Problem
	if (media == "application/problem+json" || media == "application/json") && json.Unmarshal(data, &p) == nil && p.Title+p.Detail != "" {
		p.Status = resp.StatusCode
		e := NewError(p)
		if e.Status == http.StatusUnauthorized && e.Hint == "" {
			e.Hint = tokenHint
		}
		return e
	}
	return &Error{Status: resp.StatusCode, Message: fmt.Sprintf("%s answered %d %s, which is not an answer of Slipway's API",
		c.base.Host, resp.StatusCode, http.StatusText(resp.StatusCode)), Hint: "check that " + c.base.String() + " is a Slipway control plane's API address"}
}

const tokenHint = "the token is in the file api-token of the control plane's data directory; " + EnvTokenFile + " or " + EnvToken + " tells the command"

// connectionError words a call that got no answer.
func (c *Client) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // the address stands in the message below
	}
	e := &Error{Class: ClassUnreachable, Err: err,
		Message: fmt.Sprintf("the control plane at %s is not reachable: %v", c.base.String(), err)}
	var certErr *tls.CertificateVerificationError
	var skew *enroll.ClockSkewError
	switch {
	case errors.As(err, &skew):
		e.Hint = "set the clock that is wrong, here or there"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Hint = "nothing listens there: start a control plane with `slipway serve`, or set " + EnvURL + " to where it runs"
	case errors.Is(err, enroll.ErrWrongCA) || errors.As(err, &certErr) || errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.UnknownAuthorityError)):
		e.Message = fmt.Sprintf("the server at %s is not the control plane that was expected: %v", c.base.String(), err)
		e.Hint = "compare " + EnvCAFingerprint + " with the fingerprint that `slipway serve` prints; if they differ, something stands in between"
	default:
		e.Hint = "check the address, and that `slipway serve` runs there"
	}
	return e
}

// brokeOff tells that a connection ended in the middle of a call.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
