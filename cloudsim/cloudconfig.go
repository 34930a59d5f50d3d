package cloudsim

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// cloudConfig is the part of a cloud-config that is acted on.
type cloudConfig struct {
	files    []cloudFile
	commands [][]string // a command of one word is a line for the shell
	notes    []string   // what a real cloud-init would warn of
}

type cloudFile struct {
	path    string
	data    []byte
	mode    os.FileMode
	appends bool
}

// knownKeys are the top-level keys that cloud-init has modules for, those at
// least that first boots of fleets use.
var knownKeys = strings.Fields(`apt apt_pipelining bootcmd byobu_by_default ca_certs chpasswd cloud_config_modules
	cloud_final_modules cloud_init_modules datasource_list disable_ec2_metadata disable_root disk_setup drivers
	final_message fqdn fs_setup groups growpart hostname keyboard locale manage_etc_hosts manage_resolv_conf merge_how
	mounts no_ssh_fingerprints ntp output package_reboot_if_required package_update package_upgrade packages password
	phone_home power_state prefer_fqdn_over_hostname preserve_hostname random_seed repo_update reporting resize_rootfs
	resolv_conf rsyslog runcmd snap ssh ssh_authorized_keys ssh_deletekeys ssh_genkeytypes ssh_import_id ssh_pwauth swap
	system_info timezone user users vendor_data write_files yum_repos`)

// readUserData reads user-data as a real cloud-init does. An error means that
// cloud-init warns, goes on without any of it, and the boot ends as if there
// were none.
func readUserData(data []byte) (cloudConfig, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		plain, err := gunzip(data)
		if err != nil {
			return cloudConfig{}, fmt.Errorf("Unhandled non-multipart (text/x-not-multipart) userdata: %w", err)
		}
		data = plain
	}
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return cloudConfig{}, nil
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return cloudConfig{}, errors.New("Unhandled non-multipart (text/x-not-multipart) userdata: a byte order mark stands before the first line")
	case !utf8.Valid(data):
		return cloudConfig{}, errors.New("Unhandled non-multipart (text/x-not-multipart) userdata: not UTF-8 text")
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "#cloud-config" {
		return cloudConfig{}, errors.New("Unhandled non-multipart (text/x-not-multipart) userdata: the first line is not #cloud-config")
	}
	var doc map[string]any
	if err := yaml.UnmarshalWithOptions(data, &doc, yaml.AllowDuplicateMapKey()); err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		return cloudConfig{}, fmt.Errorf("Failed loading yaml blob. Invalid format: %s", why)
	}
	var c cloudConfig
	for _, key := range sortedKeys(doc) {
		if !slices.Contains(knownKeys, key) {
			c.note("Additional properties are not allowed (%q was unexpected)", key)
		}
	}
	c.readFiles(doc)
	c.readCommands(doc)
	return c, nil
}

// gunzip unpacks what was compressed, up to a size that no first boot needs.
func gunzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, 16<<20))
}

func (c *cloudConfig) note(format string, args ...any) {
	c.notes = append(c.notes, "Invalid cloud-config: "+fmt.Sprintf(format, args...))
}

func (c *cloudConfig) readFiles(doc map[string]any) {
	v, ok := doc["write_files"]
	if !ok {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.note("write_files: %v is not of type 'array'", v)
		return
	}
	for i, item := range list {
		f, err := readFile(item)
		if err != nil {
			c.note("write_files.%d: %v", i, err)
			continue
		}
		c.files = append(c.files, f)
	}
}

func readFile(item any) (cloudFile, error) {
	m, ok := item.(map[string]any)
	if !ok {
		return cloudFile{}, errors.New("not of type 'object'")
	}
	path, _ := m["path"].(string)
	if path == "" {
		return cloudFile{}, errors.New("'path' is a required property")
	}
	f := cloudFile{path: path, mode: 0o644}
	switch content := m["content"].(type) {
	case nil:
	case string:
		f.data = []byte(content)
	default:
		return cloudFile{}, errors.New("content is not of type 'string'")
	}
	switch enc, _ := m["encoding"].(string); enc {
	case "", "text/plain":
	case "b64", "base64":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(f.data)), ""))
		if err != nil {
			return cloudFile{}, errors.New("content is not base64")
		}
		f.data = data
	default:
		return cloudFile{}, fmt.Errorf("encoding %q is not simulated", enc)
	}
	switch p := m["permissions"].(type) {
	case nil:
	case string:
		// Nonsense leaves the default, with a warning alone.
		if n, err := strconv.ParseUint(p, 8, 12); err == nil {
			f.mode = os.FileMode(n & 0o777)
		}
	case uint64:
		f.mode = os.FileMode(p & 0o777) // a number is taken as it is, not as octal digits
	}
	if o, _ := m["owner"].(string); o != "" && o != "root" && o != "root:root" {
		return cloudFile{}, fmt.Errorf("owner %s: no such user yet", o)
	}
	f.appends, _ = m["append"].(bool)
	return f, nil
}

func (c *cloudConfig) readCommands(doc map[string]any) {
	v, ok := doc["runcmd"]
	if !ok {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.note("runcmd: %v is not of type 'array'", v)
		return
	}
	for i, item := range list {
		switch cmd := item.(type) {
		case string:
			c.commands = append(c.commands, []string{cmd})
		case []any:
			var words []string
			for _, w := range cmd {
				words = append(words, fmt.Sprint(w))
			}
			c.commands = append(c.commands, words)
		case nil:
		default:
			c.note("runcmd.%d: %v is not valid under any of the given schemas", i, item)
		}
	}
}

// cloudInit does what cloud-init does at a boot: at the first, it writes the
// files and runs the commands; at every one it keeps a copy of the user-data.
func (g *guest) cloudInit(now time.Time) {
	g.stage = "cloud-init"
	id := "i-" + itoa(g.server.id)
	for _, f := range []cloudFile{
		{path: "/etc/hostname", data: []byte(g.server.name + "\n"), mode: 0o644},
		{path: "/etc/os-release", data: []byte("PRETTY_NAME=\"Ubuntu 24.04 LTS (simulated)\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n"), mode: 0o644},
		{path: "/var/lib/cloud/data/instance-id", data: []byte(id + "\n"), mode: 0o644},
		{path: "/var/lib/cloud/instances/" + id + "/user-data.txt", data: g.server.userData, mode: 0o600},
		{path: "/var/lib/cloud/instances/" + id + "/user-data.txt.i", data: g.server.userData, mode: 0o600},
		{path: "/run/cloud-init/combined-cloud-config.json", data: []byte(strconv.Quote(string(g.server.userData))), mode: 0o600},
	} {
		if err := g.put(f.path, f.data, f.mode, false); err != nil {
			g.print(now, "cloud-init: %v", err)
		}
	}
	g.print(now, "cloud-init: running 'init', instance %s", id)
	if g.boots > 1 {
		g.later(now, metadataTime, func(now time.Time) { g.startEnabled(now) })
		return
	}
	c, err := readUserData(g.server.userData)
	if err != nil {
		g.print(now, "cloud-init: WARNING: %v", err)
		g.stage = "up"
		return
	}
	for _, n := range c.notes {
		g.print(now, "cloud-init: WARNING: %s", n)
	}
	for _, f := range c.files {
		if err := g.put(f.path, f.data, f.mode, f.appends); err != nil {
			g.print(now, "cloud-init: write_files: %v", err)
		}
	}
	g.print(now, "cloud-init: %d files written", len(c.files))
	g.later(now, metadataTime, func(now time.Time) {
		for _, cmd := range c.commands {
			g.runcmd(now, cmd)
		}
		g.print(now, "cloud-init: finished")
		g.up()
	})
}

func (g *guest) runcmd(now time.Time, cmd []string) {
	if len(cmd) == 1 {
		cmd = strings.Fields(cmd[0])
	}
	switch {
	case len(cmd) == 0 || cmd[0] == "sync":
	case strings.TrimPrefix(strings.TrimPrefix(cmd[0], "/usr"), "/bin/") == "systemctl":
		g.systemctl(now, cmd[1:])
	default:
		g.print(now, "runcmd: %s: not simulated", cmd[0])
	}
}

func (g *guest) startEnabled(now time.Time) {
	for _, u := range g.enabled {
		g.startUnit(now, u)
	}
	g.up()
}

// up notes that the boot itself is over.
func (g *guest) up() {
	if g.stage == "cloud-init" {
		g.stage = "up"
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
