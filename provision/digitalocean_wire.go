package provision

import (
	"encoding/json"
	"time"
)

// The shapes of the DigitalOcean API v2, as far as they are used here. What
// the API adds is ignored.

type doRegion struct {
	Slug      string `json:"slug"`
	Name      string `json:"name"`
	Available bool   `json:"available"`
}

type doSize struct {
	Slug         string      `json:"slug"`
	Description  string      `json:"description"`
	MemoryMB     int         `json:"memory"`
	VCPUs        int         `json:"vcpus"`
	DiskGB       int         `json:"disk"`
	PriceMonthly json.Number `json:"price_monthly"` // US dollars
	Regions      []string    `json:"regions"`       // where it is sold
	Available    bool        `json:"available"`
}

type doImage struct {
	ID      int64    `json:"id"`
	Slug    string   `json:"slug"` // null for one of the account's own
	Regions []string `json:"regions"`
	Status  string   `json:"status"`
}

type doDroplet struct {
	ID       int64     `json:"id"`
	Name     string    `json:"name"`
	Status   string    `json:"status"`
	Created  time.Time `json:"created_at"`
	SizeSlug string    `json:"size_slug"`
	Region   struct {
		Slug string `json:"slug"`
	} `json:"region"`
	Networks struct {
		V4 []doAddress `json:"v4"`
		V6 []doAddress `json:"v6"`
	} `json:"networks"`
	Tags []string `json:"tags"`
}

type doAddress struct {
	IP   string `json:"ip_address"`
	Type string `json:"type"` // public or private
}

type doFirewall struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created_at"`
	Inbound    []doRule  `json:"inbound_rules"`
	Outbound   []doRule  `json:"outbound_rules"`
	DropletIDs []int64   `json:"droplet_ids"`
	Tags       []string  `json:"tags"`
}

// doRule has sources when it is inbound, destinations when it is outbound.
type doRule struct {
	Protocol     string   `json:"protocol"`
	Ports        string   `json:"ports,omitempty"` // none for icmp
	Sources      *doPeers `json:"sources,omitempty"`
	Destinations *doPeers `json:"destinations,omitempty"`
}

type doPeers struct {
	Addresses []string `json:"addresses"`
}

type doKey struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
}

type doTag struct {
	Name      string `json:"name"`
	Resources struct {
		Count int `json:"count"`
	} `json:"resources"`
}

type doVolume struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created_at"`
	DropletIDs []int64   `json:"droplet_ids"`
	Tags       []string  `json:"tags"`
	Region     struct {
		Slug string `json:"slug"`
	} `json:"region"`
}

// Requests.

type doCreateDroplet struct {
	Name     string   `json:"name"`
	Region   string   `json:"region"`
	Size     string   `json:"size"`
	Image    any      `json:"image"` // a slug, or the number of one of the account's own
	SSHKeys  []int64  `json:"ssh_keys"`
	UserData string   `json:"user_data,omitempty"`
	Tags     []string `json:"tags"`
	IPv6     bool     `json:"ipv6"`
	// Left out, the agent of the provider's web console would be installed.
	WithDropletAgent bool `json:"with_droplet_agent"`
}

// doPutFirewall makes a firewall, or writes all of one.
type doPutFirewall struct {
	Name       string   `json:"name"`
	Inbound    []doRule `json:"inbound_rules"`
	Outbound   []doRule `json:"outbound_rules"`
	DropletIDs []int64  `json:"droplet_ids"`
	Tags       []string `json:"tags"`
}

type doCreateKey struct {
	Name      string `json:"name"`
	PublicKey string `json:"public_key"`
}

type doCreateTag struct {
	Name string `json:"name"`
}

// Answers with one thing.

type doOneDroplet struct {
	Droplet *doDroplet `json:"droplet"`
}

type doOneFirewall struct {
	Firewall *doFirewall `json:"firewall"`
}

type doOneKey struct {
	Key *doKey `json:"ssh_key"`
}

type doOneImage struct {
	Image *doImage `json:"image"`
}

type doAccount struct {
	Account struct {
		DropletLimit  int    `json:"droplet_limit"`
		Status        string `json:"status"` // active, warning or locked
		StatusMessage string `json:"status_message"`
	} `json:"account"`
}

// Answers with a page of things. A list that is null or absent is no list:
// part tells by nil.

type doPaging struct {
	Links struct {
		Pages struct {
			Next string `json:"next"` // absent on the last page
		} `json:"pages"`
	} `json:"links"`
	Meta struct {
		Total *int `json:"total"`
	} `json:"meta"`
}

type doPage[T any] interface{ part() ([]T, doPaging) }

type doRegions struct {
	doPaging
	Items []doRegion `json:"regions"`
}

type doSizes struct {
	doPaging
	Items []doSize `json:"sizes"`
}

type doDroplets struct {
	doPaging
	Items []doDroplet `json:"droplets"`
}

type doFirewalls struct {
	doPaging
	Items []doFirewall `json:"firewalls"`
}

type doKeys struct {
	doPaging
	Items []doKey `json:"ssh_keys"`
}

type doTags struct {
	doPaging
	Items []doTag `json:"tags"`
}

type doVolumes struct {
	doPaging
	Items []doVolume `json:"volumes"`
}

func (p doRegions) part() ([]doRegion, doPaging)     { return p.Items, p.doPaging }
func (p doSizes) part() ([]doSize, doPaging)         { return p.Items, p.doPaging }
func (p doDroplets) part() ([]doDroplet, doPaging)   { return p.Items, p.doPaging }
func (p doFirewalls) part() ([]doFirewall, doPaging) { return p.Items, p.doPaging }
func (p doKeys) part() ([]doKey, doPaging)           { return p.Items, p.doPaging }
func (p doTags) part() ([]doTag, doPaging)           { return p.Items, p.doPaging }
func (p doVolumes) part() ([]doVolume, doPaging)     { return p.Items, p.doPaging }

func (r doRegion) id() string   { return r.Slug }
func (s doSize) id() string     { return s.Slug }
func (s doDroplet) id() string  { return doID(s.ID) }
func (f doFirewall) id() string { return f.ID }
func (k doKey) id() string      { return doID(k.ID) }
func (t doTag) id() string      { return t.Name }
func (v doVolume) id() string   { return v.ID }

// doFailure is the envelope of every error.
type doFailure struct {
	ID        string `json:"id"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}
