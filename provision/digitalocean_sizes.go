package provision

import (
	"context"
	"slices"
	"strings"
)

// Sizes.

// ListSizes calls GET /v2/sizes, following every page. When region is
// non-empty, only sizes that DigitalOcean lists as available in that region
// are returned; when it is empty, all that are available anywhere. The price
// is in US dollars a month, the same in every region, without taxes.
func (d *DigitalOcean) ListSizes(ctx context.Context, region string) ([]Size, error) {
	const op = "list sizes"
	all, err := d.allSizes(ctx, op)
	if err != nil {
		return nil, err
	}
	sizes := make([]Size, 0, len(all))
	for _, s := range all {
		if s.soldIn(region) {
			sizes = append(sizes, s.size())
		}
	}
	if len(sizes) == 0 && region != "" {
		return sizes, d.checkRegion(ctx, op, region)
	}
	return sizes, nil
}

func (d *DigitalOcean) allSizes(ctx context.Context, op string) ([]doSize, error) {
	all, err := doList[doSizes](ctx, d, op, "/v2/sizes", nil)
	for _, s := range all {
		d.sizes.put(s.Slug, s)
	}
	return all, err
}

func (s doSize) soldIn(region string) bool {
	return s.Available && len(s.Regions) > 0 && (region == "" || slices.Contains(s.Regions, region))
}

func (s doSize) size() Size {
	size := Size{
		ID: s.Slug, Name: s.Description, VCPUs: s.VCPUs, Memory: s.MemoryMB, Disk: s.DiskGB,
		PriceMonthly: plainPrice(s.PriceMonthly.String()), Architecture: "x86",
	}
	if size.Name == "" {
		size.Name = s.Slug
	}
	if size.PriceMonthly != "" {
		size.Currency = "USD"
	}
	return size
}

// size reads one size; it is ErrInvalid when there is none of the name.
func (d *DigitalOcean) size(ctx context.Context, op, slug string) (doSize, error) {
	all, err := d.allSizes(ctx, op)
	if err != nil {
		return doSize{}, err
	}
	for _, s := range all {
		if s.Slug == slug {
			return s, nil
		}
	}
	return doSize{}, d.fail(ErrInvalid, op, "list the sizes of the region to see what there is", "there is no size %q", slug)
}

// checkRegion is nil when the region exists and takes Droplets.
func (d *DigitalOcean) checkRegion(ctx context.Context, op, region string) error {
	regions, err := doList[doRegions](ctx, d, op, "/v2/regions", nil)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(regions))
	for _, r := range regions {
		switch {
		case r.Slug == region && r.Available:
			return nil
		case r.Slug == region:
			return d.fail(ErrCapacity, op, hintElsewhere, "region %s takes no new Droplets now", region)
		case r.Available:
			names = append(names, r.Slug)
		}
	}
	return d.fail(ErrInvalid, op, "", "there is no region %q; there are %s", region, strings.Join(names, ", "))
}
