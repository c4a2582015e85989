//go:build linux

package outlet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
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
	clearStale(filepath.Dir(stage))
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer root.Close()
	p := &putter{root: root}
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
	left, _ := filepath.Glob(filepath.Join(dir, stagePrefix+"*"))
	for _, stage := range left {
		if info, err := os.Lstat(stage); err == nil && time.Since(info.ModTime()) > staleStage {
			_ = os.RemoveAll(stage)
		}
	}
}

// putter is one Put under way.
type putter struct {
	root *os.Root
	head wire.Head // of what comes
	file *os.File  // nil: it is no file
	sum  hash.Hash
}

// Head makes a directory or a link, or opens the file that comes.
func (p *putter) Head(h wire.Head) (err error) {
	name := h.Name
	if p.file != nil || !filepath.IsLocal(name) || len(name) > wire.NameMost || h.From < 0 {
		return wire.Faultf(wire.Wrong, "%.60q from byte %d can't be put", name, h.From)
	}
	p.head = h
	if h.Dir {
		return p.root.MkdirAll(name, 0o755)
	}
	if h.From == 0 {
		_ = p.root.Remove(name)
	}
	if h.Link != "" {
		return p.root.Symlink(h.Link, name)
	}
	if p.file, err = p.root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	p.sum = sha256.New()
	if _, err = io.CopyN(p.sum, p.file, h.From); err != nil {
		return err
	}
	return p.file.Truncate(h.From)
}

// Data writes some of a file.
func (p *putter) Data(b []byte) error {
	if p.file == nil {
		return wire.Faultf(wire.Wrong, "there is no file for %d bytes", len(b))
	}
	_, _ = p.sum.Write(b) // a hash takes all
	_, err := p.file.Write(b)
	return err
}

// End finishes a file when it is what was read. It has its time only then.
func (p *putter) End(e wire.End) error {
	if p.file == nil {
		return nil
	}
	defer p.leave()
	name, at := p.head.Name, time.Unix(p.head.MTime.Sec, int64(p.head.MTime.Nano))
	if e.Why != "" || e.Changed || !bytes.Equal(p.sum.Sum(nil), e.Sum) {
		_ = p.root.Remove(name)
		return wire.Faultf(wire.Failed, "%s did not come as it was: %s", name, cmp.Or(e.Why, "it was changed on the way"))
	}
	err := p.file.Chmod(fs.FileMode(p.head.Mode) & 0o777 &^ 0o022)
	return errors.Join(err, p.root.Chtimes(name, at, at))
}

func (p *putter) leave() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}
