package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/waits"
)

// openInput opens a file, or standard input for "-". A fifo is read too, as the
// shell makes one of <(command): who names it means it. What has no end by itself
// ends with ctx.
func (a *app) openInput(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "-" {
		return &interruptedInput{ctx: ctx, from: a.in}, nil
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return openFifo(ctx, path)
	}
	f, err := plainfile.Open(path)
	var failed *os.PathError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("open %s: %w", path, failed.Err)
	}
	return f, err
}

// openFifo waits for whoever writes into a fifo, no longer than ctx.
func openFifo(ctx context.Context, path string) (io.ReadCloser, error) {
	defer waits.Begin(waits.Wait{On: path, What: "to be written to: it is a fifo"})()
	type opened struct {
		f   *os.File
		err error
	}
	ch := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		ch <- opened{f, err}
	}()
	select {
	case o := <-ch:
		if o.err != nil {
			return nil, o.err
		}
		return &interruptedInput{ctx: ctx, from: o.f}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// interruptedInput is an input that ends with a context: a read that blocks is
// left behind.
type interruptedInput struct {
	ctx  context.Context
	from io.Reader
	buf  []byte
}

// Read reads what has come.
func (r *interruptedInput) Read(p []byte) (int, error) {
	if len(r.buf) < len(p) {
		r.buf = make([]byte, len(p))
	}
	type read struct {
		n   int
		err error
	}
	ch := make(chan read, 1)
	buf := r.buf[:len(p)]
	go func() {
		n, err := r.from.Read(buf)
		ch <- read{n, err}
	}()
	select {
	case got := <-ch:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// Close leaves the input: a read may be under way.
func (r *interruptedInput) Close() error { return nil }
