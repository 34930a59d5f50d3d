package provision

import (
	"errors"
	"fmt"
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

// ProviderError is a non-2xx response from a provider's API, carrying the
// HTTP status so callers (and tests) can distinguish "not found" from a
// generic failure without parsing each provider's own error body shape.
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
}

// PartialError tells that a create failed after it had made something that
// could not be removed again: each of Left may still cost money.
type PartialError struct {
	Err  error
	Left []Resource
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%v (left behind: %s)", e.Err, describeResources(e.Left))
}

// Unwrap returns the failure itself.
func (e *PartialError) Unwrap() error { return e.Err }
