package provision

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

func TestOneLinePerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		calls := 0
		client := testClient(func(*http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return respond(503, `{"error":{"code":"maintenance","message":"later"}}`, "X-Correlation-Id", "c-1"), nil
			}
			return respond(200, "{}"), nil
		}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		err := client.do(t.Context(), call{op: "list", method: http.MethodGet, path: "/servers", query: map[string][]string{"name": {"n"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "error.class=unavailable") || !strings.Contains(lines[0], "error.request_id=c-1") ||
			!strings.Contains(lines[1], "status=200") || !strings.Contains(lines[1], "path=/servers") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}
