package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv("SLIPWAY_E2E") == "" {
		fmt.Println("skipped: these tests build and kill programs; `make crash` runs them")
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "crash-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "slipway")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/slipway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// world is a simulated cloud in a process of its own, and a control plane that
// can be killed.
type world struct {
	t       *testing.T
	dir     string
	simAddr string
	args    []string
	plane   *exec.Cmd
	log     *bytes.Buffer // of all lives of the control plane
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), simAddr: freeAddr(t), log: &bytes.Buffer{}}
	w.args = []string{"serve", "--listen", freeAddr(t), "--api-listen", freeAddr(t)}
	sim := w.start("sim", "--listen", w.simAddr, "--speed", "20", "--guest-dir", filepath.Join(w.dir, "guests"))
	t.Cleanup(func() { w.end(sim) })
	w.await("the simulated cloud", func() bool { return w.sim(http.MethodGet, "/_sim/clock", nil, nil) == nil })
	w.serve()
	t.Cleanup(func() {
		if w.plane != nil {
			w.end(w.plane)
		}
		if t.Failed() {
			t.Logf("the control plane said:\n%s", w.log)
		}
	})
	w.ok("account", "add", "cloud", "--provider", "hetzner")
	return w
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// environ is a clean one: no credential of the person who runs the tests.
func (w *world) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "SLIPWAY_DATA_DIR=" + filepath.Join(w.dir, "data"),
		"HCLOUD_TOKEN=crash", "HCLOUD_ENDPOINT=http://" + w.simAddr + "/hetzner/v1",
	}
}

func (w *world) start(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stderr = w.environ(), w.log
	if args[0] != "serve" {
		cmd.Stderr = io.Discard
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd
}

func (w *world) end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(os.Interrupt)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		w.t.Errorf("%s did not end within 15 s of an interrupt", cmd.Args[1])
		_ = cmd.Process.Kill()
		<-done
	}
}

// serve starts the control plane and waits until it answers.
func (w *world) serve() {
	w.t.Helper()
	w.plane = w.start(w.args...)
	w.await("the control plane", func() bool { return w.try("account", "list") == nil })
}

// kill ends the control plane with no chance to put anything away.
func (w *world) kill() {
	w.t.Helper()
	if err := w.plane.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	_ = w.plane.Wait()
	w.plane = nil
}

func (w *world) try(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = w.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slipway %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (w *world) ok(args ...string) {
	w.t.Helper()
	if err := w.try(args...); err != nil {
		w.t.Fatal(err)
	}
}

// await polls until something holds.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			w.t.Fatalf("%s: not within 60 s", what)
		case <-tick.C:
		}
	}
}

// sim does a control call.
func (w *world) sim(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+w.simAddr+path, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: HTTP %d", method, path, resp.StatusCode)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func (w *world) fault(f map[string]any) {
	w.t.Helper()
	if err := w.sim(http.MethodPost, "/_sim/faults", f, nil); err != nil {
		w.t.Fatal(err)
	}
}

type ledger struct {
	Entries []struct {
		Kind, Name string
		Deleted    time.Time `json:"deleted_at"`
	}
	Summary struct{ Made, Left int }
}

func (w *world) ledger() ledger {
	w.t.Helper()
	var l ledger
	if err := w.sim(http.MethodGet, "/_sim/ledger", nil, &l); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// servers counts the servers of a name that were ever made, and that are left.
func (w *world) servers(name string) (made, left int) {
	for _, e := range w.ledger().Entries {
		if e.Kind == "server" && e.Name == name {
			made++
			if e.Deleted.IsZero() {
				left++
			}
		}
	}
	return made, left
}

// asked tells whether the cloud was asked to do something at least n times.
func (w *world) asked(call string, n int) bool {
	var log struct{ Requests []struct{ Call string } }
	if err := w.sim(http.MethodGet, "/_sim/requests", nil, &log); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range log.Requests {
		if r.Call == call {
			n--
		}
	}
	return n <= 0
}
