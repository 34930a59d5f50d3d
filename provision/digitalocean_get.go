package provision

import (
	"context"
	"time"
)

// Get.

// doBootTime is how long after its creation a Droplet that is not running is
// taken to be on its way, by the time of its creation and our own clock.
const doBootTime = 10 * time.Minute

// GetServer calls GET /v2/droplets/{id}. DigitalOcean's states become ours so:
//
//	active   running; pending for ten minutes from the Droplet's creation while
//	         it has no public address
//	new      pending for ten minutes, error after that: its create has failed
//	off      pending for ten minutes, error after that
//	archive  error
//
// States yet to come are pending for ten minutes, and running after that: not
// knowing is no failure. Of the addresses it is the public one: the private
// one is often there first.
func (d *DigitalOcean) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	n, err := d.parseID("get server", "server", id)
	if err != nil {
		return "", "", err
	}
	s, err := d.droplet(ctx, "get server", n)
	if err != nil {
		return "", "", err
	}
	return s.ourStatus(time.Now()), s.ipv4(), nil
}

func (d *DigitalOcean) droplet(ctx context.Context, op string, id int64) (doDroplet, error) {
	var one doOneDroplet
	if err := d.get(ctx, op, "/v2/droplets/"+doID(id), nil, &one); err != nil {
		return doDroplet{}, err
	}
	if one.Droplet == nil {
		return doDroplet{}, d.fail(ErrUnavailable, op, "", "the answer names no Droplet")
	}
	if _, tag, ok := d.markOf(one.Droplet.Tags); ok {
		d.tagsOf.put(doID(id), tag)
	}
	return *one.Droplet, nil
}

func (s doDroplet) ourStatus(now time.Time) ServerStatus {
	isNew := now.Sub(s.Created) < doBootTime
	switch s.Status {
	case "active":
		if isNew && s.ipv4() == "" {
			return ServerStatusPending
		}
		return ServerStatusRunning
	case "new", "off":
		if isNew {
			return ServerStatusPending
		}
		return ServerStatusError
	case "archive":
		return ServerStatusError
	default:
		if isNew {
			return ServerStatusPending
		}
		return ServerStatusRunning
	}
}

func (s doDroplet) ipv4() string { return publicOf(s.Networks.V4) }
func (s doDroplet) ipv6() string { return publicOf(s.Networks.V6) }

func publicOf(addresses []doAddress) string {
	for _, a := range addresses {
		if a.Type == "public" {
			return a.IP
		}
	}
	return ""
}
