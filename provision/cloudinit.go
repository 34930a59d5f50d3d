package provision

import (
	"bytes"
	"embed"
	"fmt"
	"strings"
	"text/template"
)

// CloudInitParams is everything RenderCloudInit needs to produce a first-boot
// script for a freshly created server.
type CloudInitParams struct {
	// ControlPlaneAddr is where the agent dials: host:port, with an IPv6
	// address in brackets, or an https URL without user, query and fragment.
	ControlPlaneAddr string
	// JoinToken is the one-time secret that the agent joins with: 16 to 512
	// of A-Z a-z 0-9 . _ ~ -
	JoinToken string
	// CAFingerprint is the control plane's CA, as sha256: and 64 lower-case
	// hex digits over its public key (SPKI DER). Empty: the agent verifies
	// the control plane by the system's roots.
	CAFingerprint string
	// NodeName is the node's name: an RFC 1123 host name.
	NodeName string
	// AgentImage overrides defaultAgentImageRepo:tag, for an operator who
	// mirrors the image elsewhere. Empty uses the default repo at
	// AgentVersion. It is taken as it is: without tag and digest, Docker
	// takes the tag "latest".
	AgentImage string
	// AgentVersion is the default image's tag. When it is empty, or names a
	// build that has no published image ("dev", "(devel)", a pseudo-version,
	// a bare commit, what git describe says between releases, anything
	// "-dirty" or with "+"), the tag is "latest".
	AgentVersion string
	// MeshEnabled gives the agent container the TUN device and NET_ADMIN
	// its WireGuard device needs.
	MeshEnabled bool

	// DockerInstallURL is where the Docker install script is downloaded from
	// on a server without Docker, for mirrors and closed networks. It must be
	// https, or http to a literal private or loopback address. Default:
	// https://get.docker.com.
	DockerInstallURL string
	// ShortName names the directories and units on the node, as
	// Options.ShortName does for things at the provider, with the same rule.
	// Default: DefaultShortName.
	ShortName string
}

const (
	defaultAgentImageRepo   = "ghcr.io/slipway-dev/agent"
	publishedTag            = "latest" // moved by each release
	defaultDockerInstallURL = "https://get.docker.com"

	// maxCloudInitSize is in bytes. The smallest limit among the providers is
	// EC2's 16,384; below 12 KiB there is room for what wraps user-data.
	maxCloudInitSize = 12 << 10
)

//go:embed cloudinit
var cloudInitFiles embed.FS

var cloudInitTemplates = template.Must(template.New("").Option("missingkey=error").
	ParseFS(cloudInitFiles, "cloudinit/*"))

// RenderCloudInit renders the user-data that cloud-init acts on at first boot:
// it installs Docker if it is missing, then runs the agent as a container
// under systemd, which joins the control plane with a one-time token.
//
// The join token and the CA fingerprint are in a root-only file, in a
// directory of its own that is mounted into the container; they are neither in
// arguments nor in the container's environment, so that neither ps nor docker
// inspect shows them, and the agent removes the file once it has joined. The
// agent runs as root (--user 0:0: it needs docker.sock and NET_ADMIN), so its
// identity directory is root's, with mode 0700. docs/reference/node-files.md
// has every file, unit and mount: the contract for agents of other makers.
//
// What first boots suffer is provided for: package locks, a network that is
// not ready, failed downloads, a slow image pull, and a power cut at any
// moment. Containers are kept from the provider's metadata service, which
// goes on serving the user-data.
//
// Every parameter is checked; an error names the field and the rule, is
// ErrInvalid, and never contains the token. The same parameters give the same
// text: at most 12 KiB of UTF-8 with Unix line ends, beginning with the line
// #cloud-config, read alike by YAML 1.1 and 1.2. It holds the token: treat it
// as a secret until the node has joined.
func RenderCloudInit(p CloudInitParams) (string, error) {
	if err := p.checkToken(); err != nil {
		return "", err
	}
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		return "", err
	}
	files, err := nodeFiles(p)
	if err != nil {
		return "", err
	}
	doc := renderDocument(p, files)
	if strings.Count(doc, p.JoinToken) != 1 {
		return "", badParam("JoinToken", "it is a text that stands in every node's files: a secret must be random")
	}
	if len(doc) > maxCloudInitSize {
		return "", badParam("CloudInitParams", "they make %d bytes of user-data, and %d fit at every provider: shorten the longest", len(doc), maxCloudInitSize)
	}
	return doc, nil
}

func (p CloudInitParams) withDefaults() CloudInitParams {
	if p.ShortName == "" {
		p.ShortName = DefaultShortName
	}
	if p.DockerInstallURL == "" {
		p.DockerInstallURL = defaultDockerInstallURL
	}
	if isDevelopmentVersion(p.AgentVersion) {
		p.AgentVersion = publishedTag
	}
	if p.AgentImage == "" {
		p.AgentImage = defaultAgentImageRepo + ":" + p.AgentVersion
	}
	return p
}

// nodeFile is one file that cloud-init writes, owned by root.
type nodeFile struct {
	path    string
	mode    string // octal
	content string // ends with a newline
}

// nodeFiles are the files in the order that cloud-init writes them.
func nodeFiles(p CloudInitParams) ([]nodeFile, error) {
	short := p.ShortName
	files := []nodeFile{
		{"/etc/" + short + "/join/join.env", "0600", envFile(
			"JOIN_TOKEN", p.JoinToken,
			"CA_FINGERPRINT", p.CAFingerprint,
		)},
		{"/etc/" + short + "/agent.env", "0600", envFile(
			"CONTROL_PLANE_ADDR", p.ControlPlaneAddr,
			"NODE_NAME", p.NodeName,
			"AGENT_IDENTITY_DIR", "/var/lib/"+short+"/identity",
			"JOIN_FILE", "/etc/"+short+"/join/join.env",
			"MESH_ENABLED", fmt.Sprint(p.MeshEnabled),
			"SCRUB_DIRS", "/var/lib/cloud:/run/cloud-init",
		)},
		{"/usr/local/sbin/" + short + "-setup", "0700", "setup.sh"},
		{"/etc/systemd/system/" + short + "-setup.service", "0644", "setup.service"},
		{"/etc/systemd/system/" + short + "-metadata.service", "0644", "metadata.service"},
		{"/etc/systemd/system/" + short + "-agent.service", "0644", "agent.service"},
	}
	for i := range files[2:] {
		f := &files[2+i]
		var b bytes.Buffer
		if err := cloudInitTemplates.ExecuteTemplate(&b, f.content, templateData(p)); err != nil {
			return nil, fmt.Errorf("render cloud-init: %w", err)
		}
		f.content = b.String()
	}
	return files, nil
}

// envFile has one KEY=VALUE a line. The values need no quotes, which docker
// would take for a part of them: validate holds them to letters, digits and
// the signs that neither docker nor systemd nor a shell reads as more.
func envFile(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(pairs[i] + "=" + pairs[i+1] + "\n")
	}
	return b.String()
}

// templateData is what the files under cloudinit/ are rendered from. Image is
// for a unit's command line, InstallURL for a shell's single quotes.
func templateData(p CloudInitParams) map[string]any {
	return map[string]any{
		"Short":      p.ShortName,
		"Image":      unitWord(p.AgentImage),
		"Mesh":       p.MeshEnabled,
		"InstallURL": shellQuoted(p.DockerInstallURL),
	}
}

// unitWord escapes what systemd would expand in a command line: specifiers
// and variables.
func unitWord(s string) string {
	return strings.NewReplacer("%", "%%", "$", "$$").Replace(s)
}

// shellQuoted is s as one word of a POSIX shell.
func shellQuoted(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// renderDocument writes the files as literal blocks, which need no escapes and
// can be read by people.
//
// cloud-init marks a step as done before it does it, and does it once per
// instance: after a power cut in between, nothing would be repeated, and what
// was written may be lost with the page cache. So until the setup unit has
// said that it was reached, each boot forgets the marks first (bootcmd runs
// before write_files), and nothing is enabled before the files are on disk.
func renderDocument(p CloudInitParams, files []nodeFile) string {
	short := p.ShortName
	const marks = "/var/lib/cloud/instance/sem/config_"
	var b strings.Builder
	fmt.Fprintf(&b, "#cloud-config\n# First boot of %s: Docker, then the agent, which joins by itself.\n", p.NodeName)
	b.WriteString("bootcmd:\n")
	writeCommand(&b, "sh", "-c", fmt.Sprintf("[ -e /var/lib/%s/started ] || rm -f %swrite_files %sruncmd %sscripts_user", short, marks, marks, marks))
	b.WriteString("write_files:\n")
	for _, f := range files {
		writeFileEntry(&b, f)
	}
	b.WriteString("runcmd:\n")
	writeCommand(&b, "sync")
	writeCommand(&b, "systemctl", "daemon-reload")
	writeCommand(&b, "systemctl", "enable", short+"-setup.service", short+"-metadata.service", short+"-agent.service")
	writeCommand(&b, "systemctl", "start", "--no-block", short+"-agent.service")
	return b.String()
}

func writeFileEntry(b *strings.Builder, f nodeFile) {
	fmt.Fprintf(b, "- path: \"%s\"\n  permissions: \"%s\"\n  content: |\n", f.path, f.mode)
	for line := range strings.Lines(f.content) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
}

// writeCommand writes a command word by word, which no shell reads. No word
// has a quote or backslash.
func writeCommand(b *strings.Builder, words ...string) {
	fmt.Fprintf(b, "- [\"%s\"]\n", strings.Join(words, `", "`))
}
