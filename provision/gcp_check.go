package provision

import (
	"fmt"
	"regexp"
	"strings"
)

// Create: the rules that need no call.

func (g *GCP) checkOpts(op string, opts CreateOpts) error {
	_, _, dataErr := gcpUserData(opts.UserData)
	for _, err := range []error{
		checkGCPName(opts.Name),
		checkWord("region", opts.Region),
		checkWord("size", opts.Size),
		dataErr,
		g.labels.check(opts.Labels),
		checkGCPLabels(opts.Labels),
		checkCIDRs(opts.SSHSourceCIDRs),
		checkArchitecture(opts.Architecture),
		checkGCPImage(opts.Image),
		checkGCPKeys(opts.SSHKeys),
	} {
		if err != nil {
			return invalidError("gcp", op, "%v", err)
		}
	}
	switch {
	case !gcpName.MatchString(opts.Region):
		return g.fail(ErrInvalid, op, "list the regions to see what there is", "%q is no zone's name", clip(opts.Region, 60))
	case !gcpName.MatchString(opts.Size):
		return g.fail(ErrInvalid, op, "list the sizes to see what there is", "%q is no machine type's name", clip(opts.Size, 60))
	case opts.DiskGB != 0 && (opts.DiskGB < gcpLeastDiskGB || opts.DiskGB > gcpMostDiskGB):
		return invalidError("gcp", op, "a disk of %d GB: from %d to %d at Google", opts.DiskGB, gcpLeastDiskGB, gcpMostDiskGB)
	case opts.AllowSSHInbound && len(gcpSources(opts.SSHSourceCIDRs)) == 0:
		return invalidError("gcp", op, "the SSH sources are IPv6 alone, and a server at Google has an IPv4 address alone")
	case len(opts.Labels)+len(g.labels.extra) > gcpMostLabels:
		return invalidError("gcp", op, "%d labels: at Google at most %d", len(opts.Labels)+len(g.labels.extra), gcpMostLabels)
	}
	return nil
}

// checkGCPName holds Google's rule for names.
func checkGCPName(name string) error {
	if err := checkHostName(name); err != nil {
		return err
	}
	if gcpName.MatchString(name) {
		return nil
	}
	would := strings.ReplaceAll(suggestHostName(name), ".", "-")
	if would == "" || would[0] < 'a' {
		would = "node-" + would
	}
	would = strings.TrimRight(would[:min(len(would), 63)], "-")
	return fmt.Errorf("name %q: at Google a name is made of lower-case letters, digits and hyphens, at most 63, begins with a letter and does not end with a hyphen; %q would do", clip(name, 80), would)
}

var (
	gcpLabelKey   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	gcpLabelValue = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
)

// checkGCPLabels holds Google's rules, which are narrower than the common ones.
func checkGCPLabels(labels map[string]string) error {
	for _, k := range sortedKeys(labels) {
		if !gcpLabelKey.MatchString(k) || !gcpLabelValue.MatchString(labels[k]) {
			return fmt.Errorf("label %q=%q: at Google up to 63 of lower-case letters, digits, '_' and '-', the key beginning with a letter", clip(k, 80), clip(labels[k], 80))
		}
	}
	return nil
}

// checkGCPKeys takes keys as text: the project holds none by name.
func checkGCPKeys(keys []string) error {
	for _, k := range keys {
		_, isText, err := parsePublicKey(k)
		if err != nil {
			return err
		}
		if !isText {
			return fmt.Errorf("SSH key %q: Google keeps no keys by name, give the public key itself", clip(k, 40))
		}
	}
	return nil
}
