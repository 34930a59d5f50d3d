package cloudsim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Amazon EC2 (Query protocol, 2016-11-15), STS (2011-06-15), and what a fleet
// asks of the price list and of the quotas, as the API references and the
// packages service/ec2 and service/sts of the AWS SDK for Go have them. All are
// served at one address, and each request tells by its form which it is for.
//
// An access key's id opens an account of its own; its secret is not known
// here, so of a signature only the shape, the scope and the time are checked.
// An id that holds INVALID is unknown, READONLY may only read, EXPIRED is over.

const (
	awsName   = "aws"
	awsPrefix = "/aws"
)

// awsRequest is one request to EC2 or STS.
type awsRequest struct {
	*call
	account *awsAccount
	signer  awsSigner
	region  string
	action  string
	form    *awsForm
}

// awsAction is one call of the API.
type awsAction struct {
	name   string // in the log of requests
	writes bool
	do     func(a awsRequest) (awsFields, error)
}

func (s *Sim) awsRoutes(mux *http.ServeMux) {
	mux.HandleFunc(awsPrefix, s.awsCall)
	mux.HandleFunc(awsPrefix+"/", s.awsCall)
}

// awsError is an error as the API says it.
type awsError struct {
	status        int
	code, message string
}

func (e *awsError) Error() string { return e.code + ": " + e.message }

// awsFail is a client error: EC2 answers 400 to all that has no own status.
func awsFail(code, format string, args ...any) error {
	status := http.StatusBadRequest
	switch code {
	case "AuthFailure":
		status = http.StatusUnauthorized
	case "UnauthorizedOperation", "AccessDenied", "InvalidClientTokenId", "MissingAuthenticationToken", "ExpiredToken", "SignatureDoesNotMatch", "OptInRequired":
		status = http.StatusForbidden
	case "DryRunOperation":
		status = http.StatusPreconditionFailed
	case "InsufficientInstanceCapacity", "InternalError":
		status = http.StatusInternalServerError
	case "RequestLimitExceeded", "Unavailable", "ServiceUnavailable":
		status = http.StatusServiceUnavailable
	}
	return &awsError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// awsCall takes one request through what all have in common: the signature,
// the limits, faults, the form of errors.
func (s *Sim) awsCall(w http.ResponseWriter, r *http.Request) {
	body, _, err := readBody(r)
	if err != nil {
		return // the client went away
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		s.awsJSONCall(w, r, body, target)
		return
	}
	values, formErr := url.ParseQuery(string(body))
	for k, v := range r.URL.Query() {
		values[k] = v
	}
	c := &call{sim: s, name: "unknown", w: w, r: r, body: body}
	a := awsRequest{call: c, action: values.Get("Action"), form: &awsForm{values: values, used: map[string]bool{}}}
	action, found := awsActions()[a.action]
	if found {
		c.name = action.name
	}
	var signErr error
	s.locked(func(now time.Time) {
		a.signer, signErr = s.awsSignerOf(r, a.service())
		a.region = a.signer.region
		if signErr == nil {
			c.project, a.account = s.awsOf(a.signer.account)
			c.name, c.subject = a.nameAndSubject(c.name)
		}
	})
	c.faulty(awsName, a.refuse, func(w http.ResponseWriter) {
		c.w = w
		fields, err := a.serve(action, found, formErr, signErr)
		if err != nil {
			a.fail(err)
			return
		}
		a.ok(fields)
	})
}

// serve is the order in which the real thing refuses.
func (a awsRequest) serve(action awsAction, found bool, formErr, signErr error) (awsFields, error) {
	version := a.form.text("Version")
	a.form.text("Action")
	want := map[string]string{"ec2": "2016-11-15", "sts": "2011-06-15"}[a.service()]
	switch {
	case a.r.Method != http.MethodPost && a.r.Method != http.MethodGet:
		return nil, awsFail("InvalidRequest", "The method %s is not supported.", a.r.Method)
	case formErr != nil:
		return nil, awsFail("MalformedQueryString", "The query string is malformed.")
	case signErr != nil:
		return nil, signErr
	case !found:
		return nil, awsFail("InvalidAction", "The action %s is not valid for this web service.", a.action)
	case version != want:
		return nil, awsFail("InvalidAction", "The action %s is not valid for version %q of this web service.", a.action, version)
	}
	dry := a.form.flag("DryRun", false)
	if !a.takeFromLimit(action) {
		return nil, awsFail("RequestLimitExceeded", "Request limit exceeded.")
	}
	if action.writes && a.signer.readOnly {
		return nil, awsFail("UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:iam::%s:user/simulated is not authorized to perform: ec2:%s because no identity-based policy allows the ec2:%s action. Encoded authorization failure message: c2ltdWxhdGVk", a.signer.account, a.action, a.action)
	}
	if dry && !action.writes {
		return nil, awsFail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return action.do(a)
}

// parsed ends the reading of parameters: one that nobody asked for is refused,
// and so is, after all checks that come before it, a dry run.
func (a awsRequest) parsed() error {
	if rest := a.form.rest(); len(rest) > 0 {
		return awsFail("UnknownParameter", "The parameter %s is not recognized", rest[0])
	}
	return nil
}

// dryRun is what ends a dry run that has passed every check.
func (a awsRequest) dryRun() error {
	if a.form.flag("DryRun", false) {
		return awsFail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return nil
}

func (a awsRequest) service() string {
	if strings.HasPrefix(a.action, "AssumeRole") || a.action == "GetCallerIdentity" {
		return "sts"
	}
	return "ec2"
}

// nameAndSubject tells calls apart that are one action, and finds the name of
// the thing that is spoken of.
func (a awsRequest) nameAndSubject(name string) (string, string) {
	v := a.form.values
	if v.Get("DryRun") == "true" {
		name = "dry run of " + name
	}
	switch a.action {
	case "RunInstances":
		return name, a.form.peekName("instance")
	case "DescribeInstances":
		if i := a.account.instances[v.Get("InstanceId.1")]; i != nil {
			return "get server", i.server.name
		}
		if v.Get("InstanceId.1") != "" {
			return "get server", ""
		}
	case "TerminateInstances", "StopInstances", "StartInstances", "RebootInstances":
		if i := a.account.instances[v.Get("InstanceId.1")]; i != nil {
			return name, i.server.name
		}
	case "CreateSecurityGroup":
		return name, v.Get("GroupName")
	case "DeleteSecurityGroup", "AuthorizeSecurityGroupIngress":
		if g := a.account.groups[v.Get("GroupId")]; g != nil {
			return name, g.name
		}
	}
	return name, ""
}

// awsBucket is a limit that fills up again steadily.
type awsBucket struct {
	left float64
	at   time.Time
}

// takeFromLimit counts the request. EC2 shows nothing of it.
func (a awsRequest) takeFromLimit(action awsAction) bool {
	kind, size, refill := "reads", 100.0, 20.0
	switch {
	case a.action == "RunInstances" && a.form.values.Get("DryRun") != "true":
		kind, size, refill = "runs", 5, 2
	case action.writes:
		kind, size, refill = "writes", 50, 5
	}
	key := a.region + "/" + kind
	b := a.account.buckets[key]
	if b == nil {
		b = &awsBucket{left: size, at: a.now}
		a.account.buckets[key] = b
	}
	b.left = min(size, b.left+refill*a.now.Sub(b.at).Seconds())
	b.at = a.now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// refuse answers as a rule wants.
func (a awsRequest) refuse(w http.ResponseWriter, f Fault) {
	a.call.w = w
	switch f.Effect {
	case EffectCapacity:
		a.fail(awsFail("InsufficientInstanceCapacity", "We currently do not have sufficient capacity in the Availability Zone you requested. Our system will be working on provisioning additional capacity."))
	case EffectQuota:
		a.fail(awsFail("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."))
	case EffectRateLimit:
		a.fail(awsFail("RequestLimitExceeded", "Request limit exceeded."))
	case EffectUnauthorized:
		a.fail(awsFail("AuthFailure", "AWS was not able to validate the provided access credentials"))
	default:
		code, message := f.Code, f.Message
		if code == "" {
			code = map[int]string{401: "AuthFailure", 403: "UnauthorizedOperation", 404: "InvalidInstanceID.NotFound", 409: "IncorrectInstanceState", 429: "RequestLimitExceeded", 503: "Unavailable"}[f.Status]
		}
		if code == "" {
			code = "InternalError"
		}
		if message == "" {
			message = "simulated"
		}
		a.fail(&awsError{status: f.Status, code: code, message: message})
	}
}

func (a awsRequest) fail(err error) {
	e, ok := err.(*awsError)
	if !ok {
		e = &awsError{status: http.StatusInternalServerError, code: "InternalError", message: err.Error()}
	}
	id := a.sim.azureID()
	a.call.w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	a.call.w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	a.call.w.Header().Set("X-Amzn-Requestid", id)
	a.call.w.WriteHeader(e.status)
	if a.service() == "sts" {
		writeXML(a.call.w, "ErrorResponse", awsSTSSpace, awsFields{
			{"Error", awsFields{{"Type", "Sender"}, {"Code", e.code}, {"Message", e.message}}}, {"RequestId", id},
		})
		return
	}
	writeXML(a.call.w, "Response", "", awsFields{
		{"Errors", awsFields{{"Error", awsFields{{"Code", e.code}, {"Message", e.message}}}}}, {"RequestID", id},
	})
}

func (a awsRequest) ok(fields awsFields) {
	id := a.sim.azureID()
	h := a.call.w.Header()
	h.Set("Content-Type", "text/xml;charset=UTF-8")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("X-Amzn-Requestid", id)
	a.call.w.WriteHeader(http.StatusOK)
	if a.service() == "sts" {
		writeXML(a.call.w, a.action+"Response", awsSTSSpace, awsFields{
			{a.action + "Result", fields}, {"ResponseMetadata", awsFields{{"RequestId", id}}},
		})
		return
	}
	writeXML(a.call.w, a.action+"Response", awsEC2Space, append(awsFields{{"requestId", id}}, fields...))
}

const (
	awsEC2Space = "http://ec2.amazonaws.com/doc/2016-11-15/"
	awsSTSSpace = "https://sts.amazonaws.com/doc/2011-06-15/"
)

// awsFields are members of an answer, in order. A value is a text, a number, a
// truth, a time, members, or a list.
type awsFields []awsField

type awsField struct {
	name  string
	value any
}

// awsList is a set as EC2 writes it: each is an item.
type awsList []any

func writeXML(w http.ResponseWriter, root, space string, fields awsFields) {
	var b strings.Builder
	b.WriteString(xml.Header + "<" + root)
	if space != "" {
		b.WriteString(` xmlns="` + space + `"`)
	}
	b.WriteString(">")
	fields.write(&b)
	b.WriteString("</" + root + ">")
	_, _ = w.Write([]byte(b.String())) // to a buffer
}

// write leaves out what is empty, as EC2 does; but an empty set is a set.
func (f awsFields) write(b *strings.Builder) {
	for _, m := range f {
		if m.value == nil || m.value == "" {
			continue
		}
		if t, ok := m.value.(time.Time); ok && t.IsZero() {
			continue
		}
		b.WriteString("<" + m.name + ">")
		writeValue(b, m.value)
		b.WriteString("</" + m.name + ">")
	}
}

func writeValue(b *strings.Builder, v any) {
	switch v := v.(type) {
	case awsFields:
		v.write(b)
	case awsList:
		for _, item := range v {
			b.WriteString("<item>")
			writeValue(b, item)
			b.WriteString("</item>")
		}
	case time.Time:
		b.WriteString(v.UTC().Format("2006-01-02T15:04:05.000Z"))
	default:
		_ = xml.EscapeText(b, fmt.Append(nil, v)) // to a builder
	}
}

// awsForm is a request's parameters. It notes which were asked for.
type awsForm struct {
	values url.Values
	used   map[string]bool
}

func (f *awsForm) text(name string) string {
	f.used[name] = true
	return f.values.Get(name)
}

func (f *awsForm) number(name string, otherwise int) int {
	var n int
	if _, err := fmt.Sscan(f.text(name), &n); err != nil {
		return otherwise
	}
	return n
}

func (f *awsForm) flag(name string, otherwise bool) bool {
	switch f.text(name) {
	case "true":
		return true
	case "false":
		return false
	}
	return otherwise
}

// list reads name.1, name.2, …
func (f *awsForm) list(name string) []string {
	var out []string
	for i := 1; f.values.Has(fmt.Sprintf("%s.%d", name, i)); i++ {
		out = append(out, f.text(fmt.Sprintf("%s.%d", name, i)))
	}
	return out
}

// each returns the prefixes name.1, name.2, … of which there are members.
func (f *awsForm) each(name string) []string {
	var out []string
	for i := 1; ; i++ {
		prefix := fmt.Sprintf("%s.%d", name, i)
		found := false
		for k := range f.values {
			found = found || strings.HasPrefix(k, prefix+".")
		}
		if !found {
			return out
		}
		out = append(out, prefix)
	}
}

// rest are the parameters that nobody asked for.
func (f *awsForm) rest() []string {
	f.used["DryRun"] = true
	var rest []string
	for k := range f.values {
		if !f.used[k] {
			rest = append(rest, k)
		}
	}
	slices.Sort(rest)
	return rest
}

// peekName is the name that a request gives to a thing of a kind.
func (f *awsForm) peekName(kind string) string {
	for _, spec := range f.each("TagSpecification") {
		for _, t := range f.each(spec + ".Tag") {
			if f.values.Get(spec+".ResourceType") == kind && f.values.Get(t+".Key") == "Name" {
				return f.values.Get(t + ".Value")
			}
		}
	}
	return ""
}

// tags reads the tags that a request gives to a kind of thing, and refuses
// what EC2 refuses.
func (f *awsForm) tags(kinds ...string) (map[string]map[string]string, error) {
	out := map[string]map[string]string{}
	for _, spec := range f.each("TagSpecification") {
		kind := f.text(spec + ".ResourceType")
		if out[kind] != nil {
			return nil, awsFail("InvalidParameterValue", "'%s' is specified more than once in the tag specifications.", kind)
		}
		if !slices.Contains(kinds, kind) {
			return nil, awsFail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		tags, err := f.tagList(spec + ".Tag")
		if err != nil {
			return nil, err
		}
		out[kind] = tags
	}
	return out, nil
}

func (f *awsForm) tagList(name string) (map[string]string, error) {
	tags := map[string]string{}
	for _, t := range f.each(name) {
		key, value := f.text(t+".Key"), f.text(t+".Value")
		switch _, twice := tags[key]; {
		case key == "" || len(key) > 128 || len(value) > 256:
			return nil, awsFail("InvalidParameterValue", "Tag key or value is too long or empty: %q", key)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return nil, awsFail("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		case twice:
			return nil, awsFail("InvalidParameterValue", "Duplicate tag key '%s' specified.", key)
		}
		tags[key] = value
	}
	if len(tags) > 50 {
		return nil, awsFail("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
	}
	return tags, nil
}

var awsHex = regexp.MustCompile(`^[0-9a-f]{17}$`)

// awsID returns a new id as EC2 makes them. s.mu must be held.
func (s *Sim) awsID(prefix string) string {
	return fmt.Sprintf("%s-0%016x", prefix, s.world.rand.Uint64())
}

// awsAccountOf is the account that a key's id stands for, of twelve digits.
func awsAccountOf(key string) string {
	sum := sha256.Sum256([]byte("account of " + key))
	return fmt.Sprintf("%012d", binary.BigEndian.Uint64(sum[:8])%1_000_000_000_000)
}
