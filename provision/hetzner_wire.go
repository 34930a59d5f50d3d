package provision

import (
	"encoding/json"
	"time"
)

// The shapes of the Hetzner Cloud API v1, as far as they are used here. What
// the API adds is ignored; root_password is not read on purpose.

type hzLocation struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	City        string `json:"city"`
	Country     string `json:"country"`
}

type hzType struct {
	Name         string  `json:"name"`
	Description  string  `json:"description"`
	Cores        int     `json:"cores"`
	MemoryGB     float64 `json:"memory"`
	DiskGB       int     `json:"disk"`
	Architecture string  `json:"architecture"`
	Prices       []struct {
		Location string `json:"location"`
		Monthly  struct {
			Gross string `json:"gross"`
		} `json:"price_monthly"`
	} `json:"prices"`
	Locations   []hzTypeLocation `json:"locations"`
	Deprecation *hzDeprecation   `json:"deprecation"` // of the type everywhere; older than Locations
}

type hzTypeLocation struct {
	Name        string         `json:"name"`
	Available   *bool          `json:"available"`
	Deprecation *hzDeprecation `json:"deprecation"`
}

type hzDeprecation struct {
	UnavailableAfter time.Time `json:"unavailable_after"`
}

type hzImage struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Architecture string `json:"architecture"`
}

type hzServer struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Status    string    `json:"status"`
	Created   time.Time `json:"created"`
	PublicNet struct {
		IPv4      *hzAddress  `json:"ipv4"` // null without IPv4
		IPv6      *hzAddress  `json:"ipv6"`
		Firewalls []hzApplied `json:"firewalls"`
	} `json:"public_net"`
	ServerType struct {
		Name string `json:"name"`
	} `json:"server_type"`
	Location struct {
		Name string `json:"name"`
	} `json:"location"`
	Labels map[string]string `json:"labels"`
}

type hzAddress struct {
	ID int64  `json:"id"`
	IP string `json:"ip"` // for IPv6 the network, a /64
}

type hzApplied struct {
	ID int64 `json:"id"`
}

type hzFirewall struct {
	ID        int64             `json:"id"`
	Name      string            `json:"name"`
	Created   time.Time         `json:"created"`
	Labels    map[string]string `json:"labels"`
	Rules     []hzRule          `json:"rules"`
	AppliedTo []struct {
		Type   string `json:"type"`
		Server *struct {
			ID int64 `json:"id"`
		} `json:"server"`
	} `json:"applied_to"`
}

type hzRule struct {
	Direction   string   `json:"direction"`
	Protocol    string   `json:"protocol"`
	Port        string   `json:"port,omitempty"`
	SourceIPs   []string `json:"source_ips"`
	Description string   `json:"description,omitempty"`
}

type hzKey struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Fingerprint string            `json:"fingerprint"`
	Created     time.Time         `json:"created"`
	Labels      map[string]string `json:"labels"`
}

type hzPrimaryIP struct {
	ID         int64             `json:"id"`
	Name       string            `json:"name"`
	Created    time.Time         `json:"created"`
	AssigneeID int64             `json:"assignee_id"` // null when free
	Labels     map[string]string `json:"labels"`
	Location   struct {
		Name string `json:"name"`
	} `json:"location"`
}

type hzVolume struct {
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Created  time.Time         `json:"created"`
	ServerID int64             `json:"server"` // null when not attached
	Labels   map[string]string `json:"labels"`
	Location struct {
		Name string `json:"name"`
	} `json:"location"`
}

// Requests.

type hzCreateServer struct {
	Name             string            `json:"name"`
	ServerType       string            `json:"server_type"`
	Image            string            `json:"image"`
	Location         string            `json:"location"`
	UserData         string            `json:"user_data,omitempty"`
	Labels           map[string]string `json:"labels"`
	SSHKeys          []int64           `json:"ssh_keys"`
	Firewalls        []hzFirewallRef   `json:"firewalls"`
	PublicNet        hzPublicNet       `json:"public_net"`
	StartAfterCreate bool              `json:"start_after_create"`
}

type hzFirewallRef struct {
	Firewall int64 `json:"firewall"`
}

type hzPublicNet struct {
	EnableIPv4 bool `json:"enable_ipv4"`
	EnableIPv6 bool `json:"enable_ipv6"`
}

type hzCreateFirewall struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Rules  []hzRule          `json:"rules"`
}

type hzSetRules struct {
	Rules []hzRule `json:"rules"`
}

type hzSetLabels struct {
	Labels map[string]string `json:"labels"`
}

type hzCreateKey struct {
	Name      string            `json:"name"`
	PublicKey string            `json:"public_key"`
	Labels    map[string]string `json:"labels"`
}

// Answers with one thing.

type hzOneServer struct {
	Server *hzServer `json:"server"`
}

type hzOneFirewall struct {
	Firewall *hzFirewall `json:"firewall"`
}

type hzOneKey struct {
	Key *hzKey `json:"ssh_key"`
}

type hzOneImage struct {
	Image *hzImage `json:"image"`
}

type hzPricing struct {
	Pricing struct {
		Currency string `json:"currency"`
	} `json:"pricing"`
}

// Answers with a page of things. A list that is null or absent is no list:
// part tells by nil.

type hzMeta struct {
	Pagination *hzPagination `json:"pagination"`
}

type hzPagination struct {
	PerPage      int  `json:"per_page"`
	NextPage     int  `json:"next_page"` // null (0) on the last page
	LastPage     int  `json:"last_page"` // may be null (0) on the last page
	TotalEntries *int `json:"total_entries"`
}

type hzPage[T any] interface{ part() ([]T, *hzPagination) }

type hzLocations struct {
	Items []hzLocation `json:"locations"`
	Meta  hzMeta       `json:"meta"`
}

type hzTypes struct {
	Items []hzType `json:"server_types"`
	Meta  hzMeta   `json:"meta"`
}

type hzImages struct {
	Items []hzImage `json:"images"`
	Meta  hzMeta    `json:"meta"`
}

type hzServers struct {
	Items []hzServer `json:"servers"`
	Meta  hzMeta     `json:"meta"`
}

type hzFirewalls struct {
	Items []hzFirewall `json:"firewalls"`
	Meta  hzMeta       `json:"meta"`
}

type hzKeys struct {
	Items []hzKey `json:"ssh_keys"`
	Meta  hzMeta  `json:"meta"`
}

type hzPrimaryIPs struct {
	Items []hzPrimaryIP `json:"primary_ips"`
	Meta  hzMeta        `json:"meta"`
}

type hzVolumes struct {
	Items []hzVolume `json:"volumes"`
	Meta  hzMeta     `json:"meta"`
}

func (p hzLocations) part() ([]hzLocation, *hzPagination)   { return p.Items, p.Meta.Pagination }
func (p hzTypes) part() ([]hzType, *hzPagination)           { return p.Items, p.Meta.Pagination }
func (p hzImages) part() ([]hzImage, *hzPagination)         { return p.Items, p.Meta.Pagination }
func (p hzServers) part() ([]hzServer, *hzPagination)       { return p.Items, p.Meta.Pagination }
func (p hzFirewalls) part() ([]hzFirewall, *hzPagination)   { return p.Items, p.Meta.Pagination }
func (p hzKeys) part() ([]hzKey, *hzPagination)             { return p.Items, p.Meta.Pagination }
func (p hzPrimaryIPs) part() ([]hzPrimaryIP, *hzPagination) { return p.Items, p.Meta.Pagination }
func (p hzVolumes) part() ([]hzVolume, *hzPagination)       { return p.Items, p.Meta.Pagination }

// hzFailure is the envelope of every error.
type hzFailure struct {
	Error struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	} `json:"error"`
}

// hzFields are the details of invalid_input.
type hzFields struct {
	Fields []struct {
		Name     string   `json:"name"`
		Messages []string `json:"messages"`
	} `json:"fields"`
}
