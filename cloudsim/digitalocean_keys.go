package cloudsim

import (
	"net/http"
	"strings"
)

// SSH keys.

func (d digitalOcean) key(k *sshKey) map[string]any {
	return map[string]any{"id": k.id, "name": k.name, "fingerprint": k.fingerprint, "public_key": k.text}
}

// keyOf finds a key by number or fingerprint.
func (d digitalOcean) keyOf(ref string) *sshKey {
	for _, k := range sorted(d.project.keys) {
		if k.fingerprint == ref || itoa(k.id) == ref {
			return k
		}
	}
	return nil
}

func (d digitalOcean) createKey() error {
	var b struct {
		Name string `json:"name"`
		Text string `json:"public_key"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	if b.Name == "" {
		return doBad("Name can't be blank")
	}
	print, err := sshFingerprint(b.Text)
	switch {
	case err != nil:
		return doBad("Key invalid, key should be of the format `type key [comment]`")
	case d.keyOf(print) != nil:
		return doBad("SSH Key is already in use on your account")
	}
	k := &sshKey{id: d.sim.world.id(digitalOceanName, "ssh key"), name: b.Name, fingerprint: print, text: strings.TrimSpace(b.Text), created: d.now}
	d.project.keys[k.id] = k
	d.send(http.StatusCreated, map[string]any{"ssh_key": d.key(k)})
	return nil
}

func (d digitalOcean) listKeys() error {
	var all []map[string]any
	for _, k := range sorted(d.project.keys) {
		all = append(all, d.key(k))
	}
	return doPage(d, "ssh_keys", all)
}

func (d digitalOcean) findKey() (*sshKey, error) {
	if k := d.keyOf(d.r.PathValue("id")); k != nil {
		return k, nil
	}
	return nil, doNotFound()
}

func (d digitalOcean) getKey() error {
	k, err := d.findKey()
	if err != nil {
		return err
	}
	d.send(http.StatusOK, map[string]any{"ssh_key": d.key(k)})
	return nil
}

func (d digitalOcean) updateKey() error {
	k, err := d.findKey()
	if err != nil {
		return err
	}
	var b struct {
		Name string `json:"name"`
	}
	if err := d.read(&b); err != nil {
		return err
	}
	if b.Name == "" {
		return doBad("Name can't be blank")
	}
	k.name = b.Name
	d.send(http.StatusOK, map[string]any{"ssh_key": d.key(k)})
	return nil
}

func (d digitalOcean) deleteKey() error {
	k, err := d.findKey()
	if err != nil {
		return err
	}
	delete(d.project.keys, k.id)
	return d.done()
}
