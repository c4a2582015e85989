package transfer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote/wire"
)

// A manifest says what dlwb put into a node's code directory, by path.
type manifest map[string]wire.SyncEntry

func (e *treeEntry) wireEntry() wire.SyncEntry {
	w := wire.SyncEntry{Path: wire.Bytes(e.path), Kind: byte(e.kind)}
	switch e.kind {
	case kindLink:
		w.Mode, w.Value = 0o777, wire.Bytes(e.link)
	case kindFile:
		sum, _ := hex.DecodeString(e.sum) // made here
		w.Mode, w.Size, w.Mtime, w.Value = uint32(e.mode), e.size, e.mtime.UnixNano(), wire.Bytes(sum)
	}
	return w
}

// manifest is what a node has when it has all of the tree.
func (t *Tree) manifest() manifest {
	m := make(manifest, len(t.entries))
	for _, e := range t.entries {
		m[e.path] = e.wireEntry()
	}
	return m
}

func (m manifest) digest() []byte { return wire.SyncDigest(slices.Collect(maps.Values(m))) }

// titled is a manifest with its digest, which many nodes are asked for.
type titled struct {
	manifest
	digest []byte
}

func title(m manifest) titled { return titled{m, m.digest()} }

// heartMost bounds what is kept here of what nodes have.
const heartMost = 256 << 20

// heartFile keeps what the nodes had after the last sync of a large project,
// so that they need not tell it.
func (t *Tree) heartFile() string { return t.HashCache + "-nodes" }

// recall reads what the nodes had after the last sync; nothing: that is not known.
func (t *Tree) recall() titled {
	if !t.cached() {
		return titled{}
	}
	f, err := os.Open(t.heartFile())
	if err != nil {
		return titled{}
	}
	defer func() { _ = f.Close() }()
	m, from := manifest{}, bufio.NewReader(io.LimitReader(f, heartMost))
	var digest []byte
	if wire.ReadFrame(from, &digest) != nil {
		return titled{}
	}
	for {
		var list []wire.SyncEntry
		if wire.ReadFrame(from, &list) != nil {
			break
		}
		m.add(list)
	}
	if own := title(m); bytes.Equal(own.digest, digest) && len(m) > 0 {
		return own
	}
	return titled{} // it is broken
}

// add takes over entries that make sense, and reports whether all did.
func (m manifest) add(list []wire.SyncEntry) bool {
	for _, e := range list {
		if !e.Valid() || len(m) >= wire.SyncEntriesMost {
			return false
		}
		m[string(e.Path)] = e
	}
	return true
}

// remember writes down what the nodes have now. It is only a loss of time when
// that fails: then they tell it.
func (t *Tree) remember(now titled) {
	if !t.cached() {
		return
	}
	var text strings.Builder
	write := func(v any) {
		frame, _ := wire.Frame(v) // of what can be encoded
		text.Write(frame)
	}
	write(now.digest)
	for _, part := range wire.SyncLists(slices.Collect(maps.Values(now.manifest)), wire.SyncSize) {
		write(part)
	}
	_ = wholefile.Cache(t.heartFile(), []byte(text.String()))
}

// localPath reports whether a path is clean and stays below where it starts.
func localPath(p string) bool { return wire.LocalPath(p) }

// isOther reports whether a file is no longer the one that was read.
func (e *treeEntry) isOther(info fs.FileInfo) bool {
	return info.Size() != e.size || !info.ModTime().Truncate(time.Nanosecond).Equal(e.mtime)
}
