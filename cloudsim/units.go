package cloudsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit is a systemd unit: the values of each key, by section, in order.
type unit map[string]map[string][]string

func parseUnit(text string) (unit, error) {
	u := unit{}
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
			if u[section] == nil {
				u[section] = map[string][]string{}
			}
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				return nil, fmt.Errorf("line %d: missing '='", n+1)
			}
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			if value == "" {
				delete(u[section], key) // an empty assignment resets a list
				continue
			}
			u[section][key] = append(u[section][key], value)
		}
	}
	return u, nil
}

func (u unit) words(section, key string) []string {
	return strings.Fields(strings.Join(u[section][key], " "))
}

// startUnit starts a unit and, before it, those that it wants and comes after.
func (g *guest) startUnit(now time.Time, name string) {
	if g.started[name] {
		return
	}
	g.started[name] = true
	data, err := os.ReadFile(g.unitPath(name))
	if err != nil {
		return // Docker's own, and targets: taken to be there
	}
	u, err := parseUnit(string(data))
	if err != nil {
		g.print(now, "systemd: %s: %v", name, err)
		return
	}
	wait := time.Duration(0)
	after := u.words("Unit", "After")
	for _, dep := range append(u.words("Unit", "Wants"), u.words("Unit", "Requires")...) {
		if slices.Contains(after, dep) {
			wait += g.startDependency(now, dep)
		}
	}
	g.later(now, wait, func(now time.Time) { g.runService(now, name, u) })
}

// startDependency starts a unit that another waits for, and returns how long it
// takes.
func (g *guest) startDependency(now time.Time, name string) time.Duration {
	_, err := os.Stat(g.unitPath(name))
	if err != nil || g.started[name] {
		return 0
	}
	g.started[name] = true
	if g.docker {
		return metadataTime
	}
	g.docker = true
	g.print(now, "%s: installing Docker", name)
	return dockerTakes
}

func (g *guest) runService(now time.Time, name string, u unit) {
	for _, line := range u["Service"]["ExecStartPre"] {
		if err := g.prepare(line); err != nil {
			g.print(now, "systemd: %s: %v", name, err)
			return
		}
	}
	start := u["Service"]["ExecStart"]
	if len(start) != 1 {
		g.print(now, "systemd: %s: has no ExecStart", name)
		return
	}
	words := unitWords(start[0])
	if len(words) < 2 || path.Base(words[0]) != "docker" || words[1] != "run" {
		g.print(now, "systemd: started %s", name)
		return
	}
	c, err := g.dockerRun(words[2:])
	if err != nil {
		g.print(now, "docker: %v", err)
		return
	}
	g.print(now, "%s: pulling %s", name, c.Image)
	g.later(now, pullTakes, func(now time.Time) { g.runContainer(now, name, u, c) })
}

// prepare does what of ExecStartPre has an effect on files: install -d.
func (g *guest) prepare(line string) error {
	words := unitWords(strings.TrimLeft(line, "-+!@:"))
	if len(words) == 0 || path.Base(words[0]) != "install" {
		return nil
	}
	mode := os.FileMode(0o755)
	var dirs []string
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-d":
		case w == "-m" && i+1 < len(words):
			i++
			n, err := strconv.ParseUint(words[i], 8, 12)
			if err != nil {
				return fmt.Errorf("install: invalid mode %q", words[i])
			}
			mode = os.FileMode(n & 0o777)
		case (w == "-o" || w == "-g") && i+1 < len(words):
			i++
		case strings.HasPrefix(w, "-"):
			return fmt.Errorf("install: option %s is not simulated", w)
		default:
			dirs = append(dirs, w)
		}
	}
	for _, d := range dirs {
		if err := os.MkdirAll(g.path(d), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(g.path(d), mode); err != nil {
			return err
		}
	}
	return nil
}

// unitWords splits a command line as systemd does, as far as first boots need.
func unitWords(line string) []string {
	var words []string
	var b strings.Builder
	in, quote := false, rune(0)
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, b.String())
			}
			b.Reset()
			in = false
		default:
			b.WriteRune(c)
			in = true
		}
	}
	if in {
		words = append(words, b.String())
	}
	for i, w := range words {
		words[i] = strings.NewReplacer("%%", "%", "$$", "$").Replace(w)
	}
	return words
}

// dockerFlags are those of `docker run` that take a value, and those that do
// not.
var (
	dockerValueFlags = strings.Fields("--name --user -u --network --net --env-file -e --env -v --volume --mount --device --cap-add --cap-drop --log-driver --log-opt --label -l -w --workdir --pid --ipc --security-opt --restart --hostname -h --entrypoint --memory -m --cpus --ulimit --add-host --dns --stop-timeout --tmpfs --pull")
	dockerBoolFlags  = strings.Fields("--rm --privileged --init --read-only -i -t -it -d --detach --interactive --tty")
)

// dockerRun takes the arguments of `docker run` apart.
func (g *guest) dockerRun(args []string) (Container, error) {
	c := Container{Env: map[string]string{}}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			c.Image, c.Args = a, args[i+1:]
			if c.Name == "" {
				c.Name = "unnamed"
			}
			return c, nil
		}
		if slices.Contains(dockerBoolFlags, a) {
			continue
		}
		flag, value, has := strings.Cut(a, "=")
		if !slices.Contains(dockerValueFlags, flag) {
			return c, fmt.Errorf("unknown flag: %s", flag)
		}
		if !has {
			if i++; i >= len(args) {
				return c, fmt.Errorf("flag needs an argument: %s", flag)
			}
			value = args[i]
		}
		if err := g.dockerFlag(&c, flag, value); err != nil {
			return c, err
		}
	}
	return c, errors.New(`"docker run" requires at least 1 argument`)
}

func (g *guest) dockerFlag(c *Container, flag, value string) error {
	switch flag {
	case "--name":
		c.Name = value
	case "--user", "-u":
		c.User = value
	case "--network", "--net":
		c.Network = value
	case "--device":
		c.Devices = append(c.Devices, value)
	case "--cap-add":
		c.CapAdd = append(c.CapAdd, value)
	case "-e", "--env":
		k, v, _ := strings.Cut(value, "=")
		c.Env[k] = v
	case "--env-file":
		return g.envFile(c, value)
	case "-v", "--volume":
		return g.mount(c, value)
	}
	return nil
}

// envFile reads a file as `docker run --env-file` does: what stands after the
// first = is the value, quotes included.
func (g *guest) envFile(c *Container, file string) error {
	data, err := os.ReadFile(g.path(file))
	if err != nil {
		return fmt.Errorf("open %s: no such file or directory", file)
	}
	for _, line := range strings.Split(string(data), "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if k == "" || strings.ContainsAny(k, " \t") {
			return fmt.Errorf("poorly formatted environment: %s: no variable name on line", file)
		}
		if ok {
			c.Env[k] = v
		}
	}
	return nil
}

func (g *guest) mount(c *Container, value string) error {
	parts := strings.Split(value, ":")
	if len(parts) < 2 || len(parts) > 3 || !strings.HasPrefix(parts[0], "/") || !strings.HasPrefix(parts[1], "/") {
		return fmt.Errorf("invalid volume specification: %q", value)
	}
	host := g.path(parts[0])
	if _, err := os.Stat(host); errors.Is(err, os.ErrNotExist) && filepath.Ext(host) != ".sock" {
		if err := os.MkdirAll(host, 0o755); err != nil { // as Docker does
			return err
		}
	}
	c.Mounts = append(c.Mounts, Mount{HostPath: host, ContainerPath: parts[1], ReadOnly: len(parts) == 3 && slices.Contains(strings.Split(parts[2], ","), "ro")})
	return nil
}

// runContainer runs the caller's part of a container until the power goes off,
// and again when it ends, as the unit says.
func (g *guest) runContainer(now time.Time, name string, u unit, c Container) {
	g.print(now, "docker: started container %s", c.Name)
	g.running[c.Name] = true
	s, ctx, cycle, public := g.sim, g.ctx, g.server.powerCycle, g.public()
	run := s.opts.RunContainer
	if run == nil {
		run = func(ctx context.Context, _ Guest, _ Container) error { <-ctx.Done(); return nil }
	}
	g.ended.Add(1)
	s.guests.Go(func() {
		err := run(ctx, public, c)
		g.ended.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.server.powerCycle != cycle || ctx.Err() != nil {
			return
		}
		delete(g.running, c.Name)
		now := s.clockNow()
		g.print(now, "docker: container %s ended: %v", c.Name, err)
		if restart := u["Service"]["Restart"]; !slices.Contains(restart, "always") && (err == nil || !slices.Contains(restart, "on-failure")) {
			return
		}
		g.later(now, restartPause(u), func(now time.Time) { g.runService(now, name, u) })
	})
}

func restartPause(u unit) time.Duration {
	for _, v := range u["Service"]["RestartSec"] {
		if n, err := strconv.Atoi(v); err == nil {
			return time.Duration(n) * time.Second
		}
		if d, err := time.ParseDuration(v); err == nil {
			return d
		}
	}
	return 100 * time.Millisecond
}
