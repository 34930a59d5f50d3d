package provision

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// The classes of failure. Every error of this package that stems from a
// provider is exactly one of them, found by errors.Is.
var (
	// ErrCapacity: the provider has no such machine there now. Another size
	// or region may do.
	ErrCapacity = errors.New("no capacity")
	// ErrQuota: the account's own limit is reached. Waiting does not help.
	ErrQuota = errors.New("quota reached")
	// ErrRateLimited: too many requests. Later, the same call will do.
	ErrRateLimited = errors.New("rate limited")
	// ErrUnauthorized: the credential is wrong or expired.
	ErrUnauthorized = errors.New("credential not accepted")
	// ErrForbidden: the credential is known and may not do this.
	ErrForbidden = errors.New("not permitted")
	// ErrNotFound: the thing asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict: it collides with something that exists, or is in use.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: the request is wrong and will be at every repeat.
	ErrInvalid = errors.New("invalid request")
	// ErrUnavailable: the provider or the way to it is in trouble. Whether
	// the call had an effect is not known.
	ErrUnavailable = errors.New("provider unavailable")
)

// classNames are the words of ClassName, which programs store: they never
// change.
var classNames = []struct {
	class error
	name  string
}{
	{ErrCapacity, "capacity"},
	{ErrQuota, "quota"},
	{ErrRateLimited, "rate-limited"},
	{ErrUnauthorized, "unauthorized"},
	{ErrForbidden, "forbidden"},
	{ErrNotFound, "not-found"},
	{ErrConflict, "conflict"},
	{ErrInvalid, "invalid"},
	{ErrUnavailable, "unavailable"},
}

// ClassName returns the class of err as one word for records and programs:
// "capacity", "quota", "rate-limited", "unauthorized", "forbidden",
// "not-found", "conflict", "invalid", "unavailable", or "" when err is nil or
// has no class.
func ClassName(err error) string {
	for _, c := range classNames {
		if errors.Is(err, c.class) {
			return c.name
		}
	}
	return ""
}

// ProviderError is a non-2xx response from a provider's API, carrying the
// HTTP status so callers (and tests) can distinguish "not found" from a
// generic failure without parsing each provider's own error body shape.
//
// It is also what a call that got no answer, or that was refused before it
// was sent, fails with: Status is 0 then.
type ProviderError struct {
	Status int
	Body   string // as sent, at most 4 KiB, credentials redacted

	// Provider is the provider's short name, as in Providers.
	Provider string
	// Op is what was tried, for people: "create server", "list regions".
	Op string
	// Code and Message are the provider's own, when the body had them.
	Code    string
	Message string
	// RequestID is the provider's id of the call, for its support.
	RequestID string
	// RetryAfter is how long the provider asked to wait; zero when it did not.
	RetryAfter time.Duration
	// Class is one of the Err values above; errors.Is finds it.
	Class error
	// Hint says what to do next; may be empty.
	Hint string

	// cause is what the network said, its text redacted; nil when the
	// provider answered.
	cause error
	// again says which calls may be sent again after this error.
	again again
}

// Error tells where, what, and what it means, on one line:
//
//	hetzner: create server: no capacity: error during placement (resource_unavailable, HTTP 412, request id 4f1)
//
// The hint is not part of it: show Hint beside it.
func (e *ProviderError) Error() string {
	var parts []string
	for _, p := range []string{e.Provider, e.Op} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if c := e.class(); c != nil {
		parts = append(parts, c.Error())
	}
	switch {
	case e.Message != "":
		parts = append(parts, oneLine(e.Message))
	case e.Body != "":
		parts = append(parts, clip(oneLine(e.Body), 200))
	}
	text := strings.Join(parts, ": ")
	var facts []string
	if e.Code != "" {
		facts = append(facts, e.Code)
	}
	if e.Status != 0 {
		facts = append(facts, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.RequestID != "" {
		facts = append(facts, "request id "+e.RequestID)
	}
	if len(facts) == 0 {
		return text
	}
	return strings.TrimSpace(text + " (" + strings.Join(facts, ", ") + ")")
}

// Is tells whether target is the class of e. An error without Class has the
// one that its HTTP status stands for.
func (e *ProviderError) Is(target error) bool { return target != nil && target == e.class() }

// Unwrap returns what the network or the context said, nil when the provider
// answered. Its text holds no credential.
func (e *ProviderError) Unwrap() error { return e.cause }

// LogValue gives log lines the parts apart. The body is left out.
func (e *ProviderError) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("message", e.Message)}
	for _, a := range []struct{ key, value string }{
		{"provider", e.Provider}, {"op", e.Op}, {"code", e.Code}, {"class", ClassName(e)},
		{"request_id", e.RequestID}, {"hint", e.Hint},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if e.RetryAfter != 0 {
		attrs = append(attrs, slog.Duration("retry_after", e.RetryAfter))
	}
	return slog.GroupValue(attrs...)
}

func (e *ProviderError) class() error {
	if e.Class != nil {
		return e.Class
	}
	return classOfStatus(e.Status)
}

// classOfStatus is for answers whose code says nothing: class by code first.
func classOfStatus(status int) error {
	switch {
	case status == 401:
		return ErrUnauthorized
	case status == 403:
		return ErrForbidden
	case status == 404:
		return ErrNotFound
	case status == 409 || status == 412:
		return ErrConflict
	case status == 429:
		return ErrRateLimited
	case status == 408 || status == 423 || status == 425 || status >= 500:
		return ErrUnavailable
	case status >= 400:
		return ErrInvalid
	case status != 0: // a redirect that was not followed, or nonsense
		return ErrUnavailable
	}
	return nil
}

// PartialError tells that a create failed after it had made something that
// could not be removed again: each of Left may still cost money. One without
// ID was asked for and may exist; DeleteResource finds it by its labels.
type PartialError struct {
	Err  error
	Left []Resource
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%v (left behind: %s)", e.Err, describeResources(e.Left))
}

// Unwrap returns the failure itself.
func (e *PartialError) Unwrap() error { return e.Err }

// LeftBehind returns what a failed create made and could not remove: remove
// it with Auditor.DeleteResource. It is nil for every other error.
func LeftBehind(err error) []Resource {
	var partial *PartialError
	if errors.As(err, &partial) {
		return partial.Left
	}
	return nil
}

func describeResources(rs []Resource) string {
	if len(rs) == 0 {
		return "nothing"
	}
	var words []string
	for _, r := range rs {
		word := r.Kind
		if r.ID != "" {
			word += " " + r.ID
		}
		if r.Name != "" && r.Name != r.ID {
			word += " " + fmt.Sprintf("%q", r.Name)
		}
		if r.ID == "" {
			word += ", which may exist"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// invalidError is a refusal before anything was sent.
func invalidError(provider, op, format string, args ...any) error {
	return &ProviderError{Provider: provider, Op: op, Class: ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip shortens s to at most n bytes, at a rune's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// again says which calls may be sent again after an error.
type again int

const (
	againNever again = iota // it would end the same
	againSafe               // calls that do no harm when done twice
	againAny                // every call: this one is known to have done nothing
)

// meaning is what one of a provider's error codes means here.
type meaning struct {
	class error
	again again
	hint  string
}
