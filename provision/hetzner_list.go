package provision

import (
	"context"
	"net/url"
	"time"
)

// List.

// ListServers calls GET /servers by label, following every page: with up to
// fifty servers that is one request.
func (h *Hetzner) ListServers(ctx context.Context) ([]Server, error) {
	list, err := h.servers(ctx, "list servers", h.labels.selector(h.labels.extra))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	servers := make([]Server, 0, len(list))
	for _, s := range list {
		servers = append(servers, Server{
			ID: hzID(s.ID), Name: s.Name, Status: s.ourStatus(now), IPAddr: s.ipv4(), IPv6Addr: s.ipv6(),
			Region: s.Location.Name, Size: s.ServerType.Name, CreatedAt: s.Created, Labels: s.Labels,
		})
	}
	return servers, nil
}

func (h *Hetzner) servers(ctx context.Context, op, selector string) ([]hzServer, error) {
	list, err := hzList[hzServers](ctx, h, op, "/servers", inOrder(url.Values{"label_selector": {selector}}))
	return byID(list, func(s hzServer) int64 { return s.ID }), err
}
