package enroll

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxSources bounds how many source addresses are remembered.
const maxSources = 10_000

// sourceLimit slows each source address down by itself.
type sourceLimit struct {
	perMinute int
	now       func() time.Time

	mu      sync.Mutex
	sources map[string]*rate.Limiter
}

func newSourceLimit(perMinute int, now func() time.Time) *sourceLimit {
	return &sourceLimit{perMinute: perMinute, now: now, sources: map[string]*rate.Limiter{}}
}

// wait takes one attempt of the source, or returns after how long it may come
// again.
func (s *sourceLimit) wait(source string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	l := s.sources[source]
	if l == nil {
		if len(s.sources) >= maxSources {
			s.forget(now)
		}
		l = rate.NewLimiter(rate.Every(time.Minute/time.Duration(s.perMinute)), s.perMinute)
		s.sources[source] = l
	}
	r := l.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return d
	}
	return 0
}

// forget drops the sources that have their whole allowance again; if there is
// none such, all of them: memory is worth more than the memory of a flood.
func (s *sourceLimit) forget(now time.Time) {
	for k, l := range s.sources {
		if l.TokensAt(now) >= float64(s.perMinute) {
			delete(s.sources, k)
		}
	}
	if len(s.sources) >= maxSources {
		clear(s.sources)
	}
}

// addressOf returns the IP address that a request came from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	return addr.Unmap().WithZone("").String()
}

// sourceOf returns what of an address is slowed down together: for IPv6 it is
// the /64, which one customer has for itself.
func sourceOf(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.String()
		}
	}
	return addr.String()
}
