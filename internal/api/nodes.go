package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
)

type refInput struct {
	Ref string `path:"ref" doc:"a node's id, its name, or a prefix of either that no other node has" maxLength:"128"`
}

type createInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Any text. Every call with the same key and the same request returns the same node, also after a restart and after the node's end; the same key with another request is a conflict. Without a key each call makes a node."`
	Body client.CreateNode
}

type createOutput struct {
	Status int
	Body   client.Node
}

type listInput struct {
	Account string   `query:"account" doc:"of this account only"`
	Phase   []string `query:"phase" doc:"in one of these phases, separated by commas" nullable:"false" enum:"pending,creating,booting,joined,deleting,deleted,failed"`
	Label   []string `query:"label" doc:"with all of these labels, as key=value, separated by commas" nullable:"false"`
	Deleted bool     `query:"deleted" doc:"those that are deleted too"`
}

func (s *service) registerNodes() {
	register(s, huma.Operation{
		OperationID: "create-node", Method: http.MethodPost, Path: "/v1/nodes", Tags: []string{"nodes"}, DefaultStatus: http.StatusCreated,
		Summary:     "Create a node",
		Description: "Answers as soon as the intent is recorded; the work goes on. Follow it by GET /v1/events. The status is 201 for a new node, and 200 when the Idempotency-Key had made it before.",
	}, s.createNode)
	register(s, huma.Operation{
		OperationID: "plan-node", Method: http.MethodPost, Path: "/v1/plan", Tags: []string{"nodes"},
		Summary: "Say what a create would make and cost", Description: "Makes nothing.",
	}, s.planNode)
	register(s, huma.Operation{
		OperationID: "list-nodes", Method: http.MethodGet, Path: "/v1/nodes", Tags: []string{"nodes"}, Summary: "List nodes",
	}, s.listNodes)
	register(s, huma.Operation{
		OperationID: "get-node", Method: http.MethodGet, Path: "/v1/nodes/{ref}", Tags: []string{"nodes"}, Summary: "Get a node",
	}, func(ctx context.Context, in *refInput) (*out[client.Node], error) {
		n, err := s.fleet.Node(ctx, in.Ref)
		return answer(wireNode(n), err)
	})
	register(s, huma.Operation{
		OperationID: "delete-node", Method: http.MethodDelete, Path: "/v1/nodes/{ref}", Tags: []string{"nodes"}, DefaultStatus: http.StatusAccepted,
		Summary:     "Delete a node and its server",
		Description: "Answers as soon as the intent is recorded and the node's access revoked; it is gone when its phase is deleted. Deleting again is no error.",
	}, func(ctx context.Context, in *refInput) (*out[client.Node], error) {
		n, err := s.fleet.DeleteNode(ctx, in.Ref)
		return answer(wireNode(n), err)
	})
	register(s, huma.Operation{
		OperationID: "list-node-events", Method: http.MethodGet, Path: "/v1/nodes/{ref}/events", Tags: []string{"nodes"},
		Summary: "List a node's timeline", Description: "Oldest first; kept after the node's end.",
	}, func(ctx context.Context, in *refInput) (*out[client.EventList], error) {
		events, err := s.fleet.Events(ctx, in.Ref)
		return answer(client.EventList{Events: mapped(events, wireEvent)}, err)
	})
}

func (s *service) createNode(ctx context.Context, in *createInput) (*createOutput, error) {
	n, made, err := s.createOnce(ctx, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return &createOutput{Status: status, Body: wireNode(n)}, nil
}

func (s *service) planNode(ctx context.Context, in *struct{ Body client.CreateNode }) (*out[client.Plan], error) {
	spec, err := specOf(in.Body)
	if err != nil {
		return nil, err
	}
	if spec.Name == "" {
		spec.Name = madeUpName(rand.Reader)
	}
	p, err := s.fleet.PlanNode(ctx, spec)
	return answer(wirePlan(p), err)
}

func (s *service) listNodes(ctx context.Context, in *listInput) (*out[client.NodeList], error) {
	f := fleet.NodeFilter{Account: in.Account, IncludeDeleted: in.Deleted}
	for _, p := range in.Phase {
		f.Phases = append(f.Phases, fleet.Phase(p))
		f.IncludeDeleted = f.IncludeDeleted || fleet.Phase(p) == fleet.PhaseDeleted
	}
	for _, l := range in.Label {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, invalid("label: %q is not of the form key=value", l)
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[k] = v
	}
	nodes, err := s.fleet.Nodes(ctx, f)
	return answer(client.NodeList{Nodes: mapped(nodes, wireNode)}, err)
}
