package cloudsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What all lists of the API have in common.

// pagination is the API's, with nulls at the ends.
type pagination struct {
	Page     int  `json:"page"`
	PerPage  int  `json:"per_page"`
	Previous *int `json:"previous_page"`
	Next     *int `json:"next_page"`
	Last     *int `json:"last_page"`
	Total    *int `json:"total_entries"`
}

// page sends one page of a list under a key. Only what is on it is rendered.
func (h hetzner) page(key string, all []listed) error {
	q := h.r.URL.Query()
	number := func(name string, def, most int) (int, error) {
		if q.Get(name) == "" {
			return def, nil
		}
		n, err := strconv.Atoi(q.Get(name))
		if err != nil || n < 1 {
			return 0, hetznerField(name, "must be a number above 0")
		}
		return min(n, most), nil
	}
	page, err := number("page", 1, 1<<30)
	if err != nil {
		return err
	}
	per, err := number("per_page", 25, 50)
	if err != nil {
		return err
	}
	total := len(all)
	last := max(1, (total+per-1)/per)
	p := pagination{Page: page, PerPage: per, Last: &last, Total: &total}
	if page > 1 {
		prev := min(page-1, last)
		p.Previous = &prev
	}
	if page < last {
		next := page + 1
		p.Next = &next
	}
	from := min(total, (page-1)*per)
	shown := []any{}
	for _, t := range all[from:min(total, from+per)] {
		shown = append(shown, t.show())
	}
	h.send(http.StatusOK, map[string]any{key: shown, "meta": map[string]any{"pagination": p}})
	return nil
}

// selector reads the label_selector parameter.
func (h hetzner) selector() ([]requirement, error) {
	rs, err := parseSelector(h.r.URL.Query().Get("label_selector"))
	if err != nil {
		return nil, hetznerField("label_selector", err.Error())
	}
	return rs, nil
}

// hetznerReserved begins the keys of labels that only the provider sets.
const hetznerReserved = "hetzner.cloud/"

// hetznerLabels returns what a request wants labels to be.
func hetznerLabels(l *map[string]string, old map[string]string) (map[string]string, error) {
	if l == nil {
		return old, nil
	}
	if err := checkLabels(*l); err != nil {
		return nil, hetznerField("labels", err.Error())
	}
	for k := range *l {
		if strings.HasPrefix(k, hetznerReserved) {
			return nil, hetznerField("labels", "the prefix "+hetznerReserved+" is reserved")
		}
	}
	return *l, nil
}

// listed is a thing as lists sort and filter it.
type listed struct {
	id      int64
	name    string
	labels  map[string]string
	created time.Time
	// has are the values of this kind's own filters, by parameter.
	has  map[string]string
	show func() any
}

// sortFields are what lists can be sorted by: those of actions, and all others.
var sortFields = map[bool]map[string]func(a, b listed) int{
	false: {"id": byID, "name": byName, "created": byTime},
	true:  {"id": byID, "command": byName, "status": byStatus, "progress": byStatus, "started": byTime, "finished": byTime},
}

func byID(a, b listed) int     { return cmp.Compare(a.id, b.id) }
func byName(a, b listed) int   { return cmp.Compare(a.name, b.name) }
func byTime(a, b listed) int   { return a.created.Compare(b.created) }
func byStatus(a, b listed) int { return cmp.Compare(a.has["status"], b.has["status"]) }

// list sends a page of the things that the parameters ask for.
func (h hetzner) list(key string, all []listed) error {
	q := h.r.URL.Query()
	sel, err := h.selector()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(t listed) bool {
		if n := q.Get("name"); n != "" && n != t.name || !selects(sel, t.labels) {
			return true
		}
		for k, v := range t.has {
			if q.Has(k) && !slices.Contains(q[k], v) {
				return true
			}
		}
		return false
	})
	if err := hetznerSort(all, q["sort"], sortFields[key == "actions"]); err != nil {
		return err
	}
	return h.page(key, all)
}

// hetznerSort sorts by "field", "field:asc" or "field:desc"; the first counts
// most.
func hetznerSort[T any](list []T, by []string, fields map[string]func(a, b T) int) error {
	for _, b := range slices.Backward(by) {
		field, order, _ := strings.Cut(b, ":")
		compare := fields[field]
		if compare == nil || order != "" && order != "asc" && order != "desc" {
			return hetznerField("sort", fmt.Sprintf("must be one of %v, with :asc or :desc", sortedKeys(fields)))
		}
		slices.SortStableFunc(list, func(a, b T) int {
			if order == "desc" {
				return compare(b, a)
			}
			return compare(a, b)
		})
	}
	return nil
}
