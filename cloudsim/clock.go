package cloudsim

import (
	"container/heap"
	"time"
)

// event is something that happens at a simulated time.
type event struct {
	at  time.Time
	seq int // events of the same time happen in the order in which they were set
	do  func(now time.Time)
}

type eventQueue struct {
	items []event
	seq   int
}

func (q *eventQueue) Len() int { return len(q.items) }
func (q *eventQueue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	if a.at.Equal(b.at) {
		return a.seq < b.seq
	}
	return a.at.Before(b.at)
}
func (q *eventQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *eventQueue) Push(x any)    { q.items = append(q.items, x.(event)) }
func (q *eventQueue) Pop() any {
	last := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return last
}

// clockNow is the simulated time that the clock shows. s.mu must be held.
func (s *Sim) clockNow() time.Time {
	now := s.start.Add(s.advanced)
	if !s.opts.Manual {
		now = now.Add(time.Duration(float64(time.Since(s.started)) * s.opts.Speed))
	}
	return now.Truncate(time.Microsecond)
}

// after sets something to happen. s.mu must be held.
func (s *Sim) after(now time.Time, d time.Duration, do func(now time.Time)) {
	s.events.seq++
	heap.Push(&s.events, event{at: now.Add(d), seq: s.events.seq, do: do})
	s.nudge()
}

// nudge has run look again at when the next event is due.
func (s *Sim) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// spawn runs f beside everything else; Close waits for its end. After Close it
// does nothing, and says so. s.mu must be held.
func (s *Sim) spawn(f func()) bool {
	if s.closed {
		return false
	}
	s.guests.Go(f)
	return true
}

// catchUp lets everything happen that is due by now; after Close, nothing
// happens any more. s.mu must be held.
func (s *Sim) catchUp(now time.Time) {
	for !s.closed && s.events.Len() > 0 && !s.events.items[0].at.After(now) {
		e := heap.Pop(&s.events).(event)
		e.do(e.at)
	}
}

// locked runs f with the world held and caught up.
func (s *Sim) locked(f func(now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clockNow()
	s.catchUp(now)
	f(now)
}

// Now returns the simulated time.
func (s *Sim) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clockNow()
}

// Advance moves the clock, and lets happen what is due on the way.
func (s *Sim) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d > 0 {
		s.advanced += d
	}
	s.catchUp(s.clockNow())
	s.nudge() // what was an hour away may be a minute away now
}

// run lets events happen in time, until Close.
func (s *Sim) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := s.clockNow()
		s.catchUp(now)
		pause := time.Hour
		if s.events.Len() > 0 {
			pause = time.Duration(float64(s.events.items[0].at.Sub(now))/s.opts.Speed) + time.Millisecond
		}
		s.mu.Unlock()
		timer.Reset(pause)
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}
