package provision

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math/big"
)

// Prices.

const (
	// awsPriceRegion has the price list of the whole commercial partition.
	awsPriceRegion = "us-east-1"
	awsPricePages  = 100 // of 100 entries; a region has about ten
)

type awsPriceFilter struct {
	Type, Field, Value string
}

type awsPriceQuery struct {
	ServiceCode   string
	FormatVersion string
	Filters       []awsPriceFilter
	MaxResults    int
	NextToken     string `json:",omitempty"`
}

type awsPricePage struct {
	PriceList []string
	NextToken string
}

// awsPriceEntry is one entry of the price list, which is JSON within JSON.
type awsPriceEntry struct {
	Product struct {
		Attributes struct {
			InstanceType   string `json:"instanceType"`
			MarketOption   string `json:"marketoption"`
			CapacityStatus string `json:"capacitystatus"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string            `json:"unit"`
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		}
	} `json:"terms"`
}

// Prices asks the AWS Price List service (pricing:GetProducts): on demand, for
// Linux, in US dollars, a month of 730 hours, without the disk and the public
// IPv4 address (3.65 a month). It is kept for a day. When it cannot be had,
// for lack of permission or in another partition than the commercial one, the
// map is empty: a fleet works without prices.
func (a *AWS) Prices(ctx context.Context, region string) (map[string]Price, error) {
	const op = "read prices"
	if !awsRegionPattern.MatchString(region) {
		return nil, invalidError("aws", op, "%q is no region", clip(region, 60))
	}
	if a.mistake != nil {
		return nil, a.refused(op)
	}
	if awsPartition(region) != "aws" {
		return map[string]Price{}, nil
	}
	prices, err := a.costs.get(ctx, region, func(ctx context.Context) (map[string]Price, error) { return a.readPrices(ctx, op, region) })
	if err == nil {
		return maps.Clone(prices), nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	a.logger.WarnContext(ctx, "prices cannot be read", slog.String("region", region), slog.Any("error", err))
	return map[string]Price{}, nil
}

func (a *AWS) readPrices(ctx context.Context, op, region string) (map[string]Price, error) {
	query := awsPriceQuery{ServiceCode: "AmazonEC2", FormatVersion: "aws_v1", MaxResults: 100}
	for _, f := range [][2]string{
		{"regionCode", region}, {"operatingSystem", "Linux"}, {"tenancy", "Shared"}, {"preInstalledSw", "NA"}, {"capacitystatus", "Used"},
		{"licenseModel", "No License required"}, {"currentGeneration", "Yes"},
	} {
		query.Filters = append(query.Filters, awsPriceFilter{"TERM_MATCH", f[0], f[1]})
	}
	prices := map[string]Price{}
	for range awsPricePages {
		var page awsPricePage
		err := a.ask(ctx, awsQuestion{
			op: op, service: "pricing", region: awsPriceRegion, target: "AWSPriceListService.GetProducts", in: query,
			address: pointed(a.endpoints.pricing, "https://api.pricing."+awsPriceRegion+".amazonaws.com"),
		}, &page)
		if err != nil {
			return nil, err
		}
		for _, text := range page.PriceList {
			if size, price, ok := awsPriceOf(text); ok {
				prices[size] = price
			}
		}
		if query.NextToken = page.NextToken; query.NextToken == "" {
			return prices, nil
		}
	}
	return nil, a.fail(ErrUnavailable, op, "", "the price list does not end")
}

// awsPriceOf reads one entry; anything that is not one plain price by the hour
// is none.
func awsPriceOf(text string) (size string, price Price, ok bool) {
	var e awsPriceEntry
	if json.Unmarshal([]byte(text), &e) != nil || e.Product.Attributes.InstanceType == "" {
		return "", price, false
	}
	if m := e.Product.Attributes.MarketOption; m != "" && m != "OnDemand" {
		return "", price, false
	}
	for _, term := range e.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			hourly, isPrice := priceOf(d.PricePerUnit["USD"])
			if d.Unit != "Hrs" || !isPrice || hourly.Sign() <= 0 {
				continue
			}
			monthly := new(big.Rat).Mul(hourly, big.NewRat(hoursAMonth, 1))
			return e.Product.Attributes.InstanceType, Price{
				Hourly: plainPrice(d.PricePerUnit["USD"]), Monthly: plainPrice(monthly.FloatString(10)), Currency: "USD",
			}, true
		}
	}
	return "", price, false
}
