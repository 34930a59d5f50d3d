package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Preflight.

// Preflight tells whether a create with these options would be refused, and
// makes nothing: the options themselves, the credential, the region, whether
// the size is sold to this subscription there and has the architecture, that
// the resource providers are registered, the permissions, the quotas of cores
// and of public IPs, that the name is free (or held by this very create), and
// the SSH keys that are given by name.
//
// What it cannot see: whether there is capacity, which Azure tells nobody
// beforehand; a policy that forbids the server; and whether an image exists.
func (a *Azure) Preflight(ctx context.Context, opts CreateOpts) error {
	const op = "preflight"
	if err := a.checkOpts(op, opts); err != nil {
		return err
	}
	skus, err := a.findSkus(ctx, op, opts.Region)
	if err != nil {
		return err
	}
	if len(skus) == 0 {
		if err := a.checkRegion(ctx, op, opts.Region); err != nil {
			return err
		}
	}
	sku, err := a.skuOf(ctx, op, opts.Region, opts.Size)
	if err != nil {
		return err
	}
	if err := a.fits(op, sku, opts); err != nil {
		return err
	}
	if err := a.checkMayWrite(ctx, op, opts); err != nil {
		return err
	}
	if err := a.checkRegistered(ctx, op); err != nil {
		return err
	}
	isRepeat, err := a.checkFree(ctx, op, opts)
	if err == nil && !isRepeat { // which makes nothing more
		err = a.checkQuotas(ctx, op, opts.Region, sku)
	}
	if err != nil {
		return err
	}
	_, err = a.sshKeys(ctx, opts.SSHKeys)
	return err
}

// azActions are what a create and a delete need. The role in
// docs/permissions/azure.json has these and those of the reading calls.
var azActions = []string{
	"Microsoft.Compute/virtualMachines/write",
	"Microsoft.Compute/virtualMachines/delete",
	"Microsoft.Compute/disks/delete",
	"Microsoft.Network/publicIPAddresses/write",
	"Microsoft.Network/publicIPAddresses/delete",
	"Microsoft.Network/publicIPAddresses/join/action",
	"Microsoft.Network/networkInterfaces/write",
	"Microsoft.Network/networkInterfaces/delete",
	"Microsoft.Network/networkInterfaces/join/action",
	"Microsoft.Network/virtualNetworks/subnets/join/action",
}

// azSSHActions are needed beside those when SSH is asked for.
var azSSHActions = []string{
	"Microsoft.Network/networkSecurityGroups/write",
	"Microsoft.Network/networkSecurityGroups/delete",
	"Microsoft.Network/networkSecurityGroups/join/action",
}

// checkMayWrite reads the caller's own permissions on the resource group, or
// on the subscription while there is no group: then the group has to be made,
// too. A principal that may not read its permissions is no objection.
func (a *Azure) checkMayWrite(ctx context.Context, op string, opts CreateOpts) error {
	const path = "/providers/Microsoft.Authorization/permissions"
	need := slices.Clone(azActions)
	if opts.AllowSSHInbound {
		need = append(need, azSSHActions...)
	}
	have, err := azList[azPermission](ctx, a, op, a.group()+path, apiVersion(azPermissions))
	if hasCode(err, "ResourceGroupNotFound") {
		need = append(need, "Microsoft.Resources/subscriptions/resourceGroups/write", "Microsoft.Network/virtualNetworks/write")
		have, err = azList[azPermission](ctx, a, op, a.subscription()+path, apiVersion(azPermissions))
	}
	switch {
	case errors.Is(err, ErrForbidden):
		return nil
	case err != nil:
		return err
	}
	var missing []string
	for _, action := range need {
		if !mayDo(have, action) {
			missing = append(missing, action)
		}
	}
	if len(missing) > 0 {
		return a.fail(ErrForbidden, op, hintRole, "the application may not do %s in the resource group %q", strings.Join(missing, ", "), a.cred.Group)
	}
	return nil
}

// mayDo tells whether one of the assigned roles allows the action. What a role
// takes away, another can still give.
func mayDo(have []azPermission, action string) bool {
	for _, p := range have {
		covers := func(pattern string) bool { return coversAction(pattern, action) }
		if slices.ContainsFunc(p.Actions, covers) && !slices.ContainsFunc(p.NotActions, covers) {
			return true
		}
	}
	return false
}

// coversAction matches an action with a pattern in which * stands for
// anything, without regard to case.
func coversAction(pattern, action string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, found := strings.CutPrefix(strings.ToLower(action), parts[0])
	if !found {
		return false
	}
	if len(parts) == 1 {
		return rest == ""
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// checkRegistered finds a subscription in which compute or network was never
// used. Asking takes a read, so a principal that may not read is let pass.
func (a *Azure) checkRegistered(ctx context.Context, op string) error {
	for _, namespace := range []string{"Microsoft.Compute", "Microsoft.Network"} {
		var p azProvider
		err := a.get(ctx, op, a.subscription()+"/providers/"+namespace, apiVersion(azGroups), &p)
		switch {
		case errors.Is(err, ErrForbidden):
			return nil
		case err != nil:
			return err
		case strings.EqualFold(p.RegistrationState, "NotRegistered"), strings.EqualFold(p.RegistrationState, "Unregistered"):
			return a.fail(ErrForbidden, op, hintRegister, "the resource provider %s is not registered in the subscription", namespace)
		}
	}
	return nil
}

// checkFree lets a server of this very create pass, and tells of it: a repeat
// will find it.
func (a *Azure) checkFree(ctx context.Context, op string, opts CreateOpts) (isRepeat bool, err error) {
	if opts.IdempotencyKey == "" {
		return false, nil // its name will be one that nobody has
	}
	id := identityOf(opts)
	vm, found, err := a.machine(ctx, op, azServerName(opts.Name, id))
	if err != nil || !found {
		return false, err
	}
	return true, a.adopt(op, vm, id)
}

// checkQuotas compares what is used in the region with what may be: cores in
// all and of the size's family, and public IPs.
func (a *Azure) checkQuotas(ctx context.Context, op, region string, sku azSku) error {
	cores := int64(max(1, wholeNumber(sku.capability("vCPUs"))))
	for _, q := range []struct {
		namespace, version string
		need               map[string]int64 // by the quota's lower-case name
	}{
		{"Microsoft.Compute", azCompute, map[string]int64{"cores": cores, strings.ToLower(sku.Family): cores, "virtualmachines": 1}},
		{"Microsoft.Network", azNetwork, map[string]int64{"standardskupublicipaddresses": 1, "staticpublicipaddresses": 1, "publicipaddresses": 1}},
	} {
		path := a.subscription() + "/providers/" + q.namespace + "/locations/" + azRegion(region) + "/usages"
		usages, err := azList[azUsage](ctx, a, op, path, apiVersion(q.version))
		if errors.Is(err, ErrForbidden) {
			continue
		}
		if err != nil {
			return err
		}
		for _, u := range usages {
			if need, ok := q.need[strings.ToLower(u.Name.Value)]; ok && u.Limit >= 0 && u.CurrentValue+need > u.Limit {
				return a.fail(ErrQuota, op, hintQuota, "%s in %s: %d of %d are used, %d more are needed", quotaTitle(u), region, u.CurrentValue, u.Limit, need)
			}
		}
	}
	return nil
}

func quotaTitle(u azUsage) string {
	if u.Name.Localized != "" {
		return u.Name.Localized
	}
	return fmt.Sprintf("quota %q", u.Name.Value)
}
