package cloudsim

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// Volumes, network interfaces, elastic addresses and key pairs.

type awsVolume struct {
	id, region, zone, kind string
	gb                     int
	encrypted, stays       bool
	instance               *awsInstance // nil: attached to none
	created                time.Time
	entry                  *LedgerEntry
}

type awsInterface struct {
	id, region, private string
	subnet              *awsSubnet
	groups              []*awsGroup
	instance            *awsInstance
	since               time.Time
}

type awsAddress struct {
	id, region, address string
	entry               *LedgerEntry
}

type awsKey struct {
	id, region, name, fingerprint, text, kind string
	created                                   time.Time
}

func (n *awsInterface) viewGroups() awsList {
	list := awsList{}
	for _, g := range n.groups {
		list = append(list, awsFields{{"groupId", g.id}, {"groupName", g.name}})
	}
	return list
}

func (a awsRequest) describeVolumes() (awsFields, error) {
	q, err := a.query("VolumeId")
	if err != nil {
		return nil, err
	}
	for _, id := range q.ids {
		if v := a.account.volumes[id]; v == nil || v.region != a.region {
			return nil, awsFail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
		}
	}
	list := awsList{}
	for _, v := range inRegion(a.account.volumes, a.region, func(v *awsVolume) string { return v.region }) {
		status := "available"
		if v.instance != nil {
			status = "in-use"
		}
		ok, err := q.matches(a.account, v.id, func(name string) ([]string, bool) {
			r, known := map[string]string{"status": status, "volume-id": v.id, "volume-type": v.kind, "availability-zone": v.zone}[name]
			if name == "attachment.instance-id" {
				known = true
				if v.instance != nil {
					r = v.instance.id
				}
			}
			return []string{r}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, v.id)) {
			list = append(list, a.viewVolume(v, status))
		}
	}
	page, token := q.page(list)
	return awsFields{{"volumeSet", page}, {"nextToken", token}}, nil
}

func (a awsRequest) viewVolume(v *awsVolume, status string) awsFields {
	attached := awsList{}
	if v.instance != nil {
		attached = append(attached, awsFields{
			{"volumeId", v.id}, {"instanceId", v.instance.id}, {"device", "/dev/sda1"}, {"status", "attached"}, {"attachTime", v.created}, {"deleteOnTermination", !v.stays},
		})
	}
	return awsFields{
		{"volumeId", v.id}, {"size", v.gb}, {"availabilityZone", v.zone}, {"status", status}, {"createTime", v.created}, {"volumeType", v.kind},
		{"iops", 3000}, {"throughput", 125}, {"encrypted", v.encrypted}, {"attachmentSet", attached}, {"tagSet", a.account.tagSet(v.id)},
	}
}

func (a awsRequest) deleteVolume() (awsFields, error) {
	id := a.form.text("VolumeId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	v := a.account.volumes[id]
	switch {
	case v == nil || v.region != a.region:
		return nil, awsFail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	case v.instance != nil:
		return nil, awsFail("VolumeInUse", "Volume %s is currently attached to %s", id, v.instance.id)
	}
	delete(a.account.volumes, id)
	delete(a.account.tags, id)
	v.entry.DeletedAt = a.now
	return awsFields{{"return", true}}, nil
}

func (a awsRequest) describeInterfaces() (awsFields, error) {
	q, err := a.query("NetworkInterfaceId")
	if err != nil {
		return nil, err
	}
	list := awsList{}
	for _, n := range inRegion(a.account.cards, a.region, func(n *awsInterface) string { return n.region }) {
		ok, err := q.matches(a.account, n.id, func(name string) ([]string, bool) {
			if name == "group-id" {
				var ids []string
				for _, g := range n.groups {
					ids = append(ids, g.id)
				}
				return ids, true
			}
			v, known := map[string]string{"network-interface-id": n.id, "status": "in-use", "subnet-id": n.subnet.id, "vpc-id": n.subnet.vpc.id, "attachment.instance-id": n.instance.id}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, n.id)) {
			list = append(list, awsFields{
				{"networkInterfaceId", n.id}, {"subnetId", n.subnet.id}, {"vpcId", n.subnet.vpc.id}, {"availabilityZone", n.subnet.zone},
				{"ownerId", a.account.id}, {"requesterManaged", false}, {"status", "in-use"}, {"privateIpAddress", n.private}, {"sourceDestCheck", true},
				{"groupSet", n.viewGroups()}, {"interfaceType", "interface"}, {"tagSet", a.account.tagSet(n.id)},
				{"attachment", awsFields{
					{"attachmentId", "eni-attach-" + n.id[4:]}, {"instanceId", n.instance.id}, {"instanceOwnerId", a.account.id},
					{"deviceIndex", 0}, {"status", "attached"}, {"attachTime", n.since}, {"deleteOnTermination", true},
				}},
			})
		}
	}
	page, token := q.page(list)
	return awsFields{{"networkInterfaceSet", page}, {"nextToken", token}}, nil
}

func (a awsRequest) deleteInterface() (awsFields, error) {
	id := a.form.text("NetworkInterfaceId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	n := a.account.cards[id]
	if n == nil || n.region != a.region {
		return nil, awsFail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	}
	return nil, awsFail("InvalidNetworkInterface.InUse", "Network interface: [%s] is currently in use.", id)
}

func (a awsRequest) allocateAddress() (awsFields, error) {
	a.form.text("Domain")
	tags, err := a.form.tags("elastic-ip")
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	if len(inRegion(a.account.addresses, a.region, func(d *awsAddress) string { return d.region })) >= 5 {
		return nil, awsFail("AddressLimitExceeded", "The maximum number of addresses has been reached.")
	}
	d := &awsAddress{id: a.sim.awsID("eipalloc"), region: a.region, address: a.sim.world.ipv4()}
	d.entry = a.sim.world.enter(LedgerEntry{
		Provider: awsName, Project: a.project.name, Kind: "public-ip", ID: d.id, Name: d.address, CreatedAt: a.now, Hourly: awsAddressPrice, Currency: "USD",
	})
	a.account.addresses[d.id] = d
	a.account.setTags(d.id, tags["elastic-ip"])
	return awsFields{{"publicIp", d.address}, {"domain", "vpc"}, {"allocationId", d.id}, {"networkBorderGroup", a.region}}, nil
}

func (a awsRequest) describeAddresses() (awsFields, error) {
	q, err := a.query("AllocationId")
	if err != nil {
		return nil, err
	}
	list := awsList{}
	for _, d := range inRegion(a.account.addresses, a.region, func(d *awsAddress) string { return d.region }) {
		ok, err := q.matches(a.account, d.id, func(name string) ([]string, bool) {
			v, known := map[string]string{"allocation-id": d.id, "public-ip": d.address, "domain": "vpc"}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(q.ids) == 0 || slices.Contains(q.ids, d.id)) {
			list = append(list, awsFields{{"publicIp", d.address}, {"allocationId", d.id}, {"domain", "vpc"}, {"networkBorderGroup", a.region}, {"tagSet", a.account.tagSet(d.id)}})
		}
	}
	return awsFields{{"addressesSet", list}}, nil
}

func (a awsRequest) releaseAddress() (awsFields, error) {
	id := a.form.text("AllocationId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	d := a.account.addresses[id]
	if d == nil || d.region != a.region {
		return nil, awsFail("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", id)
	}
	delete(a.account.addresses, id)
	delete(a.account.tags, id)
	d.entry.DeletedAt = a.now
	return awsFields{{"return", true}}, nil
}

func (a awsRequest) importKey() (awsFields, error) {
	name, material := a.form.text("KeyName"), a.form.text("PublicKeyMaterial")
	tags, err := a.form.tags("key-pair")
	if err != nil {
		return nil, err
	}
	if err := a.parsed(); err != nil {
		return nil, err
	}
	text, err := base64.StdEncoding.DecodeString(material)
	if err != nil {
		return nil, awsFail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	fingerprint, err := sshFingerprint(string(text))
	kind, _, _ := strings.Cut(string(text), " ")
	switch {
	case err != nil || kind != "ssh-ed25519" && kind != "ssh-rsa":
		return nil, awsFail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	case name == "" || len(name) > 255:
		return nil, awsFail("InvalidParameterValue", "Invalid value '%s' for keyPairName.", name)
	case a.account.keys[a.region+"/"+name] != nil:
		return nil, awsFail("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	if err := a.dryRun(); err != nil {
		return nil, err
	}
	k := &awsKey{id: a.sim.awsID("key"), region: a.region, name: name, fingerprint: fingerprint, text: string(text), kind: strings.TrimPrefix(kind, "ssh-"), created: a.now}
	a.account.keys[a.region+"/"+name] = k
	a.account.setTags(k.id, tags["key-pair"])
	return awsFields{{"keyName", name}, {"keyFingerprint", fingerprint}, {"keyPairId", k.id}, {"tagSet", a.account.tagSet(k.id)}}, nil
}

func (a awsRequest) describeKeys() (awsFields, error) {
	withText, names := a.form.flag("IncludePublicKey", false), a.form.list("KeyName")
	q, err := a.query("KeyPairId")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if a.account.keys[a.region+"/"+name] == nil {
			return nil, awsFail("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
		}
	}
	list := awsList{}
	for _, k := range inRegion(a.account.keys, a.region, func(k *awsKey) string { return k.region }) {
		ok, err := q.matches(a.account, k.id, func(name string) ([]string, bool) {
			v, known := map[string]string{"key-name": k.name, "key-pair-id": k.id, "fingerprint": k.fingerprint}[name]
			return []string{v}, known
		})
		if err != nil {
			return nil, err
		}
		if !ok || len(names) > 0 && !slices.Contains(names, k.name) || len(q.ids) > 0 && !slices.Contains(q.ids, k.id) {
			continue
		}
		f := awsFields{
			{"keyPairId", k.id}, {"keyName", k.name}, {"keyFingerprint", k.fingerprint}, {"keyType", k.kind}, {"createTime", k.created}, {"tagSet", a.account.tagSet(k.id)},
		}
		if withText {
			f = append(f, awsField{"publicKey", k.text})
		}
		list = append(list, f)
	}
	return awsFields{{"keySet", list}}, nil
}

// deleteKey succeeds for one that is not there.
func (a awsRequest) deleteKey() (awsFields, error) {
	name, id := a.form.text("KeyName"), a.form.text("KeyPairId")
	if err := a.parsed(); err != nil {
		return nil, err
	}
	for key, k := range a.account.keys {
		if k.region == a.region && (k.name == name || k.id == id) {
			delete(a.account.keys, key)
			delete(a.account.tags, k.id)
			id = k.id
		}
	}
	return awsFields{{"return", true}, {"keyPairId", id}}, nil
}
