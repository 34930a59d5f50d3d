package agent

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/enroll"
)

func TestConfigFromEnv(t *testing.T) {
	full := map[string]string{
		"CONTROL_PLANE_ADDR": "cp.example.org:8443", "NODE_NAME": "web-1", "AGENT_IDENTITY_DIR": "/var/lib/fleet/identity",
		"JOIN_FILE": "/etc/fleet/join/join.env", "MESH_ENABLED": "true", "SCRUB_DIRS": "/var/lib/cloud:/run/cloud-init::",
	}
	lookup := func(m map[string]string) func(string) (string, bool) {
		return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
	}
	got, err := ConfigFromEnv(lookup(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: "cp.example.org:8443", NodeName: "web-1", IdentityDir: "/var/lib/fleet/identity",
		JoinFile: "/etc/fleet/join/join.env", ScrubDirs: []string{"/var/lib/cloud", "/run/cloud-init"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, key := range []string{"CONTROL_PLANE_ADDR", "AGENT_IDENTITY_DIR"} {
		for _, empty := range []bool{true, false} {
			m := map[string]string{}
			for k, v := range full {
				m[k] = v
			}
			if delete(m, key); empty {
				m[key] = ""
			}
			if _, err := ConfigFromEnv(lookup(m)); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("without %s: %v", key, err)
			}
		}
	}
}

func TestReadTicket(t *testing.T) {
	token := enroll.NewToken()
	pin, second := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	path := filepath.Join(t.TempDir(), "join.env")
	for name, tt := range map[string]struct {
		text string
		pins []enroll.Fingerprint
		ok   bool
	}{
		"plain":               {"JOIN_TOKEN=" + token.Reveal() + "\nCA_FINGERPRINT=" + pin + "\n", []enroll.Fingerprint{enroll.Fingerprint(pin)}, true},
		"no line feed, CRLF":  {"CA_FINGERPRINT=" + pin + "\r\nJOIN_TOKEN=" + token.Reveal(), []enroll.Fingerprint{enroll.Fingerprint(pin)}, true},
		"comments, strangers": {"# JOIN_TOKEN=x\nA=b=c\n\nJOIN_TOKEN=" + token.Reveal() + "\n", nil, true},
		"no fingerprint":      {"JOIN_TOKEN=" + token.Reveal() + "\nCA_FINGERPRINT=\n", nil, true},
		"two fingerprints":    {"JOIN_TOKEN=" + token.Reveal() + "\nCA_FINGERPRINT=" + pin + "," + second + "\n", []enroll.Fingerprint{enroll.Fingerprint(pin), enroll.Fingerprint(second)}, true},
		"quoted":              {"JOIN_TOKEN=\"" + token.Reveal() + "\"\n", nil, false},
		"bad fingerprint":     {"JOIN_TOKEN=" + token.Reveal() + "\nCA_FINGERPRINT=" + pin[:60] + "\n", nil, false},
		"empty":               {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			writeTest(t, path, tt.text, 0o600)
			got, err := readTicket(path)
			if (err == nil) != tt.ok {
				t.Fatalf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), secretOf(token)) {
				t.Error("the error tells the token")
			}
			if err == nil && (got.token != token || cmp.Diff(tt.pins, got.pins) != "") {
				t.Errorf("got %v, %v", got.token, got.pins)
			}
		})
	}
}

// fakeDocker answers GET /info on the machine's socket.
func fakeDocker(t *testing.T, root, body string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "var/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(root, dockerSocket))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/info" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
}

func TestFacts(t *testing.T) {
	// A socket's path must be short.
	root, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	c := Config{Root: root, Version: "v1"}
	want := enroll.Facts{Architecture: runtime.GOARCH, AgentVersion: "v1"}
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff(want, c.facts(t.Context())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("an empty machine")

	writeTest(t, root+"/etc/os-release", "PRETTY_NAME='Debian GNU/Linux 13 (trixie)'\nNAME=Debian\n", 0o644)
	writeTest(t, root+"/proc/sys/kernel/osrelease", "6.12.0\n", 0o444)
	writeTest(t, root+"/etc/hostname", "box\n", 0o644)
	want.OS, want.Kernel, want.Hostname = "Debian GNU/Linux 13 (trixie)", "6.12.0", "box"
	check("from files")

	fakeDocker(t, root, `{"OperatingSystem":"Ubuntu 24.04.3 LTS","KernelVersion":"6.8.0","ServerVersion":"28.1.1","Name":"","Other":[1]}`)
	want.OS, want.Kernel, want.DockerVersion = "Ubuntu 24.04.3 LTS", "6.8.0", "28.1.1"
	check("from Docker, but for what it does not say")
}

func TestFactsWithABrokenDocker(t *testing.T) {
	root, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	writeTest(t, root+"/etc/hostname", "box\n", 0o644)
	fakeDocker(t, root, "<html>")
	if got := (Config{Root: root}).facts(t.Context()); got.Hostname != "box" || got.DockerVersion != "" {
		t.Errorf("got %+v", got)
	}
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	for _, chance := range []float64{0, 0.5, 0.999} {
		b := backoff{random: func() float64 { return chance }}
		for i := range 100 {
			if d := b.next(os.ErrDeadlineExceeded); d < 100*time.Millisecond || d > retryMax {
				t.Fatalf("try %d: %s", i, d)
			}
		}
	}
}
