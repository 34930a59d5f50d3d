package api

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference pages anew")

// TestReferenceIsCurrent: docs/reference/openapi.yaml is what the code says.
// Written anew by: go test ./internal/api -run Reference -update
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "reference", "openapi.yaml")
	want, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: run go test ./internal/api -run Reference -update", path)
	}
}

// TestReferencePage: docs/reference/api.md names every call and every class
// with its status.
func TestReferencePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := newService(nil, Options{}, http.NewServeMux())
	n := 0
	for path, item := range s.api.OpenAPI().Paths {
		for method, has := range map[string]bool{"GET": item.Get != nil, "POST": item.Post != nil, "DELETE": item.Delete != nil} {
			if !has {
				continue
			}
			n++
			if call := "| `" + method + " " + path + "` |"; !strings.Contains(string(page), call) {
				t.Errorf("the page lacks %s", call)
			}
		}
	}
	if n < 17 {
		t.Errorf("only %d calls; this test would hold nothing", n)
	}
	for class, status := range statusOf {
		if row := "| " + class + " | " + strconv.Itoa(status) + " |"; !strings.Contains(string(page), row) {
			t.Errorf("the page lacks %s", row)
		}
		if titleOf[class] == "" {
			t.Errorf("%s has no title", class)
		}
	}
}

func TestDocument(t *testing.T) {
	s := newService(nil, Options{}, http.NewServeMux())
	doc := s.api.OpenAPI()
	for _, name := range []string{"ErrorModel", "ErrorDetail"} {
		if _, ok := doc.Components.Schemas.Map()[name]; ok {
			t.Errorf("the document has huma's %s", name)
		}
	}
	for path, item := range doc.Paths {
		if item.Get != nil && item.Get.Responses["default"] == nil {
			t.Errorf("GET %s does not say how it fails", path)
		}
	}
	schemas := doc.Components.Schemas.Map()
	if schemas["AddAccount"].AdditionalProperties != false {
		t.Error("a request may have unknown fields")
	}
	if schemas["Node"].AdditionalProperties != nil {
		t.Error("an answer may not grow")
	}
	if !schemas["AddAccount"].Properties["credential"].WriteOnly {
		t.Error("the credential is not write-only")
	}
}
