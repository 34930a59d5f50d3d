package provision

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// roundTrip is an http.RoundTripper in one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return f(r)
}

func respond(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// testClient is a client with the whole chain over rt.
func testClient(rt roundTrip, logger *slog.Logger) *apiClient {
	return newAPIClient(apiConfig{
		provider: "hetzner", endpoint: "https://api.example/v1",
		options:  Options{HTTPClient: &http.Client{Transport: rt}, ShortName: "acme", Logger: logger},
		token:    staticToken("the-secret-token"),
		classify: hetznerClassify(hetznerTokenLength), requestID: "X-Correlation-Id", pause: refillPause,
	})
}

// script is a step that answers with one error after the other, then well.
type script struct {
	errs  []error
	calls int
}

func (s *script) step(context.Context, *call) (*answer, error) {
	s.calls++
	if len(s.errs) == 0 {
		return &answer{status: 200}, nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, err
}

func providerError(t *testing.T, err error) *ProviderError {
	t.Helper()
	var e *ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("no *ProviderError in %T: %v", err, err)
	}
	return e
}

func TestDoDecodesAndEncodes(t *testing.T) {
	var got, path string
	client := testClient(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		got, path = string(body), r.URL.String()
		return respond(201, `{"name":"x","new field":1}`), err
	}, nil)
	var out struct{ Name string }
	c := call{op: "test", method: http.MethodPost, path: "/things", query: map[string][]string{"q": {"a b&c"}}, body: map[string]int{"n": 1}}
	if err := client.do(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	if got != `{"n":1}` || out.Name != "x" || path != "https://api.example/v1/things?q=a+b%26c" {
		t.Errorf("sent %s to %s, read %q", got, path, out.Name)
	}
}

func TestDoRefusesAnAnswerThatIsNoJSON(t *testing.T) {
	client := testClient(func(*http.Request) (*http.Response, error) { return respond(200, "<html>the-secret-page"), nil }, nil)
	err := client.do(t.Context(), call{op: "list", method: http.MethodGet, path: "/x"}, &struct{}{})
	if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want ErrUnavailable without the page", err)
	}
}

// TestEveryAttemptStartsClean: headers of one attempt do not pile up in the
// next, and each asks for the token again.
func TestEveryAttemptStartsClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		client := testClient(func(r *http.Request) (*http.Response, error) {
			if n := len(r.Header.Values("Authorization")); n != 1 {
				t.Errorf("%d Authorization headers", n)
			}
			seen = append(seen, r.Header.Get("Authorization"))
			if len(seen) < 3 {
				return respond(503, ""), nil
			}
			return respond(200, "{}"), nil
		}, nil)
		if err := client.do(t.Context(), call{op: "x", method: http.MethodGet, path: "/"}, nil); err != nil || len(seen) != 3 {
			t.Errorf("%d attempts, error %v", len(seen), err)
		}
	})
}
