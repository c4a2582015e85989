package remote

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

// take fetches what is wanted.
func (p *puller) take(ctx context.Context) error {
	wanted, limit := p.choose()
	if len(wanted) == 0 {
		return limit
	}
	p.clearStale()
	p.stage = stagePrefix + randomWord()
	if err := p.root.Mkdir(p.stage, 0o700); err != nil {
		return err
	}
	defer func() { _ = p.root.RemoveAll(p.stage) }()
	for len(wanted) > 0 {
		err := p.persist(ctx, func() (err error) {
			wanted, err = p.fetch(ctx, wanted)
			return err
		})
		if err != nil {
			return err
		}
	}
	return limit
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

// fetch gets files and links, and gives back which are still wanted: those that
// did not come, and those that are to come again.
func (p *puller) fetch(ctx context.Context, wanted []pullItem) (still []pullItem, err error) {
	s, done, err := p.begin(ctx, wire.Fetch, wire.FetchRequest{Dir: p.dir})
	if err != nil {
		return wanted, err
	}
	for i := range wanted {
		wanted[i].from = p.have(wanted[i])
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		askFor(s.Stream, wanted) // an error of it is the connection's, and shows below
	}()
	in := &incoming{p: p, wanted: wanted}
	err = bulk.Receive(s, in)
	in.leave()
	done()
	<-asked
	if still = append(in.again, in.wanted...); err == nil && len(in.wanted) > 0 {
		err = wire.Brokenf("it did not send the last %s", count(len(in.wanted), "file"))
	}
	return still, err
}

// askFor tells the node what is wanted.
func askFor(s *wire.Stream, wanted []pullItem) {
	var page wire.FetchPage
	size := 0
	for i, item := range wanted {
		page.Wants = append(page.Wants, wire.Want{Name: item.path, From: item.from, Link: item.kind == kindLink})
		if size += len(item.path); size < wire.PageBytes && len(page.Wants) < wire.PageMost && i+1 < len(wanted) {
			continue
		}
		if s.Send(page) != nil {
			return
		}
		page, size = wire.FetchPage{}, 0
	}
	_ = s.End(nil)
}

// partOf is where a file gathers: a large one where the next Pull finds it.
func (p *puller) partOf(item pullItem) string {
	if item.size >= resumedFrom {
		return stagePrefix + shortHash(fmt.Sprintf("%q %d %d", item.path, item.size, item.mtime))
	}
	p.serial++
	return fmt.Sprintf("%s/%d", p.stage, p.serial)
}

// have is how much of a file came before.
func (p *puller) have(item pullItem) int64 {
	if item.kind != kindFile || item.size < resumedFrom || item.again {
		return 0
	}
	info, err := p.root.Lstat(p.partOf(item))
	switch {
	case err != nil:
		return 0
	case info.Mode().IsRegular() && info.Size() <= item.size:
		return info.Size()
	}
	_ = p.root.RemoveAll(p.partOf(item))
	return 0
}

// incoming takes what a node sends of the wanted files. That comes in their order
// and without names: a node can say what is in them, and nothing else.
type incoming struct {
	p      *puller
	wanted []pullItem // the first one comes
	again  []pullItem // what is to come again

	file *os.File // nil: nothing has come of it
	name string   // the file's, here
	sum  hash.Hash
	size int64
}

// errUnasked is the error of a node that sends more than it should.
var errUnasked = wire.Brokenf("it sends what it was not asked for")

// Head is nothing that a node has to say.
func (in *incoming) Head(wire.Head) error { return errUnasked }

// open opens the file in which what comes gathers, behind what is there of it.
func (in *incoming) open() (err error) {
	if in.file != nil {
		return nil
	}
	item := in.wanted[0]
	in.name, in.sum, in.size = in.p.partOf(item), sha256.New(), item.from
	if in.file, err = in.p.root.OpenFile(in.name, os.O_RDWR|os.O_CREATE, 0o600); err == nil && item.size >= resumedFrom {
		_, err = io.CopyN(in.sum, in.file, item.from)
		err = errors.Join(err, in.file.Truncate(item.from))
	}
	return err
}

// Data takes some of the file that comes.
func (in *incoming) Data(b []byte) error {
	p := in.p
	if len(in.wanted) == 0 || in.wanted[0].kind != kindFile {
		return errUnasked
	}
	if err := in.open(); err != nil {
		return err
	}
	in.size += int64(len(b))
	p.moved += int64(len(b))
	if in.size > p.left.MaxBytes {
		return p.limit(in.wanted[0].path, "more than "+units.Bytes(p.lim.MaxBytes))
	}
	_, _ = in.sum.Write(b) // a hash takes all
	_, err := in.file.Write(b)
	return err
}

// leave closes the file; the next try uses what is there of a large one.
func (in *incoming) leave() {
	if in.file != nil {
		_ = in.file.Close()
		in.file = nil
	}
}

// End takes the end of a file or link.
func (in *incoming) End(e wire.End) error {
	if len(in.wanted) == 0 {
		return errUnasked
	}
	p, item := in.p, in.wanted[0]
	if item.kind == kindFile && e.Why == "" { // nothing has come of an empty one
		if err := in.open(); err != nil {
			return err
		}
	}
	in.wanted = in.wanted[1:]
	p.moved++
	defer in.leave()
	switch {
	case e.Why != "":
		p.skip(item.path, "not sent: "+lastWords([]byte(e.Why)))
		return nil
	case item.kind == kindLink:
		return p.storeLink(item.path, e.Link)
	}
	return in.judge(item, e)
}

// judge holds a file that has come against what the node read. One that differs,
// or was written to meanwhile, comes once more.
func (in *incoming) judge(item pullItem, e wire.End) error {
	p := in.p
	asRead := bytes.Equal(in.sum.Sum(nil), e.Sum)
	switch {
	case asRead && !e.Changed:
		return p.store(in, item, e.MTime)
	case !item.again:
		item.again = true
		in.again = append(in.again, item)
	case asRead && item.size < resumedFrom:
		p.skip(item.path, "it changes while it is fetched; what came of it is here")
		return p.store(in, item, e.MTime)
	case asRead:
		p.skip(item.path, "it changes while it is fetched")
	default:
		p.skip(item.path, "what came is not what the node read of it")
	}
	in.leave()
	return p.root.Remove(in.name)
}

// store puts a file that is whole in its place.
func (p *puller) store(in *incoming, item pullItem, mtime int64) error {
	if p.left.MaxFiles == 0 {
		return p.limit(item.path, "more than "+count(p.lim.MaxFiles, "file"))
	}
	err := errors.Join(in.file.Chmod(item.mode), in.file.Close())
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
	if p.place(in.name, item.path) {
		p.left.MaxFiles--
		p.left.MaxBytes -= in.size
		p.res.Files++
		p.res.Bytes += in.size
	}
	return nil
}
