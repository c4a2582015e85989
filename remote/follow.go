package remote

import (
	"context"
	"fmt"

	"github.com/dlwb/dlwb/remote/wire"
)

// TruncatedError says that a followed file became shorter than what had been
// read of it, or was replaced: what was delivered is no longer what the file
// says.
type TruncatedError struct {
	Name, Path string
	// Offset is what had been delivered. The last of it may already be from
	// after the truncation: the file may have grown again before anybody looked.
	Offset int64
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("follow %s on %s: the file was truncated or replaced: it no longer has the %d bytes already read. "+
		"Read it again from the start", e.Path, e.Name, e.Offset)
}

// Follow hands over the bytes of a file from an offset on, as they are
// appended, in order: none is lost and none comes twice, also when the
// connection is lost and comes back. A file that does not exist yet is waited
// for; a relative path begins in the user's home. Follow ends with ctx, with
// the first error of sink, or with an error that a new connection can't mend;
// nothing of it stays on the node. sink must not keep p.
func (n *Node) Follow(ctx context.Context, path string, from int64, sink func(off int64, p []byte) error) error {
	return n.follow(ctx, wire.FollowRequest{Path: path, From: from}, sink, func(from, to int64) error {
		return fmt.Errorf("follow %s on %s: it says that the bytes %d to %d are missing", path, n.target.Name, from, to)
	})
}

// FollowLog is Follow for a log of a run, by its name in the run's directory.
// Offsets count all that was ever written to it. Where bytes were dropped on
// the node (see Launch.LogMost) before they were read, dropped is told which,
// and the next ones come from behind them.
func (n *Node) FollowLog(ctx context.Context, runID, name string, from int64,
	sink func(off int64, p []byte) error, dropped func(from, to int64) error) error {
	path := ".dlwb/runs/" + runID + "/" + name
	return n.follow(ctx, wire.FollowRequest{Path: path, From: from, Segment: n.segment}, sink, dropped)
}

func (n *Node) follow(ctx context.Context, r wire.FollowRequest,
	sink func(off int64, p []byte) error, dropped func(from, to int64) error) error {
	take := following(&r, sink, dropped)
	return n.keepListening(ctx, "follow "+r.Path, func() (bool, error) {
		before := r.From
		err := listen(ctx, n, wire.Follow, r, nil, take)
		if wire.Is(err, wire.Truncated) {
			err = &takeError{&TruncatedError{n.target.Name, r.Path, r.From}}
		}
		return r.From > before, err
	})
}

// following takes news, and has the request go on behind them.
func following(r *wire.FollowRequest, sink func(off int64, p []byte) error, dropped func(from, to int64) error) func(wire.FollowNews) error {
	return func(m wire.FollowNews) error {
		from := r.From
		switch {
		case len(m.Data) > 0:
			if err := sink(from, m.Data); err != nil {
				return err
			}
			r.From += int64(len(m.Data))
		case m.Dropped > from:
			r.From = m.Dropped
			return dropped(from, r.From)
		}
		return nil
	}
}
