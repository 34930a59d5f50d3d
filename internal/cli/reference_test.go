package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the reference pages anew")

func reference() string { return filepath.Join("..", "..", "docs", "reference") }

// TestReferenceIsCurrent: the pages of docs/reference/cli are what the commands say.
// Written anew by: go test ./internal/cli -run Reference -update
func TestReferenceIsCurrent(t *testing.T) {
	root := New(Factory{Getenv: func(string) string { return "" }})
	root.DisableAutoGenTag = true
	dir := t.TempDir()
	if err := doc.GenMarkdownTree(root, dir); err != nil {
		t.Fatal(err)
	}
	compare(t, dir, filepath.Join(reference(), "cli"))
}

// TestExitCodesReference: docs/reference/exit-codes.md has the table.
func TestExitCodesReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Exit codes\n\nEvery command of `slipway` ends with one of these.\n\n| code | word | when |\n| --- | --- | --- |\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.code, e.word, e.when)
	}
	b.WriteString("\nWith several nodes, the first failure in the order given decides. `slipway help exit-codes` says the same.\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "exit-codes.md"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	compare(t, dir, reference(), "exit-codes.md")
}

// TestEnvironmentReference: docs/reference/environment.md has the variables.
func TestEnvironmentReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Environment variables\n\nA flag wins over a variable, a variable over a file. Credentials and tokens are never flags.\n\n| variable | holds |\n| --- | --- |\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, v.what)
	}
	b.WriteString("\nA control plane that runs on this machine is found without any of them. `slipway help environment` says the same.\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "environment.md"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	compare(t, dir, reference(), "environment.md")
}

// compare holds the files of have to those of want: those named, or all.
func compare(t *testing.T, have, want string, names ...string) {
	t.Helper()
	only := len(names) > 0
	if !only {
		entries, err := os.ReadDir(have)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	if *update {
		if !only {
			if err := os.RemoveAll(want); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(want, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range names {
		a, err := os.ReadFile(filepath.Join(have, n))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(want, n), a, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(filepath.Join(want, n))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not current (%v): run go test ./internal/cli -run Reference -update\n%s", n, err, cmp.Diff(string(b), string(a)))
		}
	}
	if only {
		return
	}
	entries, err := os.ReadDir(want)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Errorf("%s has %d pages, and there are %d commands", want, len(entries), len(names))
	}
}

// TestHelp: every command and flag says what it is, and no flag takes a secret.
func TestHelp(t *testing.T) {
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		seen++
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help is %q", c.CommandPath(), c.Short)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: help is %q", c.CommandPath(), f.Name, f.Usage)
			}
			if name, _ := pflag.UnquoteUsage(f); strings.Contains(name, " ") {
				t.Errorf("%s --%s: its value is called %q", c.CommandPath(), f.Name, name)
			}
			for _, word := range []string{"token", "credential", "secret", "password", "key"} {
				if strings.Contains(f.Name, word) && !strings.HasSuffix(f.Name, "-file") && f.Name != "ssh-key" {
					t.Errorf("%s --%s would show a secret in process lists", c.CommandPath(), f.Name)
				}
			}
		})
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(New(Factory{Getenv: func(string) string { return "" }}))
	if seen < 29 {
		t.Errorf("only %d commands; this test would hold nothing", seen)
	}
}
