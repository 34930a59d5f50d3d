package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-dev/slipway/client"
)

// The exit codes. They are part of the command's contract; docs/reference/exit-codes.md
// and `slipway help exit-codes` list them.
const (
	ExitOK          = 0   // it is done
	ExitFailed      = 1   // it failed
	ExitUsage       = 2   // the command line is wrong
	ExitNotFound    = 3   // a thing that was named does not exist
	ExitCredentials = 4   // a credential or token is missing, wrong or may not do this
	ExitNoCapacity  = 5   // the provider has no capacity, or a quota is reached
	ExitTimeout     = 6   // waiting ended; the work goes on
	ExitRefused     = 7   // refused, as without --yes, or because it is in use
	ExitInterrupted = 130 // stopped by Ctrl-C or SIGTERM
)

// exitCodes is the table as people read it.
var exitCodes = []struct {
	code int
	word string
	when string
}{
	{ExitOK, "ok", "It is done: a created node has joined, a deleted one is seen to be gone."},
	{ExitFailed, "failed", "It failed; standard error says what happened, why, and what to do next."},
	{ExitUsage, "usage", "The command line or the input is wrong. Nothing was done."},
	{ExitNotFound, "not found", "A node, account, region or size that was named does not exist."},
	{ExitCredentials, "credentials", "A credential or token is missing, wrong or expired, or may not do this."},
	{ExitNoCapacity, "no capacity", "The provider has no such machine there now, or a quota is reached."},
	{ExitTimeout, "timed out", "Waiting ended by --timeout. The work goes on; the message says how to follow it."},
	{ExitRefused, "refused", "Refused: no --yes without a terminal, the answer was no, or the thing is in use."},
	{ExitInterrupted, "interrupted", "Stopped by Ctrl-C or SIGTERM. What was asked of the control plane goes on."},
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usageError returns an error of the command line.
func usageError(hint, format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// refusedError returns an error for what Slipway will not do as it was asked.
func refusedError(hint, format string, args ...any) error {
	return &exitError{code: ExitRefused, err: fmt.Errorf(format, args...), hint: hint}
}

var codeOfClass = map[string]int{
	client.ClassCapacity:     ExitNoCapacity,
	client.ClassQuota:        ExitNoCapacity,
	client.ClassUnauthorized: ExitCredentials,
	client.ClassForbidden:    ExitCredentials,
	client.ClassNotFound:     ExitNotFound,
	client.ClassInvalid:      ExitUsage,
	client.ClassRefused:      ExitRefused,
}

// exitCode returns the code that err ends the process with.
func exitCode(err error) int {
	var ee *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &ee):
		return ee.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	}
	if c, ok := codeOfClass[client.ClassOf(err)]; ok {
		return c
	}
	return ExitFailed
}

// printError tells a failure on standard error: what and why, what next, the
// provider's request id, and what is left behind.
func (a *app) printError(err error) {
	if errors.Is(err, errSilent) {
		return
	}
	w, color := a.IO.Err, a.IO.ErrColor
	fmt.Fprintf(w, "%s %s\n", paint(color, styleRed, "error:"), printable(err.Error()))
	var ee *exitError
	hint := ""
	if errors.As(err, &ee) {
		hint = ee.hint
	}
	var ce *client.Error
	isAPI := errors.As(err, &ce)
	if hint == "" && isAPI {
		hint = ce.Hint
	}
	if hint != "" {
		fmt.Fprintf(w, "%s  %s\n", paint(color, styleCyan, "next:"), printable(hint))
	}
	if !isAPI {
		return
	}
	if ce.RequestID != "" {
		at := ""
		if ce.Provider != "" {
			at = " at " + ce.Provider
		}
		fmt.Fprintf(w, "request id%s: %s\n", printable(at), printable(ce.RequestID))
	}
	for i, l := range ce.LeftBehind {
		if i == 0 {
			fmt.Fprintln(w, paint(color, styleYellow, "left behind:"))
		}
		fmt.Fprintf(w, "  %s\n", printable(l))
	}
	if len(ce.LeftBehind) == 0 && errors.Is(err, errAboutMachines) {
		fmt.Fprintln(w, "left behind: nothing")
	}
}

var (
	// errSilent marks an error that has been told already.
	errSilent = errors.New("told already")
	// errAboutMachines marks a failure of something that can leave things at
	// a provider, so that "left behind" is said even when it is nothing.
	errAboutMachines = errors.New("could leave things behind")
)

// marked is an error that is also marks, for errors.Is.
type marked struct {
	error
	mark error
}

func (m marked) Unwrap() []error { return []error{m.error, m.mark} }

func aboutMachines(err error) error {
	if err == nil {
		return nil
	}
	return marked{err, errAboutMachines}
}

// both returns what a command that met two failures ends with: the first is
// told now, the second decides the exit code.
func (a *app) both(first, second error) error {
	if first == nil || second == nil {
		if first != nil {
			return first
		}
		return second
	}
	a.printError(first)
	return second
}
