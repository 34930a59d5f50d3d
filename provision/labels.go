package provision

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// managedBy is the label that everything carries, with the short name as
// value.
const managedBy = "managed-by"

// The rest of our own label keys, after "<short>-".
const (
	labelKey    = "key"    // hash of the idempotency key
	labelParams = "params" // hash of the parameters of the create
	labelRole   = "role"   // what a thing beside the servers is for, see the role constants
	labelServer = "server" // id of the server that a thing serves
	labelCreate = "create" // what one create is recognised by, where there are tags and no labels
	// When a thing was made, RFC 3339 in UTC, at providers that do not tell.
	labelCreated = "created"
)

// The values of the role label.
const (
	roleNoInbound = "no-inbound" // the shared firewall without rules
	roleNoLogin   = "no-login"   // the shared key whose private half is gone
	roleLogin     = "login"      // a key that was uploaded for somebody
	roleSSH       = "ssh"        // the firewall of one server that lets SSH in
	roleNetwork   = "network"    // the shared network of a region
)

var (
	shortNamePattern  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$`)
	labelKeyPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	labelValuePattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

func validShortName(s string) bool { return shortNamePattern.MatchString(s) }

// labeller makes the labels of one Provisioner.
type labeller struct {
	short string
	extra map[string]string // Options.Labels
}

// key is "<short>-<suffix>".
func (l labeller) key(suffix string) string { return l.short + "-" + suffix }

// shared are the labels of a thing that serves the whole account. It carries
// none of Options.Labels: it belongs to every fleet of the same short name.
func (l labeller) shared(role string) map[string]string {
	return map[string]string{managedBy: l.short, l.key(labelRole): role}
}

// own are the labels of a thing made by one create.
func (l labeller) own(opts CreateOpts, id identity) map[string]string {
	labels := maps.Clone(opts.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, l.extra)
	labels[managedBy] = l.short
	labels[l.key(labelKey)] = id.key
	labels[l.key(labelParams)] = id.params
	return labels
}

// isOurs tells whether labels are of a thing made under our short name.
func (l labeller) isOurs(labels map[string]string) bool { return labels[managedBy] == l.short }

// selector selects what carries our short name and all of the given labels,
// in the notation that Hetzner took over from Kubernetes.
func (l labeller) selector(more map[string]string) string {
	var b strings.Builder
	b.WriteString(managedBy + "=" + l.short)
	for _, k := range sortedKeys(more) {
		b.WriteString("," + k + "=" + more[k])
	}
	return b.String()
}

// check refuses labels of a create that would hide our own.
func (l labeller) check(labels map[string]string) error {
	for _, k := range sortedKeys(labels) {
		if isReservedLabel(l.short, k) {
			return fmt.Errorf("label %q is set by this package", k)
		}
		if v, ok := l.extra[k]; ok && v != labels[k] {
			return fmt.Errorf("label %q is %q for everything that this Provisioner makes", k, v)
		}
		if err := checkLabel(k, labels[k]); err != nil {
			return err
		}
	}
	return nil
}

func isReservedLabel(short, key string) bool {
	suffix, ok := strings.CutPrefix(key, short+"-")
	return key == managedBy || ok && slices.Contains([]string{labelKey, labelParams, labelRole, labelServer, labelCreate, labelCreated}, suffix)
}

// checkLabel holds the rules of Hetzner, the narrowest of the providers that
// have keys and values, but for upper case.
func checkLabel(key, value string) error {
	if !labelKeyPattern.MatchString(key) {
		return fmt.Errorf("label key %q: up to 63 of letters, digits, '.', '_' and '-', beginning and ending with a letter or digit", key)
	}
	if !labelValuePattern.MatchString(value) {
		return fmt.Errorf("label %q has the value %q: up to 63 of letters, digits, '.', '_' and '-', beginning and ending with a letter or digit", key, value)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
