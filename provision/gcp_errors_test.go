package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGCPErrorClasses has every reason that is known, in the spelling and with
// the status that it comes with. One that is missing here fails.
func TestGCPErrorClasses(t *testing.T) {
	cfg := apiConfig{provider: "gcp", classify: gcpClassify}
	groups := map[error]map[int]string{
		ErrCapacity: {503: "ZONE_RESOURCE_POOL_EXHAUSTED ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS REGION_RESOURCE_POOL_EXHAUSTED REGION_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS RESOURCE_POOL_EXHAUSTED insufficientCapacity GPU_STOCKOUT STOCKOUT"},
		ErrQuota:    {403: "quotaExceeded QUOTA_EXCEEDED limitExceeded"},
		ErrRateLimited: {
			403: "rateLimitExceeded RATE_LIMIT_EXCEEDED userRateLimitExceeded",
			429: "RESOURCE_OPERATION_RATE_EXCEEDED resourceOperationRateExceeded operationRateExceeded",
		},
		ErrUnauthorized: {401: "authError UNAUTHENTICATED ACCESS_TOKEN_EXPIRED CREDENTIALS_MISSING ACCOUNT_STATE_DISABLED ACCOUNT_STATE_INVALID ACCESS_TOKEN_TYPE_UNMAPPED", 404: "PROJECT_NOT_FOUND"},
		ErrForbidden: {
			403: "forbidden PERMISSIONS_ERROR PERMISSION_DENIED IAM_PERMISSION_DENIED insufficientPermissions ACCESS_TOKEN_SCOPE_INSUFFICIENT accessNotConfigured SERVICE_DISABLED billingDisabled billingNotEnabled ORG_POLICY_VIOLATION",
			412: "conditionNotMet CONDITION_NOT_MET",
		},
		ErrNotFound: {404: "notFound RESOURCE_NOT_FOUND"},
		ErrConflict: {400: "resourceInUseByAnotherResource RESOURCE_IN_USE OPERATION_CANCELED_BY_USER", 409: "alreadyExists RESOURCE_ALREADY_EXISTS duplicate"},
		ErrInvalid: {
			400: "invalid required badRequest parseError INVALID_ARGUMENT invalidParameter INVALID_FIELD_VALUE MISSING_REQUIRED_FIELD REQUIRED_FIELD_MISSING FIELD_SIZE_TOO_LARGE INVALID_USAGE UNSUPPORTED_OPERATION operationNotAllowed SERVICE_UNAVAILABLE_FOR_LOCATION",
			404: "NETWORK_NOT_FOUND", 413: "uploadTooLarge",
		},
		ErrUnavailable: {400: "resourceNotReady", 409: "aborted", 500: "internalError INTERNAL INTERNAL_ERROR", 503: "backendError UNAVAILABLE serviceUnavailable", 504: "DEADLINE_EXCEEDED"},
	}
	tested := map[string]bool{}
	for class, byStatus := range groups {
		for status, codes := range byStatus {
			for code := range strings.FieldsSeq(codes) {
				tested[gcpWord(code)] = true
				body := fmt.Sprintf(`{"error":{"code":%d,"message":"m","errors":[{"reason":%q,"message":"m"}]}}`, status, code)
				e := answerError(cfg, &answer{status: status, body: []byte(body), header: http.Header{}})
				for _, n := range classNames {
					if errors.Is(e, n.class) != (n.class == class) {
						t.Errorf("%s (HTTP %d): is %q: %v, want only %v", code, status, n.name, errors.Is(e, n.class), class)
					}
				}
				if e.Code != code || e.Message != "m" {
					t.Errorf("%s: read code %q, message %q", code, e.Code, e.Message)
				}
				if class == ErrRateLimited && (e.RetryAfter <= 0 || e.RetryAfter > time.Minute || e.again != againAny) {
					t.Errorf("%s: to be waited for %v, again %d", code, e.RetryAfter, e.again)
				}
			}
		}
	}
	for code := range gcpCodes {
		if !tested[code] {
			t.Errorf("code %q is in no test", code)
		}
	}
}

func TestGCPErrorsThatNeedMoreThanTheReason(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, code string
		class      error
	}{
		{403, `{"error":{"message":"m","errors":[{"reason":"forbidden"}],"details":[{"reason":"SERVICE_DISABLED"}]}}`, "SERVICE_DISABLED", ErrForbidden},
		{403, `{"error":{"message":"m","status":"PERMISSION_DENIED","details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}}`, "RATE_LIMIT_EXCEEDED", ErrRateLimited},
		{400, `{"error":{"message":"Resource cannot be deleted if it's protected against deletion.","errors":[{"reason":"invalid"}]}}`, "invalid", ErrConflict},
		{412, `{"error":{"message":"Invalid fingerprint.","errors":[{"reason":"conditionNotMet"}]}}`, "conditionNotMet", ErrConflict},
		{401, `{"error":{"message":"Login Required.","errors":[{"reason":"required","location":"Authorization"}]}}`, "required", ErrUnauthorized},
		{404, `<html>proxy</html>`, "", ErrUnavailable},
		{503, `<html>`, "", ErrUnavailable},
		{418, `{"error":{"errors":[{"reason":"unheardOf"}]}}`, "unheardOf", ErrInvalid},
	} {
		e := answerError(apiConfig{provider: "gcp", classify: gcpClassify}, &answer{status: c.status, body: []byte(c.body), header: http.Header{}})
		if e.Code != c.code || !errors.Is(e, c.class) {
			t.Errorf("%s: code %q, class %v; want %q, %v", c.body, e.Code, e.Class, c.code, c.class)
		}
	}
}

// TestGCPStates has every state of the API's discovery document.
func TestGCPStates(t *testing.T) {
	now := time.Now()
	for state, want := range map[string]ServerStatus{
		"DEPROVISIONING": ServerStatusError, "PENDING": ServerStatusPending, "PENDING_STOP": ServerStatusError, "PROVISIONING": ServerStatusPending,
		"REPAIRING": ServerStatusPending, "RUNNING": ServerStatusRunning, "STAGING": ServerStatusPending, "STOPPED": ServerStatusError,
		"STOPPING": ServerStatusError, "SUSPENDED": ServerStatusError, "SUSPENDING": ServerStatusError, "TERMINATED": ServerStatusError,
		"YET_TO_COME": ServerStatusRunning, "": ServerStatusRunning,
	} {
		if got := (gcpInstance{Status: state, Created: now.Add(-time.Hour)}).ourStatus(now); got != want {
			t.Errorf("%q is %s, want %s", state, got, want)
		}
	}
	if got := (gcpInstance{Status: "YET_TO_COME", Created: now}).ourStatus(now); got != ServerStatusPending {
		t.Errorf("an unknown state of a new server is %s", got)
	}
}

func TestGCPCredentialMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "empty"}, {"key.json", "not a JSON object"}, {"-----BEGIN PRIVATE KEY-----", "only its private key"}, {"[]", "not a JSON object"},
		{`{"type":7}`, "type is not a text"}, {`{}`, "no type"}, {`{"type":"authorized_user"}`, "a person's"},
		{`{"type":"external_account","credential_source":{"executable":{"command":"x"}}}`, "not supported"},
		{`{"type":"else"}`, "not service_account"}, {`{"type":"service_account"}`, "no project_id"},
		{`{"type":"service_account","project_id":"demo-1","client_email":"a@b"}`, "no private_key"},
		{`{"type":"service_account","project_id":"demo-1","client_email":"a@b","private_key":"hidden-secret"}`, "not an RSA key"},
		{`{"type":"service_account","project_id":"../x","client_email":"a@b","private_key":"hidden-secret"}`, "not a project's id"},
	} {
		_, err := NewGCP(c.text)
		if !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden-secret") {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	for _, address := range []string{"https://evil.example/token", "http://oauth2.googleapis.com/token", "https://oauth2.googleapis.com.evil.example/token", "https://oauth2.googleapis.com:444/token"} {
		if isGoogles(address) {
			t.Errorf("%s counts as Google's", address)
		}
	}
	if !isGoogles(gcpTokenURI) {
		t.Error("Google's own token endpoint does not count as Google's")
	}
}

func TestGCPTokenRefusals(t *testing.T) {
	for _, c := range []struct {
		status        int
		code, message string
		class         error
		hint          string
	}{
		{400, "invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.", ErrUnauthorized, "clock"},
		{400, "invalid_grant", "Invalid JWT Signature.", ErrUnauthorized, "deleted or disabled"},
		{400, "invalid_grant", "Invalid grant: account not found", ErrUnauthorized, "client_email"},
		{401, "unauthorized_client", "x", ErrUnauthorized, "disabled"},
		{404, "", "", ErrUnavailable, "token_uri"},
		{429, "x", "", ErrRateLimited, ""}, {503, "", "", ErrUnavailable, ""},
	} {
		e := &ProviderError{Status: c.status, Code: c.code, Message: c.message}
		gcpTokenClass(e)
		if !errors.Is(e, c.class) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%+v: %v, hint %q", c, e.Class, e.Hint)
		}
	}
}

func TestGCPLongUserDataIsCompressed(t *testing.T) {
	for n, want := range map[int]string{gcpUserDataLimit: "", gcpUserDataLimit + 1: "base64"} {
		value, encoding, err := gcpUserData(strings.Repeat("#", n))
		if err != nil || encoding != want || len(value) > gcpUserDataLimit {
			t.Errorf("%d bytes: %d, %q, %v", n, len(value), encoding, err)
		}
	}
}

// TestGCPRole holds the role that the docs tell people to make to what the
// preflight checks.
func TestGCPRole(t *testing.T) {
	data, err := os.ReadFile("../docs/permissions/gcp.json")
	var role struct {
		Permissions []string `json:"includedPermissions"`
	}
	if err = errors.Join(err, json.Unmarshal(data, &role)); err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(gcpCreatePermissions, gcpSSHPermissions) {
		if !slices.Contains(role.Permissions, p) {
			t.Errorf("the role lacks %s", p)
		}
	}
}
