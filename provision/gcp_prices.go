package provision

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Prices.

const (
	gcpComputeService = "6F81-5844-456A" // Compute Engine's number in the catalogue
	gcpHours          = 730              // as Google's own calculator counts a month
)

// gcpSKU is one row of the catalogue: the price of a core or of a gigabyte of
// memory of a series.
type gcpSKU struct {
	Description string   `json:"description"`
	Regions     []string `json:"serviceRegions"`
	Category    struct {
		Family string `json:"resourceFamily"`
		Usage  string `json:"usageType"`
	} `json:"category"`
	Pricing []struct {
		Expression struct {
			Unit  string `json:"usageUnit"`
			Tiers []struct {
				Start float64 `json:"startUsageAmount"`
				Price struct {
					Currency string `json:"currencyCode"`
					Units    string `json:"units"`
					Nanos    int64  `json:"nanos"`
				} `json:"unitPrice"`
			} `json:"tieredRates"`
		} `json:"pricingExpression"`
	} `json:"pricingInfo"`
}

// gcpPricedSKU is what a core or a gigabyte of a series costs an hour.
type gcpPricedSKU struct {
	series, what string // what: Core or Ram
	price        *big.Rat
}

// Prices reads the Cloud Billing catalogue with the same credential:
// pay-as-you-go in US dollars, a month of 730 hours, cores and memory, without
// the disk and the address. The catalogue has no machine types, so only those
// are priced that are nothing but cores and memory of a series that it names.
// It is kept for a day. When the catalogue cannot be read, as when the Cloud
// Billing API is not enabled in the project, the map is empty: a fleet works
// without prices.
func (g *GCP) Prices(ctx context.Context, zone string) (map[string]Price, error) {
	const op = "read prices"
	if !gcpName.MatchString(zone) {
		return nil, invalidError("gcp", op, "%q is no zone's name", clip(zone, 60))
	}
	prices, err := g.costs.get(ctx, zone, func(ctx context.Context) (map[string]Price, error) { return g.readPrices(ctx, op, zone) })
	switch {
	case err == nil:
	case ctx.Err() != nil || errors.Is(err, ErrUnauthorized):
		return nil, err
	default:
		g.logger.WarnContext(ctx, "the price list cannot be read", slog.Any("error", err))
	}
	copied := make(map[string]Price, len(prices))
	for k, v := range prices {
		copied[k] = v
	}
	return copied, nil
}

func (g *GCP) readPrices(ctx context.Context, op, zone string) (map[string]Price, error) {
	var z gcpZone
	if err := g.get(ctx, op, g.project()+"/zones/"+zone, nil, &z); err != nil {
		return nil, err
	}
	byRegion, err := g.skus.get(ctx, "all", func(ctx context.Context) (map[string][]gcpPricedSKU, error) { return g.catalogue(ctx, op) })
	if err != nil {
		return nil, err
	}
	rates := map[string]*big.Rat{}
	for _, s := range byRegion[lastPart(z.Region)] {
		rates[s.series+" "+s.what] = s.price
	}
	types, err := g.machineTypes(ctx, op, zone)
	if err != nil {
		return nil, err
	}
	prices := map[string]Price{}
	for _, t := range types {
		if hourly, ok := t.hourly(rates); ok {
			monthly := new(big.Rat).Mul(hourly, big.NewRat(gcpHours, 1))
			prices[t.Name] = Price{Hourly: plainPrice(hourly.FloatString(10)), Monthly: plainPrice(monthly.FloatString(10)), Currency: "USD"}
		}
	}
	return prices, nil
}

// catalogue reads every page, and keeps what is needed of it.
func (g *GCP) catalogue(ctx context.Context, op string) (map[string][]gcpPricedSKU, error) {
	byRegion := map[string][]gcpPricedSKU{}
	query := url.Values{"pageSize": {"5000"}, "currencyCode": {"USD"}}
	seen := map[string]bool{}
	for {
		var page struct {
			SKUs          []gcpSKU `json:"skus"`
			NextPageToken string   `json:"nextPageToken"`
		}
		if err := g.send(ctx, g.billing, call{op: op, method: "GET", path: "/v1/services/" + gcpComputeService + "/skus", query: query}, &page); err != nil {
			return nil, err
		}
		for _, s := range page.SKUs {
			if priced, ok := s.priced(); ok {
				for _, region := range s.Regions {
					byRegion[region] = append(byRegion[region], priced)
				}
			}
		}
		if page.NextPageToken == "" {
			return byRegion, nil
		}
		if seen[page.NextPageToken] {
			return nil, g.fail(ErrUnavailable, op, "", "the price list leads from a page back to one that was read")
		}
		seen[page.NextPageToken] = true
		query.Set("pageToken", page.NextPageToken)
	}
}

// gcpRate matches the plain rows, such as "N2D AMD Instance Core running in
// Belgium". Custom, sole-tenant and spare ones have more words.
var gcpRate = regexp.MustCompile(`^([A-Z][0-9][A-Z]?)(?: AMD| Arm| Predefined)? Instance (Core|Ram) running in `)

func (s gcpSKU) priced() (gcpPricedSKU, bool) {
	m := gcpRate.FindStringSubmatch(s.Description)
	if m == nil || s.Category.Family != "Compute" || s.Category.Usage != "OnDemand" || len(s.Pricing) == 0 {
		return gcpPricedSKU{}, false
	}
	last := s.Pricing[len(s.Pricing)-1].Expression
	unit := map[string]string{"Core": "h", "Ram": "GiBy.h"}[m[2]]
	if last.Unit != unit || len(last.Tiers) != 1 || last.Tiers[0].Price.Currency != "USD" {
		return gcpPricedSKU{}, false
	}
	units, ok := priceOf(json.Number(last.Tiers[0].Price.Units).String())
	if !ok || last.Tiers[0].Price.Nanos < 0 {
		return gcpPricedSKU{}, false
	}
	price := new(big.Rat).Add(units, big.NewRat(last.Tiers[0].Price.Nanos, 1_000_000_000))
	return gcpPricedSKU{series: strings.ToLower(m[1]), what: m[2], price: price}, price.Sign() > 0
}

// gcpShares are the cores that the types with a shared one pay for.
var gcpShares = map[string]*big.Rat{
	"e2-micro": big.NewRat(1, 4), "e2-small": big.NewRat(1, 2), "e2-medium": big.NewRat(1, 1),
}

// hourly is the price of a type that is cores and memory alone.
func (t gcpMachineType) hourly(rates map[string]*big.Rat) (*big.Rat, bool) {
	core, ok1 := rates[t.family()+" Core"]
	memory, ok2 := rates[t.family()+" Ram"]
	parts := strings.Split(t.Name, "-")
	shared, isShared := gcpShares[t.Name]
	plain := len(parts) == 3 && slices.Contains([]string{"standard", "highmem", "highcpu"}, parts[1])
	if !ok1 || !ok2 || !plain && !isShared || len(t.Accelerators) > 0 || t.LocalSSDs != nil || t.Shared != isShared {
		return nil, false
	}
	cores := big.NewRat(int64(t.CPUs), 1)
	if isShared {
		cores = shared
	}
	cost := new(big.Rat).Mul(core, cores)
	return cost.Add(cost, new(big.Rat).Mul(memory, big.NewRat(int64(t.MemoryMB), 1024))), true
}
