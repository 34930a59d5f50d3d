package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answers is a transport that answers the calls one after the other.
type answers struct {
	t       *testing.T
	steps   []func(*http.Request) (*http.Response, error)
	queries []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.queries = append(a.queries, r.URL.RawQuery+" "+r.Header.Get("Last-Event-ID"))
	if len(a.steps) == 0 {
		return nil, errors.New("no more answers")
	}
	step := a.steps[0]
	a.steps = a.steps[1:]
	return step(r)
}

// body streams text, then ends with err, or stays open until the request's end.
func body(text string, end error) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe()
		go func() {
			_, _ = io.WriteString(pw, text)
			if end == nil {
				<-r.Context().Done()
				end = r.Context().Err()
			}
			pw.CloseWithError(end)
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: pr, Request: r}, nil
	}
}

func refuse(status int, problem string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(problem)), Request: r}, nil
	}
}

func event(seq int) string {
	return fmt.Sprintf("id: %d\nevent: node\ndata: {\"seq\":%d,\"type\":\"t%d\"}\n\n", seq, seq, seq)
}

func testClient(t *testing.T, steps ...func(*http.Request) (*http.Response, error)) (*Client, *answers) {
	t.Helper()
	a := &answers{t: t, steps: steps}
	c, err := New(Options{URL: "http://127.0.0.1:1", Token: "t", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	return c, a
}

// TestWatchResumes: over broken connections, every event comes once.
func TestWatchResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := testClient(t,
			body(": hello\n\n"+event(1)+event(2)+"id: 3\nevent: node\ndata: {\"se", io.ErrUnexpectedEOF), // torn in the middle of an event
			func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			refuse(502, `{"title":"x","status":502}`),
			body(event(2)+event(3), io.EOF), // one too many, then a clean end
			body("", nil),                   // falls silent
			body("event: other\ndata: {}\n\n: keep-alive\n\n"+event(4), nil),
		)
		began, lost := time.Now(), 0
		var got []int64
		for e, err := range c.Watch(t.Context(), WatchOptions{Node: "n 1", OnReconnect: func(error) { lost++ }}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Seq)
			if e.Seq == 4 {
				break
			}
		}
		if d := cmp.Diff([]int64{1, 2, 3, 4}, got); d != "" {
			t.Error(d)
		}
		want := []string{"after=0&node=n+1 ", "after=2&node=n+1 2", "after=2&node=n+1 2", "after=2&node=n+1 2", "after=3&node=n+1 3", "after=3&node=n+1 3"}
		if d := cmp.Diff(want, a.queries); d != "" {
			t.Error(d)
		}
		if lost != 5 {
			t.Errorf("told of %d lost connections", lost)
		}
		if took := time.Since(began); took < idleLimit || took > idleLimit+5*maxBackoff {
			t.Errorf("took %v", took)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		steps []func(*http.Request) (*http.Response, error)
		class string
		says  string
	}{
		"never connected": {[]func(*http.Request) (*http.Response, error){func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }}, ClassUnreachable, "no route"},
		"refused":         {[]func(*http.Request) (*http.Response, error){refuse(404, `{"title":"Not found","detail":"there is no node","status":404,"class":"not-found"}`)}, ClassNotFound, "no node"},
		"refused later":   {[]func(*http.Request) (*http.Response, error){body(event(1), io.EOF), refuse(401, `{"title":"x","detail":"wrong token","class":"unauthorized"}`)}, ClassUnauthorized, "wrong token"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl, _ := testClient(t, c.steps...)
				var last error
				for _, err := range cl.Watch(t.Context(), WatchOptions{}) {
					last = err
				}
				if ClassOf(last) != c.class || !strings.Contains(last.Error(), c.says) {
					t.Errorf("%v", last)
				}
			})
		})
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	for name, step := range map[string]func(*http.Request) (*http.Response, error){"while open": body("", nil), "between": body("", io.EOF)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := testClient(t, step)
				why := errors.New("enough")
				ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, why)
				defer cancel()
				var last error
				for _, err := range c.Watch(ctx, WatchOptions{}) {
					last = err
				}
				if !errors.Is(last, why) {
					t.Errorf("%v", last)
				}
			})
		})
	}
}

func TestReadEvents(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []int64
		fails    bool
	}{
		{"plain", event(1) + event(2), []int64{1, 2}, false},
		{"carriage returns", strings.ReplaceAll(event(1), "\n", "\r\n"), []int64{1}, false},
		{"several data lines", "data: {\"seq\":\ndata: 5}\n\n", []int64{5}, false},
		{"no space", "data:{\"seq\":6}\n\n", []int64{6}, false},
		{"number from the id", "id: 7\ndata: {}\n\n", []int64{7}, false},
		{"comment and unknown fields", ": x\nretry: 10\nfoo\n\n" + event(8), []int64{8}, false},
		{"other events", "event: other\ndata: nonsense\n\n" + event(9), []int64{9}, false},
		{"without its end", "data: {\"seq\":1}\n", nil, false},
		{"no JSON", "data: {\n\n", nil, true},
		{"endless line", "data: " + strings.Repeat("x", maxLine+1), nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int64
			err := readEvents(strings.NewReader(c.in), func() {}, func(e Event) bool { got = append(got, e.Seq); return true })
			if d := cmp.Diff(c.want, got); d != "" || (err != nil) != c.fails {
				t.Errorf("%v %s", err, d)
			}
		})
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add(event(1) + ": x\n\n" + event(2))
	f.Add("data: {\"seq\":\r\ndata: 5}\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		n := 0
		_ = readEvents(strings.NewReader(in), func() {}, func(Event) bool { n++; return true })
		if n > strings.Count(in, "data") {
			t.Errorf("%d events from %q", n, in)
		}
	})
}

// TestLostAnswers: a call that is safe to repeat is, on a connection that
// broke; and a create keeps its key.
func TestLostAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		call  func(context.Context, *Client) error
		calls int
	}{
		{"create", io.EOF, func(ctx context.Context, c *Client) error { _, err := c.CreateNode(ctx, CreateNode{}); return err }, 3},
		{"list", io.ErrUnexpectedEOF, func(ctx context.Context, c *Client) error { _, err := c.Nodes(ctx, NodeFilter{}); return err }, 3},
		{"delete", io.EOF, func(ctx context.Context, c *Client) error { _, err := c.DeleteNode(ctx, "a"); return err }, 3},
		{"add account", io.EOF, func(ctx context.Context, c *Client) error { _, err := c.AddAccount(ctx, AddAccount{}); return err }, 1},
		{"ticket", io.EOF, func(ctx context.Context, c *Client) error { _, err := c.Ticket(ctx, CreateTicket{}); return err }, 1},
		{"refused connection", errors.New("refused"), func(ctx context.Context, c *Client) error { _, err := c.Info(ctx); return err }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := map[string]bool{}
			lose := func(r *http.Request) (*http.Response, error) {
				keys[r.Header.Get("Idempotency-Key")] = true
				return nil, c.err
			}
			cl, a := testClient(t, lose, lose, lose, lose)
			err := c.call(t.Context(), cl)
			if ClassOf(err) != ClassUnreachable || !errors.Is(err, c.err) {
				t.Errorf("%v", err)
			}
			if len(a.queries) != c.calls || len(keys) != 1 {
				t.Errorf("%d calls with keys %v, want %d", len(a.queries), keys, c.calls)
			}
		})
	}
}

// TestStrangers: what is no control plane's answer is told as such.
func TestStrangers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"web page": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusNotFound) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			c, err := New(Options{URL: s.URL, Token: "secret-token"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Info(t.Context())
			if err == nil || strings.Contains(err.Error(), "secret-token") || !strings.Contains(err.Error(), strings.TrimPrefix(s.URL, "http://")) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrorFromReason(t *testing.T) {
	n := Node{Name: "web-1", Provider: "hetzner", ServerID: "42", Reason: &Reason{Class: ClassCapacity, Message: "none left", Hint: "elsewhere", RequestID: "r"}}
	want := &Error{Class: ClassCapacity, Message: "node web-1 failed: none left", Hint: "elsewhere", Provider: "hetzner", RequestID: "r",
		LeftBehind: []string{"server 42 at hetzner (being removed)"}}
	if d := cmp.Diff(want, ErrorFromReason(n)); d != "" {
		t.Error(d)
	}
	n.ServerGone = true
	if e := ErrorFromReason(n); len(e.LeftBehind) != 0 {
		t.Errorf("%v", e.LeftBehind)
	}
}
