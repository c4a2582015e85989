// Package diary writes what dlwb notes about its own work to the file of DLWB_LOG.
package diary

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/dlwb/dlwb/sanitize"
)

// openAppend opens a file to be written at its end, or a terminal or the null
// device. A fifo is refused: opening it waits for its reader, and each line would
// wait for it again.
func openAppend(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%s is a fifo or a socket; name a file", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		err = fmt.Errorf("%s is a fifo; name a file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Open sends what dlwb notes about its own work to the file that DLWB_LOG
// names, and nowhere without it: the terminal belongs to the screen. The file
// may hold what nodes said, safe to be looked at, but no secrets of a profile.
func Open() (io.Closer, error) {
	path := os.Getenv("DLWB_LOG")
	if path == "" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		return io.NopCloser(nil), nil
	}
	f, err := openAppend(path)
	if err != nil {
		return nil, fmt.Errorf("open the log that DLWB_LOG names: %w", err)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(sanitize.NewWriter(f), &slog.HandlerOptions{Level: slog.LevelDebug})).With("pid", os.Getpid()))
	return f, nil
}
