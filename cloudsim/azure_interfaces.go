package cloudsim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Network interfaces, and how the parts of a machine end.

func (a azure) putInterface(t *azureThing, isNew bool) error {
	configs := listOf(t.props, "ipConfigurations")
	if len(configs) == 0 {
		return azureFail(http.StatusBadRequest, "InvalidRequestFormat", "A network interface needs an ipConfiguration.")
	}
	for _, c := range configs {
		subnet := textOf(c, "properties", "subnet", "id")
		netID, name, _ := cutLastFold(subnet, "/subnets/")
		net := a.account.find(netID)
		if net == nil || a.findSubnet(net, name) == nil {
			return azureReference(t, subnet)
		}
		if net.location != t.location {
			return azureFail(http.StatusBadRequest, "InvalidResourceReference", "Resource %s is in another location than %s.", subnet, t.id())
		}
		if ref := textOf(c, "properties", "publicIPAddress", "id"); ref != "" {
			if err := a.checkAddress(t, ref); err != nil {
				return err
			}
		}
	}
	if ref := textOf(t.props, "networkSecurityGroup", "id"); ref != "" && a.account.find(ref) == nil {
		return azureReference(t, ref)
	}
	a.settle(t, isNew, 0)
	return nil
}

func (a azure) checkAddress(t *azureThing, ref string) error {
	ip := a.account.find(ref)
	switch {
	case ip == nil:
		return azureReference(t, ref)
	case ip.state != "Succeeded":
		a.retryAfter(time.Second)
		return azureFail(http.StatusConflict, "ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in %s state.", ip.id(), t.id(), ip.state)
	}
	for _, n := range a.account.ofKind(azureInterfaces) {
		if n.name != t.name && strings.EqualFold(azureAddressIDOf(n), ip.id()) {
			return azureFail(http.StatusBadRequest, "PublicIPAddressInUse", "Resource %s is referencing public IP address %s that is already allocated to resource %s.", t.id(), ip.id(), n.id())
		}
	}
	return nil
}

func azureReference(t *azureThing, ref string) error {
	return azureFail(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both resources are in the same region.", ref, t.id())
}

func azureAddressIDOf(nic *azureThing) string {
	for _, c := range listOf(nic.props, "ipConfigurations") {
		if id := textOf(c, "properties", "publicIPAddress", "id"); id != "" {
			return id
		}
	}
	return ""
}

func (a azure) viewInterface(t *azureThing, props map[string]any) {
	for _, c := range listOf(props, "ipConfigurations") {
		c["id"] = t.id() + "/ipConfigurations/" + textOf(c, "name")
		c["type"] = "Microsoft.Network/networkInterfaces/ipConfigurations"
		if p, ok := c["properties"].(map[string]any); ok {
			p["provisioningState"] = t.state
			p["privateIPAddress"] = "10.64.0.4"
		}
	}
	props["enableAcceleratedNetworking"] = false
	props["enableIPForwarding"] = false
	if vm := a.account.machineOf(t); vm != nil {
		// The API is known for the case of its ids.
		props["virtualMachine"] = map[string]any{"id": strings.Replace(vm.id(), vm.group.name, strings.ToUpper(vm.group.name), 1)}
	}
}

// machineOf is the machine that an interface or a disk belongs to.
func (c *azureAccount) machineOf(part *azureThing) *azureThing {
	for _, vm := range c.ofKind(azureMachines) {
		if slices.Contains(c.partsOf(vm), part) {
			return vm
		}
	}
	return nil
}

// partsOf are the interfaces and the disk of a machine that exist.
func (c *azureAccount) partsOf(vm *azureThing) []*azureThing {
	var parts []*azureThing
	for _, ref := range listOf(vm.props, "networkProfile", "networkInterfaces") {
		if nic := c.find(textOf(ref, "id")); nic != nil {
			parts = append(parts, nic)
		}
	}
	if disk := c.find(vm.group.id() + "/providers/Microsoft.Compute/disks/" + textOf(vm.props, "storageProfile", "osDisk", "name")); disk != nil {
		parts = append(parts, disk)
	}
	return parts
}

// removePart starts the end of anything but a machine, unless something hangs
// on it.
func (a azure) removePart(t *azureThing) error {
	if err := a.mayGo(t); err != nil {
		return err
	}
	if t.kind == azureKeys || t.kind == azureFirewalls {
		a.account.gone(t, a.now)
		a.begin202(azureOpLocation, t.kind.namespace, t.location, 0, nil)
		return nil
	}
	t.state = "Deleting"
	account := a.account
	way := azureOpLocation // as the network's own calls
	if t.kind == azureDisks {
		way = azureOpBoth
	}
	a.begin202(way, t.kind.namespace, t.location, azurePartGoes, func(now time.Time) *azureError {
		account.gone(t, now)
		return nil
	})
	return nil
}

// mayGo tells why a thing cannot go yet.
func (a azure) mayGo(t *azureThing) error {
	inUse := func(code, by string) error {
		return azureFail(http.StatusBadRequest, code, "%s %s cannot be deleted since it is still allocated to resource %s.", t.kind.typeName(), t.id(), by)
	}
	switch t.kind {
	case azureInterfaces:
		if vm := a.account.machineOf(t); vm != nil {
			return inUse("NicInUse", vm.id())
		}
		if a.now.Before(t.reservedUntil) {
			return azureFail(http.StatusBadRequest, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: %s", t.reservedFor)
		}
	case azureAddresses, azureFirewalls:
		for _, n := range a.account.ofKind(azureInterfaces) {
			if t.kind == azureAddresses && strings.EqualFold(azureAddressIDOf(n), t.id()) {
				return inUse("PublicIPAddressCannotBeDeleted", n.id()+"/ipConfigurations/primary")
			}
			if t.kind == azureFirewalls && strings.EqualFold(textOf(n.props, "networkSecurityGroup", "id"), t.id()) {
				return inUse("InUseNetworkSecurityGroupCannotBeDeleted", n.id())
			}
		}
	case azureNetworks:
		for _, s := range listOf(t.props, "subnets") {
			if a.subnetUsers(t, textOf(s, "name")) > 0 {
				return inUse("InUseSubnetCannotBeDeleted", textOf(s, "name"))
			}
		}
	case azureDisks:
		if vm := a.account.machineOf(t); vm != nil {
			return azureFail(http.StatusConflict, "OperationNotAllowed", "Disk %s is attached to VM %s.", t.name, vm.id())
		}
	}
	return nil
}

// gone ends a thing, and what it costs.
func (c *azureAccount) gone(t *azureThing, now time.Time) {
	c.drop(t)
	if t.ip != nil {
		t.ip.entry.DeletedAt = now
	}
	if t.entry != nil {
		t.entry.DeletedAt = now
	}
}

func (a azure) viewDisk(t *azureThing, props map[string]any) {
	props["timeCreated"] = t.created.UTC().Format(time.RFC3339Nano)
	props["diskState"] = "Unattached"
	if vm := a.account.machineOf(t); vm != nil {
		props["diskState"] = "Attached"
		props["managedBy"] = vm.id()
	}
}

func (a azure) putKey(t *azureThing, isNew bool) error {
	if _, err := sshFingerprint(textOf(t.props, "publicKey")); err != nil {
		return azureParameter("publicKey", "The value of parameter publicKey is invalid.")
	}
	status := http.StatusOK
	if isNew {
		a.keep(t)
		status = http.StatusCreated
	}
	a.send(status, a.render(t))
	return nil
}

// cutLastFold cuts at the last sep, without regard to case.
func cutLastFold(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(strings.ToLower(s), strings.ToLower(sep))
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
