package cli

import (
	"slices"
	"strings"
)

// nearest returns up to three of names that look like what was typed, nearest
// first.
func nearest(typed string, names []string) []string {
	type scored struct {
		name string
		d    int
	}
	typed = strings.ToLower(typed)
	var hits []scored
	for _, n := range names {
		l := strings.ToLower(n)
		d := distance(typed, l)
		switch {
		case typed != "" && (strings.HasPrefix(l, typed) || strings.HasPrefix(typed, l)):
			d = min(d, 1)
		case d > max(1, min(len(typed), len(l))/3):
			continue
		}
		hits = append(hits, scored{n, d})
	}
	slices.SortStableFunc(hits, func(a, b scored) int { return a.d - b.d })
	var res []string
	for _, h := range hits {
		if !slices.Contains(res, h.name) && len(res) < 3 {
			res = append(res, h.name)
		}
	}
	return res
}

// distance is how many single-letter edits, swaps of neighbours included, lie
// between a and b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev2, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(y)]
}

// quoteList writes names as people do: a, b or c.
func quoteList(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
