package provision

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Errors.

const (
	awsHintElsewhere = "try another size or another region, or later"
	awsHintQuota     = "the account's limit in this region is reached: delete something, use another region, or ask for more (AWS console: Service Quotas, Amazon EC2)"
	awsHintInUse     = "something still uses it: remove that first, or wait until it is gone"
	awsHintKey       = "check access_key_id and secret_access_key (and session_token of a temporary key)"
	awsHintSession   = "the session is over: give a new session_token, or a long-lived key with role_arn; and check this machine's clock"
	awsHintIAM       = "add the missing action to the key's or role's policy (docs/permissions/aws.json has all that are needed); an organisation's service control policy may forbid it too"
	awsHintAccount   = "AWS does not let this account launch now: look at the account's e-mail, or ask AWS support"
	awsHintDefault   = "a default VPC with a subnet in each zone is needed: aws ec2 create-default-vpc --region <region>"
)

// The codes that the calls of this package can be answered with. HTTP statuses
// of EC2 say little, so the code decides.
var awsCodes = awsTable(map[meaning]string{
	{class: ErrCapacity, hint: awsHintElsewhere}: `InsufficientInstanceCapacity InsufficientHostCapacity InsufficientReservedInstanceCapacity
		InsufficientCapacity InsufficientCapacityOnHost InsufficientFreeAddressesInSubnet InsufficientAddressCapacity InsufficientVolumeCapacity
		ReservationCapacityExceeded UnfulfillableCapacity Unsupported Server.InsufficientInstanceCapacity Server.SpotInstanceTermination`,

	{class: ErrQuota, hint: awsHintQuota}: `VcpuLimitExceeded InstanceLimitExceeded VolumeLimitExceeded MaxIOPSLimitExceeded AddressLimitExceeded
		SecurityGroupLimitExceeded SecurityGroupsPerInstanceLimitExceeded SecurityGroupsPerInterfaceLimitExceeded RulesPerSecurityGroupLimitExceeded
		NetworkInterfaceLimitExceeded NetworkInterfacesPerInstanceLimitExceeded ResourceLimitExceeded VpcLimitExceeded SubnetLimitExceeded TagLimitExceeded
		MaxSpotInstanceCountExceeded InstanceTypeLimitExceeded KeyPairLimitExceeded ResourceCountExceeded Client.VolumeLimitExceeded`,

	{class: ErrRateLimited, again: againAny, hint: "wait; EC2 limits the requests of an account in each region"}: `RequestLimitExceeded Client.RequestLimitExceeded
		Throttling Throttling.User ThrottlingException ThrottledException RequestThrottled RequestThrottledException EC2ThrottledException TooManyRequestsException
		BandwidthLimitExceeded PriorRequestNotComplete SlowDown RequestResourceCountExceeded`,

	{class: ErrUnavailable, again: againSafe}: `InternalError InternalFailure ServiceUnavailable Unavailable ServerInternal RequestTimeout RequestTimeoutException
		Server.InternalError InternalServiceError IDPCommunicationError`,
	{class: ErrUnavailable, hint: "AWS reviews a new account or a region that was new to it: it takes minutes, up to four hours"}: `PendingVerification`,

	{class: ErrUnauthorized, hint: awsHintKey}: `AuthFailure InvalidClientTokenId UnrecognizedClientException SignatureDoesNotMatch InvalidSignatureException
		MissingAuthenticationToken MissingAuthenticationTokenException IncompleteSignature InvalidAccessKeyId NotAuthorizedAccount InvalidIdentityToken`,
	{class: ErrUnauthorized, hint: awsHintSession}: `ExpiredToken ExpiredTokenException RequestExpired IDPRejectedClaim`,

	{class: ErrForbidden, hint: awsHintIAM}:     `UnauthorizedOperation AccessDenied AccessDeniedException Client.UnauthorizedOperation OperationNotPermittedForAccount`,
	{class: ErrForbidden, hint: awsHintAccount}: `Blocked OptInRequired RegionDisabledException AccountDisabled InvalidPaymentInstrument`,

	{class: ErrConflict}: `IncorrectInstanceState IncorrectState InvalidInstanceID.NotReady InvalidGroup.Duplicate InvalidPermission.Duplicate InvalidKeyPair.Duplicate
		DryRunOperation ConcurrentCreateImageNoRebootDuplicateRequest ConcurrentTagAccess InvalidSecurityGroup.RequiresVpc`,
	{class: ErrConflict, hint: awsHintInUse}: `DependencyViolation InvalidGroup.InUse VolumeInUse InvalidNetworkInterface.InUse InvalidIPAddress.InUse NetworkInterfaceInUse InvalidAddress.Locked`,
	{class: ErrConflict, hint: "it is protected: lift that (aws ec2 modify-instance-attribute --no-disable-api-termination, in its region), then repeat"}:     `OperationNotPermitted`,
	{class: ErrConflict, hint: "use a new key for a new create, or repeat the old one with its own options"}:                                                  `IdempotentParameterMismatch`,
	{class: ErrConflict, hint: "the server of this idempotency key existed and is terminated: use a new key for a new server"}:                                `IdempotentInstanceTerminated`,
	{class: ErrConflict, hint: "the account's disk encryption key cannot be used: let it be used (kms:CreateGrant and Decrypt), or make aws/ebs the default"}: `Client.InternalError Client.InvalidKMSKey.InvalidState KMSKeyNotAccessibleFault InvalidKMSKey.InvalidState`,

	{class: ErrNotFound}: `InvalidInstanceID.NotFound InvalidAMIID.NotFound InvalidAMIID.Unavailable InvalidSubnetID.NotFound InvalidGroup.NotFound InvalidGroupId.NotFound
		InvalidSecurityGroupID.NotFound InvalidVpcID.NotFound InvalidKeyPair.NotFound InvalidVolume.NotFound InvalidVolumeID.NotFound InvalidNetworkInterfaceID.NotFound
		InvalidAllocationID.NotFound InvalidAddress.NotFound InvalidAddressID.NotFound InvalidPermission.NotFound InvalidSnapshot.NotFound Client.InvalidSnapshot.NotFound
		NoSuchResourceException NotFoundException`,

	{class: ErrInvalid}: `InvalidInstanceID.Malformed InvalidAMIID.Malformed InvalidGroupId.Malformed InvalidGroup.Reserved InvalidParameterValue InvalidParameterCombination InvalidParameter
		MissingParameter UnknownParameter InvalidInstanceType InvalidUserData.Malformed InvalidBlockDeviceMapping InvalidCharacter InvalidFilter InvalidAction ValidationError
		MalformedQueryString InstanceTypeNotSupported UnsupportedOperation UnsupportedInstanceTypeOnHost InvalidKey.Format InvalidKeyPair.Format InvalidRequest InvalidNextToken
		InvalidPermission.Malformed InvalidTagKey.Malformed InvalidMinCount InvalidMaxResults InvalidSubnet InvalidAvailabilityZone TagPolicyViolation InvalidVolumeID.Malformed
		UnsupportedTenancy InvalidInterface.IpAddressLimitExceeded InvalidInput InvalidInputException MalformedPolicyDocument ValidationException`,
	{class: ErrInvalid, hint: awsHintDefault}: `VPCIdNotSpecified VPCResourceNotSpecified MissingInput DefaultVpcDoesNotExist`,
})

func awsTable(rows map[meaning]string) map[string]meaning {
	table := map[string]meaning{}
	for row, codes := range rows {
		for code := range strings.FieldsSeq(codes) {
			table[code] = row
		}
	}
	return table
}

// awsFailure turns an error of the SDK into ours. What got no answer is
// returned as the network said it.
func awsFailure(err error, creds AWSCredentials) error {
	var own *ProviderError
	var identity *awsIdentityError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &identity):
		return awsIdentityFailure(identity.err, creds)
	}
	e := &ProviderError{}
	header := awsAnswer(err, e)
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		awsClassify(e, api.ErrorCode(), api.ErrorMessage())
		e.explainSkew(header, time.Now())
		return e
	case e.Status != 0 && (e.Status < 200 || e.Status > 299):
		e.Class, e.again = classOfStatus(e.Status), againOfStatus(e.Status)
		return e
	case e.Status != 0:
		e.Class, e.Message = ErrUnavailable, "the answer is not what was expected of EC2; is the endpoint right?"
		return e
	}
	return awsNetworkCause(err)
}

// awsAnswer fills in what the HTTP answer says, if there was one.
func awsAnswer(err error, e *ProviderError) http.Header {
	var re *awshttp.ResponseError
	if !errors.As(err, &re) || re.Response == nil || re.Response.Response == nil {
		return nil
	}
	e.Status, e.RequestID = re.HTTPStatusCode(), re.ServiceRequestID()
	if b, ok := re.Response.Body.(*awsBody); ok {
		e.Body = awsWithoutPolicy(string(b.all))
	}
	if e.Status == 0 {
		return nil
	}
	e.RetryAfter = retryAfter(re.Response.Header, time.Now())
	return re.Response.Header
}

func awsClassify(e *ProviderError, code, message string) {
	e.Code, e.Message = code, awsWithoutPolicy(message)
	if e.Code == "UnknownError" { // the SDK's own word for an answer without one
		e.Code = ""
		e.Message = ""
	}
	row, ok := awsCodes[code]
	if !ok {
		// Codes are made of words, and new ones keep to the words of old ones.
		row = awsGuess(code)
	}
	e.Class, e.again, e.Hint = row.class, row.again, row.hint
	if e.Class == nil {
		e.Class, e.again = classOfStatus(e.Status), againOfStatus(e.Status)
	}
	if strings.Contains(message, "service control policy") {
		e.Hint = "an organisation's service control policy forbids it: ask who runs the organisation"
	}
}

func awsGuess(code string) meaning {
	switch {
	case strings.HasSuffix(code, ".NotFound"):
		return meaning{class: ErrNotFound}
	case strings.HasSuffix(code, ".Duplicate"), strings.HasSuffix(code, ".InUse"):
		return meaning{class: ErrConflict}
	case strings.HasSuffix(code, ".Malformed"):
		return meaning{class: ErrInvalid}
	case strings.HasPrefix(code, "Insufficient") && strings.HasSuffix(code, "Capacity"):
		return meaning{class: ErrCapacity, hint: awsHintElsewhere}
	case strings.HasSuffix(code, "LimitExceeded"):
		return meaning{class: ErrQuota, hint: awsHintQuota}
	}
	return meaning{}
}

// awsPolicy is a long text that only AWS can read, and only with a permission.
var awsPolicy = regexp.MustCompile(`\.?\s*Encoded authorization failure message: [A-Za-z0-9_-]+`)

func awsWithoutPolicy(s string) string { return awsPolicy.ReplaceAllString(s, "") }

// skewAllowed is how far off AWS lets a signature's time be, less some doubt.
const skewAllowed = 4 * time.Minute

// explainSkew looks at the clock before the key is blamed: a signature that is
// too old or too new is refused like a wrong one.
func (e *ProviderError) explainSkew(h http.Header, now time.Time) {
	if !errors.Is(e, ErrUnauthorized) {
		return
	}
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	if off := now.Sub(at).Round(time.Second); off > skewAllowed || off < -skewAllowed {
		word := "ahead of"
		if off < 0 {
			off, word = -off, "behind"
		}
		e.Message = fmt.Sprintf("this machine's clock is %v %s AWS's, which refuses signatures that are more than five minutes off: %s", off, word, e.Message)
		e.Hint = "set the clock (timedatectl set-ntp true), then repeat"
	}
}

// awsIdentityFailure is for requests that could not be signed.
func awsIdentityFailure(err error, creds AWSCredentials) error {
	e := &ProviderError{}
	header := awsAnswer(err, e)
	var api smithy.APIError
	switch {
	case errors.As(err, &api):
		awsClassify(e, api.ErrorCode(), api.ErrorMessage())
		e.explainSkew(header, time.Now())
		if errors.Is(e, ErrForbidden) {
			e.Hint = "the role cannot be assumed: check role_arn, that its trust policy names this key's user, and external_id when it asks for one"
		}
		e.Message = "assume role: " + e.Message
		return e
	case e.Status != 0:
		e.Class, e.Message = classOfStatus(e.Status), "the answer is not what was expected of STS; is the endpoint right?"
		return e
	case creds.AccessKeyID == "" && awsNoIdentity(err):
		return &ProviderError{
			Class: ErrUnauthorized, Message: "this program has no AWS identity of its own: neither environment, shared configuration nor an instance profile has one",
			Hint: "run it where there is one (AWS_ACCESS_KEY_ID, AWS_PROFILE, an instance profile), or give access_key_id and secret_access_key",
		}
	}
	return awsNetworkCause(err)
}

// awsNoIdentity tells whether the search for credentials found none, from a
// network that failed while a role was assumed.
func awsNoIdentity(err error) bool {
	var op *smithy.OperationError
	return !errors.As(err, &op) || op.Service() == "ec2imds"
}

// awsNetworkCause takes the SDK's words off what the network said.
func awsNetworkCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		if strings.Contains(fmt.Sprintf("%T", next), "url.Error") {
			return next
		}
	}
	return err
}
