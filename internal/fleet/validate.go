package fleet

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var (
	labelPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	fleetIDPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// tagPattern is what a label's key or value may be: what every provider
	// that has labels takes.
	tagKeyPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)
	tagValuePattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// Limits of what one request may ask for.
const (
	maxCandidates = 20
	maxLabels     = 32
)

func validFleetID(s string) bool { return fleetIDPattern.MatchString(s) }

// checkName holds a name to an RFC 1123 label, which is a host name at every
// provider, and says one that would do.
func checkName(what, name string) error {
	if labelPattern.MatchString(name) {
		return nil
	}
	hint := "use a to z, 0 to 9 and hyphens, at most 63, beginning and ending with a letter or digit"
	if better := nearestName(name); better != "" {
		hint += "; " + better + " would do"
	}
	return invalidf(hint, "%q cannot be the name of %s", clip(name, 80), what)
}

// nearestName is a valid name that looks like the one given; empty when
// nothing of it can stay.
func nearestName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		case r == '_', r == '.', r == ' ':
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if len(s) > 63 {
		s = strings.TrimRight(s[:63], "-")
	}
	return s
}

// checkSpec checks what can be known of a spec without asking anybody.
func checkSpec(s NodeSpec) error {
	if err := checkName("a node", s.Name); err != nil {
		return err
	}
	if s.Account == "" {
		return invalidf("name one of the accounts, or add one", "no account is named")
	}
	if err := checkCandidates(s.Candidates); err != nil {
		return err
	}
	if err := checkSSH(s); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"", "x86", "arm"}, s.Architecture):
		return invalidf("use x86 or arm, or leave it out", "architecture %q is not known", clip(s.Architecture, 40))
	case s.DiskGB < 0:
		return invalidf("leave it out for the size's own disk", "a disk of %d GB cannot be had", s.DiskGB)
	case strings.ContainsAny(s.Image, " \t\r\n"):
		return invalidf("use the provider's id or name of an image", "image %q holds white space", clip(s.Image, 80))
	}
	return checkCommon(s)
}

// checkCommon checks what also holds for a machine that was not made by us.
func checkCommon(s NodeSpec) error {
	if s.JoinTimeout < 0 {
		return invalidf("", "a join timeout of %s is in the past", s.JoinTimeout)
	}
	if len(s.Labels) > maxLabels {
		return invalidf("", "%d labels are more than %d", len(s.Labels), maxLabels)
	}
	for k, v := range s.Labels {
		if !tagKeyPattern.MatchString(k) || !tagValuePattern.MatchString(v) {
			return invalidf("use letters, digits, '.', '_' and '-', at most 63, beginning and ending with a letter or digit",
				"label %q=%q cannot be kept", clip(k, 80), clip(v, 80))
		}
	}
	return nil
}

func checkCandidates(cs []Candidate) error {
	if len(cs) == 0 {
		return invalidf("name a region and a size", "no region and size is named")
	}
	if len(cs) > maxCandidates {
		return invalidf("", "%d candidates are more than %d", len(cs), maxCandidates)
	}
	for i, c := range cs {
		if c.Region == "" || c.Size == "" {
			return invalidf("name both", "candidate %d lacks a region or a size", i+1)
		}
		if strings.ContainsAny(c.Region+c.Size, " \t\r\n") {
			return invalidf("use the ids that regions and sizes show", "candidate %d holds white space", i+1)
		}
		if slices.Contains(cs[:i], c) {
			return invalidf("name each once", "candidate %s in %s is named twice", c.Size, c.Region)
		}
	}
	return nil
}

func checkSSH(s NodeSpec) error {
	if len(s.SSHSourceCIDRs) > 0 && !s.AllowSSHInbound {
		return invalidf("allow SSH too, or leave the sources out", "sources for SSH are named, and SSH is not allowed")
	}
	for _, c := range s.SSHSourceCIDRs {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return invalidf("write it as 203.0.113.0/24, or 203.0.113.7/32 for one address", "%q is no address range", clip(c, 60))
		}
		if p != p.Masked() {
			return invalidf("write "+p.Masked().String(), "%q has bits beyond its prefix length", c)
		}
	}
	for _, k := range s.SSHKeys {
		if k == "" || strings.ContainsAny(k, "\r\n") {
			return invalidf("give a name, or the text of a public key on one line", "an SSH key is empty or has several lines")
		}
		if strings.Contains(k, "PRIVATE KEY") {
			return invalidf("give the public half, the file that ends in .pub", "an SSH key is a private key")
		}
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
