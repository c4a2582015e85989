package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/dlwb/dlwb/sanitize"
)

// openLog sends what dlwb notes about its own work to the file that DLWB_LOG
// names, and nowhere without it: the terminal belongs to the screen. The file
// may hold what nodes said, safe to be looked at, but no secrets of a profile.
func openLog() (io.Closer, error) {
	path := os.Getenv("DLWB_LOG")
	if path == "" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		return io.NopCloser(nil), nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log that DLWB_LOG names: %w", err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(sanitize.NewWriter(f), &slog.HandlerOptions{Level: slog.LevelDebug})).With("pid", os.Getpid()))
	return f, nil
}
