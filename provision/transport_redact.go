package provision

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const redacted = "[redacted]"

// redactor knows the credentials that were sent and takes them out of texts.
type redactor struct {
	mu     sync.Mutex
	tokens []string
}

// keptTokens is how many of the last tokens are known: an answer can come
// after its token was renewed.
const keptTokens = 4

func (r *redactor) learn(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.tokens, token) {
		return
	}
	if r.tokens = append(r.tokens, token); len(r.tokens) > keptTokens {
		r.tokens = slices.Clone(r.tokens[1:])
	}
}

// secretField finds JSON members by names that hold secrets at any provider.
// The closing quote may be missing: a body can be cut.
var secretField = regexp.MustCompile(`(?i)("[a-z_]*(?:user_?data|custom_?data|password|secret|token|private_?key|assertion)"\s*:\s*)"(?:[^"\\]|\\.)*"?`)

var bearer = regexp.MustCompile(`(?i)(bearer|basic)[ :=]+[A-Za-z0-9._~+/=-]{8,}`)

// shortestSecret is the length below which a token is none, but a word that a
// simulated cloud was given for one: "test" has to stay readable.
const shortestSecret = 6

// clean returns text without the tokens that were sent, without the given
// secrets and without members that by their name are secret.
func (r *redactor) clean(text string, secrets []string) string {
	text = secretField.ReplaceAllString(text, `$1"`+redacted+`"`)
	text = bearer.ReplaceAllString(text, "$1 "+redacted)
	r.mu.Lock()
	all := slices.Concat(r.tokens, secrets)
	r.mu.Unlock()
	// The longest first, so that no part of one stays behind.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, s := range all {
		if len(s) < shortestSecret {
			break
		}
		for _, form := range []string{s, jsonEscaped(s)} {
			if form != "" {
				text = strings.ReplaceAll(text, form, redacted)
			}
		}
	}
	return text
}

func jsonEscaped(s string) string {
	b, err := json.Marshal(s)
	if err != nil || len(b) < 2 {
		return ""
	}
	return string(b[1 : len(b)-1])
}

// longWord is the length from which a word of user-data is taken for a
// secret: shorter ones are words of a language.
const longWord = 16

// secretWords returns the user-data and each long word of it, so that an
// answer that quotes a line, or only the token in it, is cleaned too. Words
// that are part of what the caller named openly are left out.
func secretWords(userData string, open ...string) []string {
	if userData == "" {
		return nil
	}
	words := []string{userData}
	split := strings.FieldsFunc(userData, func(r rune) bool {
		return strings.ContainsRune(" \t\r\n\"'`=,;:{}[]()<>|&", r)
	})
	for _, w := range split {
		named := func(name string) bool { return strings.Contains(name, w) }
		if len(w) >= longWord && !slices.ContainsFunc(open, named) {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// redactedCause keeps what an error is and hides what it says: errors.Is sees
// through it, its text is cleaned, and no way of printing it shows the rest.
type redactedCause struct {
	text string
	is   func(target error) bool
}

func (r redactedCause) Error() string        { return r.text }
func (r redactedCause) Is(target error) bool { return r.is(target) }

func (r *redactor) cause(err error, secrets []string) error {
	return redactedCause{
		text: r.clean(err.Error(), secrets),
		is:   func(target error) bool { return errors.Is(err, target) },
	}
}
