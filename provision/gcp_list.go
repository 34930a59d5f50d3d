package provision

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"
)

// List.

// ListServers calls the aggregated list of instances by label, following every
// page: with up to 500 servers that is one request for all zones. When a zone
// cannot be asked, it fails rather than leave that zone's servers out.
func (g *GCP) ListServers(ctx context.Context) ([]Server, error) {
	list, err := g.instances(ctx, "list servers", g.labels.extra)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	servers := make([]Server, 0, len(list))
	for _, i := range list {
		servers = append(servers, Server{
			ID: i.serverID(), Name: i.serverName(), Status: i.ourStatus(now), IPAddr: i.ipv4(), IPv6Addr: i.ipv6(),
			Region: lastPart(i.Zone), Size: lastPart(i.MachineType), CreatedAt: i.Created, Labels: i.Labels,
		})
	}
	return servers, nil
}

// instances lists those that carry our short name and more labels.
func (g *GCP) instances(ctx context.Context, op string, more map[string]string) ([]gcpInstance, error) {
	query := url.Values{
		"filter": {g.filter(more)},
		"fields": {"nextPageToken,unreachables,items/*/warning,items/*/instances(" + gcpInstanceFields + ")"},
	}
	scopes, err := gcpAggregate[gcpScope](ctx, g, op, "instances", query)
	var all []gcpInstance
	for _, s := range scopes {
		all = append(all, s.Instances...)
	}
	return all, err
}

// filter selects by labels: a row of comparisons in brackets means "and".
func (g *GCP) filter(more map[string]string) string {
	text := "(labels." + managedBy + "=" + g.labels.short + ")"
	for _, k := range sortedKeys(more) {
		if more[k] == "" {
			text += " (labels." + k + "=\"\")"
			continue
		}
		text += " (labels." + k + "=" + more[k] + ")"
	}
	return text
}

// gcpAggregate reads an aggregated list, the scopes in the order of their
// names. A scope that could not be asked makes it fail.
func gcpAggregate[S any](ctx context.Context, g *GCP, op, collection string, query url.Values) ([]S, error) {
	var all []S
	query = cloneQuery(query)
	seen := map[string]bool{}
	for {
		var page struct {
			Items         map[string]json.RawMessage `json:"items"`
			NextPageToken string                     `json:"nextPageToken"`
			Unreachables  []string                   `json:"unreachables"`
		}
		if err := g.get(ctx, op, g.project()+"/aggregated/"+collection, query, &page); err != nil {
			return nil, err
		}
		missing := page.Unreachables
		for _, name := range slices.Sorted(maps.Keys(page.Items)) {
			var scope S
			var warned struct {
				Warning *gcpWarning `json:"warning"`
			}
			if errors.Join(json.Unmarshal(page.Items[name], &scope), json.Unmarshal(page.Items[name], &warned)) != nil {
				return nil, g.fail(ErrUnavailable, op, "", "the answer is not the JSON that was expected; is the endpoint right?")
			}
			if warned.Warning != nil && warned.Warning.Code == "UNREACHABLE" {
				missing = append(missing, name)
			}
			all = append(all, scope)
		}
		switch {
		case len(missing) > 0:
			return nil, g.fail(ErrUnavailable, op, "try again in a moment", "Google cannot say what is in %s", clip(oneLine(lastPart(missing[0])), 100))
		case page.NextPageToken == "":
			return all, nil
		case seen[page.NextPageToken]:
			return nil, g.fail(ErrUnavailable, op, "", "the list leads from a page back to one that was read")
		}
		seen[page.NextPageToken] = true
		query.Set("pageToken", page.NextPageToken)
	}
}

func (i gcpInstance) serverID() string { return lastPart(i.Zone) + "/" + i.Name }

// serverName is the name that the create was given.
func (i gcpInstance) serverName() string {
	if gcpName.MatchString(i.Description) {
		return i.Description
	}
	return i.Name
}

func (i gcpInstance) ipv4() string {
	for _, n := range i.Interfaces {
		for _, a := range n.AccessConfigs {
			if a.NatIP != "" {
				return a.NatIP
			}
		}
	}
	return ""
}

func (i gcpInstance) ipv6() string {
	for _, n := range i.Interfaces {
		for _, a := range n.IPv6Configs {
			if a.External != "" {
				return a.External
			}
		}
	}
	return ""
}
