package provision

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Prices.

const (
	azPriceVersion = "2023-01-01-preview"
	azPricePages   = 200 // of up to 1,000 entries; a region has about ten
	hoursAMonth    = 730 // as Azure's own calculator counts
)

// azPrice is one entry of the price list.
type azPrice struct {
	Retail    json.Number `json:"retailPrice"`
	Currency  string      `json:"currencyCode"`
	Region    string      `json:"armRegionName"`
	Size      string      `json:"armSkuName"`
	Product   string      `json:"productName"`
	Sku       string      `json:"skuName"`
	Meter     string      `json:"meterName"`
	Unit      string      `json:"unitOfMeasure"`
	Type      string      `json:"type"`
	From      time.Time   `json:"effectiveStartDate"`
	Primary   bool        `json:"isPrimaryMeterRegion"`
	TierBegin json.Number `json:"tierMinimumUnits"`
}

// Prices reads the Azure Retail Prices API, which asks for no credential and
// is given none: pay-as-you-go for Linux, in US dollars, a month of 730 hours,
// without the disk and the public IP. It is kept for a day. When it cannot be
// read, the map is empty: a fleet works without prices.
func (a *Azure) Prices(ctx context.Context, region string) (map[string]Price, error) {
	const op = "read prices"
	if err := checkWord("region", region); err != nil {
		return nil, invalidError("azure", op, "%v", err)
	}
	if a.prices == "" {
		return map[string]Price{}, nil
	}
	prices, err := a.costs.get(ctx, azRegion(region), func(ctx context.Context) (map[string]Price, error) {
		return a.readPrices(ctx, op, azRegion(region))
	})
	if err == nil {
		return maps.Clone(prices), nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	a.logger.WarnContext(ctx, "prices cannot be read", slog.String("region", region), slog.Any("error", err))
	return map[string]Price{}, nil
}

func (a *Azure) readPrices(ctx context.Context, op, region string) (map[string]Price, error) {
	query := url.Values{
		"api-version": {azPriceVersion},
		"$filter":     {"serviceName eq 'Virtual Machines' and armRegionName eq '" + strings.ReplaceAll(region, "'", "''") + "' and priceType eq 'Consumption'"},
	}
	best := map[string]azPrice{}
	address := a.prices + "?" + query.Encode()
	for range azPricePages {
		page, err := a.pricePage(ctx, op, address)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			if before, ok := best[item.Size]; item.counts(region) && (!ok || item.betterThan(before)) {
				best[item.Size] = item
			}
		}
		if page.NextPageLink == "" {
			return priced(best), nil
		}
		if hostOf(page.NextPageLink) != hostOf(a.prices) {
			return nil, a.fail(ErrUnavailable, op, "", "the price list leads to another host")
		}
		address = page.NextPageLink
	}
	return nil, a.fail(ErrUnavailable, op, "", "the price list does not end")
}

func (a *Azure) pricePage(ctx context.Context, op, address string) (azPrices, error) {
	var page azPrices
	ans, err := a.plainGet(ctx, op, address)
	if err != nil {
		return page, err
	}
	if ans.status != http.StatusOK || json.Unmarshal(ans.body, &page) != nil || page.Items == nil {
		return page, &ProviderError{
			Provider: "azure", Op: op, Status: ans.status, Class: ErrUnavailable, Message: "the price list does not answer as one",
		}
	}
	return page, nil
}

// counts tells whether an entry is the plain price of a Linux server: not of
// Windows, of spare capacity, or of another service on the same machines.
func (p azPrice) counts(region string) bool {
	other := strings.Contains(p.Product, "Windows") || strings.Contains(p.Product, "Cloud Services") || strings.Contains(p.Product, "CloudServices")
	for _, name := range []string{p.Sku, p.Meter} {
		other = other || strings.Contains(name, "Spot") || strings.Contains(name, "Low Priority") || strings.Contains(name, "Expired")
	}
	first, _ := p.TierBegin.Float64()
	return !other && p.Size != "" && p.Type == "Consumption" && p.Unit == "1 Hour" && strings.EqualFold(p.Region, region) && first == 0
}

// betterThan is for sizes with several entries: the region's own meter, and of
// these the newest.
func (p azPrice) betterThan(o azPrice) bool {
	if p.Primary != o.Primary {
		return p.Primary
	}
	return p.From.After(o.From)
}

func priced(best map[string]azPrice) map[string]Price {
	prices := make(map[string]Price, len(best))
	for size, p := range best {
		hourly, ok := priceOf(p.Retail.String())
		if !ok || hourly.Sign() <= 0 || len(p.Currency) != 3 {
			continue
		}
		monthly := new(big.Rat).Mul(hourly, big.NewRat(hoursAMonth, 1))
		prices[size] = Price{
			Hourly: plainPrice(p.Retail.String()), Monthly: plainPrice(monthly.FloatString(10)), Currency: p.Currency,
		}
	}
	return prices
}
