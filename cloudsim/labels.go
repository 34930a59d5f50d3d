package cloudsim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// requirement is one part of a label selector.
type requirement struct {
	key    string
	op     string // =, !=, in, notin, exists, absent
	values []string
}

var (
	labelKey   = regexp.MustCompile(`^([a-z0-9A-Z]([-a-z0-9A-Z.]{0,251}[a-z0-9A-Z])?/)?[a-z0-9A-Z]([-a-z0-9A-Z_.]{0,61}[a-z0-9A-Z])?$`)
	labelValue = regexp.MustCompile(`^([a-z0-9A-Z]([-a-z0-9A-Z_.]{0,61}[a-z0-9A-Z])?)?$`)
	setForm    = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)
)

// parseSelector reads a label selector: parts that must all hold, separated
// by commas: k=v, k==v, k!=v, k, !k, k in (a,b), k notin (a,b).
func parseSelector(text string) ([]requirement, error) {
	var out []requirement
	for _, part := range splitSelector(text) {
		part = strings.TrimSpace(part)
		r, err := parseRequirement(part)
		if err != nil {
			return nil, err
		}
		if !labelKey.MatchString(r.key) {
			return nil, fmt.Errorf("label selector: %q is not a label key", r.key)
		}
		for _, v := range r.values {
			if !labelValue.MatchString(v) {
				return nil, fmt.Errorf("label selector: %q is not a label value", v)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func parseRequirement(part string) (requirement, error) {
	if m := setForm.FindStringSubmatch(part); m != nil {
		var values []string
		for _, v := range strings.Split(m[3], ",") {
			values = append(values, strings.TrimSpace(v))
		}
		return requirement{key: m[1], op: m[2], values: values}, nil
	}
	for _, op := range []string{"!=", "==", "="} {
		if k, v, ok := strings.Cut(part, op); ok {
			return requirement{key: strings.TrimSpace(k), op: map[string]string{"!=": "!=", "==": "=", "=": "="}[op], values: []string{strings.TrimSpace(v)}}, nil
		}
	}
	if k, ok := strings.CutPrefix(part, "!"); ok {
		return requirement{key: strings.TrimSpace(k), op: "absent"}, nil
	}
	if part == "" {
		return requirement{}, fmt.Errorf("label selector: an empty part")
	}
	return requirement{key: part, op: "exists"}, nil
}

// splitSelector splits at commas outside of parentheses. An empty text has no
// parts.
func splitSelector(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var parts []string
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

func selects(rs []requirement, labels map[string]string) bool {
	for _, r := range rs {
		v, has := labels[r.key]
		ok := false
		switch r.op {
		case "=":
			ok = has && v == r.values[0]
		case "!=":
			ok = !has || v != r.values[0]
		case "in":
			ok = has && slices.Contains(r.values, v)
		case "notin":
			ok = !has || !slices.Contains(r.values, v)
		case "exists":
			ok = has
		case "absent":
			ok = !has
		}
		if !ok {
			return false
		}
	}
	return true
}

func checkLabels(labels map[string]string) error {
	for k, v := range labels {
		if !labelKey.MatchString(k) {
			return fmt.Errorf("label key %q is not valid", k)
		}
		if !labelValue.MatchString(v) {
			return fmt.Errorf("label value of %q is not valid", k)
		}
	}
	return nil
}
