package cloudsim

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Operations: every change answers with one, and is over when it is DONE, well
// or not.

const (
	gcpWait = "wait for operation"
	// gcpWaits is the most that a wait takes, in real time.
	gcpWaits = 2 * time.Minute
	// gcpStamp is how times are written, in the time of California.
	gcpStamp = "2006-01-02T15:04:05.000-07:00"
)

var gcpTime = time.FixedZone("", -8*3600)

func gcpWritten(t time.Time) string { return t.In(gcpTime).Format(gcpStamp) }

type gcpOperation struct {
	id       int64
	name     string
	scope    string
	kind     string // insert, delete, …
	target   string // as projects/…
	targetID int64
	user     string
	request  string
	started  time.Time
	ended    time.Time // zero: it runs
	failed   *gcpOpFailure
	over     chan struct{} // closed at the end
}

// gcpOpFailure is what an operation ended with.
type gcpOpFailure struct {
	status        int
	code, message string
	details       []any
}

var gcpRequestID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// remembered is the operation that a request with this id began before.
func (g gcp) remembered() (*gcpOperation, error) {
	id := g.r.URL.Query().Get("requestId")
	if id == "" {
		return nil, nil
	}
	if !gcpRequestID.MatchString(id) || strings.Trim(id, "0-") == "" {
		return nil, gcpInvalid("requestId", id, "Must be a valid, non-zero UUID.")
	}
	return g.account.requests[id], nil
}

// begin starts an operation and has done called when it ends; done may say
// that it failed.
func (g gcp) begin(kind string, t *gcpThing, takes time.Duration, done func(now time.Time) *gcpOpFailure) *gcpOperation {
	w := g.sim.world
	op := &gcpOperation{
		id: w.id(gcpName, "operation"), scope: t.scope, kind: kind, target: g.account.path(t.scope, t.kind.collection, t.name), targetID: t.id,
		user: g.token.email, started: g.now, over: make(chan struct{}), request: g.r.URL.Query().Get("requestId"),
	}
	op.name = fmt.Sprintf("operation-%d-%013x-%08x-%08x", g.now.UnixMilli(), w.rand.Uint64()&(1<<52-1), w.rand.Uint32(), w.rand.Uint32())
	g.account.operations[op.scope+"/"+op.name] = op
	g.account.history = append(g.account.history, op)
	if op.request != "" {
		g.account.requests[op.request] = op
	}
	g.sim.after(g.now, takes, func(now time.Time) {
		if done != nil {
			op.failed = done(now)
		}
		op.ended = now
		close(op.over)
	})
	return op
}

// start begins an operation and answers with it.
func (g gcp) start(kind string, t *gcpThing, takes time.Duration, done func(now time.Time) *gcpOpFailure) error {
	g.send(g.renderOperation(g.begin(kind, t, takes, done)))
	return nil
}

func (g gcp) renderOperation(op *gcpOperation) map[string]any {
	self := gcpHost + "projects/" + g.account.project + "/" + op.scope + "/operations/" + op.name
	out := map[string]any{
		"kind": "compute#operation", "id": itoa(op.id), "name": op.name, "operationType": op.kind, "status": "RUNNING", "progress": 0,
		"targetLink": gcpHost + op.target, "targetId": itoa(op.targetID), "user": op.user, "insertTime": gcpWritten(op.started),
		"startTime": gcpWritten(op.started), "selfLink": self,
	}
	gcpPutScope(out, op.scope, g.account.project)
	if op.request != "" {
		out["clientOperationId"] = op.request
	}
	if op.ended.IsZero() {
		return out
	}
	out["status"], out["progress"], out["endTime"] = "DONE", 100, gcpWritten(op.ended)
	if f := op.failed; f != nil {
		one := map[string]any{"code": f.code, "message": f.message}
		if f.details != nil {
			one["errorDetails"] = f.details
		}
		out["httpErrorStatusCode"], out["httpErrorMessage"] = f.status, strings.ToUpper(http.StatusText(f.status))
		out["error"] = map[string]any{"errors": []any{one}}
	}
	return out
}

// gcpPutScope adds the zone's or the region's address.
func gcpPutScope(out map[string]any, scope, project string) {
	kind, name, ok := strings.Cut(scope, "/")
	if ok {
		out[strings.TrimSuffix(kind, "s")] = gcpHost + "projects/" + project + "/" + kind + "/" + name
	}
}

// scope is the one that the request's path names.
func (g gcp) scope() string {
	switch {
	case g.r.PathValue("zone") != "":
		return "zones/" + g.r.PathValue("zone")
	case g.r.PathValue("region") != "":
		return "regions/" + g.r.PathValue("region")
	}
	return gcpGlobal
}

func (g gcp) findOperation() (*gcpOperation, error) {
	name := g.r.PathValue("name")
	if op := g.account.operations[g.scope()+"/"+name]; op != nil {
		return op, nil
	}
	for _, op := range g.account.history {
		if itoa(op.id) == name && op.scope == g.scope() {
			return op, nil
		}
	}
	return nil, gcpMissing(g.account.path(g.scope(), "operations", name))
}

func (g gcp) getOperation() error {
	op, err := g.findOperation()
	if err != nil {
		return err
	}
	g.send(g.renderOperation(op))
	return nil
}

func (g gcp) listOperations() error {
	if err := g.checkScope(); err != nil {
		return err
	}
	var rows []gcpRow
	for _, op := range g.account.history {
		if op.scope == g.scope() && g.account.operations[op.scope+"/"+op.name] == op {
			rows = append(rows, gcpRow{op.scope, g.renderOperation(op)})
		}
	}
	return g.page("compute#operationList", rows)
}

func (g gcp) deleteOperation() error {
	op, err := g.findOperation()
	if err != nil {
		return err
	}
	delete(g.account.operations, op.scope+"/"+op.name)
	g.call.w.WriteHeader(http.StatusNoContent)
	return nil
}

// waitForOperation waits for its end, for as long as a wait does. With a clock
// that stands still there is nothing to wait for.
func (g gcp) waitForOperation() {
	var op *gcpOperation
	g.sim.locked(func(time.Time) { op, _ = g.findOperation() })
	if op == nil || g.sim.opts.Manual {
		return
	}
	limit := time.NewTimer(gcpWaits)
	defer limit.Stop()
	select {
	case <-op.over:
	case <-limit.C:
	case <-g.r.Context().Done():
	}
}
