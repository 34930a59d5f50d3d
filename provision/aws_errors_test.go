package provision

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// awsAnswered is an error as the SDK returns it.
func awsAnswered(status int, code, message string, header http.Header) error {
	resp := &http.Response{StatusCode: status, Header: header}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "RunInstances", Err: &awshttp.ResponseError{
		RequestID: "req-1",
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: resp}, Err: &smithy.GenericAPIError{Code: code, Message: message},
		},
	}}
}

// TestAWSErrorCodes has the codes that a fleet can meet, by what it has to do
// about them, with the HTTP status that they come with: the code decides.
func TestAWSErrorCodes(t *testing.T) {
	for _, c := range []struct {
		class  error
		again  again
		status int
		codes  string
	}{
		{ErrCapacity, againNever, 500, "InsufficientInstanceCapacity InsufficientHostCapacity InsufficientReservedInstanceCapacity InsufficientCapacity"},
		{ErrCapacity, againNever, 400, "Unsupported InsufficientFreeAddressesInSubnet ReservationCapacityExceeded UnfulfillableCapacity"},
		{ErrQuota, againNever, 400, "VcpuLimitExceeded InstanceLimitExceeded VolumeLimitExceeded MaxIOPSLimitExceeded AddressLimitExceeded SecurityGroupLimitExceeded NetworkInterfaceLimitExceeded ResourceLimitExceeded VpcLimitExceeded SomethingNewLimitExceeded"},
		{ErrRateLimited, againAny, 503, "RequestLimitExceeded Throttling ThrottlingException EC2ThrottledException Client.RequestLimitExceeded"},
		{ErrUnavailable, againSafe, 500, "InternalError InternalFailure ServiceUnavailable Unavailable Server.InternalError RequestTimeout"},
		{ErrUnavailable, againNever, 400, "PendingVerification"},
		{ErrUnauthorized, againNever, 401, "AuthFailure"},
		{ErrUnauthorized, againNever, 403, "InvalidClientTokenId UnrecognizedClientException SignatureDoesNotMatch MissingAuthenticationToken IncompleteSignature ExpiredToken"},
		{ErrUnauthorized, againNever, 400, "RequestExpired"},
		{ErrForbidden, againNever, 403, "UnauthorizedOperation AccessDenied OptInRequired Blocked"},
		{ErrConflict, againNever, 400, "IdempotentParameterMismatch IdempotentInstanceTerminated IncorrectInstanceState IncorrectState OperationNotPermitted DependencyViolation InvalidGroup.InUse InvalidGroup.Duplicate InvalidPermission.Duplicate"},
		{ErrNotFound, againNever, 400, "InvalidInstanceID.NotFound InvalidAMIID.NotFound InvalidAMIID.Unavailable InvalidSubnetID.NotFound InvalidGroup.NotFound InvalidVpcID.NotFound SomethingNew.NotFound"},
		{ErrInvalid, againNever, 400, "InvalidInstanceID.Malformed InvalidAMIID.Malformed InvalidParameterValue InvalidParameterCombination InvalidParameter MissingParameter InvalidInstanceType InvalidUserData.Malformed InvalidBlockDeviceMapping VPCIdNotSpecified VPCResourceNotSpecified MissingInput InstanceTypeNotSupported UnsupportedOperation UnsupportedInstanceTypeOnHost SomethingQuiteNew"},
		{ErrUnavailable, againSafe, 503, "SomethingQuiteNew"},
	} {
		for code := range strings.FieldsSeq(c.codes) {
			err := awsFailure(awsAnswered(c.status, code, "text", nil), AWSCredentials{})
			var e *ProviderError
			if !errors.As(err, &e) || !errors.Is(err, c.class) || e.again != c.again || e.Code != code || e.RequestID != "req-1" || e.Status != c.status {
				t.Errorf("%s (HTTP %d) is %v, again %v; want %v, %v", code, c.status, err, e.again, c.class, c.again)
			}
			has := 0
			for _, k := range classNames {
				if errors.Is(err, k.class) {
					has++
				}
			}
			if has != 1 {
				t.Errorf("%s has %d classes", code, has)
			}
		}
	}
}

// TestAWSErrorsSayMore: the clock, the organisation's policies, and texts that
// nobody can read.
func TestAWSErrorsSayMore(t *testing.T) {
	late := http.Header{"Date": {time.Now().Add(-20 * time.Minute).UTC().Format(http.TimeFormat)}}
	for _, c := range []struct {
		err           error
		message, hint string
	}{
		{awsAnswered(401, "AuthFailure", "not validated", late), "clock is 20m", "set the clock"},
		{awsAnswered(400, "RequestExpired", "Request has expired.", late), "clock is 20m", "set the clock"},
		{awsAnswered(401, "AuthFailure", "not validated", nil), "not validated", "access_key_id"},
		{awsAnswered(403, "UnauthorizedOperation", "No. Encoded authorization failure message: abc_DEF-1", nil), "No", "permissions/aws.json"},
		{awsAnswered(403, "UnauthorizedOperation", "with an explicit deny in a service control policy", nil), "explicit deny", "organisation"},
		{awsAnswered(400, "PendingVerification", "Your account is being verified", nil), "being verified", "four hours"},
		{awsAnswered(400, "VPCIdNotSpecified", "No default VPC for this user", nil), "No default VPC", "create-default-vpc"},
	} {
		var e *ProviderError
		if err := awsFailure(c.err, AWSCredentials{}); !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
		if !strings.Contains(e.Message, c.message) || !strings.Contains(e.Hint, c.hint) || strings.Contains(e.Message, "abc_DEF") {
			t.Errorf("%v says %q with the hint %q; want %q and %q", c.err, e.Message, e.Hint, c.message, c.hint)
		}
	}
}

// TestAWSStates has every state of the SDK's own list.
func TestAWSStates(t *testing.T) {
	want := map[types.InstanceStateName]ServerStatus{
		types.InstanceStateNamePending: ServerStatusPending, types.InstanceStateNameRunning: ServerStatusRunning,
		types.InstanceStateNameShuttingDown: ServerStatusError, types.InstanceStateNameTerminated: ServerStatusError,
		types.InstanceStateNameStopping: ServerStatusError, types.InstanceStateNameStopped: ServerStatusError,
	}
	for _, state := range types.InstanceStateName("").Values() {
		if got := (awsInstance{state: state}).ourStatus(); got != want[state] {
			t.Errorf("%s is %q, want %q", state, got, want[state])
		}
	}
	if got := (awsInstance{state: "hibernating-soon"}).ourStatus(); got != ServerStatusPending {
		t.Errorf("a state yet to come is %q", got)
	}
}

// TestAWSStateReasons: why an instance ended decides what to do next.
func TestAWSStateReasons(t *testing.T) {
	for reason, class := range map[string]error{
		"Server.InsufficientInstanceCapacity": ErrCapacity, "Server.SpotInstanceTermination": ErrCapacity, "Server.InternalError": ErrUnavailable,
		"Server.ScheduledStop": ErrUnavailable, "Client.VolumeLimitExceeded": ErrQuota, "Client.InternalError": ErrConflict,
		"Client.InvalidKMSKey.InvalidState": ErrConflict, "Client.InvalidSnapshot.NotFound": ErrNotFound, "Client.InstanceInitiatedShutdown": ErrUnavailable,
		"Client.UserInitiatedHibernate": ErrUnavailable,
	} {
		i := awsInstance{state: types.InstanceStateNameTerminated, reason: reason, reasonText: "because"}
		if err := i.failure(); !errors.Is(err, class) || i.isDeleted() {
			t.Errorf("%s is %v, deleted %v; want %v", reason, err, i.isDeleted(), class)
		}
	}
	for _, reason := range []string{"", "Client.UserInitiatedShutdown"} {
		i := awsInstance{state: types.InstanceStateNameTerminated, reason: reason}
		if i.failure() != nil || !i.isDeleted() {
			t.Errorf("terminated for %q is a failure: %v", reason, i.failure())
		}
	}
}

func TestAWSStandardFamilies(t *testing.T) {
	for size, want := range map[string]bool{
		"t3.micro": true, "m7i-flex.large": true, "c8g.large": true, "z1d.large": true, "hpc7a.96xlarge": false, "g5.xlarge": false,
		"inf2.xlarge": false, "trn1.2xlarge": false, "mac2.metal": false, "x2idn.16xlarge": false, "u-6tb1.metal": false, "odd": false, "": false,
	} {
		if isStandard(size) != want {
			t.Errorf("%q is standard: %v", size, !want)
		}
	}
}

func TestAWSCatalogue(t *testing.T) {
	sizes := awsCuratedSizes()
	arm := 0
	for _, s := range sizes {
		// In names, a g after the generation means Graviton.
		family, _, _ := strings.Cut(s.ID, ".")
		isArm := strings.HasSuffix(strings.TrimSuffix(family, "-flex"), "g")
		if isArm != (s.Architecture == "arm") {
			t.Errorf("%s is %s", s.ID, s.Architecture)
		}
		if isArm {
			arm++
		}
	}
	if len(sizes) < 40 || arm < 10 {
		t.Errorf("%d sizes, %d of them arm", len(sizes), arm)
	}
}
