package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/wholefile"
)

const (
	// Below both, reading everything costs less than keeping checksums.
	cacheBytes = 8e6
	cacheFiles = 500
	// raceWindow: a file that changed this shortly before it was read may
	// change again without its times showing it (FAT counts in two seconds),
	// so its checksum is not kept. Git has the same rule for its index.
	raceWindow = 2 * time.Second
)

// hashCacheFor is where the checksums of a project's files are kept.
func hashCacheFor(dir string) string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(base, "dlwb", "checksums", shortHash(dir))
}

// shortHash is a file name for a thing with an awkward name.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// cached reports whether keeping anything about the project here is worth it.
func (t *Tree) cached() bool {
	return t.HashCache != "" && (t.Bytes > cacheBytes || t.Files > cacheFiles)
}

// hash makes sure that every file of the tree has its checksum. Files that
// have gone since Scan leave the tree.
func (t *Tree) hash(ctx context.Context) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	defer func() { _ = root.Close() }()
	worthIt := t.cached()
	if worthIt {
		t.readHashes()
	}
	read, err := t.hashMissing(ctx, root)
	if err != nil {
		return err
	}
	t.entries = slices.DeleteFunc(t.entries, func(e *treeEntry) bool { return e.kind == kindFile && e.sum == "" })
	t.holdRead()
	if worthIt && read {
		// Only a loss of time when it fails: the next sync reads the files again.
		_ = t.writeHashes()
	}
	return nil
}

// hashMissing reads the files that have no checksum yet.
func (t *Tree) hashMissing(ctx context.Context, root *os.Root) (read bool, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range t.entries {
		if e.kind == kindFile && e.sum == "" {
			read = true
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return e.hash(root)
			})
		}
	}
	return read, group.Wait()
}

// hash reads a file and takes its present size and times, which may be others
// than at Scan.
func (e *treeEntry) hash(root *os.Root) error {
	f, err := root.Open(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read project: %w; make it readable, or leave it out by a line in %s", err, dlwbIgnoreFile)
	}
	defer func() { _ = f.Close() }()
	now := time.Now()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	sum, size := sha256.New(), int64(0)
	for more := true; more; {
		n, err := io.ReadFull(f, (*room)[:cap(*room)])
		part := (*room)[:n]
		if more = err == nil; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read project: %s: %w", e.path, err)
		}
		if size == 0 {
			head := part[:min(n, secretfile.Head)]
			e.secret, e.held = secretfile.Mentions(head), secretfile.ByContent(e.path, head)
		}
		_, _ = sum.Write(part) // a hash takes all
		size += int64(n)
	}
	e.take(info)
	e.size = size
	e.sum = hex.EncodeToString(sum.Sum(nil))
	if size != info.Size() || now.Sub(e.fresh) < raceWindow {
		e.stamp = ""
	}
	return nil
}

// readHashes takes over the kept checksums of files that are unchanged.
func (t *Tree) readHashes() {
	text, err := os.ReadFile(t.HashCache)
	if err != nil {
		return
	}
	kept := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if len(sum) == 2*sha256.Size {
			kept[rest] = sum
		}
	}
	for _, e := range t.entries {
		if e.kind == kindFile && e.sum == "" {
			e.sum = kept[e.hashKey()]
		}
	}
}

// hashKey names a file in a certain state, that was found to be no secret by
// the rules of this program.
func (e *treeEntry) hashKey() string {
	return fmt.Sprintf("%d %d %s %s", secretfile.Version, e.size, e.stamp, strconv.Quote(e.path))
}

func (t *Tree) writeHashes() error {
	var text strings.Builder
	for _, e := range t.entries {
		if e.kind == kindFile && e.sum != "" && e.stamp != "" && e.secret == "" && e.held == "" {
			_, _ = fmt.Fprintf(&text, "%s %s\n", e.sum, e.hashKey())
		}
	}
	return wholefile.Cache(t.HashCache, []byte(text.String()))
}
