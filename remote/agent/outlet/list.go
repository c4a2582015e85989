//go:build linux

// Package outlet gives the results of runs out of a node and takes checkpoints
// back in: it lists and sends what is below a directory, and puts what comes in
// its place when all of it is there. It removes nothing.
package outlet

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// pathsMost bounds what one request may name.
const pathsMost = 10_000

// dirOf is a directory of a request: absolute, or below the home.
func dirOf(dir string) (string, error) {
	if dir == "" || len(dir) > wire.NameMost {
		return "", wire.Faultf(wire.Wrong, "a directory's name has %d bytes", len(dir))
	}
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, dir), err
}

// List tells what is below some paths: see wire.ListRequest.
func List(ctx context.Context, s *wire.Stream) error {
	var r wire.ListRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	dir, err := dirOf(r.Dir)
	if err != nil {
		return err
	}
	if len(r.Paths) > pathsMost {
		return wire.Faultf(wire.Wrong, "%d paths are asked for", len(r.Paths))
	}
	ctx, cancel := s.Gone(ctx)
	defer cancel()
	l := &lister{ctx: ctx, dir: dir, send: s.Send, page: wire.ListPage{Clock: time.Now().Unix()}, named: map[string]bool{}}
	for _, name := range r.Paths {
		l.named[name] = true
	}
	for i, name := range r.Paths {
		info, err := os.Lstat(l.at(name))
		if err != nil {
			l.page.Missing = append(l.page.Missing, i)
			continue
		}
		if err := l.asked(name, info); err != nil {
			return err
		}
	}
	return l.send(l.page)
}

// lister is one List under way.
type lister struct {
	ctx  context.Context
	dir  string
	send func(any) error
	page wire.ListPage
	size int // of the page's names
	// named are the asked paths: they are not listed again where they lie below another one.
	named map[string]bool
}

func (l *lister) at(name string) string { return filepath.Join(l.dir, name) }

// asked lists a path that was asked for: only here a link to a directory is
// followed, and counts as one.
func (l *lister) asked(name string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Stat(l.at(name)); err == nil && to.IsDir() {
			info = to
		}
	}
	return l.thing(name, info)
}

// thing lists one thing and what is below it.
func (l *lister) thing(name string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("this system does not tell the state of files")
	}
	l.page.Things = append(l.page.Things, wire.Thing{
		Name: name, Mode: st.Mode, Size: st.Size, Inode: st.Ino,
		MTime:   wire.Time{Sec: int64(st.Mtim.Sec), Nano: uint32(st.Mtim.Nsec)},
		Changed: wire.Time{Sec: int64(st.Ctim.Sec), Nano: uint32(st.Ctim.Nsec)},
	})
	if err := l.told(name); err != nil || !info.IsDir() {
		return err
	}
	return l.below(name)
}

// told sends a page that is full.
func (l *lister) told(name string) error {
	l.size += len(name)
	if l.size < wire.PageBytes && len(l.page.Things)+len(l.page.Unread) < wire.PageMost {
		return l.ctx.Err()
	}
	page := l.page
	l.page, l.size = wire.ListPage{}, 0
	return l.send(page)
}

// below lists a directory, a part of it at a time: it may have any number of
// entries. What goes away meanwhile was never there.
func (l *lister) below(dir string) error {
	f, err := os.OpenFile(l.at(dir), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return l.unread(dir, err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(wire.PageMost)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if l.named[name] {
				continue
			}
			info, err := e.Info()
			if err != nil {
				err = l.unread(name, err)
			} else {
				err = l.thing(name, info)
			}
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return l.unread(dir, err)
		}
	}
}

// unread tells what can't be looked at.
func (l *lister) unread(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return l.ctx.Err()
	}
	l.page.Unread = append(l.page.Unread, wire.Unread{Name: name, Why: plain(err)})
	return l.told(name)
}

// plain is an error without the path, which the caller knows.
func plain(err error) string {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return err.Error()
}
