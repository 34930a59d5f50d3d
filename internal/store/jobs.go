package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/slipway-dev/slipway/internal/fleet"
)

// Times that jobs run by. A job takes a call to a cloud at most (45 s); one
// whose process died is rescued by age, so that age is kept near.
const (
	jobTimeout  = time.Minute
	rescueAfter = 90 * time.Second
	stopGrace   = 3 * time.Second
)

// RunOptions are the settings of Run; each has a default.
type RunOptions struct {
	// Workers is how many alarms are worked at once: 16.
	Workers int
	// Poll is the pause between two looks for due jobs when nobody says that
	// one is there: 250 ms.
	Poll time.Duration
	// SweepEvery is the pause between two sweeps (30 s), PatrolEvery that
	// between two audits (15 minutes).
	SweepEvery  time.Duration
	PatrolEvery time.Duration
}

func (o RunOptions) withDefaults() RunOptions {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.Poll, 250 * time.Millisecond}, {&o.SweepEvery, 30 * time.Second}, {&o.PatrolEvery, 15 * time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	return o
}

// alarmJob is one ring of an alarm.
type alarmJob struct {
	AlarmKind string `json:"kind"`
	ID        string `json:"id"`
	Ring      int64  `json:"ring"`
}

func (alarmJob) Kind() string { return "alarm" }

type sweepJob struct{}

func (sweepJob) Kind() string { return "sweep" }

type patrolJob struct{}

func (patrolJob) Kind() string { return "patrol" }

// Run sweeps, and then works alarms with r until ctx ends. It returns when all
// jobs have come back.
func (s *Store) Run(ctx context.Context, r fleet.Runner, o RunOptions) error {
	o = o.withDefaults()
	if err := r.Sweep(ctx, true); err != nil {
		return fmt.Errorf("store: first sweep: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &alarmWorker{s: s, r: r})
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[sweepJob]) error { return r.Sweep(ctx, false) }))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[patrolJob]) error { return r.Patrol(ctx) }))
	client, err := river.NewClient(riversqlite.New(s.write), &river.Config{
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Workers}},
		Workers:                     workers,
		FetchCooldown:               min(100*time.Millisecond, o.Poll),
		FetchPollInterval:           o.Poll,
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		RetryPolicy:                 soon{},
		CompletedJobRetentionPeriod: time.Hour,
		DiscardedJobRetentionPeriod: 24 * time.Hour,
		Logger:                      s.log,
		PeriodicJobs: []*river.PeriodicJob{
			river.NewPeriodicJob(river.PeriodicInterval(o.SweepEvery), func() (river.JobArgs, *river.InsertOpts) { return sweepJob{}, nil }, nil),
			river.NewPeriodicJob(river.PeriodicInterval(o.PatrolEvery), func() (river.JobArgs, *river.InsertOpts) { return patrolJob{}, nil }, nil),
		},
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	// The client outlives ctx by the time that its jobs need to come back.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	<-ctx.Done()
	return stop(client)
}

// stop lets jobs end by themselves for a moment, and then ends them: whatever
// they were at is taken up again at the next start.
func stop(client *river.Client[*sql.Tx]) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	err := client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*stopGrace)
		defer cancel()
		err = client.StopAndCancel(ctx)
	}
	if err != nil {
		return fmt.Errorf("store: jobs did not come back: %w", err)
	}
	return nil
}

type alarmWorker struct {
	river.WorkerDefaults[alarmJob]
	s *Store
	r fleet.Runner
}

// Work runs an alarm if its ring is the one that counts. The job lives on as
// long as the runner wants to be called again.
func (w *alarmWorker) Work(ctx context.Context, job *river.Job[alarmJob]) error {
	a := fleet.Alarm{Kind: fleet.AlarmKind(job.Args.AlarmKind), ID: job.Args.ID}
	wait, again, err := w.s.work(ctx, w.r, a, job.Args.Ring)
	if err != nil || !again {
		return err
	}
	return river.JobSnooze(max(0, wait))
}

// work runs one ring of an alarm when it is due. It returns how long to wait
// until the same ring goes on, if it does.
func (s *Store) work(ctx context.Context, r fleet.Runner, a fleet.Alarm, ring int64) (wait time.Duration, again bool, err error) {
	row, ok, err := s.alarm(ctx, a)
	if err != nil || !ok || row.ring != ring {
		return 0, false, err
	}
	if wait := row.at.Sub(s.now()); wait > 0 {
		return wait, true, nil
	}
	next, err := r.Run(ctx, a)
	if err != nil {
		return 0, false, err
	}
	again, err = s.again(context.WithoutCancel(ctx), a, ring, next)
	return next.Sub(s.now()), again && !next.IsZero(), err
}

// RunDue runs every alarm that is due by the store's clock, once, one after
// the other in the caller's goroutine, and returns how many there were. It is
// the same work as Run's without River: for tests that own the time.
func (s *Store) RunDue(ctx context.Context, r fleet.Runner) (int, error) {
	alarms, err := s.Alarms(ctx)
	if err != nil {
		return 0, err
	}
	var due []fleet.Alarm
	for a, at := range alarms {
		if !at.After(s.now()) {
			due = append(due, a)
		}
	}
	slices.SortFunc(due, func(a, b fleet.Alarm) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	var errs []error
	for _, a := range due {
		row, _, err := s.alarm(ctx, a)
		if err == nil {
			_, _, err = s.work(ctx, r, a, row.ring)
		}
		errs = append(errs, err)
	}
	return len(due), errors.Join(errs...)
}

// soon is the pause after a job that failed by an error of our own, such as a
// full disk: it doubles up to half a minute. Failures of clouds are no errors
// of jobs.
type soon struct{}

func (soon) NextRetry(job *rivertype.JobRow) time.Time {
	d := min(time.Second<<min(len(job.Errors), 5), 30*time.Second)
	return time.Now().Add(d/2 + rand.N(d/2+1))
}
