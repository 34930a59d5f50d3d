package api

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/client"
)

// tokenPrefix lets people and secret scanners recognise an API token.
const tokenPrefix = "swat_"

// NewToken returns a new API token of 256 random bits.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program first
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// OpenToken returns the API token in the file at path. When there is no such
// file it makes one, readable by its owner alone. A file that others can read
// is refused.
func OpenToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("make the API token: %w", err)
	}
	token := NewToken()
	_, err = f.WriteString(token + "\n")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path)
		return "", fmt.Errorf("make the API token: %w", err)
	}
	return token, nil
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read the API token: %w", err)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return "", fmt.Errorf("the API token's file %s can be read by others (mode %04o): run `chmod 600 %s`, or delete it for a new token", path, m, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the API token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 32 {
		return "", fmt.Errorf("the API token in %s is too short to be one: delete %s, and the next start makes a new one", path, filepath.Base(path))
	}
	return token, nil
}

// requireToken lets a request through that carries the token. Hashes are
// compared, so that neither content nor length shows in the time it takes.
func requireToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		ok := strings.EqualFold(scheme, "Bearer") && given != ""
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok {
			next.ServeHTTP(w, r)
			return
		}
		detail, challenge := "the API token is missing", `Bearer realm="slipway"`
		if ok {
			detail, challenge = "the API token is wrong", `Bearer realm="slipway", error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		writeProblem(w, plainProblem(http.StatusUnauthorized, client.ClassUnauthorized, detail,
			"the token is in the file api-token of the control plane's data directory; SLIPWAY_TOKEN_FILE or SLIPWAY_TOKEN tells the command"))
	})
}
