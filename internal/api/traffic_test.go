package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// judge is a transport that holds each answer to the OpenAPI document.
type judge struct {
	t   *testing.T
	doc *huma.OpenAPI

	mu   sync.Mutex
	seen map[string]bool // operation ids that were answered well
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, err
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	if err != nil {
		return resp, err
	}
	op := j.operation(r.Method, r.URL.Path)
	if op == nil {
		j.t.Errorf("%s %s is not in the document", r.Method, r.URL.Path)
		return resp, nil
	}
	described := op.Responses[strconv.Itoa(resp.StatusCode)]
	if described == nil && resp.StatusCode == http.StatusOK && op.OperationID == "create-node" {
		described = op.Responses["201"] // a repeat; the description says so
	}
	if described == nil {
		described = op.Responses["default"]
	} else {
		j.mu.Lock()
		j.seen[op.OperationID] = true
		j.mu.Unlock()
	}
	if len(data) == 0 {
		if len(described.Content) > 0 {
			j.t.Errorf("%s: %d without a body", op.OperationID, resp.StatusCode)
		}
		return resp, nil
	}
	media := described.Content[resp.Header.Get("Content-Type")]
	if media == nil {
		j.t.Errorf("%s: %d has Content-Type %q", op.OperationID, resp.StatusCode, resp.Header.Get("Content-Type"))
		return resp, nil
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		j.t.Errorf("%s: %v", op.OperationID, err)
		return resp, nil
	}
	res := &huma.ValidateResult{}
	huma.Validate(j.doc.Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, res)
	for _, e := range res.Errors {
		j.t.Errorf("%s: %d: %v in %s", op.OperationID, resp.StatusCode, e, data)
	}
	return resp, nil
}

func (j *judge) operation(method, path string) *huma.Operation {
	parts := strings.Split(path, "/")
next:
	for p, item := range j.doc.Paths {
		want := strings.Split(p, "/")
		if len(want) != len(parts) {
			continue
		}
		for i := range want {
			if want[i] != parts[i] && !strings.HasPrefix(want[i], "{") {
				continue next
			}
		}
		switch method {
		case http.MethodGet:
			return item.Get
		case http.MethodPost:
			return item.Post
		case http.MethodDelete:
			return item.Delete
		}
	}
	return nil
}

// TestClientAndDocumentAgree drives every call of the client against the
// handler, and holds each answer to the document.
func TestClientAndDocumentAgree(t *testing.T) {
	f, url := start(t, api.Options{})
	f.Report = fleet.AuditReport{
		Findings: []fleet.Finding{
			{Kind: fleet.FindingLeftover, Account: "prod", Resource: provision.Resource{Kind: "server", ID: "9", Name: "old", Billable: true, CreatedAt: apitest.Start.AddDate(0, 0, -1)}, Message: "belongs to no node"},
			{Kind: fleet.FindingLeftover, Account: "prod", Resource: provision.Resource{Kind: "volume", ID: "3"}, Err: provision.ErrForbidden},
		},
		Errors: map[string]error{"other": provision.ErrUnauthorized},
	}
	j := &judge{t: t, doc: api.OpenAPI(), seen: map[string]bool{}}
	c, err := client.New(client.Options{URL: url, Token: apitest.Token, Transport: j})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = c.Info(ctx)
	must("info", err)
	_, err = c.AddAccount(ctx, client.AddAccount{Name: "second", Provider: "hetzner", Credential: "c"})
	must("add account", err)
	_, err = c.Accounts(ctx)
	must("accounts", err)
	must("check", c.CheckAccount(ctx, "second"))
	_, err = c.Regions(ctx, "prod")
	must("regions", err)
	sizes, err := c.Sizes(ctx, "prod", "fsn1")
	must("sizes", err)
	if len(sizes) != 3 {
		t.Errorf("sizes: %+v", sizes)
	}
	in := client.CreateNode{Name: "web-1", Account: "prod", Candidates: []client.Candidate{{Region: "fsn1", Size: "cx23"}}, Labels: map[string]string{"a": "b"},
		AllowSSHInbound: true, SSHKeys: []string{"k"}, SSHSourceCIDRs: []string{"203.0.113.0/24"}, Architecture: "x86", JoinTimeout: "10m"}
	_, err = c.Plan(ctx, in)
	must("plan", err)
	n, err := c.CreateNodeWithKey(ctx, "k", in)
	must("create", err)
	again, err := c.CreateNodeWithKey(ctx, "k", in)
	must("create again", err)
	if again.ID != n.ID {
		t.Error("the same key made two nodes")
	}
	_, err = c.Node(ctx, n.ID)
	must("node", err)
	_, err = c.Nodes(ctx, client.NodeFilter{Account: "prod", Phases: []string{"joined"}, Labels: map[string]string{"a": "b"}, IncludeDeleted: true})
	must("nodes", err)
	_, err = c.Events(ctx, n.ID)
	must("events", err)
	_, err = c.Ticket(ctx, client.CreateTicket{Name: "rack-1", JoinTimeout: "1h", Labels: map[string]string{"a": "b"}})
	must("ticket", err)
	report, err := c.Audit(ctx, "prod")
	must("audit", err)
	if report.Complete || len(report.Errors) != 1 || report.Findings[0].Age != "24h0m0s" {
		t.Errorf("report: %+v", report)
	}
	report, err = c.RemoveLeftovers(ctx)
	must("remove leftovers", err)
	if !report.Findings[0].Removed || report.Findings[1].Removed || report.Findings[1].Error == "" {
		t.Errorf("report: %+v", report)
	}
	_, err = c.DeleteNode(ctx, "web-1")
	must("delete", err)
	must("remove account", c.RemoveAccount(ctx, "second"))

	var ce *client.Error
	if _, err := c.Node(ctx, "nope"); !errors.As(err, &ce) || ce.Class != client.ClassNotFound || ce.Status != 404 || ce.Hint == "" {
		t.Errorf("no such node: %+v", err)
	}
	for _, item := range j.doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			if op != nil && !j.seen[op.OperationID] && op.OperationID != "watch-events" {
				t.Errorf("%s was not driven", op.OperationID)
			}
		}
	}
}
