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
	well, refused := false, false
	for {
		pause, err := a.beat(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if !well {
				a.log.Info("the control plane has heard from this node", "control_plane", a.cfg.Addr, "next_heartbeat_in", pause.Round(time.Second).String())
			}
			well, refused = true, false
			b.reset()
		default:
			pause = b.next(err)
			if !refused { // once, not every hour
				a.log.Warn("heartbeat failed", "error", err.Error(), "final", enroll.IsFinal(err), "next_try_in", pause.Round(time.Millisecond).String())
			}
			well, refused = false, enroll.IsFinal(err)
		}
		if err := a.cfg.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// beat renews if it is time, sends one heartbeat, and returns the pause until
// the next.
func (a *agent) beat(ctx context.Context) (time.Duration, error) {
	var notRenewed error
	if !a.cfg.Clock.Now().Before(a.renewAt) {
		if notRenewed = a.renew(ctx); notRenewed != nil {
			// The certificate may be good for long still: beat all the same.
			a.log.Warn("certificate not renewed", "error", notRenewed.Error())
			a.renewAt = a.cfg.Clock.Now().Add(retryMax)
		}
	}
	reply, err := a.send(ctx)
	if errors.Is(err, enroll.ErrRevoked) && a.rec.Previous != nil {
		reply, err = a.goBack(ctx)
	}
	if err != nil {
		if enroll.IsFinal(notRenewed) {
			// A certificate that has run out and is not renewed any more.
			err = notRenewed
		}
		return 0, err
	}
	a.compareClocks(reply.Time)
	if a.rec.Previous != nil {
		a.rec.Previous = nil
		if err := a.vault.save(a.rec); err != nil {
			return 0, err
		}
	}
	interval := beatDefault
	if reply.Interval > 0 {
		interval = min(time.Duration(reply.Interval), beatMax/time.Second) * time.Second
	}
	// A tenth of jitter keeps a fleet that started together from beating
	// together.
	return interval - time.Duration(a.cfg.Random()*float64(interval)/10), nil
}

// goBack takes up the certificate before the last renewal: the renewed one
// never reached the control plane's records, or the node is let in no more,
// and then the old one is refused too and nothing has changed.
func (a *agent) goBack(ctx context.Context) (enroll.HeartbeatReply, error) {
	was := a.rec
	a.rec.credentials, a.rec.Previous = *was.Previous, nil
	reply, err := a.send(ctx)
	if err != nil {
		a.rec = was
		return reply, err
	}
	a.log.Warn("the renewed certificate is not let in; the one before is")
	a.planRenewal()
	return reply, a.vault.save(a.rec)
}

// skewMax is how far the clocks may be apart before the log says so; a fresh
// certificate forgives ten minutes.
const skewMax = 2 * time.Minute

// compareClocks says once when the clocks are apart.
func (a *agent) compareClocks(theirs time.Time) {
	skew := theirs.Sub(a.cfg.Clock.Now()).Round(time.Second)
	apart := !theirs.IsZero() && skew.Abs() > skewMax
	if apart && !a.skewed {
		a.log.Warn("this clock and the control plane's are apart: set the clock", "control_plane_ahead_by", skew.String())
	}
	a.skewed = apart
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
