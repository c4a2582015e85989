package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

// syncTries is how often a sync begins again because files changed meanwhile.
const syncTries = 3

// Sync makes the directory remoteDir (absolute, or relative to the home) on
// all nodes hold what the tree holds: changed files are sent, and files that
// dlwb put there earlier and that are no longer in the tree are removed. All
// nodes work at the same time; where nothing changed, one round trip shows it.
//
// Every file is whole at any time: it is written beside its place and renamed.
// A sync that breaks off goes on where it was with the next call. What dlwb did
// not put there is never removed. A file that somebody edited on a node stays
// as it is until it changes here too; then it is moved into ~/.dlwb/kept/ on
// that node, as is whatever else is in the way. Both are in the result.
//
// progress (may be nil) is called with what a node is doing, one call at a
// time. The error has one line for every node that failed; the others are
// done, and the result is theirs.
func Sync(ctx context.Context, nodes []*remote.Node, t *Tree, remoteDir string, progress func(node int, text string)) (SyncResult, error) {
	return syncNodes(ctx, peersOf(nodes), t, remoteDir, progress)
}

func peersOf(nodes []*remote.Node) []syncPeer {
	list := make([]syncPeer, len(nodes))
	for i, n := range nodes {
		list[i] = peer{n}
	}
	return list
}

func syncNodes(ctx context.Context, nodes []syncPeer, t *Tree, remoteDir string, progress func(int, string)) (SyncResult, error) {
	began := time.Now()
	dir, err := nodeDir(remoteDir)
	if err != nil {
		return SyncResult{}, fmt.Errorf("sync: %w", err)
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return SyncResult{}, fmt.Errorf("sync: open project: %w", err)
	}
	defer func() { _ = root.Close() }()
	var telling sync.Mutex
	total := newSyncTotal(len(nodes))
	for try := 1; ; try++ {
		if err := t.hash(ctx); err != nil {
			return SyncResult{}, fmt.Errorf("sync: %w", err)
		}
		want := title(t.manifest())
		r := &syncRound{tree: t, root: root}
		byHeart := t.recall()
		for i, n := range nodes {
			s := &nodeSync{
				node: n, tree: t, root: root, want: want, byHeart: byHeart,
				dir: dir, id: idOf(n, dir), stamp: began.UTC().Format("20060102-150405"),
			}
			s.report = func(text string) {
				telling.Lock()
				defer telling.Unlock()
				if progress != nil {
					progress(i, text)
				}
			}
			r.nodes = append(r.nodes, s)
		}
		err := r.run(ctx)
		for i, s := range r.nodes {
			total.add(i, s)
		}
		if err == nil {
			t.remember(want)
		}
		if !errors.Is(err, errFileMoved) || try == syncTries || ctx.Err() != nil {
			return total.result(time.Since(began)), err
		}
		t.rescan(root)
		total.res.Moving = append(total.res.Moving, t.leaveMoving()...)
	}
}

// leaveMoving leaves out the files that changed in each of two tries, such as
// a log that this very sync is told in: they would keep it from ever ending.
func (t *Tree) leaveMoving() (names []string) {
	t.entries = slices.DeleteFunc(t.entries, func(e *treeEntry) bool {
		if e.moved < syncTries-1 {
			return false
		}
		names = append(names, e.path)
		return true
	})
	return names
}

// rescan takes the files anew that are no longer as they were.
func (t *Tree) rescan(root *os.Root) {
	for _, e := range t.entries {
		if e.kind != kindFile {
			continue
		}
		info, err := root.Lstat(e.path)
		was := e.stamp
		if err != nil || !info.Mode().IsRegular() {
			e.sum = ""
			continue
		}
		sum := e.sum
		if info.Size() != e.size || !info.ModTime().Equal(e.mtime) {
			e.moved++
		}
		if e.take(info); was != "" && was == e.stamp {
			e.sum = sum
		}
	}
}

// failure says which node failed, and what helps.
func (s *nodeSync) failure(err error) error {
	var fault *wire.Fault
	if errors.As(err, &fault) {
		err = errors.New(lastWords([]byte(fault.Text)) + hintOf(fault))
	}
	return fmt.Errorf("sync to %s:%s: %w", s.node.Name(), s.dir, err)
}

func hintOf(f *wire.Fault) string {
	switch {
	case f.Kind == wire.Full:
		return "; free some space there, or leave large files out by " + dlwbIgnoreFile
	case f.Kind == wire.Unreadable:
		return "; the user of the node must be able to write there"
	case f.Kind == wire.ReadOnly:
		return "; choose a directory on a disk that can be written"
	case strings.Contains(f.Text, "not a directory"):
		return "; a file there stands where a directory is needed; remove or rename it"
	}
	return ""
}

// lastWords is the end of what a command said, as one line of plain text.
func lastWords(stderr []byte) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(stderr), "?")), "\n")
	if len(lines) > 3 {
		lines = lines[:3] // the first ones name the cause
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.Join(lines, "; "))
	if r := []rune(text); len(r) > 400 {
		text = string(r[:400]) + "…"
	}
	return text
}

// nodeDir makes a directory name of the contract's form safe for the scripts.
func nodeDir(dir string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(dir, "~/"))
	switch {
	case dir == "" || dir == "~" || clean == "." || clean == "/":
		return "", fmt.Errorf("%q can't be a code directory: it must be one of its own, such as dlwb/NAME/code", dir)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("code directory %q leaves the home of the node's user", dir)
	case strings.ContainsAny(clean, "\x00\n"):
		return "", fmt.Errorf("code directory %q has a line break in its name", dir)
	case !path.IsAbs(clean):
		return "./" + clean, nil // a leading dash is then no option
	}
	return clean, nil
}

// randomWord makes a name that nobody else has.
func randomWord() string { return strings.ToLower(rand.Text()[:10]) }
