package provision

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// hetznerPerPage is the most that the API gives at once.
const hetznerPerPage = 50

// hzList reads every page of a list, or fails: it never returns a part.
//
// Pages are cut by position, so that something deleted between two requests
// moves all that follows one place up, and read forwards one entry would be
// missed. So the list is ordered by id and read from its last page to its
// first: an entry can then be seen twice, which is put right, but none that
// exists the whole time is missed. A list of one page is one request, one of
// n pages n+1.
func hzList[P hzPage[T], T any](ctx context.Context, h *Hetzner, op, path string, query url.Values) ([]T, error) {
	items, meta, err := hzListPage[P](ctx, h, op, path, query, 1)
	if err != nil {
		return nil, err
	}
	last := 1
	for meta.LastPage == 0 && meta.NextPage > last { // the length is not told: go to the end
		last = meta.NextPage
		if _, meta, err = hzListPage[P](ctx, h, op, path, query, last); err != nil {
			return nil, err
		}
	}
	if last = max(last, meta.LastPage); last == 1 {
		return items, nil
	}
	pages := make([][]T, last)
	for n := last; n >= 1; n-- {
		if pages[n-1], _, err = hzListPage[P](ctx, h, op, path, query, n); err != nil {
			return nil, err
		}
	}
	return slices.Concat(pages...), nil
}

func hzListPage[P hzPage[T], T any](ctx context.Context, h *Hetzner, op, path string, query url.Values, n int) ([]T, *hzPagination, error) {
	q := maps.Clone(query)
	if q == nil {
		q = url.Values{}
	}
	q.Set("page", strconv.Itoa(n))
	q.Set("per_page", strconv.Itoa(hetznerPerPage))
	var page P
	if err := h.get(ctx, op, path, q, &page); err != nil {
		return nil, nil, err
	}
	items, meta := page.part()
	if items == nil || meta == nil || !meta.whole(len(items), n) {
		return nil, nil, h.fail(ErrUnavailable, op, "try again; if it stays, something between here and the API cuts its answers",
			"page %d of the list is not whole", n)
	}
	return items, meta, nil
}

// whole tells whether page n has as many entries as its own account of the
// list says, as far as that goes.
func (m *hzPagination) whole(entries, n int) bool {
	switch {
	case n < max(m.LastPage, m.NextPage):
		return m.PerPage > 0 && entries == m.PerPage
	case m.LastPage != 0 && n > m.LastPage: // the list has become shorter meanwhile
		return entries == 0
	case m.TotalEntries != nil:
		return entries == *m.TotalEntries-(n-1)*m.PerPage
	}
	return true
}

// inOrder asks for the order by id, which hzList needs of lists that change.
func inOrder(query url.Values) url.Values {
	if query == nil {
		query = url.Values{}
	}
	query.Set("sort", "id:asc")
	return query
}

// byID drops the entries that were seen on two pages.
func byID[T any](items []T, id func(T) int64) []T {
	seen := make(map[int64]bool, len(items))
	kept := items[:0]
	for _, item := range items {
		if !seen[id(item)] {
			seen[id(item)] = true
			kept = append(kept, item)
		}
	}
	return kept
}
