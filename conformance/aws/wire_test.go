package aws

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// wireCheck is two steps of the SDK's own stack, one at each side of its
// decoder. The decoder passes over what it does not know, so an answer with
// more values than come out of it has members that the service does not have.
type wireCheck struct {
	t *testing.T
	// checked counts the answers by action.
	checked map[string]int
}

type bodyKey struct{}

func (w *wireCheck) add(stack *middleware.Stack) error {
	inner := middleware.DeserializeMiddlewareFunc("keepBody", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleDeserialize(ctx, in)
		if resp, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil && resp.StatusCode == http.StatusOK {
			body, readErr := io.ReadAll(resp.Body)
			if readErr != nil {
				return out, meta, readErr
			}
			resp.Body = io.NopCloser(bytes.NewReader(body))
			meta.Set(bodyKey{}, body)
		}
		return out, meta, err
	})
	outer := middleware.DeserializeMiddlewareFunc("compareValues", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, meta, err := next.HandleDeserialize(ctx, in)
		if body, ok := meta.Get(bodyKey{}).([]byte); ok && err == nil {
			w.compare(middleware.GetOperationName(ctx), body, out.Result)
		}
		return out, meta, err
	})
	if err := stack.Deserialize.Add(inner, middleware.After); err != nil {
		return err
	}
	return stack.Deserialize.Add(outer, middleware.Before)
}

func (w *wireCheck) compare(action string, body []byte, result any) {
	w.t.Helper()
	want, err := leaves(body)
	if err != nil {
		w.t.Errorf("%s: %v", action, err)
		return
	}
	want = withoutReturn(want, result)
	if got := values(reflect.ValueOf(result)); got != len(want) {
		w.t.Errorf("%s: the SDK knows %d of %d values in the answer: %v", action, got, len(want), want)
	}
	w.checked[action]++
}

// withoutReturn leaves out what EC2 answers to calls that have no result, and
// to some that have: "<return>true</return>", which the SDK's types have for
// some calls alone.
func withoutReturn(leaves []string, result any) []string {
	if v := reflect.Indirect(reflect.ValueOf(result)); v.IsValid() && v.Kind() == reflect.Struct && v.FieldByName("Return").IsValid() {
		return leaves
	}
	return slices.DeleteFunc(leaves, func(name string) bool { return strings.HasSuffix(name, "Response/return") })
}

// leaves are the names of the elements that have a text, but for the request's
// id, which the SDK keeps elsewhere.
func leaves(body []byte) ([]string, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var names, path []string
	text, isLeaf := "", false
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			path, text, isLeaf = append(path, tok.Name.Local), "", true
		case xml.CharData:
			text += string(tok)
		case xml.EndElement:
			name := strings.Join(path, "/")
			if isLeaf && text != "" && !strings.HasSuffix(strings.ToLower(name), "/requestid") {
				names = append(names, name)
			}
			path, isLeaf = path[:len(path)-1], false
		}
	}
}

// values counts what was decoded.
func values(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return values(v.Elem())
	case reflect.Slice:
		n := 0
		for i := range v.Len() {
			n += values(v.Index(i))
		}
		return n
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			return 1
		}
		n := 0
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ResultMetadata" {
				n += values(v.Field(i))
			}
		}
		return n
	case reflect.String:
		if v.String() == "" {
			return 0
		}
	}
	return 1
}

// TestWireCheckChecks: the judge finds what is too much.
func TestWireCheckChecks(t *testing.T) {
	type answer struct {
		ID   *string
		List []struct{ Name *string }
	}
	text := "x"
	a := &answer{ID: &text, List: []struct{ Name *string }{{&text}, {&text}}}
	body := "<r><requestId>1</requestId><id>x</id><set><item><name>x</name></item><item><name>x</name><more>x</more></item></set><none></none></r>"
	want, err := leaves([]byte(body))
	if got := values(reflect.ValueOf(a)); err != nil || got != 3 || len(want) != 4 || !strings.Contains(fmt.Sprint(want), "more") {
		t.Errorf("%d values, leaves %v, %v", got, want, err)
	}
}
