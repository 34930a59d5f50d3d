package cloudsim

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Container is what a guest's unit asked Docker to run.
type Container struct {
	Name    string
	Image   string
	Args    []string
	Env     map[string]string // of --env-file and -e
	Mounts  []Mount
	Devices []string
	CapAdd  []string
	User    string
	Network string
}

// Mount is a bind mount. HostPath is on the machine that runs the simulation,
// within Guest.Root.
type Mount struct {
	HostPath      string
	ContainerPath string
	ReadOnly      bool
}

// dockerFlags are those of `docker run` that take a value, and those that do
// not.
var (
	dockerValueFlags = strings.Fields("--name --user -u --network --net --env-file -e --env -v --volume --mount --device --cap-add --cap-drop --log-driver --log-opt --label -l -w --workdir --pid --ipc --security-opt --restart --hostname -h --entrypoint --memory -m --cpus --ulimit --add-host --dns --stop-timeout --tmpfs --pull -p --publish")
	dockerBoolFlags  = strings.Fields("--rm --privileged --init --read-only -i -t -it -d --detach --interactive --tty")
)

// startContainer does a `docker run`, of a unit or, without one, of a command.
func (g *guest) startContainer(now time.Time, by string, u unit, args []string) {
	if !g.hasDocker(now) {
		g.print(now, "%s: docker: command not found", by)
		g.ended(now, by, u, true)
		return
	}
	c, err := g.dockerRun(args)
	if err != nil {
		g.print(now, "docker: %v", err)
		g.ended(now, by, u, true)
		return
	}
	wait := time.Duration(0)
	if !g.images[c.Image] {
		g.print(now, "%s: pulling %s", by, c.Image)
		wait = pullTakes
	}
	g.later(now, wait, func(now time.Time) {
		g.images[c.Image] = true
		g.runContainer(now, by, u, c)
	})
}

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
		k, v, ok := strings.Cut(value, "=")
		if ok { // a name alone is taken from an environment that has none
			c.Env[k] = v
		}
	case "--env-file":
		return g.envFile(c, value)
	case "-v", "--volume":
		return g.volume(c, value)
	case "--mount":
		return g.mount(c, value)
	}
	return nil
}

// envFile reads a file as `docker run --env-file` does: what stands after the
// first = is the value, quotes included.
func (g *guest) envFile(c *Container, file string) error {
	data, _, err := g.read(file)
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

// volume reads -v: what does not exist on the host is made, as a directory.
func (g *guest) volume(c *Container, value string) error {
	parts := strings.Split(value, ":")
	if len(parts) < 2 || len(parts) > 3 || !strings.HasPrefix(parts[0], "/") || !strings.HasPrefix(parts[1], "/") {
		return fmt.Errorf("invalid volume specification: %q", value)
	}
	if !g.exists(parts[0]) && path.Ext(parts[0]) != ".sock" {
		if err := g.mkdir(parts[0], 0o755); err != nil {
			return err
		}
	}
	readOnly := len(parts) == 3 && slices.Contains(strings.Split(parts[2], ","), "ro")
	c.Mounts = append(c.Mounts, Mount{HostPath: g.path(parts[0]), ContainerPath: parts[1], ReadOnly: readOnly})
	return nil
}

// mount reads --mount: what does not exist on the host is an error.
func (g *guest) mount(c *Container, value string) error {
	m, kind := Mount{}, "volume"
	for _, part := range strings.Split(value, ",") {
		k, v, _ := strings.Cut(part, "=")
		switch k {
		case "type":
			kind = v
		case "source", "src":
			m.HostPath = v
		case "target", "destination", "dst":
			m.ContainerPath = v
		case "readonly", "ro":
			m.ReadOnly = v != "false" && v != "0"
		}
	}
	switch {
	case kind != "bind":
		return nil // of nobody else's concern
	case !strings.HasPrefix(m.HostPath, "/") || !strings.HasPrefix(m.ContainerPath, "/"):
		return fmt.Errorf("invalid argument %q for --mount", value)
	case !g.exists(m.HostPath) && path.Ext(m.HostPath) != ".sock":
		return fmt.Errorf("bind source path does not exist: %s", m.HostPath)
	}
	m.HostPath = g.path(m.HostPath)
	c.Mounts = append(c.Mounts, m)
	return nil
}

// runContainer runs the caller's part of a container until the power goes off,
// and again when it ends, as the unit says.
func (g *guest) runContainer(now time.Time, by string, u unit, c Container) {
	g.print(now, "docker: started container %s", c.Name)
	g.running[c.Name] = true
	s, ctx, cycle, public := g.sim, g.ctx, g.server.powerCycle, g.public()
	run := s.opts.RunContainer
	if run == nil {
		run = func(ctx context.Context, _ Guest, _ Container) error { <-ctx.Done(); return nil }
	}
	over, before := make(chan struct{}), g.busy[c.Name]
	started := s.spawn(func() {
		if before != nil {
			<-before // its context has ended, or it has ended by itself
		}
		var err error
		if ctx.Err() == nil {
			err = run(ctx, public, c)
		}
		close(over)
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.server.powerCycle != cycle || ctx.Err() != nil {
			return
		}
		delete(g.running, c.Name)
		now := s.clockNow()
		g.print(now, "docker: container %s ended: %v", c.Name, err)
		g.ended(now, by, u, err != nil)
	})
	if started {
		g.busy[c.Name] = over
	}
}
