package cloudsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// cloud-init reads YAML 1.1 with PyYAML: an unquoted yes is true, 0600 is 384
// and 12:30:45 is a number. The parser here is a port of the same C library;
// what its plain scalars mean is decided below, as PyYAML decides it.

// maxYAMLNodes is the most nodes that a document may have once its aliases are
// followed; one of 32 KiB has far less.
const maxYAMLNodes = 100_000

// readYAML reads one document that must be a mapping, or nothing.
func readYAML(data []byte) (map[string]any, error) {
	if c, bad := unprintable(string(data)); bad {
		return nil, fmt.Errorf("special characters are not allowed: %#U", c)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	if err := dec.Decode(&node); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, errors.New("expected a single document in the stream")
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	v, err := (&yamlReader{}).value(&node)
	if err != nil {
		return nil, err
	}
	switch doc := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return doc, nil
	}
	return nil, errors.New("the document is not a mapping")
}

// unprintable finds a character that YAML does not allow in a document.
func unprintable(text string) (rune, bool) {
	for _, c := range text {
		switch {
		case c == '\t', c == '\n', c == '\r', c >= 0x20 && c <= 0x7e, c == 0x85, c >= 0xa0 && c <= 0xd7ff, c >= 0xe000 && c <= 0xfffd && c != 0xfeff, c >= 0x10000:
		default:
			return c, true
		}
	}
	return 0, false
}

type yamlReader struct {
	nodes int
	depth int
}

func (r *yamlReader) value(n *yaml.Node) (any, error) {
	if r.nodes++; r.nodes > maxYAMLNodes {
		return nil, errors.New("the document is too large once its aliases are followed")
	}
	if r.depth++; r.depth > 1000 {
		return nil, errors.New("the document is nested too deeply")
	}
	defer func() { r.depth-- }()
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0])
	case yaml.AliasNode:
		return r.value(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := r.value(c)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(n)
	}
	return scalar11(n)
}

// mapping refuses a key that stands there twice, or is empty. PyYAML does not:
// the last one wins there. No document that means something has either.
func (r *yamlReader) mapping(n *yaml.Node) (map[string]any, error) {
	m, merged := map[string]any{}, map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		v, err := r.value(c)
		if err != nil {
			return nil, err
		}
		if k.Tag == "!!merge" {
			if err := merge(merged, v); err != nil {
				return nil, fmt.Errorf("line %d: %w", k.Line, err)
			}
			continue
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key that is not a scalar", k.Line)
		}
		key, err := scalar11(k)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint(key)
		if key == nil || name == "" {
			return nil, fmt.Errorf("line %d: an empty key", k.Line)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("line %d: key %q stands there twice", k.Line, name)
		}
		m[name] = v
	}
	for k, v := range merged {
		if _, own := m[k]; !own {
			m[k] = v
		}
	}
	return m, nil
}

// merge takes what "<<" brings: a mapping, or a list of them of which the
// first counts.
func merge(into map[string]any, v any) error {
	from, ok := v.([]any)
	if !ok {
		from = []any{v}
	}
	for _, f := range from {
		m, ok := f.(map[string]any)
		if !ok {
			return errors.New("expected a mapping for merging")
		}
		for k, v := range m {
			if _, has := into[k]; !has {
				into[k] = v
			}
		}
	}
	return nil
}

var (
	yamlNull  = regexp.MustCompile(`^(~|null|Null|NULL|)$`)
	yamlTrue  = regexp.MustCompile(`^(yes|Yes|YES|true|True|TRUE|on|On|ON)$`)
	yamlFalse = regexp.MustCompile(`^(no|No|NO|false|False|FALSE|off|Off|OFF)$`)
	yamlInt   = regexp.MustCompile(`^[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$`)
	yamlSixty = regexp.MustCompile(`^[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+$`)
	yamlFloat = regexp.MustCompile(`^([-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|\.(inf|Inf|INF))|\.(nan|NaN|NAN))$`)
)

// scalar11 is what a scalar means in YAML 1.1.
func scalar11(n *yaml.Node) (any, error) {
	tagged := n.Style&yaml.TaggedStyle != 0
	switch {
	case tagged && (n.Tag == "!!str" || n.Tag == "!"):
		return n.Value, nil
	case tagged && !strings.HasPrefix(n.Tag, "!!"), tagged && strings.HasPrefix(n.Tag, "!!python"):
		return nil, fmt.Errorf("line %d: could not determine a constructor for the tag %q", n.Line, n.Tag)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return n.Value, nil
	}
	v := n.Value
	switch {
	case yamlNull.MatchString(v):
		return nil, nil
	case yamlTrue.MatchString(v):
		return true, nil
	case yamlFalse.MatchString(v):
		return false, nil
	case yamlInt.MatchString(v):
		return int11(v), nil
	case yamlSixty.MatchString(v):
		return sixty11(v), nil
	case yamlFloat.MatchString(v):
		return float11(v), nil
	}
	return v, nil
}

// int11 reads binary, octal, decimal and hexadecimal numbers. One that does
// not fit stays text: nothing in a cloud-config is as large.
func int11(v string) any {
	digits := strings.ReplaceAll(v, "_", "")
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return n
	}
	return v
}

func float11(v string) any {
	digits := strings.ToLower(strings.ReplaceAll(v, "_", ""))
	if strings.HasSuffix(digits, "inf") || strings.HasSuffix(digits, "nan") {
		digits = strings.Replace(digits, ".", "", 1)
	}
	if f, err := strconv.ParseFloat(digits, 64); err == nil {
		return f
	}
	return v
}

// sixty11 reads numbers to the base of sixty, which is what a time of day is.
func sixty11(v string) any {
	sign, digits := int64(1), strings.ReplaceAll(v, "_", "")
	switch digits[0] {
	case '-':
		sign, digits = -1, digits[1:]
	case '+':
		digits = digits[1:]
	}
	var total int64
	for _, part := range strings.Split(digits, ":") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || total > 1<<40 {
			return v
		}
		total = total*60 + n
	}
	return sign * total
}
