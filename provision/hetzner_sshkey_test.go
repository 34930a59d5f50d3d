package provision_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

const (
	somebodysKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f alice@example"
	somebodysKey2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAfHh0cGxoZGBcWFRQTEhEQDw4NDAsKCQgHBgUEAwIB"
)

// lastKeys are the ids of the SSH keys in the last create.
func (f *fakeHetzner) lastKeys(t *testing.T) []int64 {
	t.Helper()
	for _, b := range slices.Backward(f.bodies) {
		if text, ok := strings.CutPrefix(b, "POST /servers "); ok {
			var body struct {
				SSHKeys []int64 `json:"ssh_keys"`
			}
			if err := json.Unmarshal([]byte(text), &body); err != nil {
				t.Fatal(err)
			}
			return body.SSHKeys
		}
	}
	t.Fatal("no create")
	return nil
}

func TestHetznerKeysByNameAndByText(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		named := f.add("ssh_keys", object{"name": "alice laptop", "fingerprint": "aa:bb"})["id"].(int64)
		there := f.add("ssh_keys", object{"name": "uploaded by hand", "fingerprint": fingerprint(somebodysKey2)})["id"].(int64)
		opts := nodeOpts("node-1")
		opts.SSHKeys = []string{"alice laptop", somebodysKey, somebodysKey2, somebodysKey}
		mustCreate(t, h, opts)
		got := f.lastKeys(t)
		if len(got) != 3 || got[0] != named || got[2] != there {
			t.Errorf("keys %v, want %d, the uploaded one, %d", got, named, there)
		}
		uploaded := f.tables["ssh_keys"][len(f.tables["ssh_keys"])-1]
		if uploaded["id"] != got[1] || strings.Contains(uploaded["public_key"].(string), "alice") || uploaded["labels"].(object)["managed-by"] != "acme" {
			t.Errorf("uploaded %v", uploaded)
		}
		opts = nodeOpts("node-2")
		opts.SSHKeys = []string{"alice laptop", somebodysKey}
		if warm := f.since(func() { mustCreate(t, h, opts) }); !slices.Equal(warm, []string{"POST /servers"}) {
			t.Errorf("a warm create with keys made the requests %v", warm)
		}
		rs, err := h.ListResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if r.Kind == provision.KindSSHKey && !r.Shared {
				t.Errorf("%+v is not shared", r)
			}
		}
	})
}

func TestHetznerRefusesKeysThatAreNone(t *testing.T) {
	hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
		for what, key := range map[string]string{
			"private":      "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0LXNlY3JldC1zZWNyZXQ=\n",
			"cut":          somebodysKey[:40],
			"not base64":   "ssh-ed25519 ????",
			"wrong type":   "ssh-rsa" + strings.TrimPrefix(somebodysKey, "ssh-ed25519"),
			"unknown name": "bob",
			"empty":        "",
			"two lines":    somebodysKey + "\n" + somebodysKey2,
		} {
			opts := nodeOpts("node-1")
			opts.SSHKeys = []string{key}
			_, _, err := h.CreateServer(t.Context(), opts)
			if !errors.Is(err, provision.ErrInvalid) || strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if f.count("POST /servers") != 0 {
			t.Error("a server was asked for")
		}
	})
}

// TestHetznerNobodysKey: what keeps the password from being mailed is one
// key per account, and another for another account.
func TestHetznerNobodysKey(t *testing.T) {
	seen := map[any]bool{}
	for range 2 {
		hetznerTest(t, func(t *testing.T, f *fakeHetzner, h *provision.Hetzner) {
			mustCreate(t, h, nodeOpts("node-1"))
			mustCreate(t, openHetzner(t, f, goodToken), nodeOpts("node-2"))
			if got := f.names("ssh_keys"); !slices.Equal(got, []string{"acme-no-login"}) {
				t.Fatalf("keys %v", got)
			}
			k := f.tables["ssh_keys"][0]
			if !strings.HasPrefix(k["public_key"].(string), "ssh-ed25519 ") || k["labels"].(object)["acme-role"] != "no-login" {
				t.Errorf("key %v", k)
			}
			seen[k["public_key"]] = true
		})
	}
	if len(seen) != 2 {
		t.Error("two accounts have the same key")
	}
}
