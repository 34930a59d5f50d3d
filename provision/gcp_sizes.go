package provision

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
)

// Sizes.

// ListSizes calls GET .../zones/{zone}/machineTypes, or the aggregated list
// for an empty zone. Disk size is a separate resource in GCE, not part of a
// machine type, so every returned Size has Disk 0; CreateServer picks 30 GB
// unless it is told. Prices are in Prices. Deprecated types are left out.
func (g *GCP) ListSizes(ctx context.Context, zone string) ([]Size, error) {
	const op = "list sizes"
	types, err := g.machineTypes(ctx, op, zone)
	if err != nil {
		return nil, err
	}
	sizes := make([]Size, 0, len(types))
	seen := map[string]bool{}
	for _, t := range types {
		if t.Deprecated.isDeprecated() || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		size := Size{ID: t.Name, Name: t.Name, VCPUs: t.CPUs, Memory: t.MemoryMB, Architecture: t.architecture()}
		if t.Deprecated != nil {
			size.UnavailableAfter, _ = time.Parse(time.RFC3339, t.Deprecated.Obsolete) // none is announced: zero
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func (g *GCP) machineTypes(ctx context.Context, op, zone string) ([]gcpMachineType, error) {
	if zone != "" {
		if !gcpName.MatchString(zone) {
			return nil, g.fail(ErrNotFound, op, "list the regions to see what there is", "there is no zone %q", clip(zone, 60))
		}
		return gcpList[gcpMachineType](ctx, g, g.api, op, g.zonal(zone, "machineTypes"), nil)
	}
	var all []gcpMachineType
	scopes, err := gcpAggregate[struct {
		MachineTypes []gcpMachineType `json:"machineTypes"`
	}](ctx, g, op, "machineTypes", nil)
	for _, s := range scopes {
		all = append(all, s.MachineTypes...)
	}
	return all, err
}

// architecture is ours. Rows without one are older than the field.
func (t gcpMachineType) architecture() string {
	if t.Architecture == "ARM64" {
		return "arm"
	}
	return "x86"
}

// machineType finds one by name: custom types are in no list.
func (g *GCP) machineType(ctx context.Context, op, zone, name string) (gcpMachineType, error) {
	return g.types.get(ctx, zone+"/"+name, func(ctx context.Context) (gcpMachineType, error) {
		var t gcpMachineType
		err := g.get(ctx, op, g.zonal(zone, "machineTypes/"+url.PathEscape(name)), nil, &t)
		if err == nil && t.Name == "" {
			err = g.fail(ErrUnavailable, op, "", "the answer names no machine type")
		}
		var e *ProviderError
		if errors.As(err, &e) && errors.Is(e, ErrNotFound) {
			e.Hint = "list the zone's sizes to see what there is"
		}
		return t, err
	})
}

// fits checks what was asked of a size.
func (g *GCP) fits(op string, t gcpMachineType, opts CreateOpts) error {
	if opts.Architecture != "" && opts.Architecture != t.architecture() {
		return g.fail(ErrInvalid, op, "leave the architecture out, or choose a size that has it",
			"size %q is %s, asked for was %s", t.Name, t.architecture(), opts.Architecture)
	}
	return nil
}

// family is the first part of a type's name: e2 of e2-standard-2.
func (t gcpMachineType) family() string {
	family, _, _ := strings.Cut(t.Name, "-")
	return family
}
