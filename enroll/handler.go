package enroll

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"
)

// HandlerOptions are the settings of the server half; each has a default.
type HandlerOptions struct {
	// Logger gets a line for each join, renewal and refusal: token id, source,
	// outcome, never a secret. Default: none.
	Logger *slog.Logger
	// Now is what time it is. Default: time.Now.
	Now func() time.Time
	// HeartbeatInterval is what nodes are told. Default: 30 seconds.
	HeartbeatInterval time.Duration
	// JoinsPerMinute is how many join attempts one source address may make,
	// with a burst of the same number. Default: 60, which suits a fleet behind
	// one address.
	JoinsPerMinute int
	// RenewGrace is how long after its end a certificate may still be renewed,
	// for nodes that were switched off: possession of its key, and a record
	// that lets the node in, are asked for all the same. Default: 30 days.
	RenewGrace time.Duration
}

// refusalTime is how long after its request a refused token is answered: longer
// than any registry takes to find out why.
const refusalTime = 150 * time.Millisecond

type handler struct {
	ca    *CA
	reg   Registry
	opts  HandlerOptions
	limit *sourceLimit
}

// NewHandler returns the handler of the three calls. Serve it with
// [CA.NodeTLSConfig].
func NewHandler(ca *CA, reg Registry, opts HandlerOptions) http.Handler {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.HeartbeatInterval == 0 {
		opts.HeartbeatInterval = 30 * time.Second
	}
	if opts.JoinsPerMinute == 0 {
		opts.JoinsPerMinute = 60
	}
	if opts.RenewGrace == 0 {
		opts.RenewGrace = 30 * 24 * time.Hour
	}
	h := &handler{ca: ca, reg: reg, opts: opts, limit: newSourceLimit(opts.JoinsPerMinute, opts.Now)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+PathJoin, h.join)
	mux.HandleFunc("POST "+PathRenew, h.renew)
	mux.HandleFunc("POST "+PathHeartbeat, h.heartbeat)
	return mux
}

func (h *handler) join(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	source := addressOf(r)
	log := h.opts.Logger.With("source", source)
	if wait := h.limit.wait(sourceOf(source)); wait > 0 {
		log.WarnContext(r.Context(), "join throttled")
		h.throttled(w, wait)
		return
	}
	var body joinBody
	if err := decodeStrict(r.Body, &body); err != nil {
		h.refuse(w, http.StatusBadRequest, codeBadRequest, err.Error(), true)
		return
	}
	csr, keyHash, err := parseRequest(body.CSR)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, codeBadRequest, err.Error(), true)
		return
	}
	token, err := ParseToken(body.Token)
	if err != nil {
		log.WarnContext(r.Context(), "join refused", "why", "malformed token")
		h.refuseToken(r.Context(), w, arrived)
		return
	}
	log = log.With("token_id", token.ID())
	res, err := h.reg.Redeem(r.Context(), RedeemRequest{
		TokenID: token.ID(), SecretHash: token.SecretHash(), KeyHash: keyHash, Source: source, Facts: body.Facts.clean(),
	}, func(nodeID string) (*Certificate, error) { return h.ca.SignNode(nodeID, csr.PublicKey) })
	if errors.Is(err, ErrTokenRefused) {
		log.WarnContext(r.Context(), "join refused", "why", err.Error())
		h.refuseToken(r.Context(), w, arrived)
		return
	}
	if err != nil {
		h.fail(r.Context(), w, log, "join", err)
		return
	}
	log.InfoContext(r.Context(), "joined", "node_id", res.NodeID, "node", res.NodeName, "serial", res.Certificate.Serial)
	h.answer(w, joinAnswer{
		NodeID: res.NodeID, NodeName: res.NodeName, Certificate: string(res.Certificate.PEM),
		CA: string(h.ca.CertificatePEM()), Time: h.now(),
	})
}

func (h *handler) renew(w http.ResponseWriter, r *http.Request) {
	p, ok := h.peer(w, r, h.opts.RenewGrace)
	if !ok {
		return
	}
	log := h.opts.Logger.With("source", addressOf(r), "node_id", p.nodeID)
	var body renewBody
	if err := decodeStrict(r.Body, &body); err != nil {
		h.refuse(w, http.StatusBadRequest, codeBadRequest, err.Error(), true)
		return
	}
	csr, _, err := parseRequest(body.CSR)
	if err != nil {
		h.refuse(w, http.StatusBadRequest, codeBadRequest, err.Error(), true)
		return
	}
	cert, err := h.reg.Renew(r.Context(), p.nodeID, p.serial, func(id string) (*Certificate, error) {
		return h.ca.SignNode(id, csr.PublicKey)
	})
	if err != nil {
		h.fail(r.Context(), w, log, "renewal", err)
		return
	}
	log.InfoContext(r.Context(), "certificate renewed", "serial", cert.Serial, "not_after", cert.NotAfter)
	h.answer(w, renewAnswer{Certificate: string(cert.PEM), CA: string(h.ca.CertificatePEM()), Time: h.now()})
}

func (h *handler) heartbeat(w http.ResponseWriter, r *http.Request) {
	p, ok := h.peer(w, r, 0)
	if !ok {
		return
	}
	var hb Heartbeat
	if err := decodeStrict(r.Body, &hb); err != nil {
		h.refuse(w, http.StatusBadRequest, codeBadRequest, err.Error(), true)
		return
	}
	hb.Facts = hb.Facts.clean()
	if err := h.reg.Heartbeat(r.Context(), p.nodeID, p.serial, hb); err != nil {
		h.fail(r.Context(), w, h.opts.Logger.With("source", addressOf(r), "node_id", p.nodeID), "heartbeat", err)
		return
	}
	h.answer(w, HeartbeatReply{Interval: int(h.opts.HeartbeatInterval / time.Second), Time: h.now()})
}

// peer returns who calls, or answers that nobody known does. A certificate may
// have run out by grace at most.
func (h *handler) peer(w http.ResponseWriter, r *http.Request, grace time.Duration) (peer, bool) {
	p, ok := h.ca.identify(r.TLS)
	now := h.opts.Now()
	switch {
	case !ok:
		h.refuse(w, http.StatusUnauthorized, codeNoIdentity, "this call needs the node's own certificate", true)
	case now.Before(p.notBefore):
		// The control plane's own clock was set back: no reason to turn a
		// whole fleet away for good.
		h.opts.Logger.ErrorContext(r.Context(), "a node's certificate is from the future: is this machine's clock right?",
			"node_id", p.nodeID, "not_before", p.notBefore)
		h.refuse(w, http.StatusUnauthorized, codeNoIdentity, "the node's certificate is not valid yet by the control plane's clock", false)
	case now.After(p.notAfter.Add(grace)):
		h.refuse(w, http.StatusUnauthorized, codeNoIdentity, "the node's certificate has run out", grace > 0)
	default:
		return p, true
	}
	return peer{}, false
}

func (h *handler) fail(ctx context.Context, w http.ResponseWriter, log *slog.Logger, what string, err error) {
	switch {
	case errors.Is(err, ErrRevoked):
		// The usual end of a node: its agent calls once more after the delete.
		log.InfoContext(ctx, what+" refused", "why", err.Error())
		h.refuse(w, http.StatusForbidden, codeRevoked, "this node is no longer let in", true)
	case errors.Is(err, ErrThrottled):
		h.throttled(w, time.Second)
	default:
		log.ErrorContext(ctx, what+" failed", "error", err.Error())
		w.Header().Set("Retry-After", "2")
		h.refuse(w, http.StatusServiceUnavailable, codeTrouble, "the control plane cannot answer now; try again", false)
	}
}

// refuseToken says the same to everyone, and after the same time: what is wrong
// with a token is for the log of those who made it.
func (h *handler) refuseToken(ctx context.Context, w http.ResponseWriter, arrived time.Time) {
	t := time.NewTimer(refusalTime - time.Since(arrived))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return
	}
	h.refuse(w, http.StatusForbidden, codeRefused, "the join token is not good: unknown, expired, or used already", true)
}

func (h *handler) throttled(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
	h.refuse(w, http.StatusTooManyRequests, codeThrottled, "too many attempts; try again later", false)
}

func (h *handler) refuse(w http.ResponseWriter, status int, code, message string, final bool) {
	writeJSON(w, status, errorAnswer{Code: code, Message: message, Final: final, Time: h.now()})
}

func (h *handler) answer(w http.ResponseWriter, v any) { writeJSON(w, http.StatusOK, v) }

func (h *handler) now() time.Time { return h.opts.Now().UTC().Truncate(time.Millisecond) }

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the connection is all that can fail here
}

// parseRequest checks a certificate request: its form, its key, and that the
// sender has the private half. Nothing else of it counts.
func parseRequest(text string) (*x509.CertificateRequest, string, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) != 0 {
		return nil, "", errors.New("csr: not one certificate request in PEM form")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, "", errors.New("csr: damaged")
	}
	if err := checkPublicKey(csr.PublicKey); err != nil {
		return nil, "", errors.New("csr: " + err.Error())
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, "", errors.New("csr: its signature is not by its key")
	}
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return csr, hex.EncodeToString(sum[:]), nil
}
