package provision

import (
	"context"
	"errors"
	"strings"
	"time"
)

// List.

// ListServers lists the resource group's virtual machines with their states,
// and its public IP addresses, following every page: with up to a hundred
// servers that is two requests. A machine's own address is known by its name.
func (a *Azure) ListServers(ctx context.Context) ([]Server, error) {
	const op = "list servers"
	vms, err := a.machines(ctx, op)
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	if len(vms) > 0 {
		ips, err := azListIn[azPublicIP](ctx, a, op, "/providers/Microsoft.Network/publicIPAddresses", azNetwork)
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			addresses[strings.ToLower(ip.Name)] = ip.Properties.IPAddress
		}
	}
	now := time.Now()
	servers := make([]Server, 0, len(vms))
	for _, vm := range vms {
		if !a.labels.isOurs(vm.Tags) || !a.carriesExtra(vm.Tags) {
			continue
		}
		s := Server{
			ID: vm.Name, Name: vm.serverName(), Status: vm.ourStatus(now), Region: azRegion(vm.Location),
			IPAddr: addresses[strings.ToLower(namesOf(vm.Name).ip)], Size: vm.Properties.Hardware.VMSize,
			CreatedAt: a.vmCreated(vm), Labels: vm.Tags,
		}
		if s.Status == ServerStatusError {
			s.Failure = a.failure(vm)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// machines lists all machines of the resource group. There is no filter by
// tag in this list.
func (a *Azure) machines(ctx context.Context, op string) ([]azVM, error) {
	return azListIn[azVM](ctx, a, op, "/providers/Microsoft.Compute/virtualMachines", azCompute)
}

// azListIn lists one type of thing in the resource group. A group that does
// not exist holds nothing.
func azListIn[T any](ctx context.Context, a *Azure, op, path, version string) ([]T, error) {
	query := apiVersion(version)
	if strings.HasSuffix(path, "/virtualMachines") {
		query.Set("$expand", "instanceView")
	}
	list, err := azList[T](ctx, a, op, a.group()+path, query)
	if errors.Is(err, ErrNotFound) && hasCode(err, "ResourceGroupNotFound") {
		return []T{}, nil
	}
	return list, err
}

func (a *Azure) carriesExtra(tags map[string]string) bool {
	for k, v := range a.labels.extra {
		if tags[k] != v {
			return false
		}
	}
	return true
}

// serverName is the name that the create was given.
func (vm azVM) serverName() string {
	if vm.Properties.OS.ComputerName != "" {
		return vm.Properties.OS.ComputerName
	}
	return vm.Name
}

// azRegion is a region as ListRegions has it: older resources say "West
// Europe" for westeurope.
func azRegion(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}

func (a *Azure) vmCreated(vm azVM) time.Time {
	if vm.Properties.TimeCreated != nil {
		return *vm.Properties.TimeCreated
	}
	return a.createdAt(vm.Tags)
}

// createdAt reads the tag that says when a thing was made; zero without one.
func (a *Azure) createdAt(tags map[string]string) time.Time {
	t, err := time.Parse(time.RFC3339, tags[a.labels.key(labelCreated)])
	if err != nil {
		return time.Time{}
	}
	return t
}
