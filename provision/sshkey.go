package provision

import (
	"crypto/ed25519"
	"crypto/md5" // the fingerprint that providers list keys by; no protection hangs on it
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// publicKey is one line of an authorized_keys file.
type publicKey struct {
	text        string // type and key, without the comment
	fingerprint string // MD5 in hex pairs with colons
}

// name is what the key is called at the provider when it is uploaded: the
// same key has the same name from everybody.
func (k publicKey) name(short string) string {
	return short + "-" + strings.ReplaceAll(k.fingerprint, ":", "")
}

var keyTypes = []string{
	"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
}

// parsePublicKey tells a key's text from the name of a key. A text that is
// meant as a key and is none is an error, which does not repeat it.
func parsePublicKey(s string) (key publicKey, isText bool, err error) {
	if strings.Contains(s, "PRIVATE KEY") {
		return publicKey{}, true, errors.New("an SSH key is a private key: give the public one, the file that ends in .pub")
	}
	fields := strings.Fields(s)
	if len(fields) < 2 || !slices.Contains(keyTypes, fields[0]) {
		return publicKey{}, false, checkWord("SSH key's name", s)
	}
	if strings.ContainsAny(strings.TrimSpace(s), "\r\n") {
		return publicKey{}, true, errors.New("an SSH key has several lines: give each key as an entry of its own")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || !blobIsOf(blob, fields[0]) {
		return publicKey{}, true, fmt.Errorf("an SSH key says that it is %s and is not: was it cut when it was copied?", fields[0])
	}
	return publicKey{text: fields[0] + " " + fields[1], fingerprint: fingerprintOf(blob)}, true, nil
}

// blobIsOf tells whether the key's own type is the one in front of it, and it
// is whole: a key is a row of fields, each with its length before it.
func blobIsOf(blob []byte, keyType string) bool {
	var fields []string
	for len(blob) >= 4 {
		n := binary.BigEndian.Uint32(blob)
		if uint64(n) > uint64(len(blob)-4) {
			return false
		}
		fields = append(fields, string(blob[4:4+n]))
		blob = blob[4+n:]
	}
	return len(blob) == 0 && len(fields) >= 2 && fields[0] == keyType && fields[1] != ""
}

func fingerprintOf(blob []byte) string {
	sum := md5.Sum(blob)
	pairs := make([]string, len(sum))
	for i, b := range sum {
		pairs[i] = hex.EncodeToString([]byte{b})
	}
	return strings.Join(pairs, ":")
}

// newNobodysKey returns a public key whose private half is gone as soon as
// this returns. Given to a server, it keeps the provider from making a root
// password and mailing it, and lets nobody in.
func newNobodysKey() (publicKey, error) {
	pub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return publicKey{}, err
	}
	const keyType = "ssh-ed25519"
	var blob []byte
	for _, part := range [][]byte{[]byte(keyType), pub} {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(part)))
		blob = append(blob, part...)
	}
	return publicKey{
		text:        keyType + " " + base64.StdEncoding.EncodeToString(blob),
		fingerprint: fingerprintOf(blob),
	}, nil
}
