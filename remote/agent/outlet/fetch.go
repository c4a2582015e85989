//go:build linux

package outlet

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

// Fetch sends the files and links that the caller names, in that order, while it
// still names more.
func Fetch(ctx context.Context, s *wire.Stream) error {
	var r wire.FetchRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	dir, err := dirOf(r.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make(chan bulk.File)
	go func() {
		defer close(files)
		if err := wanted(ctx, s, dir, files); err != nil {
			cancel(err)
		}
	}()
	return bulk.Send(ctx, s, files)
}

// wanted receives what is asked for.
func wanted(ctx context.Context, s *wire.Stream, dir string, files chan<- bulk.File) error {
	for {
		var page wire.FetchPage
		if err := s.Recv(&page); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, w := range page.Wants {
			if w.Name == "" || len(w.Name) > wire.NameMost || w.From < 0 {
				return wire.Faultf(wire.Wrong, "%.60q from %d can't be asked for", w.Name, w.From)
			}
			select {
			case files <- bulk.File{Path: filepath.Join(dir, w.Name), From: w.From, Link: w.Link}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}
