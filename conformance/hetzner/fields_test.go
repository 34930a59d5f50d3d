package hetzner

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// absent are members of the SDK's types that the API does not send any more.
var absent = []string{"Pricing.PrimaryIPs.Prices.Datacenter"}

// lacks returns the members of t, and of what it holds, that the body does not
// have. A member that may be left out is no lack, nor is one that is null.
func lacks(t reflect.Type, body any, at string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		if body == nil {
			return nil
		}
		return lacks(t.Elem(), body, at)
	case reflect.Slice:
		list, _ := body.([]any)
		var out []string
		for _, item := range list {
			out = append(out, lacks(t.Elem(), item, at)...)
		}
		return out
	case reflect.Struct:
	default:
		return nil
	}
	object, ok := body.(map[string]any)
	if !ok || t.NumField() == 0 { // a time, or an id or name
		return nil
	}
	var out []string
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, opts, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && tag == "":
			out = append(out, lacks(f.Type, body, at)...)
			continue
		case !f.IsExported() || name == "-" || name == "" || strings.Contains(opts, "omitempty"):
			continue
		}
		path := strings.TrimPrefix(at+"."+f.Name, ".")
		v, has := object[name]
		if !has {
			if !slices.Contains(absent, path) {
				out = append(out, path)
			}
			continue
		}
		out = append(out, lacks(f.Type, v, path)...)
	}
	return out
}

// lacksIn is lacks of an answer as it came.
func lacksIn(v any, data []byte) []string {
	var body any
	if err := json.Unmarshal(data, &body); err != nil {
		return []string{err.Error()}
	}
	t := reflect.TypeOf(v).Elem()
	if f, ok := t.FieldByName("Body"); ok && strings.HasPrefix(t.Name(), "paged[") {
		meta, _ := t.FieldByName("Meta")
		return append(lacks(f.Type, body, ""), lacks(meta.Type, body.(map[string]any)["meta"], "Meta")...)
	}
	return lacks(t, body, "")
}
