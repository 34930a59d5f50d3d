package cloudsim

import (
	"errors"
	"fmt"
	"os"
	"path"
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

// last is the value that counts of a key that has one.
func (u unit) last(section, key string) string {
	v := u[section][key]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

// span is a time as units write it: seconds without more, or as "1min 30s".
func (u unit) span(section, key string, def time.Duration) time.Duration {
	v := u.last(section, key)
	if v == "" {
		return def
	}
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return time.Duration(n * float64(time.Second))
	}
	d, err := time.ParseDuration(strings.NewReplacer("min", "m", "sec", "s", " ", "").Replace(v))
	if err != nil {
		return def
	}
	return d
}

// systemctl does the part of systemctl that first boots use.
func (g *guest) systemctl(now time.Time, args []string) {
	var verb string
	var units []string
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-"):
		case verb == "":
			verb = a
		default:
			if !strings.Contains(a, ".") {
				a += ".service"
			}
			units = append(units, a)
		}
	}
	switch verb {
	case "daemon-reload":
	case "enable", "start", "restart":
		for _, name := range units {
			if verb == "enable" && !g.enable(now, name) {
				continue
			}
			if verb != "enable" || slices.Contains(args, "--now") {
				g.startUnit(now, name)
			}
		}
	default:
		g.print(now, "systemctl %s: not simulated", verb)
	}
}

func unitPath(name string) string { return "/etc/systemd/system/" + path.Base(name) }

// loadUnit reads a unit. The system's own are taken to be there, and to be up.
func (g *guest) loadUnit(now time.Time, name string) (unit, bool) {
	data, _, err := g.read(unitPath(name))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			g.print(now, "systemd: %s: %v", name, err)
		}
		return nil, false
	}
	u, err := parseUnit(string(data))
	if err != nil {
		g.print(now, "systemd: %s: %v", name, err)
		return nil, false
	}
	return u, true
}

func isSystems(name string) bool {
	return strings.HasSuffix(name, ".target") || slices.Contains([]string{"docker.service", "containerd.service", "docker.socket"}, name)
}

func (g *guest) enable(now time.Time, name string) bool {
	u, ok := g.loadUnit(now, name)
	switch {
	case isSystems(name):
		return true
	case !ok:
		g.print(now, "systemctl: Failed to enable unit: Unit file %s does not exist.", name)
		return false
	case u["Install"] == nil:
		g.print(now, "systemctl: The unit files have no installation config: %s", name)
		return false
	}
	if !slices.Contains(g.enabled, name) {
		g.enabled = append(g.enabled, name)
	}
	return true
}

// startUnit starts a unit, and those that it wants, and returns how long it
// takes until it is up. It begins when those that it comes after are up.
func (g *guest) startUnit(now time.Time, name string) time.Duration {
	if at, started := g.upAt[name]; started {
		return max(0, at.Sub(now))
	}
	g.upAt[name] = now
	u, ok := g.loadUnit(now, name)
	if !ok {
		if !isSystems(name) {
			g.print(now, "systemctl: Unit %s not found.", name)
		}
		return 0
	}
	wait := time.Duration(0)
	after := u.words("Unit", "After")
	for _, dep := range append(u.words("Unit", "Wants"), u.words("Unit", "Requires")...) {
		if takes := g.startUnit(now, dep); slices.Contains(after, dep) {
			wait = max(wait, takes)
		}
	}
	takes := wait
	if u.last("Service", "Type") == "oneshot" {
		takes += g.oneshotTakes(now, u)
	}
	g.upAt[name] = now.Add(takes)
	g.later(now, wait, func(now time.Time) { g.runService(now, name, u) })
	return takes
}

// installs tells whether a oneshot's script speaks of Docker: if there is no
// Docker yet, it installs it.
func (g *guest) installs(u unit) bool {
	for _, line := range u["Service"]["ExecStart"] {
		words := unitWords(strings.TrimLeft(line, "-+!@:"))
		if len(words) == 0 {
			continue
		}
		data, program, err := g.read(words[0])
		if err == nil && program && strings.Contains(string(data), "docker") {
			return true
		}
	}
	return false
}

func (g *guest) oneshotTakes(now time.Time, u unit) time.Duration {
	if g.hasDocker(now) || !g.installs(u) {
		return stepTakes
	}
	return dockerTakes
}

// runService runs what a unit says. The image's own programs are taken to be
// there; one that the guest was given must be able to run.
func (g *guest) runService(now time.Time, name string, u unit) {
	if !g.mayStart(now, name, u) {
		return
	}
	for _, line := range u["Service"]["ExecStartPre"] {
		if err := g.prepare(line); err != nil && !strings.HasPrefix(line, "-") {
			g.print(now, "systemd: %s: %v", name, err)
			g.ended(now, name, u, true)
			return
		}
	}
	start := u["Service"]["ExecStart"]
	if len(start) == 0 || len(start) > 1 && u.last("Service", "Type") != "oneshot" {
		g.print(now, "systemd: %s: has not exactly one ExecStart", name)
		return
	}
	for _, line := range start {
		words := unitWords(strings.TrimLeft(line, "-+!@:"))
		switch {
		case len(words) == 0 || !strings.HasPrefix(words[0], "/"):
			g.print(now, "systemd: %s: Executable path is not absolute: %s", name, line)
			return
		case path.Base(words[0]) == "docker" && len(words) > 2 && words[1] == "run":
			g.startContainer(now, name, u, words[2:])
			continue
		}
		if _, program, err := g.read(words[0]); err == nil && !program {
			g.print(now, "systemd: %s: Failed to execute %s: Permission denied", name, words[0])
			g.ended(now, name, u, true)
			return
		} else if err != nil && (strings.HasPrefix(words[0], "/usr/local/") || strings.HasPrefix(words[0], "/opt/")) {
			g.print(now, "systemd: %s: Failed to execute %s: No such file or directory", name, words[0])
			g.ended(now, name, u, true)
			return
		}
		if u.last("Service", "Type") == "oneshot" && g.installs(u) {
			g.installDocker(now, name)
		}
		g.print(now, "systemd: started %s", name)
	}
}

// mayStart keeps the limit on how often a unit is started.
func (g *guest) mayStart(now time.Time, name string, u unit) bool {
	interval := u.span("Unit", "StartLimitIntervalSec", 10*time.Second)
	burst, err := strconv.Atoi(u.last("Unit", "StartLimitBurst"))
	if err != nil {
		burst = 5
	}
	recent := slices.DeleteFunc(g.starts[name], func(at time.Time) bool { return now.Sub(at) >= interval })
	if interval > 0 && len(recent) >= burst {
		g.print(now, "systemd: %s: Start request repeated too quickly.", name)
		return false
	}
	g.starts[name] = append(recent, now)
	return true
}

// ended starts a unit again, if it says so.
func (g *guest) ended(now time.Time, name string, u unit, failed bool) {
	switch restart := u.last("Service", "Restart"); {
	case restart == "always" && u.last("Service", "Type") != "oneshot", restart == "on-failure" && failed, restart == "on-success" && !failed:
	default:
		return
	}
	pause := max(u.span("Service", "RestartSec", 100*time.Millisecond), 100*time.Millisecond)
	g.later(now, pause, func(now time.Time) { g.runService(now, name, u) })
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
		if err := g.mkdir(d, mode); err != nil {
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
