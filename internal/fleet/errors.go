package fleet

import (
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/provision"
)

// Classes of failure of our own, beside those of package provision.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrConflict: it collides with a record, or with what is going on.
	ErrConflict = errors.New("conflict with a record")
	// ErrInvalid: the request is wrong and will be at every repeat.
	ErrInvalid = errors.New("invalid request to the fleet")
	// ErrRefused: it could be done and will not be, for a stated reason.
	ErrRefused = errors.New("refused")
	// ErrStale: the record was changed by somebody else since it was read.
	// Stores return it; it never leaves this package.
	ErrStale = errors.New("the record was changed meanwhile")
)

// Error is a failure for people: what happened, and what to do next.
type Error struct {
	// Class is a class of package provision (see provision.ClassName),
	// "refused", or "internal".
	Class string
	// Message says what happened, where. It holds no secret.
	Message string
	// Hint says what to do next; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, by which errors.Is finds a provider's class.
func (e *Error) Unwrap() error { return e.Err }

// Is finds fleet's own classes by the class's name.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotFound:
		return e.Class == "not-found" && e.Err == nil
	case ErrConflict:
		return e.Class == "conflict" && e.Err == nil
	case ErrInvalid:
		return e.Class == "invalid" && e.Err == nil
	case ErrRefused:
		return e.Class == "refused"
	}
	return false
}

func invalidf(hint, format string, args ...any) error {
	return &Error{Class: "invalid", Message: fmt.Sprintf(format, args...), Hint: hint}
}

func conflictf(hint, format string, args ...any) error {
	return &Error{Class: "conflict", Message: fmt.Sprintf(format, args...), Hint: hint}
}

func notFoundf(hint, format string, args ...any) error {
	return &Error{Class: "not-found", Message: fmt.Sprintf(format, args...), Hint: hint}
}

func refusedf(hint, format string, args ...any) error {
	return &Error{Class: "refused", Message: fmt.Sprintf(format, args...), Hint: hint}
}

// cloudError dresses a provider's failure: its class, its words, its hint.
func cloudError(account string, err error) error {
	r := reasonOf(err)
	return &Error{Class: r.Class, Message: fmt.Sprintf("account %s: %s", account, r.Message), Hint: r.Hint, Err: err}
}

// reasonOf says of a provider's failure what a record keeps of it.
func reasonOf(err error) Reason {
	r := Reason{Class: className(err), Message: err.Error()}
	if r.Class == "" {
		r.Class = "internal"
	}
	var fe *Error
	if errors.As(err, &fe) {
		r.Hint = fe.Hint
	}
	var pe *provision.ProviderError
	if errors.As(err, &pe) {
		r.Hint, r.RequestID = pe.Hint, pe.RequestID
	}
	if r.Hint == "" {
		r.Hint = hints[r.Class]
	}
	return r
}

// className is the class of an error of ours or of a provider; empty when it
// has none.
func className(err error) string {
	var fe *Error
	if errors.As(err, &fe) {
		return fe.Class
	}
	return provision.ClassName(err)
}

// hints are for failures whose provider gave none.
var hints = map[string]string{
	"capacity":     "name more sizes or regions; they are tried in order",
	"quota":        "raise the limit at the provider, or delete what is not needed",
	"rate-limited": "the account's requests are used up for now; it goes on by itself",
	"unauthorized": "make a new credential at the provider and add the account again",
	"forbidden":    "give the credential the right to create and delete servers",
	"not-found":    "check region, size and image",
	"conflict":     "something of this name exists already; use another name, or remove it",
	"invalid":      "check region, size, image and name",
	"unavailable":  "the provider is in trouble, or the way to it; it is tried again",
}
