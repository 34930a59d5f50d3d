package gcp

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// schema is a type as a discovery document describes it
// (https://developers.google.com/discovery/v1/type-format).
type schema struct {
	ID                   string             `json:"id"`
	Ref                  string             `json:"$ref"`
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Enum                 []string           `json:"enum"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
}

type method struct {
	ID         string             `json:"id"`
	HTTPMethod string             `json:"httpMethod"`
	Path       string             `json:"path"`
	FlatPath   string             `json:"flatPath"`
	Parameters map[string]*schema `json:"parameters"`
	Request    *schema            `json:"request"`
	Response   *schema            `json:"response"`
	Scopes     []string           `json:"scopes"`

	doc  *document
	path *regexp.Regexp
}

type resource struct {
	Methods   map[string]*method   `json:"methods"`
	Resources map[string]*resource `json:"resources"`
}

// document is a discovery document: the interface's whole description, which
// Google makes the SDK from.
type document struct {
	resource
	ServicePath string             `json:"servicePath"`
	Parameters  map[string]*schema `json:"parameters"` // of every method
	Schemas     map[string]*schema `json:"schemas"`

	methods []*method
}

// documents reads those that the SDK's module ships.
var documents = sync.OnceValues(func() ([]*document, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		return nil, err
	}
	var docs []*document
	for _, name := range []string{"compute/v1/compute", "cloudbilling/v1/cloudbilling", "cloudresourcemanager/v1/cloudresourcemanager"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name+"-api.json"))
		if err != nil {
			return nil, err
		}
		d := &document{}
		if err := json.Unmarshal(text, d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.collect(&d.resource)
		docs = append(docs, d)
	}
	return docs, nil
})

var pathVariable = regexp.MustCompile(`\\\{[^}]*\\\}`)

func (d *document) collect(r *resource) {
	for _, m := range r.Methods {
		path := m.FlatPath
		if path == "" {
			path = m.Path
		}
		m.doc = d
		m.path = regexp.MustCompile("^/" + pathVariable.ReplaceAllString(regexp.QuoteMeta(d.ServicePath+path), `[^/:]+`) + "$")
		d.methods = append(d.methods, m)
	}
	for _, sub := range r.Resources {
		d.collect(sub)
	}
}

// methodOf finds what a request calls; nil when no document has it.
func methodOf(docs []*document, verb, path string) *method {
	var found *method
	for _, d := range docs {
		for _, m := range d.methods {
			// A fixed part of a path wins over a variable one.
			if m.HTTPMethod == verb && m.path.MatchString(path) && (found == nil || strings.Count(m.Path, "{") < strings.Count(found.Path, "{")) {
				found = m
			}
		}
	}
	return found
}

func (d *document) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	return s
}

// checkQuery names the parameters that a call does not have, and the values
// that are none.
func (m *method) checkQuery(query url.Values) []string {
	var wrong []string
	for name, values := range query {
		s := m.Parameters[name]
		if s == nil {
			s = m.doc.Parameters[name]
		}
		switch {
		case s == nil:
			wrong = append(wrong, "there is no parameter "+name)
		case name == "fields":
			mask, rest, err := parseMask(values[0])
			if err != nil || rest != "" {
				wrong = append(wrong, fmt.Sprintf("fields=%s: %v, %q is left", values[0], err, rest))
				continue
			}
			wrong = append(wrong, m.doc.checkMask("fields=", m.doc.resolve(m.Response), mask)...)
		case s.Type == "boolean" && values[0] != "true" && values[0] != "false", len(s.Enum) > 0 && !slices.Contains(s.Enum, values[0]):
			wrong = append(wrong, fmt.Sprintf("%s=%s is no %s", name, values[0], s.Type))
		case s.Type == "integer":
			if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s=%s is no number", name, values[0]))
			}
		}
	}
	return wrong
}

// mask is what a fields parameter selects: each name with what is selected
// below it, nil for all.
type mask map[string]mask

func parseMask(text string) (m mask, rest string, err error) {
	m = mask{}
	for {
		end := strings.IndexAny(text, ",()/")
		if end < 0 {
			end = len(text)
		}
		name := text[:end]
		if name == "" {
			return nil, text, fmt.Errorf("a name is missing before %q", text)
		}
		text = text[end:]
		var below mask
		switch {
		case strings.HasPrefix(text, "/"): // a/b,c is (a/b),c
			part, tail := cutMaskPart(text[1:])
			if below, _, err = parseMask(part); err != nil {
				return nil, "", err
			}
			text = tail
		case strings.HasPrefix(text, "("):
			if below, text, err = parseMask(text[1:]); err != nil {
				return nil, "", err
			}
			if !strings.HasPrefix(text, ")") {
				return nil, text, fmt.Errorf("a bracket is not closed")
			}
			text = text[1:]
		}
		m[name] = below
		if !strings.HasPrefix(text, ",") {
			return m, text, nil
		}
		text = text[1:]
	}
}

// cutMaskPart cuts at the first comma or closing bracket outside of brackets.
func cutMaskPart(text string) (part, rest string) {
	depth := 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case depth == 0 && (c == ',' || c == ')'):
			return text[:i], text[i:]
		case c == ')':
			depth--
		}
	}
	return text, ""
}

func (d *document) checkMask(at string, s *schema, m mask) []string {
	for s != nil && s.Type == "array" {
		s = d.resolve(s.Items)
	}
	var wrong []string
	for name, below := range m {
		var next *schema
		switch {
		case s == nil:
		case name == "*" && s.AdditionalProperties != nil:
			next = d.resolve(s.AdditionalProperties)
		case s.Properties[name] != nil:
			next = d.resolve(s.Properties[name])
		}
		if next == nil {
			wrong = append(wrong, at+name+" is no field")
			continue
		}
		if below != nil {
			wrong = append(wrong, d.checkMask(at+name+"/", next, below)...)
		}
	}
	return wrong
}

// check holds a value to its schema and names what is not so.
func (d *document) check(at string, s *schema, v any) []string {
	s = d.resolve(s)
	wrong := func(want string) []string { return []string{fmt.Sprintf("%s is %.60v, not %s", at, v, want)} }
	if s == nil {
		return []string{at + " has no schema"}
	}
	switch s.Type {
	case "any":
		return nil
	case "object":
		members, ok := v.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		var all []string
		for name, member := range members {
			next := s.Properties[name]
			if next == nil {
				next = s.AdditionalProperties
			}
			if next == nil {
				all = append(all, fmt.Sprintf("%s.%s: %s has no such field", at, name, s.ID))
				continue
			}
			all = append(all, d.check(at+"."+name, next, member)...)
		}
		return all
	case "array":
		items, ok := v.([]any)
		if !ok {
			return wrong("a list")
		}
		var all []string
		for i, item := range items {
			all = append(all, d.check(fmt.Sprintf("%s[%d]", at, i), s.Items, item)...)
		}
		return all
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case "integer", "number":
		n, ok := v.(float64)
		if !ok || s.Type == "integer" && n != float64(int64(n)) {
			return wrong("a number")
		}
	case "string":
		text, ok := v.(string)
		if !ok {
			return wrong("a text")
		}
		switch {
		case len(s.Enum) > 0 && !slices.Contains(s.Enum, text):
			return wrong("one of " + strings.Join(s.Enum, ", "))
		case s.Format == "int64":
			if _, err := strconv.ParseInt(text, 10, 64); err != nil {
				return wrong("a 64-bit number")
			}
		case s.Format == "uint64":
			if _, err := strconv.ParseUint(text, 10, 64); err != nil {
				return wrong("a 64-bit number")
			}
		}
	}
	return nil
}

// TestCheckFindsFaults: a check that finds nothing would prove nothing.
func TestCheckFindsFaults(t *testing.T) {
	docs, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	insert := methodOf(docs, "POST", "/compute/v1/projects/p/zones/z/instances")
	list := methodOf(docs, "GET", "/compute/v1/projects/p/aggregated/instances")
	if insert == nil || insert.ID != "compute.instances.insert" || list == nil || list.ID != "compute.instances.aggregatedList" {
		t.Fatalf("found %+v and %+v", insert, list)
	}
	for body, want := range map[string]string{
		`{"name":"n","colour":"red"}`:                              "colour",
		`{"disks":[{"initializeParams":{"diskSizeGb":10}}]}`:       "diskSizeGb",
		`{"scheduling":{"onHostMaintenance":"SLEEP"}}`:             "onHostMaintenance",
		`{"shieldedInstanceConfig":{"enableVtpm":"true"}}`:         "enableVtpm",
		`{"name":"n","labels":{"a":"b"},"tags":{"items":["web"]}}`: "",
	} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(insert.doc.check("", insert.Request, v), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", body, got)
		}
	}
	for query, want := range map[string]string{
		"fields=items/*/instances(name,tags(items),colour)": "colour", "fields=items/*/instances(name,tags(items)),nextPageToken": "",
		"filter=a&page=2": "page", "maxResults=many": "many", "fields=items/*/instances(name": "bracket",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(list.checkQuery(values), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", query, got)
		}
	}
}
