package provision

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateCloudInit = flag.Bool("update-cloudinit", false, "write testdata/cloudinit/*.yaml anew")

// A token of the right form that no text has by chance.
const testToken = "swjt_abcdefghij234567.N0t-A_Secret-0123456789abcdefghijklmnopqrs"

var testFingerprint = "sha256:" + strings.Repeat("0123456789abcdef", 4)

func plainParams() CloudInitParams {
	return CloudInitParams{
		ControlPlaneAddr: "cp.example.com:8443", JoinToken: testToken, CAFingerprint: testFingerprint,
		NodeName: "web-1", AgentVersion: "v1.4.0",
	}
}

// cloudInitSets are what the golden files show, and what the outside tools are
// run over.
func cloudInitSets() map[string]CloudInitParams {
	mesh := plainParams()
	mesh.MeshEnabled = true
	closed := CloudInitParams{
		ControlPlaneAddr: "[2001:db8::10]:8443", JoinToken: testToken, CAFingerprint: testFingerprint,
		NodeName: "rack-7.lab.example.com", MeshEnabled: true, ShortName: "acme",
		AgentImage:       "registry.lab.example.com:5000/mirror/agent:v1.4.0@" + testFingerprint,
		DockerInstallURL: "http://10.20.0.5:8080/docker/install.sh?channel=stable&arch=arm64",
	}
	public := CloudInitParams{ControlPlaneAddr: "https://cp.example.com/fleet", JoinToken: testToken, NodeName: "Web-1", AgentVersion: "dev"}
	return map[string]CloudInitParams{"plain": plainParams(), "mesh": mesh, "closed-network": closed, "system-roots": public}
}

func TestCloudInitGolden(t *testing.T) {
	for name, p := range cloudInitSets() {
		t.Run(name, func(t *testing.T) {
			got, _ := mustRender(t, p)
			path := filepath.Join("testdata", "cloudinit", name+".yaml")
			if *updateCloudInit {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; go test -run CloudInitGolden -update-cloudinit ./provision):\n%s", path, diff)
			}
		})
	}
}

func TestCloudInitFiles(t *testing.T) {
	for name, p := range cloudInitSets() {
		t.Run(name, func(t *testing.T) {
			doc, files := mustRender(t, p)
			checkDocument(t, p, doc)
			short := p.withDefaults().ShortName
			modes := map[string]string{}
			for path, f := range files {
				modes[path] = f.Permissions
			}
			want := map[string]string{
				"/etc/" + short + "/join/join.env":                   "0600",
				"/etc/" + short + "/agent.env":                       "0600",
				"/usr/local/sbin/" + short + "-setup":                "0700",
				"/etc/systemd/system/" + short + "-setup.service":    "0644",
				"/etc/systemd/system/" + short + "-metadata.service": "0644",
				"/etc/systemd/system/" + short + "-agent.service":    "0644",
			}
			if diff := cmp.Diff(want, modes); diff != "" {
				t.Errorf("files and modes (-want +got):\n%s", diff)
			}
		})
	}
}

// checkDocument holds what is true of every rendering: for the tables here and
// for the fuzzer.
func checkDocument(t testing.TB, p CloudInitParams, doc string) {
	t.Helper()
	switch {
	case !strings.HasPrefix(doc, "#cloud-config\n"):
		t.Error("the first line is not #cloud-config")
	case strings.ContainsFunc(doc, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }):
		t.Error("there are signs outside of printable ASCII")
	case len(doc) > 12*1024:
		t.Errorf("%d bytes are over 12 KiB", len(doc))
	case strings.Count(doc, p.JoinToken) != 1:
		t.Errorf("the token is there %d times", strings.Count(doc, p.JoinToken))
	}
	if err := checkUserData(doc, maxCloudInitSize); err != nil {
		t.Error(err)
	}
	got, err := parseBoth(doc)
	if err != nil {
		t.Fatal(err)
	}
	p = p.withDefaults()
	if diff := cmp.Diff(wantedConfig(t, p), got); diff != "" {
		t.Errorf("what cloud-init reads (-want +got):\n%s", diff)
	}
	for _, f := range got.WriteFiles {
		if strings.Contains(f.Content, p.JoinToken) != strings.HasSuffix(f.Path, "/join/join.env") {
			t.Errorf("%s: the token is where it should not be, or the other way round", f.Path)
		}
		if strings.HasSuffix(f.Path, ".env") {
			checkEnvFile(t, p, f)
		}
		if strings.HasSuffix(f.Path, ".service") {
			checkUnit(t, f)
		}
	}
	checkAgentCommand(t, p, got)
}

// wantedConfig is what a rendering must read as, put together without the
// renderer's YAML and env code.
func wantedConfig(t testing.TB, p CloudInitParams) cloudConfig {
	t.Helper()
	short := p.ShortName
	fromTemplate := func(name string) string {
		var b bytes.Buffer
		if err := cloudInitTemplates.ExecuteTemplate(&b, name, templateData(p)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	mesh := "false"
	if p.MeshEnabled {
		mesh = "true"
	}
	sem := " /var/lib/cloud/instance/sem/config_"
	return cloudConfig{
		Bootcmd: [][]string{{"sh", "-c", "[ -e /var/lib/" + short + "/started ] || rm -f" + sem + "write_files" + sem + "runcmd" + sem + "scripts_user"}},
		WriteFiles: []cloudFile{
			{"/etc/" + short + "/join/join.env", "0600", "JOIN_TOKEN=" + p.JoinToken + "\nCA_FINGERPRINT=" + p.CAFingerprint + "\n"},
			{"/etc/" + short + "/agent.env", "0600", "CONTROL_PLANE_ADDR=" + p.ControlPlaneAddr + "\nNODE_NAME=" + p.NodeName +
				"\nAGENT_IDENTITY_DIR=/var/lib/" + short + "/identity\nJOIN_FILE=/etc/" + short + "/join/join.env\nMESH_ENABLED=" + mesh +
				"\nSCRUB_DIRS=/var/lib/cloud:/run/cloud-init\n"},
			{"/usr/local/sbin/" + short + "-setup", "0700", fromTemplate("setup.sh")},
			{"/etc/systemd/system/" + short + "-setup.service", "0644", fromTemplate("setup.service")},
			{"/etc/systemd/system/" + short + "-metadata.service", "0644", fromTemplate("metadata.service")},
			{"/etc/systemd/system/" + short + "-agent.service", "0644", fromTemplate("agent.service")},
		},
		Runcmd: [][]string{
			{"sync"},
			{"systemctl", "daemon-reload"},
			{"systemctl", "enable", short + "-setup.service", short + "-metadata.service", short + "-agent.service"},
			{"systemctl", "start", "--no-block", short + "-agent.service"},
		},
	}
}

// checkEnvFile: docker's reader and systemd's find the same, exact values.
func checkEnvFile(t testing.TB, p CloudInitParams, f cloudFile) {
	t.Helper()
	docker, err := dockerEnv(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	systemd, err := systemdEnv(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(docker, systemd); diff != "" {
		t.Errorf("%s: docker and systemd read it differently:\n%s", f.Path, diff)
	}
	exact := map[string]string{
		"JOIN_TOKEN": p.JoinToken, "CA_FINGERPRINT": p.CAFingerprint,
		"CONTROL_PLANE_ADDR": p.ControlPlaneAddr, "NODE_NAME": p.NodeName,
	}
	for _, e := range docker {
		if want, ok := exact[e.Key]; ok && e.Value != want {
			t.Errorf("%s: %s is %q, want %q", f.Path, e.Key, e.Value, want)
		}
	}
}

func TestCloudInitIsTheSameForTheSame(t *testing.T) {
	first, _ := mustRender(t, plainParams())
	for range 20 {
		if again, _ := mustRender(t, plainParams()); again != first {
			t.Fatal("a repeat differs: a create could not be repeated byte for byte")
		}
	}
}

func TestCloudInitLongestFits(t *testing.T) {
	label := strings.Repeat("a", 62) + "z"
	host := strings.Join([]string{label, label, label, label[:61]}, ".")
	p := CloudInitParams{
		ControlPlaneAddr: "https://" + host + ":65535/" + strings.Repeat("p", 320-len("https://"+host+":65535/")),
		JoinToken:        strings.Repeat("Tk", 256),
		CAFingerprint:    testFingerprint,
		NodeName:         host,
		AgentImage:       host + ":65535/" + strings.Repeat("r", 456-len(host)-len(":65535/")-len("@"+testFingerprint)) + "@" + testFingerprint,
		MeshEnabled:      true,
		DockerInstallURL: "https://" + host + ":65535/?" + strings.Repeat("q", 320-len("https://"+host+":65535/?")),
		ShortName:        strings.Repeat("s", 32),
	}
	doc, _ := mustRender(t, p)
	t.Logf("%d bytes", len(doc))
	checkDocument(t, p, doc)
}

func TestCloudInitAgentImage(t *testing.T) {
	const repo = "ghcr.io/slipway-dev/agent:"
	for _, c := range []struct{ image, version, want string }{
		{"", "v1.4.0", repo + "v1.4.0"},
		{"", "1.4.0-rc.1", repo + "1.4.0-rc.1"},
		{"", "v0.2.0-beta.17", repo + "v0.2.0-beta.17"},
		{"", "edge", repo + "edge"},
		{"", "20261201", repo + "latest"}, // could as well be a commit
		{"", "", repo + "latest"},
		{"", "dev", repo + "latest"},
		{"", "(devel)", repo + "latest"},
		{"", "v0.0.0-20261201103000-0123456789ab", repo + "latest"},
		{"", "v1.4.1-0.20261201103000-0123456789ab", repo + "latest"},
		{"", "v1.4.1-0.20261201103000-0123456789ab+dirty", repo + "latest"},
		{"", "v1.4.0+dirty", repo + "latest"},
		{"", "v1.4.0-dirty", repo + "latest"},
		{"", "v1.4.0-12-g0123abc", repo + "latest"},
		{"", "v1.4.0-12-g0123abc-dirty", repo + "latest"},
		{"", "0123abc", repo + "latest"},
		{"", "0123abc-dirty", repo + "latest"},
		{"mirror.example.com/agent:v9", "dev", "mirror.example.com/agent:v9"},
		{"agent", "v1.4.0", "agent"},
	} {
		p := plainParams()
		p.AgentImage, p.AgentVersion = c.image, c.version
		_, files := mustRender(t, p)
		run := agentCommand(t, files["/etc/systemd/system/fleet-agent.service"].Content)
		if got := run[len(run)-2]; got != c.want {
			t.Errorf("image %q, version %q: %q, want %q", c.image, c.version, got, c.want)
		}
	}
}

func TestCloudInitMesh(t *testing.T) {
	for _, mesh := range []bool{false, true} {
		p := plainParams()
		p.MeshEnabled = mesh
		_, files := mustRender(t, p)
		run := agentCommand(t, files["/etc/systemd/system/fleet-agent.service"].Content)
		for _, word := range []string{"/dev/net/tun", "NET_ADMIN"} {
			if slices.Contains(run, word) != mesh {
				t.Errorf("mesh %v: %s is there: %v", mesh, word, !mesh)
			}
		}
	}
}

func BenchmarkRenderCloudInit(b *testing.B) {
	p := plainParams()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := RenderCloudInit(p); err != nil {
			b.Fatal(err)
		}
	}
}
