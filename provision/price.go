package provision

import (
	"math/big"
	"regexp"
	"strings"
)

// priceText matches what providers write: decimals, seldom with a small
// exponent. Anything else is no price, and a huge exponent no attack.
var priceText = regexp.MustCompile(`^[0-9]{1,20}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$`)

// plainPrice returns a price as a plain decimal: no exponent, at least two
// decimals, no further zeros at the end, nothing rounded. It returns "" for
// what is no price.
func plainPrice(s string) string {
	r, ok := priceOf(s)
	if !ok {
		return ""
	}
	whole, decimals, _ := strings.Cut(r.FloatString(130), ".")
	decimals = strings.TrimRight(decimals, "0")
	for len(decimals) < 2 {
		decimals += "0"
	}
	return whole + "." + decimals
}

func priceOf(s string) (*big.Rat, bool) {
	if !priceText.MatchString(s) {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
