package provision

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Preflight.

// Preflight tells whether a create with these options would be refused, and
// makes nothing: the options themselves, the credential, the zone, whether the
// size is offered there and has the architecture, the permissions, that the
// name is free (or held by this very create), and the quotas of the region and
// the project.
//
// What it cannot see: whether there is capacity, which Google tells nobody
// beforehand; an organisation policy that forbids the server; whether an image
// exists; and the quotas of the newest series, which stand elsewhere.
// Permissions are seen where the Cloud Resource Manager API is enabled.
func (g *GCP) Preflight(ctx context.Context, opts CreateOpts) error {
	const op = "preflight"
	if err := g.checkOpts(op, opts); err != nil {
		return err
	}
	var zone gcpZone
	if err := g.get(ctx, op, g.project()+"/zones/"+opts.Region, nil, &zone); err != nil {
		return err
	}
	if !zone.isOpen() {
		return g.fail(ErrUnavailable, op, "choose another zone", "the zone %q is down, or given up", opts.Region)
	}
	t, err := g.machineType(ctx, op, opts.Region, opts.Size)
	if err != nil {
		return err
	}
	if err := g.fits(op, t, opts); err != nil {
		return err
	}
	if t.Deprecated != nil && (t.Deprecated.State == "OBSOLETE" || t.Deprecated.State == "DELETED") {
		return g.fail(ErrInvalid, op, "choose another size", "size %q is not sold any more", t.Name)
	}
	if err := g.checkMay(ctx, op, opts); err != nil {
		return err
	}
	if isRepeat, err := g.checkFree(ctx, op, opts); err != nil || isRepeat {
		return err // a repeat makes nothing more
	}
	return g.checkQuotas(ctx, op, lastPart(zone.Region), t, opts)
}

// gcpCreatePermissions are what a create and a delete need. The role in
// docs/permissions/gcp.json has these and those of the reading calls.
var gcpCreatePermissions = []string{
	"compute.instances.create", "compute.instances.delete", "compute.instances.get", "compute.instances.setLabels",
	"compute.instances.setMetadata", "compute.instances.setTags",
	"compute.disks.create", "compute.disks.delete", "compute.disks.setLabels",
	"compute.subnetworks.use", "compute.subnetworks.useExternalIp",
	"compute.networks.get", "compute.networks.create", "compute.firewalls.delete",
}

// gcpSSHPermissions are needed beside those when SSH is asked for.
var gcpSSHPermissions = []string{"compute.firewalls.create", "compute.networks.updatePolicy"}

// checkMay asks which of the permissions the credential has. Where the API that
// knows is not enabled, nobody can tell.
func (g *GCP) checkMay(ctx context.Context, op string, opts CreateOpts) error {
	need := slices.Clone(gcpCreatePermissions)
	if opts.AllowSSHInbound {
		need = append(need, gcpSSHPermissions...)
	}
	var have gcpPermissions
	err := g.send(ctx, g.manager, call{
		op: op, method: http.MethodPost, path: "/v1" + g.project() + ":testIamPermissions", harmless: true, body: gcpPermissions{need},
	}, &have)
	switch {
	case errors.Is(err, ErrForbidden), errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	var missing []string
	for _, p := range need {
		if !slices.Contains(have.Permissions, p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return g.fail(ErrForbidden, op, hintGCPRole, "the service account lacks %s in the project %q", strings.Join(missing, ", "), g.key.Project)
	}
	return nil
}

// checkFree lets a server of this very create pass, and tells of it: a repeat
// will find it.
func (g *GCP) checkFree(ctx context.Context, op string, opts CreateOpts) (isRepeat bool, err error) {
	if opts.IdempotencyKey == "" {
		return false, nil // its name will be one that nobody has
	}
	id := identityOf(opts)
	i, err := g.instance(ctx, op, opts.Region, gcpServerName(opts.Name, id))
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, g.adopt(op, i, id)
}

// checkQuotas compares what is used with what may be, in the region and, for
// CPUs, in the whole project.
func (g *GCP) checkQuotas(ctx context.Context, op, region string, t gcpMachineType, opts CreateOpts) error {
	if !gcpName.MatchString(region) {
		return g.fail(ErrUnavailable, op, "", "the zone does not say which region it is in")
	}
	cpus := float64(t.CPUs)
	var all gcpRegion
	for _, q := range []struct {
		path, where string
		need        map[string]float64
	}{
		{g.project() + "/regions/" + region, "in " + region, map[string]float64{
			"CPUS": cpus, strings.ToUpper(t.family()) + "_CPUS": cpus, "INSTANCES": 1, "IN_USE_ADDRESSES": 1,
		}},
		{g.project(), "in the project", map[string]float64{"CPUS_ALL_REGIONS": cpus}},
	} {
		all = gcpRegion{}
		if err := g.get(ctx, op, q.path, nil, &all); err != nil {
			return err
		}
		_, own := findQuota(all.Quotas, strings.ToUpper(t.family())+"_CPUS")
		for _, metric := range sortedKeys(q.need) {
			if metric == "CPUS" && own {
				continue // the series is counted by itself
			}
			if have, ok := findQuota(all.Quotas, metric); ok && have.Usage+q.need[metric] > have.Limit {
				return g.fail(ErrQuota, op, hintGCPQuota, "quota %s %s: %g of %g are used, %g more are needed", metric, q.where, have.Usage, have.Limit, q.need[metric])
			}
		}
	}
	return nil
}

func findQuota(quotas []gcpQuota, metric string) (gcpQuota, bool) {
	for _, q := range quotas {
		if q.Metric == metric {
			return q, true
		}
	}
	return gcpQuota{}, false
}
