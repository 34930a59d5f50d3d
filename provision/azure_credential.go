package provision

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// Credential: its form.

// azureCredential is what NewAzure is given.
type azureCredential struct {
	Tenant       string
	Client       string
	Secret       string
	TokenFile    string // of the federated token; read anew for each access token
	Subscription string
	Group        string

	authority string // without a slash at its end
	audience  string // without a slash at its end
	endpoint  string // of the API, without a slash at its end
	known     bool   // the endpoint is one of Azure's own clouds
}

// azCloud is one of the clouds that Azure runs.
type azCloud struct {
	endpoint, authority, prices string
}

// Sovereign clouds have their own sign-in. The price list knows the public
// cloud and that of the US government.
var azClouds = []azCloud{
	{"https://management.azure.com", "https://login.microsoftonline.com", azPriceList},
	{"https://management.usgovcloudapi.net", "https://login.microsoftonline.us", azPriceList},
	{"https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn", ""},
}

const azPriceList = "https://prices.azure.com/api/retail/prices"

// azMembers are the names that each part of the credential goes by: our own
// first, then those that Azure's command line prints.
var azMembers = map[string][]string{
	"tenant":         {"tenant_id", "tenantId", "tenant"},
	"client":         {"client_id", "clientId", "appId", "client"},
	"secret":         {"client_secret", "clientSecret", "password"},
	"token file":     {"federated_token_file", "federatedTokenFile"},
	"subscription":   {"subscription_id", "subscriptionId", "subscription"},
	"resource group": {"resource_group", "resourceGroup"},
	"authority host": {"authority_host", "activeDirectoryEndpointUrl"},
	"audience":       {"audience"},
	"endpoint":       {"resourceManagerEndpointUrl"},
}

const azCredentialHint = `give JSON with tenant_id, client_id, subscription_id and client_secret or federated_token_file, and with resource_group if servers should be in one of your own`

// parseAzureCredential tells each mistake apart and repeats no value but ids.
func parseAzureCredential(text string, opts Options) (azureCredential, error) {
	wrong := func(hint, message string) (azureCredential, error) {
		return azureCredential{}, &ProviderError{
			Provider: "azure", Op: "open", Class: ErrUnauthorized, Message: message, Hint: hint,
		}
	}
	var members map[string]json.RawMessage
	switch err := json.Unmarshal([]byte(text), &members); {
	case strings.TrimSpace(text) == "":
		return wrong(azCredentialHint, "the credential is empty")
	case err != nil || members == nil:
		return wrong(azCredentialHint, "the credential is not a JSON object")
	}
	parts := map[string]string{}
	for part, names := range azMembers {
		for _, name := range names {
			raw, ok := members[name]
			if !ok || string(raw) == "null" || parts[part] != "" {
				continue
			}
			var value string
			if json.Unmarshal(raw, &value) != nil {
				return wrong(azCredentialHint, "the credential's member "+name+" is not a text")
			}
			parts[part] = strings.TrimSpace(value)
		}
	}
	cred := azureCredential{
		Tenant: parts["tenant"], Client: parts["client"], Secret: parts["secret"], TokenFile: parts["token file"],
		Subscription: parts["subscription"], Group: parts["resource group"],
		endpoint: opts.endpointOr(strings.TrimRight(cmp.Or(parts["endpoint"], azureEndpoint), "/")),
	}
	if cred.Group == "" {
		cred.Group = opts.shortName() + "-nodes"
	}
	if hint, message := cred.mistake(); message != "" {
		return wrong(hint, message)
	}
	if hint, message := cred.settle(parts["authority host"], parts["audience"]); message != "" {
		return wrong(hint, message)
	}
	return cred, nil
}

var (
	azUUID   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	azTenant = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	azGroup  = regexp.MustCompile(`^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$`)
)

func (c azureCredential) mistake() (hint, message string) {
	for _, m := range []struct{ value, name, where string }{
		{c.Tenant, "tenant_id", "az account show --query tenantId"},
		{c.Client, "client_id", "the application's appId, as az ad sp create-for-rbac prints it"},
		{c.Subscription, "subscription_id", "az account show --query id"},
	} {
		if m.value == "" {
			return "find it with: " + m.where, "the credential has no " + m.name
		}
	}
	switch {
	case !azTenant.MatchString(c.Tenant):
		return "find it with: az account show --query tenantId", "the credential's tenant_id is neither an id nor a domain"
	case !azUUID.MatchString(c.Client):
		return "it is the application's appId, not its name", "the credential's client_id is not an id such as 00000000-0000-0000-0000-000000000000"
	case !azUUID.MatchString(c.Subscription):
		return "it is the subscription's id, not its name: az account show --query id", "the credential's subscription_id is not an id such as 00000000-0000-0000-0000-000000000000"
	case c.Secret == "" && c.TokenFile == "":
		return azCredentialHint, "the credential has neither client_secret nor federated_token_file"
	case c.Secret != "" && c.TokenFile != "":
		return "leave one of them out", "the credential has both client_secret and federated_token_file"
	case !azGroup.MatchString(c.Group):
		return "up to 90 letters, digits, '_', '-', '.', '(' and ')', not ending with a dot", "the credential's resource_group is not a resource group's name"
	}
	return "", ""
}

// settle finds the cloud that the endpoint belongs to, and with it where
// tokens come from. A cloud that is not Azure's own names its authority:
// nobody else's is asked for a token in its name.
func (c *azureCredential) settle(authority, audience string) (hint, message string) {
	if err := checkEndpoint(c.endpoint); err != nil {
		return "give the address of Azure Resource Manager", "the endpoint: " + err.Error()
	}
	c.authority, c.audience = strings.TrimRight(authority, "/"), strings.TrimRight(audience, "/")
	for _, cloud := range azClouds {
		if strings.EqualFold(c.endpoint, cloud.endpoint) {
			c.known = true
			c.authority = cmp.Or(c.authority, cloud.authority)
		}
	}
	if c.authority == "" {
		return "add authority_host to the credential: what AZURE_AUTHORITY_HOST holds for this cloud's own tools",
			"the endpoint " + hostOf(c.endpoint) + " is none of Azure's own, and the credential does not say where its tokens come from"
	}
	if !strings.Contains(c.authority, "://") { // AZURE_AUTHORITY_HOST may be a bare host
		c.authority = "https://" + c.authority
	}
	if err := checkEndpoint(c.authority); err != nil {
		return "give the value of AZURE_AUTHORITY_HOST", "the credential's authority_host: " + err.Error()
	}
	if c.audience == "" {
		c.audience = azureEndpoint
		if c.known {
			c.audience = c.endpoint
		}
	}
	return "", ""
}

// pricesAddress is that of the price list: beside the API at a cloud that is
// not Azure's own.
func (c azureCredential) pricesAddress() string {
	for _, cloud := range azClouds {
		if strings.EqualFold(c.endpoint, cloud.endpoint) {
			return cloud.prices
		}
	}
	return c.endpoint + "/api/retail/prices"
}

func (c azureCredential) tokenURL() string {
	return c.authority + "/" + url.PathEscape(c.Tenant) + "/oauth2/v2.0/token"
}

// readAssertion reads the federated token, which whoever writes the file
// renews every now and then.
func (c azureCredential) readAssertion() (string, error) {
	data, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", &ProviderError{
			Class: ErrUnauthorized, Message: "the federated token's file cannot be read: " + err.Error(),
			Hint: "check federated_token_file in the credential, and who may read it",
		}
	}
	if text := strings.TrimSpace(string(data)); strings.Count(text, ".") == 2 {
		return text, nil
	}
	return "", &ProviderError{
		Class: ErrUnauthorized, Message: "the file " + c.TokenFile + " holds no JWT",
		Hint: "federated_token_file names the file that the token's issuer writes, as AZURE_FEDERATED_TOKEN_FILE does",
	}
}

// AzureCredentialFromEnv makes the JSON for NewAzure out of the variables
// that Azure's own tools read: AZURE_TENANT_ID, AZURE_CLIENT_ID,
// AZURE_SUBSCRIPTION_ID, AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE,
// and when set AZURE_RESOURCE_GROUP and AZURE_AUTHORITY_HOST. It is empty
// when none of the first five is set; NewAzure says what is missing.
func AzureCredentialFromEnv(getenv func(string) string) string {
	members := map[string]string{}
	for name, variable := range map[string]string{
		"tenant_id": "AZURE_TENANT_ID", "client_id": "AZURE_CLIENT_ID", "subscription_id": "AZURE_SUBSCRIPTION_ID",
		"client_secret": "AZURE_CLIENT_SECRET", "federated_token_file": "AZURE_FEDERATED_TOKEN_FILE",
	} {
		if v := strings.TrimSpace(getenv(variable)); v != "" {
			members[name] = v
		}
	}
	if len(members) == 0 {
		return ""
	}
	if members["client_secret"] != "" {
		// As azidentity orders them: a secret comes before a token file, which
		// a cluster may set on every pod.
		delete(members, "federated_token_file")
	}
	for name, variable := range map[string]string{"resource_group": "AZURE_RESOURCE_GROUP", "authority_host": "AZURE_AUTHORITY_HOST"} {
		if v := strings.TrimSpace(getenv(variable)); v != "" {
			members[name] = v
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic("provision: texts cannot fail to encode: " + err.Error())
	}
	return string(text)
}
