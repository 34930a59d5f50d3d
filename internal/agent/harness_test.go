package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepClock stands still; the agent's pauses end when the test says so.
type stepClock struct {
	mu     sync.Mutex
	now    time.Time
	asleep chan time.Duration // the agent has begun to wait for so long
	wake   chan struct{}
}

func newStepClock() *stepClock {
	return &stepClock{now: time.Now(), asleep: make(chan time.Duration), wake: make(chan struct{})}
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case c.asleep <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a control plane over real TLS, and a machine's files.
type world struct {
	t     *testing.T
	clock *stepClock
	ca    *enroll.CA
	reg   *enrolltest.Registry
	addr  string
	root  string
	log   *buffer

	mu     sync.Mutex
	paths  []string
	bodies []string
	answer func(w http.ResponseWriter, r *http.Request) bool // before the real one, if not nil
	server *http.Server
	served chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: newStepClock(), root: t.TempDir(), log: &buffer{}}
	w.reg = &enrolltest.Registry{Now: w.clock.Now}
	var err error
	if w.ca, err = enroll.OpenCA(t.TempDir(), enroll.CAOptions{Now: w.clock.Now}); err != nil {
		t.Fatal(err)
	}
	w.up("127.0.0.1:0")
	t.Cleanup(w.down)
	return w
}

// up starts the control plane at an address.
func (w *world) up(addr string) {
	w.t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	real := enroll.NewHandler(w.ca, w.reg, enroll.HandlerOptions{Now: w.clock.Now, HeartbeatInterval: 40 * time.Second, JoinsPerMinute: 100_000})
	w.server = &http.Server{
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			w.mu.Lock()
			w.paths, w.bodies = append(w.paths, r.URL.Path), append(w.bodies, string(body))
			first := w.answer
			w.mu.Unlock()
			if first == nil || !first(rw, r) {
				real.ServeHTTP(rw, r)
			}
		}),
	}
	server, served := w.server, make(chan struct{})
	w.served = served
	go func() {
		defer close(served)
		_ = server.Serve(tls.NewListener(ln, w.ca.NodeTLSConfig("127.0.0.1")))
	}()
}

func (w *world) down() {
	_ = w.server.Close()
	<-w.served
}

// answerWith has f see each request first; true means that it has answered.
func (w *world) answerWith(f func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.paths...)
}

const (
	testIdentity = "/var/lib/fleet/identity"
	testJoinFile = "/etc/fleet/join/join.env"
	testUserData = "/var/lib/cloud/instances/i-1/user-data.txt"
)

// boot writes what cloud-init would have written for a token.
func (w *world) boot(token enroll.Token, pin enroll.Fingerprint) {
	w.t.Helper()
	env := "JOIN_TOKEN=" + token.Reveal() + "\nCA_FINGERPRINT=" + string(pin) + "\n"
	writeTest(w.t, w.root+testJoinFile, env, 0o600)
	writeTest(w.t, w.root+testUserData, "#cloud-config\nwrite_files:\n- content: |\n    "+strings.ReplaceAll(env, "\n", "\n    "), 0o600)
	writeTest(w.t, w.root+"/run/cloud-init/instance-data-sensitive.json", `{"user_data": "JOIN_TOKEN=`+token.Reveal()+`\n"}`, 0o600)
	writeTest(w.t, w.root+"/var/lib/cloud/data/instance-id", "i-1\n", 0o644)
	writeTest(w.t, w.root+"/etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\n", 0o644)
	writeTest(w.t, w.root+"/proc/sys/kernel/osrelease", "6.8.0-79-generic\n", 0o444)
	writeTest(w.t, w.root+"/etc/hostname", "vm-1\n", 0o644)
}

func (w *world) config() Config {
	return Config{
		Addr: w.addr, NodeName: "web-1", IdentityDir: testIdentity, JoinFile: testJoinFile,
		ScrubDirs: []string{"/var/lib/cloud", "/run/cloud-init"}, Version: "v1.2.3", Root: w.root,
		Clock: w.clock, Random: func() float64 { return 0.5 },
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
}

// running is an agent at work.
type running struct {
	w    *world
	stop context.CancelFunc
	done chan error
}

// run starts an agent; it is stopped at the end of the test at the latest.
func (w *world) run(cfg Config) *running {
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &running{w: w, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- Run(ctx, cfg); close(r.done) }()
	w.t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// asleep waits until the agent waits, and returns for how long it means to.
func (r *running) asleep() time.Duration {
	r.w.t.Helper()
	select {
	case d := <-r.w.clock.asleep:
		return d
	case err := <-r.done:
		r.w.t.Fatalf("the agent ended: %v\n%s", err, r.w.log)
	case <-time.After(20 * time.Second):
		r.w.t.Fatalf("the agent does nothing\n%s", r.w.log)
	}
	return 0
}

// step lets a pause pass, and waits for the next.
func (r *running) step(d time.Duration) time.Duration {
	r.w.t.Helper()
	r.w.clock.Advance(d)
	r.w.clock.wake <- struct{}{}
	return r.asleep()
}

// end stops the agent as SIGTERM does.
func (r *running) end() {
	r.w.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		r.w.t.Errorf("stopped with %v, want nil", err)
	}
}

// joined runs an agent until it has sent its first heartbeat.
func (w *world) joined() (*running, enroll.Token) {
	w.t.Helper()
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, w.ca.Fingerprint())
	r := w.run(w.config())
	r.asleep()
	if n := w.reg.Node("n-1"); !n.Joined || n.Heartbeats != 1 {
		w.t.Fatalf("the registry saw %+v\n%s", n, w.log)
	}
	return r, token
}

// noTrace fails the test when the token's secret is in any file of the
// machine, or in the log.
func (w *world) noTrace(token enroll.Token) {
	w.t.Helper()
	files := 0
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		if strings.Contains(readTest(w.t, path), secretOf(token)) {
			w.t.Errorf("the token's secret is in %s", strings.TrimPrefix(path, w.root))
		}
		return nil
	})
	if err != nil || files < 4 {
		w.t.Errorf("looked at %d files: %v", files, err)
	}
	if strings.Contains(w.log.String(), secretOf(token)) {
		w.t.Errorf("the token's secret is in the log:\n%s", w.log)
	}
}

func (w *world) wantLog(text string, times int) {
	w.t.Helper()
	if got := strings.Count(w.log.String(), text); got != times {
		w.t.Errorf("the log says %q %d times, want %d:\n%s", text, got, times, w.log)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
