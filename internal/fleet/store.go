package fleet

import (
	"context"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Store keeps the records and the alarms. Package storetest holds what every
// Store must do, sentence by sentence.
type Store interface {
	Reader
	// Update runs fn in one transaction: all that it wrote is there
	// afterwards, or nothing of it when fn or the commit failed. What fn reads
	// stays as it was read until the end of the transaction: two Updates that
	// read the same record run one after the other. fn may run only once and
	// must not call the Store outside tx.
	Update(ctx context.Context, fn func(tx Tx) error) error
	// EventsChanged returns a channel that is closed once events have been
	// committed after the call.
	EventsChanged() <-chan struct{}
}

// Reader reads records. Each method fails with ErrNotFound when it asks for
// one record and there is none.
type Reader interface {
	Node(ctx context.Context, id string) (Node, error)
	// Nodes returns the nodes that q selects, oldest first.
	Nodes(ctx context.Context, q NodeQuery) ([]Node, error)
	// Events returns up to limit events after a sequence number, in order;
	// of one node when nodeID is not empty. A limit of 0 means all.
	Events(ctx context.Context, nodeID string, after int64, limit int) ([]Event, error)
	Token(ctx context.Context, id string) (TokenRecord, error)
	Account(ctx context.Context, name string) (Account, error)
	Accounts(ctx context.Context) ([]Account, error)
	// Credential returns the credential of a stored account; empty for one
	// that has none.
	Credential(ctx context.Context, account string) (string, error)
	// Left returns what failed creates left behind, of one account, or of all
	// when account is empty.
	Left(ctx context.Context, account string) ([]Left, error)
	// Alarms returns every alarm that is set, with its time.
	Alarms(ctx context.Context) (map[Alarm]time.Time, error)
}

// Tx writes records.
type Tx interface {
	Reader
	// InsertNode fails with ErrConflict when a node that is not deleted has
	// the name.
	InsertNode(ctx context.Context, n Node) error
	// UpdateNode writes the row if its Version is still n.Version, which it
	// then counts up in n; otherwise it fails with ErrStale. The last sign of
	// life is not part of the row, see Seen.
	UpdateNode(ctx context.Context, n *Node) error
	// Seen notes a node's last sign of life, beside the row and without a new
	// version.
	Seen(ctx context.Context, nodeID string, at time.Time) error
	// AddEvent appends to the timeline. The store gives the sequence number.
	AddEvent(ctx context.Context, e Event) error
	// PutToken inserts or replaces the token of that id.
	PutToken(ctx context.Context, t TokenRecord) error
	// KillTokens ends all tokens of a node that are not used, and returns how
	// many there were.
	KillTokens(ctx context.Context, nodeID string) (int, error)
	// InsertAccount fails with ErrConflict when the name is taken. It seals
	// the credential.
	InsertAccount(ctx context.Context, a Account, credential string) error
	// SetAccountHealth notes how the last list of the account went.
	SetAccountHealth(ctx context.Context, name, lastError string, observedAt time.Time) error
	DeleteAccount(ctx context.Context, name string) error
	PutLeft(ctx context.Context, l Left) error
	DropLeft(ctx context.Context, l Left) error
	// Wake sets an alarm: [Runner.Run] is called with it at that time or soon
	// after. An alarm that is set already for a time after now and not after
	// at is kept; any other is replaced.
	Wake(ctx context.Context, a Alarm, at time.Time) error
}

// Alarm names what is to be looked at.
type Alarm struct {
	Kind AlarmKind
	ID   string // a node's id, or an account's name
}

// AlarmKind is what an alarm is for.
type AlarmKind string

// The kinds of alarms.
const (
	AlarmNode    AlarmKind = "node"    // reconcile a node
	AlarmAccount AlarmKind = "account" // observe an account
)

// Runner is what an alarm clock drives. *Fleet is one.
type Runner interface {
	// Run does what the alarm is for. next is when it wants to be called
	// again; zero means not before somebody sets the alarm. After an error it
	// is called again too, with growing pauses.
	Run(ctx context.Context, a Alarm) (next time.Time, err error)
	// Sweep sets all alarms again that the records call for: at a start
	// (first) every one at once, later those that are missing or overdue.
	Sweep(ctx context.Context, first bool) error
	// Patrol audits every account and logs what it finds.
	Patrol(ctx context.Context) error
}

// NodeQuery selects nodes; the zero value selects all, deleted ones too.
type NodeQuery struct {
	Account string
	Phases  []Phase
	// Ref selects those whose id or name begins with it.
	Ref string
	// Unsettled selects those that need work: on their way up or down, or
	// failed with a server that was not yet seen to be gone.
	Unsettled bool
}

// TokenRecord is what is kept of a join token: never its secret.
type TokenRecord struct {
	ID         string
	NodeID     string
	Attempt    int
	SecretHash [32]byte
	State      TokenState
	CreatedAt  time.Time
	ExpiresAt  time.Time
	UsedAt     time.Time
	// KeyHash is of the key that it was used for; only that key may come
	// again.
	KeyHash string
	// MisusedAt is when another key first came with the token after its use.
	MisusedAt time.Time
}

// TokenState is a token's place in its life.
type TokenState string

// The states of a token.
const (
	TokenLive TokenState = "live"
	TokenUsed TokenState = "used"
	TokenDead TokenState = "dead" // ended unused
)

// Left is a thing at a provider that a failed create made and could not
// remove.
type Left struct {
	Account  string
	NodeID   string
	Resource provision.Resource
	At       time.Time
}
