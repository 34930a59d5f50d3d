package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/slipway-dev/slipway"

// rooms says, for each room, which other rooms its code may import. A room is
// a directory with all below it; the longest match counts. Tests are free:
// they are where rooms meet.
//
// docs/decisions/ has the reason wherever this differs from "leaf imports
// nothing".
var rooms = map[string][]string{
	"provision":                {},
	"provision/provisiontest":  {"provision"},
	"enroll":                   {},
	"enroll/enrolltest":        {"enroll"},
	"cloudsim":                 {},
	"client":                   {"enroll"}, // the pin check has one home
	"internal/agent":           {"enroll"},
	"internal/fleet":           {"provision", "enroll"},
	"internal/fleet/storetest": {"internal/fleet", "provision", "enroll", "enroll/enrolltest"},
	"internal/store":           {"internal/fleet", "provision", "enroll"},
	"internal/store/storetest": {"internal/fleet", "provision", "enroll", "enroll/enrolltest", "internal/store"},
	"internal/api":             {"internal/fleet", "provision", "enroll", "client"},
	"internal/cli":             {"client"},
	"internal/web":             {"client"},
	"internal/image":           {},
	"internal/archtest":        {},
	"tools":                    {"internal/image", "internal/api", "internal/cli", "client"},
	"cmd/slipway":              {"*"},
	"e2e":                      {},
}

// outside says which rooms alone may import a heavy or telling dependency.
var outside = map[string][]string{
	"database/sql":                           {"internal/store"},
	"modernc.org/sqlite":                     {"internal/store"},
	"github.com/riverqueue/":                 {"internal/store"},
	"github.com/spf13/cobra":                 {"internal/cli", "tools"},
	"github.com/danielgtaylor/huma":          {"internal/api"},
	"filippo.io/age":                         {"internal/store", "cmd/slipway"},
	"github.com/google/go-containerregistry": {"internal/image", "tools"},
	"github.com/hetznercloud/":               {},
}

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Name       string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Doc,Name,Imports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list shows only %d packages; these tests would hold nothing", len(pkgs))
	}
	return pkgs
}

// room is the longest key of rooms that is p or one of its parents.
func room(path string) (string, bool) {
	for p := path; p != "." && p != ""; p = filepath.Dir(p) {
		if _, ok := rooms[p]; ok {
			return p, true
		}
	}
	return "", false
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		own, ok := room(rel)
		if !ok {
			t.Errorf("%s belongs to no room: name it in rooms, with what it may import", rel)
			continue
		}
		for _, imp := range p.Imports {
			if err := mayImport(own, imp); err != nil {
				t.Errorf("%s imports %s: %v", rel, imp, err)
			}
		}
	}
}

func mayImport(own, imp string) error {
	for prefix, allowed := range outside {
		if strings.HasPrefix(imp, prefix) && !slices.Contains(allowed, own) && !slices.Contains(allowed, topRoom(own)) {
			return fmt.Errorf("only %v may", allowed)
		}
	}
	other, ok := strings.CutPrefix(imp, module+"/")
	if !ok {
		return nil
	}
	target, ok := room(other)
	if !ok || target == own || slices.Contains(rooms[own], target) || slices.Contains(rooms[own], "*") {
		return nil
	}
	return fmt.Errorf("%s may import %v of ours", own, rooms[own])
}

func topRoom(r string) string { first, _, _ := strings.Cut(r, "/"); return first }

func TestMayImportRefuses(t *testing.T) {
	for _, c := range []struct{ own, imp string }{
		{"provision", module + "/enroll"},
		{"cloudsim", module + "/provision"},
		{"internal/cli", module + "/internal/fleet"},
		{"internal/fleet", "database/sql"},
		{"provision", "github.com/hetznercloud/hcloud-go/v2/hcloud"},
	} {
		if mayImport(c.own, c.imp) == nil {
			t.Errorf("%s may import %s", c.own, c.imp)
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		if strings.HasSuffix(p.Name, "_test") || p.Name == "" {
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// maxLines is the length over which a file is split.
const maxLines = 500

func TestFileLengths(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if n := bytes.Count(data, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines; over %d, a file is split", path, n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Fatalf("only %d files seen; this test would hold nothing", seen)
	}
}

// TestProductNameInProvision: package provision serves any product; its name
// for things made at a provider is passed in.
func TestProductNameInProvision(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "provision", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		if info, err := os.Stat(f); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if l := strings.ToLower(line); strings.Contains(l, "slipway") && !strings.Contains(l, "slipway-dev/") {
				t.Errorf("%s:%d names the product: %s", f, i+1, strings.TrimSpace(line))
			}
		}
	}
}
