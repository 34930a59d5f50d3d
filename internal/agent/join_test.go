package agent

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

func TestJoinAndHeartbeat(t *testing.T) {
	w := newWorld(t)
	r, token := w.joined()
	if got := w.requests(); !slices.Equal(got, []string{enroll.PathJoin, enroll.PathHeartbeat}) {
		t.Errorf("requests %v", got)
	}
	want := enroll.Facts{OS: "Ubuntu 24.04.3 LTS", Kernel: "6.8.0-79-generic", Architecture: w.config().facts(t.Context()).Architecture, AgentVersion: "v1.2.3", Hostname: "vm-1"}
	if got := w.reg.Node("n-1").Facts; got != want {
		t.Errorf("facts %+v, want %+v", got, want)
	}
	// The control plane said 40 s; half of the jitter's tenth is off.
	if d := r.step(38 * time.Second); d != 38*time.Second {
		t.Errorf("the pause is %s, want 38s", d)
	}
	if n := w.reg.Node("n-1"); n.Heartbeats != 2 {
		t.Errorf("%d heartbeats, want 2", n.Heartbeats)
	}
	w.noTrace(token)
	if exists(w.root + testJoinFile) {
		t.Error("the join file is still there")
	}
	w.wantLog("copies of the used join token overwritten", 1)
	w.wantLog("the control plane has heard from this node", 1)
	for _, body := range w.bodies[1:] {
		if strings.Contains(body, token.ID()) {
			t.Error("the token was sent after the join")
		}
	}
	r.end()
	w.wantLog("msg=stopped", 1)
}

func TestIdentityIsForRootAlone(t *testing.T) {
	w := newWorld(t)
	// Somebody made it with other modes before.
	if err := os.MkdirAll(w.root+testIdentity, 0o755); err != nil {
		t.Fatal(err)
	}
	w.joined()
	err := filepath.WalkDir(w.root+testIdentity, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(w.root + testIdentity); len(entries) != 1 {
		t.Errorf("the identity directory holds %v, want one file", entries)
	}
	if strings.Contains(w.log.String(), "PRIVATE KEY") {
		t.Error("the log holds a key")
	}
}

func TestWrongFingerprint(t *testing.T) {
	w := newWorld(t)
	other, err := enroll.OpenCA(t.TempDir(), enroll.CAOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, other.Fingerprint())
	r := w.run(w.config())
	r.asleep()
	for range 3 {
		if d := r.step(time.Minute); d > time.Minute {
			t.Errorf("the next try is in %s: what can be mended is tried within a minute", d)
		}
	}
	if got := w.requests(); len(got) != 0 {
		t.Errorf("a server that was not believed got %v", got)
	}
	w.wantLog("not the one that was pinned", 4)
	// Put right, it goes on by itself.
	w.boot(token, w.ca.Fingerprint())
	r.step(time.Minute)
	if !w.reg.Node("n-1").Joined {
		t.Error("it did not join when the fingerprint was put right")
	}
	w.noTrace(token)
}

func TestUsedToken(t *testing.T) {
	w := newWorld(t)
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	_, key, err := enroll.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	dial := enroll.Dial{Addr: w.addr, Pins: []enroll.Fingerprint{w.ca.Fingerprint()}, Now: w.clock.Now}
	if _, err := enroll.Join(t.Context(), dial, token, key, enroll.Facts{}); err != nil {
		t.Fatal(err)
	}
	w.boot(token, w.ca.Fingerprint())
	r := w.run(w.config())
	for range 3 {
		if d := r.asleep(); d != retryFinal {
			t.Errorf("after a final refusal the pause is %s, want %s", d, retryFinal)
		}
		w.clock.Advance(retryFinal)
		w.clock.wake <- struct{}{}
	}
	r.asleep()
	w.wantLog("the join token is not good", 4)
	if n := w.reg.Node("n-1"); n.Misused == 0 {
		t.Error("the registry did not see a second machine")
	}
	r.end()
}

// The clock of a fresh machine is often wrong, until its time service has run.
func TestClockIsWrongAtFirst(t *testing.T) {
	w := newWorld(t)
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, w.ca.Fingerprint())
	cfg := w.config()
	slow := &shiftedClock{stepClock: w.clock}
	slow.shift(-3 * time.Hour)
	cfg.Clock = slow
	r := w.run(cfg)
	if d := r.asleep(); d > time.Minute {
		t.Errorf("the next try is in %s", d)
	}
	if got := w.requests(); len(got) != 0 {
		t.Errorf("requests %v", got)
	}
	w.wantLog("set the clock", 1)
	slow.shift(0)
	r.step(time.Second)
	if !w.reg.Node("n-1").Joined {
		t.Error("it did not join when the clock was set")
	}
}

type shiftedClock struct {
	*stepClock
	by time.Duration
}

func (c *shiftedClock) shift(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

func (c *shiftedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.by)
}

func TestClocksApart(t *testing.T) {
	w := newWorld(t)
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, w.ca.Fingerprint())
	cfg := w.config()
	c := &shiftedClock{stepClock: w.clock}
	c.shift(-5 * time.Minute)
	cfg.Clock = c
	r := w.run(cfg)
	r.asleep()
	r.step(40 * time.Second)
	w.wantLog("control_plane_ahead_by=5m0s", 1)
	c.shift(0)
	r.step(40 * time.Second)
	c.shift(4 * time.Minute)
	r.step(40 * time.Second)
	w.wantLog("control_plane_ahead_by=-4m0s", 1)
}

func TestControlPlaneIsDownAtFirst(t *testing.T) {
	w := newWorld(t)
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, w.ca.Fingerprint())
	w.down()
	r := w.run(w.config())
	pauses := []time.Duration{r.asleep()}
	for range 8 {
		pauses = append(pauses, r.step(pauses[len(pauses)-1]))
	}
	// Doubling from one second to a minute, of which half is chance's share.
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	w.up(w.addr)
	r.step(30 * time.Second)
	if !w.reg.Node("n-1").Joined {
		t.Errorf("it did not join when the control plane was up\n%s", w.log)
	}
	w.noTrace(token)
}

// A join whose answer was lost, and a restart in between: the same key comes
// again, and the token, though used, is good for it.
func TestAnswerLostAndRestart(t *testing.T) {
	w := newWorld(t)
	token := w.reg.Issue("n-1", "web-1", time.Hour)
	w.boot(token, w.ca.Fingerprint())
	real := enroll.NewHandler(w.ca, w.reg, enroll.HandlerOptions{Now: w.clock.Now})
	w.answerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		real.ServeHTTP(nowhere{}, r)
		panic(http.ErrAbortHandler)
	})
	r := w.run(w.config())
	r.asleep()
	if !w.reg.Node("n-1").Joined {
		t.Fatal("the effect is not there: the test shows nothing")
	}
	if !exists(w.root+testJoinFile) || !exists(w.root+testIdentity+"/"+pendingFile) {
		t.Fatal("the token or the key is gone before an answer came")
	}
	r.end()
	w.answerWith(nil)
	again := w.run(w.config())
	again.asleep()
	if n := w.reg.Node("n-1"); n.Heartbeats != 1 || n.Misused != 0 {
		t.Errorf("the registry saw %+v\n%s", n, w.log)
	}
	w.noTrace(token)
}

type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

func TestNothingToJoinWith(t *testing.T) {
	for name, tt := range map[string]struct {
		file func(w *world)
		want string
	}{
		"no join file":    {func(*world) {}, "no join file at " + testJoinFile},
		"no token":        {func(w *world) { writeTest(t, w.root+testJoinFile, "CA_FINGERPRINT=\n", 0o600) }, "JOIN_TOKEN"},
		"malformed token": {func(w *world) { writeTest(t, w.root+testJoinFile, "JOIN_TOKEN=swjt_oops.TOPSECRET\n", 0o600) }, "JOIN_TOKEN"},
		"malformed pin": {func(w *world) {
			writeTest(t, w.root+testJoinFile, "JOIN_TOKEN="+enroll.NewToken().Reveal()+"\nCA_FINGERPRINT=sha256:xyz\n", 0o600)
		}, "CA_FINGERPRINT"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.file(w)
			r := w.run(w.config())
			if d := r.asleep(); d != retryFinal {
				t.Errorf("the pause is %s, want %s: nothing changes by itself", d, retryFinal)
			}
			w.wantLog(tt.want, 1)
			w.wantLog("TOPSECRET", 0)
			if got := w.requests(); len(got) != 0 {
				t.Errorf("requests %v", got)
			}
			r.end()
		})
	}
}
