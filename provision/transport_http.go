package provision

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
)

// httpClient returns a copy of c, or of a plain client, that follows no
// redirect: none of these APIs needs one, and each would carry the
// credential, or a create, to a place that nobody chose.
func httpClient(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// isOpenHTTP tells whether requests leave this machine without encryption.
func isOpenHTTP(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err != nil || !a.IsLoopback()
}

// sendHTTP is the end of the chain: one request, one whole answer of at most
// limit bytes.
func sendHTTP(client *http.Client, endpoint string, limit int64) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		if ctx.Err() != nil {
			return nil, notSent(ctx)
		}
		address := endpoint + c.path
		if len(c.query) > 0 {
			address += "?" + c.query.Encode()
		}
		var body io.Reader
		if c.payload != nil {
			body = bytes.NewReader(c.payload)
		}
		req, err := http.NewRequestWithContext(ctx, c.method, address, body)
		if err != nil {
			return nil, &ProviderError{Class: ErrInvalid, Message: "the endpoint and the path make no URL"}
		}
		if c.header != nil {
			req.Header = c.header.Clone()
		}
		req.Header.Set("Accept", "application/json")
		if c.payload != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return readAnswer(resp, limit)
	}
}

// readAnswer reads one byte more than allowed, to tell a full answer from one
// that is too long.
func readAnswer(resp *http.Response, limit int64) (*answer, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off after %d bytes: %w", len(data), err)
	}
	if int64(len(data)) > limit {
		return nil, &ProviderError{
			Status: resp.StatusCode, Class: ErrUnavailable,
			Message: fmt.Sprintf("the answer is longer than %d MiB and was not read", limit>>20),
		}
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: data}, nil
}
