package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The classes of failure. The first nine are those of a provider's answer.
const (
	ClassCapacity     = "capacity"     // no such machine there now; elsewhere may do
	ClassQuota        = "quota"        // the account's own limit; waiting does not help
	ClassRateLimited  = "rate-limited" // too many requests; later the same call will do
	ClassUnauthorized = "unauthorized" // a credential or token is wrong or expired
	ClassForbidden    = "forbidden"    // the credential is known and may not do this
	ClassNotFound     = "not-found"    // the thing asked for does not exist
	ClassConflict     = "conflict"     // it collides with something that exists, or is in use
	ClassInvalid      = "invalid"      // the request is wrong and will be at every repeat
	ClassUnavailable  = "unavailable"  // the provider or the way to it is in trouble

	ClassRefused  = "refused"  // Slipway will not do it, for the reason that stands in the message
	ClassInternal = "internal" // a fault of the control plane; its log says more

	ClassJoinTimeout = "join-timeout" // the machine did not join in time
	ClassServerLost  = "server-lost"  // the server vanished at the provider
	ClassServerError = "server-error" // the provider says that the server is broken

	// ClassUnreachable: no answer came from the control plane. Only the
	// client gives it.
	ClassUnreachable = "unreachable"
)

// Error is a failure with its reason.
type Error struct {
	// Status is the HTTP status of the control plane's answer; 0 when there
	// was none.
	Status int
	// Class is one of the Class constants; empty when the answer named none.
	Class string
	// Message says what happened and where, for people.
	Message string
	// Hint says what to do next; may be empty.
	Hint string
	// Provider and RequestID name the provider's call that failed.
	Provider  string
	RequestID string
	// LeftBehind lists what may still exist, and cost money, at the provider.
	LeftBehind []string
	// Err is the cause on this side, as a failed connection; may be nil.
	Err error
}

// Error returns the message.
func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("the control plane answered %d %s", e.Status, http.StatusText(e.Status))
}

// Unwrap returns the cause on this side, or nil.
func (e *Error) Unwrap() error { return e.Err }

// NewError returns the error that a problem answer stands for.
func NewError(p Problem) *Error {
	msg := p.Detail
	if msg == "" {
		msg = p.Title
	}
	return &Error{
		Status: p.Status, Class: p.Class, Message: msg, Hint: p.Hint,
		Provider: p.Provider, RequestID: p.RequestID, LeftBehind: p.LeftBehind,
	}
}

// ErrorFromReason returns the error that a failed node's reason stands for.
func ErrorFromReason(n Node) *Error {
	e := &Error{Message: fmt.Sprintf("node %s failed", n.Name), Provider: n.Provider}
	if r := n.Reason; r != nil {
		e.Class, e.Hint, e.RequestID = r.Class, r.Hint, r.RequestID
		if r.Message != "" {
			e.Message += ": " + r.Message
		}
	}
	if !n.ServerGone && n.ServerID != "" {
		e.LeftBehind = []string{strings.TrimSpace(fmt.Sprintf("server %s at %s (being removed)", n.ServerID, n.Provider))}
	}
	return e
}

// ClassOf returns the class of err; empty when it has none.
func ClassOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}
