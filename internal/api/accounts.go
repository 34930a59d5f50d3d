package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
)

type accountInput struct {
	Name string `path:"name" maxLength:"128" doc:"the account's name"`
}

type sizesInput struct {
	Name   string `path:"name" maxLength:"128" doc:"the account's name"`
	Region string `query:"region" required:"true" minLength:"1" doc:"a region's id"`
}

func (s *service) registerAccounts() {
	tags := []string{"accounts"}
	register(s, huma.Operation{
		OperationID: "add-account", Method: http.MethodPost, Path: "/v1/accounts", Tags: tags, DefaultStatus: http.StatusCreated,
		Summary: "Register a credential under a name", Description: "The provider is asked first whether the credential works. It is stored encrypted and never shown again.",
	}, func(ctx context.Context, in *struct{ Body client.AddAccount }) (*out[client.Account], error) {
		a, err := s.fleet.AddAccount(ctx, fleet.AccountSpec(in.Body))
		return answer(wireAccount(a), err)
	})
	register(s, huma.Operation{
		OperationID: "list-accounts", Method: http.MethodGet, Path: "/v1/accounts", Tags: tags, Summary: "List accounts",
	}, func(ctx context.Context, _ *struct{}) (*out[client.AccountList], error) {
		list, err := s.fleet.Accounts(ctx)
		return answer(client.AccountList{Accounts: mapped(list, wireAccount)}, err)
	})
	register(s, huma.Operation{
		OperationID: "check-account", Method: http.MethodPost, Path: "/v1/accounts/{name}/check", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Ask the provider whether an account's credential works",
	}, func(ctx context.Context, in *accountInput) (*struct{}, error) {
		return nil, s.fleet.CheckAccount(ctx, in.Name)
	})
	register(s, huma.Operation{
		OperationID: "remove-account", Method: http.MethodDelete, Path: "/v1/accounts/{name}", Tags: tags, DefaultStatus: http.StatusNoContent,
		Summary: "Forget an account and its credential", Description: "Refused while nodes use it.",
	}, func(ctx context.Context, in *accountInput) (*struct{}, error) {
		return nil, s.fleet.RemoveAccount(ctx, in.Name)
	})
	register(s, huma.Operation{
		OperationID: "list-regions", Method: http.MethodGet, Path: "/v1/accounts/{name}/regions", Tags: tags, Summary: "List where an account can create servers",
	}, func(ctx context.Context, in *accountInput) (*out[client.RegionList], error) {
		list, err := s.fleet.Regions(ctx, in.Name)
		return answer(client.RegionList{Regions: WireRegions(list)}, err)
	})
	register(s, huma.Operation{
		OperationID: "list-sizes", Method: http.MethodGet, Path: "/v1/accounts/{name}/sizes", Tags: tags, Summary: "List what an account can have in a region",
	}, func(ctx context.Context, in *sizesInput) (*out[client.SizeList], error) {
		list, err := s.fleet.Sizes(ctx, in.Name, in.Region)
		return answer(client.SizeList{Sizes: WireSizes(list)}, err)
	})
}
