package fleet

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/enroll"
)

// token is the join token of a node's attempt. It is derived and never kept,
// so that a repeat of the attempt's create call is the same to the byte.
func (f *Fleet) token(n Node) enroll.Token {
	return enroll.DeriveToken(f.cfg.TokenKey, n.ID+"|"+strconv.Itoa(n.Attempt))
}

func (f *Fleet) tokenRecord(n Node) TokenRecord {
	t := f.token(n)
	return TokenRecord{
		ID: t.ID(), NodeID: n.ID, Attempt: n.Attempt, SecretHash: t.SecretHash(),
		State: TokenLive, CreatedAt: f.now(), ExpiresAt: n.JoinBy,
	}
}

var (
	tokenText   = regexp.MustCompile(enroll.TokenPattern)
	consoleJunk = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|[^\x20-\x7e\n]`)
)

// tidyConsole makes the end of a console's output fit one line of a timeline.
func tidyConsole(text string) string {
	const lines, most = 5, 600
	text = tokenText.ReplaceAllString(consoleJunk.ReplaceAllString(text, ""), "[token]")
	all := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	tail := strings.Join(strings.Fields(strings.Join(all, " / ")), " ")
	if len(tail) > most {
		tail = "…" + tail[len(tail)-most:]
	}
	return tail
}
