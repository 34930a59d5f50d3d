package cloudsim

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Virtual machines: the create.

// How long things take, in simulated time.
const (
	azureStartTakes  = 4 * time.Second  // from the create to power-on
	azureCreateTakes = 15 * time.Second // until the create has succeeded
	azureDeleteTakes = 20 * time.Second
	azureActTakes    = 4 * time.Second
	azureUserData    = 65535
	azureUserChars   = 87380
	azureDiskHourly  = 4.80 / 730 // of 64 GB StandardSSD_LRS
)

// azureAdmins may not be a machine's first user.
var azureAdmins = strings.Fields(`administrator admin user user1 test user2 test1 user3 admin1 1 123 a actuser adm admin2
	aspnet backup console david guest john owner root server sql support support_388945a0 sys test2 test3 user4 user5`)

var azureComputer = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?$`)

func (a azure) putMachine(t *azureThing, isNew bool) error {
	size, err := a.checkSize(t)
	if err != nil {
		return err
	}
	if !isNew {
		return a.updateMachine(t)
	}
	data, err := azureCheckOS(t)
	if err != nil {
		return err
	}
	if err := azureCheckDisk(t); err != nil {
		return err
	}
	if err := azureCheckImage(t, size); err != nil {
		return err
	}
	if err := azureCheckSecurity(t, size); err != nil {
		return err
	}
	nics, err := a.checkInterfaces(t)
	if err != nil {
		return err
	}
	if err := a.checkCores(t, size); err != nil {
		return err
	}
	if slices.Contains(size.soldOut, t.location) {
		return azureFail(http.StatusConflict, "SkuNotAvailable", "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: %s' is currently not available in location '%s'. Please try another size or deploy to a different location or different zone.", size.name, t.location)
	}
	a.makeMachine(t, size, nics, data)
	return nil
}

// updateMachine takes a PUT on a machine that exists: the same again is fine,
// and so are other tags.
func (a azure) updateMachine(t *azureThing) error {
	old := a.account.find(t.id())
	for _, path := range [][]string{
		{"hardwareProfile", "vmSize"}, {"osProfile", "computerName"}, {"osProfile", "customData"}, {"storageProfile", "osDisk", "name"},
	} {
		if textOf(t.props, path...) != textOf(old.props, path...) {
			return &azureError{status: http.StatusConflict, code: "PropertyChangeNotAllowed", message: "Changing property '" + strings.Join(path, ".") + "' is not allowed.", target: path[len(path)-1]}
		}
	}
	if fmt.Sprint(valueOf(t.props, "osProfile", "linuxConfiguration")) != fmt.Sprint(valueOf(old.props, "osProfile", "linuxConfiguration")) {
		return &azureError{status: http.StatusConflict, code: "PropertyChangeNotAllowed", message: "Changing property 'linuxConfiguration.ssh.publicKeys' is not allowed.", target: "linuxConfiguration.ssh.publicKeys"}
	}
	a.send(http.StatusOK, a.render(t))
	return nil
}

func (a azure) checkSize(t *azureThing) (azureSize, error) {
	name := textOf(t.props, "hardwareProfile", "vmSize")
	for _, z := range azureSizes() {
		if !strings.EqualFold(z.name, name) {
			continue
		}
		if slices.Contains(z.barred, t.location) {
			return z, azureFail(http.StatusConflict, "SkuNotAvailable", "The requested VM size %s is not available for the current subscription in location '%s'.", z.name, t.location)
		}
		return z, nil
	}
	return azureSize{}, azureParameter("vmSize", "The value %s provided for the VM size is not valid. The valid sizes in the current region are: %s.", name, strings.Join(azureSizeNames(), ","))
}

// azureCheckOS checks osProfile, and returns the custom data as the guest
// gets it.
func azureCheckOS(t *azureThing) ([]byte, error) {
	host, user := textOf(t.props, "osProfile", "computerName"), textOf(t.props, "osProfile", "adminUsername")
	linux, _ := valueOf(t.props, "osProfile", "linuxConfiguration").(map[string]any)
	noPassword, _ := linux["disablePasswordAuthentication"].(bool)
	keys := listOf(linux, "ssh", "publicKeys")
	switch {
	case !azureComputer.MatchString(host) || strings.Trim(host, "0123456789") == "":
		return nil, azureParameter("computerName", "Linux host name cannot exceed 64 characters in length or contain the following characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : ' \" , < > / ?.")
	case user == "" || slices.Contains(azureAdmins, strings.ToLower(user)):
		return nil, azureParameter("adminUsername", "The Admin Username specified is not allowed.")
	case textOf(t.props, "osProfile", "adminPassword") == "" && len(keys) == 0:
		return nil, azureParameter("linuxConfiguration", "Authentication using either SSH or by user name and password must be enabled in Linux profile.")
	case noPassword && len(keys) == 0:
		return nil, azureParameter("linuxConfiguration.ssh.publicKeys", "At least one SSH public key must be given when password authentication is disabled.")
	}
	for _, k := range keys {
		if want := "/home/" + user + "/.ssh/authorized_keys"; textOf(k, "path") != want {
			return nil, azureParameter("linuxConfiguration.ssh.publicKeys.path", "Destination path for SSH public keys is currently limited to its default value %s due to a known issue in Linux provisioning agent.", want)
		}
		kind, _, _ := strings.Cut(textOf(k, "keyData"), " ")
		if _, err := sshFingerprint(textOf(k, "keyData")); err != nil || kind != "ssh-rsa" && kind != "ssh-ed25519" {
			return nil, azureParameter("linuxConfiguration.ssh.publicKeys.keyData", "The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.")
		}
	}
	text := textOf(t.props, "osProfile", "customData")
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, azureParameter("osProfile.customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of %d characters.", azureUserChars)
	case len(data) > azureUserData || len(text) > azureUserChars:
		return nil, azureParameter("osProfile.customData", "Custom data in OSProfile must be in Base64 encoding and with a maximum length of %d characters.", azureUserChars)
	}
	return data, nil
}

func azureCheckDisk(t *azureThing) error {
	disk, _ := valueOf(t.props, "storageProfile", "osDisk").(map[string]any)
	gb, has := disk["diskSizeGB"].(float64)
	switch {
	case textOf(disk, "createOption") != "FromImage":
		return azureParameter("osDisk.createOption", "The value '%s' of parameter 'osDisk.createOption' is invalid.", textOf(disk, "createOption"))
	case has && gb < 30:
		return azureFail(http.StatusBadRequest, "ResizeDiskError", "The specified disk size %d GB is smaller than the size of the corresponding disk in the VM image: 30 GB.", int(gb))
	case has && gb > 4095:
		return azureParameter("osDisk.diskSizeGB", "The value '%d' of parameter 'osDisk.diskSizeGB' is out of range.", int(gb))
	}
	if option := textOf(disk, "deleteOption"); option != "" && option != "Delete" && option != "Detach" {
		return azureParameter("osDisk.deleteOption", "The value '%s' of parameter 'osDisk.deleteOption' is invalid.", option)
	}
	return nil
}

// azureImageOf is what is known of Canonical's images: generation and
// architecture by SKU.
func azureCheckImage(t *azureThing, z azureSize) error {
	ref, _ := valueOf(t.props, "storageProfile", "imageReference").(map[string]any)
	if textOf(ref, "id") != "" {
		return nil
	}
	sku := textOf(ref, "sku")
	known := textOf(ref, "publisher") == "Canonical" && slices.Contains([]string{"ubuntu-24_04-lts", "ubuntu-26_04-lts"}, textOf(ref, "offer")) &&
		slices.Contains([]string{"server", "server-gen1", "server-arm64", "minimal", "minimal-arm64"}, sku) && textOf(ref, "version") != ""
	switch {
	case !known:
		return &azureError{status: http.StatusNotFound, code: "PlatformImageNotFound", target: "imageReference",
			message: fmt.Sprintf("The platform image '%s:%s:%s:%s' is not available. Verify that all fields in the storage profile are correct.", textOf(ref, "publisher"), textOf(ref, "offer"), sku, textOf(ref, "version"))}
	case strings.HasSuffix(sku, "-arm64") != (z.arch == "arm"):
		return azureFail(http.StatusBadRequest, "BadRequest", "Cannot create a VM of size '%s' because this VM size only supports a CPU Architecture of '%s', but an image or disk with another CPU Architecture was given.", z.name, z.cpuArchitecture())
	case strings.HasSuffix(sku, "-gen1") && !strings.Contains(z.generations, "V1"), !strings.HasSuffix(sku, "-gen1") && !strings.Contains(z.generations, "V2"):
		return azureFail(http.StatusBadRequest, "BadRequest", "The selected VM size '%s' cannot boot Hypervisor Generation of the image.", z.name)
	}
	return nil
}

func azureCheckSecurity(t *azureThing, z azureSize) error {
	kind := textOf(t.props, "securityProfile", "securityType")
	if kind == "TrustedLaunch" && (z.arch == "arm" || !strings.Contains(z.generations, "V2") || z.noTrust) {
		return azureFail(http.StatusBadRequest, "BadRequest", "The VM size '%s' is not supported for trusted launch.", z.name)
	}
	return nil
}

func (a azure) checkInterfaces(t *azureThing) ([]*azureThing, error) {
	refs := listOf(t.props, "networkProfile", "networkInterfaces")
	if len(refs) == 0 {
		return nil, azureParameter("networkProfile", "Required parameter 'networkProfile' is missing (null).")
	}
	var nics []*azureThing
	for _, ref := range refs {
		nic := a.account.find(textOf(ref, "id"))
		if nic == nil {
			return nil, azureFail(http.StatusNotFound, "NotFound", "Resource %s referenced by resource %s was not found.", textOf(ref, "id"), t.id())
		}
		if vm := a.account.machineOf(nic); vm != nil {
			return nil, azureFail(http.StatusBadRequest, "NicInUse", "Network interface %s is used by existing resource %s.", nic.id(), vm.id())
		}
		if a.now.Before(nic.reservedUntil) && !strings.EqualFold(nic.reservedFor, t.id()) {
			return nil, azureFail(http.StatusBadRequest, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: %s", nic.reservedFor)
		}
		nics = append(nics, nic)
	}
	return nics, nil
}

// azureCoresLimit is the quota of a region, in cores.
const azureCoresLimit = 2000

// azureFamilyLimit is that of a family. Those with graphics cards begin small.
func azureFamilyLimit(family string) int {
	if strings.HasPrefix(family, "standardNC") {
		return 8
	}
	return 1000
}

func (a azure) checkCores(t *azureThing, z azureSize) error {
	all, family := a.coresIn(t.location)
	switch {
	case all+z.cores > azureCoresLimit:
		return azureQuota("Total Regional Cores", t.location, azureCoresLimit, all, z.cores)
	case family[z.family]+z.cores > azureFamilyLimit(z.family):
		return azureQuota(z.family+" Cores", t.location, azureFamilyLimit(z.family), family[z.family], z.cores)
	}
	return nil
}

func (a azure) coresIn(region string) (all int, family map[string]int) {
	family = map[string]int{}
	for _, vm := range a.account.ofKind(azureMachines) {
		if z, ok := azureSizeOf(textOf(vm.props, "hardwareProfile", "vmSize")); ok && vm.location == region && !vm.deallocated {
			all += z.cores
			family[z.family] += z.cores
		}
	}
	return all, family
}

// makeMachine makes what the description says, and lets it start.
func (a azure) makeMachine(t *azureThing, z azureSize, nics []*azureThing, data []byte) {
	w := a.sim.world
	labels := map[string]string{}
	for k, v := range t.tags {
		labels[k], _ = v.(string)
	}
	s := &server{
		id: w.id(azureName, "server"), ref: t.name, project: a.project, name: textOf(t.props, "osProfile", "computerName"), size: z.name,
		region: t.location, arch: z.arch, userData: data, labels: labels, created: a.now, state: stateInitializing,
	}
	s.entry = w.enter(LedgerEntry{
		Provider: azureName, Project: a.project.name, Kind: "server", ID: t.name, Name: s.name, CreatedAt: a.now, Hourly: z.hourly, Currency: "USD",
	})
	for _, nic := range nics {
		if ip := a.account.find(azureAddressIDOf(nic)); ip != nil && ip.ip != nil {
			s.ipv4, ip.ip.server = ip.ip, s
			ip.ip.entry.Server = t.name
		}
	}
	t.server, t.state = s, "Creating"
	a.project.servers[s.id] = s
	a.sim.bootFaults(s)
	t.hidden = s.hiddenUntil
	a.keep(t)
	account := a.account
	late := s.lateFailure
	alive := func() bool { return account.find(t.id()) == t && t.state == "Creating" }
	a.sim.after(a.now, azureStartTakes, func(now time.Time) {
		if alive() && late == nil {
			account.makeDisk(a.sim, t, now)
			a.sim.powerOn(s, now)
		}
	})
	takes := azureCreateTakes
	if late != nil {
		takes = max(time.Duration(late.Delay), azureStartTakes)
	}
	a.begin(azureOpBody, "Microsoft.Compute", t.location, takes, func(now time.Time) *azureError {
		if !alive() {
			return &azureError{code: "OperationPreempted", message: "Operation execution has been preempted by a more recent operation."}
		}
		if late == nil {
			t.state = "Succeeded"
			return nil
		}
		return account.failMachine(t, nics, late, now)
	})
	a.send(http.StatusCreated, a.render(t))
}

// failMachine ends a create that was accepted: the machine stays as Failed
// and its interfaces are kept for it.
func (c *azureAccount) failMachine(t *azureThing, nics []*azureThing, late *Fault, now time.Time) *azureError {
	t.state, t.failCode, t.failText = "Failed", late.Code, late.Message
	if t.failCode == "" {
		t.failCode = "AllocationFailed"
	}
	if t.failText == "" {
		t.failText = "Allocation failed. We do not have sufficient capacity for the requested VM size in this region. Read more about improving likelihood of allocation success at https://aka.ms/allocation-guidance"
	}
	t.server.state = stateOff
	t.server.entry.DeletedAt = now // nothing runs, nothing is billed
	for _, nic := range nics {
		nic.reservedFor, nic.reservedUntil = t.id(), now.Add(azureReservation)
	}
	return &azureError{code: t.failCode, message: t.failText}
}

// makeDisk makes the disk that a machine starts from. It gets its tags.
func (c *azureAccount) makeDisk(s *Sim, vm *azureThing, now time.Time) {
	spec, _ := valueOf(vm.props, "storageProfile", "osDisk").(map[string]any)
	name := textOf(spec, "name")
	if name == "" {
		name = fmt.Sprintf("%s_OsDisk_1_%s", vm.name, strings.ReplaceAll(s.azureID(), "-", ""))
		spec["name"] = name
	}
	gb, ok := spec["diskSizeGB"].(float64)
	if !ok {
		gb = 30
	}
	storage := textOf(spec, "managedDisk", "storageAccountType")
	if storage == "" {
		storage = "Standard_LRS"
	}
	disk := &azureThing{
		kind: azureDisks, group: vm.group, name: name, location: vm.location, tags: vm.tags, state: "Succeeded", created: now,
		sku:   map[string]any{"name": storage, "tier": "Standard"},
		props: map[string]any{"osType": "Linux", "diskSizeGB": gb, "creationData": map[string]any{"createOption": "FromImage"}},
	}
	disk.entry = s.world.enter(LedgerEntry{
		Provider: azureName, Project: vm.server.project.name, Kind: "volume", ID: name, Name: name, Server: vm.name, CreatedAt: now,
		Hourly: azureDiskHourly * gb / 64, Currency: "USD",
	})
	c.things[strings.ToLower(disk.id())] = disk
	c.order = append(c.order, disk)
}
