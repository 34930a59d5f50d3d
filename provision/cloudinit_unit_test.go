package provision

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unitKeys are the directives that the units may use, with what systemd.unit(5),
// systemd.service(5) and systemd.exec(5) name them: a misspelt one would be
// ignored on the node without a word to anybody.
var unitKeys = map[string][]string{
	"Unit": {"Description", "Wants", "After", "Before", "PartOf", "StartLimitIntervalSec"},
	"Service": {"Type", "RemainAfterExit", "Restart", "RestartSec", "RestartSteps", "RestartMaxDelaySec", "TimeoutStartSec",
		"TimeoutStopSec", "Environment", "ExecStart", "ExecStartPre", "ExecStop"},
	"Install": {"WantedBy"},
}

// checkUnit holds what is true of every unit.
func checkUnit(t testing.TB, f cloudFile) {
	t.Helper()
	lines, err := parseUnit(f.Content)
	if err != nil {
		t.Fatalf("%s: %v", f.Path, err)
	}
	for _, l := range lines {
		if !slices.Contains(unitKeys[l.Section], l.Key) {
			t.Errorf("%s: [%s] has no %s", f.Path, l.Section, l.Key)
		}
		if strings.HasPrefix(l.Key, "Exec") {
			if _, err := execWords(l.Value); err != nil {
				t.Errorf("%s: %s: %v", f.Path, l.Key, err)
			}
		} else if strings.ContainsAny(l.Value, "%$\"'\\") {
			t.Errorf("%s: %s=%s has what systemd interprets", f.Path, l.Key, l.Value)
		}
	}
	// A unit that has given up once is not tried again.
	if diff := cmp.Diff([]string{"0"}, unitValues(lines, "Unit", "StartLimitIntervalSec")); diff != "" {
		t.Errorf("%s: it has a start limit", f.Path)
	}
	// These deadlock with a start from runcmd, or keep the unit dead after an
	// upgrade of docker.
	for _, l := range lines {
		if l.Section == "Unit" && (strings.Contains(l.Value, "multi-user.target") || strings.Contains(l.Value, "cloud-") || l.Key == "Requires") {
			t.Errorf("%s: %s=%s", f.Path, l.Key, l.Value)
		}
	}
	if len(unitValues(lines, "Install", "WantedBy")) != 1 || len(unitValues(lines, "Service", "ExecStart")) != 1 {
		t.Errorf("%s: it needs one WantedBy and one ExecStart", f.Path)
	}
}

// agentCommand is the words of the agent unit's ExecStart.
func agentCommand(t testing.TB, unit string) []string {
	t.Helper()
	lines, err := parseUnit(unit)
	if err != nil {
		t.Fatal(err)
	}
	words, err := execWords(strings.Join(unitValues(lines, "Service", "ExecStart"), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// checkAgentCommand wants exactly the documented container.
func checkAgentCommand(t testing.TB, p CloudInitParams, c cloudConfig) {
	t.Helper()
	s := p.ShortName
	want := []string{
		"/usr/bin/docker", "run", "--rm", "--name", s + "-agent", "--user", "0:0", "--network", "host",
		"--env-file", "/etc/" + s + "/agent.env",
		"-v", "/var/run/docker.sock:/var/run/docker.sock",
		"-v", "/var/lib/" + s + "/identity:/var/lib/" + s + "/identity",
		"-v", "/etc/" + s + "/join:/etc/" + s + "/join",
		"-v", "/var/lib/cloud:/var/lib/cloud", "-v", "/run/cloud-init:/run/cloud-init",
	}
	if p.MeshEnabled {
		want = append(want, "--device", "/dev/net/tun", "--cap-add", "NET_ADMIN")
	}
	want = append(want, "--log-driver", "json-file", "--log-opt", "max-size=10m", "--log-opt", "max-file=3", p.AgentImage, "agent")
	for _, f := range c.WriteFiles {
		if strings.HasSuffix(f.Path, "-agent.service") {
			if diff := cmp.Diff(want, agentCommand(t, f.Content)); diff != "" {
				t.Errorf("docker run (-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Error("there is no agent unit")
}

func TestCloudInitAgentUnit(t *testing.T) {
	p := plainParams()
	p.MeshEnabled = true
	_, files := mustRender(t, p)
	lines, err := parseUnit(files["/etc/systemd/system/fleet-agent.service"].Content)
	if err != nil {
		t.Fatal(err)
	}
	wantPre := []string{
		"/usr/bin/install -d -m 0700 -o root -g root /var/lib/fleet/identity /etc/fleet/join",
		"-/sbin/modprobe tun",
		"-/usr/bin/docker rm -f fleet-agent",
		"-/usr/local/sbin/fleet-setup pull ghcr.io/slipway-dev/agent:v1.4.0",
	}
	if diff := cmp.Diff(wantPre, unitValues(lines, "Service", "ExecStartPre")); diff != "" {
		t.Errorf("ExecStartPre (-want +got):\n%s", diff)
	}
	for _, w := range []unitLine{
		{"Unit", "Wants", "network-online.target docker.service fleet-setup.service"},
		{"Unit", "After", "network-online.target docker.service fleet-setup.service"},
		{"Service", "Type", "exec"}, // docker run stays in the foreground
		{"Service", "Restart", "always"},
		{"Service", "TimeoutStartSec", "0"}, // a pull may be slow
		{"Service", "ExecStop", "-/usr/bin/docker stop -t 20 fleet-agent"},
		{"Install", "WantedBy", "multi-user.target"},
	} {
		if !slices.Contains(lines, w) {
			t.Errorf("[%s] %s is %v, want %s", w.Section, w.Key, unitValues(lines, w.Section, w.Key), w.Value)
		}
	}
}

// TestCloudInitUnitOrderHasNoCycle: systemd breaks a cycle by dropping a unit,
// which may be cloud-init's.
func TestCloudInitUnitOrderHasNoCycle(t *testing.T) {
	_, files := mustRender(t, plainParams())
	after := map[string][]string{
		// Docker's and cloud-init's own, as their packages have them.
		"docker.service":        {"network-online.target", "containerd.service"},
		"cloud-final.service":   {"multi-user.target", "network-online.target"},
		"network-online.target": {"cloud-init.service"},
		"multi-user.target":     {"docker.service"},
	}
	for path, f := range files {
		if !strings.HasSuffix(path, ".service") {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		lines, err := parseUnit(f.Content)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range unitValues(lines, "Unit", "After") {
			after[name] = append(after[name], strings.Fields(v)...)
		}
		for _, v := range unitValues(lines, "Unit", "Before") {
			after[v] = append(after[v], name)
		}
		// A target comes after what it wants.
		for _, v := range unitValues(lines, "Install", "WantedBy") {
			if strings.HasSuffix(v, ".target") {
				after[v] = append(after[v], name)
			}
		}
	}
	var walk func(unit string, way []string)
	walk = func(unit string, way []string) {
		if slices.Contains(way, unit) {
			t.Fatalf("an ordering cycle: %v", append(way, unit))
		}
		for _, next := range after[unit] {
			walk(next, append(slices.Clone(way), unit))
		}
	}
	for unit := range after {
		walk(unit, nil)
	}
}
