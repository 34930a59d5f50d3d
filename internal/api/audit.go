package api

import (
	"context"
	"crypto/rand"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
)

type auditInput struct {
	Account []string `query:"account" doc:"these accounts only, separated by commas; all when absent" nullable:"false"`
}

func (s *service) registerAudit() {
	tags := []string{"fleet"}
	register(s, huma.Operation{
		OperationID: "get-info", Method: http.MethodGet, Path: "/v1/info", Tags: tags, Summary: "Say who this control plane is",
	}, func(context.Context, *struct{}) (*out[client.Info], error) {
		return &out[client.Info]{Body: s.opts.Info}, nil
	})
	register(s, huma.Operation{
		OperationID: "create-ticket", Method: http.MethodPost, Path: "/v1/tickets", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary:     "Make a join ticket",
		Description: "What a machine needs to join that Slipway did not make. The token in it works once and is shown this once.",
	}, s.createTicket)
	register(s, huma.Operation{
		OperationID: "audit", Method: http.MethodGet, Path: "/v1/audit", Tags: tags,
		Summary: "Compare accounts with the records", Description: "What exists and should not, what should exist and does not. Changes nothing.",
	}, func(ctx context.Context, in *auditInput) (*out[client.AuditReport], error) {
		r, err := s.fleet.Audit(ctx, in.Account...)
		return answer(wireReport(r), err)
	})
	register(s, huma.Operation{
		OperationID: "remove-leftovers", Method: http.MethodPost, Path: "/v1/audit", Tags: tags,
		Summary: "Audit, and remove what is left over", Description: "Removes findings of kind leftover, nothing else. Each finding says what became of it.",
	}, func(ctx context.Context, in *auditInput) (*out[client.AuditReport], error) {
		r, err := s.fleet.RemoveLeftovers(ctx, in.Account...)
		return answer(wireReport(r), err)
	})
}

func (s *service) createTicket(ctx context.Context, in *struct{ Body client.CreateTicket }) (*out[client.JoinTicket], error) {
	timeout, err := duration(in.Body.JoinTimeout)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(in.Body.Labels); err != nil {
		return nil, err
	}
	spec := fleet.NodeSpec{Name: in.Body.Name, Labels: in.Body.Labels, JoinTimeout: timeout}
	if spec.Name == "" {
		spec.Name = madeUpName(rand.Reader)
	}
	t, err := s.fleet.Ticket(ctx, spec)
	return answer(wireTicket(t), err)
}
