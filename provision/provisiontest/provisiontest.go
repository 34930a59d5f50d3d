// Package provisiontest holds the contract of provision.Provisioner as tests:
// each sentence of it is one test, and every implementation passes all of
// them. Whoever writes a Provisioner runs the suite from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		provisiontest.Run(t, provisiontest.Harness{Open: openAccount})
//	}
//
// The suite makes and removes servers. Give it a simulated cloud, or an
// account that may cost money. What a harness cannot do (inject faults, look
// at the bill) it leaves nil; the tests that need it are skipped, by name.
package provisiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// Harness makes accounts for the tests.
type Harness struct {
	// Open returns an empty account that no other test uses. It is called once
	// per test, and registers its own clean-up.
	Open func(t *testing.T) *Account
	// Around runs one test; nil runs it plainly. With synctest.Test as its
	// value, pauses between repeats take no time.
	Around func(t *testing.T, test func(t *testing.T))
}

// Account is one account at a provider, and what the suite may know of it.
type Account struct {
	// Provisioner is the one under test.
	Provisioner provision.Provisioner
	// Reopen returns a further Provisioner for the same account, with the same
	// options and no memory: what a program has after a crash.
	Reopen func(t *testing.T) provision.Provisioner
	// Intruder is a Provisioner for the same provider with a credential that it
	// does not accept.
	Intruder provision.Provisioner
	// ReadOnly is one whose credential may read and not write; nil when the
	// provider has no such thing.
	ReadOnly provision.Provisioner

	// Region and Size are offered together; OtherSize is offered there too.
	Region, Size, OtherSize string
	// MissingID is a well-formed id of no server.
	MissingID string
	// MalformedID is no id at this provider. Default: "no/such id".
	MalformedID string
	// UserDataLimit is the most bytes that the provider takes; 0 when unknown.
	UserDataLimit int
	// StaticSizes tells that ListSizes answers from a list of its own, and asks
	// nobody.
	StaticSizes bool
	// Secrets are texts that no error may hold, the credential first.
	Secrets []string

	// Settle returns when the provider has finished what was asked of it:
	// servers have booted, deletes have ended. Nil means that this is at once.
	Settle func()
	// Billable names what costs money now, as the provider's own bill has it.
	Billable func() []string
	// SSHReachable tells whether a packet to TCP port 22 of the server passes
	// its firewall.
	SSHReachable func(serverID string) bool
	// Faults are what the provider can be made to do.
	Faults Faults
}

// Faults make the provider misbehave, once: at the next create call of a
// server, whoever sends it.
type Faults struct {
	// LoseCreate lets the call take effect and loses its answer.
	LoseCreate func()
	// BreakCreate fails the call with a server error, without effect.
	BreakCreate func()
	// NoCapacity, NoQuota and Throttle refuse the call for that reason.
	NoCapacity, NoQuota, Throttle func()
}

// clause is one sentence of the contract.
type clause struct {
	name string
	test func(t *testing.T, a *Account)
}

// Run tests the whole contract.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("provisiontest: Harness.Open is nil")
	}
	groups := []struct {
		name    string
		clauses []clause
	}{
		{"Regions", regionClauses},
		{"Sizes", sizeClauses},
		{"Create", createClauses},
		{"Idempotency", idempotencyClauses},
		{"SSH", sshClauses},
		{"Get", getClauses},
		{"Delete", deleteClauses},
		{"List", listClauses},
		{"Audit", auditClauses},
		{"Preflight", preflightClauses},
		{"Errors", errorClauses},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.clauses {
				t.Run(c.name, func(t *testing.T) { h.run(t, c.test) })
			}
		})
	}
}

func (h Harness) run(t *testing.T, test func(t *testing.T, a *Account)) {
	body := func(t *testing.T) {
		a := h.Open(t)
		if a.Settle == nil {
			a.Settle = func() {}
		}
		if a.MalformedID == "" {
			a.MalformedID = "no/such id"
		}
		test(t, a)
	}
	if h.Around == nil {
		body(t)
		return
	}
	h.Around(t, body)
}

// callTime is far more than any call of the suite needs.
const callTime = 5 * time.Minute

func callContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	t.Cleanup(cancel)
	return ctx
}

// opts are the options of a create that nothing speaks against.
func (a *Account) opts(name string) provision.CreateOpts {
	return provision.CreateOpts{
		Region: a.Region, Size: a.Size, Name: name,
		UserData:       "#cloud-config\nhostname: " + name + "\n",
		IdempotencyKey: "key of " + name,
		Labels:         map[string]string{"suite-node": name},
	}
}

func (a *Account) create(t *testing.T, opts provision.CreateOpts) (id, ip string) {
	t.Helper()
	id, ip, err := a.Provisioner.CreateServer(callContext(t), opts)
	if err != nil {
		t.Fatalf("CreateServer(%q): %v", opts.Name, err)
	}
	if id == "" {
		t.Fatalf("CreateServer(%q) returned no id and no error", opts.Name)
	}
	return id, ip
}

// delete removes a server and waits until it is seen to be gone.
func (a *Account) delete(t *testing.T, id string) {
	t.Helper()
	if err := a.Provisioner.DeleteServer(callContext(t), id); err != nil {
		t.Fatalf("DeleteServer(%s): %v", id, err)
	}
	a.gone(t, id)
}

// settleTries is how often a state is waited for.
const settleTries = 20

func (a *Account) gone(t *testing.T, id string) {
	t.Helper()
	var status provision.ServerStatus
	var err error
	for range settleTries {
		a.Settle()
		if status, _, err = a.Provisioner.GetServer(callContext(t), id); errors.Is(err, provision.ErrNotFound) {
			return
		}
	}
	t.Fatalf("server %s is not gone: status %q, error %v", id, status, err)
}

// running waits for a server to run, and returns its address.
func (a *Account) running(t *testing.T, id string) string {
	t.Helper()
	var status provision.ServerStatus
	var ip string
	var err error
	for range settleTries {
		a.Settle()
		status, ip, err = a.Provisioner.GetServer(callContext(t), id)
		if err == nil && status == provision.ServerStatusRunning && ip != "" {
			return ip
		}
	}
	t.Fatalf("server %s does not run: status %q, address %q, error %v", id, status, ip, err)
	return ""
}

// servers lists all servers, or skips a test that needs it.
func (a *Account) servers(t *testing.T) []provision.Server {
	t.Helper()
	l, ok := a.Provisioner.(provision.Lister)
	if !ok {
		t.Skip("not a Lister")
	}
	list, err := l.ListServers(callContext(t))
	if err != nil {
		t.Fatalf("ListServers: %v", err)
	}
	return list
}

// wantServers checks which servers there are, by id.
func (a *Account) wantServers(t *testing.T, ids ...string) {
	t.Helper()
	list := a.servers(t)
	want := map[string]bool{}
	for _, id := range ids {
		want[id] = true
	}
	for _, s := range list {
		if !want[s.ID] {
			t.Errorf("there is a server %s %q that should not be", s.ID, s.Name)
		}
		delete(want, s.ID)
	}
	for id := range want {
		t.Errorf("server %s is missing from the list", id)
	}
}

// wantNothingLeft checks by the audit and by the bill that nothing is left
// but what the whole account shares.
func (a *Account) wantNothingLeft(t *testing.T) {
	t.Helper()
	a.Settle()
	if auditor, ok := a.Provisioner.(provision.Auditor); ok {
		rs, err := auditor.ListResources(callContext(t))
		if err != nil {
			t.Fatalf("ListResources: %v", err)
		}
		for _, r := range rs {
			if !r.Shared {
				t.Errorf("left over: %s %s %q", r.Kind, r.ID, r.Name)
			}
			if r.Shared && r.Billable {
				t.Errorf("shared and billable: %s %s %q", r.Kind, r.ID, r.Name)
			}
		}
	}
	if a.Billable != nil {
		if left := a.Billable(); len(left) > 0 {
			t.Errorf("still on the bill: %s", strings.Join(left, ", "))
		}
	}
}

var classes = []error{
	provision.ErrCapacity, provision.ErrQuota, provision.ErrRateLimited, provision.ErrUnauthorized, provision.ErrForbidden,
	provision.ErrNotFound, provision.ErrConflict, provision.ErrInvalid, provision.ErrUnavailable,
}

// wantClass checks an error's class, and what holds of every error: it has
// exactly one class, its word, a text on one line, and no secret.
func (a *Account) wantClass(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s succeeded, want %v", what, want)
		return
	}
	var has []string
	matches := false
	for _, c := range classes {
		if errors.Is(err, c) {
			has = append(has, c.Error())
			for _, w := range want {
				matches = matches || errors.Is(c, w)
			}
		}
	}
	switch {
	case len(has) != 1:
		t.Errorf("%s: error has the classes %v, want exactly one: %v", what, has, err)
	case !matches:
		t.Errorf("%s: class is %v, want %v: %v", what, has, want, err)
	case provision.ClassName(err) == "":
		t.Errorf("%s: ClassName is empty: %v", what, err)
	}
	var e *provision.ProviderError
	if !errors.As(err, &e) {
		t.Errorf("%s: no *ProviderError in %T: %v", what, err, err)
	} else if e.Provider == "" || e.Op == "" {
		t.Errorf("%s: error does not say where: provider %q, op %q", what, e.Provider, e.Op)
	}
	text := fmt.Sprintf("%v %+v %#v", err, err, e)
	for _, s := range a.Secrets {
		if s != "" && strings.Contains(text, s) {
			t.Errorf("%s: the error holds a secret", what)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("%s: error text has several lines: %q", what, err.Error())
	}
}

func need(t *testing.T, hook string, has bool) {
	t.Helper()
	if !has {
		t.Skipf("the harness has no %s", hook)
	}
}
