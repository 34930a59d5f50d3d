package cloudsim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sort"
	"time"
)

// world is what the clouds are made of, in the words of no provider. Sim.mu
// guards it.
type world struct {
	rand     *rand.Rand
	projects map[string]*project // by provider and credential
	ledger   []*LedgerEntry
	nextID   map[string]int64 // by provider and kind
	nextIP   uint32
}

func newWorld(r *rand.Rand) *world {
	return &world{rand: r, projects: map[string]*project{}, nextID: map[string]int64{}}
}

// project is what one credential sees.
type project struct {
	provider string
	name     string // a short hash of the credential
	readOnly bool
	servers  map[int64]*server
	ips      map[int64]*publicIP
	rules    map[int64]*firewall
	keys     map[int64]*sshKey
	volumes  map[int64]*volume
	actions  map[int64]*action
	// taken has names of servers that are gone but not free yet.
	taken map[string]time.Time
	// limit is the requests that are left, and when that was.
	limit     float64
	limitedAt time.Time
	// adapter is what a provider's adapter keeps beside these.
	adapter any
}

// project returns the one that a credential opens, made at its first use.
func (w *world) project(provider, credential string) *project {
	key := provider + "\x00" + credential
	p := w.projects[key]
	if p == nil {
		sum := sha256.Sum256([]byte(key))
		p = &project{
			provider: provider, name: hex.EncodeToString(sum[:4]),
			servers: map[int64]*server{}, ips: map[int64]*publicIP{}, rules: map[int64]*firewall{},
			keys: map[int64]*sshKey{}, volumes: map[int64]*volume{}, actions: map[int64]*action{},
			taken: map[string]time.Time{},
		}
		w.projects[key] = p
	}
	return p
}

// id returns the next id of a kind. Ids of different kinds differ, so that one
// taken for another is found out.
func (w *world) id(provider, kind string) int64 {
	key := provider + "/" + kind
	if w.nextID[key] == 0 {
		w.nextID[key] = 1_000_000 + int64(len(w.nextID))*10_000_000 + w.rand.Int64N(1000)
	}
	w.nextID[key]++
	return w.nextID[key]
}

// ipv4 returns the next address of 198.18.0.0/15, which is for tests and
// routed nowhere.
func (w *world) ipv4() string {
	w.nextIP++
	n := w.nextIP % (1 << 17)
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16, n>>8&0xff, n&0xff)
}

// ipv6 returns the next /64 of 2001:db8::/32, which is for documentation.
func (w *world) ipv6() string {
	return fmt.Sprintf("2001:db8:%x:%x::/64", w.nextIP>>16, w.nextIP&0xffff)
}

// The states of a server, in the words of no provider.
const (
	stateInitializing = "initializing"
	stateStarting     = "starting"
	stateRunning      = "running"
	stateStopping     = "stopping"
	stateOff          = "off"
	stateDeleting     = "deleting"
)

type server struct {
	id int64
	// ref is the id by which the provider shows it; empty: the number.
	ref      string
	project  *project
	name     string
	size     string // the provider's name of it
	region   string
	image    int64
	arch     string
	userData []byte
	labels   map[string]string
	created  time.Time
	state    string
	ipv4     *publicIP // nil: none
	ipv6     *publicIP
	keys     []int64
	volumes  []int64
	// protected tells that a delete is refused.
	protected bool
	running   *action // the action that holds the server; nil: none
	entry     *LedgerEntry
	guest     *guest
	// From faults.
	slowBoot    time.Duration
	noBoot      bool
	bootDies    bool
	stuckDelete time.Duration
	lateFailure *Fault    // the create is given up later; nil: it is not
	hiddenUntil time.Time // from lists
	powerCycle  int       // counts starts: events of an earlier one are void
}

type publicIP struct {
	id         int64
	name       string
	address    string
	v6         bool
	server     *server // nil: attached to none
	autoDelete bool
	protected  bool
	region     string
	labels     map[string]string
	created    time.Time
	entry      *LedgerEntry
}

type firewall struct {
	id      int64
	name    string
	labels  map[string]string
	created time.Time
	rules   []rule
	// attached has the servers with the time since when, selectors label
	// selectors beside them.
	attached  map[int64]time.Time
	selectors []selectorSince
}

type selectorSince struct {
	selector string
	since    time.Time
}

// rule lets something through a firewall.
type rule struct {
	in       bool
	protocol string
	port     string // empty: all
	sources  []string
	targets  []string
	note     string
}

type sshKey struct {
	id          int64
	name        string
	fingerprint string
	text        string
	labels      map[string]string
	created     time.Time
}

type volume struct {
	id      int64
	name    string
	size    int
	format  string
	server  *server
	region  string
	labels  map[string]string
	created time.Time
	entry   *LedgerEntry
	// protected tells that a delete is refused.
	protected bool
}

// action is something that takes its time.
type action struct {
	id       int64
	command  string
	started  time.Time
	takes    time.Duration
	finished time.Time // zero: still running
	// failed is the error that it ended with; empty: none.
	failCode, failText string
	resources          []resource
}

type resource struct {
	kind string
	id   int64
}

func (a *action) progress(now time.Time) int {
	if !a.finished.IsZero() {
		return 100
	}
	if a.takes <= 0 {
		return 0
	}
	return min(99, max(0, int(100*now.Sub(a.started)/a.takes)))
}

// begin starts an action and has done called when it ends. s.mu must be held.
func (s *Sim) begin(p *project, now time.Time, command string, takes time.Duration, done func(now time.Time), rs ...resource) *action {
	a := &action{id: s.world.id(p.provider, "action"), command: command, started: now, takes: takes, resources: rs}
	p.actions[a.id] = a
	s.after(now, takes, func(now time.Time) {
		a.finished = now
		if done != nil {
			done(now)
		}
	})
	return a
}

// sorted returns the values of a map in the order of their ids.
func sorted[T any](m map[int64]T) []T {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	out := make([]T, 0, len(ids))
	for _, id := range ids {
		out = append(out, m[id])
	}
	return out
}

// shownID is the id by which the provider shows the server.
func (s *server) shownID() string {
	if s.ref != "" {
		return s.ref
	}
	return itoa(s.id)
}

func (p *project) serverNamed(name string) *server {
	for _, s := range sorted(p.servers) {
		if s.name == name {
			return s
		}
	}
	return nil
}
