package cloudsim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Guest is what runs on a server.
type Guest struct {
	Provider string `json:"provider"`
	Server   string `json:"server"` // the server's id
	Name     string `json:"name"`   // the server's name
	// Root is the directory that has the guest's files.
	Root string `json:"root"`
	IPv4 string `json:"ipv4,omitempty"`
	// Stage is how far the guest is: off, booting, cloud-init, up (cloud-init
	// has ended, well or not), failed (it never gets to cloud-init).
	Stage string `json:"stage"`
	Boots int    `json:"boots"`
	// Containers are the names of those that run.
	Containers []string `json:"containers"`
	// Console is what was printed on the serial console, a line each, with the
	// seconds since power-on.
	Console []string `json:"console"`
}

// How long the stages of a boot take, in simulated time.
const (
	startTakes  = 3 * time.Second // from power-on to running
	kernelTakes = 5 * time.Second // from running to cloud-init
	dockerTakes = 15 * time.Second
	pullTakes   = 6 * time.Second
	stepTakes   = time.Second // whatever is small
	maxConsole  = 500         // lines
)

// guest is the inside of a server. Sim.mu guards it but for the files.
type guest struct {
	sim     *Sim
	server  *server
	root    string
	stage   string
	boots   int
	console []string
	powered time.Time
	// wrote and ran tell whether this instance has written its files, and run
	// its commands.
	wrote, ran bool
	dockerAt   time.Time       // when Docker is installed; zero: nobody did
	images     map[string]bool // pulled
	enabled    []string        // units that start at each boot
	upAt       map[string]time.Time
	starts     map[string][]time.Time // of units, for their limits
	ctx        context.Context        // ends with the power
	stop       context.CancelFunc
	running    map[string]bool // containers
	// busy has, by container name, what is closed when its latest run is over:
	// no run begins before that, whatever the boot.
	busy map[string]chan struct{}
}

// bootFaults marks a new server with what the rules have in store for it.
func (s *Sim) bootFaults(sv *server) {
	for _, e := range bootEffects {
		f := s.hit([]Effect{e}, sv.project.provider, "create server", sv.name)
		if f == nil {
			continue
		}
		switch e {
		case EffectSlowBoot:
			sv.slowBoot = time.Duration(f.Delay)
		case EffectNoBoot:
			sv.noBoot = true
		case EffectBootDies:
			sv.bootDies = true
		case EffectStuckDelete:
			sv.stuckDelete = time.Duration(f.Delay)
		case EffectListLag:
			sv.hiddenUntil = sv.created.Add(time.Duration(f.Delay))
		case EffectLateFailure:
			sv.lateFailure = f
		}
	}
}

// consoleText is the serial console as a terminal takes it; empty while
// nothing has been printed.
func (s *server) consoleText() string {
	if s.guest == nil || len(s.guest.console) == 0 {
		return ""
	}
	return strings.Join(s.guest.console, "\r\n") + "\r\n"
}

// powerOn starts a server. s.mu must be held, as for all below.
func (s *Sim) powerOn(sv *server, now time.Time) {
	sv.state = stateStarting
	sv.powerCycle++
	cycle := sv.powerCycle
	s.after(now, startTakes, func(now time.Time) {
		if sv.powerCycle == cycle && sv.state == stateStarting {
			sv.state = stateRunning
			s.boot(sv, now, cycle)
		}
	})
}

// restart takes the power away for a moment; the provider goes on saying that
// the server is running.
func (s *Sim) restart(sv *server, now time.Time) {
	s.powerOff(sv)
	sv.state = stateRunning
	cycle := sv.powerCycle
	s.after(now, startTakes, func(now time.Time) {
		if sv.powerCycle == cycle {
			s.boot(sv, now, cycle)
		}
	})
}

// stuckFor is how much longer a server's delete takes because of a rule: one
// from when it was created, or one on its delete.
func (s *Sim) stuckFor(sv *server) time.Duration {
	if sv.stuckDelete == 0 {
		if f := s.hit([]Effect{EffectStuckDelete}, sv.project.provider, "delete server", sv.name); f != nil {
			return time.Duration(f.Delay)
		}
	}
	return sv.stuckDelete
}

// powerOff ends what runs on a server, at once, as a power cut does.
func (s *Sim) powerOff(sv *server) {
	sv.powerCycle++
	if sv.state != stateDeleting {
		sv.state = stateStopping
	}
	if g := sv.guest; g != nil {
		g.stop()
		g.stage, g.running = "off", map[string]bool{}
	}
}

// endGuest removes the guest's files once nothing uses them any more.
func (s *Sim) endGuest(sv *server) {
	g := sv.guest
	if g == nil {
		return
	}
	sv.guest = nil
	sv.powerCycle++
	g.stop()
	var busy []chan struct{}
	for _, c := range g.busy {
		busy = append(busy, c)
	}
	s.spawn(func() {
		for _, c := range busy {
			<-c
		}
		if err := os.RemoveAll(filepath.Dir(g.root)); err != nil {
			s.log.Warn("a guest's files could not be removed", "error", err)
		}
	})
}

func (s *Sim) boot(sv *server, now time.Time, cycle int) {
	g := sv.guest
	if g == nil {
		g = &guest{
			sim: s, server: sv, root: filepath.Join(s.opts.GuestDir, sv.project.provider+"-"+itoa(sv.id), "rootfs"),
			images: map[string]bool{}, busy: map[string]chan struct{}{},
		}
		sv.guest = g
	}
	g.boots++
	if g.dockerAt.After(now) {
		g.dockerAt = time.Time{} // the power went in the middle of it
	}
	g.powered, g.stage = now, "booting"
	g.upAt, g.starts, g.running = map[string]time.Time{}, map[string][]time.Time{}, map[string]bool{}
	g.ctx, g.stop = context.WithCancel(s.ctx)
	g.print(now, "Linux version 6.8.0 (simulated), boot %d", g.boots)
	if sv.noBoot {
		g.print(now, "Kernel panic - not syncing: VFS: Unable to mount root fs")
		g.stage = "failed"
		return
	}
	if sv.bootDies && g.boots == 1 {
		s.after(now, kernelTakes+dockerTakes/2, func(now time.Time) {
			if sv.powerCycle == cycle {
				g.print(now, "power lost")
				s.powerOff(sv)
				sv.state = stateOff
			}
		})
	}
	s.after(now, kernelTakes+sv.slowBoot, func(now time.Time) {
		if sv.powerCycle == cycle {
			g.cloudInit(now)
		}
	})
}

func (g *guest) hasDocker(now time.Time) bool { return !g.dockerAt.IsZero() && !g.dockerAt.After(now) }

// later does something after a while, if the power is still on.
func (g *guest) later(now time.Time, d time.Duration, do func(now time.Time)) {
	cycle := g.server.powerCycle
	g.sim.after(now, d, func(now time.Time) {
		if g.server.powerCycle == cycle {
			do(now)
		}
	})
}

func (g *guest) print(now time.Time, format string, args ...any) {
	line := fmt.Sprintf("[%8.3f] ", now.Sub(g.powered).Seconds()) + fmt.Sprintf(format, args...)
	if len(g.console) >= maxConsole {
		g.console = g.console[1:]
	}
	g.console = append(g.console, line)
}

// Guests returns the inside of every server that was ever powered on and still
// exists.
func (s *Sim) Guests() []Guest {
	var out []Guest
	s.locked(func(time.Time) {
		for _, key := range sortedKeys(s.world.projects) {
			for _, sv := range sorted(s.world.projects[key].servers) {
				if sv.guest != nil {
					out = append(out, sv.guest.public())
				}
			}
		}
	})
	return out
}

func (g *guest) public() Guest {
	o := Guest{
		Provider: g.server.project.provider, Server: g.server.shownID(), Name: g.server.name, Root: g.root, Stage: g.stage,
		Boots: g.boots, Containers: orEmpty(sortedKeys(g.running)), Console: append([]string{}, g.console...),
	}
	if g.server.ipv4 != nil {
		o.IPv4 = g.server.ipv4.address
	}
	return o
}

// inside is a path of the guest as one below its root: ".." ends there.
func inside(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// path returns where a path of the guest is.
func (g *guest) path(p string) string { return filepath.Join(g.root, filepath.FromSlash(inside(p))) }

// files opens the guest's root: nothing that is done with it gets out, through
// symbolic links neither.
func (g *guest) files() (*os.Root, error) {
	if err := os.MkdirAll(g.root, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(g.root)
}

// put writes a file with its mode. Directories above it are made as cloud-init
// makes them.
func (g *guest) put(f cloudFile) (err error) {
	root, err := g.files()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory that was read only
	name := inside(f.path)
	if name == "" {
		return errors.New("/: is a directory")
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if f.appends {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	file, err := root.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.data)
	return errors.Join(err, file.Chmod(f.mode), file.Close())
}

// mkdir makes a directory, and those above it, with a mode of its own.
func (g *guest) mkdir(p string, mode os.FileMode) error {
	root, err := g.files()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // as above
	name := inside(p)
	if name == "" {
		return nil
	}
	if err := root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, mode)
}

// link makes a symbolic link, if there is nothing yet.
func (g *guest) link(p, to string) error {
	root, err := g.files()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // as above
	if err := root.Symlink(to, inside(p)); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// read returns a file's content, and whether it can be run.
func (g *guest) read(p string) (data []byte, program bool, err error) {
	root, err := g.files()
	if err != nil {
		return nil, false, err
	}
	defer root.Close() //nolint:errcheck // as above
	info, err := root.Stat(inside(p))
	if err != nil {
		return nil, false, err
	}
	data, err = root.ReadFile(inside(p))
	return data, info.Mode()&0o111 != 0, err
}

func (g *guest) exists(p string) bool {
	root, err := g.files()
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // as above
	_, err = root.Stat(inside(p))
	return err == nil
}
