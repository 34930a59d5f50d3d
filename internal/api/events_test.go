package api_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// stream opens the event stream and returns its lines.
func stream(t *testing.T, url string, header http.Header) (lines <-chan string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apitest.Token)
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" || resp.StatusCode != 200 {
		t.Fatalf("answered %d %s", resp.StatusCode, ct)
	}
	ch, done := make(chan string), make(chan struct{})
	go func() {
		defer close(done)
		defer close(ch)
		sc := bufio.NewScanner(resp.Body)
		for sc.Scan() {
			select {
			case ch <- sc.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch, func() { cancel(); <-done; resp.Body.Close() }
}

// until reads lines until one has the prefix, and returns it.
func until(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", prefix)
			}
			if strings.HasPrefix(l, prefix) {
				return l
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing begins with %q", prefix)
		}
	}
}

func TestStream(t *testing.T) {
	f, url := start(t, api.Options{})
	f.Script = apitest.Boots
	send(t, "POST", url+"/v1/nodes", createBody, nil) // events 1 to 3
	lines, stop := stream(t, url+"/v1/events?after=2", nil)
	defer stop()
	if l := until(t, lines, "id:"); l != "id: 3" {
		t.Errorf("begins with %q", l)
	}
	if l := until(t, lines, "event:"); l != "event: node" {
		t.Errorf("name is %q", l)
	}
	want := `data: {"seq":3,"node_id":"0199aaaa-0000-7000-8000-000000000001","node":"web-1","at":"2026-03-01T12:00:01.3Z","type":"server-made","phase":"booting","message":"hetzner made server 42"}`
	if l := until(t, lines, "data:"); l != want {
		t.Errorf("data is %s", l)
	}
	// Live.
	f.Happen("web-1", apitest.Step{Phase: fleet.PhaseJoined, Type: "joined"})
	if l := until(t, lines, "id:"); l != "id: 4" {
		t.Errorf("live event has %q", l)
	}
}

func TestStreamResumes(t *testing.T) {
	_, url := start(t, api.Options{})
	send(t, "POST", url+"/v1/nodes", createBody, nil) // events 1 to 4
	for _, c := range []struct{ query, last, want string }{
		{"", "", "id: 1"}, {"?after=3", "", "id: 4"}, {"", "2", "id: 3"}, {"?after=1", "3", "id: 4"}, {"?after=3", "1", "id: 4"},
	} {
		h := http.Header{}
		if c.last != "" {
			h.Set("Last-Event-ID", c.last)
		}
		lines, stop := stream(t, url+"/v1/events"+c.query, h)
		if l := until(t, lines, "id:"); l != c.want {
			t.Errorf("%q, Last-Event-ID %q: begins with %q, want %q", c.query, c.last, l, c.want)
		}
		stop()
	}
}

func TestStreamOfOneNode(t *testing.T) {
	f, url := start(t, api.Options{})
	send(t, "POST", url+"/v1/nodes", createBody, nil)
	send(t, "POST", url+"/v1/nodes", strings.Replace(createBody, "web-1", "web-2", 1), nil)
	lines, stop := stream(t, url+"/v1/events?node=web-2", nil)
	defer stop()
	if l := until(t, lines, "id:"); l != "id: 5" {
		t.Errorf("begins with %q", l)
	}
	f.Happen("web-1", apitest.Step{Phase: fleet.PhaseJoined, Type: "renewed"})
	f.Happen("web-2", apitest.Step{Phase: fleet.PhaseJoined, Type: "renewed"})
	for want := 6; want <= 8; want++ {
		until(t, lines, "id:")
	}
	if l := until(t, lines, "id:"); l != "id: 10" {
		t.Errorf("goes on with %q", l)
	}
}

func TestStreamShowsLife(t *testing.T) {
	_, url := start(t, api.Options{KeepAlive: 5 * time.Millisecond})
	lines, stop := stream(t, url+"/v1/events", nil)
	defer stop()
	until(t, lines, ": keep-alive")
	until(t, lines, ": keep-alive")
}

// TestStreamEndsWithTheFleet: the caller must see the end, to connect again.
func TestStreamEndsWithTheFleet(t *testing.T) {
	f, url := start(t, api.Options{})
	f.Fail = func(method, _ string) error {
		if method == "Watch" {
			return context.DeadlineExceeded
		}
		return nil
	}
	lines, stop := stream(t, url+"/v1/events", nil)
	defer stop()
	for {
		select {
		case _, ok := <-lines:
			if !ok {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the stream did not end")
		}
	}
}
