package provision

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestHetznerCodes lists every code with its usual status. The statuses that
// would mean something else are there on purpose: the code decides.
func TestHetznerCodes(t *testing.T) {
	cfg := apiConfig{provider: "hetzner", classify: hetznerClassify(64), requestID: "X-Correlation-Id", pause: refillPause}
	table := []struct {
		status int
		code   string
		class  error
	}{
		{401, "unauthorized", ErrUnauthorized},
		{403, "forbidden", ErrForbidden},
		{403, "token_readonly", ErrForbidden},
		{404, "not_found", ErrNotFound},
		{404, "firewall_resource_not_found", ErrNotFound},
		{400, "invalid_input", ErrInvalid},
		{422, "invalid_input", ErrInvalid},
		{422, "invalid_server_type", ErrInvalid},
		{400, "json_error", ErrInvalid},
		{422, "unsupported_error", ErrInvalid},
		{422, "incompatible_network_type", ErrInvalid},
		{422, "private_net_only_server", ErrInvalid},
		{422, "primary_ip_version_mismatch", ErrInvalid},
		{410, "deprecated_api_endpoint", ErrInvalid},
		{409, "uniqueness_error", ErrConflict},
		{409, "server_already_added", ErrConflict},
		{409, "server_already_attached", ErrConflict},
		{409, "server_not_stopped", ErrConflict},
		{409, "firewall_already_applied", ErrConflict},
		{409, "firewall_already_removed", ErrConflict},
		{409, "firewall_managed_by_label_selector", ErrConflict},
		{409, "primary_ip_assigned", ErrConflict},
		{409, "primary_ip_already_assigned", ErrConflict},
		{409, "volume_already_attached", ErrConflict},
		{409, "resource_in_use", ErrConflict},
		{403, "protected", ErrConflict},
		{412, "resource_unavailable", ErrCapacity},
		{422, "resource_unavailable", ErrCapacity},
		{503, "resource_unavailable", ErrCapacity},
		{412, "placement_error", ErrCapacity},
		{422, "no_space_left_in_location", ErrCapacity},
		{403, "resource_limit_exceeded", ErrQuota},
		{429, "rate_limit_exceeded", ErrRateLimited},
		{403, "rate_limit_exceeded", ErrRateLimited},
		{423, "locked", ErrUnavailable},
		{409, "conflict", ErrUnavailable},
		{423, "resource_locked", ErrUnavailable},
		{503, "maintenance", ErrUnavailable},
		{503, "service_error", ErrUnavailable},
		{500, "server_error", ErrUnavailable},
		{502, "bad_gateway", ErrUnavailable},
		{504, "timeout", ErrUnavailable},
		{500, "unknown_error", ErrUnavailable},
		{503, "robot_unavailable", ErrUnavailable},
	}
	tested := map[string]bool{}
	for _, c := range table {
		tested[c.code] = true
		body := fmt.Sprintf(`{"error":{"code":%q,"message":"m","details":{}}}`, c.code)
		e := answerError(cfg, &answer{status: c.status, body: []byte(body), header: http.Header{}})
		for _, n := range classNames {
			if errors.Is(e, n.class) != (n.class == c.class) {
				t.Errorf("%s (HTTP %d): is %q: %v, want only %v", c.code, c.status, n.name, errors.Is(e, n.class), c.class)
			}
		}
		if e.Code != c.code || e.Message != "m" {
			t.Errorf("%s: read code %q, message %q", c.code, e.Code, e.Message)
		}
	}
	for code := range hetznerCodes {
		if !tested[code] {
			t.Errorf("code %q is in no test", code)
		}
	}
}

func TestHetznerSaysWhichFieldIsWrong(t *testing.T) {
	e := &ProviderError{Status: 422}
	hetznerClassify(64)(e, []byte(`{"error":{"code":"invalid_input","message":"invalid input in field 'name'",
		"details":{"fields":[{"name":"name","messages":["is too long","is odd"]},{"name":"image","messages":["unknown"]}]}}}`))
	if want := "invalid input in field 'name' [name: is too long; is odd] [image: unknown]"; e.Message != want {
		t.Errorf("got %q", e.Message)
	}
	for _, details := range []string{"null", "[]", `"x"`, `{"fields":null}`, "{}"} {
		e := &ProviderError{Status: 422}
		hetznerClassify(64)(e, []byte(`{"error":{"code":"invalid_input","message":"m","details":`+details+`}}`))
		if e.Message != "m" {
			t.Errorf("details %s: %q", details, e.Message)
		}
	}
}

func TestHetznerHints(t *testing.T) {
	for _, c := range []struct {
		code  string
		token int
		hint  string
	}{
		{"unauthorized", 64, "belongs to one project"},
		{"unauthorized", 20, "this has 20"},
		{"token_readonly", 64, "read & write"},
		{"protected", 64, "disable-protection"},
		{"resource_limit_exceeded", 64, "Limits"},
		{"resource_unavailable", 64, "another region"},
		{"locked", 64, "try again"},
	} {
		e := &ProviderError{Status: 400}
		hetznerClassify(c.token)(e, []byte(`{"error":{"code":"`+c.code+`"}}`))
		if !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: hint %q, want one with %q", c.code, e.Hint, c.hint)
		}
	}
}
