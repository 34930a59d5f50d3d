package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// AWS's JSON services. Two of them are asked one question each, by plain HTTP
// with AWS's own signer: an SDK for each would be more code than the answer.

// awsQuestion is one call of such a service.
type awsQuestion struct {
	op, service, region string
	address             string
	target              string // "AWSPriceListService.GetProducts"
	in                  any
}

func (a *AWS) ask(ctx context.Context, q awsQuestion, out any) error {
	body, err := json.Marshal(q.in)
	if err != nil {
		return invalidError("aws", q.op, "the request cannot be encoded")
	}
	r := awsReq{op: q.op, region: q.region, harmless: true, address: q.address}
	_, action, _ := strings.Cut(q.target, ".")
	return a.send(ctx, r, action, func(ctx context.Context) error {
		req, err := a.signed(ctx, q, body)
		if err != nil {
			return err
		}
		resp, err := a.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		ans, err := readAnswer(resp, maxAnswerBytes)
		if err != nil {
			return err
		}
		if ans.status != http.StatusOK {
			return awsJSONFailure(ans)
		}
		if json.Unmarshal(ans.body, out) != nil {
			return &ProviderError{Class: ErrUnavailable, Message: "the answer is not the JSON that was expected; is the endpoint right?"}
		}
		return nil
	})
}

func (a *AWS) signed(ctx context.Context, q awsQuestion, body []byte) (*http.Request, error) {
	creds, err := a.identity.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.address+"/", bytes.NewReader(body))
	if err != nil {
		return nil, &ProviderError{Class: ErrInvalid, Message: "the endpoint makes no URL"}
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", q.target)
	req.Header.Set("User-Agent", a.labels.short+" provision-go")
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(ctx, aws.Credentials{
		AccessKeyID: creds.AccessKeyID, SecretAccessKey: creds.SecretAccessKey, SessionToken: creds.SessionToken,
	}, req, hex.EncodeToString(sum[:]), q.service, q.region, time.Now())
	return req, err
}

// awsJSONFailure reads a refusal: the type's name is the code.
func awsJSONFailure(ans *answer) error {
	var body struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Upper   string `json:"Message"`
	}
	e := &ProviderError{
		Status: ans.status, Body: string(ans.body), RequestID: ans.header.Get("X-Amzn-Requestid"), RetryAfter: retryAfter(ans.header, time.Now()),
	}
	if json.Unmarshal(ans.body, &body) != nil {
		e.Class, e.again = classOfStatus(ans.status), againOfStatus(ans.status)
		return e
	}
	code := body.Type[strings.LastIndexByte(body.Type, '#')+1:]
	awsClassify(e, code, awsOr(body.Message, body.Upper))
	e.explainSkew(ans.header, time.Now())
	return e
}
