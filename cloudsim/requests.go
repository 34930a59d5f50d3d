package cloudsim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Request is one request that a provider's API was sent. Neither credentials
// nor bodies are kept.
type Request struct {
	At       time.Time `json:"at"` // simulated time
	Provider string    `json:"provider"`
	Project  string    `json:"project,omitempty"`
	Call     string    `json:"call"` // "create server"
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Name     string    `json:"name,omitempty"`
	Status   int       `json:"status"` // 0: the connection was cut
	// Took is how much real time it took, with what faults made of it. In JSON
	// it is text, as "1.5ms". It is zero when the clock is manual: such a log
	// is the same in every run.
	Took  Duration `json:"took"`
	Fault Effect   `json:"fault,omitempty"`
}

// maxRequests is how many requests the log keeps.
const maxRequests = 20_000

// maxRequestBody is the most bytes that an API reads.
const maxRequestBody = 1 << 20

// Requests returns the log of requests, oldest first.
func (s *Sim) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// note logs a request. s.mu must be held.
func (s *Sim) note(r Request) {
	if len(s.requests) >= maxRequests {
		n := copy(s.requests, s.requests[maxRequests/10:])
		s.dropped += len(s.requests) - n
		s.requests = s.requests[:n]
	}
	s.requests = append(s.requests, r)
}

// call is one request on its way through a provider's API.
type call struct {
	sim     *Sim
	project *project
	name    string // of the call
	subject string // of the thing that it is about, when it says
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	now     time.Time
}

// faulty does a call with what the rules do to it. answer writes an error in
// the provider's form; do does the call, with s.mu held, and writes to a buffer.
func (c *call) faulty(provider string, refuse func(w http.ResponseWriter, f Fault), do func(w http.ResponseWriter)) {
	s, out := c.sim, c.w
	req := Request{Provider: provider, Call: c.name, Method: c.r.Method, Path: c.r.URL.Path, Name: c.subject}
	began := time.Now()
	var f *Fault
	s.locked(func(time.Time) { f = s.hit(answerEffects, provider, c.name, c.subject) })
	if f != nil {
		req.Fault = f.Effect
	}
	finish := func(status int) {
		s.locked(func(now time.Time) {
			req.At, req.Status = now, status
			if !s.opts.Manual {
				req.Took = Duration(time.Since(began).Round(time.Microsecond))
			}
			if c.project != nil {
				req.Project = c.project.name
			}
			s.note(req)
		})
	}
	rec := &buffered{header: http.Header{}, code: http.StatusOK}
	perform := func() {
		s.locked(func(now time.Time) {
			c.now = now
			do(rec)
		})
	}
	switch {
	case f == nil:
		perform()
	case f.Effect == EffectDropBefore:
		finish(0)
		cut(out)
		return
	case f.Effect == EffectDropAfter:
		perform()
		finish(0)
		cut(out)
		return
	case f.Effect == EffectDelay:
		pause(c.r, f.Delay)
		perform()
	case f.Effect == EffectDelayAnswer:
		perform()
		pause(c.r, f.Delay)
	default:
		s.locked(func(now time.Time) {
			c.now = now
			refuse(rec, *f)
		})
	}
	finish(rec.code)
	for k, v := range rec.header {
		out.Header()[k] = v
	}
	out.WriteHeader(rec.code)
	_, _ = out.Write(rec.body.Bytes()) // the connection is all that can fail here
}

// buffered is an answer that has not been sent yet.
type buffered struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(code int)        { b.code = code }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

// pause waits for real time, or the end of the request.
func pause(r *http.Request, d Duration) {
	t := time.NewTimer(time.Duration(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler)
}

// baseOf is the address at which the caller reaches this cloud.
func baseOf(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// readBody reads a request's body, and the name in it when it is JSON that has
// one.
func readBody(r *http.Request) (body []byte, name string, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, maxRequestBody))
	if err != nil {
		return nil, "", err
	}
	var named struct {
		Name string `json:"name"`
	}
	if len(bytes.TrimSpace(body)) > 0 {
		_ = json.Unmarshal(body, &named) // no name is fine
	}
	return body, named.Name, nil
}
