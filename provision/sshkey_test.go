package provision

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestNobodysKeyIsAKey(t *testing.T) {
	one, err := newNobodysKey()
	if err != nil {
		t.Fatal(err)
	}
	two, _ := newNobodysKey()
	parsed, isText, err := parsePublicKey(one.text + " comment")
	if err != nil || !isText || parsed != one || one.text == two.text {
		t.Errorf("parsed %+v (%v, %v), made %+v", parsed, isText, err, one)
	}
}

// TestFingerprint has a key and its fingerprint as ssh-keygen -l -E md5 shows it.
func TestFingerprint(t *testing.T) {
	blob, err := base64.StdEncoding.DecodeString("AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f")
	if err != nil {
		t.Fatal(err)
	}
	const want = "0f:a2:0a:d7:38:3e:65:45:08:6b:63:84:1c:ff:dc:ba"
	if got := fingerprintOf(blob); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzParsePublicKey(f *testing.F) {
	key, err := newNobodysKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.text)
	f.Add("ssh-rsa AAAA")
	f.Add("laptop")
	f.Add("-----BEGIN OPENSSH PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, s string) {
		k, isText, err := parsePublicKey(s)
		if err != nil || !isText {
			return
		}
		if again, isText, err := parsePublicKey(k.text); err != nil || !isText || again != k || strings.ContainsAny(k.text, "\r\n") {
			t.Errorf("%q was read as %+v, and that as %+v, %v", s, k, again, err)
		}
	})
}
