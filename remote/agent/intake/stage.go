//go:build linux

package intake

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	stagePrefix = ".dlwb-in."
	// workersMost bounds the processors that write files.
	workersMost = 4
)

// stage is where files lie until all of a batch have come: in the code
// directory, so that they are on its file system, and locked for as long as
// they are somebody's.
type stage struct {
	code  *os.Root
	files *os.Root // where they lie, under their paths
	name  string
	lock  *os.File
	large int64

	list  []*item // the batch, in the caller's order
	items map[wire.Bytes]*item
	work  []chan job
	next  int
	open  sync.WaitGroup // workers
	busy  sync.WaitGroup // jobs that are not done
	fails atomic.Pointer[error]
}

// job is a pack or a piece, and the files that it is about: nil is one that is
// not to come.
type job struct {
	wire.SyncStep
	items []*item
}

// item is a file or link that is to come.
type item struct {
	wire.SyncEntry
	index  int
	mu     sync.Mutex
	staged bool
	wrong  string // why what came was not used
	state  state

	at   int64 // how much has come
	file *os.File
	old  *os.File // its older self
	sum  hash.Hash
	part string // its name, where it outlives the stage
}

// A stage that is not locked yet has a name of its own: another sync's sweep would take
// it for what a crash left. It is made under the lock of the code directory, so that a
// sweep which has that lock knows that nobody is at it. Agents before that lock made
// theirs as .new.
const (
	newSuffix  = ".new"
	heldSuffix = ".held" + newSuffix
)

// newStage makes a stage in a code directory.
func newStage(code *os.Root, name string, large int64) (*stage, error) {
	s := &stage{code: code, name: stagePrefix + name, large: large, items: map[wire.Bytes]*item{}}
	if err := s.place(); err != nil {
		return nil, wrap("make a place for files to come", err)
	}
	for range min(runtime.GOMAXPROCS(0), workersMost) {
		work := make(chan job, 1)
		s.work = append(s.work, work)
		s.open.Go(func() { s.labour(work) })
	}
	return s, nil
}

// place makes the directory of the stage, which has its name only when it is locked.
func (s *stage) place() (err error) {
	_, release := hold(s.code)
	defer release()
	fresh := s.name + heldSuffix
	if err = s.code.MkdirAll(path.Join(fresh, "f"), 0o755); err != nil {
		return err
	}
	if s.lock, err = s.code.Open(fresh); err != nil {
		return err
	}
	_ = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err = s.code.Rename(fresh, s.name); err == nil {
		s.files, err = s.code.OpenRoot(path.Join(s.name, "f"))
	}
	if err != nil {
		_ = s.lock.Close()
	}
	return err
}

// close removes whatever is not in its place.
func (s *stage) close() {
	for _, work := range s.work {
		close(work)
	}
	s.open.Wait()
	for _, it := range s.list {
		it.shut()
	}
	_ = s.files.Close()
	_ = s.code.RemoveAll(s.name)
	_ = s.code.Remove(largeDir) // when it is empty
	_ = s.lock.Close()
}

// expect adds to what is to come.
func (s *stage) expect(e wire.SyncEntry) error {
	if !e.Valid() || s.items[e.Path] != nil || len(s.list) >= wire.SyncBatchMost {
		return wire.Faultf(wire.Wrong, "the batch has %.99q, which can't be in it", e.Path)
	}
	it := &item{SyncEntry: e, index: len(s.list)}
	s.list, s.items[e.Path] = append(s.list, it), it
	switch {
	case e.Kind == wire.SyncLink:
		if err := s.files.MkdirAll(path.Dir(string(e.Path)), 0o755); err != nil {
			return err
		}
		it.staged = true
		return s.files.Symlink(string(e.Value), string(e.Path))
	case e.Kind == wire.SyncDir:
		it.staged = true
	case e.Size >= s.large:
		s.take(wire.SyncStep{Piece: &wire.SyncPiece{Path: e.Path, Len: -1}}) // looks what there is
	}
	return nil
}

// take has a pack or a piece written. It waits where much is being written.
func (s *stage) take(step wire.SyncStep) {
	s.next++
	to, j := s.next%len(s.work), job{SyncStep: step}
	if step.Piece != nil { // those of a file stay in their order
		to = int(maphash.String(seed, string(step.Piece.Path)) % uint64(len(s.work)))
		j.items = []*item{s.items[step.Piece.Path]}
	} else {
		for _, name := range step.Pack.Paths {
			j.items = append(j.items, s.items[name])
		}
	}
	s.busy.Add(1)
	s.work[to] <- j
}

var seed = maphash.MakeSeed()

// failed is why the disk takes nothing more.
func (s *stage) failed() error {
	if err := s.fails.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *stage) labour(work <-chan job) {
	w := &worker{stage: s}
	for j := range work {
		var err error
		switch {
		case s.failed() != nil:
		case j.Pack != nil:
			err = w.pack(j.Pack, j.items)
		case j.items[0] != nil:
			err = wrap(string(j.Piece.Path), w.piece(j.Piece, j.items[0]))
		}
		if err != nil {
			s.fails.CompareAndSwap(nil, &err)
		}
		s.busy.Done()
	}
	w.leave()
}

// worker writes files. It keeps the directory open in which it wrote last.
type worker struct {
	*stage
	plain  []byte // what was unpacked
	zip    *zstd.Decoder
	inDir  string
	dir    *os.File
	opened bool
}

func (w *worker) leave() {
	if w.zip != nil {
		w.zip.Close()
	}
	if w.opened {
		_ = w.dir.Close()
	}
}

// unpack gives content as it was before it was packed; nil: it makes no sense.
func (w *worker) unpack(data []byte, size int) []byte {
	if size == 0 && len(data) <= wire.SyncDataMost {
		return data
	}
	if size < 0 || size > wire.SyncDataMost {
		return nil
	}
	if w.zip == nil {
		w.plain = make([]byte, 0, wire.SyncDataMost)
		// Never does a frame become more than one step may bring.
		w.zip, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(wire.SyncDataMost), zstd.WithDecoderMaxWindow(wire.SyncDataMost))
	}
	plain, err := w.zip.DecodeAll(data, w.plain[:0])
	if err != nil || len(plain) != size {
		return nil
	}
	return plain
}

// pack writes small files. What is not among those that are to come, and what
// is not what it should be, is left out: the caller is told what lacks.
func (w *worker) pack(p *wire.SyncPack, items []*item) error {
	data := w.unpack(p.Data, p.Size)
	for i, it := range items {
		if i >= len(p.Sizes) || p.Sizes[i] < 0 || p.Sizes[i] > int64(len(data)) {
			return nil
		}
		content := data[:p.Sizes[i]]
		data = data[p.Sizes[i]:]
		if it == nil {
			continue
		}
		if err := w.whole(it, content); err != nil {
			return wrap(string(it.Path), err)
		}
	}
	return nil
}

// whole checks and writes a small file.
func (w *worker) whole(it *item, content []byte) error {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.staged || it.file != nil {
		return nil
	}
	if sum := sha256.Sum256(content); wire.Bytes(sum[:]) != it.Value {
		it.wrong = notTheFile
		return nil
	}
	return w.write(it, content)
}

const notTheFile = "what came is not the file that was to be sent"

// directory opens the directory of a file in the stage.
func (w *worker) directory(name string) (*os.File, error) {
	dir := path.Dir(name)
	if w.opened && dir == w.inDir {
		return w.dir, nil
	}
	if w.opened {
		_ = w.dir.Close()
		w.opened = false
	}
	err := w.files.MkdirAll(dir, 0o755)
	if err == nil {
		w.dir, err = w.files.Open(dir)
	}
	w.opened, w.inDir = err == nil, dir
	return w.dir, err
}

// write writes a small file whole.
func (w *worker) write(it *item, content []byte) error {
	dir, err := w.directory(string(it.Path))
	if err != nil {
		return err
	}
	const flags = unix.O_CREAT | unix.O_TRUNC | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), path.Base(string(it.Path)), flags, it.Mode|0o200)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for len(content) > 0 {
		n, err := unix.Write(fd, content)
		if err != nil {
			return err
		}
		content = content[n:]
	}
	it.state, err = finish(fd, it.SyncEntry)
	it.staged = err == nil
	return err
}

// finish sets a file's permissions and time, and gives the state that it has then.
func finish(fd int, e wire.SyncEntry) (state, error) {
	var st unix.Stat_t
	if err := futimens(fd, e.Mtime); err != nil {
		return state{}, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return state{}, err
	}
	if st.Mode&0o7777 == e.Mode {
		return stateOf(&st), nil
	}
	// A disk that knows no permissions is as good: the state says what it has.
	if err := unix.Fchmod(fd, e.Mode); err != nil && err != unix.EPERM {
		return state{}, err
	}
	err := unix.Fstat(fd, &st)
	return stateOf(&st), err
}

// piece writes a part of a file that does not fit into a pack.
func (w *worker) piece(p *wire.SyncPiece, it *item) (err error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if it.staged || p.At < 0 {
		return nil
	}
	if it.file == nil {
		if err := w.begin(it); err != nil {
			return err
		}
	}
	switch {
	case p.Len > 0:
		err = w.copyOld(it, p)
	case p.Len == 0:
		if data := w.unpack(p.Data, p.Size); p.At <= it.at && p.At+int64(len(data)) > it.at {
			err = it.append(data[it.at-p.At:])
		}
	}
	if err == nil && it.at == it.Size {
		err = w.complete(it)
	}
	return err
}

// append writes what comes next of a file, and never more than there should be.
func (it *item) append(data []byte) error {
	data = data[:min(int64(len(data)), it.Size-it.at)]
	n, err := it.file.Write(data)
	_, _ = it.sum.Write(data[:n]) // a hash takes all
	it.at += int64(n)
	return err
}

// copyOld takes what comes next of a file from its older self.
func (w *worker) copyOld(it *item, p *wire.SyncPiece) (err error) {
	if p.At+p.Len <= it.at {
		return nil
	}
	if it.old == nil {
		if it.old, err = w.code.OpenFile(string(p.Path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0); err != nil {
			it.wrong = err.Error() // it is sent whole then
			return nil
		}
	}
	skip := it.at - p.At
	if skip < 0 || p.From < 0 || p.Len > it.Size-p.At {
		return nil
	}
	from := io.NewSectionReader(it.old, p.From+skip, p.Len-skip)
	n, err := io.Copy(io.MultiWriter(it.file, it.sum), from)
	it.at += n
	return err
}

// begin opens what a file is written to. What came of a large one before goes on.
func (w *worker) begin(it *item) error {
	it.sum = sha256.New()
	if it.Size >= w.large {
		it.part = path.Join(largeDir, fmt.Sprintf("%x", string(it.Value))+partEnd)
		if err := w.code.MkdirAll(largeDir, 0o755); err != nil {
			return err
		}
		f, err := w.code.OpenFile(it.part, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return err
		}
		it.file = f
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK {
			it.at, err = io.Copy(it.sum, io.LimitReader(f, it.Size))
			return err
		}
		_ = f.Close() // another sync of the same file is at work here
		it.part = ""
	}
	if err := w.files.MkdirAll(path.Dir(string(it.Path)), 0o755); err != nil {
		return err
	}
	f, err := w.files.OpenFile(string(it.Path), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	it.file = f
	return err
}

// complete checks a file of which all has come.
func (w *worker) complete(it *item) (err error) {
	defer it.shut()
	if wire.Bytes(it.sum.Sum(nil)) != it.Value {
		it.wrong, it.at = notTheFile, 0
		if it.part != "" {
			err = w.code.Remove(it.part)
		}
		return err
	}
	it.state, err = finish(int(it.file.Fd()), it.SyncEntry)
	it.staged = err == nil
	return err
}

func (it *item) shut() {
	for _, f := range []*os.File{it.file, it.old} {
		if f != nil {
			_ = f.Close()
		}
	}
	it.file, it.old = nil, nil
}

// settle waits until all that came is written, and tells what lacks.
func (s *stage) settle() (done wire.SyncDone, err error) {
	s.busy.Wait()
	for _, it := range s.list {
		if !it.staged {
			done.Lacks = append(done.Lacks, it.index)
			if done.Wrong == "" && it.wrong != "" {
				done.Wrong = fmt.Sprintf("%.200q: %.200s", it.Path, it.wrong)
			}
			it.wrong = ""
		}
	}
	return done, s.failed()
}
