package main

import (
	"strings"
	"testing"
	"time"
)

func TestEpoch(t *testing.T) {
	for text, want := range map[string]time.Time{"": time.Unix(0, 0), "1700000000": time.Unix(1_700_000_000, 0)} {
		if got, err := epoch(text); err != nil || !got.Equal(want) {
			t.Errorf("epoch(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "1.5", " 1"} {
		if _, err := epoch(text); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("epoch(%q): %v", text, err)
		}
	}
}

// What is wrong is said before anything is compiled for long.
func TestRunRefuses(t *testing.T) {
	none := func(string) string { return "" }
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a file that is not there": {[]string{"-roots", "no/such/file"}, "no such file"},
		"a Go that is not there":   {[]string{"-go", "no-such-go", "-arch", "amd64"}, "no-such-go"},
	} {
		args := append([]string{"-out", t.TempDir()}, tt.args...)
		if err := run(t.Context(), args, none); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
