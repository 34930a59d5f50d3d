package cloudsim

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestYAML11 has what PyYAML's safe_load makes of values without quotes.
func TestYAML11(t *testing.T) {
	for text, want := range map[string]any{
		"yes": true, "No": false, "on": true, "OFF": false, "true": true, "y": "y", "n": "n",
		"null": nil, "~": nil, "": nil, "Null": nil, "nULL": "nULL",
		"0600": int64(384), "0o600": "0o600", "0x1f": int64(31), "0b11": int64(3), "1_000": int64(1000), "-5": int64(-5), "08": "08", "+1": int64(1),
		"12:30:45": int64(45045), "12:30": int64(750), "-1:30": int64(-90), "12:60": "12:60", "99999999999999999999": "99999999999999999999",
		"1.5": 1.5, "1e3": "1e3", "1.0e+3": 1000.0, ".5": 0.5, ".inf": math.Inf(1), "-.INF": math.Inf(-1), "1.": 1.0,
		`"yes"`: "yes", "'0600'": "0600", "!!str 0600": "0600", "|\n  yes": "yes\n", "a b": "a b", "1.2.3.4": "1.2.3.4",
		"[yes, no]": []any{true, false}, "{a: 0600}": map[string]any{"a": int64(384)}, "a#c": "a#c", "a #c": "a",
	} {
		got, err := readYAML([]byte("k: " + text + "\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got["k"]); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
	doc, err := readYAML([]byte("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4, x: 5}]}\nagain: *b\nyes: 1\n0600: 2\n"))
	want := map[string]any{
		"base": map[string]any{"x": int64(1), "y": int64(2)}, "more": map[string]any{"x": int64(1), "y": int64(3)},
		"both": map[string]any{"x": int64(1), "y": int64(2), "z": int64(4)}, "again": map[string]any{"x": int64(1), "y": int64(2)},
		"true": int64(1), "384": int64(2),
	}
	if diff := cmp.Diff(want, doc); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestYAMLRefusals(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		laughs += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, text := range map[string]string{
		"two documents": "a: 1\n---\nb: 2\n", "a list": "- a\n", "a word": "word\n", "key twice": "a: 1\na: 2\n", "inner key twice": "a: {b: 1, b: 2}\n",
		"same key by two names": "yes: 1\ntrue: 2\n", "empty key": ": 1\n", "null key": "~: 1\n", "key of no text": `"": 1` + "\n", "list as key": "[a]: 1\n",
		"unclosed": "a: [\n", "tab": "a:\n\t- b\n", "colon": "a: b: c\n", "percent": "a: %b\n", "at": "a: @b\n", "unknown alias": "a: *b\n",
		"unknown tag": "a: !vault x\n", "python": "a: !!python/object:os.system x\n", "bad merge": "a: {<<: 1}\n", "delete": "a: \x7f\n", "bell": "a: \"\a\"\n",
		"many laughs": laughs, "deep": strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "itself": "a: &a [*a]\n",
	} {
		if doc, err := readYAML([]byte(text)); err == nil {
			t.Errorf("%s is read as %v", name, doc)
		}
	}
}

func TestUserData(t *testing.T) {
	gz := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(s)) // to memory
		_ = w.Close()
		return b.String()
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	file := func(entry string) string {
		return "#cloud-config\nwrite_files:\n- path: /f\n" + entry + "- path: /after\n"
	}
	for _, tt := range []struct {
		name, text string
		want       []string // path, mode, content
		notes      int
	}{
		{"plain", file("  content: hello\n"), []string{"/f 644 hello", "/after 644 "}, 0},
		{"compressed", gz(file("  content: hello\n")), []string{"/f 644 hello", "/after 644 "}, 0},
		{"octal text", file("  permissions: '0600'\n"), []string{"/f 600 ", "/after 644 "}, 0},
		{"octal number", file("  permissions: 0600\n"), []string{"/f 600 ", "/after 644 "}, 0},
		{"decimal number", file("  permissions: 600\n"), []string{"/f 130 ", "/after 644 "}, 0},
		{"no permissions", file("  permissions: rw\n"), []string{"/f 644 ", "/after 644 "}, 1},
		{"base64", file("  encoding: b64\n  content: " + b64("héllo") + "\n"), []string{"/f 644 héllo", "/after 644 "}, 0},
		{"compressed content", file("  encoding: gz+b64\n  content: " + b64(gz("hello")) + "\n"), []string{"/f 644 hello", "/after 644 "}, 0},
		{"unknown encoding", file("  encoding: rot13\n  content: hello\n"), []string{"/f 644 hello", "/after 644 "}, 0},
		{"not base64", file("  encoding: b64\n  content: '*'\n"), nil, 1},
		{"not compressed", file("  encoding: gz+b64\n  content: " + b64("hello") + "\n"), nil, 1},
		{"a time as content", file("  content: 12:30:45\n"), nil, 1},
		{"another owner", file("  owner: www-data\n"), nil, 1},
		{"no path", "#cloud-config\nwrite_files:\n- content: x\n- path: /after\n", []string{"/after 644 "}, 1},
		{"a word", "#cloud-config\nwrite_files:\n- x\n- path: /after\n", nil, 1},
		{"a mapping", "#cloud-config\nwrite_files: {path: /f}\n", nil, 1},
		{"nothing", "#cloud-config\nwrite_files:\n", nil, 1},
		{"comment alone", "#cloud-config\n# nothing else\n", nil, 0},
		{"spaces after the first line", "#cloud-config  \nwrite_files: [{path: /f}]\n", []string{"/f 644 "}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := readUserData([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range c.files {
				got = append(got, fmt.Sprintf("%s %o %s", f.path, f.mode, f.data))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(c.notes) != tt.notes {
				t.Errorf("notes %v\n%s", c.notes, diff)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	c, err := readUserData([]byte(`#cloud-config
packages: [docker.io, [jq, "1.6"], {x: y}]
runcmd:
- systemctl daemon-reload && systemctl enable a b; systemctl start a
- [echo, "a b", 0600, yes]
- "curl -fsSL https://get.docker.com | sh"
-
- |
  # a comment
  true
  echo "$HOME"
`))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, cmd := range c.commands {
		got = append(got, cmd.split()...)
	}
	want := [][]string{
		{"systemctl", "daemon-reload"}, {"systemctl", "enable", "a", "b"}, {"systemctl", "start", "a"}, {"echo", "a b", "384", "true"},
		{"curl -fsSL https://get.docker.com | sh"}, {"true"}, {`echo "$HOME"`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(c.packages, []string{"docker.io", "jq"}) {
		t.Errorf("packages: %v", c.packages)
	}
	if c, err := readUserData([]byte("#cloud-config\nruncmd: [[echo, a], {b: c}]\n")); err != nil || c.commands != nil || len(c.notes) != 1 {
		t.Errorf("a command that is a mapping: %v, %v", c, err)
	}
}

// TestDockerByOtherWays installs Docker as a package and by a command, and runs
// a container from a command.
func TestDockerByOtherWays(t *testing.T) {
	for name, text := range map[string]string{
		"package":           "packages: [docker.io]\nruncmd:\n",
		"script":            "runcmd:\n- curl -fsSL https://get.docker.com | sh\n",
		"apt":               "runcmd:\n- [apt-get, install, -y, docker.io]\n",
		"without, an error": "runcmd:\n",
	} {
		b := newBench(t)
		b.running("n", map[string]any{"user_data": "#cloud-config\n" + text + "- docker run -d --name web --mount type=bind,source=/etc,target=/host,readonly nginx\n"})
		b.sim.Advance(time.Minute)
		g := b.guest()
		if want := !strings.HasPrefix(name, "without"); (len(g.Containers) == 1) != want || g.printed("command not found") == want {
			t.Errorf("%s:\n%s", name, strings.Join(g.Console, "\n"))
		}
	}
}

func FuzzUserData(f *testing.F) {
	for _, s := range []string{
		agentUserData, "#cloud-config\n", "#cloud-config\nwrite_files:\n- {path: a, content: !!binary aGk=}\n", "#cloud-config\nruncmd: [[a], b, 1]\n",
		"#cloud-config\na: &a [*a]\n", "#cloud-config\n? [a]\n: b\n", "\x1f\x8b", "#cloud-config\nwrite_files: [{path: ../x, permissions: 0777, append: true}]\n",
		"#cloud-config\n<<: {runcmd: [a]}\n", "#cloud-config\na: 1__0:5\nb: -.e+1\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readUserData(data)
		if err != nil {
			if c.files != nil || c.commands != nil {
				t.Fatal("something of refused user-data is acted on")
			}
			return
		}
		if text := string(data); len(c.files)+len(c.commands) > 0 && !strings.HasPrefix(text, "#cloud-config") && !strings.HasPrefix(text, "\x1f\x8b") {
			t.Fatalf("acted on without the first line: %q", text)
		}
		for _, file := range c.files {
			if file.path == "" || file.mode&^os.ModePerm != 0 {
				t.Fatalf("file %q with mode %v", file.path, file.mode)
			}
			if in := inside(file.path); in == ".." || strings.HasPrefix(in, "../") || path.IsAbs(in) {
				t.Fatalf("%q is taken for %q", file.path, in)
			}
		}
		for _, cmd := range c.commands {
			for _, words := range cmd.split() {
				if len(words) == 0 && cmd.words == nil {
					t.Fatalf("%q has an empty command", cmd.line)
				}
			}
		}
	})
}

func FuzzUnit(f *testing.F) {
	f.Add("[Service]\nExecStart=/usr/bin/docker run \\\n  --name a -v /a:/b \"x y\" %%\n")
	f.Add("a\n[\n]\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseUnit(text)
		if err != nil {
			return
		}
		for _, keys := range u {
			for _, values := range keys {
				for _, v := range values {
					g := &guest{root: t.TempDir()}
					if words := unitWords(v); len(words) > 2 && words[1] == "run" && !strings.ContainsAny(v, "/") {
						_, _ = g.dockerRun(words[2:]) // must not panic
					}
				}
			}
		}
		_ = u.span("Service", "RestartSec", time.Second)
	})
}
