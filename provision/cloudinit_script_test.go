package provision

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The setup script is run here for real, by /bin/sh, on a machine of stand-ins:
// commands that write down how they were called and do what the test says.

// scriptHost is a directory that holds such a machine.
type scriptHost struct {
	t    *testing.T
	dir  string
	path string // the script
}

// newScriptHost renders the script and turns its absolute paths into ones of
// the machine. Docker is missing on it, the network is fine.
func newScriptHost(t *testing.T, p CloudInitParams) *scriptHost {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	_, files := mustRender(t, p)
	h := &scriptHost{t: t, dir: t.TempDir()}
	h.path = filepath.Join(h.dir, "setup")
	text := files["/usr/local/sbin/fleet-setup"].Content
	for old, replacement := range map[string]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin": "PATH=" + h.dir + "/bin:/usr/bin:/bin",
		"state=/var/lib/fleet":                    "state=" + h.dir + "/state",
		"/sys/module/apparmor/parameters/enabled": h.dir + "/apparmor",
		">/dev/console":                           ">>" + h.dir + "/console", // a file keeps all lines
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the script has no %s", old)
		}
		text = strings.ReplaceAll(text, old, replacement)
	}
	h.write("setup", text)
	h.write("script", "#!/bin/sh\n: >\"$HOST/docker\"\n")
	h.write("calls", "")
	h.write("console", "")
	for name, body := range map[string]string{
		"docker": `case $1 in
info) [ -e "$HOST/up" ] ;;
image) [ -e "$HOST/image" ] ;;
pull) [ -e "$HOST/registry" ] && : >"$HOST/image" ;;
esac`,
		// Docker is there once $HOST/docker is; then it can be started.
		"dockerd":   `:`,
		"systemctl": `case "$*" in "enable --now docker.service") [ -e "$HOST/docker" ] && : >"$HOST/up" ;; esac`,
		"curl": `[ -e "$HOST/offline" ] && exit 6
for last; do case $previous in -o) out=$last ;; esac; previous=$last; done
cat "$HOST/script" >"$out"`,
		"apt-get":   `case "$*" in *docker.io) [ -e "$HOST/package" ] || exit 100; : >"$HOST/docker" ;; esac`,
		"dpkg":      `:`,
		"iptables":  `echo "$*" | grep -q -- -C && exit 1; :`,
		"ip6tables": `echo "$*" | grep -q -- -C && exit 1; :`,
		"sleep":     `:`,
		"sync":      `:`,
		"timeout":   `while case $1 in -k) shift ;; [0-9]*) ;; *) false ;; esac; do shift; done; exec "$@"`,
	} {
		h.fake(name, body)
	}
	return h
}

func (h *scriptHost) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

func (h *scriptHost) fake(name, body string) {
	h.write("bin/"+name, "#!/bin/sh\nprevious=\necho \""+name+" $*\" >>\"$HOST/calls\"\n"+body+"\n")
}

func (h *scriptHost) has(name string) bool {
	_, err := os.Stat(filepath.Join(h.dir, name))
	return err == nil
}

func (h *scriptHost) read(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// run returns the exit code, what was called, and the lines on the console.
func (h *scriptHost) run(args ...string) (code int, calls, console []string) {
	h.t.Helper()
	h.write("calls", "")
	h.write("console", "")
	cmd := exec.CommandContext(h.t.Context(), "/bin/sh", append([]string{h.path}, args...)...)
	cmd.Env = []string{"HOST=" + h.dir, "TMPDIR=" + h.dir}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("%v\n%s", err, out)
	}
	h.t.Logf("setup %v:\n%s", args, out)
	return cmd.ProcessState.ExitCode(), lines(h.read("calls")), lines(h.read("console"))
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func count(calls []string, prefix string) int {
	n := 0
	for _, c := range calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

func TestSetupScript(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/sh\n"
	for _, c := range []struct {
		name    string
		files   map[string]string
		console []string
		scripts int // downloads tried
	}{
		{
			name: "docker runs", files: map[string]string{"docker": "", "up": ""},
			console: []string{"fleet-setup: docker: ok, runs already"},
		},
		{
			name: "docker is stopped", files: map[string]string{"docker": ""},
			console: []string{"fleet-setup: docker: ok, started"},
		},
		{
			name: "docker is missing", scripts: 1,
			console: []string{"fleet-setup: docker: installing, try 1", "fleet-setup: docker: ok, by the install script (it ended with 0)"},
		},
		{
			name: "script fails at its end", files: map[string]string{"script": script + ": >\"$HOST/docker\"\nexit 3\n"}, scripts: 1,
			console: []string{"fleet-setup: docker: installing, try 1", "fleet-setup: docker: ok, by the install script (it ended with 3)"},
		},
		{
			name: "script works the third time", scripts: 3,
			files: map[string]string{"script": script + "echo x >>\"$HOST/n\"\n[ \"$(wc -l <\"$HOST/n\")\" -ge 3 ] || exit 7\n: >\"$HOST/docker\"\n"},
			console: []string{
				"fleet-setup: docker: installing, try 1", "fleet-setup: docker: the install script failed with 7",
				"fleet-setup: docker: installing, try 2", "fleet-setup: docker: the install script failed with 7",
				"fleet-setup: docker: installing, try 3", "fleet-setup: docker: ok, by the install script (it ended with 0)",
			},
		},
		{
			name: "install host is away", files: map[string]string{"offline": "", "package": ""}, scripts: 3,
			console: []string{
				"fleet-setup: docker: installing, try 1", "fleet-setup: docker: the install script failed with 6",
				"fleet-setup: docker: installing, try 2", "fleet-setup: docker: the install script failed with 6",
				"fleet-setup: docker: installing, try 3", "fleet-setup: docker: the install script failed with 6",
				"fleet-setup: docker: ok, by the package docker.io",
			},
		},
		{
			name: "a portal answers", files: map[string]string{"script": "<html>rm -rf /</html>\n", "package": ""}, scripts: 3,
			console: []string{
				"fleet-setup: docker: installing, try 1", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: installing, try 2", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: installing, try 3", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: ok, by the package docker.io",
			},
		},
		{
			name: "half a script", files: map[string]string{"script": script + ": >\"$HOST/harm\"\nif true; then\n", "package": ""}, scripts: 3,
			console: []string{
				"fleet-setup: docker: installing, try 1", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: installing, try 2", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: installing, try 3", "fleet-setup: docker: the install script failed with 65",
				"fleet-setup: docker: ok, by the package docker.io",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newScriptHost(t, plainParams())
			for name, content := range c.files {
				h.write(name, content)
			}
			code, calls, console := h.run()
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			if diff := cmp.Diff(c.console, console); diff != "" {
				t.Errorf("console (-want +got):\n%s", diff)
			}
			if n := count(calls, "curl "); n != c.scripts {
				t.Errorf("%d downloads, want %d", n, c.scripts)
			}
			if h.has("harm") {
				t.Error("half a script was run")
			}
			if !h.has("state/started") || count(calls, "systemctl start --no-block fleet-metadata.service") != 1 {
				t.Error("it did not say that it was reached, or did not start the metadata unit")
			}
			if left, _ := filepath.Glob(filepath.Join(h.dir, "tmp.*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			code, calls, _ = h.run()
			if code != 0 || count(calls, "curl ") != 0 || count(calls, "apt-get ") != 0 {
				t.Errorf("a second run does not leave it at that: %d, %v", code, calls)
			}
		})
	}
}

func TestSetupScriptGivesUpForTheUnitToRepeat(t *testing.T) {
	t.Parallel()
	h := newScriptHost(t, plainParams())
	h.write("offline", "")
	code, calls, console := h.run()
	if code == 0 || console[len(console)-1] != "fleet-setup: docker: failed; the next try follows" {
		t.Errorf("exit code %d, console %v", code, console)
	}
	if n := count(calls, "curl "); n != 8 {
		t.Errorf("%d downloads", n)
	}
	var pauses []string
	for _, c := range calls {
		if p, ok := strings.CutPrefix(c, "sleep "); ok && p != "3" {
			pauses = append(pauses, p)
		}
	}
	if diff := cmp.Diff([]string{"5", "10", "20", "40", "60", "60", "60", "60"}, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	// A broken package state, from a power cut, is repaired before each try.
	if count(calls, "dpkg --force-confdef --force-confold --configure -a") < 8 {
		t.Error("packages are not repaired")
	}
	if err := os.Remove(filepath.Join(h.dir, "offline")); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := h.run(); code != 0 {
		t.Errorf("the next run ends with %d", code)
	}
}

// TestSetupScriptWaitsForLocks: what runs below the script inherits apt's
// settings, the install script too.
func TestSetupScriptWaitsForLocks(t *testing.T) {
	t.Parallel()
	h := newScriptHost(t, plainParams())
	h.write("script", "#!/bin/sh\ncp \"$APT_CONFIG\" \"$HOST/seen\"\nenv >\"$HOST/env\"\n: >\"$HOST/docker\"\n")
	h.run()
	if seen := h.read("seen"); !strings.Contains(seen, `DPkg::Lock::Timeout "300";`) || !strings.Contains(seen, `Acquire::Retries "5";`) {
		t.Errorf("apt's settings: %q", seen)
	}
	for _, v := range []string{"DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l"} {
		if !strings.Contains(h.read("env"), v+"\n") {
			t.Errorf("the install script does not see %s", v)
		}
	}
}

// TestSetupScriptAppArmor: Debian's docker.io alone cannot run a container on a
// kernel with AppArmor.
func TestSetupScriptAppArmor(t *testing.T) {
	t.Parallel()
	const install = "apt-get -q -y --no-install-recommends install apparmor"
	for enabled, want := range map[string]int{"Y\n": 1, "N\n": 0} {
		h := newScriptHost(t, plainParams())
		for _, name := range []string{"docker", "up"} {
			h.write(name, "")
		}
		h.write("apparmor", enabled)
		if code, calls, _ := h.run(); code != 0 || count(calls, install) != want {
			t.Errorf("enabled %q: %d, %v", enabled, code, calls)
		}
		h.fake("apparmor_parser", ":")
		if code, calls, _ := h.run(); code != 0 || count(calls, install) != 0 {
			t.Errorf("enabled %q, parser is there: %d, %v", enabled, code, calls)
		}
	}
}

func TestSetupScriptDownload(t *testing.T) {
	t.Parallel()
	for url, protocols := range map[string]string{
		"https://mirror.example.com/x.sh?a=1&b=%20": "=https",
		"http://10.0.0.5/x.sh":                      "=http,https",
	} {
		h := newScriptHost(t, with("DockerInstallURL", url))
		_, calls, console := h.run()
		want := "--proto " + protocols + " --proto-redir " + protocols + " "
		all := strings.Join(calls, "\n")
		if !strings.Contains(all, want) || !strings.Contains(all, " "+url+"\n") {
			t.Errorf("%s: %s", url, all)
		}
		// A mirror's address may hold a key.
		if strings.Contains(strings.Join(console, "\n"), url) {
			t.Error("the console shows the address")
		}
	}
}

func TestSetupScriptPull(t *testing.T) {
	t.Parallel()
	h := newScriptHost(t, plainParams())
	code, calls, console := h.run("pull", "example.com/agent:v1")
	if code == 0 || count(calls, "docker pull -q example.com/agent:v1") != 6 || len(console) != 12 {
		t.Errorf("registry away: %d, %v, %v", code, calls, console)
	}
	h.write("registry", "")
	code, calls, console = h.run("pull", "example.com/agent:v1")
	if code != 0 || count(calls, "docker pull") != 1 || console[len(console)-1] != "fleet-setup: image: ok, pulled" {
		t.Errorf("first pull: %d, %v, %v", code, calls, console)
	}
	// A restart neither needs the registry nor changes the version.
	code, calls, console = h.run("pull", "example.com/agent:v1")
	if diff := cmp.Diff([]string{"fleet-setup: image: ok, is there"}, console); code != 0 || count(calls, "docker pull") != 0 || diff != "" {
		t.Errorf("image is there: %d, %v %s", code, calls, diff)
	}
}

func TestSetupScriptBlocksMetadata(t *testing.T) {
	t.Parallel()
	h := newScriptHost(t, plainParams())
	code, calls, console := h.run("block-metadata")
	if code != 0 || !strings.HasSuffix(console[0], "metadata: ok, kept from containers") {
		t.Errorf("%d, %v", code, console)
	}
	rule := func(tool, addr string) string {
		return tool + " -w 10 -I DOCKER-USER -d " + addr + " -p tcp --syn ! --dport 53 -j REJECT --reject-with tcp-reset"
	}
	for _, want := range []string{rule("iptables", "169.254.169.254"), rule("iptables", "168.63.129.16"), "iptables -w 10 -I FORWARD -j DOCKER-USER"} {
		if count(calls, want) == 0 {
			t.Errorf("missing: %s", want)
		}
	}
	for name, body := range map[string]string{
		"iptables":  `:`, // every rule is there
		"ip6tables": `:`,
	} {
		h.fake(name, body)
	}
	if _, calls, _ = h.run("block-metadata"); count(calls, "iptables -w 10 -I") != 0 {
		t.Errorf("a second run adds again: %v", calls)
	}
	h.fake("iptables", `exit 4`)
	code, _, console = h.run("block-metadata")
	if code == 0 || len(console) != 1 || !strings.Contains(console[0], "metadata: failed") {
		t.Errorf("failure: %d, %v", code, console)
	}
}

func TestSetupScriptRefusesUnknownWords(t *testing.T) {
	t.Parallel()
	h := newScriptHost(t, plainParams())
	if code, calls, _ := h.run("remove"); code != 64 || calls != nil {
		t.Errorf("%d, %v", code, calls)
	}
}
