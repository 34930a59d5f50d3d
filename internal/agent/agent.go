package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// The pauses between attempts.
const (
	retryFirst = time.Second
	retryMax   = time.Minute
	// retryFinal is the pause after a refusal that will stay one. The process
	// stays: one that ended would be started again at once, and again.
	retryFinal = time.Hour
	// beatDefault is the pause between heartbeats until the control plane says
	// another.
	beatDefault = 30 * time.Second
	beatMax     = time.Hour
)

type agent struct {
	cfg   Config
	vault vault
	log   *slog.Logger
	rec   record
	// renewAt is when to ask for the next certificate.
	renewAt time.Time
	// skewed tells that the log has said how far the clocks are apart.
	skewed bool
}

// Run joins if the node has not joined yet, then heartbeats and renews until
// ctx ends, and returns nil then. It returns an error only for what no waiting
// mends: a configuration that cannot work, an identity directory that cannot
// be written. What the control plane refuses for good is logged once and tried
// again hourly.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Clock == nil {
		cfg.Clock = systemClock{}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	v, err := openVault(cfg.path(cfg.IdentityDir))
	if err != nil {
		return err
	}
	a := &agent{cfg: cfg, vault: v, log: cfg.Logger.With("node", cfg.NodeName)}
	err = a.run(ctx)
	if ctx.Err() != nil {
		a.log.Info("stopped")
		return nil
	}
	return err
}

func (a *agent) run(ctx context.Context) error {
	rec, joined, err := a.vault.load()
	if err != nil {
		return err
	}
	if machine := a.cfg.machineID(); joined && otherMachine(rec.MachineID, machine) {
		a.log.Error("this disk is a copy of another node's: its identity is not used here; to make this machine a node of its own, give it a token of its own",
			"identity_of", rec.NodeName, "machine", machine)
		joined = false
	}
	if !joined {
		if rec, err = a.join(ctx); err != nil {
			return err
		}
	}
	a.rec = rec
	a.tidy()
	return a.serve(ctx)
}

// join goes on until the node has an identity that is stored.
func (a *agent) join(ctx context.Context) (record, error) {
	b := backoff{clock: a.cfg.Clock, random: a.cfg.Random}
	for {
		rec, err := a.joinOnce(ctx)
		if err == nil {
			a.log.Info("joined", "node_id", rec.NodeID, "control_plane", a.cfg.Addr)
			return rec, nil
		}
		if ctx.Err() != nil {
			return record{}, ctx.Err()
		}
		pause := b.next(err)
		a.log.Warn("not joined yet", "error", err.Error(), "control_plane", a.cfg.Addr, "next_try_in", pause.Round(time.Millisecond).String())
		if err := a.cfg.Clock.Sleep(ctx, pause); err != nil {
			return record{}, err
		}
	}
}

func (a *agent) joinOnce(ctx context.Context) (record, error) {
	t, err := readTicket(a.cfg.path(a.cfg.JoinFile))
	if errors.Is(err, os.ErrNotExist) {
		return record{}, fmt.Errorf("no identity in %s and no join file at %s: %w", a.cfg.IdentityDir, a.cfg.JoinFile, errHopeless)
	}
	if err != nil {
		return record{}, fmt.Errorf("%w: %w", err, errHopeless)
	}
	key, err := a.vault.pendingKey()
	if err != nil {
		return record{}, err
	}
	dial := enroll.Dial{Addr: a.cfg.Addr, Pins: t.pins, Now: a.cfg.Clock.Now}
	id, err := enroll.Join(ctx, dial, t.token, key, a.cfg.facts(ctx))
	if err != nil {
		return record{}, err
	}
	rec := record{Pins: t.pins, TokenID: t.token.ID(), MachineID: a.cfg.machineID()}
	rec.set(id)
	if err := a.vault.save(rec); err != nil {
		return record{}, err
	}
	if err := a.vault.dropPending(); err != nil {
		a.log.Warn("the key of the join could not be tidied away", "error", err.Error())
	}
	return rec, nil
}

// errHopeless marks what only a person can mend.
var errHopeless = errors.New("nothing to do until that is mended")

// tidy destroys what is left of the token: the join file, and the copies in
// cloud-init's records, which cloud-init writes anew at each boot. The token
// is worthless by now; this is the second line.
func (a *agent) tidy() {
	ids := []string{a.rec.TokenID}
	join := a.cfg.path(a.cfg.JoinFile)
	if a.cfg.JoinFile != "" {
		if t, err := readTicket(join); err == nil && t.token.ID() != a.rec.TokenID {
			ids = append(ids, t.token.ID())
		}
		if err := destroy(join); err != nil {
			a.log.Warn("the join file could not be removed", "file", a.cfg.JoinFile, "error", err.Error())
		}
	}
	var dirs []string
	for _, d := range a.cfg.ScrubDirs {
		dirs = append(dirs, a.cfg.path(d))
	}
	for _, id := range ids {
		n, err := scrub(dirs, id)
		if err != nil {
			a.log.Warn("not every copy of the join token could be looked for", "error", err.Error())
		}
		if n > 0 {
			a.log.Info("copies of the used join token overwritten", "copies", n)
		}
	}
}

// backoff spaces attempts: exponentially, with full jitter, and as the control
// plane asks.
type backoff struct {
	clock  Clock
	random func() float64
	tries  int
}

func (b *backoff) reset() { b.tries = 0 }

func (b *backoff) next(err error) time.Duration {
	if enroll.IsFinal(err) || errors.Is(err, errHopeless) {
		return retryFinal
	}
	limit := min(retryMax, retryFirst<<min(b.tries, 10))
	b.tries++
	pause := time.Duration(b.random() * float64(limit))
	var r *enroll.RefusedError
	if errors.As(err, &r) && r.RetryAfter > pause {
		pause = min(r.RetryAfter, retryFinal)
	}
	return max(pause, 100*time.Millisecond)
}
