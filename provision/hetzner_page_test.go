package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
)

// serverList serves pages of servers with the given ids; change runs before
// each page is cut.
type serverList struct {
	ids    []int64
	change func(page int, l *serverList)
	edit   func(page int, answer map[string]any)
	pages  []int
}

func (l *serverList) RoundTrip(r *http.Request) (*http.Response, error) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	per, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	l.pages = append(l.pages, page)
	if l.change != nil {
		l.change(page, l)
	}
	last := max(1, (len(l.ids)+per-1)/per)
	items := []map[string]any{}
	for _, id := range l.ids[min((page-1)*per, len(l.ids)):min(page*per, len(l.ids))] {
		items = append(items, map[string]any{"id": id, "name": fmt.Sprint(id)})
	}
	meta := map[string]any{"page": page, "per_page": per, "last_page": last, "total_entries": len(l.ids)}
	if page < last {
		meta["next_page"] = page + 1
	}
	answer := map[string]any{"servers": items, "meta": map[string]any{"pagination": meta}}
	if l.edit != nil {
		l.edit(page, answer)
	}
	body, err := json.Marshal(answer)
	return respond(200, string(body)), err
}

func ids(from, to int64) []int64 {
	var all []int64
	for id := from; id <= to; id++ {
		all = append(all, id)
	}
	return all
}

func (l *serverList) read(ctx context.Context) (map[string]bool, error) {
	h := newHetzner("token", Options{HTTPClient: &http.Client{Transport: l}})
	list, err := h.ListServers(ctx)
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.ID] {
			err = errors.Join(err, fmt.Errorf("server %s is in the list twice", s.ID))
		}
		seen[s.ID] = true
	}
	return seen, err
}

func TestEveryPageIsRead(t *testing.T) {
	for n, pages := range map[int64]int{0: 1, 1: 1, 50: 1, 51: 3, 100: 3, 101: 4, 1000: 21} {
		l := &serverList{ids: ids(1, n)}
		seen, err := l.read(t.Context())
		if err != nil || int64(len(seen)) != n || len(l.pages) != pages {
			t.Errorf("%d servers: read %d in %d requests, want %d: %v", n, len(seen), len(l.pages), pages, err)
		}
	}
}

func TestPagesWithoutLengthAreRead(t *testing.T) {
	l := &serverList{ids: ids(1, 120), edit: func(_ int, a map[string]any) {
		p := a["meta"].(map[string]any)["pagination"].(map[string]any)
		p["last_page"], p["total_entries"] = nil, nil
	}}
	if seen, err := l.read(t.Context()); err != nil || len(seen) != 120 {
		t.Errorf("read %d of 120: %v", len(seen), err)
	}
}

// TestNoServerIsMissedWhileOthersGo removes servers at every moment of the
// reading, at every place of the list: what exists the whole time is seen.
func TestNoServerIsMissedWhileOthersGo(t *testing.T) {
	for moment := 1; moment <= 5; moment++ {
		for _, gone := range [][]int64{{1}, {50}, {51}, {75}, {150}, {160}, {1, 2, 3, 60, 61}, ids(1, 50), ids(101, 160), ids(40, 120)} {
			request := 0
			l := &serverList{ids: ids(1, 160)}
			l.change = func(_ int, l *serverList) {
				if request++; request == moment {
					l.ids = slices.DeleteFunc(l.ids, func(id int64) bool { return slices.Contains(gone, id) })
					l.ids = append(l.ids, 1000)
				}
			}
			seen, err := l.read(t.Context())
			if err != nil {
				t.Errorf("moment %d, %d gone: %v", moment, len(gone), err)
				continue
			}
			for _, id := range ids(1, 160) {
				if !slices.Contains(gone, id) && !seen[fmt.Sprint(id)] {
					t.Errorf("moment %d, %d gone: server %d was missed", moment, len(gone), id)
				}
			}
		}
	}
}

// TestACutPageIsAnError: a part of the list must never pass for the whole.
func TestACutPageIsAnError(t *testing.T) {
	pagination := func(a map[string]any) map[string]any {
		return a["meta"].(map[string]any)["pagination"].(map[string]any)
	}
	for what, edit := range map[string]func(page int, a map[string]any){
		"fewer on a page":   func(p int, a map[string]any) { a["servers"] = a["servers"].([]map[string]any)[1:] },
		"fewer on the last": func(p int, a map[string]any) { cutPage(p == 3, a) },
		"fewer on a middle": func(p int, a map[string]any) { cutPage(p == 2, a) },
		"no list":           func(_ int, a map[string]any) { delete(a, "servers") },
		"null for a list":   func(_ int, a map[string]any) { a["servers"] = nil },
		"no meta":           func(_ int, a map[string]any) { delete(a, "meta") },
		"empty answer":      func(_ int, a map[string]any) { clear(a) },
		"no page length":    func(_ int, a map[string]any) { delete(pagination(a), "per_page") },
	} {
		l := &serverList{ids: ids(1, 120), edit: edit}
		seen, err := l.read(t.Context())
		if !errors.Is(err, ErrUnavailable) || len(seen) != 0 {
			t.Errorf("%s: %d servers, error %v; want ErrUnavailable and none", what, len(seen), err)
		}
	}
}

func cutPage(here bool, a map[string]any) {
	if here {
		a["servers"] = a["servers"].([]map[string]any)[:5]
	}
}

func TestAFailedPageIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &serverList{ids: ids(1, 120)}
		h := newHetzner("token", Options{HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("page") == "2" {
				return respond(503, ""), nil
			}
			return l.RoundTrip(r)
		})}})
		if list, err := h.ListServers(t.Context()); !errors.Is(err, ErrUnavailable) || list != nil {
			t.Errorf("%d servers, error %v", len(list), err)
		}
	})
}

func BenchmarkListServers1000(b *testing.B) {
	pages := map[string]string{}
	for page := 1; page <= 20; page++ {
		pages[strconv.Itoa(page)] = benchmarkPage(b, page)
	}
	h := newHetzner("token", Options{HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return respond(200, pages[r.URL.Query().Get("page")]), nil
	})}})
	size := 0
	for body := range maps.Values(pages) {
		size += len(body)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		list, err := h.ListServers(b.Context())
		if err != nil || len(list) != 1000 {
			b.Fatal(len(list), err)
		}
	}
}

// benchmarkPage is a page of fifty servers as large as the API's own.
func benchmarkPage(b *testing.B, page int) string {
	b.Helper()
	var servers []map[string]any
	for i := range 50 {
		id := page*50 + i
		servers = append(servers, map[string]any{
			"id": id, "name": fmt.Sprintf("node-%d", id), "status": "running", "created": "2026-12-01T10:00:00+00:00",
			"public_net": map[string]any{
				"ipv4":      map[string]any{"id": id, "ip": "203.0.113.9", "blocked": false, "dns_ptr": "static.9.113.0.203.clients.example"},
				"ipv6":      map[string]any{"id": id, "ip": "2001:db8:1::/64", "blocked": false, "dns_ptr": []any{}},
				"firewalls": []any{map[string]any{"id": 38, "status": "applied"}}, "floating_ips": []any{},
			},
			"private_net": []any{}, "locked": false, "protection": map[string]any{"delete": false, "rebuild": false},
			"server_type": map[string]any{
				"id": 22, "name": "cx23", "description": "CX23", "cores": 2, "memory": 4.0, "disk": 40, "architecture": "x86",
				"prices": []any{map[string]any{"location": "fsn1", "price_monthly": map[string]any{"net": "3.4900000000", "gross": "4.1531000000"}}},
			},
			"image":    map[string]any{"id": 161547269, "name": "ubuntu-24.04", "os_flavor": "ubuntu", "architecture": "x86"},
			"location": map[string]any{"id": 1, "name": "fsn1", "city": "Falkenstein", "country": "DE", "network_zone": "eu-central"},
			"labels":   map[string]any{"managed-by": "fleet", "fleet-key": "0123456789012345678901234567890123456789", "fleet-node": "n"},
			"volumes":  []any{}, "load_balancers": []any{}, "included_traffic": 21990232555520, "primary_disk_size": 40,
		})
	}
	body, err := json.Marshal(map[string]any{"servers": servers, "meta": map[string]any{"pagination": map[string]any{
		"page": page, "per_page": 50, "last_page": 20, "total_entries": 1000,
	}}})
	if err != nil {
		b.Fatal(err)
	}
	return string(body)
}
