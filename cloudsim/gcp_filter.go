package cloudsim

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Filters of lists, in both of their languages: comparisons with operators,
// joined by AND and OR; and the older eq and ne with a regular expression of
// the whole value. One filter has one of them.

type gcpFilter func(thing map[string]any) bool

func gcpBadFilter(text string) error {
	return gcpInvalid("filter", text, "Invalid list filter expression.")
}

// gcpParseFilter reads a filter.
func gcpParseFilter(text string) (gcpFilter, error) {
	words, err := gcpFilterWords(text)
	if err != nil {
		return nil, gcpBadFilter(text)
	}
	p := gcpFilterParser{words: words}
	f := p.either()
	if p.failed || p.at != len(words) || p.old && p.new {
		return nil, gcpBadFilter(text)
	}
	return f, nil
}

// gcpWord is a word of a filter, or an operator or bracket. What stood in
// quotation marks is never an operator.
type gcpWord struct {
	text   string
	quoted bool
}

func gcpFilterWords(text string) ([]gcpWord, error) {
	var words []gcpWord
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		switch c := text[0]; {
		case c == '"' || c == '\'':
			word, rest, err := gcpQuoted(text)
			if err != nil {
				return nil, err
			}
			words, text = append(words, gcpWord{word, true}), rest
		case strings.ContainsRune("()", rune(c)):
			words, text = append(words, gcpWord{text: text[:1]}), text[1:]
		case strings.ContainsRune("=!<>:", rune(c)):
			n := 1
			if len(text) > 1 && text[1] == '=' && c != ':' && c != '=' {
				n = 2
			}
			words, text = append(words, gcpWord{text: text[:n]}), text[n:]
		default:
			n := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("()=!<>:\"", r) })
			if n < 0 {
				n = len(text)
			}
			words, text = append(words, gcpWord{text: text[:n]}), text[n:]
		}
	}
	return words, nil
}

func gcpQuoted(text string) (word, rest string, err error) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == quote || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		case text[i] == quote:
			return b.String(), text[i+1:], nil
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", fmt.Errorf("no end of %q", text)
}

type gcpFilterParser struct {
	words    []gcpWord
	at       int
	failed   bool
	old, new bool // which languages were met
}

func (p *gcpFilterParser) peek() string {
	if p.at < len(p.words) && !p.words[p.at].quoted {
		return p.words[p.at].text
	}
	return ""
}

func (p *gcpFilterParser) either() gcpFilter {
	f := p.both()
	for p.peek() == "OR" {
		p.at, p.new = p.at+1, true
		left, right := f, p.both()
		f = func(t map[string]any) bool { return left(t) || right(t) }
	}
	return f
}

// both: without a word between, AND is meant.
func (p *gcpFilterParser) both() gcpFilter {
	f := p.one()
	for !p.failed && p.at < len(p.words) && p.peek() != "OR" && p.peek() != ")" {
		if p.peek() == "AND" {
			p.at++
		}
		left, right := f, p.one()
		f = func(t map[string]any) bool { return left(t) && right(t) }
	}
	return f
}

func (p *gcpFilterParser) one() gcpFilter {
	never := func(map[string]any) bool { return false }
	switch p.peek() {
	case "(":
		p.at++
		f := p.either()
		if p.peek() != ")" {
			p.failed = true
		}
		p.at++
		return f
	case "NOT":
		p.at, p.new = p.at+1, true
		f := p.one()
		return func(t map[string]any) bool { return !f(t) }
	}
	if p.at+3 > len(p.words) {
		p.failed = true
		return never
	}
	field, op, value := p.words[p.at], p.words[p.at+1], p.words[p.at+2]
	p.at += 3
	if field.text == "" || op.quoted || !value.quoted && strings.Contains("()=!=<>=:", value.text) {
		p.failed = true
		return never
	}
	path := gcpFieldPath(field.text)
	switch op.text {
	case "eq", "ne":
		p.old = true
		re, err := regexp.Compile(`^(?:` + value.text + `)$`)
		if err != nil {
			p.failed = true
			return never
		}
		return func(t map[string]any) bool {
			return slices.ContainsFunc(gcpValuesAt(t, path), re.MatchString) == (op.text == "eq")
		}
	case "=", "!=", "<", ">", "<=", ">=", ":":
		p.new = true
		holds := gcpComparison(op.text, value)
		return func(t map[string]any) bool { return holds(gcpValuesAt(t, path)) }
	}
	p.failed = true
	return never
}

// gcpFieldPath takes a field's name apart. What follows labels. is one key,
// dots and all; it may be in quotation marks.
func gcpFieldPath(field string) []string {
	if key, ok := strings.CutPrefix(field, "labels."); ok {
		return []string{"labels", strings.Trim(key, `"`)}
	}
	return strings.Split(field, ".")
}

// gcpValuesAt are the texts at a path; of lists, those of each element.
func gcpValuesAt(v any, path []string) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, gcpValuesAt(e, path)...)
		}
		return all
	case map[string]any:
		if len(path) == 0 {
			return nil
		}
		return gcpValuesAt(v[path[0]], path[1:])
	}
	if len(path) > 0 {
		return nil
	}
	return []string{fmt.Sprint(v)}
}

// gcpComparison tells whether the values of a field compare so with a word.
func gcpComparison(op string, value gcpWord) func(have []string) bool {
	equal := func(v string) bool { return v == value.text }
	switch {
	case op == "=":
		return func(have []string) bool { return slices.ContainsFunc(have, equal) }
	case op == "!=":
		return func(have []string) bool { return !slices.ContainsFunc(have, equal) }
	case op == ":" && value.text == "*" && !value.quoted:
		return func(have []string) bool { return len(have) > 0 }
	case op == ":":
		part, err := regexp.Compile(`(?i)` + strings.ReplaceAll(regexp.QuoteMeta(value.text), `\*`, `.*`))
		if err != nil { // it is no text: nothing has it
			return func([]string) bool { return false }
		}
		return func(have []string) bool { return slices.ContainsFunc(have, part.MatchString) }
	}
	return func(have []string) bool {
		return slices.ContainsFunc(have, func(v string) bool {
			order := gcpOrder(v, value.text)
			return order < 0 && op[0] == '<' || order > 0 && op[0] == '>' || order == 0 && len(op) == 2
		})
	}
}

// gcpOrder compares as numbers when both are.
func gcpOrder(a, b string) int {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return strings.Compare(a, b)
	}
	return cmp.Compare(x, y)
}
