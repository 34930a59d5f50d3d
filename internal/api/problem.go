package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// statusOf is the HTTP status of each class. What a provider says of its own
// credential is 424, since 401 and 403 speak of the caller's.
var statusOf = map[string]int{
	client.ClassCapacity:     http.StatusConflict,
	client.ClassQuota:        http.StatusConflict,
	client.ClassRateLimited:  http.StatusTooManyRequests,
	client.ClassUnauthorized: http.StatusFailedDependency,
	client.ClassForbidden:    http.StatusFailedDependency,
	client.ClassNotFound:     http.StatusNotFound,
	client.ClassConflict:     http.StatusConflict,
	client.ClassInvalid:      http.StatusUnprocessableEntity,
	client.ClassUnavailable:  http.StatusBadGateway,
	client.ClassRefused:      http.StatusForbidden,
	client.ClassInternal:     http.StatusInternalServerError,
}

// titleOf is the short name of each class, for people.
var titleOf = map[string]string{
	client.ClassCapacity:     "No capacity",
	client.ClassQuota:        "Quota reached",
	client.ClassRateLimited:  "Rate limited",
	client.ClassUnauthorized: "Credential not accepted",
	client.ClassForbidden:    "Not permitted",
	client.ClassNotFound:     "Not found",
	client.ClassConflict:     "Conflict",
	client.ClassInvalid:      "Invalid request",
	client.ClassUnavailable:  "Provider unavailable",
	client.ClassRefused:      "Refused",
	client.ClassInternal:     "Internal error",
}

// classes are fleet's own error values; provision's have their names there.
var classes = []struct {
	err   error
	class string
}{
	{fleet.ErrNotFound, client.ClassNotFound},
	{fleet.ErrConflict, client.ClassConflict},
	{fleet.ErrInvalid, client.ClassInvalid},
	{fleet.ErrRefused, client.ClassRefused},
}

// ProblemOf returns the problem that err is told as. The text of an error
// without a class is not told, since it may speak of the inside; that of a
// *fleet.Error always is, since it was written for people.
func ProblemOf(err error) client.Problem {
	p := client.Problem{Class: classOf(err), Detail: err.Error()}
	var fe *fleet.Error
	told := errors.As(err, &fe) && fe.Message != ""
	if told {
		p.Detail, p.Hint = fe.Message, fe.Hint
	}
	// What opens a provider for the fleet may have its own words for people.
	var ce *client.Error
	if errors.As(err, &ce) {
		p.Provider, p.RequestID, p.LeftBehind = ce.Provider, ce.RequestID, ce.LeftBehind
		if p.Hint == "" {
			p.Hint = ce.Hint
		}
	}
	var pe *provision.ProviderError
	if errors.As(err, &pe) {
		p.Provider, p.RequestID = pe.Provider, pe.RequestID
		if p.Hint == "" {
			p.Hint = pe.Hint
		}
	}
	var partial *provision.PartialError
	if errors.As(err, &partial) {
		for _, r := range partial.Left {
			p.LeftBehind = append(p.LeftBehind, describeResource(r))
		}
	}
	if p.Class == client.ClassInternal && !told {
		p.Detail = "the control plane met an error that it has no name for; its log says more"
	}
	p.Title, p.Status = titleOf[p.Class], statusOf[p.Class]
	return p
}

func classOf(err error) string {
	var fe *fleet.Error
	if errors.As(err, &fe) && fe.Class != client.ClassInternal && statusOf[fe.Class] != 0 {
		return fe.Class
	}
	if class := client.ClassOf(err); statusOf[class] != 0 {
		return class
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	if name := provision.ClassName(err); statusOf[name] != 0 {
		return name
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return client.ClassUnavailable
	}
	return client.ClassInternal
}

func describeResource(r provision.Resource) string {
	s := r.Kind
	if r.ID != "" {
		s += " " + r.ID
	}
	if r.Name != "" && r.Name != r.ID {
		s += " (" + r.Name + ")"
	}
	if r.Region != "" {
		s += " in " + r.Region
	}
	return s
}

// problem is a client.Problem as huma sends it.
type problem struct {
	client.Problem
	headers http.Header
}

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) GetHeaders() http.Header   { return p.headers }
func (p *problem) ContentType(string) string { return "application/problem+json" }

// problem turns a failed operation into its answer, and logs the reason when
// the answer does not tell it.
func (s *service) problem(ctx context.Context, op string, err error) error {
	if p := (*problem)(nil); errors.As(err, &p) {
		return p
	}
	p := &problem{Problem: ProblemOf(err)}
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.opts.Logger.ErrorContext(ctx, "operation failed", "operation", op, "class", p.Class, "request_id", requestID(ctx), "error", err)
	}
	if id := requestID(ctx); p.Class == client.ClassInternal && id != "" {
		p.Hint = "look for " + id + " in the control plane's log"
	}
	var pe *provision.ProviderError
	if errors.As(err, &pe) && pe.RetryAfter > 0 {
		p.headers = http.Header{"Retry-After": {strconv.Itoa(int(pe.RetryAfter.Seconds() + 0.999))}}
	}
	return p
}

// invalid returns the problem of a request that is wrong in itself.
func invalid(format string, args ...any) error {
	return &problem{Problem: plainProblem(http.StatusUnprocessableEntity, client.ClassInvalid, fmt.Sprintf(format, args...), "")}
}

func plainProblem(status int, class, detail, hint string) client.Problem {
	title := titleOf[class]
	if title == "" {
		title = http.StatusText(status)
	}
	return client.Problem{Title: title, Status: status, Class: class, Detail: detail, Hint: hint}
}

// problemFromModel turns what huma says of a request that does not fit the
// schema into a problem. The values that were sent stay out of it: one of
// them may be a credential.
func problemFromModel(_ huma.Context, _ string, v any) (any, error) {
	switch m := v.(type) {
	case *problem:
		return m.Problem, nil
	case *huma.ErrorModel:
		class := client.ClassInvalid
		if m.Status >= http.StatusInternalServerError {
			class = client.ClassInternal
		}
		var parts []string
		for _, d := range m.Errors {
			if d == nil {
				continue
			}
			if d.Location != "" {
				parts = append(parts, d.Location+": "+d.Message)
			} else {
				parts = append(parts, d.Message)
			}
		}
		detail := m.Detail
		if len(parts) > 0 {
			detail += ": " + strings.Join(parts, "; ")
		}
		return plainProblem(m.Status, class, detail, ""), nil
	}
	return v, nil
}

// Classes returns every class that an answer can have, with its HTTP status,
// sorted by name; the reference pages are made from it.
func Classes() []string {
	var lines []string
	for _, c := range slices.Sorted(maps.Keys(statusOf)) {
		lines = append(lines, fmt.Sprintf("%s %d", c, statusOf[c]))
	}
	return lines
}
