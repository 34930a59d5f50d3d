package provision

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestClean(t *testing.T) {
	r := &redactor{}
	r.learn("to\"ken&1234")
	for _, c := range []struct{ what, in, want string }{
		{"nothing secret", "server name is taken", "server name is taken"},
		{"token", `got to"ken&1234 here`, "got [redacted] here"},
		{"token inside JSON", `{"x":"to\"ken\u00261234"}`, `{"x":"[redacted]"}`},
		{"header", "Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"},
		{"root password", `{"root_password":"pa\"ss","id":1}`, `{"root_password":"[redacted]","id":1}`},
		{"user-data", `{"user_data": "#cloud-config\nx"}`, `{"user_data": "[redacted]"}`},
		{"cut off", `{"user_data":"#cloud-con`, `{"user_data":"[redacted]"`},
		{"other providers", `{"client_secret":"a","access_token":"b","adminPassword":"c","customData":"d","private_key":"e","clientSecret":"f"}`,
			`{"client_secret":"[redacted]","access_token":"[redacted]","adminPassword":"[redacted]","customData":"[redacted]","private_key":"[redacted]","clientSecret":"[redacted]"}`},
		{"extra", "the extra one", "the [redacted]one"},
		{"a word that stands for a token", "node demo-1", "node demo-1"},
	} {
		if got := r.clean(c.in, []string{"extra ", "demo"}); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestRedactorKeepsTheLastTokens(t *testing.T) {
	r := &redactor{}
	for i := range 100 {
		r.learn(fmt.Sprintf("token-%03d", i))
		r.learn(fmt.Sprintf("token-%03d", i))
	}
	if got := r.clean("token-099 token-098 token-001", nil); got != "[redacted] [redacted] token-001" || len(r.tokens) != keptTokens {
		t.Errorf("cleaned to %q with %d tokens", got, len(r.tokens))
	}
}

func TestSecretWords(t *testing.T) {
	const data = "#cloud-config\nname: a-rather-long-node-name\nJOIN_TOKEN=swjt_abcdefgh.0123456789abcdef\n"
	words := strings.Join(secretWords(data, "a-rather-long-node-name"), "|")
	if !strings.Contains(words, "|swjt_abcdefgh.0123456789abcdef") || strings.Contains(words, "|a-rather-long-node-name") {
		t.Errorf("words: %q", words)
	}
	if secretWords("") != nil {
		t.Error("no user-data has words")
	}
}

// TestNoSecretComesOut drives the whole chain through every way to fail, and
// looks at every way to print what comes out.
func TestNoSecretComesOut(t *testing.T) {
	const userData = "#cloud-config\nwrite_files: [{content: \"TOKEN=swjt_abcdefgh.0123456789abcdef\"}]\n"
	secrets := []string{"the-secret-token", "swjt_abcdefgh.0123456789abcdef", "hunter2hunter2"}
	echo := func(r *http.Request) string {
		body, _ := io.ReadAll(r.Body)
		return string(body) + r.Header.Get("Authorization")
	}
	for what, rt := range map[string]roundTrip{
		"network": func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v to %s", r.Header, echo(r))
		},
		"envelope": func(r *http.Request) (*http.Response, error) {
			return respond(422, fmt.Sprintf(`{"error":{"code":"invalid_input","message":%q}}`, "bad: "+echo(r))), nil
		},
		"fields": func(*http.Request) (*http.Response, error) {
			return respond(422, `{"error":{"code":"invalid_input","message":"m","details":{"fields":[{"name":"user_data","messages":["TOKEN=swjt_abcdefgh.0123456789abcdef"]}]}}}`), nil
		},
		"code": func(r *http.Request) (*http.Response, error) {
			return respond(500, fmt.Sprintf(`{"error":{"code":%q}}`, echo(r))), nil
		},
		"no JSON": func(r *http.Request) (*http.Response, error) {
			return respond(502, "<html>"+echo(r)+`"root_password":"hunter2hunter2"`), nil
		},
		"redirect": func(*http.Request) (*http.Response, error) {
			return respond(302, "", "Location", "https://evil.example/?token=the-secret-token"), nil
		},
		"good but useless": func(*http.Request) (*http.Response, error) {
			return respond(201, `["root_password","hunter2hunter2"]`), nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				err := testClient(rt, logger).do(t.Context(), call{
					op: "create server", method: http.MethodPost, path: "/servers",
					body: map[string]string{"user_data": userData}, secrets: secretWords(userData),
				}, &struct{}{})
				if err == nil {
					t.Fatal("no error")
				}
				logger.Error("failed", "err", err)
				e := providerError(t, err)
				out := fmt.Sprintf("%v\n%+v\n%#v\n%s\n%v\n%#v\n%s", err, err, err, e.Body, errors.Unwrap(err), errors.Unwrap(err), log.String())
				for _, s := range secrets {
					if strings.Contains(out, s) {
						t.Errorf("%q comes out:\n%s", s, out)
					}
				}
				if len(e.Body) > maxErrorBody+len("…") {
					t.Errorf("body of %d bytes", len(e.Body))
				}
			})
		})
	}
}
