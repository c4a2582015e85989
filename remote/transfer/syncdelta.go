package transfer

import (
	"context"
	"errors"

	"github.com/dlwb/dlwb/remote/cut"
	"github.com/dlwb/dlwb/remote/wire"
)

// deltas plans the large files of a batch that the node has in an older state:
// only what changed is sent of them.
func (s *nodeSync) deltas(ctx context.Context, files []*treeEntry) (own map[*treeEntry]*parcel, err error) {
	own = map[*treeEntry]*parcel{}
	for _, e := range files {
		had := s.view.have[e.path]
		if state, _ := s.view.now(e.path); e.kind != kindFile || e.size < s.tree.large || state != untouched || had.Size < s.tree.large || had.Kind != wire.SyncFile {
			continue
		}
		s.report("looking what has changed in " + nameText(e.path))
		old, err := s.chunks(ctx, e)
		if err != nil {
			return nil, err
		}
		if p := (&parcel{root: s.root}); len(old) > 0 {
			if err := p.delta(e, old); err != nil {
				return nil, err
			}
			own[e] = p
		}
	}
	return own, nil
}

// chunks asks for the chunks of the older file.
func (s *nodeSync) chunks(ctx context.Context, e *treeEntry) (list []wire.SyncChunk, err error) {
	if err := s.say(ctx, wire.SyncStep{Cut: wire.Bytes(e.path)}); err != nil {
		return nil, err
	}
	for more := true; more; {
		a, err := s.hear(ctx)
		if err != nil {
			return nil, err
		}
		part := a.Chunks
		if part == nil {
			return nil, errors.New("the node answers what was not asked")
		}
		for _, c := range part.Chunks {
			if c.Size <= 0 || c.Size > cut.Most || len(list) >= wire.SyncEntriesMost {
				return nil, errors.New("the node tells of chunks that no file can have")
			}
			list = append(list, c)
		}
		more = part.More
	}
	return list, nil
}

// delta plans a file as what changed in it since a node got an older one.
func (p *parcel) delta(e *treeEntry, old []wire.SyncChunk) error {
	f, err := p.root.Open(e.path)
	if err != nil {
		return fileMoved(e, err)
	}
	defer func() { _ = f.Close() }()
	now, err := cut.File(f)
	if err != nil {
		return err
	}
	for _, span := range cut.Spans(old, now) {
		if span.From >= 0 {
			step := wire.SyncStep{Piece: &wire.SyncPiece{Path: wire.Bytes(e.path), At: span.At, From: span.From, Len: span.Len}}
			p.frames = append(p.frames, &frame{entry: e, at: span.At, raw: span.Len, step: func([]byte) (wire.SyncStep, error) { return step, nil }})
			continue
		}
		for at := span.At; at < span.At+span.Len; at += packMost {
			size := min(packMost, span.At+span.Len-at)
			p.frames = append(p.frames, &frame{entry: e, at: at, raw: size, step: func(room []byte) (wire.SyncStep, error) { return p.piece(e, at, size, room) }})
		}
	}
	return nil
}
