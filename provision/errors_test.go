package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestClassName(t *testing.T) {
	for _, c := range classNames {
		for _, err := range []error{
			c.class, &ProviderError{Class: c.class}, fmt.Errorf("node-1: %w", &ProviderError{Class: c.class}),
			&PartialError{Err: &ProviderError{Class: c.class}, Left: []Resource{{Kind: KindServer, ID: "1"}}},
		} {
			if got := ClassName(err); got != c.name {
				t.Errorf("%v is %q, want %q", err, got, c.name)
			}
		}
	}
	for _, err := range []error{nil, io.EOF, context.Canceled, &ProviderError{}} {
		if got := ClassName(err); got != "" {
			t.Errorf("%v is %q", err, got)
		}
	}
	if len(classNames) != 9 {
		t.Errorf("%d classes", len(classNames))
	}
}

// TestProviderErrorAsDocumented: with nothing but what an HTTP response gives,
// callers can tell a class.
func TestProviderErrorAsDocumented(t *testing.T) {
	err := error(&ProviderError{Status: 404, Body: "no such\nserver"})
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) || errors.Is(err, nil) {
		t.Errorf("%v is not exactly ErrNotFound", err)
	}
	if want := "not found: no such server (HTTP 404)"; err.Error() != want {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
	if errors.Unwrap(err) != nil {
		t.Error("an answer has a cause")
	}
	if got := (&ProviderError{}).Error(); got != "" {
		t.Errorf("the zero error says %q", got)
	}
}

func TestErrorIsShortAndOnOneLine(t *testing.T) {
	e := &ProviderError{Status: 500, Body: strings.Repeat("long\n", 2000)}
	if got := e.Error(); len(got) > 300 || strings.Contains(got, "\n") {
		t.Errorf("%d bytes", len(got))
	}
	if got := clip("ääää", 3); got != "ä…" {
		t.Errorf("clipped to %q", got)
	}
}

func TestLogValue(t *testing.T) {
	e := &ProviderError{
		Status: 429, Body: "the body", Provider: "hetzner", Op: "list", Code: "c", Message: "m",
		RequestID: "r", RetryAfter: time.Second, Class: ErrRateLimited, Hint: "h",
	}
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Error("x", "err", e)
	for _, want := range []string{"err.provider=hetzner", "err.class=rate-limited", "err.request_id=r", "err.status=429", "err.retry_after=1s", "err.hint=h"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is missing in %s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "the body") {
		t.Error("the body is logged")
	}
}

func TestPartialError(t *testing.T) {
	left := []Resource{{Kind: KindServer, ID: "17", Name: "node-1"}, {Kind: KindFirewall, ID: "3", Name: "3"}, {Kind: KindServer, Name: "node-2"}}
	err := fmt.Errorf("create: %w", &PartialError{Err: &ProviderError{Class: ErrCapacity, Message: "full"}, Left: left})
	const want = `create: no capacity: full (left behind: server 17 "node-1", firewall 3, server "node-2", which may exist)`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if !errors.Is(err, ErrCapacity) || len(LeftBehind(err)) != 3 {
		t.Errorf("class or leftovers are lost: %v", err)
	}
	if LeftBehind(io.EOF) != nil || LeftBehind(nil) != nil {
		t.Error("another error leaves something behind")
	}
}
