//go:build linux

package outlet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

const (
	// stagePrefix begins the name of a stage.
	stagePrefix = ".dlwb-put-"
	// staleStage is how old a stage is that nobody comes back to.
	staleStage = 24 * time.Hour
)

// Put gathers what comes in a stage: see wire.PutRequest.
func Put(_ context.Context, s *wire.Stream) error {
	var r wire.PutRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	stage, err := stageOf(r.Dir, r.Stage)
	if err != nil {
		return err
	}
	leave, ok := enter(stage)
	if !ok {
		return wire.Faultf(wire.Absent, "the stage %s was removed", r.Stage)
	}
	defer leave()
	clearStale(filepath.Dir(stage))
	if err := os.MkdirAll(filepath.Join(stage, wire.StageWhole), 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer root.Close()
	p := &putter{root: root, part: fmt.Sprint(wire.StagePart, r.Try)}
	defer p.leave()
	return bulk.Receive(s, p)
}

func stageOf(dir, stage string) (string, error) {
	in, err := dirOf(dir)
	if name := stage; err == nil && (!strings.HasPrefix(name, stagePrefix) || !isName(name)) {
		err = wire.Faultf(wire.Wrong, "%.60q is no name of a stage", stage)
	}
	return filepath.Join(in, stage), err
}

// clearStale removes what a caller that never came back left behind.
func clearStale(dir string) {
	left, _ := fs.Glob(os.DirFS(dir), stagePrefix+"*")
	for _, name := range left {
		stage := filepath.Join(dir, name)
		if info, err := os.Lstat(stage); err == nil && time.Since(info.ModTime()) > staleStage {
			_ = os.RemoveAll(stage)
		}
	}
}

// putter is one Put under way.
type putter struct {
	root *os.Root
	part string    // where the file that comes is written
	head wire.Head // of what comes
	file *os.File  // nil: it is no file
	size int64     // how much of it is there
	sum  hash.Hash
}

// Head makes a directory or a link, or opens the file that comes.
func (p *putter) Head(h wire.Head) (err error) {
	if p.file != nil || !filepath.IsLocal(h.Name) || len(h.Name) > wire.NameMost || h.From < 0 {
		return wire.Faultf(wire.Wrong, "%.60q from byte %d can't be put", h.Name, h.From)
	}
	p.head = h
	p.head.Name = wire.StageWhole + h.Name
	switch {
	case h.Dir:
		return p.root.MkdirAll(p.head.Name, fs.FileMode(h.Mode)&0o755|0o700)
	case h.Link != "":
		_ = p.root.Remove(p.head.Name)
		return p.root.Symlink(h.Link, p.head.Name)
	}
	p.file, err = p.root.OpenFile(p.part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	p.sum, p.size = sha256.New(), h.From
	if err == nil && h.From > 0 {
		err = p.takeOver(fmt.Sprint(wire.StagePart, h.Of), h.From)
	}
	return err
}

// takeOver begins a file with what an earlier try brought of it.
func (p *putter) takeOver(part string, size int64) error {
	if part == p.part {
		return wire.Faultf(wire.Wrong, "a try can't go on from itself")
	}
	from, err := p.root.OpenFile(part, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.CopyN(io.MultiWriter(p.file, p.sum), from, size); errors.Is(err, io.EOF) {
		return wire.Faultf(wire.Absent, "%d bytes of %s are not there any more", size, part)
	} else if err != nil {
		return err
	}
	return p.root.Remove(part)
}

// Data writes some of a file.
func (p *putter) Data(b []byte) error {
	if p.file == nil {
		return wire.Faultf(wire.Wrong, "there is no file for %d bytes", len(b))
	}
	_, _ = p.sum.Write(b) // a hash takes all
	err := bulk.WriteSparse(p.file, b, p.size)
	p.size += int64(len(b))
	return err
}

// End puts a file with the others that are whole when it is what was read.
func (p *putter) End(e wire.End) error {
	if p.file == nil {
		return nil
	}
	defer p.leave()
	if e.Why != "" || e.Changed || !bytes.Equal(p.sum.Sum(nil), e.Sum) {
		return wire.Faultf(wire.Failed, "%s did not come as it was: %s", strings.TrimPrefix(p.head.Name, wire.StageWhole), cmp.Or(e.Why, "it was changed on the way"))
	}
	at := time.Unix(p.head.MTime.Sec, int64(p.head.MTime.Nano))
	err := errors.Join(p.file.Truncate(p.size), p.file.Chmod(fs.FileMode(p.head.Mode)&0o777&^0o022), p.root.Chtimes(p.part, at, at))
	if err == nil {
		err = p.root.Rename(p.part, p.head.Name)
	}
	return err
}

func (p *putter) leave() {
	if p.file != nil {
		if info, err := p.file.Stat(); err == nil && info.Size() < p.size { // it ends with a hole
			_ = p.file.Truncate(p.size)
		}
		_ = p.file.Close()
		p.file = nil
	}
}
