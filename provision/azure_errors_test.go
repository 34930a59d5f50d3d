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

// TestAzureErrorClasses has every code that is known, with the status that it
// comes with. One that is missing here fails.
func TestAzureErrorClasses(t *testing.T) {
	cfg := apiConfig{provider: "azure", classify: azureClassify, requestID: "X-Ms-Request-Id"}
	groups := map[error]map[int]string{
		ErrUnauthorized: {401: "AuthenticationFailed ExpiredAuthenticationToken InvalidAuthenticationToken InvalidAuthenticationTokenTenant", 404: "SubscriptionNotFound", 400: "InvalidSubscriptionId"},
		ErrForbidden: {
			403: "AuthorizationFailed LinkedAuthorizationFailed RequestDisallowedByPolicy DisallowedByPolicy RequestDisallowedByAzure",
			409: "MissingSubscriptionRegistration SubscriptionNotRegistered MissingRegistrationForResourceProvider ReadOnlyDisabledSubscription DisabledSubscription",
		},
		ErrNotFound: {404: "ResourceNotFound NotFound ResourceGroupNotFound"},
		ErrCapacity: {409: "SkuNotAvailable AllocationFailed ZonalAllocationFailed OverconstrainedAllocationRequest OverconstrainedZonalAllocationRequest"},
		ErrQuota: {
			400: "PublicIPCountLimitReached StaticPublicIPCountLimitReached IPv4StandardSkuPublicIpCountLimitReached NetworkInterfaceCountLimitReached NetworkSecurityGroupCountLimitReached VnetCountLimitReached SubnetIsFull",
			409: "QuotaExceeded",
		},
		ErrRateLimited: {429: "TooManyRequests SubscriptionRequestsThrottled ResourceRequestsThrottled OperationRateLimitExceeded"},
		ErrUnavailable: {
			429: "RetryableError RetryableErrorDueToAnotherOperation",
			409: "AnotherOperationInProgress ReferencedResourceNotProvisioned Conflict OperationPreempted CanceledAndSupersededDueToAnotherOperation ResourceGroupBeingDeleted OSProvisioningTimedOut OSProvisioningClientError OSProvisioningInternalError VMStartTimedOut VMExtensionProvisioningError",
			500: "InternalServerError InternalExecutionError InternalOperationError NetworkingInternalOperationError OperationTimedOut",
			503: "ServerBusy ServiceUnavailable", 504: "GatewayTimeout ServerTimeout",
		},
		ErrConflict: {
			400: "NicReservedForAnotherVm NicInUse PublicIPAddressInUse PublicIPAddressCannotBeDeleted InUseSubnetCannotBeDeleted InUseNetworkSecurityGroupCannotBeDeleted PrivateIPAddressIsAllocated",
			409: "OperationNotAllowed PropertyChangeNotAllowed InvalidResourceLocation InvalidResourceGroupLocation ScopeLocked", 412: "PreconditionFailed ConditionNotMet",
		},
		ErrInvalid: {
			400: "InvalidParameter InvalidRequestContent InvalidRequestFormat BadRequest InvalidResourceName InvalidResourceReference InvalidTemplate InvalidResourceType InvalidApiVersionParameter MissingApiVersionParameter NoRegisteredProviderFound LocationNotAvailableForResourceType LocationNotAvailableForResourceGroup VMMarketplaceInvalidInput VMSizeIsNotPermittedToEnableAcceleratedNetworking",
			404: "PlatformImageNotFound ImageNotFound",
		},
	}
	tested := map[string]bool{}
	for class, byStatus := range groups {
		for status, codes := range byStatus {
			for code := range strings.FieldsSeq(codes) {
				tested[code] = true
				body := fmt.Sprintf(`{"error":{"code":%q,"message":"m"}}`, code)
				e := answerError(cfg, &answer{status: status, body: []byte(body), header: http.Header{}})
				for _, n := range classNames {
					if errors.Is(e, n.class) != (n.class == class) {
						t.Errorf("%s (HTTP %d): is %q: %v, want only %v", code, status, n.name, errors.Is(e, n.class), class)
					}
				}
				if e.Code != code || e.Message != "m" {
					t.Errorf("%s: read code %q, message %q", code, e.Code, e.Message)
				}
			}
		}
	}
	for code := range azureCodes {
		if !tested[code] {
			t.Errorf("code %q is in no test", code)
		}
	}
}

// TestAzureFindsTheTellingCode: what decides is often wrapped, and a quota has
// the code of a state that does not fit.
func TestAzureFindsTheTellingCode(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, code string
		class      error
		again      again
	}{
		{409, `{"error":{"code":"OperationNotAllowed","message":"Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Current Limit: 10"}}`, "OperationNotAllowed", ErrQuota, againNever},
		{409, `{"error":{"code":"OperationNotAllowed","message":"The VM is being deleted."}}`, "OperationNotAllowed", ErrConflict, againNever},
		{409, `{"error":{"code":"ResourceOperationFailure","message":"failed","details":[{"code":"Noise"},{"code":"Failed","details":[{"code":"ZonalAllocationFailed","message":"no room"}]}]}}`, "ZonalAllocationFailed", ErrCapacity, againNever},
		{409, `{"error":{"code":"DeploymentFailed","message":"{\"error\":{\"code\":\"QuotaExceeded\",\"message\":\"q\"}}"}}`, "QuotaExceeded", ErrQuota, againNever},
		{429, `{"error":{"code":"RetryableError","message":"again","details":[{"code":"RetryableErrorDueToAnotherOperation","message":"in 4 s"}]}}`, "RetryableErrorDueToAnotherOperation", ErrUnavailable, againAny},
		{429, `{"code":"TooManyRequests","message":"no envelope"}`, "TooManyRequests", ErrRateLimited, againAny},
		{400, `{"error":{"code":"InvalidParameter","message":"wrong","target":"vmSize"}}`, "InvalidParameter", ErrInvalid, againNever},
		{418, `{"error":{"code":"Unheard","message":"of"}}`, "Unheard", ErrInvalid, againNever},
		{404, `<html>proxy</html>`, "", ErrUnavailable, againNever},
		{404, ``, "", ErrNotFound, againNever},
		{503, `<html>`, "", ErrUnavailable, againSafe},
	} {
		e := answerError(apiConfig{provider: "azure", classify: azureClassify}, &answer{status: c.status, body: []byte(c.body), header: http.Header{}})
		if e.Code != c.code || !errors.Is(e, c.class) || e.again != c.again {
			t.Errorf("%s: code %q, class %v, again %d; want %q, %v, %d", c.body, e.Code, e.Class, e.again, c.code, c.class, c.again)
		}
	}
	e := &ProviderError{Status: 400}
	azureClassify(e, []byte(`{"error":{"code":"InvalidParameter","message":"wrong","target":"vmSize"}}`))
	if e.Message != "wrong [vmSize]" {
		t.Errorf("message %q does not say what is wrong", e.Message)
	}
}

func FuzzAzureClassify(f *testing.F) {
	for _, s := range []string{`{"error":{"code":"Conflict","details":[{}]}}`, `{"error":null}`, `[`, `{"error":{"message":"{\"error\":{\"code\":\"Failed\"}}"}}`} {
		f.Add(409, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := answerError(apiConfig{provider: "azure", classify: azureClassify}, &answer{status: status, body: []byte(body), header: http.Header{}})
		classes := 0
		for _, n := range classNames {
			if errors.Is(e, n.class) {
				classes++
			}
		}
		if status >= 300 && classes != 1 {
			t.Errorf("HTTP %d %q has %d classes", status, body, classes)
		}
	})
}

// TestAzureStates has every provisioning state and every power state.
func TestAzureStates(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	const p, r, e = ServerStatusPending, ServerStatusRunning, ServerStatusError
	for _, c := range []struct {
		provisioning, power string
		young, old          ServerStatus
	}{
		{"Creating", "", p, p},
		{"Creating", "running", p, p}, // powered on before the create has ended
		{"Updating", "running", p, p},
		{"Migrating", "running", p, p},
		{"Succeeded", "running", r, r},
		{"succeeded", "Running", r, r},
		{"Succeeded", "", p, p},
		{"Succeeded", "starting", p, p},
		{"Succeeded", "stopping", p, e},
		{"Succeeded", "stopped", p, e},
		{"Succeeded", "deallocating", p, e},
		{"Succeeded", "deallocated", p, e},
		{"Succeeded", "unknown", p, r},
		{"Succeeded", "hibernated?", p, r},
		{"Failed", "", e, e},
		{"Failed", "running", e, e},
		{"Canceled", "", e, e},
		{"Deleting", "running", e, e},
		{"Dreaming", "running", p, r},
	} {
		for age, want := range map[time.Duration]ServerStatus{time.Minute: c.young, time.Hour: c.old} {
			created := now.Add(-age)
			vm := azVM{}
			vm.Properties.ProvisioningState, vm.Properties.TimeCreated = c.provisioning, &created
			vm.Properties.InstanceView = &azInstanceView{Statuses: []azStatus{{Code: "ProvisioningState/" + strings.ToLower(c.provisioning)}}}
			if c.power != "" {
				vm.Properties.InstanceView.Statuses = append(vm.Properties.InstanceView.Statuses, azStatus{Code: "PowerState/" + c.power})
			}
			if got := vm.ourStatus(now); got != want {
				t.Errorf("%s, power %q, %v old: %s, want %s", c.provisioning, c.power, age, got, want)
			}
		}
	}
}

// TestAzureRole holds the role that people are given to what is checked.
func TestAzureRole(t *testing.T) {
	data, err := os.ReadFile("../docs/permissions/azure.json")
	if err != nil {
		t.Fatal(err)
	}
	var role struct{ Actions []string }
	if err := json.Unmarshal(data, &role); err != nil {
		t.Fatal(err)
	}
	for _, action := range slices.Concat(azActions, azSSHActions) {
		if !mayDo([]azPermission{{Actions: role.Actions}}, action) {
			t.Errorf("the role does not allow %s", action)
		}
	}
	for _, action := range role.Actions {
		if strings.Contains(action, "*") {
			t.Errorf("the role allows %s, which is more than is needed", action)
		}
	}
}

func TestAzureCoversAction(t *testing.T) {
	const action = "Microsoft.Compute/virtualMachines/write"
	for pattern, want := range map[string]bool{
		"*": true, "Microsoft.Compute/*": true, "microsoft.compute/VIRTUALMACHINES/write": true, "*/write": true, "Microsoft.*/virtualMachines/*": true,
		"*/read": false, "Microsoft.Network/*": false, "": false, "Microsoft.Compute/virtualMachines": false, "Microsoft.Compute/*/delete": false,
	} {
		if coversAction(pattern, action) != want {
			t.Errorf("%q covers it: %v, want %v", pattern, !want, want)
		}
	}
	roles := []azPermission{{Actions: []string{"*"}, NotActions: []string{"Microsoft.Compute/*"}}}
	if mayDo(roles, action) || !mayDo(append(roles, azPermission{Actions: []string{action}}), action) {
		t.Error("what a role takes away, another can still give")
	}
}
