package fleet

import (
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// AccountSpec is what AddAccount takes.
type AccountSpec struct {
	Name       string
	Provider   string
	Credential string // empty with Source "env"
	Source     string // "stored" (default) or "env"
	Endpoint   string
}

// Plan is what a create would make, and cost; nothing was made for it.
type Plan struct {
	Spec          NodeSpec
	Provider      string
	PriceMonthly  string
	Currency      string
	Makes         []string // for people, a line each
	UserDataBytes int
}

// JoinTicket is what a machine needs to join that was not made by us.
type JoinTicket struct {
	Node          Node
	Address       string
	Token         string // shown this once
	CAFingerprint string
	AgentImage    string
}

// NodeFilter selects nodes; the zero value selects all that are not deleted.
type NodeFilter struct {
	Account        string
	Phases         []Phase
	Labels         map[string]string
	IncludeDeleted bool
}

// FindingKind is what is wrong with a thing that an audit found.
type FindingKind string

// The kinds of findings.
const (
	FindingLeftover FindingKind = "leftover" // exists, and belongs to no live node
	FindingMissing  FindingKind = "missing"  // a live node's server does not exist
	FindingDrift    FindingKind = "drift"    // not as it was made
	FindingForeign  FindingKind = "foreign"  // carries another control plane's fleet id
)

// Finding is one difference between an account and the records.
type Finding struct {
	Kind     FindingKind
	Account  string
	Resource provision.Resource
	Node     string // the node it belongs or belonged to, when known
	NodeID   string
	Message  string
	Removed  bool
	Err      error
}

// AuditReport is one audit of some accounts.
type AuditReport struct {
	At       time.Time
	Accounts []string
	Findings []Finding
	// Errors has an entry for each account that could not be read whole.
	Errors map[string]error
}
