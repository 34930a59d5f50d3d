package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/client"
)

// catalog is where regions and sizes come from: a control plane's account, or
// a provider straight from here.
type catalog struct {
	flag    string // as the person would name it: "--account prod"
	regions func(ctx context.Context) ([]client.Region, error)
	sizes   func(ctx context.Context, region string) ([]client.Size, error)
}

// catalogFlags are --account and --provider.
type catalogFlags struct{ account, provider string }

func (a *app) addCatalogFlags(c *cobra.Command, f *catalogFlags) {
	c.Flags().StringVar(&f.account, "account", "", "of this account, through the control plane")
	c.Flags().StringVar(&f.provider, "provider", "", "of this provider, with the credential in this command's environment and without a control plane")
	a.completeAccount(c)
	a.completeProvider(c)
}

// catalog picks the source: what the flags say; else the one provider whose
// credential is in the environment; else the control plane's one account.
func (a *app) catalog(ctx context.Context, f catalogFlags) (catalog, error) {
	switch {
	case f.account != "" && f.provider != "":
		return catalog{}, usageError("", "--account and --provider exclude each other")
	case f.account != "":
		return a.accountCatalog(f.account)
	case f.provider != "":
		return a.providerCatalog(f.provider)
	}
	found := a.credentialsHere()
	switch len(found) {
	case 1:
		return a.providerCatalog(found[0].Name)
	case 0:
	default:
		return catalog{}, usageError("name one with --provider, or an account with --account", "the environment holds credentials of several providers")
	}
	api, err := a.Client()
	if err != nil {
		return catalog{}, &exitError{code: ExitCredentials, hint: "set a provider's credential, such as HCLOUD_TOKEN, or start a control plane with `slipway serve`",
			err: &worded{"no credential of a provider is in the environment, and " + err.Error(), err}}
	}
	account, err := a.onlyAccount(ctx, api)
	if err != nil {
		return catalog{}, err
	}
	return a.accountCatalog(account)
}

// credentialsHere are the providers whose credential is in the environment.
func (a *app) credentialsHere() []Provider {
	if a.Clouds == nil {
		return nil
	}
	var found []Provider
	for _, p := range a.Clouds.Providers() {
		if _, _, err := a.Clouds.Credential(p.Name); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// directProvider is the provider called name, or the one whose credential is in
// the environment.
func (a *app) directProvider(name string) (Provider, error) {
	if name != "" || a.Clouds == nil {
		return a.provider(name, "")
	}
	found := a.credentialsHere()
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Provider{}, &exitError{code: ExitCredentials, hint: "set a provider's variable, such as HCLOUD_TOKEN, or name an account of the control plane",
			err: fmt.Errorf("no credential of a provider is in the environment")}
	}
	return Provider{}, usageError("name one with --provider", "the environment holds credentials of several providers")
}

func (a *app) accountCatalog(account string) (catalog, error) {
	api, err := a.Client()
	if err != nil {
		return catalog{}, err
	}
	explain := func(ctx context.Context, err error) error {
		if client.ClassOf(err) == client.ClassNotFound {
			if e := a.explainAccount(ctx, api, account, err); e != nil {
				return e
			}
		}
		return err
	}
	return catalog{
		flag: "--account " + account,
		regions: func(ctx context.Context) ([]client.Region, error) {
			list, err := api.Regions(ctx, account)
			if err != nil {
				return nil, explain(ctx, err)
			}
			return list, nil
		},
		sizes: func(ctx context.Context, region string) ([]client.Size, error) {
			list, err := api.Sizes(ctx, account, region)
			if err != nil {
				return nil, explain(ctx, err)
			}
			return list, nil
		},
	}, nil
}

func (a *app) providerCatalog(name string) (catalog, error) {
	p, err := a.provider(name, "")
	if err != nil {
		return catalog{}, err
	}
	return catalog{
		flag:    "--provider " + p.Name,
		regions: func(ctx context.Context) ([]client.Region, error) { return a.Clouds.Regions(ctx, p.Name) },
		sizes: func(ctx context.Context, region string) ([]client.Size, error) {
			return a.Clouds.Sizes(ctx, p.Name, region)
		},
	}, nil
}

func (a *app) regionsCommand() *cobra.Command {
	var f catalogFlags
	c := &cobra.Command{
		Use: "regions", Short: "List where servers can be created", Args: cobra.NoArgs,
		Example: "  HCLOUD_TOKEN=... slipway regions\n  slipway regions --account prod",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cat, err := a.catalog(cmd.Context(), f)
			if err != nil {
				return err
			}
			list, err := cat.regions(cmd.Context())
			if err != nil {
				return err
			}
			return show(a, view[client.Region]{
				name: func(r client.Region) string { return r.ID },
				columns: []column[client.Region]{
					{title: "REGION", cell: func(r client.Region) string { return r.ID }},
					{title: "WHERE", cell: func(r client.Region) string { return r.Name }},
				},
			}, list, false)
		},
	}
	a.addCatalogFlags(c, &f)
	a.addOutputFlag(c)
	return c
}

// sizeFilter says which sizes to list.
type sizeFilter struct {
	cpu    int
	memory string
	arch   string
}

func (a *app) sizesCommand() *cobra.Command {
	var f catalogFlags
	var s sizeFilter
	var region string
	c := &cobra.Command{
		Use: "sizes", Short: "List server sizes of a region, cheapest first", Args: cobra.NoArgs,
		Long:    "List the server sizes that can be had in a region now, cheapest first. Sizes without a known price come last. Prices are the provider's own list prices.",
		Example: "  HCLOUD_TOKEN=... slipway sizes --region fsn1 --min-cpu 2 --min-memory 4\n  slipway sizes --account prod --region fsn1 --arch arm",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runSizes(cmd.Context(), f, s, region)
		},
	}
	c.Flags().StringVar(&region, "region", "", "the region; 'slipway regions' lists them")
	c.Flags().IntVar(&s.cpu, "min-cpu", 0, "only sizes with this many CPUs at least")
	c.Flags().StringVar(&s.memory, "min-memory", "", "only sizes with this much memory at least, in GB, or as 512MB")
	c.Flags().StringVar(&s.arch, "arch", "", "only sizes of this architecture: x86 or arm")
	a.addCatalogFlags(c, &f)
	a.addOutputFlag(c)
	_ = c.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions([]string{"x86", "arm"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) runSizes(ctx context.Context, f catalogFlags, s sizeFilter, region string) error {
	keep, err := s.keeps()
	if err != nil {
		return err
	}
	cat, err := a.catalog(ctx, f)
	if err != nil {
		return err
	}
	if region == "" {
		return usageError("`slipway regions "+cat.flag+"` lists them", "--region is missing, since sizes and prices differ by region")
	}
	list, err := cat.sizes(ctx, region)
	if err != nil {
		return explainRegion(ctx, cat, region, err)
	}
	if len(list) == 0 { // a provider may answer an unknown region with nothing
		none := &client.Error{Class: client.ClassNotFound}
		if err := explainRegion(ctx, cat, region, none); err != error(none) {
			return err
		}
	}
	list = slices.DeleteFunc(list, func(x client.Size) bool { return !keep(x) })
	slices.SortStableFunc(list, func(x, y client.Size) int {
		return cmp.Or(comparePrices(x.PriceMonthly, y.PriceMonthly), cmp.Compare(x.VCPUs, y.VCPUs), cmp.Compare(x.MemoryMB, y.MemoryMB), cmp.Compare(x.ID, y.ID))
	})
	if len(list) == 0 && !a.machine() {
		a.say("no size in %s fits", region)
	}
	return show(a, sizeView(), list, false)
}

func sizeView() view[client.Size] {
	return view[client.Size]{
		name: func(s client.Size) string { return s.ID },
		columns: []column[client.Size]{
			{title: "SIZE", cell: func(s client.Size) string { return s.ID }},
			{title: "CPUS", cell: func(s client.Size) string { return strconv.Itoa(s.VCPUs) }, right: true},
			{title: "MEMORY", cell: func(s client.Size) string { return memory(s.MemoryMB) }, right: true},
			{title: "DISK", cell: func(s client.Size) string { return disk(s.DiskGB) }, right: true},
			{title: "ARCH", cell: func(s client.Size) string { return s.Architecture }},
			{title: "A MONTH", cell: func(s client.Size) string { return price(s.PriceMonthly, s.Currency) }, right: true},
			{title: "UNTIL", cell: func(s client.Size) string {
				if s.UnavailableAfter == nil {
					return ""
				}
				return s.UnavailableAfter.UTC().Format("2006-01-02")
			}},
			{title: "NAME", cell: func(s client.Size) string { return s.Name }, wide: true},
		},
	}
}

// explainRegion says that a region does not exist when that is why err came.
func explainRegion(ctx context.Context, cat catalog, region string, err error) error {
	if c := client.ClassOf(err); c != client.ClassNotFound && c != client.ClassInvalid {
		return err
	}
	regions, rerr := cat.regions(ctx)
	if rerr != nil || contains(regionIDs(regions), region) {
		return err
	}
	return unknownWord("region", region, "", regionIDs(regions), "slipway regions "+cat.flag, err)
}

// keeps returns the filter as a function.
func (s sizeFilter) keeps() (func(client.Size) bool, error) {
	mb := 0
	if s.memory != "" {
		var err error
		if mb, err = parseMemory(s.memory); err != nil {
			return nil, err
		}
	}
	arch := s.arch
	switch arch {
	case "", "x86", "arm":
	case "amd64", "x86_64", "x86-64":
		arch = "x86"
	case "arm64", "aarch64":
		arch = "arm"
	default:
		return nil, usageError("--arch takes x86 or arm", "there is no architecture %q", printable(s.arch))
	}
	return func(x client.Size) bool {
		return x.VCPUs >= s.cpu && x.MemoryMB >= mb && (arch == "" || x.Architecture == arch)
	}, nil
}

// parseMemory reads 4, 4GB, 4GiB, 512MB or 0.5 as megabytes.
func parseMemory(s string) (int, error) {
	num, factor := strings.ToLower(strings.TrimSpace(s)), 1024.0
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"gib", 1024}, {"gb", 1024}, {"g", 1024}, {"mib", 1}, {"mb", 1}, {"m", 1}} {
		if rest, ok := strings.CutSuffix(num, u.suffix); ok {
			num, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !(v >= 0 && v < 1e6) {
		return 0, usageError("write 4 or 4GB, or 512MB", "%q is not an amount of memory", printable(s))
	}
	return int(v * factor), nil
}

func memory(mb int) string {
	if mb >= 1024 {
		return strconv.FormatFloat(float64(mb)/1024, 'f', -1, 64) + " GB"
	}
	return strconv.Itoa(mb) + " MB"
}

func disk(gb int) string {
	if gb == 0 {
		return ""
	}
	return strconv.Itoa(gb) + " GB"
}
