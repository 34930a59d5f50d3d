package cloudsim

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Lists: pages of them, lists of all scopes, and the choice of fields.

// gcpPerPage is the size of a page, and its most.
const gcpPerPage = 500

// gcpRow is one row of a list, with the scope that it stands in.
type gcpRow struct {
	scope string
	shown map[string]any
}

// window is the part of the rows that the request asks for, and the token of
// the next.
func (g gcp) window(rows []gcpRow) (part []gcpRow, next string, err error) {
	q := g.r.URL.Query()
	if text := q.Get("filter"); text != "" {
		filter, err := gcpParseFilter(text)
		if err != nil {
			return nil, "", err
		}
		rows = slices.DeleteFunc(rows, func(r gcpRow) bool { return !filter(r.shown) })
	}
	switch q.Get("orderBy") {
	case "", "name":
	case "creationTimestamp desc":
		slices.SortStableFunc(rows, func(a, b gcpRow) int {
			return strings.Compare(textOf(b.shown, "creationTimestamp"), textOf(a.shown, "creationTimestamp"))
		})
	default:
		return nil, "", gcpInvalid("orderBy", q.Get("orderBy"), "Invalid order by.")
	}
	per := gcpPerPage
	if text := q.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > gcpPerPage {
			return nil, "", gcpInvalid("maxResults", text, "Must be greater than or equal to 0 and less than or equal to %d", gcpPerPage)
		}
		if n > 0 {
			per = n
		}
	}
	from := 0
	if text := q.Get("pageToken"); text != "" {
		if from = gcpTokenFrom(text); from <= 0 {
			return nil, "", gcpInvalid("pageToken", text, "Invalid page token.")
		}
	}
	from = min(from, len(rows))
	to := min(from+per, len(rows))
	if to < len(rows) {
		next = gcpPageToken(to)
	}
	return rows[from:to], next, nil
}

// gcpPageToken leads to the page that begins with the row of that number.
func gcpPageToken(from int) string {
	return base64.RawURLEncoding.EncodeToString([]byte("from " + strconv.Itoa(from)))
}

// gcpTokenFrom reads a page's token; 0: it is none.
func gcpTokenFrom(token string) int {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(string(data), "from "))
	return from
}

// page sends one page of a list of one scope.
func (g gcp) page(kind string, rows []gcpRow) error {
	rows, next, err := g.window(rows)
	if err != nil {
		return err
	}
	out := map[string]any{"kind": kind, "id": gcpListID(g.r.URL.Path), "selfLink": gcpHost + gcpListID(g.r.URL.Path)}
	if len(rows) > 0 { // an empty list is left out
		items := make([]any, 0, len(rows))
		for _, r := range rows {
			items = append(items, r.shown)
		}
		out["items"] = items
	}
	if next != "" {
		out["nextPageToken"] = next
	}
	g.send(out)
	return nil
}

func gcpListID(path string) string {
	_, id, _ := strings.Cut(path, gcpCompute+"/")
	return id
}

// aggregated sends one page of a list of all scopes: those in which the page
// has nothing say so.
func (g gcp) aggregated(kind, collection string, scopes []string, rows []gcpRow) error {
	rows, next, err := g.window(rows)
	if err != nil {
		return err
	}
	items := map[string]any{}
	for _, scope := range scopes {
		var here []any
		for _, r := range rows {
			if r.scope == scope {
				here = append(here, r.shown)
			}
		}
		if len(here) > 0 {
			items[scope] = map[string]any{collection: here}
			continue
		}
		items[scope] = map[string]any{"warning": map[string]any{
			"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope '" + scope + "' on this page.",
			"data": []any{map[string]any{"key": "scope", "value": scope}},
		}}
	}
	out := map[string]any{"kind": kind, "id": gcpListID(g.r.URL.Path), "items": items, "selfLink": gcpHost + gcpListID(g.r.URL.Path)}
	if next != "" {
		out["nextPageToken"] = next
	}
	g.send(out)
	return nil
}

// gcpMask is what the parameter fields chooses, by name; nil: everything below.
type gcpMask map[string]gcpMask

// chooseFields reads the parameter: names with commas between, a/b for a
// member's member, a(b,c) for several, * for every name.
func (g *gcp) chooseFields() error {
	text := g.r.URL.Query().Get("fields")
	if text == "" {
		return nil
	}
	p := gcpMaskParser{text: text}
	mask := p.list()
	if p.failed || p.text != "" {
		return gcpFail(http.StatusBadRequest, "invalidParameter", "Invalid field selection %s", text)
	}
	g.fields = mask
	return nil
}

type gcpMaskParser struct {
	text   string // what is left
	failed bool
}

func (p *gcpMaskParser) list() gcpMask {
	mask := gcpMask{}
	for !p.failed {
		p.member(mask)
		if !strings.HasPrefix(p.text, ",") {
			return mask
		}
		p.text = p.text[1:]
	}
	return mask
}

func (p *gcpMaskParser) member(into gcpMask) {
	end := strings.IndexAny(p.text, ",/()")
	if end < 0 {
		end = len(p.text)
	}
	name := p.text[:end]
	p.text = p.text[end:]
	if name == "" {
		p.failed = true
		return
	}
	var below gcpMask
	switch {
	case strings.HasPrefix(p.text, "/"):
		p.text = p.text[1:]
		below = gcpMask{}
		p.member(below)
	case strings.HasPrefix(p.text, "("):
		p.text = p.text[1:]
		below = p.list()
		if !strings.HasPrefix(p.text, ")") {
			p.failed = true
			return
		}
		p.text = p.text[1:]
	}
	into.add(name, below)
}

// add joins a choice with those before: items/*/a,items/*/b is both.
func (m gcpMask) add(name string, below gcpMask) {
	old, has := m[name]
	if has && (old == nil || below == nil) {
		m[name] = nil
		return
	}
	if !has {
		m[name] = below
		return
	}
	for k, v := range below {
		old.add(k, v)
	}
}

// apply is what the mask leaves; of lists, of each element.
func (m gcpMask) apply(v map[string]any) map[string]any {
	if m == nil {
		return v
	}
	left, _ := m.of(v).(map[string]any)
	if left == nil {
		left = map[string]any{}
	}
	return left
}

func (m gcpMask) of(v any) any {
	if m == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			below, has := m[k]
			if !has {
				below, has = m["*"]
			}
			if !has {
				continue
			}
			if left := below.of(e); left != nil {
				out[k] = left
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, e := range v {
			if left := m.of(e); left != nil {
				out = append(out, left)
			}
		}
		if out == nil {
			return nil
		}
		return out
	}
	return nil
}
