package enroll_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-dev/slipway/enroll"
)

func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 64).Draw(t, "key")
		a := enroll.DeriveToken(key, rapid.String().Draw(t, "context"))
		b, err := enroll.ParseToken(a.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if a != b || a.ID() != b.ID() || a.SecretHash() != b.SecretHash() {
			t.Fatalf("%v came back as %v", a, b)
		}
		if !regexp.MustCompile("^(?:" + enroll.TokenPattern + ")$").MatchString(a.Reveal()) {
			t.Fatalf("a token is not of TokenPattern")
		}
	})
}

func TestDeriveTokenIsStableAndApart(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	a := enroll.DeriveToken(key, "node|1")
	if enroll.DeriveToken(key, "node|1") != a {
		t.Error("the same key and context gave two tokens")
	}
	for what, b := range map[string]enroll.Token{
		"another context": enroll.DeriveToken(key, "node|2"),
		"another key":     enroll.DeriveToken(other, "node|1"),
		"chance":          enroll.NewToken(),
	} {
		if a.ID() == b.ID() || a.SecretHash() == b.SecretHash() {
			t.Errorf("%s gave the same token", what)
		}
	}
}

func TestParseTokenRefuses(t *testing.T) {
	good := enroll.NewToken().Reveal()
	for what, s := range map[string]string{
		"empty":              "",
		"a space before":     " " + good,
		"a line feed after":  good + "\n",
		"no prefix":          strings.TrimPrefix(good, enroll.TokenPrefix),
		"upper case id":      strings.ToUpper(good[:21]) + good[21:],
		"short secret":       good[:len(good)-1],
		"long secret":        good + "A",
		"id of other digits": enroll.TokenPrefix + "0189" + good[9:],
		"standard base64":    good[:len(good)-2] + "+A",
		"padding":            good[:len(good)-1] + "=",
		"two tokens":         good + good,
		"no dot":             strings.Replace(good, ".", "_", 1),
		"spare bits are set": good[:len(good)-1] + "B",
		"not ASCII":          strings.Replace(good, "swjt", "ѕwjt", 1),
	} {
		_, err := enroll.ParseToken(s)
		if !errors.Is(err, enroll.ErrTokenForm) {
			t.Errorf("%s: got %v, want ErrTokenForm", what, err)
		}
		if err != nil && len(s) > 30 && strings.Contains(err.Error(), s[25:]) {
			t.Errorf("%s: the error repeats the token", what)
		}
	}
}

// A token must not give its secret away by any of the usual ways, also inside
// of other values.
func TestTokenIsRedacted(t *testing.T) {
	token := enroll.NewToken()
	secret := token.Reveal()[strings.IndexByte(token.Reveal(), '.')+1:]
	raw := fmt.Sprintf("%x", token.SecretHash()) // stands in for any bytes: must not show either
	type holder struct {
		Name  string
		Token enroll.Token
		At    *enroll.Token
	}
	h := holder{Name: "n", Token: token, At: &token}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b", "%o", "%T", "%t", "%c", "%U", "%e"} {
		for _, v := range []any{token, &token, h, &h, []enroll.Token{token}, map[string]enroll.Token{"a": token}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	out.WriteString(fmt.Errorf("wrapped: %v", token).Error())
	for _, v := range []any{token, h, &h, map[string]any{"t": token}} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "token", token, "holder", h, "pointer", &token)
	}
	text := out.String()
	if !strings.Contains(text, token.ID()) {
		t.Error("the public id shows nowhere: the test looks at nothing")
	}
	tok, _ := enroll.ParseToken(token.Reveal())
	if tok != token {
		t.Fatal("round trip")
	}
	for what, s := range map[string]string{"secret": secret, "hash": raw} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
			t.Errorf("the %s shows in:\n%s", what, text)
		}
	}
	if strings.Contains(text, "[32]uint8{") || regexp.MustCompile(`(\d+ ){20}`).MatchString(text) {
		t.Errorf("the bytes show in:\n%s", text)
	}
}

func TestZeroToken(t *testing.T) {
	var z enroll.Token
	if !z.IsZero() || z.Reveal() != "" || z.String() != "(no token)" || enroll.NewToken().IsZero() {
		t.Errorf("zero token: IsZero %v, Reveal %q, String %q", z.IsZero(), z.Reveal(), z)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(enroll.DeriveToken(bytes.Repeat([]byte{7}, 32), "n").Reveal())
	f.Add("swjt_aaaaaaaaaaaaaaaa.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("swjt_")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := enroll.ParseToken(s)
		if err != nil {
			if !token.IsZero() {
				t.Error("an error, and a token")
			}
			return
		}
		if token.Reveal() != s {
			t.Errorf("two texts for one token: %q and %q", s, token.Reveal())
		}
	})
}
