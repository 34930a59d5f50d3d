package provision

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	goccy "github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	yaml2 "go.yaml.in/yaml/v2"
)

// How the readers of a rendering read it: two generations of YAML, docker's
// and systemd's env files, systemd's units.

// cloudConfig is all that a rendering may hold: the parsers below refuse
// other keys and repeated ones.
type cloudConfig struct {
	Bootcmd    [][]string  `yaml:"bootcmd"`
	WriteFiles []cloudFile `yaml:"write_files"`
	Runcmd     [][]string  `yaml:"runcmd"`
}

type cloudFile struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"`
	Content     string `yaml:"content"`
}

// parseBoth reads doc as YAML 1.1 and as YAML 1.2, and wants the same.
func parseBoth(doc string) (cloudConfig, error) {
	var v11, v12 cloudConfig
	if err := yaml2.UnmarshalStrict([]byte(doc), &v11); err != nil {
		return v11, fmt.Errorf("YAML 1.1: %w", err)
	}
	dec := goccy.NewDecoder(bytes.NewReader([]byte(doc)), goccy.Strict())
	if err := dec.Decode(&v12); err != nil {
		return v12, fmt.Errorf("YAML 1.2: %w", err)
	}
	if diff := cmp.Diff(v11, v12); diff != "" {
		return v11, fmt.Errorf("YAML 1.1 and 1.2 read it differently:\n%s", diff)
	}
	return v11, nil
}

func mustRender(t testing.TB, p CloudInitParams) (string, map[string]cloudFile) {
	t.Helper()
	doc, err := RenderCloudInit(p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseBoth(doc)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]cloudFile{}
	for _, f := range c.WriteFiles {
		if _, twice := files[f.Path]; twice {
			t.Fatalf("%s is written twice", f.Path)
		}
		files[f.Path] = f
	}
	return doc, files
}

// envEntry is one variable; order counts, so that a repeated one shows.
type envEntry struct{ Key, Value string }

// dockerEnv reads an env file as docker run --env-file does (docker/cli,
// opts/file.go): everything after the first = is the value, quotes and all.
func dockerEnv(content string) ([]envEntry, error) {
	var out []envEntry
	for line := range strings.Lines(content) {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || key == "" || strings.ContainsAny(key, " \t") {
			return nil, fmt.Errorf("docker does not take the line %q as KEY=VALUE", line)
		}
		out = append(out, envEntry{key, value})
	}
	return out, nil
}

// systemdEnv reads an env file by the rules of EnvironmentFile= in
// systemd.exec(5): comments with # and ;, quotes removed, backslashes
// interpreted, spaces at the ends of unquoted values dropped.
func systemdEnv(content string) ([]envEntry, error) {
	var out []envEntry
	for line := range strings.Lines(strings.ReplaceAll(content, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, raw, found := strings.Cut(line, "=")
		if !found {
			return nil, fmt.Errorf("systemd does not take the line %q as KEY=VALUE", line)
		}
		var value strings.Builder
		var quote rune
		escaped := false
		for _, r := range raw {
			switch {
			case escaped:
				value.WriteRune(r)
				escaped = false
			case r == '\\' && quote != '\'':
				escaped = true
			case quote == 0 && (r == '"' || r == '\''):
				quote = r
			case r == quote && quote != 0:
				quote = 0
			default:
				value.WriteRune(r)
			}
		}
		if quote != 0 || escaped {
			return nil, fmt.Errorf("systemd reads on past the end of %q", line)
		}
		out = append(out, envEntry{strings.TrimSpace(key), value.String()})
	}
	return out, nil
}

// unitLine is one assignment of a unit file.
type unitLine struct{ Section, Key, Value string }

// parseUnit reads a unit by the rules of systemd.syntax(7).
func parseUnit(content string) ([]unitLine, error) {
	var out []unitLine
	section := ""
	if strings.HasSuffix(content, "\\\n") {
		return nil, fmt.Errorf("the last line goes on past the end")
	}
	for line := range strings.Lines(strings.ReplaceAll(content, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
		default:
			key, value, found := strings.Cut(line, "=")
			if !found || section == "" {
				return nil, fmt.Errorf("%q is no assignment in a section", line)
			}
			out = append(out, unitLine{section, strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return out, nil
}

// unitValues returns the values of one key, in order.
func unitValues(lines []unitLine, section, key string) []string {
	var out []string
	for _, l := range lines {
		if l.Section == section && l.Key == key {
			out = append(out, l.Value)
		}
	}
	return out
}

// execWords takes a command line of a unit apart (systemd.service(5), COMMAND
// LINES), and expands %% and $$. A specifier or variable is refused: none of
// ours is meant.
func execWords(line string) ([]string, error) {
	words := strings.Fields(strings.TrimLeft(line, "-@:+!"))
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, fmt.Errorf("%q does not begin with an absolute path", line)
	}
	for i, w := range words {
		if strings.ContainsAny(w, "\"'\\;") {
			return nil, fmt.Errorf("%q has quotes, a backslash or a semicolon, which systemd interprets", w)
		}
		for _, sign := range []string{"%", "$"} {
			if strings.Contains(strings.ReplaceAll(w, sign+sign, ""), sign) {
				return nil, fmt.Errorf("%q has a %s that systemd expands", w, sign)
			}
			w = strings.ReplaceAll(w, sign+sign, sign)
		}
		words[i] = w
	}
	return words, nil
}

func TestEnvReadersAreStrict(t *testing.T) {
	for _, c := range []struct {
		name, content   string
		docker, systemd []envEntry
	}{
		{"quotes", "A=\"x\"\n", []envEntry{{"A", `"x"`}}, []envEntry{{"A", "x"}}},
		{"backslash", "A=x\\y\n", []envEntry{{"A", `x\y`}}, []envEntry{{"A", "xy"}}},
		{"spaces", "A=x  \n", []envEntry{{"A", "x  "}}, []envEntry{{"A", "x"}}},
		{"semicolon comment", ";A=x\n", []envEntry{{";A", "x"}}, nil},
	} {
		docker, err := dockerEnv(c.content)
		if err != nil {
			t.Fatal(err)
		}
		systemd, err := systemdEnv(c.content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.docker, docker); diff != "" {
			t.Errorf("%s, docker: %s", c.name, diff)
		}
		if diff := cmp.Diff(c.systemd, systemd); diff != "" {
			t.Errorf("%s, systemd: %s", c.name, diff)
		}
	}
	for _, bad := range []string{"A\n", "A='x\n"} {
		if _, err := systemdEnv(bad); err == nil {
			t.Errorf("systemdEnv takes %q", bad)
		}
	}
}

func TestUnitReadersAreStrict(t *testing.T) {
	for _, bad := range []string{"A=b\n", "[Unit]\nA\n", "[Unit]\nA=b \\\n"} {
		if _, err := parseUnit(bad); err == nil {
			t.Errorf("parseUnit takes %q", bad)
		}
	}
	for _, bad := range []string{"docker run", "/a %i", "/a $HOME", `/a "b`, "/a ; /b", `/a \x`} {
		if _, err := execWords(bad); err == nil {
			t.Errorf("execWords takes %q", bad)
		}
	}
	words, err := execWords("-/a 100%% $$x")
	if diff := cmp.Diff([]string{"/a", "100%", "$x"}, words); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
