package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

const (
	// stagePrefix begins the name of the directory in dest for unfinished files.
	stagePrefix = ".dlwb-pull-"
	// staleStage is how old the leftovers of a crash must be to be removed: younger
	// ones may belong to another dlwb.
	staleStage = 24 * time.Hour
	// resumedFrom is from what size on a file is kept when it came in part.
	resumedFrom = 4 << 20
)

// take fetches what is wanted, and once more what was not as it is when it came.
func (p *puller) take(ctx context.Context) error {
	if err := p.openStage(); err != nil {
		return err
	}
	if err := p.findMask(); err != nil {
		return err
	}
	again := p.newList()
	defer again.close()
	for _, list := range []*thingList{p.wanted, again} {
		in := &incoming{p: p, again: again, second: list == again}
		if err := in.begin(thingReader{list: list}); err != nil {
			return err
		}
		for in.comes {
			if err := p.persist(ctx, func() error { return p.fetch(ctx, in) }); err != nil {
				if !isCut(err) && ctx.Err() == nil {
					in.drop()
				}
				return err
			}
		}
	}
	return nil
}

// findMask finds out which permissions a new file may have here, by making one: the
// umask is of the whole process, and can't be asked for without being set.
func (p *puller) findMask() error {
	name := p.stage + "/mask"
	f, err := p.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o777)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		p.allowed = info.Mode().Perm()
	}
	return errors.Join(err, f.Close(), p.root.Remove(name))
}

// drop removes what came of a file with which a Pull broke off, and not for the
// connection: on a full disk it would keep room, and what was refused comes no better.
func (in *incoming) drop() {
	in.leave()
	if in.comes && in.kind == kindFile && in.item.Size >= resumedFrom {
		_ = in.p.root.Remove(in.p.partOf(in.item))
	}
}

// clearStale removes what a Pull that was killed left behind.
func (p *puller) clearStale() {
	entries, err := fs.ReadDir(p.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), stagePrefix) && time.Since(info.ModTime()) > staleStage {
			_ = p.root.RemoveAll(e.Name())
		}
	}
}

// fetch gets the files and links that have not come yet.
func (p *puller) fetch(ctx context.Context, in *incoming) error {
	s, done, err := p.begin(ctx, wire.Fetch, wire.FetchRequest{Dir: p.dir})
	if err != nil {
		return err
	}
	var here error                            // the list can't be read
	asked, from := make(chan struct{}), in.at // a node may send before it is asked
	go func() {
		defer close(asked)
		if here = in.ask(s.Stream, from); here != nil {
			s.Reset()
		}
	}()
	err = bulk.Receive(s, in)
	in.leave()
	done()
	<-asked
	if here != nil {
		return here
	}
	if err == nil && in.comes {
		err = wire.Brokenf("it did not send the last %s", count(in.at.left(), "file"))
	}
	return err
}

// ask tells the node what is wanted, from a place on. The error is the list's; one of
// the connection shows where the files come.
func (in *incoming) ask(s *wire.Stream, from thingReader) error {
	var page wire.FetchPage
	size := 0
	for {
		t, ok, err := from.next()
		if err != nil {
			return err
		}
		if !ok {
			_ = s.End(nil)
			return nil
		}
		kind, _ := kindOf(t.Mode)
		page.Wants = append(page.Wants, wire.Want{Name: t.Name, From: in.have(t), Link: kind == kindLink})
		if size += len(t.Name); size < wire.PageBytes && len(page.Wants) < wire.PageMost && from.left() > 0 {
			continue
		}
		if s.Send(page) != nil {
			return nil
		}
		page, size = wire.FetchPage{}, 0
	}
}

// partOf is where a file gathers: a large one where the next Pull finds it.
func (p *puller) partOf(t wire.Thing) string {
	if t.Size >= resumedFrom {
		return stagePrefix + shortHash(fmt.Sprintf("%q %d %d", t.Name, t.Size, t.MTime.Sec))
	}
	p.serial++
	return fmt.Sprintf("%s/%d", p.stage, p.serial)
}

// have is how much of a file came before.
func (in *incoming) have(t wire.Thing) int64 {
	if kind, _ := kindOf(t.Mode); kind != kindFile || t.Size < resumedFrom || in.second {
		return 0
	}
	part := in.p.partOf(t)
	info, err := in.p.root.Lstat(part)
	switch {
	case err != nil:
		return 0
	case info.Mode().IsRegular() && info.Size() <= t.Size:
		return info.Size()
	}
	_ = in.p.root.RemoveAll(part)
	return 0
}

// incoming takes what a node sends of the wanted files. That comes in their order
// and without names: a node can say what is in them, and nothing else.
type incoming struct {
	p      *puller
	at     thingReader // before item
	after  thingReader // behind it
	item   wire.Thing  // what comes
	kind   entryKind   // of it
	comes  bool        // false: nothing more is to come
	again  *thingList  // what is to come again
	second bool        // it is that which comes

	file *os.File // nil: nothing has come of it
	name string   // the file's, here
	sum  hash.Hash
	size int64
}

// errUnasked is the error of a node that sends more than it should.
var errUnasked = wire.Brokenf("it sends what it was not asked for")

// begin has what is at a place come.
func (in *incoming) begin(at thingReader) (err error) {
	in.at, in.after = at, at
	in.item, in.comes, err = in.after.next()
	in.kind, _ = kindOf(in.item.Mode)
	return err
}

// Head is nothing that a node has to say.
func (in *incoming) Head(wire.Head) error { return errUnasked }

// open opens the file in which what comes gathers, behind what is there of it.
func (in *incoming) open() (err error) {
	if in.file != nil {
		return nil
	}
	from := in.have(in.item)
	in.name, in.sum, in.size = in.p.partOf(in.item), sha256.New(), from
	if in.file, err = in.p.root.OpenFile(in.name, os.O_RDWR|os.O_CREATE, 0o600); err == nil && in.item.Size >= resumedFrom {
		_, err = io.CopyN(in.sum, in.file, from)
		err = errors.Join(err, in.file.Truncate(from))
	}
	return err
}

// Data takes some of the file that comes.
func (in *incoming) Data(b []byte) error {
	p := in.p
	if !in.comes || in.kind != kindFile {
		return errUnasked
	}
	if err := in.open(); err != nil {
		return err
	}
	in.size += int64(len(b))
	p.moved += int64(len(b))
	if in.size > p.left.MaxBytes {
		return p.limit(in.item.Name, "more than "+units.Bytes(p.lim.MaxBytes))
	}
	_, _ = in.sum.Write(b) // a hash takes all
	return bulk.WriteSparse(in.file, b, in.size-int64(len(b)))
}

// leave closes the file; the next try uses what is there of a large one.
func (in *incoming) leave() {
	if in.file != nil {
		_ = errors.Join(in.file.Truncate(in.size), in.file.Close()) // it may end with a hole
		in.file = nil
	}
}

// End takes the end of a file or link.
func (in *incoming) End(e wire.End) error {
	if !in.comes {
		return errUnasked
	}
	p, item, kind := in.p, in.item, in.kind
	if kind == kindFile && e.Why == "" { // nothing has come of an empty one
		if err := in.open(); err != nil {
			return err
		}
	}
	if err := in.begin(in.after); err != nil {
		in.leave()
		return err
	}
	p.moved++
	defer in.leave()
	switch {
	case e.Why != "":
		p.miss(item.Name, "not sent: "+lastWords([]byte(e.Why)))
		return nil
	case kind == kindLink:
		return p.storeLink(item.Name, e.Link)
	}
	return in.judge(item, e)
}

// judge holds a file that has come against what the node read. One that differs,
// or was written to meanwhile, comes once more.
func (in *incoming) judge(item wire.Thing, e wire.End) error {
	p := in.p
	asRead := bytes.Equal(in.sum.Sum(nil), e.Sum)
	switch {
	case asRead && !e.Changed:
		return p.store(in, item, e.MTime)
	case !in.second && in.again.add(item) == nil:
	case asRead && item.Size < resumedFrom:
		p.skip(item.Name, "it changes while it is fetched; what came of it is here")
		return p.store(in, item, e.MTime)
	case asRead:
		p.miss(item.Name, "it changes while it is fetched")
	default:
		p.miss(item.Name, "what came is not what the node read of it")
	}
	in.leave()
	return p.root.Remove(in.name)
}

// store puts a file that is whole in its place.
func (p *puller) store(in *incoming, item wire.Thing, mtime int64) error {
	if p.left.MaxFiles == 0 {
		return p.limit(item.Name, "more than "+count(p.lim.MaxFiles, "file"))
	}
	err := errors.Join(in.file.Truncate(in.size), in.file.Chmod(permissions(item)&p.allowed|ownerMay), in.file.Close())
	in.file = nil
	at := time.Unix(mtime, 0)
	if p.clock-mtime < 2 {
		// It may change again within the same second: with a time that no file
		// there has, the next Pull fetches it again.
		at = at.Add(time.Nanosecond)
	}
	if err = errors.Join(err, p.root.Chtimes(in.name, at, at)); err != nil {
		return err
	}
	if p.place(in.name, item.Name) {
		p.left.MaxFiles--
		p.left.MaxBytes -= in.size
		p.res.Files++
		p.res.Bytes += in.size
	}
	return nil
}
