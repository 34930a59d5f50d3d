package provision

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Values pass through YAML, a shell, systemd and docker's env files. They are
// refused, not escaped: an alphabet that means nothing in any of the four
// leaves no question of quoting.
var (
	tokenPattern       = regexp.MustCompile(`^[A-Za-z0-9._~-]{16,512}$`)
	fingerprintPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	tagPattern         = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	urlPathPattern     = regexp.MustCompile(`^(/[A-Za-z0-9._~-]*)*$`)
	urlQueryPattern    = regexp.MustCompile(`^[A-Za-z0-9._~/=&%+:,-]*$`)
	digitsPattern      = regexp.MustCompile(`^[0-9]+$`)

	// The grammar of image references, of github.com/distribution/reference:
	// host and port, path, tag, digest.
	imagePattern = regexp.MustCompile(`^(?:(` + imageHost + `)/)?` + imagePart + `(?:/` + imagePart + `)*` +
		`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)
)

const (
	imageHost = `(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?`
	imagePart = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`

	// In bytes, so that all of the longest together fit. A host name has up to
	// 253, an image's name 255, its tag 128, its digest 71.
	maxAddrLength  = 320
	maxImageLength = 456
	maxURLLength   = 320
)

// reservedShortNames own directories in /etc and /var/lib on every node.
var reservedShortNames = []string{"apt", "cloud", "containerd", "dbus", "docker", "dpkg", "ssh", "ssl", "systemd"}

// paramError refuses one of CloudInitParams.
type paramError struct{ field, rule string }

func (e *paramError) Error() string        { return "cloud-init: " + e.field + ": " + e.rule }
func (e *paramError) Is(target error) bool { return target == ErrInvalid }

func badParam(field, format string, args ...any) error {
	return &paramError{field, fmt.Sprintf(format, args...)}
}

// checkToken comes first: after it, every other value can be shown in errors,
// in lower case too, as checkHostName does.
func (p CloudInitParams) checkToken() error {
	if !tokenPattern.MatchString(p.JoinToken) {
		return badParam("JoinToken", "it has %d bytes; wanted are 16 to 512 of A-Z a-z 0-9 . _ ~ -", len(p.JoinToken))
	}
	for _, f := range p.textFields() {
		if strings.Contains(strings.ToLower(f.value), strings.ToLower(p.JoinToken)) {
			return badParam(f.name, "it contains the join token, which must be nowhere but in JoinToken")
		}
	}
	return nil
}

// validate checks parameters whose defaults are filled in.
func (p CloudInitParams) validate() error {
	for _, f := range p.textFields() {
		if err := f.check(f.value); err != nil {
			return badParam(f.name, "%v", err)
		}
	}
	return nil
}

type textField struct {
	name, value string
	check       func(string) error
}

// textFields are all but the token.
func (p CloudInitParams) textFields() []textField {
	return []textField{
		{"ControlPlaneAddr", p.ControlPlaneAddr, checkControlPlaneAddr},
		{"CAFingerprint", p.CAFingerprint, checkFingerprint},
		{"NodeName", p.NodeName, checkHostName},
		{"AgentVersion", p.AgentVersion, checkTag},
		{"AgentImage", p.AgentImage, checkImage},
		{"DockerInstallURL", p.DockerInstallURL, checkInstallURL},
		{"ShortName", p.ShortName, checkNodeShortName},
	}
}

func checkFingerprint(s string) error {
	if s == "" || fingerprintPattern.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not sha256: and 64 lower-case hex digits (empty means the system's roots)", clip(s, 80))
}

func checkTag(s string) error {
	if tagPattern.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is no image tag: letters, digits, _ . - and at most 128 of them, beginning with none of . -", clip(s, 80))
}

func checkImage(s string) error {
	m := imagePattern.FindStringSubmatch(s)
	if m == nil || len(s) > maxImageLength {
		return fmt.Errorf("%q is no image reference, such as registry.example.com:5000/agent:v1 or agent@sha256:<64 hex digits>", clip(s, 80))
	}
	if host := m[1]; strings.Contains(host, "[") || strings.Contains(host, ":") {
		return checkHostPort(host, true)
	}
	return nil
}

func checkNodeShortName(s string) error {
	if !validShortName(s) {
		return fmt.Errorf("%q: lower-case letters, digits and hyphens, at most 32, beginning with a letter and not ending with a hyphen", clip(s, 80))
	}
	if slices.Contains(reservedShortNames, s) {
		return fmt.Errorf("%q: /etc/%s and /var/lib/%s belong to another program", s, s, s)
	}
	return nil
}

func checkControlPlaneAddr(s string) error {
	if len(s) > maxAddrLength {
		return fmt.Errorf("it has %d bytes, at most %d are taken", len(s), maxAddrLength)
	}
	rest, isURL := strings.CutPrefix(s, "https://")
	if !isURL {
		if strings.Contains(s, "://") {
			return fmt.Errorf("%q: the only scheme is https", clip(s, 80))
		}
		return checkHostPort(s, false)
	}
	host, path, _ := strings.Cut(rest, "/")
	if err := checkHostPort(host, true); err != nil {
		return err
	}
	if !urlPathPattern.MatchString("/"+path) || hasDotSegment(path) {
		return fmt.Errorf("%q: a URL here has a plain path, and no user, query or fragment", clip(s, 80))
	}
	return nil
}

func hasDotSegment(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}

// checkHostPort checks host:port, where host is a name, an IPv4 address or an
// IPv6 address in brackets.
func checkHostPort(s string, portOptional bool) error {
	host, port, err := splitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q: %v", clip(s, 80), err)
	}
	if port == "" && !portOptional {
		return fmt.Errorf("%q has no port; host:port is wanted, such as cp.example.com:8443 or [2001:db8::1]:8443", clip(s, 80))
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0 || port[0] == '0') {
		return fmt.Errorf("%q: the port is a number from 1 to 65535", clip(s, 80))
	}
	if strings.HasPrefix(host, "[") {
		return nil // splitHostPort has parsed the address
	}
	if err := checkHostName(host); err != nil {
		return fmt.Errorf("host %w", err)
	}
	// A last label of digits alone makes an address, not a name.
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := netip.ParseAddr(host); err != nil && digitsPattern.MatchString(last) {
		return fmt.Errorf("host %q is neither a name nor an IPv4 address", clip(host, 80))
	}
	return nil
}

// splitHostPort leaves an IPv6 address in its brackets. An empty port means
// that there was none.
func splitHostPort(s string) (host, port string, err error) {
	if !strings.HasPrefix(s, "[") {
		host, port, found := strings.Cut(s, ":")
		if strings.Contains(port, ":") {
			return "", "", errors.New("an IPv6 address stands in brackets, as in [2001:db8::1]:8443")
		}
		if found && port == "" {
			return "", "", errors.New("the port is missing after the colon")
		}
		return host, port, nil
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return "", "", errors.New("the bracket is not closed")
	}
	addr, err := netip.ParseAddr(s[1:end])
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", "", errors.New("in the brackets there is no IPv6 address (without zone)")
	}
	host, rest := s[:end+1], s[end+1:]
	if rest == "" {
		return host, "", nil
	}
	port, found := strings.CutPrefix(rest, ":")
	if !found || port == "" {
		return "", "", errors.New("after the bracket comes a colon and the port")
	}
	return host, port, nil
}

// checkInstallURL: the script runs as root, so nobody on the way may change
// it. Within a closed network http to an address of that network will do; a
// name could be answered by anybody.
func checkInstallURL(s string) error {
	if len(s) > maxURLLength {
		return fmt.Errorf("it has %d bytes, at most %d are taken", len(s), maxURLLength)
	}
	scheme, rest, found := strings.Cut(s, "://")
	if !found || scheme != "https" && scheme != "http" {
		return errors.New("it is no https URL")
	}
	rest, query, _ := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	if err := checkHostPort(host, true); err != nil {
		return err
	}
	if !urlPathPattern.MatchString("/"+path) || !urlQueryPattern.MatchString(query) {
		return errors.New("path and query are of letters, digits and . _ ~ - / (in the query also = & % + : ,), and there is no user and no fragment")
	}
	if _, err := url.Parse(s); err != nil {
		return errors.New("it is no URL")
	}
	if scheme == "http" && !isOwnNetwork(host) {
		return errors.New("http is taken only to a private or loopback address, written as an address: the script runs as root")
	}
	return nil
}

func isOwnNetwork(hostPort string) bool {
	host, _, err := splitHostPort(hostPort)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && (addr.Unmap().IsPrivate() || addr.Unmap().IsLoopback())
}

// developmentVersion is what builds between releases call themselves: Go's
// pseudo-versions, git describe, a commit, and whatever has a plus sign (no tag
// can), as in v1.2.3+dirty.
var developmentVersion = regexp.MustCompile(
	`^(dev|devel|development|\(devel\)|unknown|none|[0-9a-f]{7,40})?$` +
		`|^[A-Za-z0-9_.-]+(\+[A-Za-z0-9.-]*|[-.][0-9]{14}-[0-9a-f]{12}|-[0-9]+-g[0-9a-f]{4,40}|-dirty)$`)

// isDevelopmentVersion tells versions of which no image is published.
func isDevelopmentVersion(v string) bool { return developmentVersion.MatchString(v) }
