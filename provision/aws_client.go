package provision

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
)

// The way to EC2: the SDK signs, encodes and decodes; everything else (time
// limits, repeats, classes, redaction, logging) is this package's own chain,
// the same as at the other providers. The SDK's own retries are off: two that
// do not know of each other would multiply.

// awsReq is what is to be known of a call beside its input.
type awsReq struct {
	op     string // what is tried, for people
	region string
	// harmless says that doing it twice is like doing it once.
	harmless bool
	kind     awsKind
	secrets  []string
	address  string // of another service than EC2
}

// awsCall sends one call of the SDK through the chain.
func awsCall[In, Out any](ctx context.Context, a *AWS, r awsReq, in *In, do func(*ec2.Client, context.Context, *In, ...func(*ec2.Options)) (*Out, error)) (*Out, error) {
	var out *Out
	action := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", in), "*ec2."), "Input")
	err := a.send(ctx, r, action, func(ctx context.Context) (err error) {
		out, err = do(a.client(r.region), ctx, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// client is the region's own. It holds no connection and no state.
func (a *AWS) client(region string) *ec2.Client {
	return ec2.New(ec2.Options{
		Region: region, Credentials: a.identity, HTTPClient: a.http, BaseEndpoint: a.endpoints.ec2, Retryer: aws.NopRetryer{},
		APIOptions: []func(*middleware.Stack) error{awsmiddleware.AddUserAgentKeyValue(a.labels.short, "provision-go")},
	})
}

// send does one attempt, or several.
func (a *AWS) send(ctx context.Context, r awsReq, action string, attempt func(context.Context) error) error {
	if a.mistake != nil {
		return a.refused(r.op)
	}
	address := r.address
	if address == "" {
		address = pointed(a.endpoints.ec2, "https://ec2."+r.region+".amazonaws.com")
	}
	step := func(ctx context.Context, _ *call) (*answer, error) {
		if ctx.Err() != nil {
			return nil, notSent(ctx)
		}
		if err := attempt(ctx); err != nil {
			return nil, awsFailure(err, a.creds)
		}
		return &answer{status: http.StatusOK}, nil
	}
	chain := withTimeout(step, attemptTimeout)
	chain = withAWSPace(chain, a.pace, r)
	chain = withErrors(chain, apiConfig{provider: "aws", endpoint: address}, a.hide)
	chain = withLog(chain, a.logger)
	chain = withRetry(chain, a.retrier)
	_, err := chain(ctx, &call{op: r.op, method: http.MethodPost, path: "/" + r.region + "/" + action, harmless: r.harmless, secrets: r.secrets})
	if err != nil {
		return a.explain(ctx, r, err)
	}
	return nil
}

// refused is the mistake in the credentials, as an error of this call.
func (a *AWS) refused(op string) error {
	var e *ProviderError
	if !errors.As(a.mistake, &e) {
		return a.mistake
	}
	own := *e
	own.Op = op
	return &own
}

// explain finds out whether it is the region that is refused and not the
// credential: EC2 says the same to a wrong key and to a region that the
// account has not enabled, and a region that does not exist has no host.
func (a *AWS) explain(ctx context.Context, r awsReq, err error) error {
	var e *ProviderError
	if !errors.As(err, &e) || r.region == a.home() || ctx.Err() != nil {
		return err
	}
	noHost := e.Status == 0 && e.again == againAny && a.endpoints.ec2 == nil
	if e.Code != "AuthFailure" && e.Code != "OptInRequired" && !noHost {
		return err
	}
	regionErr := a.checkRegion(ctx, r.op, r.region)
	if regionErr != nil && errors.Is(regionErr, ErrInvalid) {
		return regionErr
	}
	return err
}

// awsEndpoints are addresses other than AWS's own; nil is AWS's own.
type awsEndpoints struct{ ec2, sts, pricing, quotas *string }

// awsEndpointsOf reads Options.Endpoint, which stands for every service, and
// below it the variables of AWS's own tools.
func awsEndpointsOf(opts Options) awsEndpoints {
	pick := func(service string) *string {
		own, all := os.Getenv("AWS_ENDPOINT_URL_"+service), os.Getenv("AWS_ENDPOINT_URL")
		if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
			own, all = "", ""
		}
		if opts.Endpoint != "" && (own == "" || service == "EC2") {
			own = opts.Endpoint
		}
		address := strings.TrimRight(awsOr(own, all), "/")
		if address == "" || checkEndpoint(address) != nil {
			return nil
		}
		return &address
	}
	return awsEndpoints{ec2: pick("EC2"), sts: pick("STS"), pricing: pick("PRICING"), quotas: pick("SERVICE_QUOTAS")}
}

// pointed is the address that was set, or AWS's own.
func pointed(set *string, own string) string {
	if set != nil {
		return *set
	}
	return own
}

func (e awsEndpoints) all() []string {
	var all []string
	for _, address := range []*string{e.ec2, e.sts, e.pricing, e.quotas} {
		if address != nil {
			all = append(all, *address)
		}
	}
	return all
}

// awsHTTP sends what the SDK has signed: it follows no redirect, reads no
// endless answer, and keeps the body of a refusal.
type awsHTTP struct{ client *http.Client }

// newAWSHTTP trusts, as AWS's own tools do, the certificates of AWS_CA_BUNDLE,
// unless the caller has a client of his own.
func newAWSHTTP(c *http.Client) (*awsHTTP, error) {
	h := &awsHTTP{client: httpClient(c)}
	file := os.Getenv("AWS_CA_BUNDLE")
	if c != nil || file == "" {
		return h, nil
	}
	text, err := os.ReadFile(file)
	roots := x509.NewCertPool()
	if err == nil && !roots.AppendCertsFromPEM(text) {
		err = errors.New("it holds no certificate in PEM form")
	}
	if err != nil {
		return h, invalidError("aws", "open", "AWS_CA_BUNDLE: %v", err)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: awsAtOnce, IdleConnTimeout: time.Minute}
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	h.client.Transport = transport
	return h, nil
}

// Do implements the SDK's HTTPClient.
func (h *awsHTTP) Do(r *http.Request) (*http.Response, error) {
	resp, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	ans, err := readAnswer(resp, maxAnswerBytes)
	if err != nil {
		return nil, err
	}
	resp.Body = &awsBody{Reader: bytes.NewReader(ans.body), all: ans.body}
	return resp, nil
}

// awsBody is an answer that was read to its end.
type awsBody struct {
	io.Reader
	all []byte
}

// Close does nothing: the connection is free already.
func (*awsBody) Close() error { return nil }
