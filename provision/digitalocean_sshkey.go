package provision

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// Create: the SSH keys.

// sshKeys returns the ids of the keys that a create names. Without any it is
// the shared key that nobody holds: DigitalOcean makes and mails a root
// password for a Droplet that has none.
func (d *DigitalOcean) sshKeys(ctx context.Context, keys []string) ([]int64, error) {
	if len(keys) == 0 {
		id, err := d.nobodysKey(ctx)
		return []int64{id}, err
	}
	var ids []int64
	for _, k := range keys {
		id, err := d.sshKey(ctx, k)
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
// Names of keys are not unique, so that two who make it at the same time make
// two: each looks again, and the younger one is removed before it is used.
func (d *DigitalOcean) nobodysKey(ctx context.Context) (int64, error) {
	const op = "ensure the key that keeps root passwords from being mailed"
	return d.keys.get(ctx, roleNoLogin, func(ctx context.Context) (int64, error) {
		name := d.labels.key(roleNoLogin)
		is := func(k doKey) bool { return k.Name == name }
		k, found, err := d.findKey(ctx, op, is)
		if err != nil || found {
			return k.ID, err
		}
		pub, err := newNobodysKey()
		if err != nil {
			return 0, err
		}
		k, err = d.uploadKey(ctx, op, doCreateKey{Name: name, PublicKey: pub.text}, is)
		if err != nil {
			return 0, err
		}
		first, found, err := d.findKey(ctx, op, is)
		if err == nil && found && first.ID != k.ID {
			k, err = first, d.remove(ctx, op, "/v2/account/keys/"+doID(k.ID))
		}
		return k.ID, err
	})
}

// sshKey finds a key by its name, or by its content, and uploads the latter
// when the account does not have it. An uploaded key stays: it is shared by
// all servers that name it.
func (d *DigitalOcean) sshKey(ctx context.Context, text string) (int64, error) {
	const op = "find the SSH key"
	key, isText, err := parsePublicKey(text)
	if err != nil {
		return 0, invalidError("digitalocean", op, "%v", err)
	}
	if !isText {
		return d.keys.get(ctx, "name:"+text, func(ctx context.Context) (int64, error) {
			k, found, err := d.findKey(ctx, op, func(k doKey) bool { return k.Name == text })
			if err == nil && !found {
				err = d.fail(ErrInvalid, op, "give a name that the account's list of SSH keys has, or the public key itself",
					"there is no SSH key named %q, and it is no public key", clip(text, 60))
			}
			return k.ID, err
		})
	}
	return d.keys.get(ctx, "fingerprint:"+key.fingerprint, func(ctx context.Context) (int64, error) {
		var one doOneKey
		err := d.get(ctx, op, "/v2/account/keys/"+key.fingerprint, nil, &one)
		if err == nil && one.Key != nil && one.Key.ID > 0 {
			return one.Key.ID, nil
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, err
		}
		k, err := d.uploadKey(ctx, "upload the SSH key", doCreateKey{Name: key.name(d.labels.short), PublicKey: key.text},
			func(k doKey) bool { return k.Fingerprint == key.fingerprint })
		return k.ID, err
	})
}

// forgetKeys drops the ids that a create of these options remembers.
func (d *DigitalOcean) forgetKeys(opts CreateOpts) {
	if len(opts.SSHKeys) == 0 {
		d.keys.forget(roleNoLogin)
		return
	}
	for _, k := range opts.SSHKeys {
		d.keys.forget("name:" + k)
		if key, isText, err := parsePublicKey(k); isText && err == nil {
			d.keys.forget("fingerprint:" + key.fingerprint)
		}
	}
}

// findKey finds the oldest key that will do.
func (d *DigitalOcean) findKey(ctx context.Context, op string, is func(doKey) bool) (found doKey, ok bool, err error) {
	list, err := doList[doKeys](ctx, d, op, "/v2/account/keys", nil)
	for _, k := range list {
		if is(k) && (!ok || k.ID < found.ID) {
			found, ok = k, true
		}
	}
	return found, ok, err
}

// uploadKey makes a key, and finds it when another was faster or the answer
// was lost.
func (d *DigitalOcean) uploadKey(ctx context.Context, op string, want doCreateKey, is func(doKey) bool) (doKey, error) {
	var one doOneKey
	err := d.api.do(ctx, call{op: op, method: http.MethodPost, path: "/v2/account/keys", body: want}, &one)
	if err == nil && one.Key != nil && one.Key.ID > 0 {
		return *one.Key, nil
	}
	if err != nil && !unclear(err) && !errors.Is(err, ErrConflict) {
		return doKey{}, err
	}
	k, found, lookErr := d.findKey(ctx, op, is)
	switch {
	case lookErr != nil:
		return doKey{}, lookErr
	case found:
		return k, nil
	case err == nil:
		err = d.fail(ErrUnavailable, op, "", "the answer names no SSH key")
	}
	return doKey{}, err
}
