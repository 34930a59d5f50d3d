package agent

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/enroll"
)

func secretOf(token enroll.Token) string {
	_, secret, _ := strings.Cut(token.Reveal(), ".")
	return secret
}

func writeTest(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func readTest(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestScrub(t *testing.T) {
	root := t.TempDir()
	token, other := enroll.NewToken(), enroll.NewToken()
	text := "#cloud-config\nJOIN_TOKEN=" + token.Reveal() + "\nother: " + other.Reveal() + "\nagain: " + token.Reveal() + "\n"
	deep := filepath.Join(root, "cloud", "instances", "i-1", "user-data.txt")
	writeTest(t, deep, text, 0o600)
	outside := filepath.Join(root, "outside.txt")
	writeTest(t, outside, text, 0o600)
	large := filepath.Join(root, "cloud", "large")
	writeTest(t, large, text+strings.Repeat("z", maxScrub), 0o600)
	if err := os.Symlink(outside, filepath.Join(root, "cloud", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(root, "cloud", "linked-dir")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(deep)
	if err != nil {
		t.Fatal(err)
	}

	n, err := scrub([]string{filepath.Join(root, "cloud"), filepath.Join(root, "no-such-dir"), filepath.Join(root, "cloud", "link")}, token.ID())
	if n != 2 || err != nil {
		t.Errorf("scrub: %d copies, %v, want 2 and no error", n, err)
	}
	got := readTest(t, deep)
	if strings.Contains(got, token.ID()) || strings.Contains(got, secretOf(token)) {
		t.Errorf("the token is still there:\n%s", got)
	}
	if len(got) != len(text) || !strings.Contains(got, other.Reveal()) || !strings.HasPrefix(got, "#cloud-config\nJOIN_TOKEN=xxx") {
		t.Errorf("more than the token has changed:\n%s", got)
	}
	after, err := os.Stat(deep)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || before.Mode() != after.Mode() {
		t.Error("the file is another one now: it must be overwritten in place")
	}
	if readTest(t, outside) != text {
		t.Error("a link was followed")
	}
	if n, err := scrub([]string{filepath.Join(root, "cloud")}, token.ID()); n != 0 || err != nil {
		t.Errorf("the second time: %d copies, %v", n, err)
	}
	if n, err := scrub([]string{root}, ""); n != 0 || err != nil || readTest(t, outside) != text {
		t.Errorf("without a token: %d, %v", n, err)
	}
}

// Wherever in base64 the token stands, nothing of its secret is left, and what
// is decodes to the same around it.
func TestScrubBase64(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		before := rapid.StringN(0, 40, 60).Draw(r, "before")
		after := rapid.StringN(0, 40, 60).Draw(r, "after")
		token := enroll.DeriveToken(bytes.Repeat([]byte{9}, 32), rapid.String().Draw(r, "token"))
		enc := rapid.SampledFrom([]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding}).Draw(r, "encoding")
		plain := before + token.Reveal() + after
		path := filepath.Join(dir, "file")
		writeTest(t, path, "user_data: "+enc.EncodeToString([]byte(plain))+"\n", 0o600)
		n, err := scrub([]string{dir}, token.ID())
		if n != 1 || err != nil {
			r.Fatalf("%d copies, %v", n, err)
		}
		left := strings.TrimSuffix(strings.TrimPrefix(readTest(t, path), "user_data: "), "\n")
		data, err := enc.DecodeString(left)
		if err != nil {
			r.Fatalf("it is not base64 any more: %v", err)
		}
		got := string(data)
		if len(got) != len(plain) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
			r.Fatalf("%q became %q", plain, got)
		}
		middle := got[len(before) : len(got)-len(after)]
		// All but the bits that share a character with what stands around.
		if strings.Trim(middle[1:len(middle)-1], "x") != "" {
			r.Fatalf("left of the token: %q", middle)
		}
	})
}

func TestScrubGoesOnAfterAFailure(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may open everything; a directory in the way of none.
		t.Skip("root may read everything")
	}
	dir := t.TempDir()
	token := enroll.NewToken()
	writeTest(t, filepath.Join(dir, "a"), token.Reveal(), 0o000)
	writeTest(t, filepath.Join(dir, "b"), token.Reveal(), 0o600)
	n, err := scrub([]string{dir}, token.ID())
	if n != 1 || err == nil {
		t.Errorf("%d copies, %v, want 1 and an error", n, err)
	}
}

func TestDestroy(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "join.env"), filepath.Join(dir, "hard-link")
	writeTest(t, path, "JOIN_TOKEN=secret", 0o600)
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	if err := destroy(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if got := readTest(t, link); got != strings.Repeat("x", 17) {
		t.Errorf("its blocks hold %q: it was removed without being overwritten", got)
	}
	if err := destroy(path); err != nil {
		t.Errorf("the second time: %v", err)
	}
	target := filepath.Join(dir, "target")
	writeTest(t, target, "precious", 0o600)
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := destroy(path); err == nil || readTest(t, target) != "precious" {
		t.Errorf("a link was followed: %v, %q", err, readTest(t, target))
	}
}
