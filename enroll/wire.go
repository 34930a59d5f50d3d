package enroll

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"
)

// The three calls that a node makes; each is a POST with a JSON body.
const (
	PathJoin      = "/enroll/v1/join"
	PathRenew     = "/enroll/v1/renew"
	PathHeartbeat = "/enroll/v1/heartbeat"
)

// maxBody is the most bytes that a request's or an answer's body may have.
const maxBody = 16 << 10

// Facts is what a node says of itself. Nothing is decided by it.
type Facts struct {
	OS            string `json:"os,omitempty"`             // as in os-release, PRETTY_NAME
	Kernel        string `json:"kernel,omitempty"`         // release
	Architecture  string `json:"architecture,omitempty"`   // as Go names it: amd64, arm64
	DockerVersion string `json:"docker_version,omitempty"` // of the engine
	AgentVersion  string `json:"agent_version,omitempty"`
	Hostname      string `json:"hostname,omitempty"`
}

// maxFact is the most bytes of one fact that are kept.
const maxFact = 128

// clean keeps what is fit to be stored and shown: printable, and short.
func (f Facts) clean() Facts {
	for _, s := range []*string{&f.OS, &f.Kernel, &f.Architecture, &f.DockerVersion, &f.AgentVersion, &f.Hostname} {
		b := make([]byte, 0, min(len(*s), maxFact))
		for i := 0; i < len(*s) && len(b) < maxFact; i++ {
			if c := (*s)[i]; c >= 0x20 && c < 0x7f {
				b = append(b, c)
			}
		}
		*s = string(b)
	}
	return f
}

// joinBody holds the token in the clear: it is written to a pinned connection
// and nowhere else.
type joinBody struct {
	Token string `json:"token"`
	CSR   string `json:"csr"` // PKCS#10 in PEM form
	Facts Facts  `json:"facts"`
}

// LogValue keeps the token out of logs.
func (joinBody) LogValue() slog.Value { return slog.StringValue("(join request)") }

type joinAnswer struct {
	NodeID      string    `json:"node_id"`
	NodeName    string    `json:"node_name"`
	Certificate string    `json:"certificate"` // PEM
	CA          string    `json:"ca"`          // PEM
	Time        time.Time `json:"time"`        // the control plane's clock
}

type renewBody struct {
	CSR string `json:"csr"`
}

type renewAnswer struct {
	Certificate string    `json:"certificate"`
	CA          string    `json:"ca"`
	Time        time.Time `json:"time"`
}

// Heartbeat is a node's sign of life.
type Heartbeat struct {
	Facts  Facts     `json:"facts"`
	SentAt time.Time `json:"sent_at"` // by the node's clock
}

// HeartbeatReply is the answer to a heartbeat.
type HeartbeatReply struct {
	// Interval is in how many seconds the next one is expected.
	Interval int       `json:"interval_seconds"`
	Time     time.Time `json:"time"` // the control plane's clock
}

// errorAnswer is the body of every refusal.
type errorAnswer struct {
	// Code is one of the code constants.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Final tells that the same request will be refused for ever.
	Final bool      `json:"final"`
	Time  time.Time `json:"time"`
}

const (
	codeBadRequest = "bad_request"
	codeRefused    = "token_refused"
	codeRevoked    = "revoked"
	codeThrottled  = "throttled"
	codeNoIdentity = "no_identity"
	codeTrouble    = "unavailable"
)

// decodeStrict reads one JSON value with known fields alone, and nothing after
// it: what the server half does with a request.
func decodeStrict(r io.Reader, v any) error { return decode(r, v, true) }

// decodeAnswer reads an answer, in which a newer control plane may say more
// than is known here.
func decodeAnswer(r io.Reader, v any) error { return decode(r, v, false) }

func decode(r io.Reader, v any, strict bool) error {
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	switch {
	case err != nil:
		return errors.New("the body could not be read")
	case len(data) > maxBody:
		return errors.New("the body is larger than 16 KiB")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		return errors.New("the body is not the JSON that this call takes")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands after the JSON body")
	}
	return nil
}
