package enroll_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func caDER(t *testing.T, ca *enroll.CA) []byte {
	t.Helper()
	block, _ := pem.Decode(ca.CertificatePEM())
	if block == nil {
		t.Fatal("the CA's certificate is not PEM")
	}
	return block.Bytes
}

// plane is a control plane over real TLS on loopback.
type plane struct {
	ca   *enroll.CA
	reg  *enrolltest.Registry
	addr string
	now  *clock
	log  *lockedBuffer

	mu     sync.Mutex
	bodies []string // of every request that arrived
}

type clock struct{ nanos atomic.Int64 }

func newClock(at time.Time) *clock       { c := &clock{}; c.nanos.Store(at.UnixNano()); return c }
func (c *clock) Now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }
func (p *plane) dial() enroll.Dial {
	return enroll.Dial{Addr: p.addr, Pins: pins(p.ca), Now: p.now.Now}
}
func pins(ca *enroll.CA) []enroll.Fingerprint { return []enroll.Fingerprint{ca.Fingerprint()} }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type planeOption func(*planeConfig)

type planeConfig struct {
	handler enroll.HandlerOptions
	reg     enroll.Registry
	tls     func(*enroll.CA) *tls.Config
	wrap    func(http.Handler) http.Handler
	ca      enroll.CAOptions
}

func newPlane(t *testing.T, opts ...planeOption) *plane {
	t.Helper()
	p := &plane{now: newClock(time.Now()), log: &lockedBuffer{}}
	p.reg = &enrolltest.Registry{Now: p.now.Now}
	cfg := planeConfig{
		reg: p.reg, ca: enroll.CAOptions{Now: p.now.Now},
		handler: enroll.HandlerOptions{Now: p.now.Now, Logger: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})), JoinsPerMinute: 100_000},
		tls:     func(ca *enroll.CA) *tls.Config { return ca.NodeTLSConfig("127.0.0.1", "localhost") },
		wrap:    func(h http.Handler) http.Handler { return h },
	}
	for _, o := range opts {
		o(&cfg)
	}
	p.ca = openCA(t, t.TempDir(), cfg.ca)
	h := cfg.wrap(enroll.NewHandler(p.ca, cfg.reg, cfg.handler))
	srv := &http.Server{
		ErrorLog: log.New(p.log, "", 0), ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			p.mu.Lock()
			p.bodies = append(p.bodies, string(body))
			p.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}),
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(tls.NewListener(ln, cfg.tls(p.ca)))
	}()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return p
}

func (p *plane) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

// quiet fails the test when the log holds the token's secret.
func (p *plane) quiet(t *testing.T, token enroll.Token) {
	t.Helper()
	if _, secret, _ := strings.Cut(token.Reveal(), "."); strings.Contains(p.log.String(), secret) {
		t.Errorf("the log tells the token's secret:\n%s", p.log)
	}
}

func newKey(t *testing.T) []byte {
	t.Helper()
	_, data, err := enroll.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (p *plane) join(t *testing.T, nodeID string) *enroll.Identity {
	t.Helper()
	token := p.reg.Issue(nodeID, nodeID+"-name", time.Hour)
	id, err := enroll.Join(t.Context(), p.dial(), token, newKey(t), enroll.Facts{OS: "Test OS"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// serveTo returns what a handler answers.
func serveTo(h http.Handler, r *http.Request) []byte {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// identityOf makes a node's identity of any certificate.
func identityOf(t *testing.T, c *tls.Certificate) *enroll.Identity {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &enroll.Identity{
		NodeID: "n", CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}
