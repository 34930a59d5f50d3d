package provision

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// setters reach every text parameter by its name.
var setters = map[string]func(*CloudInitParams, string){
	"ControlPlaneAddr": func(p *CloudInitParams, v string) { p.ControlPlaneAddr = v },
	"JoinToken":        func(p *CloudInitParams, v string) { p.JoinToken = v },
	"CAFingerprint":    func(p *CloudInitParams, v string) { p.CAFingerprint = v },
	"NodeName":         func(p *CloudInitParams, v string) { p.NodeName = v },
	"AgentImage":       func(p *CloudInitParams, v string) { p.AgentImage = v },
	"AgentVersion":     func(p *CloudInitParams, v string) { p.AgentVersion = v },
	"DockerInstallURL": func(p *CloudInitParams, v string) { p.DockerInstallURL = v },
	"ShortName":        func(p *CloudInitParams, v string) { p.ShortName = v },
}

// validOf is a value that each parameter takes, to put hostile parts into.
var validOf = map[string]string{
	"ControlPlaneAddr": "cp.example.com:8443",
	"JoinToken":        testToken,
	"CAFingerprint":    testFingerprint,
	"NodeName":         "web-1",
	"AgentImage":       "registry.example.com/agent:v1",
	"AgentVersion":     "v1.4.0",
	"DockerInstallURL": "https://mirror.example.com/docker.sh",
	"ShortName":        "acme",
}

func with(field, value string) CloudInitParams {
	p := plainParams()
	setters[field](&p, value)
	return p
}

// hostileParts mean something to YAML, to a shell, to systemd, to docker or to
// a terminal.
var hostileParts = []string{
	"\n", "\r", "\r\n", "\x00", "\t", " ", "\x1b[2J", "\x7f", "\u0085", "\u2028", "\ufeff", "\xff", "é", "😀",
	"'", "\"", "`", "\\", "\\\n", "$", "$(id)", "${HOME}", "%", "%n", "%%", "#", " #", ": ", "- ", "{{", "}}", "{{.JoinToken}}",
	"!", "!!python/object:os.system", "&a", "*a", "|", ">", "<", ";", "&&", "(", ")", "^", "@{", "\nJOIN_TOKEN=x",
	"\nruncmd:\n  - [id]", "\nExecStartPre=/bin/sh", "\n    content: |",
}

func TestCloudInitHostileInput(t *testing.T) {
	for field, valid := range validOf {
		if _, err := RenderCloudInit(with(field, valid)); err != nil {
			t.Fatalf("%s: %q is refused: %v", field, valid, err)
		}
		middle := len(valid) / 2
		for _, part := range hostileParts {
			for _, value := range []string{part + valid, valid + part, valid[:middle] + part + valid[middle:], part} {
				checkHostile(t, field, value)
			}
		}
	}
}

// checkHostile: refused as documented, or rendered without harm. A few signs
// mean nothing in their place, as & in a URL's query.
func checkHostile(t *testing.T, field, value string) {
	t.Helper()
	p := with(field, value)
	doc, err := RenderCloudInit(p)
	if err == nil {
		checkDocument(t, p, doc)
		if field != "DockerInstallURL" && field != "AgentVersion" {
			t.Errorf("%s: %q is taken", field, value)
		}
		return
	}
	checkRefusal(t, field, p, err)
}

func checkRefusal(t testing.TB, field string, p CloudInitParams, err error) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("%s: %v is not ErrInvalid", field, err)
	}
	text := err.Error()
	if field != "" && !strings.Contains(text, field+": ") {
		t.Errorf("%q does not name %s", text, field)
	}
	if len(p.JoinToken) >= 8 && strings.Contains(text, p.JoinToken) {
		t.Errorf("an error about %s has the token", field)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\ufeff' }) {
		t.Errorf("%q has control characters", text)
	}
}

func TestCloudInitRefuses(t *testing.T) {
	long := strings.Repeat("a", 2000)
	for field, values := range map[string][]string{
		"ControlPlaneAddr": {
			"", "cp.example.com", ":8443", "cp.example.com:", "cp.example.com:0", "cp.example.com:08443", "cp.example.com:65536",
			"cp.example.com:-1", "cp.example.com:http", "cp.example.com:8443:1", "2001:db8::1:8443", "[2001:db8::1]", "[2001:db8::1]8443",
			"[2001:db8::1]:", "[2001:db8::1", "[fe80::1%25eth0]:8443", "[192.0.2.1]:8443", "[]:8443", "192.0.2.256:8443", "192.0.2:8443",
			"1:8443", "-cp.example.com:8443", "cp_1.example.com:8443", "cp..example.com:8443", "http://cp.example.com", "HTTPS://cp.example.com",
			"https://", "https://user:pw@cp.example.com", "https://cp.example.com?x=1", "https://cp.example.com/#a", "https://cp.example.com/../x",
			"https://cp.example.com//%2e", "https://cp.example.com:0", "ftp://cp.example.com:8443", long + ":8443",
		},
		"JoinToken":     {"", "short", strings.Repeat("a", 15), strings.Repeat("a", 513), "with a space in the token", "token/with/slashes-0123", "=token-with-equals-01234"},
		"CAFingerprint": {"sha256:", "sha256:" + strings.Repeat("A", 64), "sha256:" + strings.Repeat("a", 63), "sha256:" + strings.Repeat("a", 65), strings.Repeat("a", 64), "sha1:" + strings.Repeat("a", 40), testFingerprint + "," + testFingerprint},
		"NodeName":      {"", "-web", "web-", "web_1", ".web", "web.", "web..1", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "*"},
		"AgentImage": {
			"-v", "--privileged", "/agent", "agent/", "Agent", "agent:", "agent:-x", "agent:" + strings.Repeat("a", 129), "agent@sha256:abc",
			"agent@" + testFingerprint + "0", "agent@md5:0123", "a//b", "a:b:c", "registry.example.com:99999/agent", "registry.example.com:0/agent",
			"[::1/agent", "[zz]:5000/agent", "https://registry.example.com/agent", "user@registry.example.com/agent", long,
		},
		"AgentVersion": {"-v1", ".1", "v1/2", "v1:2", "v1@2", strings.Repeat("a", 129), "v1.0+a b", "+dirty"},
		"DockerInstallURL": {
			"get.docker.com", "https://", "https:///x", "file:///etc/passwd", "http://get.docker.com", "http://mirror.internal/x", "http://203.0.113.7/x",
			"http://localhost/x", "http://[2001:db8::1]/x", "https://user:secret@mirror.example.com/x", "https://mirror.example.com/x#y",
			"https://mirror.example.com/x y", "https://mirror.example.com:0/x", "https://mirror.example.com/'$(id)'", "https://mirror.example.com/?a='b'",
			"https://mirror.example.com/?a=%zz\n", "-o/etc/passwd", "https://mirror.example.com/" + long, "HTTPS://mirror.example.com/x",
		},
		"ShortName": {"Acme", "1acme", "-acme", "acme-", "ac me", "acme.service", "../etc", "acme/x", strings.Repeat("a", 33), "cloud", "docker", "ssh", "systemd"},
	} {
		for _, v := range values {
			p := with(field, v)
			doc, err := RenderCloudInit(p)
			if doc != "" || err == nil {
				t.Errorf("%s: %q is taken", field, v)
				continue
			}
			checkRefusal(t, field, p, err)
		}
	}
}

func TestCloudInitTakes(t *testing.T) {
	for field, values := range map[string][]string{
		"ControlPlaneAddr": {
			"cp:1", "CP.example.com:65535", "192.0.2.1:8443", "[::1]:8443", "[2001:db8::1]:443", "[::ffff:192.0.2.1]:443", "xn--bcher-kva.example:443",
			"https://cp.example.com", "https://cp.example.com/", "https://cp.example.com:8443/fleet/v1", "https://[2001:db8::1]", "https://192.0.2.1:443",
		},
		"JoinToken":        {strings.Repeat("Zz", 8), strings.Repeat("aB3._~-Z", 64), "-_-_-_-_-_-_-_-_"},
		"CAFingerprint":    {"", testFingerprint},
		"NodeName":         {"a", "1", "Web-1", "no", "null", "true", "0600", "12-30", "1e3", "web-1.lab.example.com", strings.Repeat("a", 63)},
		"AgentImage":       {"agent", "a/b/c", "localhost:5000/agent", "[::1]:5000/agent:v1", "192.0.2.1:5000/agent", "agent@" + testFingerprint, "a.b_c__d-e--f/g:V1.x_y-z", "registry/agent:1"},
		"AgentVersion":     {"", "dev", "(devel)", "v1.4.0", "_x", "1e3", "null", "v1.4.0+dirty"},
		"DockerInstallURL": {"", "https://get.docker.com/", "https://mirror.example.com:8443/a/b.sh?x=%20&y=1,2:3", "http://10.0.0.5/x.sh", "http://127.0.0.1:8080/x", "http://[fd00::1]:80/x", "http://192.168.1.1", "https://192.0.2.1/x"},
		"ShortName":        {"", "a", "acme", "null", "true", "a1-b2", strings.Repeat("a", 32)},
	} {
		for _, v := range values {
			p := with(field, v)
			doc, err := RenderCloudInit(p)
			if err != nil {
				t.Errorf("%s: %q is refused: %v", field, v, err)
				continue
			}
			checkDocument(t, p, doc)
		}
	}
}

// TestCloudInitTokenInAnotherPlace: a mix-up of parameters must not spread the
// token, not even in the refusal.
func TestCloudInitTokenInAnotherPlace(t *testing.T) {
	for field := range setters {
		if field == "JoinToken" {
			continue
		}
		for _, form := range []string{"%s", "%s.example.com:8443", "https://%s.example.com/", "registry.example.com/%s"} {
			value := fmt.Sprintf(form, "feedfacecafebeef01234567")
			p := with(field, value)
			p.JoinToken = "FEEDFACECAFEBEEF01234567"
			checkMixUp(t, field, p)
			p.JoinToken = "feedfacecafebeef01234567"
			checkMixUp(t, field, p)
		}
	}
}

func checkMixUp(t *testing.T, field string, p CloudInitParams) {
	t.Helper()
	_, err := RenderCloudInit(p)
	if err == nil {
		t.Errorf("%s may hold the token", field)
		return
	}
	checkRefusal(t, field, p, err)
	if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(p.JoinToken)) {
		t.Errorf("the refusal of %s shows the token in other letters", field)
	}
}

// TestCloudInitTokenThatIsNoSecret: words of the fixed text would stand in
// world-readable files.
func TestCloudInitTokenThatIsNoSecret(t *testing.T) {
	for _, token := range []string{"network-online.target", "StartLimitIntervalSec", "multi-user.target"} {
		p := with("JoinToken", token)
		_, err := RenderCloudInit(p)
		if err == nil {
			t.Errorf("%q is taken", token)
			continue
		}
		checkRefusal(t, "JoinToken", p, err)
	}
}
