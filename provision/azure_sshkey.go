package provision

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
)

// Create: the SSH keys.

// azKeyPath is the only file that Azure puts keys into.
const azKeyPath = "/home/" + azureUser + "/.ssh/authorized_keys"

// sshKeys are the keys of a create. Azure wants one where there is no
// password.
func (a *Azure) sshKeys(ctx context.Context, keys []string) ([]azKey, error) {
	const op = "find the SSH key"
	if len(keys) == 0 {
		text, err := a.nobody()
		if err != nil {
			return nil, a.fail(ErrUnavailable, op, "", "no throw-away key can be made: %v", err)
		}
		return []azKey{{Path: azKeyPath, Data: text}}, nil
	}
	var found []azKey
	for _, k := range keys {
		key, isText, err := parsePublicKey(k)
		if err != nil {
			return nil, invalidError("azure", op, "%v", err)
		}
		text := key.text
		if !isText {
			if text, err = a.keyNamed(ctx, op, k); err != nil {
				return nil, err
			}
		}
		found = append(found, azKey{Path: azKeyPath, Data: text})
	}
	return found, nil
}

// keyNamed reads an SSH public key that the resource group holds.
func (a *Azure) keyNamed(ctx context.Context, op, name string) (string, error) {
	var k azSSHPublicKey
	err := a.get(ctx, op, a.group()+"/providers/Microsoft.Compute/sshPublicKeys/"+url.PathEscape(name), apiVersion(azCompute), &k)
	if errors.Is(err, ErrNotFound) || err == nil && k.Properties.PublicKey == "" {
		return "", a.fail(ErrInvalid, op, "give a name that az sshkey list shows for the resource group, or the public key itself",
			"there is no SSH key named %q in the resource group %q, and it is no public key", clip(name, 60), a.cred.Group)
	}
	return strings.TrimSpace(k.Properties.PublicKey), err
}

// checkAzureKeys refuses the types of keys that Azure does not take.
func checkAzureKeys(keys []string) error {
	for _, k := range keys {
		key, isText, err := parsePublicKey(k)
		if err != nil {
			return err
		}
		if kind, _, _ := strings.Cut(key.text, " "); isText && kind != "ssh-rsa" && kind != "ssh-ed25519" {
			return fmt.Errorf("an SSH key is of type %s: Azure takes ssh-ed25519 and ssh-rsa", kind)
		}
	}
	return nil
}

// newNobodysRSAKey returns a public key whose private half is gone as soon as
// this returns. It is RSA since that is the type that Azure documents.
func newNobodysRSAKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	return rsaKeyText(&key.PublicKey), nil
}

// rsaKeyText is the key as a line of an authorized_keys file: type, exponent
// and modulus, each with its length before it (RFC 4253, 6.6).
func rsaKeyText(pub *rsa.PublicKey) string {
	const keyType = "ssh-rsa"
	var blob []byte
	for _, part := range [][]byte{[]byte(keyType), mpint(big.NewInt(int64(pub.E))), mpint(pub.N)} {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(part)))
		blob = append(blob, part...)
	}
	return keyType + " " + base64.StdEncoding.EncodeToString(blob)
}

// mpint is a positive number with a zero byte before a leading one bit, which
// would make it negative.
func mpint(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) > 0 && b[0] >= 0x80 {
		return append([]byte{0}, b...)
	}
	return b
}
