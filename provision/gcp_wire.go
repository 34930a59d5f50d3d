package provision

import "time"

// Wire types: what Compute Engine v1 sends and takes, as far as it is used
// here (https://cloud.google.com/compute/docs/reference/rest/v1). 64-bit
// numbers are texts there.

type gcpPage[T any] struct {
	Items         []T    `json:"items"`
	NextPageToken string `json:"nextPageToken"`
}

// gcpScope is what one zone or region has in an aggregated list.
type gcpScope struct {
	Instances []gcpInstance `json:"instances"`
	Disks     []gcpDisk     `json:"disks"`
	Addresses []gcpAddress  `json:"addresses"`
}

type gcpWarning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type gcpDeprecated struct {
	State    string `json:"state"`    // ACTIVE, DEPRECATED, OBSOLETE, DELETED
	Obsolete string `json:"obsolete"` // RFC 3339; when it will be
}

func (d *gcpDeprecated) isDeprecated() bool {
	return d != nil && d.State != "" && d.State != "ACTIVE"
}

type gcpZone struct {
	Name       string         `json:"name"`
	Region     string         `json:"region"` // URL
	Status     string         `json:"status"` // UP, DOWN
	Deprecated *gcpDeprecated `json:"deprecated"`
}

type gcpMachineType struct {
	Name         string         `json:"name"`
	CPUs         int            `json:"guestCpus"`
	MemoryMB     int            `json:"memoryMb"`
	Shared       bool           `json:"isSharedCpu"`
	Architecture string         `json:"architecture"`
	Deprecated   *gcpDeprecated `json:"deprecated"`
	Accelerators []struct {
		Type string `json:"guestAcceleratorType"`
	} `json:"accelerators"`
	LocalSSDs *struct{} `json:"bundledLocalSsds"`
}

type gcpRegion struct {
	Name   string     `json:"name"`
	Quotas []gcpQuota `json:"quotas"`
}

type gcpQuota struct {
	Metric string  `json:"metric"`
	Limit  float64 `json:"limit"`
	Usage  float64 `json:"usage"`
}

type gcpInstance struct {
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"`
	MachineType string                `json:"machineType"` // URL or part of one
	Labels      map[string]string     `json:"labels,omitempty"`
	Tags        *gcpTags              `json:"tags,omitempty"`
	Disks       []gcpAttachedDisk     `json:"disks,omitempty"`
	Interfaces  []gcpNetworkInterface `json:"networkInterfaces,omitempty"`
	Metadata    *gcpMetadata          `json:"metadata,omitempty"`
	Scheduling  *gcpScheduling        `json:"scheduling,omitempty"`
	Shielded    *gcpShielded          `json:"shieldedInstanceConfig,omitempty"`

	// Only in answers.
	Status        string    `json:"status,omitempty"`
	StatusMessage string    `json:"statusMessage,omitempty"`
	Zone          string    `json:"zone,omitempty"` // URL
	Created       time.Time `json:"creationTimestamp,omitzero"`
}

// gcpInstanceFields keeps the user-data out of an answer.
const gcpInstanceFields = "name,description,machineType,labels,tags(items),status,statusMessage,zone,creationTimestamp,networkInterfaces(accessConfigs(natIP),ipv6AccessConfigs(externalIpv6))"

type gcpTags struct {
	Items []string `json:"items"`
}

type gcpAttachedDisk struct {
	Boot       bool          `json:"boot"`
	AutoDelete bool          `json:"autoDelete"`
	Type       string        `json:"type"`
	Mode       string        `json:"mode"`
	Initialize gcpInitialize `json:"initializeParams"`
}

type gcpInitialize struct {
	DiskName    string            `json:"diskName"`
	SourceImage string            `json:"sourceImage"`
	DiskSizeGB  int64             `json:"diskSizeGb,string"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type gcpNetworkInterface struct {
	Network       string            `json:"network,omitempty"`
	AccessConfigs []gcpAccessConfig `json:"accessConfigs,omitempty"`
	IPv6Configs   []gcpIPv6Config   `json:"ipv6AccessConfigs,omitempty"`
}

type gcpAccessConfig struct {
	Name  string `json:"name,omitempty"`
	Type  string `json:"type,omitempty"`
	NatIP string `json:"natIP,omitempty"`
}

type gcpIPv6Config struct {
	External string `json:"externalIpv6,omitempty"`
}

type gcpMetadata struct {
	Items []gcpMetadataItem `json:"items"`
}

type gcpMetadataItem struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type gcpScheduling struct {
	AutomaticRestart  bool   `json:"automaticRestart"`
	OnHostMaintenance string `json:"onHostMaintenance"`
	ProvisioningModel string `json:"provisioningModel"`
}

type gcpShielded struct {
	SecureBoot bool `json:"enableSecureBoot"`
	VTPM       bool `json:"enableVtpm"`
	Integrity  bool `json:"enableIntegrityMonitoring"`
}

type gcpDisk struct {
	Name    string            `json:"name"`
	Zone    string            `json:"zone"` // URL
	Users   []string          `json:"users"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"creationTimestamp"`
}

type gcpAddress struct {
	Name    string            `json:"name"`
	Region  string            `json:"region"` // URL; none for a global one
	Users   []string          `json:"users"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"creationTimestamp"`
}

type gcpNetwork struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Never left out: without it a legacy network results.
	AutoSubnets bool      `json:"autoCreateSubnetworks"`
	Subnets     []string  `json:"subnetworks,omitempty"` // URLs
	Created     time.Time `json:"creationTimestamp,omitzero"`
}

type gcpFirewall struct {
	Name         string       `json:"name"`
	Description  string       `json:"description,omitempty"`
	Network      string       `json:"network"`
	Direction    string       `json:"direction"`
	Priority     int          `json:"priority"`
	Allowed      []gcpAllowed `json:"allowed,omitempty"`
	SourceRanges []string     `json:"sourceRanges,omitempty"`
	TargetTags   []string     `json:"targetTags,omitempty"`
	Created      time.Time    `json:"creationTimestamp,omitzero"`
}

type gcpAllowed struct {
	Protocol string   `json:"IPProtocol"`
	Ports    []string `json:"ports,omitempty"`
}

type gcpOperation struct {
	Name       string    `json:"name"`
	Type       string    `json:"operationType"`
	Status     string    `json:"status"` // PENDING, RUNNING, DONE
	TargetLink string    `json:"targetLink"`
	HTTPStatus int       `json:"httpErrorStatusCode"`
	Inserted   time.Time `json:"insertTime"`
	Error      *struct {
		Errors []gcpOperationError `json:"errors"`
	} `json:"error"`
}

type gcpOperationError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Info *struct {
			Reason   string            `json:"reason"`
			Metadata map[string]string `json:"metadatas"`
		} `json:"errorInfo"`
	} `json:"errorDetails"`
}

type gcpSerialPort struct {
	Contents string `json:"contents"`
}

type gcpPermissions struct {
	Permissions []string `json:"permissions"`
}

// gcpFailure is the error envelope.
type gcpFailure struct {
	Error struct {
		Message string `json:"message"`
		Status  string `json:"status"`
		Errors  []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"errors"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	} `json:"error"`
}
