package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/slipway-dev/slipway/client"
)

// version is the API's own, not the product's: it changes with the calls.
const version = "1.0.0"

const describe = `What the command line and the web page do, they do through these calls.

Every call needs ` + "`Authorization: Bearer <token>`" + `; the token is in the file api-token of the control
plane's data directory. Times are RFC 3339 in UTC. Prices are decimal numbers as text, a month each, with their currency.

A failure is answered as application/problem+json (RFC 9457). Its class says what kind it is and is stable; its detail
and hint are for people and may change. Fields are added within v1 and never taken away: ignore those that you do not
know.`

func config() huma.Config {
	c := huma.DefaultConfig("Slipway", version)
	c.Info.Description = describe
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	// No $schema links in answers, no documentation page from a stranger's CDN.
	c.CreateHooks = nil
	c.DocsPath, c.SchemasPath = "", ""
	c.OpenAPIPath = "/v1/openapi"
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{problemFromModel}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "the token in the file api-token of the control plane's data directory"},
	}
	c.Security = []map[string][]string{{"token": {}}}
	c.Tags = []*huma.Tag{
		{Name: "nodes", Description: "fleet members"},
		{Name: "accounts", Description: "credentials at providers, and what can be had with them"},
		{Name: "fleet", Description: "the control plane, join tickets and the audit"},
	}
	return c
}

func problemResponse(doc *huma.OpenAPI) *huma.Response {
	return &huma.Response{
		Description: "A failure, as RFC 9457 has it.",
		Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: doc.Components.Schemas.Schema(reflect.TypeFor[client.Problem](), true, "Problem")},
		},
	}
}

// requests are the schemas whose unknown fields are refused, so that a
// misspelt one does not go unnoticed.
var requests = map[string]bool{"CreateNode": true, "AddAccount": true, "CreateTicket": true, "Candidate": true}

// finishDocument takes out huma's own error model, which is never sent, and lets answers grow.
func finishDocument(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	for name, s := range schemas {
		if !requests[name] && s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
	}
}
