package provision

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// FuzzAnswer: whatever a provider answers, it is a success or an error of
// exactly one class, on one line, without the credential.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{}`), "")
	f.Add(422, []byte(`{"error":{"code":"invalid_input","message":"x","details":{"fields":[{"name":"n","messages":["m"]}]}}}`), "3")
	f.Add(401, []byte(`the-secret-token`), "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Add(400, []byte(`{"error":{"code":"two\nlines","message":"of\rtext"}}`), "")
	f.Add(503, []byte("<html>\n\x00\xff"), "-1")
	f.Add(302, []byte(`{"error":{"code":"\u0074he-secret-token"}}`), "")
	f.Fuzz(func(t *testing.T, status int, body []byte, retryAfter string) {
		step := withErrors(withAuth(func(context.Context, *call) (*answer, error) {
			return &answer{status: status, body: body, header: http.Header{"Retry-After": {retryAfter}, "X-Correlation-Id": {"c"}}}, nil
		}, staticToken("the-secret-token"), testRedactor), apiConfig{provider: "hetzner", classify: hetznerClassify(64), requestID: "X-Correlation-Id"}, testRedactor)
		_, err := step(t.Context(), &call{op: "x"})
		if (err == nil) != (status >= 200 && status <= 299) {
			t.Fatalf("HTTP %d gives %v", status, err)
		}
		if err == nil {
			return
		}
		n := 0
		for _, c := range classNames {
			if errors.Is(err, c.class) {
				n++
			}
		}
		e := providerError(t, err)
		if n != 1 && status != 0 {
			t.Errorf("HTTP %d has %d classes: %v", status, n, err)
		}
		if strings.Contains(err.Error()+e.Body+e.Code+e.Message+e.Hint, "the-secret-token") || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("text %q, body %q", err, e.Body)
		}
		if e.RetryAfter < 0 || len(e.Body) > maxErrorBody+4 {
			t.Errorf("asked to wait %v, body of %d bytes", e.RetryAfter, len(e.Body))
		}
	})
}

var testRedactor = &redactor{}
