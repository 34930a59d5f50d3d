package cloudsim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	// Stage is how far the guest is: off, booting, cloud-init, starting, up,
	// failed.
	Stage string `json:"stage"`
	Boots int    `json:"boots"`
	// Containers are the names of those that run.
	Containers []string `json:"containers"`
	// Console is what was printed on the serial console, a line each, with the
	// seconds since power-on.
	Console []string `json:"console"`
}

// Container is what a guest's unit asked Docker to run.
type Container struct {
	Name    string
	Image   string
	Args    []string
	Env     map[string]string
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

// How long the stages of a boot take, in simulated time.
const (
	kernelTakes  = 5 * time.Second // from running to cloud-init
	dockerTakes  = 15 * time.Second
	pullTakes    = 6 * time.Second
	maxConsole   = 500 // lines
	metadataTime = time.Second
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
	// enabled are units that start at each boot.
	enabled []string
	started map[string]bool // units, in this boot
	docker  bool            // installed
	ctx     context.Context // ends with the power
	stop    context.CancelFunc
	running map[string]bool // containers
	ended   *sync.WaitGroup // of the containers of this boot
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

// powerOn starts a server. s.mu must be held, as for all below.
func (s *Sim) powerOn(sv *server, now time.Time) {
	sv.state = stateStarting
	sv.powerCycle++
	cycle := sv.powerCycle
	s.after(now, hetznerStartTakes, func(now time.Time) {
		if sv.powerCycle == cycle && sv.state == stateStarting {
			sv.state = stateRunning
			s.boot(sv, now, cycle)
		}
	})
}

// powerOff ends what runs on a server, at once, as a power cut does.
func (s *Sim) powerOff(sv *server) {
	sv.powerCycle++
	if sv.state != stateDeleting {
		sv.state = stateStopping
	}
	if g := sv.guest; g != nil && g.stop != nil {
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
	g.stop()
	s.guests.Go(func() {
		g.ended.Wait()
		if err := os.RemoveAll(filepath.Dir(g.root)); err != nil {
			s.log.Warn("a guest's files could not be removed", "error", err)
		}
	})
}

func (s *Sim) boot(sv *server, now time.Time, cycle int) {
	g := sv.guest
	if g == nil {
		g = &guest{sim: s, server: sv, root: filepath.Join(s.opts.GuestDir, sv.project.provider+"-"+itoa(sv.id), "rootfs"), ended: &sync.WaitGroup{}}
		sv.guest = g
	}
	g.boots++
	g.powered, g.stage = now, "booting"
	g.started, g.running = map[string]bool{}, map[string]bool{}
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

// path returns where a path of the guest is, and keeps ".." inside of it.
func (g *guest) path(p string) string { return filepath.Join(g.root, filepath.Clean("/"+p)) }

// put writes a file with its mode. Directories above it are made as
// cloud-init makes them.
func (g *guest) put(path string, data []byte, mode os.FileMode, add bool) error {
	full := g.path(path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if add {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := os.OpenFile(full, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
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
		for _, u := range units {
			if _, err := os.Stat(g.unitPath(u)); err != nil {
				g.print(now, "systemctl: Unit %s not found.", u)
				continue
			}
			if verb == "enable" {
				g.enable(u)
			}
			if verb != "enable" || contains(args, "--now") {
				g.startUnit(now, u)
			}
		}
	default:
		g.print(now, "systemctl %s: not simulated", verb)
	}
}

func (g *guest) unitPath(u string) string { return g.path("/etc/systemd/system/" + filepath.Base(u)) }

func (g *guest) enable(u string) {
	if !contains(g.enabled, u) {
		g.enabled = append(g.enabled, u)
	}
}
