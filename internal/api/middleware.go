package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/slipway-dev/slipway/client"
)

// maxBody bounds a request's body; the largest credential is some kilobytes.
const maxBody = 256 << 10

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// chain puts around h what every request goes through, outermost last.
func chain(h http.Handler, o Options) http.Handler {
	h = http.MaxBytesHandler(h, maxBody)
	h = requireToken(o.Token, h)
	h = secureHeaders(h)
	return logged(o.Logger, h)
}

// secureHeaders: answers are data for programs, to be neither kept, guessed at
// nor shown in a frame. There is no CORS: no page of another origin may call.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// logged gives each request an id, writes one line about it and turns a panic
// into an answer. Neither headers, query nor body are logged.
func logged(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, start := uuid.NewString(), time.Now()
		w.Header().Set("X-Request-Id", id)
		rec := &recorder{ResponseWriter: w}
		ctx := context.WithValue(r.Context(), requestIDKey{}, id)
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				log.ErrorContext(ctx, "panic", "request_id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				if rec.status == 0 {
					writeProblem(rec, plainProblem(http.StatusInternalServerError, client.ClassInternal,
						"the control plane met an error that it has no name for; its log says more", "look for "+id+" in the control plane's log"))
				}
			}
			level := slog.LevelInfo
			if rec.status >= http.StatusInternalServerError {
				level = slog.LevelWarn
			}
			log.LogAttrs(ctx, level, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path),
				slog.Int("status", rec.status), slog.Duration("took", time.Since(start)),
				slog.String("remote", r.RemoteAddr), slog.String("request_id", id))
		}()
		next.ServeHTTP(rec, r.WithContext(ctx))
	})
}

// recorder remembers the status for the log.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(code int) {
	if r.status == 0 {
		r.status = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func writeProblem(w http.ResponseWriter, p client.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller is gone when this fails
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, plainProblem(http.StatusNotFound, client.ClassNotFound,
		fmt.Sprintf("the API has no %s %s", r.Method, r.URL.Path), "GET /v1/openapi.json describes all calls"))
}
