package provision

import (
	"context"
	"net/netip"
	"time"
)

// Get.

// hetznerBootTime is how long after its creation a server that is not running
// is taken to be on its way, by the time of its creation and our own clock.
const hetznerBootTime = 10 * time.Minute

// GetServer calls GET /servers/{id}. Hetzner's states become ours so:
//
//	running                              running
//	initializing, starting               pending
//	off, stopping, migrating, rebuilding pending for ten minutes from the
//	                                     server's creation, error after that
//	deleting                             error; soon it is ErrNotFound
//	unknown, and states yet to come      pending for ten minutes, running after
//	                                     that: not knowing is no failure
//
// The address is empty for a server without IPv4.
func (h *Hetzner) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	n, err := h.parseID("get server", "server", id)
	if err != nil {
		return "", "", err
	}
	var one hzOneServer
	if err := h.get(ctx, "get server", "/servers/"+hzID(n), nil, &one); err != nil {
		return "", "", err
	}
	if one.Server == nil {
		return "", "", h.fail(ErrUnavailable, "get server", "", "the answer names no server")
	}
	return one.Server.ourStatus(time.Now()), one.Server.ipv4(), nil
}

func (s hzServer) ourStatus(now time.Time) ServerStatus {
	isNew := now.Sub(s.Created) < hetznerBootTime
	switch s.Status {
	case "running":
		return ServerStatusRunning
	case "initializing", "starting":
		return ServerStatusPending
	case "deleting":
		return ServerStatusError
	case "off", "stopping", "migrating", "rebuilding":
		if isNew {
			return ServerStatusPending
		}
		return ServerStatusError
	default:
		if isNew {
			return ServerStatusPending
		}
		return ServerStatusRunning
	}
}

func (s hzServer) ipv4() string {
	if s.PublicNet.IPv4 == nil {
		return ""
	}
	return s.PublicNet.IPv4.IP
}

// ipv6 is the server's own address: the first of its network.
func (s hzServer) ipv6() string {
	if s.PublicNet.IPv6 == nil {
		return ""
	}
	network, err := netip.ParsePrefix(s.PublicNet.IPv6.IP)
	if err != nil {
		return ""
	}
	return network.Masked().Addr().Next().String()
}
