// Package api serves the HTTP API over a fleet: JSON under /v1, described by an
// OpenAPI 3.1 document that is made from the Go types of package client.
//
// Every call needs the bearer token. Every failure is an RFC 9457 problem with
// a class, and for people a hint; [ProblemOf] is the one place where errors
// become answers.
package api

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// Fleet is what the API is a door to. Its errors carry a class: they are
// *fleet.Error, or wrap one of fleet's or provision's error values.
type Fleet interface {
	CreateNode(ctx context.Context, spec fleet.NodeSpec) (fleet.Node, error)
	PlanNode(ctx context.Context, spec fleet.NodeSpec) (fleet.Plan, error)
	Node(ctx context.Context, ref string) (fleet.Node, error)
	Nodes(ctx context.Context, f fleet.NodeFilter) ([]fleet.Node, error)
	DeleteNode(ctx context.Context, ref string) (fleet.Node, error)
	Events(ctx context.Context, ref string) ([]fleet.Event, error)
	Watch(ctx context.Context, afterSeq int64, nodeRef string) iter.Seq2[fleet.Event, error]

	AddAccount(ctx context.Context, spec fleet.AccountSpec) (fleet.Account, error)
	Accounts(ctx context.Context) ([]fleet.Account, error)
	CheckAccount(ctx context.Context, name string) error
	RemoveAccount(ctx context.Context, name string) error
	Regions(ctx context.Context, account string) ([]provision.Region, error)
	Sizes(ctx context.Context, account, region string) ([]provision.Size, error)

	Ticket(ctx context.Context, spec fleet.NodeSpec) (fleet.JoinTicket, error)
	Audit(ctx context.Context, accounts ...string) (fleet.AuditReport, error)
	RemoveLeftovers(ctx context.Context, accounts ...string) (fleet.AuditReport, error)
}

// Options configures the handler.
type Options struct {
	// Token is the bearer token that lets a caller in; see [OpenToken]. Only
	// its hash is kept. It must not be empty.
	Token string
	// Info is what GET /v1/info answers.
	Info client.Info
	// Logger gets one line for each request, and the reason of each answer of
	// the 500 family. Nil means no log.
	Logger *slog.Logger
	// KeepAlive is how often a silent event stream shows a sign of life; 0
	// means every 15 seconds, which the client relies on.
	KeepAlive time.Duration
}

// New returns the API's handler. Event streams end when the request's context
// does: give the http.Server a BaseContext that ends before its Shutdown.
func New(f Fleet, o Options) (http.Handler, error) {
	if o.Token == "" {
		return nil, errors.New("api: no token")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	mux := http.NewServeMux()
	newService(f, o, mux)
	mux.HandleFunc("/", notFound)
	return chain(mux, o), nil
}

// Document returns the OpenAPI document as YAML.
func Document() ([]byte, error) {
	s := newService(nil, Options{}, http.NewServeMux())
	return s.api.OpenAPI().YAML()
}

// service holds the operations.
type service struct {
	fleet Fleet
	opts  Options
	api   huma.API
	keys  keyLocks
	made  madeNodes
}

func newService(f Fleet, o Options, mux *http.ServeMux) *service {
	s := &service{fleet: f, opts: o}
	s.api = humago.New(mux, config())
	s.registerNodes()
	s.registerEvents()
	s.registerAccounts()
	s.registerAudit()
	finishDocument(s.api.OpenAPI())
	return s
}

// out is an answer with a body.
type out[T any] struct{ Body T }

func answer[T any](body T, err error) (*out[T], error) {
	if err != nil {
		return nil, err
	}
	return &out[T]{Body: body}, nil
}

// register adds an operation whose errors become problems.
func register[I, O any](s *service, op huma.Operation, h func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	op.Responses = map[string]*huma.Response{"default": problemResponse(s.api.OpenAPI())}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		res, err := h(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, op.OperationID, err)
		}
		return res, nil
	})
}
