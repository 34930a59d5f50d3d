package cli

import (
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/client"
)

// decimal reads a price; nil when it is none.
func decimal(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if s == "" || !ok || strings.ContainsAny(s, "/eE") {
		return nil
	}
	return r
}

// price writes an amount a month with two decimals; empty when not known.
func price(amount, currency string) string {
	r := decimal(amount)
	if r == nil {
		return ""
	}
	return strings.TrimSpace(r.FloatString(2) + " " + currency)
}

// comparePrices orders by amount; what has no price comes last.
func comparePrices(a, b string) int {
	x, y := decimal(a), decimal(b)
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	return x.Cmp(y)
}

// monthly returns what nodes cost a month, by currency, and how many of them
// have no known price.
func monthly(nodes []client.Node) (total string, unpriced int) {
	sums := map[string]*big.Rat{}
	for _, n := range nodes {
		r := decimal(n.PriceMonthly)
		if r == nil {
			unpriced++
			continue
		}
		if sums[n.Currency] == nil {
			sums[n.Currency] = new(big.Rat)
		}
		sums[n.Currency].Add(sums[n.Currency], r)
	}
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(sums)) {
		parts = append(parts, strings.TrimSpace(sums[c].FloatString(2)+" "+c))
	}
	return strings.Join(parts, " + "), unpriced
}

// costLine says what nodes cost a month, for questions and summaries; empty
// when nothing is known.
func costLine(nodes []client.Node) string {
	total, unpriced := monthly(nodes)
	if total == "" {
		return ""
	}
	line := total + " a month"
	if unpriced > 0 {
		line += ", without " + count(unpriced, "node") + " of unknown price"
	}
	return line
}
