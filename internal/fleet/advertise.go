package fleet

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// carrierNAT is shared address space (RFC 6598): no way in from outside.
var carrierNAT = netip.MustParsePrefix("100.64.0.0/10")

// checkAdvertise refuses an address that a VM in the account's cloud cannot
// reach. A cloud whose endpoint is on this machine is a simulated one: its
// guests reach what this machine reaches.
func (f *Fleet) checkAdvertise(ctx context.Context, a Account) error {
	host, _, err := net.SplitHostPort(f.cfg.Advertise)
	if err != nil {
		return invalidf("", "the advertised address %q is not of the form host:port", f.cfg.Advertise)
	}
	if isLocalEndpoint(a.Endpoint) {
		return nil
	}
	const hint = "start the control plane with --advertise set to a public name or address of it, with the port of its nodes listener"
	if host == "" || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return refusedf(hint, "nodes would be told to join at %q, which is this machine itself", f.cfg.Advertise)
	}
	addrs, err := f.resolve(ctx, host)
	if err != nil {
		return refusedf(hint, "nodes would be told to join at %q, and its name cannot be resolved", f.cfg.Advertise)
	}
	why := ""
	for _, addr := range addrs {
		if why = unreachable(addr); why == "" {
			return nil
		}
	}
	return refusedf(hint, "nodes would be told to join at %q, which is %s: a server at %s cannot reach it", f.cfg.Advertise, why, a.Provider)
}

func (f *Fleet) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	addrs, err := f.cfg.LookupHost(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no address", Name: host}
	}
	return addrs, err
}

// unreachable says why an address is of no use to a VM elsewhere; empty when
// it may be.
func unreachable(a netip.Addr) string {
	a = a.Unmap()
	switch {
	case a.IsLoopback():
		return "a loopback address"
	case a.IsUnspecified():
		return "no address but 'any'"
	case a.IsPrivate():
		return "a private address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case carrierNAT.Contains(a):
		return "an address behind a carrier's NAT"
	}
	return ""
}

func isLocalEndpoint(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if endpoint == "" || err != nil {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Unmap().IsLoopback()
}
