package provision

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		api := httptest.NewServer(http.RedirectHandler(other.URL, status))
		h := newHetzner("secret-token", Options{Endpoint: api.URL, HTTPClient: api.Client()})
		_, err := h.ListRegions(t.Context())
		if e := providerError(t, err); e.Status != status || !errors.Is(err, ErrUnavailable) || !strings.Contains(e.Message, "not followed") {
			t.Errorf("HTTP %d: %v", status, err)
		}
		api.Close()
	}
	if asked {
		t.Error("a redirect was followed")
	}
}

func TestCallersHTTPClientIsNotChanged(t *testing.T) {
	own := &http.Client{}
	httpClient(own)
	if own.CheckRedirect != nil {
		t.Error("the caller's client has got our redirect rule")
	}
}

func TestAnswerOverTheLimitIsNotRead(t *testing.T) {
	for size, ok := range map[int]bool{10: true, 11: false} {
		resp := respond(200, strings.Repeat("x", size))
		ans, err := readAnswer(resp, 10)
		if (err == nil) != ok || ok && len(ans.body) != size {
			t.Errorf("%d bytes of 10: %v", size, err)
		}
	}
}

func TestIsOpenHTTP(t *testing.T) {
	for endpoint, open := range map[string]bool{
		"https://api.example": false, "http://127.0.0.1:80/v1": false, "http://[::1]:80": false, "http://localhost": false,
		"http://api.example": true, "http://10.0.0.1": true,
	} {
		if got := isOpenHTTP(endpoint); got != open {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (brokenBody) Close() error             { return nil }

func TestAnswerThatBreaksOffIsReadAgainOrUnclear(t *testing.T) {
	for method, again := range map[string]bool{http.MethodGet: true, http.MethodPost: false} {
		send := withErrors(sendHTTP(&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 201, Body: brokenBody{}}, nil
		})}, "https://api.example", 10), apiConfig{endpoint: "https://api.example"}, &redactor{})
		_, err := send(t.Context(), &call{method: method, path: "/"})
		if !errors.Is(err, io.ErrUnexpectedEOF) || mayRepeat(method == http.MethodGet, err) != again || !unclear(err) {
			t.Errorf("%s: %v, want repeat %v and an unclear outcome", method, err, again)
		}
	}
}
