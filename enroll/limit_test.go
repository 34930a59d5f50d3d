package enroll

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestSourceLimit(t *testing.T) {
	now := time.Now()
	s := newSourceLimit(6, func() time.Time { return now })
	for i := range 6 {
		if d := s.wait("a"); d != 0 {
			t.Fatalf("attempt %d of 6 has to wait for %s", i+1, d)
		}
	}
	if d := s.wait("a"); d <= 0 || d > 10*time.Second {
		t.Errorf("attempt 7 has to wait for %s, want up to 10s", d)
	}
	if d := s.wait("b"); d != 0 {
		t.Errorf("another source has to wait for %s", d)
	}
	// Those who had to wait have used nothing up.
	for range 100 {
		s.wait("a")
	}
	now = now.Add(10 * time.Second)
	if d := s.wait("a"); d != 0 {
		t.Errorf("after the pause: %s", d)
	}
}

// However many sources come, the memory of them is bounded, and one that has
// been slowed down is not let off by the others as long as there are idle ones
// to forget.
func TestSourceLimitIsBounded(t *testing.T) {
	now := time.Now()
	s := newSourceLimit(1, func() time.Time { return now })
	for i := range maxSources - 1 {
		s.wait(fmt.Sprint("idle ", i))
	}
	now = now.Add(59 * time.Second)
	s.wait("busy")
	now = now.Add(2 * time.Second)
	for i := range 100 {
		s.wait(fmt.Sprint("new ", i))
	}
	if s.wait("busy") == 0 {
		t.Error("the busy source was forgotten though there were idle ones")
	}
	for i := range 3 * maxSources {
		s.wait(fmt.Sprint("flood ", i))
		if len(s.sources) > maxSources {
			t.Fatalf("%d sources are remembered, want %d at most", len(s.sources), maxSources)
		}
	}
}

func TestSourceOf(t *testing.T) {
	for remote, want := range map[string][2]string{
		"192.0.2.7:1234":            {"192.0.2.7", "192.0.2.7"},
		"[2001:db8:1:2:3:4:5:6]:99": {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		"[2001:db8:1:2::1]:99":      {"2001:db8:1:2::1", "2001:db8:1:2::/64"},
		"[::ffff:192.0.2.7]:1":      {"192.0.2.7", "192.0.2.7"},
		"[fe80::1%eth0]:1":          {"fe80::1", "fe80::/64"},
		"@":                         {"@", "@"},
		"host.example:80":           {"host.example", "host.example"},
	} {
		a := addressOf(&http.Request{RemoteAddr: remote})
		if got := [2]string{a, sourceOf(a)}; got != want {
			t.Errorf("%s: %v, want %v", remote, got, want)
		}
	}
}
