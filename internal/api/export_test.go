package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// OpenAPI is the document, for tests.
func OpenAPI() *huma.OpenAPI {
	return newService(nil, Options{}, http.NewServeMux()).api.OpenAPI()
}
