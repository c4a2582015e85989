package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// manifestMagic begins the first line of a manifest; its digest follows.
const manifestMagic = "dlwb-manifest-1 "

// A manifest says what dlwb put into a node's code directory, by path. It lies
// on the node, in ~/.dlwb/sync/, and is written last.
type manifest map[string]manifestEntry

type manifestEntry struct {
	kind  entryKind
	mode  fs.FileMode
	size  int64
	mtime time.Time
	value string // a file's SHA-256, a link's target
}

func (e *treeEntry) manifestEntry() manifestEntry {
	switch e.kind {
	case kindDir:
		return manifestEntry{kind: kindDir}
	case kindLink:
		return manifestEntry{kind: kindLink, value: e.link}
	}
	return manifestEntry{kindFile, e.mode, e.size, e.mtime, e.sum}
}

// same reports whether two entries have the same content. The time does not
// count: a file that was only touched is not sent again.
func (m manifestEntry) same(o manifestEntry) bool {
	return m.kind == o.kind && m.mode == o.mode && m.value == o.value
}

// equal is same with the time.
func (m manifestEntry) equal(o manifestEntry) bool {
	return m.same(o) && m.size == o.size && m.mtime.Equal(o.mtime)
}

// manifest is what a node has when it has all of the tree.
func (t *Tree) manifest() manifest {
	m := make(manifest, len(t.entries))
	for _, e := range t.entries {
		m[e.path] = e.manifestEntry()
	}
	return m
}

// same reports whether two manifests have the same content.
func (m manifest) same(o manifest) bool { return maps.EqualFunc(m, o, manifestEntry.same) }

// digest is equal for manifests of the same content.
func (m manifest) digest() string {
	sum := sha256.New()
	var line []byte
	for _, p := range slices.Sorted(maps.Keys(m)) {
		e := m[p]
		line = append(line[:0], byte(e.kind), ' ')
		line = strconv.AppendUint(line, uint64(e.mode), 8)
		line = strconv.AppendQuote(append(line, ' '), e.value)
		line = strconv.AppendQuote(append(line, ' '), p)
		_, _ = sum.Write(append(line, '\n')) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// titled is a manifest with the first line of its text, which names what it
// says: many nodes are asked for it.
type titled struct {
	manifest
	title string
}

func title(m manifest) titled { return titled{m, manifestMagic + m.digest()} }

// String is the text that lies on the node. Names are quoted as in Go, so that
// every line is one entry.
func (m manifest) String() string {
	var b strings.Builder
	b.WriteString(manifestMagic + m.digest() + "\n")
	for _, p := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(m[p].line(p))
	}
	return b.String()
}

func (e manifestEntry) line(p string) string {
	var nanos int64
	if e.kind == kindFile {
		nanos = e.mtime.UnixNano()
	}
	return fmt.Sprintf("%c %o %d %d %q %q\n", e.kind, e.mode, e.size, nanos, e.value, p)
}

// parseManifest reads what a node sent. One that is broken counts as none:
// then the node's files are not taken for dlwb's own, and nothing is lost.
func parseManifest(text string) manifest {
	head, body, _ := strings.Cut(text, "\n")
	digest, ok := strings.CutPrefix(head, manifestMagic)
	if !ok {
		return manifest{}
	}
	m := manifest{}
	for line := range strings.Lines(body) {
		if p, e, ok := parseManifestLine(line); ok {
			m[p] = e
		}
	}
	if m.digest() != digest {
		return manifest{}
	}
	return m
}

func parseManifestLine(line string) (p string, e manifestEntry, ok bool) {
	var nanos int64
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
	if len(fields) != 5 || len(fields[0]) != 1 {
		return "", e, false
	}
	e.kind = entryKind(fields[0][0])
	mode, err1 := strconv.ParseUint(fields[1], 8, 9)
	size, err2 := strconv.ParseInt(fields[2], 10, 64)
	nanos, err3 := strconv.ParseInt(fields[3], 10, 64)
	value, err4 := strconv.QuotedPrefix(fields[4])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return "", e, false
	}
	p, err := strconv.Unquote(strings.TrimPrefix(fields[4][len(value):], " "))
	if err != nil || !localPath(p) {
		return "", e, false
	}
	e.mode, e.size = fs.FileMode(mode), size
	if e.kind == kindFile {
		e.mtime = time.Unix(0, nanos)
	}
	e.value, err = strconv.Unquote(value)
	return p, e, err == nil
}

// localPath reports whether a path is clean and stays below where it starts.
func localPath(p string) bool {
	if p == "" || p == "." || p[0] == '/' || strings.Contains(p, "\x00") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// statMark stands before every path in a listing of stat. No path of ours can
// contain it, whatever bytes its names have, as it has two slashes.
const statMark = " .//"

// parseStats reads a listing: for each path, in what states it was seen. A
// state is only ever compared, so every stat may write it in its own way.
func parseStats(text string) map[string][]string {
	found := map[string][]string{}
	text = strings.TrimSuffix(text, "\n")
	for at := strings.Index(text, statMark); at >= 0; {
		state := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
		rest := text[at+len(statMark):]
		next := strings.Index(rest, statMark)
		name := rest
		if next >= 0 {
			if end := strings.LastIndexByte(rest[:next], '\n'); end >= 0 {
				name = rest[:end]
			}
		}
		found[name] = append(found[name], state)
		text, at = rest, next
	}
	return found
}

// namesList is the paths for "xargs -0 stat".
func namesList(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(".//" + p + "\x00")
	}
	return b.String()
}
