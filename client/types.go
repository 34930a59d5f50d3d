package client

import "time"

// The wire types of the API, version 1. Times are RFC 3339 in UTC; optional
// fields are left out when empty.

// Node is one fleet member.
type Node struct {
	ID           string            `json:"id" doc:"UUID of the node"`
	Name         string            `json:"name" doc:"unique among the nodes that are not deleted"`
	Phase        string            `json:"phase" enum:"pending,creating,booting,joined,deleting,deleted,failed"`
	Account      string            `json:"account,omitempty"`
	Provider     string            `json:"provider,omitempty"`
	Region       string            `json:"region,omitempty"`
	Size         string            `json:"size,omitempty"`
	ServerID     string            `json:"server_id,omitempty" doc:"the provider's id of the server"`
	ServerStatus string            `json:"server_status,omitempty"`
	IPAddr       string            `json:"ip_addr,omitempty"`
	IPv6Addr     string            `json:"ipv6_addr,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	PriceMonthly string            `json:"price_monthly,omitempty" doc:"list price at the time of the create, a decimal number"`
	Currency     string            `json:"currency,omitempty"`
	Reason       *Reason           `json:"reason,omitempty"`
	ServerGone   bool              `json:"server_gone,omitempty" doc:"the server was seen to be gone, or never was"`
	Facts        *Facts            `json:"facts,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	JoinBy       *time.Time        `json:"join_by,omitempty"`
	JoinedAt     *time.Time        `json:"joined_at,omitempty"`
	LastSeenAt   *time.Time        `json:"last_seen_at,omitempty"`
	DeletedAt    *time.Time        `json:"deleted_at,omitempty"`
}

// Reason says why a node failed.
type Reason struct {
	Class     string `json:"class"`
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// Facts is what the node's agent says of the machine.
type Facts struct {
	OS            string `json:"os,omitempty"`
	Kernel        string `json:"kernel,omitempty"`
	Architecture  string `json:"architecture,omitempty"`
	DockerVersion string `json:"docker_version,omitempty"`
	AgentVersion  string `json:"agent_version,omitempty"`
	Hostname      string `json:"hostname,omitempty"`
}

// CreateNode asks for a node.
type CreateNode struct {
	Name            string            `json:"name,omitempty" doc:"RFC 1123 label; a name is made up when empty"`
	Account         string            `json:"account" doc:"the account to create it with"`
	Candidates      []Candidate       `json:"candidates" minItems:"1" doc:"tried in order while there is no capacity" nullable:"false"`
	Labels          map[string]string `json:"labels,omitempty"`
	AllowSSHInbound bool              `json:"allow_ssh_inbound,omitempty"`
	SSHKeys         []string          `json:"ssh_keys,omitempty" nullable:"false"`
	SSHSourceCIDRs  []string          `json:"ssh_source_cidrs,omitempty" nullable:"false"`
	Image           string            `json:"image,omitempty"`
	Architecture    string            `json:"architecture,omitempty" enum:"x86,arm"`
	DiskGB          int               `json:"disk_gb,omitempty"`
	Mesh            bool              `json:"mesh,omitempty"`
	JoinTimeout     string            `json:"join_timeout,omitempty" doc:"a duration as in 20m"`
}

// Candidate is one place and size that would do.
type Candidate struct {
	Region string `json:"region"`
	Size   string `json:"size"`
}

// Plan is what a create would make, and cost.
type Plan struct {
	Name         string   `json:"name"`
	Account      string   `json:"account"`
	Provider     string   `json:"provider"`
	Region       string   `json:"region"`
	Size         string   `json:"size"`
	PriceMonthly string   `json:"price_monthly,omitempty"`
	Currency     string   `json:"currency,omitempty"`
	Makes        []string `json:"makes" doc:"what would be made, a line each" nullable:"false"`
	UserDataSize int      `json:"user_data_bytes"`
}

// Event is one line of a node's timeline.
type Event struct {
	Seq     int64     `json:"seq" doc:"rises over all nodes, in commit order"`
	NodeID  string    `json:"node_id"`
	Node    string    `json:"node"`
	At      time.Time `json:"at"`
	Type    string    `json:"type" doc:"what happened: requested, create-sent, server-made, joined, failed, delete-asked, server-gone and so on"`
	Phase   string    `json:"phase" doc:"the node's phase after it"`
	Message string    `json:"message" doc:"for people"`
}

// AddAccount registers a credential under a name.
type AddAccount struct {
	Name       string `json:"name"`
	Provider   string `json:"provider" doc:"hetzner, digitalocean, aws, azure or gcp"`
	Credential string `json:"credential,omitempty" writeOnly:"true" doc:"stored encrypted; empty with source env"`
	Source     string `json:"source,omitempty" enum:"stored,env" doc:"env: the control plane reads its own environment at each use and stores nothing"`
	Endpoint   string `json:"endpoint,omitempty" doc:"the provider's API address, when it is not the public one"`
}

// Account is one credential at one provider, never the credential itself.
type Account struct {
	Name       string     `json:"name"`
	Provider   string     `json:"provider"`
	Source     string     `json:"source" enum:"stored,env"`
	Endpoint   string     `json:"endpoint,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	ObservedAt *time.Time `json:"observed_at,omitempty" doc:"when its servers were last listed"`
	LastError  string     `json:"last_error,omitempty" doc:"the last failure of a listing; empty after one that worked"`
}

// Region is one place where an account can create servers.
type Region struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Size is one server size.
type Size struct {
	ID               string     `json:"id"`
	Name             string     `json:"name"`
	VCPUs            int        `json:"vcpus"`
	MemoryMB         int        `json:"memory_mb"`
	DiskGB           int        `json:"disk_gb,omitempty"`
	Architecture     string     `json:"architecture,omitempty"`
	PriceMonthly     string     `json:"price_monthly,omitempty" doc:"the provider's list price, a decimal number; absent when not known"`
	Currency         string     `json:"currency,omitempty" doc:"ISO 4217"`
	UnavailableAfter *time.Time `json:"unavailable_after,omitempty" doc:"when the provider stops selling it there; absent when no end is announced"`
}

// JoinTicket is what a machine needs to join that Slipway did not make. The
// token is shown this once.
type JoinTicket struct {
	NodeID        string    `json:"node_id"`
	Node          string    `json:"node"`
	Address       string    `json:"address"`
	Token         string    `json:"token"`
	CAFingerprint string    `json:"ca_fingerprint"`
	ExpiresAt     time.Time `json:"expires_at"`
	AgentImage    string    `json:"agent_image"`
}

// AuditReport compares an account with the records.
type AuditReport struct {
	At       time.Time `json:"at"`
	Accounts []string  `json:"accounts" nullable:"false"`
	Findings []Finding `json:"findings" nullable:"false"`
	Complete bool      `json:"complete" doc:"false when an account could not be read: nothing is known of what it holds"`
	Errors   []string  `json:"errors,omitempty" nullable:"false"`
}

// Finding is one thing that is not as the records have it.
type Finding struct {
	Kind     string `json:"kind" enum:"leftover,missing,drift,foreign" doc:"leftover: exists and should not; missing: should exist and does not; drift: is not as it was made; foreign: carries another control plane's mark"`
	Account  string `json:"account"`
	Resource string `json:"resource" doc:"server, public-ip, volume, firewall, ssh-key, ..."`
	ID       string `json:"id,omitempty"`
	Name     string `json:"name,omitempty"`
	Node     string `json:"node,omitempty"`
	Age      string `json:"age,omitempty"`
	Billable bool   `json:"billable"`
	Message  string `json:"message"`
	// Removed and Error tell what became of it when the audit was asked to delete.
	Removed bool   `json:"removed,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Info is what a control plane says of itself.
type Info struct {
	Version       string `json:"version"`
	FleetID       string `json:"fleet_id"`
	Advertise     string `json:"advertise" doc:"the address that nodes are told"`
	CAFingerprint string `json:"ca_fingerprint"`
}

// Problem is an error answer (RFC 9457).
type Problem struct {
	Type       string   `json:"type,omitempty"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Class      string   `json:"class,omitempty" doc:"capacity, quota, rate-limited, unauthorized, forbidden, not-found, conflict, invalid, unavailable, refused, internal"`
	Hint       string   `json:"hint,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	RequestID  string   `json:"request_id,omitempty" doc:"the provider's id of the call that failed"`
	LeftBehind []string `json:"left_behind,omitempty" doc:"what may still exist at the provider" nullable:"false"`
}
