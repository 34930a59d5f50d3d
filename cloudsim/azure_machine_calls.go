package cloudsim

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Virtual machines: what is seen of them, what is done to them, their end.

func (a azure) viewMachine(t *azureThing, props map[string]any) {
	props["vmId"] = t.server.uuid()
	props["timeCreated"] = t.created.UTC().Format(time.RFC3339Nano)
	if os, ok := props["osProfile"].(map[string]any); ok {
		delete(os, "customData")
		delete(os, "adminPassword")
		os["secrets"], os["allowExtensionOperations"] = []any{}, true
	}
	if disk, ok := valueOf(props, "storageProfile", "osDisk").(map[string]any); ok {
		managed, _ := disk["managedDisk"].(map[string]any)
		if managed == nil {
			managed = map[string]any{}
		}
		if name := textOf(disk, "name"); name != "" && t.server.state != stateInitializing {
			managed["id"] = t.group.id() + "/providers/Microsoft.Compute/disks/" + name
		}
		disk["managedDisk"], disk["osType"] = managed, "Linux"
	}
	if image, ok := valueOf(props, "storageProfile", "imageReference").(map[string]any); ok && image["id"] == nil {
		image["exactVersion"] = "24.04.202611200"
	}
	if storage, ok := props["storageProfile"].(map[string]any); ok {
		storage["dataDisks"] = orEmpty(anyList(storage["dataDisks"]))
	}
	if strings.EqualFold(a.r.URL.Query().Get("$expand"), "instanceView") || a.r.URL.Query().Get("statusOnly") == "true" {
		props["instanceView"] = a.instanceView(t)
	}
}

// uuid is the same each time it is asked for.
func (s *server) uuid() string {
	sum := sha256.Sum256([]byte(s.project.provider + "/" + s.project.name + "/" + itoa(s.id)))
	return fmt.Sprintf("%x-%x-4%03x-8%03x-%x", sum[:4], sum[4:6], sum[6], sum[7], sum[8:14])
}

func (a azure) getInstanceView() error {
	t, err := a.findThing(azureMachines)
	if err != nil {
		return err
	}
	a.ok(a.instanceView(t))
	return nil
}

// instanceView has the state of the create and that of the power, as codes.
func (a azure) instanceView(t *azureThing) map[string]any {
	code, level, text := "ProvisioningState/"+strings.ToLower(t.state), "Info", t.state
	if t.failCode != "" {
		code, level, text = "ProvisioningState/failed/"+t.failCode, "Error", "Provisioning failed"
	}
	status := map[string]any{"code": code, "level": level, "displayStatus": text, "time": t.created.UTC().Format(time.RFC3339)}
	if t.failText != "" {
		status["message"] = t.failText
	}
	statuses := []any{status}
	if power := t.powerState(); power != "" {
		statuses = append(statuses, map[string]any{"code": "PowerState/" + power, "level": "Info", "displayStatus": "VM " + power})
	}
	view := map[string]any{"statuses": statuses, "hyperVGeneration": "V2"}
	if t.server.guest != nil {
		view["computerName"], view["osName"] = t.server.name, "ubuntu"
		view["bootDiagnostics"] = map[string]any{}
	}
	return view
}

// powerState is empty while nothing has been placed.
func (t *azureThing) powerState() string {
	switch t.server.state {
	case stateStarting:
		return "starting"
	case stateRunning:
		return "running"
	case stateStopping:
		return "stopping"
	case stateOff:
		if t.deallocated {
			return "deallocated"
		}
		if t.failCode != "" {
			return ""
		}
		return "stopped"
	}
	return ""
}

// act does something to a machine that takes a while.
func (a azure) act(do func(t *azureThing, now time.Time)) error {
	t, err := a.findThing(azureMachines)
	if err != nil {
		return err
	}
	switch t.state {
	case "Failed":
		return azureFail(http.StatusConflict, "OperationNotAllowed", "Operation is not allowed on VM '%s' since its provisioning failed.", t.name)
	case "Deleting":
		return azureFail(http.StatusConflict, "OperationNotAllowed", "Operation is not allowed on VM '%s' since the VM is marked for deletion.", t.name)
	}
	a.begin202(azureOpBoth, "Microsoft.Compute", t.location, azureActTakes, func(now time.Time) *azureError {
		if t.state != "Deleting" {
			do(t, now)
		}
		return nil
	})
	return nil
}

func (a azure) startMachine() error {
	return a.act(func(t *azureThing, now time.Time) {
		if t.server.state == stateOff {
			t.deallocated = false
			a.sim.powerOn(t.server, now)
		}
	})
}

func (a azure) powerOffMachine() error {
	return a.act(func(t *azureThing, _ time.Time) {
		a.sim.powerOff(t.server)
		t.server.state = stateOff
	})
}

func (a azure) deallocateMachine() error {
	return a.act(func(t *azureThing, _ time.Time) {
		a.sim.powerOff(t.server)
		t.server.state, t.deallocated = stateOff, true
	})
}

func (a azure) restartMachine() error {
	return a.act(func(t *azureThing, now time.Time) {
		a.sim.powerOff(t.server)
		a.sim.powerOn(t.server, now)
	})
}

// removeMachine starts the end of a machine. What was made with a delete
// option goes after it, and whether that works nobody is told.
func (a azure) removeMachine(t *azureThing) error {
	if t.state != "Deleting" {
		t.state = "Deleting"
		a.sim.powerOff(t.server)
	}
	s, account := a.sim, a.account
	a.begin202(azureOpBoth, "Microsoft.Compute", t.location, azureDeleteTakes+t.server.stuckDelete, func(now time.Time) *azureError {
		if account.find(t.id()) != t {
			return nil // by another delete
		}
		parts := account.cascadeOf(t)
		account.drop(t)
		delete(t.server.project.servers, t.server.id)
		t.server.state = stateDeleting
		if t.server.entry.DeletedAt.IsZero() {
			t.server.entry.DeletedAt = now
		}
		s.endGuest(t.server)
		for _, p := range parts {
			account.cascade(s, p, now)
		}
		return nil
	})
	return nil
}

// cascadeOf are the parts that go with a machine: by its own delete options,
// and by those of its interfaces' addresses.
func (c *azureAccount) cascadeOf(vm *azureThing) []*azureThing {
	var parts []*azureThing
	for _, ref := range listOf(vm.props, "networkProfile", "networkInterfaces") {
		if nic := c.find(textOf(ref, "id")); nic != nil && textOf(ref, "properties", "deleteOption") == "Delete" {
			parts = append(parts, nic)
		}
	}
	disk := c.find(vm.group.id() + "/providers/Microsoft.Compute/disks/" + textOf(vm.props, "storageProfile", "osDisk", "name"))
	if disk != nil && textOf(vm.props, "storageProfile", "osDisk", "deleteOption") == "Delete" {
		parts = append(parts, disk)
	}
	return parts
}

// cascade ends a part some time after its machine. An interface that is kept
// for a failed machine stays; an address goes with its interface.
func (c *azureAccount) cascade(s *Sim, part *azureThing, now time.Time) {
	if now.Before(part.reservedUntil) {
		return
	}
	part.state = "Deleting"
	s.after(now, azurePartGoes, func(now time.Time) {
		if c.find(part.id()) != part {
			return
		}
		address := c.find(azureAddressIDOf(part))
		c.gone(part, now)
		if address != nil && textOf(address.props, "deleteOption") == "Delete" && s.hit([]Effect{EffectLeaveBehind}, azureName, "delete public ip", address.name) == nil {
			address.state = "Deleting"
			s.after(now, azurePartGoes, func(now time.Time) {
				if c.find(address.id()) == address {
					c.gone(address, now)
				}
			})
		}
	})
}

// bootDiagnostics hands out where the console is kept. The address is signed,
// so that no token goes there.
func (a azure) bootDiagnostics() error {
	t, err := a.findThing(azureMachines)
	if err != nil {
		return err
	}
	if on, _ := valueOf(t.props, "diagnosticsProfile", "bootDiagnostics", "enabled").(bool); !on {
		return azureFail(http.StatusConflict, "OperationNotAllowed", "Boot diagnostics is not enabled for VM '%s'.", t.name)
	}
	if t.server.guest == nil {
		return azureFail(http.StatusNotFound, "ResourceNotFound", "The boot diagnostics of VM '%s' are not there yet.", t.name)
	}
	base := baseOf(a.r) + azurePrefix + "/console/" + a.sub + "/" + t.server.uuid()
	a.ok(map[string]any{"consoleScreenshotBlobUri": base + "?sig=simulated&screenshot=1", "serialConsoleLogBlobUri": base + "?sig=simulated"})
	return nil
}

// azureConsoleLog serves the log as the storage does: a token is refused.
func (s *Sim) azureConsoleLog(w http.ResponseWriter, r *http.Request) {
	var lines []string
	found := false
	s.locked(func(time.Time) {
		_, account := s.azureOf(r.PathValue("subscription"))
		for _, vm := range account.ofKind(azureMachines) {
			if vm.server.uuid() == r.PathValue("id") && vm.server.guest != nil {
				found, lines = true, append(lines, vm.server.guest.console...)
			}
		}
	})
	switch {
	case r.Header.Get("Authorization") != "" || r.URL.Query().Get("sig") != "simulated":
		http.Error(w, "AuthenticationFailed", http.StatusForbidden)
	case !found:
		http.Error(w, "BlobNotFound", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(strings.Join(lines, "\n") + "\n")) // the connection is all that can fail here
	}
}
