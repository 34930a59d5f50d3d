package provision

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Errors.

// The codes that the API's calls for servers, addresses, firewalls, volumes
// and keys can answer with. Their HTTP statuses vary, so the code decides.
var hetznerCodes = map[string]meaning{
	"unauthorized":   {class: ErrUnauthorized},
	"forbidden":      {class: ErrForbidden, hint: hintReadWrite},
	"token_readonly": {class: ErrForbidden, hint: hintReadWrite},

	"not_found":                   {class: ErrNotFound},
	"firewall_resource_not_found": {class: ErrNotFound},

	"invalid_input":               {class: ErrInvalid},
	"invalid_server_type":         {class: ErrInvalid, hint: "choose a server type that the region sells"},
	"json_error":                  {class: ErrInvalid},
	"unsupported_error":           {class: ErrInvalid},
	"incompatible_network_type":   {class: ErrInvalid},
	"private_net_only_server":     {class: ErrInvalid},
	"primary_ip_version_mismatch": {class: ErrInvalid},
	"deprecated_api_endpoint":     {class: ErrInvalid, hint: "this program is older than the API: update it"},

	"uniqueness_error":                   {class: ErrConflict},
	"server_already_added":               {class: ErrConflict},
	"server_already_attached":            {class: ErrConflict},
	"server_not_stopped":                 {class: ErrConflict},
	"firewall_already_applied":           {class: ErrConflict},
	"firewall_already_removed":           {class: ErrConflict},
	"firewall_managed_by_label_selector": {class: ErrConflict},
	"primary_ip_assigned":                {class: ErrConflict, hint: hintInUse},
	"primary_ip_already_assigned":        {class: ErrConflict, hint: hintInUse},
	"volume_already_attached":            {class: ErrConflict, hint: hintInUse},
	"resource_in_use":                    {class: ErrConflict, hint: hintInUse},
	"protected": {
		class: ErrConflict,
		hint:  "it is protected from deletion: lift that (hcloud server disable-protection <id> delete, or in the Console), then repeat",
	},

	"resource_unavailable":      {class: ErrCapacity, hint: hintElsewhere},
	"placement_error":           {class: ErrCapacity, hint: hintElsewhere},
	"no_space_left_in_location": {class: ErrCapacity, hint: hintElsewhere},

	"resource_limit_exceeded": {class: ErrQuota, hint: "the project's limit is reached: delete something, or ask for more (Hetzner Console: Limits)"},
	"rate_limit_exceeded":     {class: ErrRateLimited, again: againAny, hint: "wait; a project has 3,600 requests an hour, one more each second"},

	"locked":            {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"conflict":          {class: ErrUnavailable, again: againAny, hint: hintBusy},
	"resource_locked":   {class: ErrUnavailable, hint: "Hetzner has locked it: ask its support"},
	"maintenance":       {class: ErrUnavailable, again: againSafe},
	"service_error":     {class: ErrUnavailable, again: againSafe},
	"server_error":      {class: ErrUnavailable, again: againSafe},
	"bad_gateway":       {class: ErrUnavailable, again: againSafe},
	"timeout":           {class: ErrUnavailable, again: againSafe},
	"unknown_error":     {class: ErrUnavailable, again: againSafe},
	"robot_unavailable": {class: ErrUnavailable, again: againSafe},
}

const (
	hintReadWrite = "the token may only read, or not do this: make one with read & write (Hetzner Console: project, Security, API tokens)"
	hintElsewhere = "try another size or another region, or later"
	hintInUse     = "something still uses it: remove that first, or wait until it is gone"
	hintBusy      = "another action on it is still running: try again in a moment"
)

// hetznerClassify reads the API's error envelope. tokenLength tells a
// credential that cannot be right from one that was withdrawn.
func hetznerClassify(tokenLength int) func(*ProviderError, []byte) {
	return func(e *ProviderError, body []byte) {
		var f hzFailure
		// A body that is none, such as a proxy's page, leaves the status to decide.
		if json.Unmarshal(body, &f) == nil {
			e.Code, e.Message = f.Error.Code, f.Error.Message
			e.Message += fieldMessages(f.Error.Details)
		}
		if code, ok := hetznerCodes[e.Code]; ok {
			e.Class, e.again, e.Hint = code.class, code.again, code.hint
		}
		if e.Class == ErrUnauthorized || e.Class == nil && e.Status == 401 {
			e.Hint = "check the API token; each belongs to one project"
			if tokenLength != hetznerTokenLength {
				e.Hint = fmt.Sprintf("check the API token: one has %d characters, this has %d", hetznerTokenLength, tokenLength)
			}
		}
	}
}

// fieldMessages is " [name: must be …]" for each field that was refused.
func fieldMessages(details json.RawMessage) string {
	var d hzFields
	if len(details) == 0 || json.Unmarshal(details, &d) != nil {
		return ""
	}
	var b strings.Builder
	for _, f := range d.Fields {
		fmt.Fprintf(&b, " [%s: %s]", f.Name, strings.Join(f.Messages, "; "))
	}
	return b.String()
}
