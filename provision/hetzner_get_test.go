package provision

import (
	"testing"
	"time"
)

// TestHetznerStates lists every state that the API documents, and one that it
// does not.
func TestHetznerStates(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		state    string
		isNew    ServerStatus // up to ten minutes old
		oldState ServerStatus
	}{
		{"running", ServerStatusRunning, ServerStatusRunning},
		{"initializing", ServerStatusPending, ServerStatusPending},
		{"starting", ServerStatusPending, ServerStatusPending},
		{"off", ServerStatusPending, ServerStatusError},
		{"stopping", ServerStatusPending, ServerStatusError},
		{"migrating", ServerStatusPending, ServerStatusError},
		{"rebuilding", ServerStatusPending, ServerStatusError},
		{"deleting", ServerStatusError, ServerStatusError},
		{"unknown", ServerStatusPending, ServerStatusRunning},
		{"yet to come", ServerStatusPending, ServerStatusRunning},
	} {
		for age, want := range map[time.Duration]ServerStatus{
			0: c.isNew, 10*time.Minute - time.Second: c.isNew, 10 * time.Minute: c.oldState, 1000 * time.Hour: c.oldState,
		} {
			s := hzServer{Status: c.state, Created: now.Add(-age)}
			if got := s.ourStatus(now); got != want {
				t.Errorf("%s after %v is %s, want %s", c.state, age, got, want)
			}
		}
	}
}

func TestHetznerAddresses(t *testing.T) {
	var s hzServer
	if s.ipv4() != "" || s.ipv6() != "" {
		t.Errorf("a server without network has %q, %q", s.ipv4(), s.ipv6())
	}
	s.PublicNet.IPv4 = &hzAddress{IP: "203.0.113.7"}
	for network, want := range map[string]string{"2001:db8:1:2::/64": "2001:db8:1:2::1", "2001:db8::5/64": "2001:db8::1", "": "", "nonsense": ""} {
		s.PublicNet.IPv6 = &hzAddress{IP: network}
		if got := s.ipv6(); got != want {
			t.Errorf("%q: %q, want %q", network, got, want)
		}
	}
	if s.ipv4() != "203.0.113.7" {
		t.Errorf("IPv4 is %q", s.ipv4())
	}
}
