package agent

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/enroll"
)

// Files in the identity directory. The identity is one file, so that it is
// replaced in one step.
const (
	identityFile = "identity.json"
	pendingFile  = "pending.key" // the key of a join that has not been answered yet
)

// record is what identityFile holds.
type record struct {
	NodeID   string `json:"node_id"`
	NodeName string `json:"node_name"`
	credentials
	CA   string               `json:"ca"`
	Pins []enroll.Fingerprint `json:"pins"`
	// TokenID is the public half of the token that was used, by which copies
	// of it are recognised later.
	TokenID string `json:"token_id"`
	// MachineID is what Config.machineID said at the time of the join.
	MachineID string `json:"machine_id,omitempty"`
	// Previous is the identity before the last renewal, until the new one was
	// seen to work.
	Previous *credentials `json:"previous,omitempty"`
}

// credentials are a certificate and its key.
type credentials struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

func (r record) identity() *enroll.Identity {
	return &enroll.Identity{
		NodeID: r.NodeID, NodeName: r.NodeName,
		CertificatePEM: []byte(r.Certificate), KeyPEM: []byte(r.Key), CAPEM: []byte(r.CA),
	}
}

func (r *record) set(id *enroll.Identity) {
	r.NodeID, r.NodeName = id.NodeID, id.NodeName
	r.Certificate, r.Key, r.CA = string(id.CertificatePEM), string(id.KeyPEM), string(id.CAPEM)
}

// vault is the identity directory.
type vault struct{ dir string }

func openVault(dir string) (vault, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return vault{}, fmt.Errorf("identity directory: %w", err)
	}
	// It may have been made by somebody with other thoughts on modes.
	if err := os.Chmod(dir, 0o700); err != nil {
		return vault{}, fmt.Errorf("identity directory: %w", err)
	}
	// What an interrupted write left holds a key.
	for _, name := range []string{identityFile, pendingFile} {
		left, err := filepath.Glob(filepath.Join(dir, name+".*"))
		if err != nil {
			return vault{}, fmt.Errorf("identity directory: %w", err)
		}
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				return vault{}, fmt.Errorf("identity directory: %w", err)
			}
		}
	}
	return vault{dir: dir}, nil
}

// load returns the identity, or false when the node has not joined yet.
func (v vault) load() (record, bool, error) {
	data, err := os.ReadFile(filepath.Join(v.dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("identity: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, false, v.damaged()
	}
	if _, err := tls.X509KeyPair([]byte(r.Certificate), []byte(r.Key)); err != nil || r.NodeID == "" {
		return record{}, false, v.damaged()
	}
	return r, true, nil
}

func (v vault) damaged() error {
	return fmt.Errorf("identity: %s in %s is damaged: put it back, or remove it and give the node a new join token", identityFile, v.dir)
}

func (v vault) save(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return v.write(identityFile, append(data, '\n'))
}

// pendingKey returns the key to join with: the one of an earlier attempt if
// there was one, since an answer that got lost was for that key alone.
func (v vault) pendingKey() ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(v.dir, pendingFile))
	if err == nil {
		if _, err := enroll.DecodeKey(data); err == nil {
			return data, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity: %w", err)
	}
	_, data, err = enroll.NewKey()
	if err != nil {
		return nil, err
	}
	return data, v.write(pendingFile, data)
}

func (v vault) dropPending() error {
	err := os.Remove(filepath.Join(v.dir, pendingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write puts a file in place in one step, and on disk before it returns.
func (v vault) write(name string, data []byte) error {
	f, err := os.CreateTemp(v.dir, name+".*") // made 0600
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(v.dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("identity: %w", err)
	}
	d, err := os.Open(v.dir)
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// machineID names this machine so that a copy of its disk on another machine
// is told apart: the firmware's UUID, which survives a reboot and whatever
// becomes of the metadata service, or cloud-init's instance id where there is
// none. Empty where nothing says.
func (c Config) machineID() string {
	for _, s := range []struct{ kind, path string }{
		{"dmi", "/sys/class/dmi/id/product_uuid"},
		{"instance", "/var/lib/cloud/data/instance-id"},
	} {
		data, err := os.ReadFile(c.path(s.path))
		id := strings.ToLower(strings.TrimSpace(string(data)))
		// The last is cloud-init's word for "no datasource answered".
		if err == nil && id != "" && id != "iid-datasource-none" {
			return s.kind + ":" + id
		}
	}
	return ""
}

// otherMachine tells whether two machine ids are known to be of two machines.
func otherMachine(a, b string) bool {
	ka, _, oka := strings.Cut(a, ":")
	kb, _, okb := strings.Cut(b, ":")
	return oka && okb && ka == kb && a != b
}
