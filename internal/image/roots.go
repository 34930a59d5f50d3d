package image

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Roots returns Mozilla's root certificates in PEM form, of the version that
// go.mod names: the same on every machine that builds. Roots that Mozilla
// trusts under conditions are left out, since PEM cannot say the conditions.
func Roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer does not fail
		}
	}
	return b.Bytes()
}
