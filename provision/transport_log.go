package provision

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// withLog writes one debug line per attempt: no header, no body, no query.
func withLog(next step, logger *slog.Logger) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		begin := time.Now()
		ans, err := next(ctx, c)
		path, _, _ := strings.Cut(c.path, "?") // links that are followed bring their query along
		if !logger.Enabled(ctx, slog.LevelDebug) {
			return ans, err
		}
		attrs := []slog.Attr{
			slog.String("op", c.op), slog.String("method", c.method), slog.String("path", path),
			slog.Duration("took", time.Since(begin).Round(time.Millisecond)),
		}
		var e *ProviderError
		switch {
		case err == nil:
			attrs = append(attrs, slog.Int("status", ans.status))
		case errors.As(err, &e):
			attrs = append(attrs, slog.Any("error", e))
		}
		logger.LogAttrs(ctx, slog.LevelDebug, "provider call", attrs...)
		return ans, err
	}
}
