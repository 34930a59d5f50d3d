package provision

import (
	"context"
	"net/http"
	"net/url"
	"slices"
)

// Create: the SSH keys.

// sshKeys returns the ids of the keys that a create names. Without any it is
// the shared key that nobody holds: Hetzner makes and mails a root password
// for a server that has none.
func (h *Hetzner) sshKeys(ctx context.Context, keys []string) ([]int64, error) {
	if len(keys) == 0 {
		id, err := h.nobodysKey(ctx)
		return []int64{id}, err
	}
	var ids []int64
	for _, k := range keys {
		id, err := h.sshKey(ctx, k)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// nobodysKey is made once per account; its private half was never stored.
func (h *Hetzner) nobodysKey(ctx context.Context) (int64, error) {
	const op = "ensure the key that keeps root passwords from being mailed"
	name := h.labels.key(roleNoLogin)
	return h.keys.get(ctx, roleNoLogin, func(ctx context.Context) (int64, error) {
		k, found, err := h.findKey(ctx, op, "name", name)
		if err == nil && !found {
			var pub publicKey
			if pub, err = newNobodysKey(); err == nil {
				k, err = h.uploadKey(ctx, op, hzCreateKey{Name: name, PublicKey: pub.text, Labels: h.labels.shared(roleNoLogin)}, "name", name)
			}
		}
		if err != nil {
			return 0, err
		}
		if k.Labels[h.labels.key(labelRole)] != roleNoLogin || !h.labels.isOurs(k.Labels) {
			return 0, h.fail(ErrConflict, op, "rename that key, or use another short name",
				"there is an SSH key %q (id %d) that was not made for this: somebody may hold it, so it is not used", name, k.ID)
		}
		return k.ID, nil
	})
}

// sshKey finds a key by its name, or by its content, and uploads the latter
// when the account does not have it. An uploaded key stays: it is shared by
// all servers that name it.
func (h *Hetzner) sshKey(ctx context.Context, text string) (int64, error) {
	const op = "find the SSH key"
	key, isText, err := parsePublicKey(text)
	if err != nil {
		return 0, invalidError("hetzner", op, "%v", err)
	}
	if !isText {
		return h.keys.get(ctx, "name:"+text, func(ctx context.Context) (int64, error) {
			k, found, err := h.findKey(ctx, op, "name", text)
			if err == nil && !found {
				err = h.fail(ErrInvalid, op, "give a name that the project's list of SSH keys has, or the public key itself",
					"there is no SSH key named %q, and it is no public key", clip(text, 60))
			}
			return k.ID, err
		})
	}
	return h.keys.get(ctx, "fingerprint:"+key.fingerprint, func(ctx context.Context) (int64, error) {
		k, found, err := h.findKey(ctx, op, "fingerprint", key.fingerprint)
		if err == nil && !found {
			k, err = h.uploadKey(ctx, "upload the SSH key",
				hzCreateKey{Name: key.name(h.labels.short), PublicKey: key.text, Labels: h.labels.shared(roleLogin)}, "fingerprint", key.fingerprint)
		}
		return k.ID, err
	})
}

func (h *Hetzner) findKey(ctx context.Context, op, by, value string) (hzKey, bool, error) {
	list, err := hzList[hzKeys](ctx, h, op, "/ssh_keys", url.Values{by: {value}})
	if err != nil {
		return hzKey{}, false, err
	}
	for _, k := range list {
		if by == "name" && k.Name == value || by == "fingerprint" && k.Fingerprint == value {
			return k, true, nil
		}
	}
	return hzKey{}, false, nil
}

// uploadKey makes a key, and finds it when another was faster or the answer
// was lost.
func (h *Hetzner) uploadKey(ctx context.Context, op string, want hzCreateKey, by, value string) (hzKey, error) {
	var one hzOneKey
	err := h.api.do(ctx, call{op: op, method: http.MethodPost, path: "/ssh_keys", body: want}, &one)
	if err == nil && one.Key != nil && one.Key.ID > 0 {
		return *one.Key, nil
	}
	if err != nil && !unclear(err) && !hasCode(err, "uniqueness_error") {
		return hzKey{}, err
	}
	k, found, lookErr := h.findKey(ctx, op, by, value)
	switch {
	case lookErr != nil:
		return hzKey{}, lookErr
	case found:
		return k, nil
	case err == nil:
		err = h.fail(ErrUnavailable, op, "", "the answer names no SSH key")
	}
	return hzKey{}, err
}
