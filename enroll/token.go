package enroll

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

// TokenPrefix begins every join token, so that people and secret scanners
// recognise one.
const TokenPrefix = "swjt_"

// TokenPattern is the form of a join token: the prefix, a public id of 80 bits
// in lower-case base32, a dot, and a secret of 256 bits in base64url.
const TokenPattern = `swjt_[a-z2-7]{16}\.[A-Za-z0-9_-]{43}`

var tokenForm = regexp.MustCompile(`^` + TokenPattern + `$`)

// ErrTokenForm tells that a text is not of the form of a join token.
var ErrTokenForm = errors.New("not a join token (swjt_<id>.<secret>)")

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Token is a join token. It prints, logs and marshals without its secret; only
// [Token.Reveal] gives it away. The zero value is no token.
type Token struct {
	id     string
	secret [32]byte
}

// NewToken returns a random token.
func NewToken() Token {
	var b [42]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return newToken(b[:10], b[10:])
}

// DeriveToken returns the token that belongs to a context under a key: always
// the same, and without the key not to be guessed. The key must be random and
// of at least 32 bytes.
func DeriveToken(key []byte, context string) Token {
	part := func(label string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(label))
		m.Write([]byte{0})
		m.Write([]byte(context))
		return m.Sum(nil)
	}
	return newToken(part("join token id")[:10], part("join token secret"))
}

func newToken(id, secret []byte) Token {
	t := Token{id: idEncoding.EncodeToString(id)}
	copy(t.secret[:], secret)
	return t
}

// ParseToken reads a token's text. Its errors do not repeat the text.
func ParseToken(s string) (Token, error) {
	if !tokenForm.MatchString(s) {
		return Token{}, ErrTokenForm
	}
	id, secret, _ := strings.Cut(strings.TrimPrefix(s, TokenPrefix), ".")
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if err != nil || len(b) != 32 {
		return Token{}, ErrTokenForm
	}
	t := Token{id: id}
	copy(t.secret[:], b)
	return t, nil
}

// ID returns the public part, fit for logs and look-ups.
func (t Token) ID() string { return t.id }

// IsZero tells whether t is no token.
func (t Token) IsZero() bool { return t.id == "" }

// SecretHash returns the SHA-256 of the secret: what a store keeps. The secret
// has 256 bits, so that a slow hash would add nothing.
func (t Token) SecretHash() [32]byte { return sha256.Sum256(t.secret[:]) }

// Reveal returns the whole token. The result is a secret.
func (t Token) Reveal() string {
	if t.IsZero() {
		return ""
	}
	return TokenPrefix + t.id + "." + base64.RawURLEncoding.EncodeToString(t.secret[:])
}

// String returns the token without its secret.
func (t Token) String() string {
	if t.IsZero() {
		return "(no token)"
	}
	return TokenPrefix + t.id + ".REDACTED"
}

// GoString returns what String does.
func (t Token) GoString() string { return "enroll.Token(" + t.String() + ")" }

// Format prints what String does under every verb: without it, %d would walk
// through the fields.
func (t Token) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		_, _ = io.WriteString(f, t.GoString())
		return
	}
	_, _ = io.WriteString(f, t.String())
}

// MarshalText returns what String does, so that a token that strays into a
// document is worthless there.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue returns what String does.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
