package provision

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func doError(status int, id, message string) *ProviderError {
	cfg := apiConfig{provider: "digitalocean", classify: doClassify("dop_v1_" + strings.Repeat("a", 64)), requestID: "X-Request-Id", pause: slidingPause}
	body := fmt.Sprintf(`{"id":%q,"message":%q,"request_id":"r-1"}`, id, message)
	return answerError(cfg, &answer{status: status, body: []byte(body), header: http.Header{}})
}

// TestDigitalOceanErrors has every id with its status, and the messages that
// tell one 422 from another: capacity, quota and bad input share an id.
func TestDigitalOceanErrors(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range []struct {
		status  int
		id      string
		message string
		class   error
		again   again
	}{
		{401, "unauthorized", "Unable to authenticate you", ErrUnauthorized, againNever},
		{401, "Unauthorized", "Unable to authenticate you", ErrUnauthorized, againNever},
		{403, "forbidden", "You are not authorized to perform this operation", ErrForbidden, againNever},
		{404, "not_found", "The resource you were accessing could not be found.", ErrNotFound, againNever},
		{400, "bad_request", "error parsing request body", ErrInvalid, againNever},
		{409, "conflict", "duplicate name", ErrConflict, againNever},
		{409, "conflict", "The resource is in use", ErrConflict, againNever},
		{429, "too_many_requests", "API Rate limit exceeded.", ErrRateLimited, againAny},
		{500, "server_error", "Unexpected server-side error", ErrUnavailable, againSafe},
		{502, "", "", ErrUnavailable, againSafe},
		{503, "service_unavailable", "", ErrUnavailable, againSafe},
		{504, "", "", ErrUnavailable, againSafe},

		{422, "unprocessable_entity", "creating this/these droplet(s) will exceed your droplet limit", ErrQuota, againNever},
		{422, "unprocessable_entity", "Size is not available in this region.", ErrCapacity, againNever},
		{422, "unprocessable_entity", "Region is not available", ErrCapacity, againNever},
		{422, "unprocessable_entity", "This size is currently unavailable in nyc3.", ErrCapacity, againNever},
		{422, "unprocessable_entity", "Droplet already has a pending event.", ErrUnavailable, againAny},
		{422, "unprocessable_entity", "SSH Key is already in use on your account", ErrConflict, againNever},
		{422, "unprocessable_entity", "You specified a size that is not a valid size", ErrInvalid, againNever},
		{422, "unprocessable_entity", "You specified an invalid image for Droplet creation.", ErrInvalid, againNever},
		{422, "unprocessable_entity", "Only valid hostname characters are allowed. (a-z, A-Z, 0-9, . and -)", ErrInvalid, againNever},
		{422, "unprocessable_entity", "1, 2 are invalid key identifiers for Droplet creation.", ErrInvalid, againNever},
		{422, "unprocessable_entity", "user_data must be less than 64 KiB", ErrInvalid, againNever},
		// The id decides before the message: a quota's words in a refusal of
		// the credential change nothing.
		{403, "forbidden", "you may not change your droplet limit", ErrForbidden, againNever},
		{429, "too_many_requests", "currently unavailable", ErrRateLimited, againAny},
	} {
		ids[strings.ToLower(c.id)] = true
		e := doError(c.status, c.id, c.message)
		for _, n := range classNames {
			if errors.Is(e, n.class) != (n.class == c.class) {
				t.Errorf("%q %q (HTTP %d) is %v, want only %v", c.id, c.message, c.status, e.Class, c.class)
			}
		}
		if e.again != c.again {
			t.Errorf("%q %q: again %v, want %v", c.id, c.message, e.again, c.again)
		}
		if e.Code != c.id || e.Message != c.message || e.RequestID != "r-1" {
			t.Errorf("%q: read code %q, message %q, request id %q", c.id, e.Code, e.Message, e.RequestID)
		}
	}
	for id := range doCodes {
		if !ids[id] {
			t.Errorf("id %s is in the table and not in this test", id)
		}
	}
}

// Every message in the table can be met: an earlier row does not hide it.
func TestDigitalOceanMessagesAreReached(t *testing.T) {
	for _, m := range doMessages {
		e := doError(422, "unprocessable_entity", "It is so: "+strings.ToUpper(m.text)+"!")
		if e.Class != m.code.class || e.again != m.code.again || e.Hint != m.code.hint {
			t.Errorf("%q is %v with hint %q, want %v with %q", m.text, e.Class, e.Hint, m.code.class, m.code.hint)
		}
	}
}

func TestDigitalOceanTokenHints(t *testing.T) {
	long := strings.Repeat("b", 64)
	for token, want := range map[string]string{
		"dop_v1_" + long: "expired",
		"dop_v1_short":   "71 characters, this has 12",
		"doo_v1_" + long: "personal access token",
		"dor_v1_" + long: "personal access token",
		long:             "expired", // older tokens have no prefix
	} {
		e := &ProviderError{Status: 401}
		doClassify(token)(e, []byte(`{"id":"unauthorized","message":"Unable to authenticate you"}`))
		if !strings.Contains(e.Hint, want) || strings.Contains(e.Hint, token) {
			t.Errorf("a token of %d characters: hint %q, want %q in it and not the token", len(token), e.Hint, want)
		}
	}
}
