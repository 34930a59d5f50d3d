package provision

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Errors.

// The reasons of refusals and the codes of operations that failed, in lower
// case and without underscores: older and newer parts of the API spell them
// differently. HTTP statuses do not tell them apart: rate, quota, permission,
// and an API that is not enabled are all 403.
var gcpCodes = map[string]meaning{
	"zoneresourcepoolexhausted":              {class: ErrCapacity, hint: hintElsewhere},
	"zoneresourcepoolexhaustedwithdetails":   {class: ErrCapacity, hint: hintElsewhere},
	"regionresourcepoolexhausted":            {class: ErrCapacity, hint: hintElsewhere},
	"regionresourcepoolexhaustedwithdetails": {class: ErrCapacity, hint: hintElsewhere},
	"resourcepoolexhausted":                  {class: ErrCapacity, hint: hintElsewhere},
	"insufficientcapacity":                   {class: ErrCapacity, hint: hintElsewhere},
	"gpustockout":                            {class: ErrCapacity, hint: hintElsewhere},
	"stockout":                               {class: ErrCapacity, hint: hintElsewhere},

	"quotaexceeded": {class: ErrQuota, hint: hintGCPQuota},
	"limitexceeded": {class: ErrQuota, hint: hintGCPQuota},

	"ratelimitexceeded":             {class: ErrRateLimited, again: againAny, hint: hintGCPSlower},
	"userratelimitexceeded":         {class: ErrRateLimited, again: againAny, hint: hintGCPSlower},
	"resourceoperationrateexceeded": {class: ErrRateLimited, again: againAny, hint: hintGCPSlower},
	"operationrateexceeded":         {class: ErrRateLimited, again: againAny, hint: hintGCPSlower},

	"autherror":               {class: ErrUnauthorized, hint: hintGCPKey},
	"unauthenticated":         {class: ErrUnauthorized, hint: hintGCPKey},
	"accesstokenexpired":      {class: ErrUnauthorized, hint: hintGCPKey},
	"credentialsmissing":      {class: ErrUnauthorized, hint: hintGCPKey},
	"accountstatedisabled":    {class: ErrUnauthorized, hint: hintGCPKey},
	"accountstateinvalid":     {class: ErrUnauthorized, hint: hintGCPKey},
	"accesstokentypeunmapped": {class: ErrUnauthorized, hint: hintGCPKey},

	"forbidden":                    {class: ErrForbidden, hint: hintGCPRole},
	"permissionserror":             {class: ErrForbidden, hint: hintGCPRole},
	"permissiondenied":             {class: ErrForbidden, hint: hintGCPRole},
	"iampermissiondenied":          {class: ErrForbidden, hint: hintGCPRole},
	"insufficientpermissions":      {class: ErrForbidden, hint: hintGCPRole},
	"accesstokenscopeinsufficient": {class: ErrForbidden, hint: hintGCPRole},
	"accessnotconfigured":          {class: ErrForbidden, hint: hintGCPEnable},
	"servicedisabled":              {class: ErrForbidden, hint: hintGCPEnable},
	"billingdisabled":              {class: ErrForbidden, hint: hintGCPBilling},
	"billingnotenabled":            {class: ErrForbidden, hint: hintGCPBilling},
	"conditionnotmet":              {class: ErrForbidden, hint: hintGCPPolicy},
	"orgpolicyviolation":           {class: ErrForbidden, hint: hintGCPPolicy},

	"notfound":         {class: ErrNotFound},
	"resourcenotfound": {class: ErrNotFound},
	// Not "not found": what a project that cannot be seen holds may exist.
	"projectnotfound": {class: ErrUnauthorized, hint: "check project_id in the key; a deleted project looks like this for a month"},

	"alreadyexists":                  {class: ErrConflict},
	"resourcealreadyexists":          {class: ErrConflict},
	"duplicate":                      {class: ErrConflict},
	"resourceinusebyanotherresource": {class: ErrConflict, hint: hintInUse},
	"resourceinuse":                  {class: ErrConflict, hint: hintInUse},
	"operationcanceledbyuser":        {class: ErrConflict, hint: "somebody cancelled the operation: repeat it"},
	"aborted":                        {class: ErrUnavailable, again: againAny, hint: hintBusy},

	"invalid":                       {class: ErrInvalid},
	"required":                      {class: ErrInvalid},
	"badrequest":                    {class: ErrInvalid},
	"parseerror":                    {class: ErrInvalid},
	"invalidargument":               {class: ErrInvalid},
	"invalidparameter":              {class: ErrInvalid},
	"invalidfieldvalue":             {class: ErrInvalid},
	"missingrequiredfield":          {class: ErrInvalid},
	"requiredfieldmissing":          {class: ErrInvalid},
	"fieldsizetoolarge":             {class: ErrInvalid},
	"uploadtoolarge":                {class: ErrInvalid},
	"invalidusage":                  {class: ErrInvalid, hint: hintGCPMismatch},
	"unsupportedoperation":          {class: ErrInvalid, hint: hintGCPMismatch},
	"operationnotallowed":           {class: ErrInvalid, hint: hintGCPMismatch},
	"networknotfound":               {class: ErrInvalid},
	"serviceunavailableforlocation": {class: ErrInvalid, hint: "not offered in that zone: list its sizes"},

	"resourcenotready":   {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"backenderror":       {class: ErrUnavailable, again: againSafe},
	"internalerror":      {class: ErrUnavailable, again: againSafe},
	"internal":           {class: ErrUnavailable, again: againSafe},
	"unavailable":        {class: ErrUnavailable, again: againSafe},
	"serviceunavailable": {class: ErrUnavailable, again: againSafe},
	"deadlineexceeded":   {class: ErrUnavailable, again: againSafe},
}

const (
	hintGCPQuota    = "the project's quota is reached: delete something, use a zone of another region or another family of sizes, or ask for more (Google Cloud console: Quotas)"
	hintGCPSlower   = "wait: a project's request limits fill up again at the next full minute"
	hintGCPKey      = "check that the service account's key is not deleted or disabled; one that was just made takes a minute"
	hintGCPRole     = "give the service account the role in docs/permissions/gcp.json; what was just granted takes a few minutes"
	hintGCPEnable   = "enable the Compute Engine API in the project (gcloud services enable compute.googleapis.com), and wait a few minutes"
	hintGCPBilling  = "the project has no billing account: link one"
	hintGCPPolicy   = "an organisation policy forbids it: the message names the constraint"
	hintGCPMismatch = "the size, the image and the zone do not go together: the message says which"
)

// gcpWord is a reason as gcpCodes has it.
func gcpWord(reason string) string { return strings.ToLower(strings.ReplaceAll(reason, "_", "")) }

// gcpClassify reads the API's error envelope.
func gcpClassify(e *ProviderError, body []byte) {
	var f gcpFailure
	if json.Unmarshal(body, &f) != nil {
		if e.Status == 404 && len(body) > 0 {
			// Some proxy's page. Taken for "not found" it would make a delete
			// look done.
			e.Class, e.Hint = ErrUnavailable, "that was not Compute Engine's answer: check the endpoint, and what is between here and there"
		}
		return
	}
	e.Message = f.Error.Message
	var reasons []string
	for _, d := range f.Error.Details {
		reasons = append(reasons, d.Reason) // finer than those of errors
	}
	for _, r := range f.Error.Errors {
		reasons = append(reasons, r.Reason)
	}
	gcpExplain(e, append(reasons, f.Error.Status))
}

// gcpExplain takes the first reason that is known.
func gcpExplain(e *ProviderError, reasons []string) {
	for _, r := range reasons {
		if r != "" && e.Code == "" {
			e.Code = r
		}
		code, ok := gcpCodes[gcpWord(r)]
		if !ok {
			continue
		}
		e.Code, e.Class, e.again, e.Hint = r, code.class, code.again, code.hint
		break
	}
	text := strings.ToLower(e.Message)
	switch {
	case errors.Is(e.Class, ErrInvalid) && (strings.Contains(text, "protected against deletion") || strings.Contains(text, "deletion protection")):
		e.Class, e.Hint = ErrConflict, "lift the protection (gcloud compute instances update NAME --no-deletion-protection), then repeat"
	case e.Status == http.StatusUnauthorized && gcpWord(e.Code) == "required": // a credential, not a field
		e.Class, e.Hint = ErrUnauthorized, hintGCPKey
	case errors.Is(e.Class, ErrForbidden) && strings.Contains(text, "billing"):
		e.Hint = hintGCPBilling
	case gcpWord(e.Code) == "conditionnotmet" && strings.Contains(text, "fingerprint"):
		e.Class, e.Hint = ErrConflict, hintBusy
	}
	if errors.Is(e.Class, ErrRateLimited) && e.RetryAfter == 0 {
		e.RetryAfter = untilNextMinute(time.Now())
	}
}

// untilNextMinute is when a project's request limits fill up again.
func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
}

// failure is the error of an operation that has ended, nil when it went well.
// Its HTTP status was 200 all the same.
func (o gcpOperation) failure(op string) error {
	if o.Error == nil || len(o.Error.Errors) == 0 {
		if o.Status == "DONE" && o.HTTPStatus >= 400 {
			return &ProviderError{Provider: "gcp", Op: op, Class: classOfStatus(o.HTTPStatus), Message: "the operation failed and does not say why"}
		}
		return nil
	}
	first := o.Error.Errors[0]
	e := &ProviderError{Provider: "gcp", Op: op, Message: clip(oneLine(first.Message), maxErrorBody)}
	gcpExplain(e, []string{first.Code})
	if e.Class == nil {
		e.Class = classOfStatus(o.HTTPStatus)
	}
	if e.Class == nil {
		e.Class = ErrUnavailable
	}
	for _, d := range first.Details {
		if d.Info != nil && d.Info.Metadata["zonesAvailable"] != "" {
			e.Hint = "there is capacity in " + strings.Join(strings.Split(clip(oneLine(d.Info.Metadata["zonesAvailable"]), 200), ","), ", ")
		}
	}
	e.again, e.RetryAfter = againNever, 0
	return e
}
