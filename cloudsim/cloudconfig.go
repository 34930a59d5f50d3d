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
	"unicode/utf8"
)

// cloudConfig is the part of a cloud-config that is acted on.
type cloudConfig struct {
	packages []string
	files    []cloudFile
	commands []command
	notes    []string // what a real cloud-init would warn of
}

// command is a line for the shell, or words that no shell reads.
type command struct {
	line  string
	words []string
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

// unhandled begins what cloud-init says of user-data that is of no kind that
// it knows.
const unhandled = "Unhandled non-multipart (text/x-not-multipart) userdata: "

// readUserData reads user-data as a strict cloud-init does. An error means that
// cloud-init warns, goes on without any of it, and the boot ends as if there
// were none.
//
// It is stricter than the real one where that would act on something else than
// was meant: carriage returns, which end up in the scripts; a key that stands
// there twice, of which the last one counts; spaces before the first line.
func readUserData(data []byte) (cloudConfig, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		plain, err := gunzip(data)
		if err != nil {
			//lint:ignore ST1005 these are cloud-init's own words
			return cloudConfig{}, fmt.Errorf(unhandled+"%w", err)
		}
		data = plain
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return cloudConfig{}, nil
	}
	if err := checkText(data); err != nil {
		//lint:ignore ST1005 these are cloud-init's own words
		return cloudConfig{}, fmt.Errorf(unhandled+"%w", err)
	}
	doc, err := readYAML(data)
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		//lint:ignore ST1005 these are cloud-init's own words
		return cloudConfig{}, fmt.Errorf("Failed loading yaml blob. Invalid format: %s", why)
	}
	var c cloudConfig
	for _, key := range sortedKeys(doc) {
		if !slices.Contains(knownKeys, key) {
			c.note("Additional properties are not allowed (%q was unexpected)", key)
		}
	}
	c.readPackages(doc)
	c.readFiles(doc)
	c.readCommands(doc)
	return c, nil
}

func checkText(data []byte) error {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("a byte order mark stands before the first line")
	case !utf8.Valid(data):
		return errors.New("not UTF-8 text")
	case bytes.ContainsRune(data, '\r'):
		return errors.New("carriage returns at the ends of lines")
	case string(bytes.TrimRight(first, " \t")) != "#cloud-config":
		return errors.New("the first line is not #cloud-config")
	}
	return nil
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

// list returns a key's list. Another kind of value makes its module fail, as
// an empty one does.
func (c *cloudConfig) list(doc map[string]any, key string) []any {
	v, ok := doc[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		if v == nil {
			v = "None"
		}
		c.note("%s: %v is not of type 'array'", key, v)
	}
	return list
}

func (c *cloudConfig) readPackages(doc map[string]any) {
	for _, item := range c.list(doc, "packages") {
		switch p := item.(type) {
		case string:
			c.packages = append(c.packages, p)
		case []any: // with a version
			if len(p) > 0 {
				c.packages = append(c.packages, fmt.Sprint(p[0]))
			}
		}
	}
}

// readFiles reads write_files up to the first entry on which the module fails;
// those after it are not written.
func (c *cloudConfig) readFiles(doc map[string]any) {
	for i, item := range c.list(doc, "write_files") {
		m, ok := item.(map[string]any)
		if !ok {
			c.note("write_files.%d: not of type 'object'; no file after it is written", i)
			return
		}
		if path, _ := m["path"].(string); path == "" {
			c.note("write_files.%d: 'path' is a required property", i)
			continue
		}
		f, err := readFile(m)
		if err != nil {
			c.note("write_files.%d: %v; no file after it is written", i, err)
			return
		}
		if p, ok := m["permissions"].(string); ok {
			if n, err := strconv.ParseUint(p, 8, 12); err == nil {
				f.mode = os.FileMode(n & 0o777)
			} else {
				c.note("write_files.%d: undecodable permissions %q, returning default 0644", i, p)
			}
		}
		c.files = append(c.files, f)
	}
}

func readFile(m map[string]any) (cloudFile, error) {
	f := cloudFile{path: m["path"].(string), mode: 0o644} // checked by the caller
	switch content := m["content"].(type) {
	case nil:
	case string:
		f.data = []byte(content)
	default:
		return cloudFile{}, fmt.Errorf("content %v is not of type 'string'", content)
	}
	switch enc, _ := m["encoding"].(string); enc {
	case "", "text/plain":
	case "b64", "base64":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(f.data)), ""))
		if err != nil {
			return cloudFile{}, errors.New("content is not base64")
		}
		f.data = data
	case "gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		data := f.data
		if strings.Contains(enc, "+") {
			var err error
			if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(f.data)), "")); err != nil {
				return cloudFile{}, errors.New("content is not base64")
			}
		}
		plain, err := gunzip(data)
		if err != nil {
			return cloudFile{}, errors.New("content is not compressed")
		}
		f.data = plain
	default: // a warning alone, and taken for text
	}
	if n, ok := m["permissions"].(int64); ok {
		f.mode = os.FileMode(n & 0o777) // a number is taken as it is, not as octal digits
	}
	if o, _ := m["owner"].(string); o != "" && o != "root" && o != "root:root" {
		return cloudFile{}, fmt.Errorf("owner %s: no such user yet", o)
	}
	f.appends, _ = m["append"].(bool)
	return f, nil
}

func (c *cloudConfig) readCommands(doc map[string]any) {
	for i, item := range c.list(doc, "runcmd") {
		switch cmd := item.(type) {
		case string:
			c.commands = append(c.commands, command{line: cmd})
		case []any:
			var words []string
			for _, w := range cmd {
				words = append(words, fmt.Sprint(w))
			}
			c.commands = append(c.commands, command{words: words})
		case nil:
		default:
			// cloud-init makes one script of all: none of it is run.
			c.note("runcmd.%d: %v is not valid under any of the given schemas; nothing is run", i, item)
			c.commands = nil
			return
		}
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
