package cloudsim

import (
	"net/http"
	"strconv"
	"time"
)

// Instances: everything but the create.

func (t *gcpThing) status() string {
	switch t.server.state {
	case stateInitializing:
		if t.staged {
			return "STAGING"
		}
		return "PROVISIONING"
	case stateStarting:
		return "STAGING"
	case stateRunning:
		return "RUNNING"
	case stateOff:
		return "TERMINATED"
	}
	return "STOPPING"
}

// externals counts the external addresses that an instance has, or will.
func (t *gcpThing) externals() int {
	if t.server != nil && t.server.state == stateOff {
		return 0
	}
	n := 0
	for _, nic := range listOf(t.props, "networkInterfaces") {
		n += len(listOf(nic, "accessConfigs"))
	}
	return n
}

// viewInstance adds what the service knows to what was sent.
func (g gcp) viewInstance(t *gcpThing, out map[string]any) {
	out["status"], out["machineType"] = t.status(), g.url(t.scope+"/machineTypes/"+t.machine.name)
	out["cpuPlatform"], out["startRestricted"] = "Intel Broadwell", false
	if _, has := out["canIpForward"]; !has {
		out["canIpForward"] = false
	}
	if _, has := out["deletionProtection"]; !has {
		out["deletionProtection"] = false
	}
	out["labelFingerprint"] = gcpFingerprint(t.props["labels"])
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["kind"], metadata["fingerprint"] = "compute#metadata", gcpFingerprint(valueOf(t.props, "metadata", "items"))
	out["metadata"] = metadata
	tags, _ := out["tags"].(map[string]any)
	if tags == nil {
		tags = map[string]any{}
	}
	tags["fingerprint"] = gcpFingerprint(valueOf(t.props, "tags", "items"))
	out["tags"] = tags
	out["fingerprint"] = gcpFingerprint(t.props)
	out["disks"] = g.viewDisks(t)
	nics, _ := out["networkInterfaces"].([]any)
	for i, v := range nics {
		if nic, ok := v.(map[string]any); ok {
			g.viewInterface(t, i, nic)
		}
	}
	if !t.started.IsZero() {
		out["lastStartTimestamp"] = gcpWritten(t.started)
	}
	if !t.stopped.IsZero() {
		out["lastStopTimestamp"] = gcpWritten(t.stopped)
	}
}

func (g gcp) viewDisks(t *gcpThing) []any {
	var all []any
	for i, d := range t.disks {
		all = append(all, map[string]any{
			"kind": "compute#attachedDisk", "type": "PERSISTENT", "mode": "READ_WRITE", "source": gcpHost + g.account.pathOf(d), "index": i,
			"deviceName": "persistent-disk-" + strconv.Itoa(i), "boot": i == 0, "autoDelete": d.autoDelete, "interface": "SCSI",
			"diskSizeGb": d.props["sizeGb"], "architecture": t.machine.series.arch,
		})
	}
	return all
}

func (g gcp) viewInterface(t *gcpThing, i int, nic map[string]any) {
	network, subnet := g.account.interfaceOf(nic, t.region())
	nic["kind"], nic["name"], nic["networkIP"], nic["stackType"] = "compute#networkInterface", "nic"+strconv.Itoa(i), t.private, "IPV4_ONLY"
	if network != nil {
		nic["network"] = gcpHost + g.account.pathOf(network)
	}
	if subnet != nil {
		nic["subnetwork"] = gcpHost + g.account.pathOf(subnet)
	}
	nic["fingerprint"] = gcpFingerprint(nic["network"])
	for _, access := range listOf(nic, "accessConfigs") {
		access["kind"], access["networkTier"] = "compute#accessConfig", "PREMIUM"
		if textOf(access, "type") == "" {
			access["type"] = "ONE_TO_ONE_NAT"
		}
		if textOf(access, "name") == "" {
			access["name"] = "External NAT"
		}
		if t.server.ipv4 != nil && t.server.state != stateOff {
			access["natIP"] = t.server.ipv4.address
		}
	}
}

// deleteInstance starts the end of an instance. Once more is another
// operation, that ends with the first.
func (g gcp) deleteInstance(t *gcpThing) error {
	if protected, _ := t.props["deletionProtection"].(bool); protected {
		return gcpFail(http.StatusBadRequest, "invalid", "Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. Set protection to false to delete the resource.'.")
	}
	if t.ending.IsZero() {
		t.ending = g.now.Add(gcpDeleteTakes + g.sim.stuckFor(t.server))
		t.server.state = stateDeleting
		g.sim.powerOff(t.server)
	}
	return g.start("delete", t, t.ending.Sub(g.now), func(now time.Time) *gcpOpFailure {
		if g.account.has(t) {
			g.end(t, now)
		}
		return nil
	})
}

// end takes an instance away, with its address and the disks that are to go
// with it.
func (g gcp) end(t *gcpThing, now time.Time) {
	s := t.server
	g.account.drop(t)
	delete(s.project.servers, s.id)
	s.state = stateDeleting
	s.entry.DeletedAt = now
	g.dropAddress(t, now)
	for _, d := range t.disks {
		d.user, d.entry.Server = nil, ""
		if d.autoDelete && g.sim.hit([]Effect{EffectLeaveBehind}, gcpName, "delete disk", d.name) == nil {
			g.account.gone(d, now)
		}
	}
	g.sim.endGuest(s)
}

// dropAddress gives an instance's address back.
func (g gcp) dropAddress(t *gcpThing, now time.Time) {
	ip := t.server.ipv4
	if ip == nil {
		return
	}
	t.server.ipv4 = nil
	if ip.entry != nil {
		ip.entry.DeletedAt = now
	}
	if address := g.account.addressOf(ip.address); address != nil {
		address.user, address.entry.Server = nil, ""
	}
}

// act does something to an instance that takes a while.
func (g gcp) act(kind string, takes time.Duration, do func(t *gcpThing, now time.Time)) error {
	t, err := g.findThing(gcpInstances)
	if err != nil {
		return err
	}
	if s := t.status(); s != "RUNNING" && s != "TERMINATED" {
		return gcpFail(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", g.account.pathOf(t))
	}
	if kind == "stop" && t.server.state == stateRunning {
		g.sim.powerOff(t.server)
	}
	return g.start(kind, t, takes, func(now time.Time) *gcpOpFailure {
		if g.account.has(t) && t.ending.IsZero() {
			do(t, now)
		}
		return nil
	})
}

func (g gcp) power(t *gcpThing, now time.Time) {
	t.started = now
	g.sim.powerOn(t.server, now)
}

// startInstance is done when the machine runs, as an insert is.
func (g gcp) startInstance() error {
	t, err := g.findThing(gcpInstances)
	if err != nil {
		return err
	}
	if t.server.state == stateOff {
		g.sim.after(g.now, gcpStagedTakes, func(now time.Time) {
			if g.account.has(t) && t.ending.IsZero() && t.server.state == stateOff {
				g.giveAddress(t, now)
				g.power(t, now)
			}
		})
	}
	return g.act("start", gcpInsertTakes, func(*gcpThing, time.Time) {})
}

// stopInstance gives the address back too.
func (g gcp) stopInstance() error {
	return g.act("stop", gcpStopTakes, func(t *gcpThing, now time.Time) {
		t.server.state, t.stopped = stateOff, now
		g.dropAddress(t, now)
	})
}

func (g gcp) resetInstance() error {
	return g.act("reset", gcpActTakes, func(t *gcpThing, now time.Time) {
		if t.server.state == stateRunning {
			g.sim.restart(t.server, now)
		}
	})
}

// change replaces a part of an instance, when who asks has seen its newest
// state.
func (g gcp) change(kind string, do func(t *gcpThing, body map[string]any) (seen, is string, err error)) error {
	t, err := g.findThing(gcpInstances)
	if err != nil {
		return err
	}
	body, err := g.read()
	if err != nil {
		return err
	}
	before, _ := copied(t.props).(map[string]any)
	seen, is, err := do(t, body)
	if err == nil && seen != is {
		err = gcpFail(http.StatusPreconditionFailed, "conditionNotMet", "Supplied fingerprint does not match current metadata fingerprint.")
	}
	if err != nil {
		t.props = before
		return err
	}
	return g.start(kind, t, gcpActTakes, nil)
}

func (g gcp) setLabels() error {
	return g.change("setLabels", func(t *gcpThing, body map[string]any) (string, string, error) {
		is := gcpFingerprint(t.props["labels"])
		t.props["labels"] = body["labels"]
		return textOf(body, "labelFingerprint"), is, gcpCheckLabels("labels", body["labels"])
	})
}

func (g gcp) setTags() error {
	return g.change("setTags", func(t *gcpThing, body map[string]any) (string, string, error) {
		is := gcpFingerprint(valueOf(t.props, "tags", "items"))
		t.props["tags"] = map[string]any{"items": body["items"]}
		return textOf(body, "fingerprint"), is, gcpCheckInstanceTags(t.props)
	})
}

func (g gcp) setMetadata() error {
	return g.change("setMetadata", func(t *gcpThing, body map[string]any) (string, string, error) {
		is := gcpFingerprint(valueOf(t.props, "metadata", "items"))
		t.props["metadata"] = map[string]any{"items": body["items"]}
		_, err := gcpCheckMetadata(t.props["metadata"])
		return textOf(body, "fingerprint"), is, err
	})
}

func (g gcp) setDeletionProtection() error {
	t, err := g.findThing(gcpInstances)
	if err != nil {
		return err
	}
	t.props["deletionProtection"] = g.r.URL.Query().Get("deletionProtection") != "false"
	return g.start("setDeletionProtection", t, gcpActTakes, nil)
}

func (g gcp) serialPort() error {
	t, err := g.findThing(gcpInstances)
	if err != nil {
		return err
	}
	if s := t.server.state; s == stateInitializing || s == stateStarting && t.server.guest == nil {
		return gcpFail(http.StatusBadRequest, "resourceNotReady", "The resource '%s' is not ready", g.account.pathOf(t))
	}
	text := t.server.consoleText()
	from, _ := strconv.Atoi(g.r.URL.Query().Get("start"))
	from = max(0, min(from, len(text)))
	out := map[string]any{
		"kind": "compute#serialPortOutput", "contents": text[from:], "start": strconv.Itoa(from), "next": strconv.Itoa(len(text)),
		"selfLink": gcpHost + g.account.pathOf(t) + "/serialPort",
	}
	g.send(out)
	return nil
}
