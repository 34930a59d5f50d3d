package provision

import (
	"context"
	"testing"
)

func TestUserAgentHasTheShortName(t *testing.T) {
	var got string
	step := withAgent(func(_ context.Context, c *call) (*answer, error) {
		got = c.header.Get("User-Agent")
		return &answer{}, nil
	}, "acme")
	if _, err := step(t.Context(), &call{}); err != nil || got != "acme provision-go" {
		t.Errorf("User-Agent %q, error %v", got, err)
	}
}
