package provision

import (
	"context"
	"net/url"
	"time"
)

// List.

// ListServers calls GET /v2/droplets by tag, following every page: with up to
// two hundred servers that is one request.
func (d *DigitalOcean) ListServers(ctx context.Context) ([]Server, error) {
	list, err := d.droplets(ctx, "list servers", d.narrowestTag())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	servers := make([]Server, 0, len(list))
	for _, s := range list {
		if !d.belongs(s.Tags) {
			continue
		}
		servers = append(servers, Server{
			ID: doID(s.ID), Name: s.Name, Status: s.ourStatus(now), IPAddr: s.ipv4(), IPv6Addr: s.ipv6(),
			Region: s.Region.Slug, Size: s.SizeSlug, CreatedAt: s.Created, Labels: d.labelsOf(s.Tags),
		})
	}
	return servers, nil
}

// narrowestTag is what the API selects by, which takes one tag: one of
// Options.Labels is on fewer Droplets than the short name's.
func (d *DigitalOcean) narrowestTag() string {
	for _, k := range sortedKeys(d.labels.extra) {
		return doTagOf(k, d.labels.extra[k])
	}
	return d.managedTag()
}

func (d *DigitalOcean) droplets(ctx context.Context, op, tag string) ([]doDroplet, error) {
	list, err := doList[doDroplets](ctx, d, op, "/v2/droplets", url.Values{"tag_name": {tag}})
	for _, s := range list {
		if _, mark, ok := d.markOf(s.Tags); ok {
			d.tagsOf.put(doID(s.ID), mark)
		}
	}
	return list, err
}
