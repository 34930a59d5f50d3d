package agent

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// serve heartbeats and renews until ctx ends.
func (a *agent) serve(ctx context.Context) error {
	b := backoff{clock: a.cfg.Clock, random: a.cfg.Random}
	a.planRenewal()
	refused := false
	for {
		pause, err := a.beat(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if refused {
				a.log.Info("let in again")
			}
			refused = false
			b.reset()
		default:
			pause = b.next(err)
			if !refused { // once, not every hour
				a.log.Warn("heartbeat failed", "error", err.Error(), "next_try_in", pause.Round(time.Millisecond).String())
			}
			refused = enroll.IsFinal(err)
		}
		if err := a.cfg.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// beat renews if it is time, sends one heartbeat, and returns the pause until
// the next.
func (a *agent) beat(ctx context.Context) (time.Duration, error) {
	if !a.cfg.Clock.Now().Before(a.renewAt) {
		if err := a.renew(ctx); err != nil {
			// The certificate may be good for long still: beat all the same.
			a.log.Warn("certificate not renewed", "error", err.Error())
			a.renewAt = a.cfg.Clock.Now().Add(retryMax)
		}
	}
	reply, err := a.send(ctx)
	if errors.Is(err, enroll.ErrRevoked) && a.rec.Previous != nil {
		// The renewed certificate never reached the control plane's records:
		// the one before is still in force.
		a.log.Warn("the renewed certificate is not let in; going back to the one before")
		a.rec.credentials, a.rec.Previous = *a.rec.Previous, nil
		if err := a.vault.save(a.rec); err != nil {
			return 0, err
		}
		a.planRenewal()
		reply, err = a.send(ctx)
	}
	if err != nil {
		return 0, err
	}
	if a.rec.Previous != nil {
		a.rec.Previous = nil
		if err := a.vault.save(a.rec); err != nil {
			return 0, err
		}
	}
	interval := beatDefault
	if reply.Interval > 0 {
		interval = time.Duration(reply.Interval) * time.Second
	}
	// A tenth of jitter keeps a fleet that started together from beating
	// together.
	return interval - time.Duration(a.cfg.Random()*float64(interval)/10), nil
}

func (a *agent) send(ctx context.Context) (enroll.HeartbeatReply, error) {
	return enroll.SendHeartbeat(ctx, a.dial(), a.rec.identity(), enroll.Heartbeat{
		Facts: a.cfg.facts(ctx), SentAt: a.cfg.Clock.Now().UTC(),
	})
}

// renew stores the new identity beside the old before it is used once, so that
// no crash leaves the node without one that works.
func (a *agent) renew(ctx context.Context) error {
	_, key, err := enroll.NewKey()
	if err != nil {
		return err
	}
	id, err := enroll.Renew(ctx, a.dial(), a.rec.identity(), key)
	if err != nil {
		return err
	}
	old := a.rec.credentials
	next := a.rec
	next.set(id)
	next.Previous = &old
	if err := a.vault.save(next); err != nil {
		return err
	}
	a.rec = next
	a.planRenewal()
	a.log.Info("certificate renewed", "next_renewal", a.renewAt.UTC().Format(time.RFC3339))
	return nil
}

// planRenewal picks a moment between 50 and 80 % of the certificate's life.
func (a *agent) planRenewal() {
	cert, err := a.rec.identity().Certificate()
	if err != nil {
		a.renewAt = a.cfg.Clock.Now()
		return
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	a.renewAt = cert.NotBefore.Add(time.Duration(float64(life) * (0.5 + 0.3*a.cfg.Random())))
}

func (a *agent) dial() enroll.Dial {
	return enroll.Dial{Addr: a.cfg.Addr, Pins: a.rec.Pins, Now: a.cfg.Clock.Now}
}
