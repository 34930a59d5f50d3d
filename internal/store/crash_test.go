package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
)

// TestKill9 is the test that decided for River on SQLite: a process that
// works alarms, and sets new ones all the time, is killed with SIGKILL at
// random moments, again and again. In the end every record must have been
// worked to its end, no file may be damaged, and no start may wait for the
// dead: not for the lock, and not for jobs that died as running.
//
// It runs for 10 seconds, or as long as STORE_CRASH_FOR says.
func TestKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for seconds")
	}
	length := 10 * time.Second
	if text := os.Getenv("STORE_CRASH_FOR"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	kills := 0
	for end := time.Now().Add(length); time.Now().Before(end); kills++ {
		run := 50 + rand.N(750)
		if killed, out, err := runHelper(t, dir, "grow", time.Duration(run)*time.Millisecond); err != nil {
			t.Fatalf("start %d: %v\n%s", kills, err, out)
		} else if !killed {
			t.Fatalf("the helper ended by itself:\n%s", out)
		}
	}
	begin := time.Now()
	killed, out, err := runHelper(t, dir, "finish", time.Minute)
	took := time.Since(begin).Round(time.Millisecond)
	if err != nil || killed {
		t.Fatalf("the last start did not finish the work within a minute: %v\n%s", err, out)
	}
	nodes, steps := checkCrashed(t, dir)
	t.Logf("%d kills; %d records worked to their end in %d steps; the last start took %s for what was open", kills, nodes, steps, took)
	if kills < 5 || steps < kills {
		t.Errorf("%d kills and %d records prove nothing", kills, nodes)
	}
	// 90 s is the age at which River itself would rescue what died.
	if took > 30*time.Second {
		t.Errorf("the last start took %s: it waited for the dead", took)
	}
}

const (
	crashDirEnv  = "STORE_CRASH_DIR"
	crashModeEnv = "STORE_CRASH_MODE"
	crashSteps   = 5 // steps of each record
)

// runHelper runs this test binary as the helper and kills it after a while. It
// returns whether it had to be killed.
func runHelper(t *testing.T, dir, mode string, after time.Duration) (killed bool, out []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0]) // its end is SIGKILL
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir, crashModeEnv+"="+mode)
	out, err = cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return true, out, nil
		}
	}
	return false, out, err
}

// checkCrashed opens the database and holds what must hold in the end.
func checkCrashed(t *testing.T, dir string) (nodes, steps int) {
	t.Helper()
	s := open(t, dir)
	all, err := s.Nodes(t.Context(), fleet.NodeQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if n.Phase != fleet.PhaseJoined || n.Tries != crashSteps {
			t.Errorf("record %s is %s after %d steps", n.Name, n.Phase, n.Tries)
		}
		events, err := s.Events(t.Context(), n.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		// Each step is one transaction: a step that counted left its event.
		if len(events) != crashSteps {
			t.Errorf("record %s has %d events of %d steps", n.Name, len(events), crashSteps)
		}
		steps += n.Tries
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "slipway.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("the file is damaged: %s %v", verdict, err)
	}
	return len(all), steps
}

// crashHelper is the process that is killed. It never returns in mode "grow".
func crashHelper(dir string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	sealer, err := store.OpenSealer(filepath.Join(dir, "keys", "age.key"))
	if err != nil {
		log.Error("sealer", "error", err)
		return 1
	}
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "slipway.db"), Sealer: sealer, Logger: log})
	if err != nil {
		log.Error("open", "error", err)
		return 1
	}
	w := &stepper{s: s, done: cancel}
	if os.Getenv(crashModeEnv) == "grow" {
		w.done = func() {}
		go w.grow(ctx)
	}
	if err := errors.Join(s.Run(ctx, w, store.RunOptions{Workers: 4, Poll: 20 * time.Millisecond}), s.Close()); err != nil {
		log.Error("run", "error", err)
		return 1
	}
	return 0
}

// stepper works each record in steps. It ends the process by done when there
// is nothing left to do.
type stepper struct {
	s    *store.Store
	done func()
}

// grow makes records, each with its alarm in one transaction: a few more than
// are worked off, so that a kill meets work.
func (w *stepper) grow(ctx context.Context) {
	for i := 0; ; i++ {
		changed := w.s.EventsChanged()
		open, err := w.s.Nodes(ctx, fleet.NodeQuery{Unsettled: true})
		if err == nil && len(open) > 20 {
			<-changed
			continue
		}
		id := strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.Itoa(i)
		err = errors.Join(err, w.s.Update(ctx, func(tx fleet.Tx) error {
			n := fleet.Node{ID: id, Name: id, Phase: fleet.PhasePending, CreatedAt: time.Now(), Version: 1}
			return errors.Join(tx.InsertNode(ctx, n), tx.Wake(ctx, fleet.Alarm{Kind: fleet.AlarmNode, ID: id}, time.Now()))
		}))
		if err != nil {
			fmt.Fprintln(os.Stderr, "grow:", err)
			os.Exit(1)
		}
	}
}

func (w *stepper) Run(ctx context.Context, a fleet.Alarm) (time.Time, error) {
	next := time.Now().Add(rand.N(30 * time.Millisecond))
	err := w.s.Update(ctx, func(tx fleet.Tx) error {
		n, err := tx.Node(ctx, a.ID)
		if err != nil || n.Phase == fleet.PhaseJoined {
			next = time.Time{}
			return err
		}
		if n.Tries++; n.Tries == crashSteps {
			n.Phase, next = fleet.PhaseJoined, time.Time{}
		}
		return errors.Join(tx.UpdateNode(ctx, &n), tx.AddEvent(ctx, fleet.Event{NodeID: n.ID, Type: "step", At: time.Now()}))
	})
	if err == nil && next.IsZero() {
		open, err := w.s.Nodes(ctx, fleet.NodeQuery{Unsettled: true})
		if err == nil && len(open) == 0 {
			w.done()
		}
	}
	return next, err
}

func (w *stepper) Sweep(ctx context.Context, _ bool) error {
	open, err := w.s.Nodes(ctx, fleet.NodeQuery{Unsettled: true})
	if err != nil {
		return err
	}
	if len(open) == 0 {
		w.done()
	}
	return w.s.Update(ctx, func(tx fleet.Tx) error {
		for _, n := range open {
			if err := tx.Wake(ctx, fleet.Alarm{Kind: fleet.AlarmNode, ID: n.ID}, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *stepper) Patrol(context.Context) error { return nil }
