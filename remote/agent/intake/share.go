//go:build linux

package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// Give sends what is in a directory to other nodes, and says what it was.
func Give(ctx context.Context, home string, r wire.ShareGive) (given wire.ShareGiven, err error) {
	for _, word := range append(r.Peers, r.Name) {
		if !plainWord(word) {
			return given, wire.Faultf(wire.Wrong, "%.60q is no node's name", word)
		}
	}
	p := &place{home: home, dir: filepath.Join(home, r.Dir)}
	if err := p.openCode(); err != nil {
		return given, err
	}
	defer p.close()
	list, err := p.entriesIn(ctx, ".")
	if err != nil {
		return given, wrap("the directory could not be read to its end", err)
	}
	given.Digest = wire.SyncDigest(list)
	f := openFan(home, r.Name, r.Peers)
	defer f.cut()
	for _, part := range wire.SyncLists(list, wire.SyncSize) {
		f.send(wire.SyncStep{Batch: &wire.SyncBatch{Files: part}})
	}
	for _, e := range list {
		if err := p.sendFile(ctx, f, e); err != nil {
			return given, err
		}
	}
	f.send(wire.SyncStep{Mark: true})
	f.close()
	return given, ctx.Err()
}

// entriesIn describes what is in a directory.
func (p *place) entriesIn(ctx context.Context, dir string) (list []wire.SyncEntry, err error) {
	for _, name := range namesIn(p.code, dir) {
		full := wire.Bytes(path.Join(dir, name))
		now, there := p.state(full)
		e := wire.SyncEntry{Path: full, Kind: now.kind(), Mode: now.perm(), Size: now.Size, Mtime: now.Mtime}
		switch {
		case !there || ctx.Err() != nil:
			return nil, errors.Join(errors.New("it changes"), ctx.Err())
		case e.Kind == wire.SyncDir:
			below, err := p.entriesIn(ctx, string(full))
			if err != nil {
				return nil, err
			}
			e.Mode, e.Size, e.Mtime = 0, 0, 0
			list = append(list, below...)
		default:
			if e.Value = p.content(full, e.Kind); e.Value == "" {
				return nil, wrap(string(full), fs.ErrPermission)
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// sendFile sends a file in pieces.
func (p *place) sendFile(ctx context.Context, to *fan, e wire.SyncEntry) error {
	if e.Kind != wire.SyncFile {
		return nil
	}
	f, err := p.code.Open(string(e.Path))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for at := int64(0); at == 0 || at < e.Size; {
		data := make([]byte, min(512<<10, e.Size-at))
		if _, err := io.ReadFull(f, data); err != nil && e.Size > 0 {
			return err
		}
		to.send(wire.SyncStep{Piece: &wire.SyncPiece{Path: e.Path, At: at, Data: data}})
		if at += int64(len(data)); e.Size == 0 || ctx.Err() != nil {
			break
		}
	}
	return ctx.Err()
}

// taking is a directory that another node sends.
type taking struct {
	*stage
	left int64 // bytes that may come
	list []wire.SyncEntry
}

// Take takes a directory that another node sends. Only when the caller says that
// it is what that node has sent does it come to its place, whole; in any other
// case nothing is left.
func Take(ctx context.Context, home string, s Conn) (err error) {
	var r wire.ShareTake
	if err := s.Recv(&r); err != nil {
		return err
	}
	target := filepath.Join(home, r.Dir)
	if !wire.LocalPath(path.Clean(r.Dir)) || !plainWord(r.Name) {
		return wire.Faultf(wire.Wrong, "%.60q can't be a place for what other nodes send", r.Dir)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	t := &taking{left: r.Most}
	if t.stage, err = newStage(parent, r.Name, math.MaxInt64); err != nil {
		return err
	}
	defer t.close()
	l, err := listen(home, r.Name)
	if err != nil {
		return err
	}
	defer l.close()
	if err := s.Send(wire.ShareReady{}); err != nil {
		return err
	}
	told := make(chan error, 1)
	var given wire.ShareGiven
	go func() { told <- s.Recv(&given) }()
	if err := t.all(ctx, l, told); err != nil {
		return err
	}
	if !bytes.Equal(given.Digest, wire.SyncDigest(t.list)) {
		return wire.Faultf(wire.Refused, "what came is not what the other node says it has sent")
	}
	base := filepath.Base(target)
	if err := parent.RemoveAll(base); err != nil {
		return err
	}
	if err := parent.Rename(path.Join(t.name, "f"), base); err != nil {
		return err
	}
	return s.Send(wire.ShareReady{})
}

// all takes what comes, and hears the caller.
func (t *taking) all(ctx context.Context, l *listener, told <-chan error) error {
	var late <-chan time.Time
	came, whole := false, false
	for !whole || late == nil {
		select {
		case err := <-told:
			if err != nil {
				return err
			}
			if late = time.After(stallLimit); !came {
				late = time.After(lateLimit)
			}
		case r, open := <-l.steps:
			came = true
			if !open || r.err != nil {
				return wire.Faultf(wire.Failed, "what the other node sends ended early")
			}
			if err := t.step(r.step); err != nil {
				return err
			}
			whole = r.step.Mark
		case <-late:
			if !came {
				return wire.Faultf(wire.Failed, "the other node could not reach this one")
			}
			return wire.Faultf(wire.Failed, "what the other node sends did not come in time")
		case <-ctx.Done():
			return ctx.Err()
		}
		if whole {
			l = &listener{} // nothing more is heard of it
		}
	}
	done, err := t.settle()
	if err == nil && len(done.Lacks) > 0 {
		err = wire.Faultf(wire.Refused, "what came is not what the other node says it has sent")
	}
	return err
}

func (t *taking) step(step wire.SyncStep) error {
	switch {
	case step.Piece != nil:
		t.take(step)
	case step.Batch != nil:
		for _, e := range step.Batch.Files {
			if t.left -= e.Size + int64(len(e.Path)+len(e.Value)); t.left < 0 {
				return wire.Faultf(wire.Refused, "there is more of it than was agreed")
			}
			if err := t.expect(e); err != nil {
				return err
			}
			if e.Kind == wire.SyncDir {
				if err := mkdirs(t.files, string(e.Path)); err != nil {
					return err
				}
			}
			t.list = append(t.list, e)
		}
	}
	return t.failed()
}
