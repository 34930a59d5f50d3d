package provision

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tools that the parsers in Go stand in for, where they are installed.
// `make test-cloudinit` installs them and sets this variable, by which a
// missing one fails the test.
const toolsRequired = "CLOUDINIT_TOOLS"

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv(toolsRequired) == "require" {
		t.Fatalf("%s is missing", name)
	}
	t.Skipf("%s is missing; `make test-cloudinit` installs it", name)
	return ""
}

// toolOutput runs a tool and returns what it said; it must end well.
func toolOutput(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(name), err, stdout.String(), stderr.String())
	}
	return stdout.String() + stderr.String()
}

func writeTo(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestToolsCloudInitSchema(t *testing.T) {
	cloudInit := tool(t, "cloud-init")
	for name, p := range cloudInitSets() {
		doc, _ := mustRender(t, p)
		path := filepath.Join(t.TempDir(), name+".yaml")
		writeTo(t, path, doc, 0o600)
		out := toolOutput(t, "", cloudInit, "schema", "--config-file", path)
		if !strings.Contains(out, "Valid ") || strings.Contains(strings.ToLower(out), "warn") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestToolsPyYAML reads the document with the parser that cloud-init uses.
func TestToolsPyYAML(t *testing.T) {
	python := tool(t, "/usr/bin/python3")
	if err := exec.CommandContext(t.Context(), python, "-c", "import yaml").Run(); err != nil {
		if os.Getenv(toolsRequired) == "require" {
			t.Fatal("python3 has no yaml")
		}
		t.Skip("python3 has no yaml; `make test-cloudinit` installs it")
	}
	for name, p := range cloudInitSets() {
		doc, _ := mustRender(t, p)
		out := toolOutput(t, doc, python, "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)")
		var got struct {
			Bootcmd    [][]string  `json:"bootcmd"`
			WriteFiles []cloudFile `json:"write_files"`
			Runcmd     [][]string  `json:"runcmd"`
		}
		dec := json.NewDecoder(strings.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(wantedConfig(t, p.withDefaults()), cloudConfig(got)); diff != "" {
			t.Errorf("%s: PyYAML (-want +got):\n%s", name, diff)
		}
	}
}

func TestToolsShellcheck(t *testing.T) {
	shellcheck := tool(t, "shellcheck")
	for name, p := range cloudInitSets() {
		doc, files := mustRender(t, p)
		short := p.withDefaults().ShortName
		toolOutput(t, files["/usr/local/sbin/"+short+"-setup"].Content, shellcheck, "--shell=sh", "--severity=style", "-")
		c, err := parseBoth(doc)
		if err != nil {
			t.Fatal(err)
		}
		toolOutput(t, "#!/bin/sh\n"+c.Bootcmd[0][2]+"\n", shellcheck, "--severity=style", "-")
		t.Logf("%s: nothing to say", name)
	}
}

// TestSetupScriptSyntax needs no tool but a shell.
func TestSetupScriptSyntax(t *testing.T) {
	_, files := mustRender(t, plainParams())
	for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		args := []string{"-n"}
		if shell == "busybox" {
			args = []string{"sh", "-n"}
		}
		toolOutput(t, files["/usr/local/sbin/fleet-setup"].Content, path, args...)
	}
}

// newerDirectives are ignored, with a warning, by a systemd older than 254.
var newerDirectives = regexp.MustCompile(`Unknown key (name )?'(RestartSteps|RestartMaxDelaySec)' in section`)

func TestToolsSystemdVerify(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	for name, p := range cloudInitSets() {
		_, files := mustRender(t, p)
		root := t.TempDir()
		var units []string
		for path, f := range files {
			mode, err := strconv.ParseUint(f.Permissions, 8, 32)
			if err != nil {
				t.Fatal(err)
			}
			writeTo(t, filepath.Join(root, path), f.Content, os.FileMode(mode))
			if strings.HasSuffix(path, ".service") {
				units = append(units, filepath.Base(path))
			}
		}
		// What the units name, so that all that is said is about the units.
		for _, program := range []string{"/usr/bin/docker", "/usr/bin/install", "/sbin/modprobe"} {
			writeTo(t, filepath.Join(root, program), "#!/bin/sh\n", 0o755)
		}
		writeTo(t, filepath.Join(root, "/etc/systemd/system/docker.service"), "[Service]\nExecStart=/usr/bin/docker\n", 0o644)
		for _, target := range []string{"sysinit", "basic", "shutdown", "network-online", "multi-user"} {
			writeTo(t, filepath.Join(root, "/etc/systemd/system/"+target+".target"), "[Unit]\nDefaultDependencies=no\n", 0o644)
		}
		slices.Sort(units)
		out := toolOutput(t, "", analyze, append([]string{"verify", "--man=no", "--root=" + root}, units...)...)
		for _, line := range lines(out) {
			if !newerDirectives.MatchString(line) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestToolsIptables adds the rules for real, in a network namespace of its own.
func TestToolsIptables(t *testing.T) {
	unshare, _ := tool(t, "unshare"), tool(t, "iptables")
	if os.Getuid() != 0 {
		t.Skip("adding rules takes root")
	}
	if err := exec.CommandContext(t.Context(), unshare, "-n", "iptables", "-N", "X").Run(); err != nil {
		t.Skipf("this kernel has no iptables: %v", err)
	}
	_, files := mustRender(t, plainParams())
	path := filepath.Join(t.TempDir(), "setup")
	writeTo(t, path, strings.ReplaceAll(files["/usr/local/sbin/fleet-setup"].Content, "/dev/console", "/dev/null"), 0o700)
	// Twice: before Docker is there, and after its start.
	out := toolOutput(t, "", unshare, "-n", "sh", "-ec", path+` block-metadata >&2
iptables -A DOCKER-USER -j RETURN
`+path+` block-metadata >&2
iptables -S; ip6tables -S`)
	rule := func(addr, reject string) string {
		return "-A DOCKER-USER -d " + addr + " -p tcp -m tcp ! --dport 53 --tcp-flags FIN,SYN,RST,ACK SYN -j REJECT --reject-with " + reject
	}
	for _, want := range []string{
		rule("169.254.169.254/32", "tcp-reset"), rule("168.63.129.16/32", "tcp-reset"), rule("fd00:ec2::254/128", "tcp-reset"), rule("fd20:ce::254/128", "tcp-reset"),
	} {
		if n := count(lines(out), want); n != 1 {
			t.Errorf("%d of %s in\n%s", n, want, out)
		}
	}
	if n := count(lines(out), "-A FORWARD -j DOCKER-USER"); n != 2 {
		t.Errorf("%d jumps to DOCKER-USER, want one for each family:\n%s", n, out)
	}
}
