package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTokenIsAskedForEachRequest(t *testing.T) {
	n := 0
	var sent []string
	step := withAuth(func(_ context.Context, c *call) (*answer, error) {
		sent = append(sent, c.header.Get("Authorization"))
		return &answer{}, nil
	}, func(context.Context) (string, error) { n++; return fmt.Sprintf("t%d", n), nil }, &redactor{})
	c := &call{}
	for range 2 {
		if _, err := step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(sent, " ") != "Bearer t1 Bearer t2" || c.header != nil {
		t.Errorf("sent %q; the call itself has %v", sent, c.header)
	}
}

func TestCheckToken(t *testing.T) {
	for token, ok := range map[string]bool{
		"abc": true, strings.Repeat("a", 64): true, "": false, "a b": false, "a\nb": false, "a\r\nX-Evil: 1": false, "ü": false, "\"": true,
	} {
		err := checkToken(token)
		if (err == nil) != ok || err != nil && (!errors.Is(err, ErrUnauthorized) || token != "" && strings.Contains(err.Error(), token)) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestTokenFailureIsNotSent(t *testing.T) {
	step := withAuth(func(context.Context, *call) (*answer, error) {
		t.Error("sent without a token")
		return &answer{}, nil
	}, func(context.Context) (string, error) { return "", errors.New("no token") }, &redactor{})
	if _, err := step(t.Context(), &call{}); err == nil {
		t.Error("no error")
	}
}
