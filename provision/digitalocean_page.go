package provision

import (
	"context"
	"maps"
	"net/url"
	"strconv"
)

const (
	// doPerPage is the most that the API gives at once.
	doPerPage = 200
	// doListTries is how often a list is read anew that changed while it was
	// read.
	doListTries = 3
	// doMostPages is beyond any account: a list that goes on after it is not
	// being read right.
	doMostPages = 1000
)

// doList reads every page of a list, or fails: it never returns a part.
//
// Pages are cut by position, so that something deleted between two requests
// moves what follows one place up, and an entry is missed. Each page tells how
// many there are: when that changes, or is not what was read, the list is read
// again.
func doList[P doPage[T], T interface{ id() string }](ctx context.Context, d *DigitalOcean, op, path string, query url.Values) ([]T, error) {
	for range doListTries {
		items, whole, err := doReadList[P](ctx, d, op, path, query)
		if err != nil {
			return nil, err
		}
		if whole {
			return items, nil
		}
	}
	return nil, d.fail(ErrUnavailable, op, "try again; if it stays, something between here and the API cuts its answers",
		"the list changed each time while it was read, or its pages are not whole")
}

// doReadList reads the pages once. It does not go where the links point, only
// by whether there is a next one: the token stays with this host.
func doReadList[P doPage[T], T interface{ id() string }](ctx context.Context, d *DigitalOcean, op, path string, query url.Values) (items []T, whole bool, err error) {
	seen := map[string]bool{}
	items = []T{}
	total := -1
	for n := 1; n <= doMostPages; n++ {
		q := maps.Clone(query)
		if q == nil {
			q = url.Values{}
		}
		q.Set("page", strconv.Itoa(n))
		q.Set("per_page", strconv.Itoa(doPerPage))
		var page P
		if err := d.get(ctx, op, path, q, &page); err != nil {
			return nil, false, err
		}
		part, paging := page.part()
		if part == nil || paging.Meta.Total == nil {
			return nil, false, d.fail(ErrUnavailable, op, "try again; if it stays, something between here and the API cuts its answers",
				"page %d of the list is not whole", n)
		}
		if total < 0 {
			total = *paging.Meta.Total
		}
		if *paging.Meta.Total != total {
			return nil, false, nil
		}
		for _, item := range part {
			if !seen[item.id()] {
				seen[item.id()] = true
				items = append(items, item)
			}
		}
		if paging.Links.Pages.Next == "" {
			return items, len(items) == total, nil
		}
	}
	return nil, false, d.fail(ErrUnavailable, op, "", "the list has more than %d pages", doMostPages)
}
