package provision

import "time"

// The shapes of Azure Resource Manager, as far as they are used here. What
// the API adds is ignored. Names and ids compare without regard to case.

// azPage is one page of any list.
type azPage[T any] struct {
	Value    []T    `json:"value"`
	NextLink string `json:"nextLink"`
}

type azLocation struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	Metadata    struct {
		RegionType string `json:"regionType"`
	} `json:"metadata"`
}

// azVMSize is a size as the list of a region has it.
type azVMSize struct {
	Name           string `json:"name"`
	NumberOfCores  int    `json:"numberOfCores"`
	MemoryInMB     int    `json:"memoryInMB"`
	ResourceDiskMB int    `json:"resourceDiskSizeInMB"`
}

// azSku is a size, or another thing, as the list of what is sold has it.
type azSku struct {
	ResourceType string   `json:"resourceType"`
	Name         string   `json:"name"`
	Family       string   `json:"family"`
	Locations    []string `json:"locations"`
	Capabilities []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"capabilities"`
	Restrictions []struct {
		Type       string   `json:"type"`
		Values     []string `json:"values"`
		ReasonCode string   `json:"reasonCode"`
		Info       struct {
			Locations []string `json:"locations"`
		} `json:"restrictionInfo"`
	} `json:"restrictions"`
}

type azUsage struct {
	CurrentValue int64 `json:"currentValue"`
	Limit        int64 `json:"limit"`
	Name         struct {
		Value     string `json:"value"`
		Localized string `json:"localizedValue"`
	} `json:"name"`
}

type azProvider struct {
	RegistrationState string `json:"registrationState"`
}

type azPermission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// azHead is what all resources have.
type azHead struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name,omitempty"`
	Location string            `json:"location,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

type azRef struct {
	ID string `json:"id"`
}

type azState struct {
	ProvisioningState string `json:"provisioningState,omitempty"`
}

type azResourceGroup struct {
	azHead
	Properties *azState `json:"properties,omitempty"`
}

type azNetworkPlan struct {
	azHead
	Properties azNetworkProperties `json:"properties"`
}

type azNetworkProperties struct {
	azState
	AddressSpace *azAddressSpace `json:"addressSpace,omitempty"`
	Subnets      []azSubnet      `json:"subnets,omitempty"`
}

type azAddressSpace struct {
	AddressPrefixes []string `json:"addressPrefixes"`
}

type azSubnet struct {
	ID         string             `json:"id,omitempty"`
	Name       string             `json:"name,omitempty"`
	Properties azSubnetProperties `json:"properties"`
}

type azSubnetProperties struct {
	azState
	AddressPrefix string `json:"addressPrefix,omitempty"`
	// DefaultOutboundAccess is sent as false: what it is when it is left out
	// depends on the version of the API.
	DefaultOutboundAccess *bool `json:"defaultOutboundAccess,omitempty"`
}

type azPublicIP struct {
	azHead
	Sku        *azIPSku             `json:"sku,omitempty"`
	Properties azPublicIPProperties `json:"properties"`
}

type azIPSku struct {
	Name string `json:"name"`
	Tier string `json:"tier,omitempty"`
}

type azPublicIPProperties struct {
	azState
	AllocationMethod string `json:"publicIPAllocationMethod,omitempty"`
	AddressVersion   string `json:"publicIPAddressVersion,omitempty"`
	IdleMinutes      int    `json:"idleTimeoutInMinutes,omitempty"`
	DeleteOption     string `json:"deleteOption,omitempty"`
	IPAddress        string `json:"ipAddress,omitempty"`
	IPConfiguration  *azRef `json:"ipConfiguration,omitempty"`
}

type azInterface struct {
	azHead
	Properties azInterfaceProperties `json:"properties"`
}

type azInterfaceProperties struct {
	azState
	IPConfigurations []azIPConfiguration `json:"ipConfigurations,omitempty"`
	SecurityGroup    *azRef              `json:"networkSecurityGroup,omitempty"`
	VirtualMachine   *azRef              `json:"virtualMachine,omitempty"`
}

type azIPConfiguration struct {
	Name       string `json:"name"`
	Properties struct {
		Primary          bool            `json:"primary"`
		AllocationMethod string          `json:"privateIPAllocationMethod"`
		AddressVersion   string          `json:"privateIPAddressVersion"`
		Subnet           azRef           `json:"subnet"`
		PublicIP         *azConfiguredIP `json:"publicIPAddress,omitempty"`
	} `json:"properties"`
}

type azConfiguredIP struct {
	ID         string `json:"id"`
	Properties struct {
		DeleteOption string `json:"deleteOption,omitempty"`
	} `json:"properties"`
}

type azSecurityGroup struct {
	azHead
	Properties azSecurityGroupProperties `json:"properties"`
}

type azSecurityGroupProperties struct {
	azState
	Rules []azSecurityRule `json:"securityRules"`
}

type azSecurityRule struct {
	Name       string `json:"name"`
	Properties struct {
		Description     string   `json:"description,omitempty"`
		Priority        int      `json:"priority"`
		Direction       string   `json:"direction"`
		Access          string   `json:"access"`
		Protocol        string   `json:"protocol"`
		SourcePrefixes  []string `json:"sourceAddressPrefixes"`
		SourcePorts     string   `json:"sourcePortRange"`
		Destination     string   `json:"destinationAddressPrefix"`
		DestinationPort string   `json:"destinationPortRange"`
	} `json:"properties"`
}

type azDisk struct {
	azHead
	ManagedBy  string `json:"managedBy"`
	Properties struct {
		azState
		TimeCreated time.Time `json:"timeCreated"`
	} `json:"properties"`
}

type azSSHPublicKey struct {
	Properties struct {
		PublicKey string `json:"publicKey"`
	} `json:"properties"`
}

type azVM struct {
	azHead
	Properties azVMProperties `json:"properties"`
}

type azVMProperties struct {
	azState
	Hardware     azHardware      `json:"hardwareProfile"`
	Storage      azStorage       `json:"storageProfile"`
	OS           azOS            `json:"osProfile"`
	Network      azVMNetwork     `json:"networkProfile"`
	Security     *azSecurity     `json:"securityProfile,omitempty"`
	Diagnostics  azDiagnostics   `json:"diagnosticsProfile"`
	TimeCreated  *time.Time      `json:"timeCreated,omitempty"`
	InstanceView *azInstanceView `json:"instanceView,omitempty"`
}

type azHardware struct {
	VMSize string `json:"vmSize"`
}

type azStorage struct {
	Image *azImage `json:"imageReference,omitempty"`
	Disk  azOSDisk `json:"osDisk"`
}

type azImage struct {
	ID        string `json:"id,omitempty"`
	Publisher string `json:"publisher,omitempty"`
	Offer     string `json:"offer,omitempty"`
	Sku       string `json:"sku,omitempty"`
	Version   string `json:"version,omitempty"`
}

type azOSDisk struct {
	Name         string         `json:"name"`
	CreateOption string         `json:"createOption"`
	Caching      string         `json:"caching,omitempty"`
	DeleteOption string         `json:"deleteOption,omitempty"`
	SizeGB       int            `json:"diskSizeGB,omitempty"`
	Managed      *azManagedDisk `json:"managedDisk,omitempty"`
}

type azManagedDisk struct {
	StorageType string `json:"storageAccountType,omitempty"`
}

type azOS struct {
	ComputerName  string   `json:"computerName"`
	AdminUsername string   `json:"adminUsername"`
	CustomData    string   `json:"customData,omitempty"` // base64; never given back
	Linux         *azLinux `json:"linuxConfiguration,omitempty"`
}

type azLinux struct {
	NoPassword bool  `json:"disablePasswordAuthentication"`
	Agent      bool  `json:"provisionVMAgent"`
	SSH        azSSH `json:"ssh"`
}

type azSSH struct {
	PublicKeys []azKey `json:"publicKeys"`
}

type azKey struct {
	Path string `json:"path"`
	Data string `json:"keyData"`
}

type azVMNetwork struct {
	Interfaces []azVMInterface `json:"networkInterfaces"`
}

type azVMInterface struct {
	ID         string `json:"id"`
	Properties struct {
		Primary      bool   `json:"primary"`
		DeleteOption string `json:"deleteOption,omitempty"`
	} `json:"properties"`
}

type azSecurity struct {
	Type string `json:"securityType"`
	UEFI azUEFI `json:"uefiSettings"`
}

type azUEFI struct {
	SecureBoot bool `json:"secureBootEnabled"`
	VTPM       bool `json:"vTpmEnabled"`
}

type azDiagnostics struct {
	Boot azBootDiagnostics `json:"bootDiagnostics"`
}

// azBootDiagnostics without a storage account keeps the console in one that
// Azure manages.
type azBootDiagnostics struct {
	Enabled bool `json:"enabled"`
}

type azInstanceView struct {
	Statuses []azStatus `json:"statuses"`
}

type azStatus struct {
	Code          string `json:"code"`
	Level         string `json:"level"`
	DisplayStatus string `json:"displayStatus"`
	Message       string `json:"message"`
}

type azConsole struct {
	SerialLog string `json:"serialConsoleLogBlobUri"`
}

// azOperation is what the address of an operation answers.
type azOperation struct {
	Status string    `json:"status"`
	Error  *azReason `json:"error"`
}

// azFailure is the envelope of every error.
type azFailure struct {
	Error azReason `json:"error"`
	// Some resource providers leave the envelope out.
	Code    string `json:"code"`
	Message string `json:"message"`
}

type azReason struct {
	Code    string     `json:"code"`
	Message string     `json:"message"`
	Target  string     `json:"target"`
	Details []azReason `json:"details"`
}

// azPrices is one page of the price list.
type azPrices struct {
	Currency     string    `json:"BillingCurrency"`
	Items        []azPrice `json:"Items"`
	NextPageLink string    `json:"NextPageLink"`
}
