package cloudsim

import (
	"crypto/md5" //nolint:gosec // the API's fingerprint of an SSH key is MD5
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// SSH keys.

func (h hetzner) sshKey(k *sshKey) any {
	return map[string]any{"id": k.id, "name": k.name, "fingerprint": k.fingerprint, "public_key": k.text, "labels": k.labels, "created": k.created}
}

// sshFingerprint is the MD5 of the key in the text, in pairs.
func sshFingerprint(text string) (string, error) {
	parts := strings.Fields(text)
	if len(parts) < 2 {
		return "", fmt.Errorf("is not a public key")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil || len(raw) < 16 || !slices.Contains([]string{"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "sk-ssh-ed25519@openssh.com"}, parts[0]) {
		return "", fmt.Errorf("is not a public key")
	}
	sum := md5.Sum(raw) //nolint:gosec // as above
	var pairs []string
	for _, b := range sum {
		pairs = append(pairs, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(pairs, ":"), nil
}

func (h hetzner) createSSHKey() error {
	var b struct {
		Name   string             `json:"name"`
		Text   string             `json:"public_key"`
		Labels *map[string]string `json:"labels"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	if b.Name == "" {
		return hetznerField("name", "must not be empty")
	}
	print, err := sshFingerprint(b.Text)
	if err != nil {
		return hetznerField("public_key", err.Error())
	}
	for _, k := range sorted(h.project.keys) {
		if k.fingerprint == print || k.name == b.Name {
			return hetznerFail(http.StatusConflict, "uniqueness_error", "SSH key not unique")
		}
	}
	labels, err := hetznerLabels(b.Labels, map[string]string{})
	if err != nil {
		return err
	}
	k := &sshKey{id: h.sim.world.id(hetznerName, "ssh key"), name: b.Name, fingerprint: print, text: strings.TrimSpace(b.Text), labels: labels, created: h.now}
	h.project.keys[k.id] = k
	h.send(http.StatusCreated, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) listSSHKeys() error {
	var all []listed
	for _, k := range sorted(h.project.keys) {
		all = append(all, listed{
			id: k.id, name: k.name, labels: k.labels, created: k.created, has: map[string]string{"fingerprint": k.fingerprint},
			show: func() any { return h.sshKey(k) },
		})
	}
	return h.list("ssh_keys", all)
}

// keyOf finds a key by id or name.
func (h hetzner) keyOf(ref string) *sshKey {
	for _, k := range sorted(h.project.keys) {
		if k.name == ref || itoa(k.id) == ref {
			return k
		}
	}
	return nil
}

func (h hetzner) findSSHKey() (*sshKey, error) {
	if k := h.project.keys[h.pathID()]; k != nil {
		return k, nil
	}
	return nil, hetznerNotFound("ssh_key", h.r.PathValue("id"))
}

func (h hetzner) getSSHKey() error {
	k, err := h.findSSHKey()
	if err != nil {
		return err
	}
	h.send(http.StatusOK, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) updateSSHKey() error {
	k, err := h.findSSHKey()
	if err != nil {
		return err
	}
	var b struct {
		Name   *string            `json:"name"`
		Labels *map[string]string `json:"labels"`
	}
	if err := h.read(&b); err != nil {
		return err
	}
	labels, err := hetznerLabels(b.Labels, k.labels)
	if err != nil {
		return err
	}
	if b.Name != nil && *b.Name != k.name {
		if *b.Name == "" {
			return hetznerField("name", "must not be empty")
		}
		if h.keyOf(*b.Name) != nil {
			return hetznerFail(http.StatusConflict, "uniqueness_error", "SSH key not unique")
		}
		k.name = *b.Name
	}
	k.labels = labels
	h.send(http.StatusOK, map[string]any{"ssh_key": h.sshKey(k)})
	return nil
}

func (h hetzner) deleteSSHKey() error {
	k, err := h.findSSHKey()
	if err != nil {
		return err
	}
	delete(h.project.keys, k.id)
	h.call.w.WriteHeader(http.StatusNoContent)
	return nil
}
