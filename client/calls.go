package client

import (
	"context"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// NodeFilter selects nodes. The zero value selects all that are not deleted.
type NodeFilter struct {
	Account string
	Phases  []string
	// Labels must all be on the node, with these values.
	Labels         map[string]string
	IncludeDeleted bool
}

func (f NodeFilter) query() url.Values {
	q := url.Values{}
	if f.Account != "" {
		q.Set("account", f.Account)
	}
	if len(f.Phases) > 0 {
		q.Set("phase", strings.Join(f.Phases, ","))
	}
	labels := make([]string, 0, len(f.Labels))
	for k, v := range f.Labels {
		labels = append(labels, k+"="+v)
	}
	if len(labels) > 0 {
		sort.Strings(labels)
		q.Set("label", strings.Join(labels, ","))
	}
	if f.IncludeDeleted {
		q.Set("deleted", "true")
	}
	return q
}

// The answers that hold a list.
type (
	// NodeList is the answer to GET /v1/nodes.
	NodeList struct {
		Nodes []Node `json:"nodes" nullable:"false"`
	}
	// EventList is the answer to GET /v1/nodes/{ref}/events, oldest first.
	EventList struct {
		Events []Event `json:"events" nullable:"false"`
	}
	// AccountList is the answer to GET /v1/accounts.
	AccountList struct {
		Accounts []Account `json:"accounts" nullable:"false"`
	}
	// RegionList is the answer to GET /v1/accounts/{name}/regions.
	RegionList struct {
		Regions []Region `json:"regions" nullable:"false"`
	}
	// SizeList is the answer to GET /v1/accounts/{name}/sizes.
	SizeList struct {
		Sizes []Size `json:"sizes" nullable:"false"`
	}
)

// CreateTicket asks for a join ticket.
type CreateTicket struct {
	Name   string            `json:"name,omitempty" doc:"RFC 1123 label; a name is made up when empty"`
	Labels map[string]string `json:"labels,omitempty"`
	// JoinTimeout is how long the token is good for.
	JoinTimeout string `json:"join_timeout,omitempty" doc:"how long the token is good for, a duration as in 20m"`
}

// Info returns what the control plane says of itself.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var out Info
	return out, c.do(ctx, call{method: http.MethodGet, path: "/v1/info"}, &out)
}

// CreateNode asks for a node and returns its record at once; the work goes on
// in the control plane. One call makes one node, also when the connection
// broke and it had to be sent twice.
func (c *Client) CreateNode(ctx context.Context, in CreateNode) (Node, error) {
	return c.CreateNodeWithKey(ctx, uuid.NewString(), in)
}

// CreateNodeWithKey is CreateNode under a key of the caller's own: every call
// with the same key and the same request returns the same node, for ever. The
// same key with another request is ClassConflict.
func (c *Client) CreateNodeWithKey(ctx context.Context, key string, in CreateNode) (Node, error) {
	var out Node
	return out, c.do(ctx, call{
		method: http.MethodPost, path: "/v1/nodes", body: in,
		header: http.Header{"Idempotency-Key": {key}},
	}, &out)
}

// Plan returns what CreateNode would make and cost. It makes nothing.
func (c *Client) Plan(ctx context.Context, in CreateNode) (Plan, error) {
	var out Plan
	return out, c.do(ctx, call{method: http.MethodPost, path: "/v1/plan", body: in}, &out)
}

// Node returns one node. ref is its id, its name, or a prefix of either that
// no other node has.
func (c *Client) Node(ctx context.Context, ref string) (Node, error) {
	var out Node
	return out, c.do(ctx, call{method: http.MethodGet, path: "/v1/nodes/" + url.PathEscape(ref)}, &out)
}

// Nodes returns the nodes that f selects.
func (c *Client) Nodes(ctx context.Context, f NodeFilter) ([]Node, error) {
	var out NodeList
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/nodes", query: f.query()}, &out)
	return out.Nodes, err
}

// DeleteNode asks for a node's removal and returns its record at once, in
// phase deleting or deleted. Deleting again is no error while the record is found.
func (c *Client) DeleteNode(ctx context.Context, ref string) (Node, error) {
	var out Node
	return out, c.do(ctx, call{method: http.MethodDelete, path: "/v1/nodes/" + url.PathEscape(ref)}, &out)
}

// Events returns a node's timeline, oldest first, also of a deleted node.
func (c *Client) Events(ctx context.Context, ref string) ([]Event, error) {
	var out EventList
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/nodes/" + url.PathEscape(ref) + "/events"}, &out)
	return out.Events, err
}

// AddAccount registers a credential under a name.
func (c *Client) AddAccount(ctx context.Context, in AddAccount) (Account, error) {
	var out Account
	return out, c.do(ctx, call{method: http.MethodPost, path: "/v1/accounts", body: in}, &out)
}

// Accounts returns all accounts.
func (c *Client) Accounts(ctx context.Context) ([]Account, error) {
	var out AccountList
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/accounts"}, &out)
	return out.Accounts, err
}

// CheckAccount asks the provider whether the account's credential works.
func (c *Client) CheckAccount(ctx context.Context, name string) error {
	return c.do(ctx, call{method: http.MethodPost, path: "/v1/accounts/" + url.PathEscape(name) + "/check"}, nil)
}

// RemoveAccount forgets an account and its credential. It is ClassRefused
// while nodes use it.
func (c *Client) RemoveAccount(ctx context.Context, name string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/v1/accounts/" + url.PathEscape(name)}, nil)
}

// Regions returns where the account can create servers.
func (c *Client) Regions(ctx context.Context, account string) ([]Region, error) {
	var out RegionList
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/accounts/" + url.PathEscape(account) + "/regions"}, &out)
	return out.Regions, err
}

// Sizes returns what the account can have in a region.
func (c *Client) Sizes(ctx context.Context, account, region string) ([]Size, error) {
	var out SizeList
	err := c.do(ctx, call{
		method: http.MethodGet, path: "/v1/accounts/" + url.PathEscape(account) + "/sizes",
		query: url.Values{"region": {region}},
	}, &out)
	return out.Sizes, err
}

// Ticket returns what a machine needs to join that Slipway did not make. The
// token in it is shown this once.
func (c *Client) Ticket(ctx context.Context, in CreateTicket) (JoinTicket, error) {
	var out JoinTicket
	return out, c.do(ctx, call{method: http.MethodPost, path: "/v1/tickets", body: in}, &out)
}

// Audit compares accounts with the records: all, or those named.
func (c *Client) Audit(ctx context.Context, accounts ...string) (AuditReport, error) {
	return c.audit(ctx, http.MethodGet, accounts)
}

// RemoveLeftovers audits and removes what it finds left over.
func (c *Client) RemoveLeftovers(ctx context.Context, accounts ...string) (AuditReport, error) {
	return c.audit(ctx, http.MethodPost, accounts)
}

func (c *Client) audit(ctx context.Context, method string, accounts []string) (AuditReport, error) {
	q := url.Values{}
	if len(accounts) > 0 {
		q.Set("account", strings.Join(accounts, ","))
	}
	var out AuditReport
	return out, c.do(ctx, call{method: method, path: "/v1/audit", query: q}, &out)
}

func seqString(n int64) string { return strconv.FormatInt(n, 10) }
