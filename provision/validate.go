package provision

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What is checked before a call, because the provider would say it later,
// worse, or not at all. Each returns the rule in words, and what would do.

var hostLabel = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// checkHostName holds RFC 1123: labels of up to 63 letters, digits and
// hyphens, joined by dots, up to 253 in all.
func checkHostName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	bad := func(label string) bool { return !hostLabel.MatchString(label) }
	if len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), bad) {
		return nil
	}
	rule := "a name is made of letters, digits, hyphens and dots, at most 63 between dots, with a letter or digit at each end"
	if would := suggestHostName(name); would != "" {
		return fmt.Errorf("name %q: %s; %q would do", clip(name, 80), rule, would)
	}
	return fmt.Errorf("name %q: %s; %q would do", clip(name, 80), rule, "node-1")
}

var notHostName = regexp.MustCompile(`[^a-z0-9-]+`)

func suggestHostName(name string) string {
	var labels []string
	for label := range strings.SplitSeq(strings.ToLower(name), ".") {
		label = strings.Trim(notHostName.ReplaceAllString(label, "-"), "-")
		label = strings.Trim(label[:min(len(label), 63)], "-")
		if label != "" {
			labels = append(labels, label)
		}
	}
	for len(labels) > 1 && len(strings.Join(labels, ".")) > 253 {
		labels = labels[:len(labels)-1]
	}
	return strings.Join(labels, ".")
}

// checkUserData refuses what cloud-init would ignore without a word.
func checkUserData(data string, limit int) error {
	switch {
	case len(data) > limit:
		return fmt.Errorf("the user-data has %d bytes, this provider takes %d", len(data), limit)
	case strings.HasPrefix(data, "\ufeff"):
		return errors.New("the user-data begins with a byte-order mark, which makes cloud-init ignore it: save it as UTF-8 without one")
	case strings.Contains(data, "\r"):
		return errors.New("the user-data has carriage returns, which make cloud-init ignore it: save it with Unix line ends")
	case !utf8.ValidString(data) || strings.Contains(data, "\x00"):
		return errors.New("the user-data is not UTF-8 text")
	}
	return nil
}

// checkCIDRs wants networks, not hosts that were given a network's length.
func checkCIDRs(cidrs []string) error {
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		if err == nil && p == p.Masked() {
			continue
		}
		if err == nil {
			return fmt.Errorf("SSH source %q has bits after its prefix; %q would do", c, p.Masked())
		}
		if a, err := netip.ParseAddr(c); err == nil && a.Zone() == "" {
			return fmt.Errorf("SSH source %q is no network in CIDR form; %q would do", c, netip.PrefixFrom(a, a.BitLen()))
		}
		return fmt.Errorf("SSH source %q is no network in CIDR form, such as 198.51.100.0/24", clip(c, 60))
	}
	return nil
}

// anywhere is the default of CreateOpts.SSHSourceCIDRs.
func anywhere() []string { return []string{"0.0.0.0/0", "::/0"} }

func checkArchitecture(a string) error {
	if a != "" && a != "x86" && a != "arm" {
		return fmt.Errorf("architecture %q: x86 or arm", clip(a, 40))
	}
	return nil
}

// checkWord is for what goes into a request as the provider's own name.
func checkWord(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty", what)
	case len(s) > 255 || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the %s %q is no name", what, clip(s, 60))
	}
	return nil
}
