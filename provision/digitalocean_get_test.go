package provision

import (
	"testing"
	"time"
)

// TestDigitalOceanStates lists every state that the API documents, and one
// that it does not.
func TestDigitalOceanStates(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	public := []doAddress{{IP: "10.1.0.2", Type: "private"}, {IP: "203.0.113.7", Type: "public"}}
	private := public[:1]
	for _, c := range []struct {
		state     string
		addresses []doAddress
		isNew     ServerStatus // up to ten minutes old
		isOld     ServerStatus
	}{
		{"new", nil, ServerStatusPending, ServerStatusError},
		{"new", private, ServerStatusPending, ServerStatusError},
		{"active", public, ServerStatusRunning, ServerStatusRunning},
		{"active", private, ServerStatusPending, ServerStatusRunning},
		{"active", nil, ServerStatusPending, ServerStatusRunning},
		{"off", public, ServerStatusPending, ServerStatusError},
		{"archive", public, ServerStatusError, ServerStatusError},
		{"yet to come", public, ServerStatusPending, ServerStatusRunning},
	} {
		for age, want := range map[time.Duration]ServerStatus{
			0: c.isNew, 10*time.Minute - time.Second: c.isNew, 10 * time.Minute: c.isOld, 1000 * time.Hour: c.isOld,
		} {
			s := doDroplet{Status: c.state, Created: now.Add(-age)}
			s.Networks.V4 = c.addresses
			if got := s.ourStatus(now); got != want {
				t.Errorf("%s with %d addresses after %v is %s, want %s", c.state, len(c.addresses), age, got, want)
			}
		}
	}
}

// The private address is often the first in the list, and alone at first.
func TestDigitalOceanTakesThePublicAddress(t *testing.T) {
	var s doDroplet
	if s.ipv4() != "" || s.ipv6() != "" {
		t.Errorf("a Droplet without network has %q, %q", s.ipv4(), s.ipv6())
	}
	s.Networks.V4 = []doAddress{{IP: "10.1.0.2", Type: "private"}}
	if s.ipv4() != "" {
		t.Errorf("the private address %s is taken for the public one", s.ipv4())
	}
	s.Networks.V4 = append(s.Networks.V4, doAddress{IP: "203.0.113.7", Type: "public"})
	s.Networks.V6 = []doAddress{{IP: "2001:db8::7", Type: "public"}}
	if s.ipv4() != "203.0.113.7" || s.ipv6() != "2001:db8::7" {
		t.Errorf("addresses are %q, %q", s.ipv4(), s.ipv6())
	}
}
