package fleet

import (
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Phase is a node's place in its life.
type Phase string

// A node goes pending → creating → booting → joined → deleting → deleted.
// From any phase before deleting it can go to failed; from any phase but
// deleted it can go to deleting.
const (
	PhasePending  Phase = "pending"  // recorded, nothing asked of the provider yet
	PhaseCreating Phase = "creating" // a create call was, or may have been, sent
	PhaseBooting  Phase = "booting"  // the server's id is known; its agent is awaited
	PhaseJoined   Phase = "joined"   // its agent has joined: the node is done
	PhaseDeleting Phase = "deleting" // access revoked, server being removed
	PhaseDeleted  Phase = "deleted"  // seen to be gone; kept as history
	PhaseFailed   Phase = "failed"   // Reason says why; its server is removed too
)

// Node is a fleet member: the durable record of a server that should exist,
// and of whether it joined.
type Node struct {
	ID      string // UUIDv7
	Name    string // unique among the nodes that are not deleted
	Account string // account name; empty for a machine that was not made by us
	// Provider is the account's; kept here since the account may go first.
	Provider string
	Spec     NodeSpec
	Phase    Phase

	// Attempt counts the creates, from 1; each has its own candidate, token
	// and idempotency key.
	Attempt        int
	IdempotencyKey string
	// CreateSentAt is when the last create call began whose effect may still
	// surface at the provider; zero when there is none such: none was sent, or
	// the provider refused each in words. Doubt tells that an earlier call's
	// effect is not known, so that a refusal of a repeat proves nothing.
	CreateSentAt time.Time
	Doubt        bool
	// Candidate is the index in Spec.Candidates of the one in use.
	Candidate int
	// Tries counts the calls in a row that failed, of the create or of the
	// delete; it sets the pause before the next.
	Tries int
	// Boot is what the user-data of this attempt was rendered from, so that a
	// repeat is the same to the byte whatever the settings are by then.
	Boot Boot

	ServerID     string // the provider's; empty until known
	ServerStatus provision.ServerStatus
	IPAddr       string
	IPv6Addr     string
	Region       string // of the candidate in use
	Size         string // of the candidate in use

	// ListedAt is when the provider first showed the server, in a list or
	// when asked for it; until then a list without it proves nothing. RunningAt is when one first showed it running.
	ListedAt  time.Time
	RunningAt time.Time
	// MissingSince is the start of the first of Misses lists in a row that
	// did not show the server.
	MissingSince time.Time
	Misses       int
	// DeleteSentAt is when the last accepted delete call began.
	DeleteSentAt time.Time
	// EndedAt is when the node was asked to be deleted, or failed.
	EndedAt time.Time

	Reason     Reason    // why it failed; zero otherwise
	ServerGone bool      // the server was seen to be gone, or never was
	JoinBy     time.Time // the deadline of the join
	CreatedAt  time.Time
	JoinedAt   time.Time
	DeletedAt  time.Time
	UpdatedAt  time.Time

	// From the agent.
	CertSerial string // serial of the certificate in force, hex
	// PrevSerial is the one before, good until the new one was used once.
	PrevSerial string
	LastSeenAt time.Time
	Facts      Facts
	// PriceMonthly is the list price at the time of the create, and its
	// currency; empty when the provider names none.
	PriceMonthly string
	Currency     string

	// Version counts the row's writes, for optimistic locking.
	Version int64
}

// ProviderName is the provider of the node's account; empty for a machine that
// was not made by us.
func (n Node) ProviderName() string { return n.Provider }

// Boot is what a node's user-data is rendered from, but for its join token.
type Boot struct {
	Address       string `json:"address"` // of the nodes' listener
	CAFingerprint string `json:"ca_fingerprint,omitempty"`
	AgentImage    string `json:"agent_image,omitempty"`
	AgentVersion  string `json:"agent_version,omitempty"`
	ShortName     string `json:"short_name,omitempty"`
	// DockerInstallURL is where Docker's install script comes from.
	DockerInstallURL string `json:"docker_install_url,omitempty"`
}

// Reason says why something failed, for people and for programs.
type Reason struct {
	Class   string // "capacity", "quota", "rate-limited", "unauthorized", "forbidden", "not-found", "conflict", "invalid", "unavailable", "join-timeout", "server-lost", "server-error", "internal"
	Message string // what happened, where
	Hint    string // what to do next
	// RequestID is the provider's id of the call that failed.
	RequestID string
}

// Facts is what an agent says of its node.
type Facts struct {
	OS            string
	Kernel        string
	Architecture  string
	DockerVersion string
	AgentVersion  string
	Hostname      string
}

// NodeSpec is what was asked for.
type NodeSpec struct {
	Name    string
	Account string
	// Candidates are tried in order while the provider has no capacity.
	Candidates      []Candidate
	Labels          map[string]string
	AllowSSHInbound bool
	SSHKeys         []string
	SSHSourceCIDRs  []string
	Image           string
	Architecture    string
	DiskGB          int
	MeshEnabled     bool
	// JoinTimeout is how long from the create until the agent must have
	// joined; zero means the fleet's default.
	JoinTimeout time.Duration
}

// Candidate is one place and size that would do.
type Candidate struct {
	Region string
	Size   string
}

// Event is one line of a node's timeline.
type Event struct {
	Seq    int64 // rises over all nodes, in commit order
	NodeID string
	Node   string // the node's name at that time
	At     time.Time
	Type   string // "requested", "create-sent", "server-made", "server-running", "joined", "delete-asked", "server-gone", "failed", ...
	Phase  Phase  // the phase after it
	// Message is for people and holds no secret.
	Message string
}

// Account is one credential at one provider, under a name.
type Account struct {
	Name     string
	Provider string
	// Endpoint overrides the provider's API address; empty is the real one.
	Endpoint string
	// Source is "stored" (sealed in the store) or "env" (read from the
	// control plane's environment at each use, never stored).
	Source    string
	CreatedAt time.Time
	// LastError is the last failure of a sweep over this account.
	LastError  string
	ObservedAt time.Time
}
