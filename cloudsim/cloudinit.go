package cloudsim

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cloudInit does what cloud-init does at a boot. At every one it keeps copies
// of the user-data; the files are written and the commands are run once in the
// life of an instance, at the first boot that gets so far.
func (g *guest) cloudInit(now time.Time) {
	g.stage = "cloud-init"
	id := "i-" + itoa(g.server.id)
	for _, f := range []cloudFile{
		{path: "/etc/hostname", data: []byte(g.server.name + "\n"), mode: 0o644},
		{path: "/etc/os-release", data: []byte("PRETTY_NAME=\"Ubuntu 24.04 LTS (simulated)\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n"), mode: 0o644},
		{path: "/var/lib/cloud/data/instance-id", data: []byte(id + "\n"), mode: 0o644},
		{path: "/var/lib/cloud/instances/" + id + "/user-data.txt", data: g.server.userData, mode: 0o600},
		{path: "/var/lib/cloud/instances/" + id + "/user-data.txt.i", data: g.server.userData, mode: 0o600},
		{path: "/run/cloud-init/combined-cloud-config.json", data: []byte(strconv.Quote(string(g.server.userData))), mode: 0o600},
	} {
		if err := g.put(f); err != nil {
			g.print(now, "cloud-init: %v", err)
		}
	}
	if err := g.link("/var/lib/cloud/instance", "instances/"+id); err != nil {
		g.print(now, "cloud-init: %v", err)
	}
	g.print(now, "cloud-init: running 'init', instance %s", id)
	c, err := readUserData(g.server.userData)
	if err != nil {
		g.print(now, "cloud-init: WARNING: %v", err)
		g.up()
		return
	}
	for _, n := range c.notes {
		g.print(now, "cloud-init: WARNING: %s", n)
	}
	if !g.wrote {
		for _, f := range c.files {
			if err := g.put(f); err != nil {
				g.print(now, "cloud-init: write_files: %v; no file after it is written", err)
				break
			}
		}
		g.print(now, "cloud-init: %d files written", len(c.files))
		g.wrote = true
	}
	for _, u := range g.enabled {
		g.startUnit(now, u)
	}
	g.later(now, stepTakes, func(now time.Time) {
		if g.ran {
			g.up()
			return
		}
		g.finalStage(now, c)
	})
}

// finalStage installs packages and runs the commands, one after the other.
func (g *guest) finalStage(now time.Time, c cloudConfig) {
	wait := time.Duration(0)
	if slices.ContainsFunc(c.packages, isDocker) {
		wait = g.installDocker(now, "cloud-init")
	}
	g.later(now, wait, func(now time.Time) {
		g.ran = true
		g.runCommands(now, c.commands)
	})
}

func isDocker(name string) bool {
	return slices.Contains([]string{"docker.io", "docker-ce", "docker", "moby-engine"}, strings.SplitN(name, "=", 2)[0])
}

// installDocker returns how long it takes, until when there is none.
func (g *guest) installDocker(now time.Time, by string) time.Duration {
	switch {
	case g.hasDocker(now):
		return stepTakes
	case g.dockerAt.IsZero():
		g.print(now, "%s: installing Docker", by)
		g.dockerAt = now.Add(dockerTakes)
	}
	return g.dockerAt.Sub(now) // someone else may be at it
}

func (g *guest) runCommands(now time.Time, cmds []command) {
	for i, cmd := range cmds {
		var wait time.Duration
		for _, words := range cmd.split() {
			wait += g.runCommand(now, words)
		}
		if wait > 0 {
			g.later(now, wait, func(now time.Time) { g.runCommands(now, cmds[i+1:]) })
			return
		}
	}
	g.print(now, "cloud-init: finished")
	g.up()
}

// shellMeaning has the signs that make a line more than words.
const shellMeaning = "|<>$`(){}*?[]~&\\\"'#"

// split returns the commands of a line: those that ";", "&&" and line ends
// separate. A part that means more to a shell stays one word.
func (c command) split() [][]string {
	if c.words != nil {
		return [][]string{c.words}
	}
	var out [][]string
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(c.line, "&&", "\n"), func(r rune) bool { return r == '\n' || r == ';' }) {
		switch part = strings.TrimSpace(part); {
		case part == "" || part[0] == '#':
		case strings.ContainsAny(part, shellMeaning), strings.Contains(strings.Fields(part)[0], "="):
			out = append(out, []string{part})
		default:
			out = append(out, strings.Fields(part))
		}
	}
	return out
}

// runCommand does what is known of a command, and returns how long it takes.
func (g *guest) runCommand(now time.Time, words []string) time.Duration {
	if len(words) == 0 {
		return 0
	}
	line := strings.Join(words, " ")
	switch name := path.Base(words[0]); {
	case name == "sync" || name == "true" || name == "echo":
	case name == "systemctl":
		g.systemctl(now, words[1:])
	case name == "docker" && len(words) > 2 && words[1] == "run":
		g.startContainer(now, "runcmd", nil, words[2:])
	case strings.Contains(line, "get.docker.com"), strings.Contains(line, "install") && slices.ContainsFunc(words, isDocker):
		return g.installDocker(now, "runcmd")
	default:
		g.print(now, "runcmd: %s: not simulated", words[0])
	}
	return 0
}

// up notes that the boot itself is over.
func (g *guest) up() {
	if g.stage == "cloud-init" {
		g.stage = "up"
	}
}
