package provision

import (
	"encoding/json"
	"errors"
	"strings"
)

// Errors.

// The codes that the calls for groups, networks, addresses, interfaces, disks
// and virtual machines can answer with, at once or from an operation. Their
// HTTP statuses vary, so the code decides.
var azureCodes = map[string]meaning{
	"AuthenticationFailed":             {class: ErrUnauthorized},
	"ExpiredAuthenticationToken":       {class: ErrUnauthorized},
	"InvalidAuthenticationToken":       {class: ErrUnauthorized},
	"InvalidAuthenticationTokenTenant": {class: ErrUnauthorized, hint: "the subscription belongs to another tenant: check tenant_id and subscription_id"},
	// Not "not found": what a subscription that cannot be seen holds may exist.
	"SubscriptionNotFound":  {class: ErrUnauthorized, hint: "check subscription_id, and that it belongs to the tenant"},
	"InvalidSubscriptionId": {class: ErrUnauthorized, hint: "check subscription_id"},

	"AuthorizationFailed":                    {class: ErrForbidden, hint: hintRole},
	"LinkedAuthorizationFailed":              {class: ErrForbidden, hint: hintRole},
	"RequestDisallowedByPolicy":              {class: ErrForbidden, hint: hintPolicy},
	"DisallowedByPolicy":                     {class: ErrForbidden, hint: hintPolicy},
	"RequestDisallowedByAzure":               {class: ErrForbidden, hint: "Azure bars this subscription from the region: choose another"},
	"MissingSubscriptionRegistration":        {class: ErrForbidden, hint: hintRegister},
	"SubscriptionNotRegistered":              {class: ErrForbidden, hint: hintRegister},
	"MissingRegistrationForResourceProvider": {class: ErrForbidden, hint: hintRegister},
	"ReadOnlyDisabledSubscription":           {class: ErrForbidden, hint: hintDisabled},
	"DisabledSubscription":                   {class: ErrForbidden, hint: hintDisabled},

	"ResourceNotFound":      {class: ErrNotFound},
	"NotFound":              {class: ErrNotFound},
	"ResourceGroupNotFound": {class: ErrNotFound},

	"SkuNotAvailable":                       {class: ErrCapacity, hint: hintElsewhere},
	"AllocationFailed":                      {class: ErrCapacity, hint: hintElsewhere},
	"ZonalAllocationFailed":                 {class: ErrCapacity, hint: hintElsewhere},
	"OverconstrainedAllocationRequest":      {class: ErrCapacity, hint: hintElsewhere},
	"OverconstrainedZonalAllocationRequest": {class: ErrCapacity, hint: hintElsewhere},

	"QuotaExceeded":                            {class: ErrQuota, hint: hintQuota},
	"PublicIPCountLimitReached":                {class: ErrQuota, hint: hintQuota},
	"StaticPublicIPCountLimitReached":          {class: ErrQuota, hint: hintQuota},
	"IPv4StandardSkuPublicIpCountLimitReached": {class: ErrQuota, hint: hintQuota},
	"NetworkInterfaceCountLimitReached":        {class: ErrQuota, hint: hintQuota},
	"NetworkSecurityGroupCountLimitReached":    {class: ErrQuota, hint: hintQuota},
	"VnetCountLimitReached":                    {class: ErrQuota, hint: hintQuota},
	"SubnetIsFull":                             {class: ErrQuota, hint: "the region's shared subnet has no address left: delete servers, or use another region or resource group"},

	"TooManyRequests":               {class: ErrRateLimited, again: againAny, hint: hintSlower},
	"SubscriptionRequestsThrottled": {class: ErrRateLimited, again: againAny, hint: hintSlower},
	"ResourceRequestsThrottled":     {class: ErrRateLimited, again: againAny, hint: hintSlower},
	"OperationRateLimitExceeded":    {class: ErrRateLimited, again: againAny, hint: hintSlower},

	// Another change is under way: no limit, and no reason to slow down.
	"RetryableError":                             {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"RetryableErrorDueToAnotherOperation":        {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"AnotherOperationInProgress":                 {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"ReferencedResourceNotProvisioned":           {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"Conflict":                                   {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"OperationPreempted":                         {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"CanceledAndSupersededDueToAnotherOperation": {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"ResourceGroupBeingDeleted":                  {class: ErrUnavailable, again: againAny, hint: "the resource group is being deleted: wait until it is gone"},

	"OperationNotAllowed":                      {class: ErrConflict}, // or a quota, by its text
	"PropertyChangeNotAllowed":                 {class: ErrConflict},
	"PreconditionFailed":                       {class: ErrConflict},
	"ConditionNotMet":                          {class: ErrConflict},
	"InvalidResourceLocation":                  {class: ErrConflict, hint: "something of that name is in another region: delete it, or use another key"},
	"InvalidResourceGroupLocation":             {class: ErrConflict},
	"NicReservedForAnotherVm":                  {class: ErrConflict, hint: "Azure keeps the interface for a failed server for three minutes: repeat after that"},
	"NicInUse":                                 {class: ErrConflict, hint: hintInUse},
	"PublicIPAddressInUse":                     {class: ErrConflict, hint: hintInUse},
	"PublicIPAddressCannotBeDeleted":           {class: ErrConflict, hint: hintInUse},
	"InUseSubnetCannotBeDeleted":               {class: ErrConflict, hint: hintInUse},
	"InUseNetworkSecurityGroupCannotBeDeleted": {class: ErrConflict, hint: hintInUse},
	"PrivateIPAddressIsAllocated":              {class: ErrConflict, hint: hintInUse},
	"ScopeLocked":                              {class: ErrConflict, hint: "a lock keeps it from being changed: remove the lock (az lock list), then repeat"},

	"InvalidParameter":                                  {class: ErrInvalid},
	"InvalidRequestContent":                             {class: ErrInvalid},
	"InvalidRequestFormat":                              {class: ErrInvalid},
	"BadRequest":                                        {class: ErrInvalid},
	"InvalidResourceName":                               {class: ErrInvalid},
	"InvalidResourceReference":                          {class: ErrInvalid},
	"InvalidTemplate":                                   {class: ErrInvalid},
	"InvalidResourceType":                               {class: ErrInvalid},
	"InvalidApiVersionParameter":                        {class: ErrInvalid},
	"MissingApiVersionParameter":                        {class: ErrInvalid},
	"NoRegisteredProviderFound":                         {class: ErrInvalid, hint: hintRegion},
	"LocationNotAvailableForResourceType":               {class: ErrInvalid, hint: hintRegion},
	"LocationNotAvailableForResourceGroup":              {class: ErrInvalid, hint: hintRegion},
	"PlatformImageNotFound":                             {class: ErrInvalid, hint: "there is no such image in the region"},
	"ImageNotFound":                                     {class: ErrInvalid, hint: "there is no such image in the region"},
	"VMMarketplaceInvalidInput":                         {class: ErrInvalid},
	"VMSizeIsNotPermittedToEnableAcceleratedNetworking": {class: ErrInvalid},

	// The server exists and is no good.
	"OSProvisioningTimedOut":       {class: ErrUnavailable, hint: hintAnew},
	"OSProvisioningClientError":    {class: ErrUnavailable, hint: hintAnew},
	"OSProvisioningInternalError":  {class: ErrUnavailable, hint: hintAnew},
	"VMStartTimedOut":              {class: ErrUnavailable, hint: hintAnew},
	"VMExtensionProvisioningError": {class: ErrUnavailable, hint: hintAnew},

	"InternalServerError":              {class: ErrUnavailable, again: againSafe},
	"InternalExecutionError":           {class: ErrUnavailable, again: againSafe},
	"InternalOperationError":           {class: ErrUnavailable, again: againSafe},
	"NetworkingInternalOperationError": {class: ErrUnavailable, again: againSafe},
	"GatewayTimeout":                   {class: ErrUnavailable, again: againSafe},
	"ServerTimeout":                    {class: ErrUnavailable, again: againSafe},
	"ServerBusy":                       {class: ErrUnavailable, again: againSafe},
	"ServiceUnavailable":               {class: ErrUnavailable, again: againSafe},
	"OperationTimedOut":                {class: ErrUnavailable, again: againSafe},
}

// azureWrappers say nothing by themselves: what they wrap decides.
var azureWrappers = map[string]bool{
	"ResourceOperationFailure": true, "DeploymentFailed": true, "RetryableError": true, "Failed": true,
	"ResourceDeploymentFailure": true, "VMProvisioningFailed": true, "BadRequest": true, "Conflict": true,
}

const (
	hintRole     = "give the application the role in docs/permissions/azure.json on the resource group; an assignment that was just made takes up to fifteen minutes"
	hintPolicy   = "an Azure Policy of the subscription or its management group forbids it: the message names the policy"
	hintRegister = "register the resource provider once: az provider register --namespace Microsoft.Compute, and Microsoft.Network"
	hintDisabled = "the subscription is disabled: its owner has to enable it"
	hintQuota    = "the subscription's quota in the region is reached: delete something, use another region or family of sizes, or ask for more (Azure portal: Quotas)"
	hintSlower   = "wait; a subscription's limits fill up again at ten writes a second"
	hintRegion   = "list the regions to see what there is"
	hintAnew     = "delete the server and create it anew"
)

// azureClassify reads the API's error envelope.
func azureClassify(e *ProviderError, body []byte) {
	var f azFailure
	if err := json.Unmarshal(body, &f); err != nil {
		if e.Status == 404 && len(body) > 0 {
			// Some proxy's page. Taken for "not found" it would make a delete
			// look done.
			e.Class, e.Hint = ErrUnavailable, "that was not Azure's answer: check the endpoint, and what is between here and there"
		}
		return
	}
	reason := f.Error
	if reason.Code == "" {
		reason = azReason{Code: f.Code, Message: f.Message}
	}
	azureExplain(e, reason)
}

// azureExplain fills in what a reason says: of a call, or of an operation
// that it started.
func azureExplain(e *ProviderError, reason azReason) {
	told := tellingReason(reason, 0)
	e.Code, e.Message = told.Code, told.Message
	if e.Message == "" {
		e.Message = reason.Message
	}
	if told.Target != "" && !strings.Contains(e.Message, told.Target) {
		e.Message += " [" + told.Target + "]"
	}
	code, ok := azureCodes[e.Code]
	if !ok {
		return
	}
	e.Class, e.again, e.Hint = code.class, code.again, code.hint
	// For quotas, Azure has no code of their own in most places.
	if text := strings.ToLower(e.Message); e.Code == "OperationNotAllowed" && strings.Contains(text, "quota") && strings.Contains(text, "exceed") {
		e.Class, e.Hint = ErrQuota, hintQuota
	}
}

// tellingReason is the innermost reason whose code says something: of the
// details, or of a message that is itself a JSON text.
func tellingReason(r azReason, depth int) azReason {
	const deepest = 6
	if known := azureCodes[r.Code].class != nil; known && !azureWrappers[r.Code] || depth >= deepest {
		return r
	}
	inner := r.Details
	var f azFailure
	if strings.HasPrefix(strings.TrimSpace(r.Message), "{") && json.Unmarshal([]byte(r.Message), &f) == nil && f.Error.Code != "" {
		inner = append([]azReason{f.Error}, inner...)
	}
	for _, d := range inner {
		if told := tellingReason(d, depth+1); azureCodes[told.Code].class != nil {
			return told
		}
	}
	return r
}

// isAzBusy tells whether a delete failed because something else has to go
// first, or the reservation for a failed server has to end.
func isAzBusy(err error) bool {
	var e *ProviderError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case "NicReservedForAnotherVm", "NicInUse", "PublicIPAddressInUse", "PublicIPAddressCannotBeDeleted",
		"InUseNetworkSecurityGroupCannotBeDeleted", "OperationNotAllowed":
		return errors.Is(e, ErrConflict)
	}
	return e.again == againAny && errors.Is(e, ErrUnavailable)
}
