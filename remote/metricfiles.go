package remote

import (
	"context"
	"errors"
	"io"

	"github.com/dlwb/dlwb/remote/wire"
)

// MetricFiles hands over what is new in the files of metrics that a run writes,
// until ctx ends, take fails, the connection is lost, or all was told that was
// asked for. A piece is never longer than its head says. take must not keep the
// bytes.
func (n *Node) MetricFiles(ctx context.Context, r wire.FilesRequest, take func(wire.FilesNews) error) error {
	left := int64(0) // of the piece
	err := listen(ctx, n, wire.Files, r, nil, func(m wire.FilesNews) error {
		if m.File != nil {
			left = m.File.Length
		}
		if left -= int64(len(m.Data)); left < 0 || left > wire.FilePieceMost || m.File != nil && m.File.Next < 0 {
			return wire.Brokenf("it tells of a file what no file is: %+v", m.File)
		}
		return take(m)
	})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return n.wrap("read files of metrics", err)
}
