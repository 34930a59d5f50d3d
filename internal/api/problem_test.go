package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func TestProblemOf(t *testing.T) {
	provider := &provision.ProviderError{Status: 412, Provider: "hetzner", Op: "create server", Message: "error during placement",
		RequestID: "req-1", Class: provision.ErrCapacity, Hint: "try nbg1"}
	for _, c := range []struct {
		name   string
		err    error
		class  string
		status int
		want   client.Problem // of what matters beside class, status and title
	}{
		{"fleet", &fleet.Error{Class: "refused", Message: "account prod is in use", Hint: "delete its nodes"}, "refused", 403,
			client.Problem{Detail: "account prod is in use", Hint: "delete its nodes"}},
		{"fleet over provider", &fleet.Error{Class: "capacity", Message: "account prod: none left", Hint: "elsewhere", Err: provider}, "capacity", 409,
			client.Problem{Detail: "account prod: none left", Hint: "elsewhere", Provider: "hetzner", RequestID: "req-1"}},
		{"provider", fmt.Errorf("x: %w", provider), "capacity", 409,
			client.Problem{Detail: "x: " + provider.Error(), Hint: "try nbg1", Provider: "hetzner", RequestID: "req-1"}},
		{"not found", fmt.Errorf("a: %w", fleet.ErrNotFound), "not-found", 404, client.Problem{Detail: "a: " + fleet.ErrNotFound.Error()}},
		{"conflict", fmt.Errorf("a: %w", fleet.ErrConflict), "conflict", 409, client.Problem{Detail: "a: " + fleet.ErrConflict.Error()}},
		{"invalid", fmt.Errorf("a: %w", fleet.ErrInvalid), "invalid", 422, client.Problem{Detail: "a: " + fleet.ErrInvalid.Error()}},
		{"refused", fmt.Errorf("a: %w", fleet.ErrRefused), "refused", 403, client.Problem{Detail: "a: " + fleet.ErrRefused.Error()}},
		{"quota", provision.ErrQuota, "quota", 409, client.Problem{Detail: provision.ErrQuota.Error()}},
		{"rate", provision.ErrRateLimited, "rate-limited", 429, client.Problem{Detail: provision.ErrRateLimited.Error()}},
		{"credential", provision.ErrUnauthorized, "unauthorized", 424, client.Problem{Detail: provision.ErrUnauthorized.Error()}},
		{"permission", provision.ErrForbidden, "forbidden", 424, client.Problem{Detail: provision.ErrForbidden.Error()}},
		{"unavailable", provision.ErrUnavailable, "unavailable", 502, client.Problem{Detail: provision.ErrUnavailable.Error()}},
		{"late", context.DeadlineExceeded, "unavailable", 502, client.Problem{Detail: context.DeadlineExceeded.Error()}},
		{"partial", &provision.PartialError{Err: provider, Left: []provision.Resource{{Kind: "public-ip", ID: "7", Name: "web-1", Region: "fsn1"}}}, "capacity", 409,
			client.Problem{Provider: "hetzner", RequestID: "req-1", Hint: "try nbg1", LeftBehind: []string{"public-ip 7 (web-1) in fsn1"}}},
		{"unknown", errors.New("the database is at /var/secret"), "internal", 500,
			client.Problem{Detail: "the control plane met an error that it has no name for; its log says more"}},
		{"fleet's own words", &fleet.Error{Class: "internal", Message: "account prod: strange", Err: errors.New("inside")}, "internal", 500,
			client.Problem{Detail: "account prod: strange"}},
		{"class that is not known", &fleet.Error{Class: "strange", Message: "it is strange"}, "internal", 500, client.Problem{Detail: "it is strange"}},
		{"no credential in the environment", &fleet.Error{Class: "internal", Message: "account prod: HCLOUD_TOKEN is not set",
			Err: &client.Error{Class: "unauthorized", Message: "HCLOUD_TOKEN is not set", Hint: "set it", Provider: "hetzner"}}, "unauthorized", 424,
			client.Problem{Detail: "account prod: HCLOUD_TOKEN is not set", Hint: "set it", Provider: "hetzner"}},
		{"the client's own class", &client.Error{Class: "unreachable", Message: "x"}, "internal", 500,
			client.Problem{Detail: "the control plane met an error that it has no name for; its log says more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := api.ProblemOf(c.err)
			if got.Class != c.class || got.Status != c.status || got.Title == "" {
				t.Errorf("class %q status %d title %q, want %q %d", got.Class, got.Status, got.Title, c.class, c.status)
			}
			got.Class, got.Status, got.Title = "", 0, ""
			if c.want.Detail == "" {
				got.Detail = ""
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProblemsOverTheWire(t *testing.T) {
	var log lockedBuffer
	f, url := start(t, api.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.Fail = func(method, arg string) error {
		switch method + " " + arg {
		case "CreateNode slow":
			return &provision.ProviderError{Provider: "hetzner", Class: provision.ErrRateLimited, RetryAfter: 1500 * time.Millisecond, RequestID: "r-9", Message: "slow down"}
		case "Node broken":
			return errors.New("row 7 of the database is torn")
		case "Node panics":
			panic("oops")
		}
		return nil
	}
	body := strings.Replace(createBody, "web-1", "slow", 1)
	resp, data := send(t, "POST", url+"/v1/nodes", body, nil)
	if p := problemOf(t, resp, data); p.Class != "rate-limited" || p.RequestID != "r-9" || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("%+v, Retry-After %q", p, resp.Header.Get("Retry-After"))
	}
	for _, ref := range []string{"broken", "panics"} {
		resp, data = send(t, "GET", url+"/v1/nodes/"+ref, "", nil)
		p := problemOf(t, resp, data)
		id := resp.Header.Get("X-Request-Id")
		if resp.StatusCode != 500 || p.Class != "internal" || id == "" || !strings.Contains(p.Hint, id) {
			t.Errorf("%s: %d %+v, request %s", ref, resp.StatusCode, p, id)
		}
		if strings.Contains(string(data), "torn") || strings.Contains(string(data), "oops") {
			t.Errorf("%s: the answer tells of the inside: %s", ref, data)
		}
		if !strings.Contains(log.String(), id) {
			t.Errorf("%s: the log does not have the request's id", ref)
		}
	}
	for _, want := range []string{"row 7 of the database is torn", "oops"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	_, url := start(t, api.Options{})
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"no such path", "GET", "/v2/nodes", "", 404, "/v2/nodes"},
		{"no such method", "PATCH", "/v1/nodes", "{}", 404, "PATCH"},
		{"no such node", "GET", "/v1/nodes/nope", "", 404, "nope"},
		{"no JSON", "POST", "/v1/nodes", "{", 400, ""},
		{"no body", "POST", "/v1/nodes", "", 400, "body"},
		{"no candidates", "POST", "/v1/nodes", `{"account":"prod","candidates":[]}`, 422, "candidates"},
		{"misspelt field", "POST", "/v1/nodes", `{"account":"prod","candidates":[{"region":"a","size":"b"}],"lables":{}}`, 422, "lables"},
		{"bad architecture", "POST", "/v1/nodes", `{"account":"prod","candidates":[{"region":"a","size":"b"}],"architecture":"mips"}`, 422, "architecture"},
		{"bad duration", "POST", "/v1/nodes", `{"account":"prod","candidates":[{"region":"a","size":"b"}],"join_timeout":"soon"}`, 422, "soon"},
		{"negative duration", "POST", "/v1/nodes", `{"account":"prod","candidates":[{"region":"a","size":"b"}],"join_timeout":"-5m"}`, 422, "-5m"},
		{"label of ours", "POST", "/v1/nodes", `{"account":"prod","candidates":[{"region":"a","size":"b"}],"labels":{"api-create-key":"x"}}`, 422, "api-create-key"},
		{"label of ours on a ticket", "POST", "/v1/tickets", `{"labels":{"api-create-request":"x"}}`, 422, "api-create-request"},
		{"unknown parameter", "GET", "/v1/nodes?lable=a=b", "", 422, "lable"},
		{"bad label", "GET", "/v1/nodes?label=novalue", "", 422, "novalue"},
		{"bad phase", "GET", "/v1/nodes?phase=dancing", "", 422, "phase"},
		{"no region", "GET", "/v1/accounts/prod/sizes", "", 422, "region"},
		{"bad sequence", "GET", "/v1/events?after=-1", "", 422, "after"},
		{"events of no node", "GET", "/v1/events?node=nope", "", 404, "nope"},
		{"large body", "POST", "/v1/accounts", `{"name":"a","provider":"hetzner","credential":"` + strings.Repeat("x", 300<<10) + `"}`, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, data := send(t, c.method, url+c.path, c.body, nil)
			if resp.StatusCode != c.status {
				t.Fatalf("answered %d, want %d: %s", resp.StatusCode, c.status, data)
			}
			if p := problemOf(t, resp, data); !strings.Contains(p.Detail, c.says) || p.Title == "" {
				t.Errorf("problem is %+v", p)
			}
		})
	}
}

// TestSecretsStayInside plants a credential in requests, good and bad, and
// looks for it in answers and log.
func TestSecretsStayInside(t *testing.T) {
	const secret = "canary-credential-7f3a"
	var log lockedBuffer
	_, url := start(t, api.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, body := range []string{
		`{"name":"second","provider":"hetzner","credential":"` + secret + `"}`,
		`{"name":"second","provider":"hetzner","credential":"` + secret + `"}`, // a conflict
		`{"name":7,"provider":"hetzner","credential":"` + secret + `"}`,
		`{"name":"x","provider":"hetzner","credential":["` + secret + `"]}`,
		`{"name":"x","provider":"hetzner","token":"` + secret + `"}`,
		`{"name":"x","provider":"hetzner","source":"` + secret + `"}`,
		`{"name":"x","credential":"` + secret + `" oops`,
	} {
		if _, data := send(t, "POST", url+"/v1/accounts?x="+secret, body, nil); strings.Contains(string(data), secret) {
			t.Errorf("the answer to %s shows the credential: %s", body, data)
		}
		if _, data := send(t, "POST", url+"/v1/accounts", body, nil); strings.Contains(string(data), secret) {
			t.Errorf("the answer to %s shows the credential: %s", body, data)
		}
	}
	if _, data := send(t, "GET", url+"/v1/accounts", "", nil); strings.Contains(string(data), secret) || !strings.Contains(string(data), "second") {
		t.Errorf("the list is %s", data)
	}
	if strings.Contains(log.String(), secret) {
		t.Error("the log shows the credential")
	}
	if !strings.Contains(log.String(), "/v1/accounts") {
		t.Error("the log is empty; this test would hold nothing")
	}
}

func TestHeaders(t *testing.T) {
	_, url := start(t, api.Options{})
	for _, path := range []string{"/v1/nodes", "/nothing", "/v1/nodes/nope"} {
		resp, _ := send(t, "GET", url+path, "", http.Header{"Origin": {"https://evil.example"}})
		for k, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := resp.Header.Get(k); got != want {
				t.Errorf("%s: %s is %q", path, k, got)
			}
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s lets %q in", path, got)
		}
	}
	resp, _ := send(t, "OPTIONS", url+"/v1/nodes", "", http.Header{"Origin": {"https://evil.example"}, "Access-Control-Request-Method": {"DELETE"}, "Authorization": {""}})
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight was answered %d", resp.StatusCode)
	}
}
