//go:build linux

package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

// lockPatience is how long another sync may take to put its files in place.
const lockPatience = time.Minute

// placing puts a batch in its place.
type placing struct {
	*place
	*stage
	batch wire.SyncBatch
	state *os.Root        // where the records lie
	fresh map[string]bool // directories that came with all that is in them
	order []*item         // the batch by path: what is above comes first
	// checked is a directory that is known to be within the code directory.
	checked string
}

// put puts a batch in its place. Where it is stopped, the next sync finds in the
// pending records what is already there.
func (p *place) put(ctx context.Context, s *stage, b wire.SyncBatch) error {
	dir, err := stateDir(p.home, p.look.ID, true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	unlock, err := p.lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	pl := &placing{place: p, stage: s, batch: b, state: dir, fresh: map[string]bool{}}
	if err := pl.writePending(); err != nil {
		return err
	}
	if err := pl.all(); err != nil {
		return err
	}
	return pl.record()
}

// lock waits until nobody else puts files in place, and checks that nobody did
// since this sync looked.
func (p *place) lock(ctx context.Context, dir *os.Root) (unlock func(), err error) {
	f, err := dir.OpenFile("lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockPatience)
	for {
		// Some shared disks have no locks: there, renaming is all there is.
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			_ = f.Close()
			return nil, wire.Faultf(wire.SyncOverrun, "another sync of this directory is under way")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, was := range map[string]fileID{recordsFile: p.had.file, pendingFile: p.pending.file} {
		if now, err := dir.Open(name); err == nil {
			is := idOf(now)
			_ = now.Close()
			if is == was {
				continue
			}
		} else if was == (fileID{}) {
			continue
		}
		_ = f.Close()
		return nil, wire.Faultf(wire.SyncOverrun, "another sync of this directory came first")
	}
	return func() { _ = f.Close() }, nil
}

// writePending notes how the new files look before any is in its place.
func (p *placing) writePending() error {
	list := make(map[wire.Bytes]record, len(p.list)+len(p.pending.List))
	for _, r := range p.pending.List {
		list[r.Entry.Path] = r
	}
	for _, it := range p.list {
		if it.Kind == wire.SyncFile {
			list[it.Path] = record{Entry: it.SyncEntry, State: it.state}
		}
	}
	p.pending.List = sorted(list)
	err := p.pending.write(p.state, pendingFile)
	p.halfway = index(p.pending.List)
	return err
}

func sorted(m map[wire.Bytes]record) []record {
	list := make([]record, 0, len(m))
	for _, r := range m {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b record) int { return strings.Compare(string(a.Entry.Path), string(b.Entry.Path)) })
	return list
}

// all removes, makes directories and renames.
func (p *placing) all() error {
	for _, name := range p.batch.Remove {
		if err := p.remove(name); err != nil {
			return wrap(string(name), err)
		}
	}
	for _, name := range p.batch.Rmdirs {
		if now, there := p.place.state(name); there && now.kind() == wire.SyncDir {
			_ = p.place.code.Remove(string(name)) // not when something else is in it
		}
	}
	p.order = slices.Clone(p.list)
	slices.SortFunc(p.order, func(a, b *item) int { return strings.Compare(string(a.Path), string(b.Path)) })
	for _, it := range p.order {
		if err := p.item(it); err != nil {
			return wrap(string(it.Path), err)
		}
	}
	return nil
}

// remove removes what dlwb has put there, and moves away what it became since.
func (p *placing) remove(name wire.Bytes) error {
	now, there := p.place.state(name)
	if _, err := p.place.code.Lstat(string(name)); err != nil {
		there = false // also where a link leads out
	}
	switch {
	case !there:
		return nil
	case p.ours(name, now):
		return p.place.code.Remove(string(name))
	}
	return p.keep(name)
}

// ours reports whether a thing is as dlwb has put it there.
func (p *placing) ours(name wire.Bytes, now state) bool {
	if r := p.byPath[name]; r != nil && r.Entry.Kind == now.kind() && now.kind() != wire.SyncDir {
		if r.State == now && r.Value == "" || p.odd(r) == nil {
			return true
		}
	}
	r := p.halfway[name]
	return r != nil && now.moved(r.State)
}

// item puts one thing in its place. Those above it come first.
func (p *placing) item(it *item) error {
	name := string(it.Path)
	if p.inFresh(name) {
		if it.Kind == wire.SyncLink {
			it.state, _ = p.place.state(it.Path)
		}
		return nil
	}
	if err := p.inside(path.Dir(name)); err != nil {
		return err
	}
	now, there := p.place.state(it.Path)
	switch {
	case it.Kind == wire.SyncDir:
		return p.directory(it, now, there)
	case !there, p.ours(it.Path, now), p.equal(it, now):
	default:
		if err := p.keep(it.Path); err != nil {
			return err
		}
	}
	from := path.Join(p.name, "f", name)
	if it.part != "" {
		from = it.part
	}
	err := p.place.code.Rename(from, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || escapes(err) {
		if err = p.above(path.Dir(name)); err == nil {
			err = p.place.code.Rename(from, name)
		}
	}
	if err != nil {
		return err
	}
	was := it.state
	if it.state, there = p.place.state(it.Path); it.Kind == wire.SyncFile && (!there || !it.state.moved(was)) {
		it.state = state{} // somebody was quicker: the next sync looks into it
	}
	return nil
}

// inside has a link make way that stands for a directory and leads out.
func (p *placing) inside(dir string) error {
	if dir == p.checked {
		return nil
	}
	if _, err := p.place.code.Stat(dir); escapes(err) {
		if err := p.above(dir); err != nil {
			return err
		}
	}
	p.checked = dir
	return nil
}

// escapes reports whether a link leads out of the code directory.
func escapes(err error) bool {
	return err != nil && strings.Contains(err.Error(), "escapes")
}

// equal reports whether what lies there is what comes, whoever put it there.
func (p *placing) equal(it *item, now state) bool {
	if now.kind() != it.Kind || it.Kind == wire.SyncFile && (now.Size != it.Size || now.perm() != it.Mode) {
		return false
	}
	return p.content(it.Path, it.Kind) == it.Value
}

// directory makes a directory; a link to one within the project is as good. A
// new one comes with all that is to be in it.
func (p *placing) directory(it *item, now state, there bool) error {
	name := string(it.Path)
	if there {
		if info, err := p.place.code.Stat(name); err == nil && info.IsDir() {
			return nil
		}
		if err := p.keep(it.Path); err != nil {
			return err
		}
	}
	err := mkdirs(p.files, name)
	from, _ := slices.BinarySearchFunc(p.order, name+"/", func(it *item, to string) int { return strings.Compare(string(it.Path), to) })
	for _, below := range p.order[from:] {
		if err != nil || !strings.HasPrefix(string(below.Path), name+"/") {
			break
		}
		err = p.collect(below)
	}
	if err == nil {
		err = p.place.code.Rename(path.Join(p.name, "f", name), name)
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return nil // somebody made it meanwhile
	}
	p.fresh[name] = err == nil
	return err
}

// collect brings what is not there yet into a new directory in the stage.
func (p *placing) collect(it *item) error {
	staged := path.Join("f", string(it.Path))
	switch {
	case it.Kind == wire.SyncDir:
		return mkdirs(p.files, string(it.Path))
	case it.part != "":
		part := it.part
		it.part = ""
		if err := mkdirs(p.files, path.Dir(string(it.Path))); err != nil {
			return err
		}
		return p.place.code.Rename(part, path.Join(p.name, staged))
	}
	return nil
}

// mkdirs makes directories that others may read, whatever the umask is.
func mkdirs(root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	return root.Chmod(name, 0o755)
}

// inFresh reports whether a thing has come to its place with its directory.
func (p *placing) inFresh(name string) bool {
	for i := range len(name) {
		if name[i] == '/' && p.fresh[name[:i]] {
			return true
		}
	}
	return false
}

// above makes the directories above a file, where something else is.
func (p *placing) above(dir string) error {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if info, err := p.place.code.Stat(dir[:i]); err == nil && info.IsDir() {
			continue
		}
		if _, there := p.place.state(wire.Bytes(dir[:i])); there {
			if err := p.keep(wire.Bytes(dir[:i])); err != nil {
				return err
			}
		}
		if err := p.place.code.Mkdir(dir[:i], 0o755); err != nil {
			return err
		}
	}
	return nil
}

// keep moves away what dlwb did not put there, or what was edited since.
func (p *placing) keep(name wire.Bytes) error {
	base := filepath.Join(p.home, ".dlwb/kept", p.look.ID, p.look.Stamp)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	to, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	dest := string(name)
	for n := 2; ; n++ {
		if _, err := to.Lstat(dest); err != nil {
			break
		}
		dest = fmt.Sprintf("%s.%d", name, n)
	}
	if err := to.MkdirAll(path.Dir(dest), 0o700); err != nil {
		return err
	}
	err = renameBetween(p.place.code, string(name), to, dest)
	if errors.Is(err, unix.EXDEV) {
		if err = copyTree(p.place.code, string(name), to, dest); err == nil {
			err = p.place.code.RemoveAll(string(name))
		}
	}
	if err == nil {
		p.kept = append(p.kept, name)
	}
	return wrap("move it to "+base, err)
}

// renameBetween moves a thing from one directory to another one.
func renameBetween(from *os.Root, name string, to *os.Root, dest string) error {
	a, err := from.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	b, err := to.Open(path.Dir(dest))
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	return unix.Renameat(int(a.Fd()), path.Base(name), int(b.Fd()), path.Base(dest))
}

// copyTree copies a thing to another file system.
func copyTree(from *os.Root, name string, to *os.Root, dest string) error {
	info, err := from.Lstat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		err = to.Mkdir(dest, 0o700)
		for _, sub := range namesIn(from, name) {
			if err == nil {
				err = copyTree(from, path.Join(name, sub), to, path.Join(dest, sub))
			}
		}
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, dest)
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no file, directory or link (%v)", info.Mode().Type())
	}
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := to.OpenFile(dest, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), to.Chtimes(dest, info.ModTime(), info.ModTime()))
}

// record writes down what lies there now.
func (p *placing) record() error {
	list := make(map[wire.Bytes]record, len(p.had.List)+len(p.list))
	for _, r := range p.had.List {
		list[r.Entry.Path] = r
	}
	for _, name := range slices.Concat(p.batch.Remove, p.batch.Rmdirs) {
		delete(list, name)
	}
	for _, it := range p.list {
		list[it.Path] = record{Entry: it.SyncEntry, State: it.state}
	}
	for _, e := range p.batch.There {
		now, there := p.place.state(e.Path)
		if r := p.halfway[e.Path]; there && (r != nil && r.Entry.Same(e) && now.moved(r.State) ||
			now.kind() == e.Kind && now.perm() == e.Mode && p.content(e.Path, e.Kind) == e.Value) {
			list[e.Path] = record{Entry: e, State: now}
		}
	}
	p.had.List = sorted(list)
	return p.save(p.state)
}

// save writes the records. What was pending is in its place then.
func (p *place) save(dir *os.Root) error {
	entries := make([]wire.SyncEntry, len(p.had.List))
	for i, r := range p.had.List {
		entries[i] = r.Entry
	}
	p.had.Digest = wire.SyncDigest(entries)
	if err := p.had.write(dir, recordsFile); err != nil {
		return err
	}
	p.byPath = index(p.had.List)
	if err := dir.Remove(pendingFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.pending, p.halfway = records{}, nil
	p.learnt.Store(false)
	dropOld(dir)
	return nil
}
