package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Errors.

// doCodes are the ids of the API's errors. They are coarse: what a 422 means
// is in its message, see doMessages.
var doCodes = map[string]meaning{
	"unauthorized":         {class: ErrUnauthorized},
	"forbidden":            {class: ErrForbidden, hint: hintDOScopes},
	"not_found":            {class: ErrNotFound},
	"bad_request":          {class: ErrInvalid},
	"unprocessable_entity": {class: ErrInvalid},
	"conflict":             {class: ErrConflict},
	"too_many_requests":    {class: ErrRateLimited, again: againAny, hint: "wait; a token has 5,000 requests an hour and 250 a minute"},
	"server_error":         {class: ErrUnavailable, again: againSafe},
	"service_unavailable":  {class: ErrUnavailable, again: againSafe},
}

const (
	hintDOScopes = "the token lacks a scope, or the account is locked: droplet, firewall, tag and ssh_key need create, read and delete, firewall update too, and account, regions, sizes and image read (Control Panel: API, Tokens)"
	hintDOLimit  = "the account's limit of Droplets is reached: delete some, or ask for more (Control Panel: Settings, Team)"
)

// doMessages are the refusals that the message alone tells apart, in lower
// case. The first that fits decides.
var doMessages = []struct {
	text string
	code meaning
}{
	{"will exceed your droplet limit", meaning{class: ErrQuota, hint: hintDOLimit}},
	{"droplet limit", meaning{class: ErrQuota, hint: hintDOLimit}},
	{"exceeded your volume", meaning{class: ErrQuota}},
	{"size is not available in this region", meaning{class: ErrCapacity, hint: hintElsewhere}},
	{"region is not available", meaning{class: ErrCapacity, hint: hintElsewhere}},
	{"currently unavailable", meaning{class: ErrCapacity, hint: hintElsewhere}},
	{"currently disabled", meaning{class: ErrCapacity, hint: hintElsewhere}},
	{"not enough capacity", meaning{class: ErrCapacity, hint: hintElsewhere}},
	// Of two actions on one Droplet, the second is refused and does nothing.
	{"already has a pending event", meaning{class: ErrUnavailable, again: againAny, hint: hintBusy}},
	{"already in use", meaning{class: ErrConflict}},
	{"must be unique", meaning{class: ErrConflict}},
	{"duplicate name", meaning{class: ErrConflict}},
	{"already exists", meaning{class: ErrConflict}},
	{"is attached", meaning{class: ErrConflict, hint: hintInUse}},
	{"attached volume", meaning{class: ErrConflict, hint: hintInUse}},
	{"are invalid key identifiers", meaning{class: ErrInvalid, hint: "give the name of a key that the account has, or the public key itself"}},
	{"not a valid size", meaning{class: ErrInvalid, hint: "list the sizes of the region to see what there is"}},
	{"invalid size", meaning{class: ErrInvalid, hint: "list the sizes of the region to see what there is"}},
	{"invalid image", meaning{class: ErrInvalid}},
}

// doClassify reads the API's error envelope. The token's form tells what
// kind of credential was refused; the token itself is in no message.
func doClassify(token string) func(*ProviderError, []byte) {
	hint := doTokenHint(token)
	return func(e *ProviderError, body []byte) {
		var f doFailure
		// A body that is none, such as a proxy's page, leaves the status to decide.
		if json.Unmarshal(body, &f) == nil {
			e.Code, e.Message = f.ID, f.Message
			if f.RequestID != "" {
				e.RequestID = f.RequestID
			}
		}
		code, known := doCodes[strings.ToLower(e.Code)]
		if !known || errors.Is(code.class, ErrInvalid) || errors.Is(code.class, ErrConflict) {
			for _, m := range doMessages {
				if strings.Contains(strings.ToLower(e.Message), m.text) {
					code, known = m.code, true
					break
				}
			}
		}
		if known {
			e.Class, e.again, e.Hint = code.class, code.again, code.hint
		}
		if e.Class == ErrUnauthorized || e.Class == nil && e.Status == 401 {
			e.Hint = hint
		}
	}
}

// doTokenHint tells apart the tokens that DigitalOcean makes.
func doTokenHint(token string) string {
	const length = len("dop_v1_") + 64
	switch {
	case strings.HasPrefix(token, "doo_v1_"), strings.HasPrefix(token, "dor_v1_"):
		return "this is a token of an application's sign-in, which ends after some weeks or hours: use a personal access token (Control Panel: API, Tokens)"
	case strings.HasPrefix(token, "dop_v1_") && len(token) != length:
		return fmt.Sprintf("check the token: a personal access token has %d characters, this has %d", length, len(token))
	}
	return "check the token: it is wrong, was revoked, or has expired (Control Panel: API, Tokens); one from doctl's file may be short-lived"
}
