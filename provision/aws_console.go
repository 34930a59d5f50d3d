package provision

import (
	"context"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// Console.

// ConsoleOutput returns the last 64 KiB of the serial console's text: EC2
// GetConsoleOutput, the latest where the instance type has that, and what was
// kept at the last start or reboot otherwise. It is empty while a server has
// said nothing yet.
func (a *AWS) ConsoleOutput(ctx context.Context, id string) (string, error) {
	const op = "read console"
	region, instance, err := a.parseID(op, id)
	if err != nil {
		return "", err
	}
	in := &ec2.GetConsoleOutputInput{InstanceId: aws.String(instance), Latest: aws.Bool(true)}
	out, err := awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).GetConsoleOutput)
	if hasCode(err, "UnsupportedOperation") || hasCode(err, "InvalidParameterValue") || hasCode(err, "InvalidParameterCombination") {
		in.Latest = nil
		out, err = awsCall(ctx, a, awsReq{op: op, region: region, harmless: true}, in, (*ec2.Client).GetConsoleOutput)
	}
	if err != nil {
		if _, fresh := a.fresh.get(id); fresh && hasCode(err, "InvalidInstanceID.NotFound") {
			return "", nil
		}
		return "", err
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err != nil {
		return "", a.fail(ErrUnavailable, op, "", "the console's text is not base64")
	}
	return string(text), nil
}
