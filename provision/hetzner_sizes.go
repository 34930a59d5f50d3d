package provision

import (
	"context"
	"math"
	"math/big"
	"net/url"
	"strings"
	"time"
)

// Sizes.

// ListSizes calls GET /server_types, following every page. When region is
// non-empty, only server types that are sold there now are returned: priced
// in that location, not marked unavailable there, and not past the end of
// their sale; the price is that location's own, gross, a month, without the
// IPv4 address. When region is empty, every type that is sold anywhere is
// returned, with the lowest of its locations' prices.
//
// The currency is the account's (GET /pricing, asked once a day).
func (h *Hetzner) ListSizes(ctx context.Context, region string) ([]Size, error) {
	const op = "list sizes"
	types, err := hzList[hzTypes](ctx, h, op, "/server_types", nil)
	if err != nil {
		return nil, err
	}
	currency, err := h.currency.get(ctx, "", func(ctx context.Context) (string, error) {
		var p hzPricing
		err := h.get(ctx, "read prices", "/pricing", nil, &p)
		return p.Pricing.Currency, err
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]Size, 0, len(types))
	now := time.Now()
	for _, t := range types {
		h.types.put(t.Name, t)
		var offer hzOffer
		if region == "" {
			offer = t.bestOffer(now)
		} else {
			offer = t.offer(region, now)
		}
		if offer.sold {
			sizes = append(sizes, t.size(offer, currency))
		}
	}
	if len(sizes) == 0 && region != "" {
		return sizes, h.checkRegion(ctx, op, region)
	}
	return sizes, nil
}

func (t hzType) size(o hzOffer, currency string) Size {
	s := Size{
		ID: t.Name, Name: t.Description, VCPUs: t.Cores,
		Memory: int(math.Round(t.MemoryGB * 1024)), Disk: t.DiskGB,
		PriceMonthly: plainPrice(o.gross), Architecture: t.Architecture, UnavailableAfter: o.until,
	}
	if s.Name == "" {
		s.Name = t.Name
	}
	if s.PriceMonthly != "" {
		s.Currency = currency
	}
	return s
}

// hzOffer is whether and how a type is sold in a place.
type hzOffer struct {
	priced bool      // the place has a price for it
	sold   bool      // and it can be had now
	gross  string    // a month
	until  time.Time // end of sale; zero when none is announced
}

// offer goes by the type's entry for the location; where the API gives none,
// by its older, type-wide deprecation.
func (t hzType) offer(location string, now time.Time) hzOffer {
	var o hzOffer
	for _, p := range t.Prices {
		if p.Location == location {
			o.priced, o.gross = true, p.Monthly.Gross
		}
	}
	available, deprecation := true, t.Deprecation
	for _, l := range t.Locations {
		if l.Name == location {
			available = l.Available == nil || *l.Available
			deprecation = l.Deprecation
		}
	}
	if deprecation != nil {
		o.until = deprecation.UnavailableAfter
	}
	o.sold = o.priced && available && (o.until.IsZero() || now.Before(o.until))
	return o
}

// bestOffer is the cheapest of all locations. Its end is the last of theirs,
// and none when one of them has none.
func (t hzType) bestOffer(now time.Time) hzOffer {
	var best hzOffer
	var lowest *big.Rat
	endless := false
	for _, p := range t.Prices {
		o := t.offer(p.Location, now)
		if !o.sold {
			continue
		}
		best.priced, best.sold = true, true
		if price, ok := priceOf(o.gross); ok && (lowest == nil || price.Cmp(lowest) < 0) {
			lowest, best.gross = price, o.gross
		}
		endless = endless || o.until.IsZero()
		if o.until.After(best.until) {
			best.until = o.until
		}
	}
	if endless {
		best.until = time.Time{}
	}
	return best
}

// serverType reads one type; it is ErrInvalid when there is none of the name.
func (h *Hetzner) serverType(ctx context.Context, op, name string) (hzType, error) {
	types, err := hzList[hzTypes](ctx, h, op, "/server_types", url.Values{"name": {name}})
	if err != nil {
		return hzType{}, err
	}
	for _, t := range types {
		if t.Name == name {
			return t, nil
		}
	}
	return hzType{}, h.fail(ErrInvalid, op, "list the sizes of the region to see what there is", "there is no server type %q", name)
}

// checkRegion is nil when the location exists.
func (h *Hetzner) checkRegion(ctx context.Context, op, region string) error {
	locations, err := hzList[hzLocations](ctx, h, op, "/locations", nil)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(locations))
	for _, l := range locations {
		if l.Name == region {
			return nil
		}
		names = append(names, l.Name)
	}
	return h.fail(ErrInvalid, op, "", "there is no location %q; there are %s", region, strings.Join(names, ", "))
}
