package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote/wire"
)

// What a Pull takes at most when its limits do not say otherwise.
const (
	pullFiles = 100_000
	pullBytes = 100e9
)

// PullLimits bound what one Pull takes from a node; zero means 100,000 files,
// or 100 GB.
type PullLimits struct {
	MaxFiles int
	MaxBytes int64
}

// LimitError says that a node had more than a Pull may take. What was fetched
// before is whole and stays.
type LimitError struct {
	Node string
	Path string // the first one that was not fetched
	Why  string // "more than 100 files"
}

// Error names the node, the path and the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pull from %s stopped before %s: %s; what came so far is kept; pull fewer paths, or raise the limit", e.Node, nameText(e.Path), e.Why)
}

// PullResult is what a Pull did.
type PullResult struct {
	Files     int // fetched files and links
	Bytes     int64
	Unchanged int // files that were here already, with the same size and time
	Duration  time.Duration
	// Others counts the files that the rules say are somebody else's.
	Others int
	// Moved are files that got another name here, because theirs is taken.
	Moved []string
	// Missing are the asked paths that the node does not have.
	Missing []string
	// Skipped are things that were not taken, each with the reason:
	// "out/sock: a socket".
	Skipped []string
}

// String is "3 files, 48 KB in 0.3 s".
func (r PullResult) String() string {
	text := fmt.Sprintf("%s, %s in %s", count(r.Files, "file"), units.Bytes(r.Bytes), units.Duration(r.Duration))
	if r.Unchanged > 0 {
		text += fmt.Sprintf(" (%s here already)", digits(r.Unchanged))
	}
	return text
}

// Pull fetches paths of the node's directory remoteDir into the directory
// dest, which is made if need be. Paths are relative to remoteDir; a path that
// is a link to a directory is followed, links below it are not. Files that are
// here with the size and the time that they have there are not fetched again.
// When the connection is lost, a Pull waits for another one and goes on where it
// was; one that broke off goes on with the next call, large files in their
// middle. Each file is held against a checksum that the node makes while it
// reads it. Nothing here is removed.
//
// The node is not trusted: nothing is written outside of dest or of the asked
// paths, nor into a .git; links are made only when they stay inside; devices,
// pipes and sockets are skipped; and there are limits, whose error is a
// *LimitError. Every file is written beside its place and renamed.
func Pull(ctx context.Context, n *Node, remoteDir string, paths []string, dest string, lim PullLimits) (PullResult, error) {
	return pullBy(ctx, n, remoteDir, paths, dest, PullRules{Limits: lim})
}

// PullBy is Pull by rules that say which files are taken, and what becomes of
// files that are in their place here.
func PullBy(ctx context.Context, n *Node, remoteDir string, paths []string, dest string, rules PullRules) (PullResult, error) {
	return pullBy(ctx, n, remoteDir, paths, dest, rules)
}

func pullBy(ctx context.Context, n caller, remoteDir string, paths []string, dest string, rules PullRules) (res PullResult, err error) {
	began := time.Now()
	p := &puller{node: n, left: rules.Limits, rules: rules, res: &res}
	if p.left.MaxFiles <= 0 {
		p.left.MaxFiles = pullFiles
	}
	if p.left.MaxBytes <= 0 {
		p.left.MaxBytes = pullBytes
	}
	p.lim = p.left
	defer func() {
		res.Duration = time.Since(began)
		if limit := new(LimitError); err != nil && !errors.As(err, &limit) {
			err = fmt.Errorf("pull from %s:%s into %s: %w", n.Name(), remoteDir, dest, err)
		}
	}()
	if p.dir, err = nodeDir(remoteDir); err != nil {
		return res, err
	}
	if p.paths, err = cleanPaths(paths); err != nil {
		return res, err
	}
	if len(p.paths) == 0 {
		return res, nil
	}
	if err = p.list(ctx); err != nil || len(p.found) == 0 {
		return res, err
	}
	if err = os.MkdirAll(dest, 0o755); err != nil {
		return res, err
	}
	if p.root, err = os.OpenRoot(dest); err != nil {
		return res, err
	}
	defer func() { _ = p.root.Close() }()
	return res, p.take(ctx)
}

// cleanPaths brings the asked paths into one form, without doubles.
func cleanPaths(paths []string) ([]string, error) {
	var clean []string
	for _, asked := range paths {
		c := path.Clean(asked)
		if asked == "" || c != "." && !localPath(c) {
			return nil, fmt.Errorf("the path %q leaves the code directory; results must lie in it", asked)
		}
		clean = append(clean, c)
	}
	slices.Sort(clean)
	return slices.Compact(clean), nil
}

// puller is one Pull under way.
type puller struct {
	node  caller
	dir   string
	paths []string
	root  *os.Root
	stage string     // the directory of dest in which files are written first
	lim   PullLimits // as asked
	left  PullLimits // what may still come
	rules PullRules
	res   *PullResult

	met    bool       // the node has answered
	moved  int64      // what has come so far: when it grows, a try was not in vain
	clock  int64      // the node's, in seconds
	found  []pullItem // sorted by path
	serial int
	made   string // the directory that a file was last placed in
}

// pullItem is one thing that the node says it has.
type pullItem struct {
	path  string
	kind  entryKind
	size  int64
	mtime int64
	mode  fs.FileMode
	state string // see Seen
	from  int64  // so much of it is here
	again bool   // it came once already, and not as it is
}

// note takes one thing of the list, or says why not.
func (p *puller) note(t wire.Thing) {
	name := t.Name
	if name == "." {
		return
	}
	kind, why := kindOf(t.Mode)
	if refused := p.refusal(name); refused != "" {
		why = refused
	} else if t.Size < 0 {
		why = fmt.Sprintf("its size is told as %d", t.Size)
	}
	if why != "" {
		p.skip(name, why)
		return
	}
	p.found = append(p.found, pullItem{path: name, kind: kind, size: t.Size, mtime: t.MTime.Sec,
		mode: 0o644 | fs.FileMode(t.Mode)&0o100/0o100*0o111, state: seenState(t)})
}

// skippedMost bounds the list of what was not taken.
const skippedMost = 1000

func (p *puller) skip(name, why string) {
	switch n := len(p.res.Skipped); {
	case n < skippedMost:
		p.res.Skipped = append(p.res.Skipped, nameText(name)+": "+why)
	case n == skippedMost:
		p.res.Skipped = append(p.res.Skipped, "and more")
	}
}

// refusal says why a name that a node sent is not used; empty: it may be.
func (p *puller) refusal(name string) string {
	if !localPath(name) {
		return "its path leaves the directory"
	}
	for part := range strings.SplitSeq(name, "/") {
		// Git runs commands that a .git directory names.
		if strings.EqualFold(part, ".git") {
			return "it belongs to a .git directory"
		}
		if strings.HasPrefix(part, ".dlwb") {
			return "it belongs to dlwb"
		}
	}
	for _, asked := range p.paths {
		if asked == "." || name == asked || strings.HasPrefix(name, asked+"/") {
			return ""
		}
	}
	return "it was not asked for"
}

// kindOf reads the type bits of a mode.
func kindOf(mode uint32) (kind entryKind, why string) {
	switch mode >> 12 {
	case 8:
		return kindFile, ""
	case 4:
		return kindDir, ""
	case 10:
		return kindLink, ""
	case 1:
		return 0, "a named pipe"
	case 2, 6:
		return 0, "a device"
	case 12:
		return 0, "a socket"
	}
	return 0, fmt.Sprintf("of an unknown kind, mode %x", mode)
}

// choose makes the directories and gives the files and links to be fetched,
// as far as the limits reach.
func (p *puller) choose() (wanted []pullItem, limit error) {
	files, bytes := p.left.MaxFiles, p.left.MaxBytes
	for _, item := range p.found {
		if p.rules.Own != nil {
			if item.kind == kindDir {
				continue // it is made when a file of it is taken
			}
			if !p.rules.Own(item.path, item.state) {
				p.res.Others++
				continue
			}
		}
		if item.kind == kindFile && p.isHere(item) {
			p.res.Unchanged++
			continue
		}
		files--
		if item.kind == kindFile {
			bytes -= item.size
		}
		switch {
		case files < 0:
			return wanted, p.limit(item.path, "more than "+count(p.lim.MaxFiles, "file"))
		case bytes < 0:
			return wanted, p.limit(item.path, "more than "+units.Bytes(p.lim.MaxBytes))
		case item.kind == kindDir:
			if err := p.makeDir(item.path); err != nil {
				p.skip(item.path, "here: "+err.Error())
			}
		default:
			wanted = append(wanted, item)
		}
	}
	return wanted, nil
}

func (p *puller) limit(name, why string) error {
	return &LimitError{Node: p.node.Name(), Path: name, Why: why}
}

// isHere reports whether a file was fetched by an earlier Pull. Times there
// count in seconds; one that carries nanoseconds here is not to be relied on.
func (p *puller) isHere(item pullItem) bool {
	at := p.whereIs(item.path)
	info, err := p.root.Lstat(at)
	is := err == nil && info.Mode().IsRegular() && info.Size() == item.size &&
		info.ModTime().Equal(time.Unix(item.mtime, 0))
	if is {
		p.remember(item.path, at)
	}
	return is
}
