package cloudsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// agentUserData is the kind of user-data that fleets use: files, a oneshot that
// installs Docker, and a unit that runs a container after it.
const agentUserData = `#cloud-config
write_files:
  - path: /etc/agent/env
    permissions: "0600"
    content: |
      ADDR=cp.example:8443
      QUOTED="as it is"
      # a comment
  - path: /usr/local/sbin/setup
    permissions: "0700"
    content: |
      #!/bin/sh
      command -v docker || curl -fsSL https://get.docker.com | sh
  - path: /etc/systemd/system/setup.service
    content: |
      [Service]
      Type=oneshot
      ExecStart=/usr/local/sbin/setup
      [Install]
      WantedBy=multi-user.target
  - path: /etc/systemd/system/agent.service
    content: |
      [Unit]
      Wants=setup.service
      After=setup.service
      StartLimitIntervalSec=0
      [Service]
      Restart=always
      RestartSec=5
      ExecStartPre=/usr/bin/install -d -m 0700 /var/lib/agent
      ExecStart=/usr/bin/docker run --rm --name agent --user 0:0 --network host \
        --env-file /etc/agent/env -e MORE=50%% \
        -v /var/lib/agent:/var/lib/agent -v /etc/agent:/etc/agent:ro -v /var/run/docker.sock:/var/run/docker.sock \
        --device /dev/net/tun --cap-add NET_ADMIN registry.example/agent:1 agent --verbose
      [Install]
      WantedBy=multi-user.target
runcmd:
  - [systemctl, daemon-reload]
  - [systemctl, enable, setup.service, agent.service]
  - [systemctl, start, --no-block, agent.service]
`

// containerStarts is a hook that tells what was started, and runs until its
// end.
func containerStarts(started chan<- string) func(context.Context, Guest, Container) error {
	return func(ctx context.Context, g Guest, c Container) error {
		started <- c.Name + " of " + g.Name
		<-ctx.Done()
		return nil
	}
}

func TestGuestLife(t *testing.T) {
	type run struct {
		ctx context.Context
		g   Guest
		c   Container
	}
	runs := make(chan run, 5)
	b := newBench(t, func(o *Options) {
		o.RunContainer = func(ctx context.Context, g Guest, c Container) error {
			runs <- run{ctx, g, c}
			<-ctx.Done()
			return ctx.Err()
		}
	})
	id := b.running("n", map[string]any{"user_data": agentUserData})
	for _, step := range []struct {
		after time.Duration
		stage string
		shows string
	}{
		{0, "booting", "Linux version"},
		{kernelTakes, "cloud-init", "4 files written"},
		{stepTakes, "up", "cloud-init: finished"},
		{dockerTakes, "up", "agent.service: pulling registry.example/agent:1"},
		{pullTakes, "up", "docker: started container agent"},
	} {
		b.sim.Advance(step.after)
		if g := b.guest(); g.Stage != step.stage || !g.printed(step.shows) {
			t.Fatalf("after %s: stage %s, want %s and %q on the console:\n%s", step.after, g.Stage, step.stage, step.shows, strings.Join(g.Console, "\n"))
		}
	}
	first := wait(t, "container", runs)
	root := first.g.Root
	want := Container{
		Name: "agent", Image: "registry.example/agent:1", Args: []string{"agent", "--verbose"}, User: "0:0", Network: "host",
		Env: map[string]string{"ADDR": "cp.example:8443", "QUOTED": `"as it is"`, "MORE": "50%"},
		Mounts: []Mount{
			{filepath.Join(root, "var/lib/agent"), "/var/lib/agent", false},
			{filepath.Join(root, "etc/agent"), "/etc/agent", true},
			{filepath.Join(root, "var/run/docker.sock"), "/var/run/docker.sock", false},
		},
		Devices: []string{"/dev/net/tun"}, CapAdd: []string{"NET_ADMIN"},
	}
	if diff := cmp.Diff(want, first.c); diff != "" {
		t.Errorf("container:\n%s", diff)
	}
	for path, mode := range map[string]os.FileMode{
		"etc/agent/env": 0o600, "usr/local/sbin/setup": 0o700, "etc/systemd/system/agent.service": 0o644, "var/lib/agent": 0o700 | os.ModeDir,
		"var/lib/cloud/instance/user-data.txt": 0o600,
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}

	// A reboot runs the enabled units again, not the commands; cloud-init
	// rewrites its own copies, not the files.
	userData := filepath.Join(root, "var/lib/cloud/instance/user-data.txt")
	for _, p := range []string{userData, filepath.Join(root, "etc/agent/env")} {
		if err := os.WriteFile(p, []byte("ADDR=changed\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.must("POST", "/servers/"+id+"/actions/reboot", nil)
	b.sim.Advance(hetznerActTakes)
	wait(t, "end of the container at the reboot", first.ctx.Done())
	b.sim.Advance(time.Minute)
	second := wait(t, "container after the reboot", runs)
	if second.g.Boots != 2 || second.c.Env["ADDR"] != "changed" {
		t.Errorf("boot %d, environment %v", second.g.Boots, second.c.Env)
	}
	if data, err := os.ReadFile(userData); err != nil || string(data) != agentUserData {
		t.Errorf("user-data.txt after the reboot: %v\n%s", err, data)
	}

	b.must("POST", "/servers/"+id+"/actions/poweroff", nil)
	b.sim.Advance(hetznerActTakes)
	wait(t, "end of the container at power-off", second.ctx.Done())
	if g := b.guest(); g.Stage != "off" || len(g.Containers) != 0 {
		t.Errorf("powered off: %+v", g)
	}
	b.must("POST", "/servers/"+id+"/actions/poweron", nil)
	b.sim.Advance(time.Minute)
	third := wait(t, "container after power-on", runs)
	b.must("DELETE", "/servers/"+id, nil)
	wait(t, "end of the container at the delete", third.ctx.Done())
	b.sim.Advance(time.Minute)
	if n := len(b.sim.Guests()); n != 0 {
		t.Errorf("%d guests after the delete", n)
	}
	if err := b.sim.Close(); err != nil { // waits for the clean-up
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the guest's files after the delete: %v", err)
	}
}

// TestContainerWaitsForItsLastRun holds that two runs never overlap, however
// slowly the first one ends.
func TestContainerWaitsForItsLastRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []int
		letGo := make(chan struct{})
		b := newBench(t, func(o *Options) {
			o.RunContainer = func(ctx context.Context, g Guest, _ Container) error {
				runs = append(runs, g.Boots) // a race, if two run at once
				<-ctx.Done()
				<-letGo
				return nil
			}
		})
		id := b.running("n", map[string]any{"user_data": agentUserData})
		b.sim.Advance(time.Minute)
		synctest.Wait() // the first run has begun
		b.must("POST", "/servers/"+id+"/actions/reset", nil)
		b.sim.Advance(time.Minute)
		synctest.Wait()
		if !b.guest().printed("started container") || len(runs) != 1 {
			t.Errorf("before the first run has ended: runs %v\n%s", runs, strings.Join(b.guest().Console, "\n"))
		}
		close(letGo)
		synctest.Wait()
		if !cmp.Equal(runs, []int{1, 2}) {
			t.Errorf("runs of the boots %v", runs)
		}
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestContainerRestarts holds that a container that ends is started again as
// its unit says.
func TestContainerRestarts(t *testing.T) {
	for restart, again := range map[string]map[bool]bool{ // by whether it failed
		"always": {true: true, false: true}, "on-failure": {true: true, false: false}, "no": {true: false, false: false},
	} {
		for failed, want := range again {
			t.Run(fmt.Sprint(restart, failed), func(t *testing.T) {
				started := make(chan string, 10)
				b := newBench(t, func(o *Options) {
					o.Manual, o.Speed = false, 2000
					o.RunContainer = func(ctx context.Context, _ Guest, c Container) error {
						started <- c.Name
						if failed {
							return errors.New("broken")
						}
						return nil
					}
				})
				b.server("n", map[string]any{"user_data": strings.ReplaceAll(agentUserData, "Restart=always", "Restart="+restart)})
				wait(t, "first run", started)
				if want {
					wait(t, "second run", started)
					return
				}
				for !b.guest().printed("ended: ") { // noted after the run
					wait(t, "tick", time.After(time.Millisecond))
				}
				b.sim.Advance(time.Hour)
				select {
				case <-started:
					t.Error("started again")
				default:
				}
			})
		}
	}
}

// TestGuestMistakes has user-data that a person would get wrong, and what the
// console says of it.
func TestGuestMistakes(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(agentUserData, old) {
			t.Fatalf("there is no %q", old)
		}
		return strings.Replace(agentUserData, old, new, 1)
	}
	for _, tt := range []struct{ name, userData, shows string }{
		{"no user-data", "", "0 files written"},
		{"a script", "#!/bin/sh\ntrue\n", "first line is not #cloud-config"},
		{"blank first line", "\n" + agentUserData, "first line is not #cloud-config"},
		{"byte order mark", "\ufeff" + agentUserData, "byte order mark"},
		{"carriage returns", strings.ReplaceAll(agentUserData, "\n", "\r\n"), "carriage returns"},
		{"unquoted colon", swap("runcmd:", "final_message: a: b\nruncmd:"), "Failed loading yaml blob"},
		{"tab", swap("  - [systemctl, daemon-reload]", "\t- [systemctl, daemon-reload]"), "Failed loading yaml blob"},
		{"key twice", agentUserData + "runcmd: []\n", `key "runcmd" stands there twice`},
		{"no mapping", "#cloud-config\n- a\n", "not a mapping"},
		{"empty runcmd", "#cloud-config\nruncmd:\n", "runcmd: None is not of type 'array'"},
		{"unknown key", "#cloud-config\nwrite-files: []\n", "Additional properties are not allowed"},
		{"script without its bit", swap(`permissions: "0700"`, `permissions: "0644"`), "Failed to execute /usr/local/sbin/setup: Permission denied"},
		{"script elsewhere", swap("ExecStart=/usr/local/sbin/setup", "ExecStart=/usr/local/sbin/set-up"), "Failed to execute /usr/local/sbin/set-up: No such file"},
		{"unit does not wait for Docker", swap("After=setup.service", "After=network.target"), "docker: command not found"},
		{"unit does not want Docker", swap("Wants=setup.service", "Wants=network.target"), "docker: command not found"},
		{"environment file elsewhere", swap("--env-file /etc/agent/env", "--env-file /etc/agent/environment"), "open /etc/agent/environment: no such file"},
		{"environment with a space", swap("ADDR=cp", "MY ADDR=cp"), "poorly formatted environment"},
		{"unknown flag", swap("--rm", "--remove"), "unknown flag: --remove"},
		{"unit's name", swap("start, --no-block, agent.service", "start, --no-block, agnt"), "Unit agnt.service not found"},
		{"no such unit to enable", swap("enable, setup.service", "enable, set-up.service"), "Unit file set-up.service does not exist"},
		{"owner", swap(`permissions: "0600"`, `owner: agent:agent`), "owner agent:agent: no such user yet; no file after it is written"},
		{"relative program", swap("ExecStart=/usr/bin/docker", "ExecStart=docker"), "Executable path is not absolute"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.running("n", map[string]any{"user_data": tt.userData})
			b.sim.Advance(10 * time.Minute)
			g := b.guest()
			if !g.printed(tt.shows) {
				t.Errorf("no %q on the console:\n%s", tt.shows, strings.Join(g.Console, "\n"))
			}
			if g.Stage != "up" {
				t.Errorf("the boot ended as %s", g.Stage)
			}
			// What waits for Docker a second time finds it.
			if late := strings.Contains(tt.shows, "command not found") && tt.name != "unit does not want Docker" || strings.Contains(tt.name, "to enable"); (len(g.Containers) > 0) != late {
				t.Errorf("containers: %v", g.Containers)
			}
		})
	}
}

// TestStartLimit holds systemd's own limit for units that do not lift it.
func TestStartLimit(t *testing.T) {
	b := newBench(t)
	data := strings.NewReplacer("StartLimitIntervalSec=0", "Description=x", "RestartSec=5", "RestartSec=1", "--env-file /etc", "--env-file /no").Replace(agentUserData)
	b.running("n", map[string]any{"user_data": data})
	b.sim.Advance(time.Hour)
	if g := b.guest(); !g.printed("Start request repeated too quickly") || strings.Count(strings.Join(g.Console, "\n"), "no such file") != 5 {
		t.Errorf("console:\n%s", strings.Join(g.Console, "\n"))
	}
}

// TestPowerCutBeforeCloudInit holds that what did not happen at the first boot
// happens at the second, and that half an installation is none.
func TestPowerCutBeforeCloudInit(t *testing.T) {
	for cut, installs := range map[time.Duration]int{
		kernelTakes / 2: 1, kernelTakes + stepTakes/2: 1, kernelTakes + 2*stepTakes: 2, kernelTakes + stepTakes + dockerTakes/2: 2,
	} {
		b := newBench(t)
		id := b.running("n", map[string]any{"user_data": agentUserData})
		b.sim.Advance(cut - hetznerActTakes)
		b.must("POST", "/servers/"+id+"/actions/reset", nil)
		b.sim.Advance(time.Minute)
		g := b.guest()
		if len(g.Containers) != 1 || g.Boots != 2 {
			t.Errorf("a cut after %s: %+v", cut, g)
		}
		if n := strings.Count(strings.Join(g.Console, "\n"), "installing Docker"); n != installs {
			t.Errorf("a cut after %s: Docker was installed %d times", cut, n)
		}
	}
}

// TestGuestFilesStayInside tries to get out by a path and by a link.
func TestGuestFilesStayInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	file := func(path string) string {
		return fmt.Sprintf("  - {path: %q, content: \"got out\"}\n", path)
	}
	id := b.running("n", map[string]any{"user_data": "#cloud-config\nwrite_files:\n" + file("/../../../../../../../.."+outside+"/a") + file("../../../b") + file("c/../../d")})
	b.sim.Advance(time.Minute)
	root := b.guest().Root
	for _, p := range []string{"b", "d", filepath.Join(outside, "a")} {
		if _, err := os.Stat(filepath.Join(root, p)); err != nil {
			t.Error(err)
		}
	}
	// A guest could make a link; cloud-init's own copies go through it at the
	// next boot.
	cloud := filepath.Join(root, "var/lib/cloud")
	if err := os.RemoveAll(cloud); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, cloud); err != nil {
		t.Fatal(err)
	}
	b.must("POST", "/servers/"+id+"/actions/reset", nil)
	b.sim.Advance(time.Minute)
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
	if g := b.guest(); g.Boots != 2 || !g.printed("escapes") {
		t.Errorf("console:\n%s", strings.Join(g.Console, "\n"))
	}
}
