//go:build linux

package intake

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	recordsFile = "manifest"
	pendingFile = "pending"
	// recordsVersion is the version of what lies in these files.
	recordsVersion = 2
	recordsMost    = 1 << 30
)

// records say what dlwb has put into a directory. They are written last.
type records struct {
	Version int      `cbor:"v"`
	Digest  []byte   `cbor:"d"`
	List    []record `cbor:"l"` // by path
	file    fileID   // which file they were read from
}

// record is one thing that dlwb has put there.
type record struct {
	_     struct{} `cbor:",toarray"`
	Entry wire.SyncEntry
	// State is how it was when its content was looked at last. Its content then
	// was Value; empty: that of Entry.
	State state
	Value wire.Bytes
}

// state tells a file from one that was edited or replaced, also where somebody
// set its times back.
type state struct {
	_            struct{} `cbor:",toarray"`
	Inode        uint64
	Size         int64
	Mtime, Ctime int64
	Mode         uint32
}

func stateOf(st *unix.Stat_t) state {
	return state{Inode: st.Ino, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Mode: st.Mode}
}

// moved reports whether a file is as it was, but for being renamed.
func (s state) moved(o state) bool {
	s.Ctime = o.Ctime
	return s == o
}

// torn reports whether a file lost its end in a crash: an edit would have
// changed its times.
func (s state) torn(o state) bool {
	s.Size = o.Size
	return s == o
}

func (s state) kind() byte {
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wire.SyncFile
	case unix.S_IFDIR:
		return wire.SyncDir
	case unix.S_IFLNK:
		return wire.SyncLink
	}
	return '?'
}

// perm are the permissions as an entry has them: those of a link are nobody's.
func (s state) perm() uint32 {
	if s.kind() == wire.SyncLink {
		return 0o777
	}
	return s.Mode & 0o777
}

// fileID tells whether a file was replaced.
type fileID struct {
	inode       uint64
	size, mtime int64
}

var (
	recordDecoding = must(cbor.DecOptions{MaxArrayElements: wire.SyncEntriesMost, MaxNestedLevels: 8}.DecMode())
	recordEncoding = must(cbor.EncOptions{}.EncMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options are constants
	}
	return v
}

// readRecords reads what lies in the state directory. What is broken counts as
// nothing: then the files are not taken for dlwb's own, and nothing is lost.
func readRecords(dir *os.Root, name string) (r records, err error) {
	f, err := dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer func() { _ = f.Close() }()
	id := idOf(f)
	text, err := io.ReadAll(io.LimitReader(f, recordsMost))
	if err != nil {
		return r, err
	}
	if old, ok := strings.CutPrefix(string(text[:min(len(text), len(oldMagic))]), oldMagic); ok && old == "" {
		r = oldRecords(string(text))
	} else if recordDecoding.Unmarshal(text, &r) != nil || r.Version != recordsVersion || !r.valid() {
		r = records{}
	}
	r.file = id
	return r, nil
}

func idOf(f *os.File) (id fileID) {
	if info, err := f.Stat(); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			id = fileID{st.Ino, st.Size, info.ModTime().UnixNano()}
		}
	}
	return id
}

func (r *records) valid() bool {
	for i := range r.List {
		if !r.List[i].Entry.Valid() || i > 0 && r.List[i-1].Entry.Path >= r.List[i].Entry.Path {
			return false
		}
	}
	return true
}

// write puts records into their place, whole.
func (r *records) write(dir *os.Root, name string) error {
	r.Version = recordsVersion
	text, err := recordEncoding.Marshal(r)
	if err != nil {
		return err
	}
	fresh := fmt.Sprintf("new.%d.%s", os.Getpid(), name)
	f, err := dir.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	r.file = idOf(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = dir.Rename(fresh, name)
	}
	if err != nil {
		_ = dir.Remove(fresh)
	}
	return err
}

// oldMagic begins the manifest of a dlwb that had no agent.
const oldMagic = "dlwb-manifest-1 "

// oldRecords reads such a manifest. In what state it left the files is not
// taken over: each is read once.
func oldRecords(text string) (r records) {
	var list []wire.SyncEntry
	for line := range strings.Lines(text) {
		if e, ok := oldEntry(strings.TrimSuffix(line, "\n")); ok {
			list = append(list, e)
		}
	}
	r.Digest = wire.SyncDigest(list)
	for _, e := range list {
		r.List = append(r.List, record{Entry: e})
	}
	if !r.valid() {
		return records{}
	}
	return r
}

// oldEntry reads a line: kind, mode, size, time, and quoted the value and path.
func oldEntry(line string) (e wire.SyncEntry, ok bool) {
	var kind, value string
	if n, _ := fmt.Sscanf(line, "%1s %o %d %d %q", &kind, &e.Mode, &e.Size, &e.Mtime, &value); n != 5 {
		return e, false
	}
	fields := strings.SplitN(line, " ", 5)
	quoted, err := strconv.QuotedPrefix(fields[4])
	if err != nil {
		return e, false
	}
	name, err := strconv.Unquote(strings.TrimPrefix(fields[4][len(quoted):], " "))
	e.Kind, e.Path, e.Value = kind[0], wire.Bytes(name), wire.Bytes(value)
	if e.Kind == wire.SyncFile {
		e.Value = rawSum(value)
	}
	return e, err == nil && e.Valid()
}

// stateDir opens the directory of the records of a code directory.
func stateDir(home, id string, create bool) (*os.Root, error) {
	dir := path.Join(home, ".dlwb/sync", id)
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(dir)
}

// dropOld removes what a stopped sync has left unfinished in the state
// directory, and what only an older dlwb needed.
func dropOld(dir *os.Root) {
	for _, name := range namesIn(dir, ".") {
		info, err := dir.Lstat(name)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "new.") && time.Since(info.ModTime()) > 24*time.Hour,
			strings.HasPrefix(name, "chunks."), slices.Contains(oldNames, name):
			_ = dir.RemoveAll(name)
		}
	}
}

// oldNames are what a dlwb that had no agent kept besides the manifest.
var oldNames = []string{"names", "seen", "sorted", "pending-names"}

// namesIn are the names in a directory; none where it can't be read.
func namesIn(root *os.Root, dir string) []string {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(-1)
	return names
}
