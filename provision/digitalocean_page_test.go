package provision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/slipway-dev/slipway/provision"
)

// doPages serves a list of regions in pages, as the API cuts them: by position
// at the moment of the request.
type doPages struct {
	t       *testing.T
	regions []string
	// before is called before each page is cut.
	before func(request int)
	// total is what the API says beyond what there is.
	more     int
	requests int
}

func (p *doPages) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "api.digitalocean.com" || r.URL.Path != "/v2/regions" {
		p.t.Errorf("the token went to %s%s", r.URL.Host, r.URL.Path)
	}
	p.requests++
	if p.before != nil {
		p.before(p.requests)
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	per, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	w := httptest.NewRecorder()
	if per < 1 || per > 200 {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return w.Result(), nil
	}
	from, to := min((page-1)*per, len(p.regions)), min(page*per, len(p.regions))
	part := []map[string]any{}
	for _, slug := range p.regions[from:to] {
		part = append(part, map[string]any{"slug": slug, "name": slug, "available": true})
	}
	pages := map[string]any{}
	if to < len(p.regions) {
		pages["next"] = fmt.Sprintf("https://elsewhere.example/v2/regions?page=%d&per_page=%d", page+1, per)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"regions": part, "links": map[string]any{"pages": pages}, "meta": map[string]any{"total": len(p.regions) + p.more},
	})
	return w.Result(), nil
}

func doManyRegions(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("r%d", i))
	}
	return all
}

func (p *doPages) list(t *testing.T) (regions []provision.Region, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, openErr := provision.Open("digitalocean", doToken, provision.Options{HTTPClient: &http.Client{Transport: p}})
		if openErr != nil {
			t.Fatal(openErr)
		}
		regions, err = d.ListRegions(t.Context())
	})
	return regions, err
}

func TestDigitalOceanReadsEveryPage(t *testing.T) {
	for _, n := range []int{0, 1, 199, 200, 201, 400, 1001} {
		p := &doPages{t: t, regions: doManyRegions(n)}
		got, err := p.list(t)
		if err != nil || len(got) != n {
			t.Errorf("of %d regions %d were read, %v", n, len(got), err)
		}
	}
}

// Something on the first page goes while the list is read: what moved up to it
// is not missed.
func TestDigitalOceanListThatChanges(t *testing.T) {
	p := &doPages{t: t, regions: doManyRegions(450)}
	p.before = func(request int) {
		if request == 2 {
			p.regions = p.regions[1:]
		}
	}
	got, err := p.list(t)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range got {
		seen[r.ID] = true
	}
	for _, r := range p.regions {
		if !seen[r] {
			t.Errorf("%s was missed", r)
		}
	}
}

// A list that is never whole is an error, not a part.
func TestDigitalOceanListThatIsNeverWhole(t *testing.T) {
	p := &doPages{t: t, regions: doManyRegions(5), more: 1}
	if got, err := p.list(t); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("%d regions, %v", len(got), err)
	}
	if p.requests > 5 {
		t.Errorf("it was read %d times", p.requests)
	}
}
