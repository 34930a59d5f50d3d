package cloudsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// routes makes the handler of everything.
func (s *Sim) routes() http.Handler {
	mux := http.NewServeMux()
	s.awsRoutes(mux)
	s.azureRoutes(mux)
	s.digitalOceanRoutes(mux)
	s.gcpRoutes(mux)
	s.hetznerRoutes(mux)
	mux.HandleFunc("GET /_sim/ledger", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"summary": s.LedgerSummary(), "entries": orEmpty(s.Ledger())})
	})
	mux.HandleFunc("GET /_sim/requests", s.getRequests)
	mux.HandleFunc("GET /_sim/guests", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"guests": orEmpty(s.Guests())})
	})
	mux.HandleFunc("GET /_sim/guests/{id...}", s.getGuest)
	mux.HandleFunc("GET /_sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]any{"faults": orEmpty(s.Faults())})
	})
	mux.HandleFunc("POST /_sim/faults", s.postFault)
	mux.HandleFunc("DELETE /_sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_sim/clock", s.getClock)
	mux.HandleFunc("POST /_sim/clock", s.postClock)
	mux.HandleFunc("/_sim/", func(w http.ResponseWriter, r *http.Request) {
		replyError(w, http.StatusNotFound, fmt.Errorf("no such control call: %s %s", r.Method, r.URL.Path))
	})
	return s.azureSignIn(mux)
}

func (s *Sim) getRequests(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	dropped := s.dropped
	s.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{"requests": orEmpty(s.Requests()), "forgotten": dropped})
}

func (s *Sim) getGuest(w http.ResponseWriter, r *http.Request) {
	for _, g := range s.Guests() {
		if g.Server == r.PathValue("id") || g.Name == r.PathValue("id") {
			reply(w, http.StatusOK, g)
			return
		}
	}
	replyError(w, http.StatusNotFound, fmt.Errorf("no guest %q", r.PathValue("id")))
}

func (s *Sim) postFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if err := readControl(r, &f); err != nil {
		replyError(w, http.StatusBadRequest, err)
		return
	}
	id, err := s.AddFault(f)
	if err != nil {
		replyError(w, http.StatusBadRequest, err)
		return
	}
	f.ID = id
	reply(w, http.StatusCreated, f)
}

func (s *Sim) getClock(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{"now": s.Now(), "speed": s.opts.Speed, "manual": s.opts.Manual})
}

func (s *Sim) postClock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Advance Duration `json:"advance"`
	}
	if err := readControl(r, &body); err != nil {
		replyError(w, http.StatusBadRequest, err)
		return
	}
	if body.Advance < 0 {
		replyError(w, http.StatusBadRequest, fmt.Errorf("the clock cannot be set back"))
		return
	}
	s.Advance(time.Duration(body.Advance))
	s.getClock(w, r)
}

func readControl(r *http.Request, v any) error {
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRequestBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("the body is not what this call takes: %w", err)
	}
	return nil
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the connection is all that can fail here
}

func replyError(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
