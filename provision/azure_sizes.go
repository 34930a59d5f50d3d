package provision

import (
	"context"
	"errors"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Sizes.

// ListSizes calls GET .../locations/{region}/vmSizes, and .../skus for the
// same region, which knows what the first does not: the architecture, and
// which sizes this subscription may not use there. Those are left out.
// Azure's retail pricing isn't part of this API, so every returned Size has
// an empty PriceMonthly; see Prices.
//
// Disk is the size's own local disk, 0 where it has none. The boot disk is
// apart, see CreateServer.
//
// When region is empty, the sizes of every region are returned, which takes
// a request for each of them.
func (a *Azure) ListSizes(ctx context.Context, region string) ([]Size, error) {
	const op = "list sizes"
	if region == "" {
		return a.allSizes(ctx, op)
	}
	if err := checkWord("region", region); err != nil {
		return nil, invalidError("azure", op, "%v", err)
	}
	skus, err := a.findSkus(ctx, op, region)
	if err != nil {
		return nil, err
	}
	path := a.subscription() + "/providers/Microsoft.Compute/locations/" + url.PathEscape(region) + "/vmSizes"
	listed, err := azList[azVMSize](ctx, a, op, path, apiVersion(azCompute))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) {
		return nil, a.checkRegion(ctx, op, region)
	}
	if err != nil {
		return nil, err
	}
	sizes := make([]Size, 0, len(listed))
	for _, v := range listed {
		sku, sold := skus[strings.ToLower(v.Name)]
		if !sold || sku.barred(region) {
			continue
		}
		sizes = append(sizes, Size{
			ID: v.Name, Name: v.Name, VCPUs: sku.cpus(v.NumberOfCores), Memory: v.MemoryInMB,
			Disk: v.ResourceDiskMB / 1024, Architecture: sku.architecture(),
		})
	}
	if len(sizes) == 0 {
		return sizes, a.checkRegion(ctx, op, region)
	}
	return sizes, nil
}

// allSizes puts the sizes of all regions together, by what is sold there.
func (a *Azure) allSizes(ctx context.Context, op string) ([]Size, error) {
	regions, err := a.ListRegions(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]map[string]azSku, len(regions))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, r := range regions {
		group.Go(func() error {
			skus, err := a.skusOf(groupCtx, op, r.ID)
			found[i] = skus
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	byName := map[string]Size{}
	for i, skus := range found {
		for name, sku := range skus {
			if !sku.barred(regions[i].ID) {
				byName[name] = sku.size()
			}
		}
	}
	sizes := make([]Size, 0, len(byName))
	for _, name := range sortedKeys(byName) {
		sizes = append(sizes, byName[name])
	}
	return sizes, nil
}

// skusOf is what a region sells, by lower-case name, as it was today.
func (a *Azure) skusOf(ctx context.Context, op, region string) (map[string]azSku, error) {
	return a.skus.get(ctx, strings.ToLower(region), func(ctx context.Context) (map[string]azSku, error) {
		return a.readSkus(ctx, op, region)
	})
}

// findSkus is what a region sells, as it is now.
func (a *Azure) findSkus(ctx context.Context, op, region string) (map[string]azSku, error) {
	skus, err := a.readSkus(ctx, op, region)
	if err == nil {
		a.skus.put(strings.ToLower(region), skus)
	}
	return skus, err
}

func (a *Azure) readSkus(ctx context.Context, op, region string) (map[string]azSku, error) {
	query := apiVersion(azSkus)
	query.Set("$filter", "location eq '"+strings.ReplaceAll(region, "'", "''")+"'")
	list, err := azList[azSku](ctx, a, op, a.subscription()+"/providers/Microsoft.Compute/skus", query)
	if err != nil {
		return nil, err
	}
	skus := map[string]azSku{}
	for _, s := range list {
		if strings.EqualFold(s.ResourceType, "virtualMachines") {
			skus[strings.ToLower(s.Name)] = s
		}
	}
	return skus, nil
}

// skuOf is one size of a region. One that is not sold there, or not to this
// subscription, is an error that says which.
func (a *Azure) skuOf(ctx context.Context, op, region, size string) (azSku, error) {
	skus, err := a.skusOf(ctx, op, region)
	if err != nil {
		return azSku{}, err
	}
	sku, sold := skus[strings.ToLower(size)]
	const hint = "list the sizes of the region to see what there is"
	switch {
	case len(skus) == 0:
		a.skus.forget(strings.ToLower(region))
		return azSku{}, a.fail(ErrInvalid, op, hintRegion, "there is no region %q that sells servers to this subscription", region)
	case !sold:
		return azSku{}, a.fail(ErrInvalid, op, hint, "there is no size %q in %s", size, region)
	case sku.barred(region):
		// Azure answers a create with SkuNotAvailable, as it does without capacity.
		return azSku{}, a.fail(ErrCapacity, op, hint, "size %q is not sold to this subscription in %s (%s)", sku.Name, region, sku.barredBy())
	}
	return sku, nil
}

func (s azSku) capability(name string) string {
	for _, c := range s.Capabilities {
		if strings.EqualFold(c.Name, name) {
			return c.Value
		}
	}
	return ""
}

func (s azSku) is(name string) bool { return strings.EqualFold(s.capability(name), "true") }

// cpus is what a server has. The list of sizes has what its quota counts,
// which is more for sizes with part of their cores switched off.
func (s azSku) cpus(listed int) int {
	for _, name := range []string{"vCPUsAvailable", "vCPUs"} {
		if n, err := strconv.Atoi(s.capability(name)); err == nil && n > 0 {
			return n
		}
	}
	return listed
}

func (s azSku) architecture() string {
	if strings.EqualFold(s.capability("CpuArchitectureType"), "Arm64") {
		return "arm"
	}
	return "x86"
}

// secondGeneration tells whether the size starts UEFI images.
func (s azSku) secondGeneration() bool {
	generations := s.capability("HyperVGenerations")
	return generations == "" || slices.Contains(strings.Split(generations, ","), "V2")
}

// trustedLaunch tells whether the size starts with Secure Boot and a vTPM.
func (s azSku) trustedLaunch() bool {
	return s.architecture() == "x86" && slices.Contains(strings.Split(s.capability("HyperVGenerations"), ","), "V2") &&
		!s.is("TrustedLaunchDisabled")
}

func (s azSku) size() Size {
	return Size{
		ID: s.Name, Name: s.Name, VCPUs: s.cpus(0), Memory: megabytes(s.capability("MemoryGB")),
		Disk: wholeNumber(s.capability("MaxResourceVolumeMB")) / 1024, Architecture: s.architecture(),
	}
}

// megabytes reads a decimal of the next larger unit, such as "1.75".
func megabytes(text string) int {
	r, ok := priceOf(text)
	if !ok {
		return 0
	}
	mb, _ := r.Mul(r, big.NewRat(1024, 1)).Float64()
	return int(math.Round(min(mb, math.MaxInt32)))
}

func wholeNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// barred tells whether the subscription may not use the size anywhere in the
// region. A bar on some of its zones leaves the others.
func (s azSku) barred(region string) bool {
	for _, r := range s.Restrictions {
		if !strings.EqualFold(r.Type, "Location") {
			continue
		}
		places := append(slices.Clone(r.Info.Locations), r.Values...)
		if len(places) == 0 || slices.ContainsFunc(places, func(p string) bool { return strings.EqualFold(p, region) }) {
			return true
		}
	}
	return false
}

func (s azSku) barredBy() string {
	for _, r := range s.Restrictions {
		if r.ReasonCode != "" {
			return r.ReasonCode
		}
	}
	return "restricted"
}

// checkRegion is nil when the region exists.
func (a *Azure) checkRegion(ctx context.Context, op, region string) error {
	regions, err := a.ListRegions(ctx)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(regions))
	for _, r := range regions {
		if strings.EqualFold(r.ID, region) {
			return nil
		}
		names = append(names, r.ID)
	}
	slices.Sort(names)
	return a.fail(ErrInvalid, op, "", "there is no region %q; there are %s", region, strings.Join(names, ", "))
}
