package remote

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

//go:embed syncscripts/list.sh
var listScript string

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
// here with the size and the time that they have there are not fetched again,
// so a Pull that broke off goes on with the next call, large files in their
// middle. What came is held against the checksums that the node makes of its
// files. Nothing here is removed.
//
// The node is not trusted: nothing is written outside of dest or of the asked
// paths, nor into a .git; links are made only when they stay inside; devices,
// pipes and sockets are skipped; and there are limits, whose error is a
// *LimitError. Every file is written beside its place and renamed.
func Pull(ctx context.Context, n *Node, remoteDir string, paths []string, dest string, lim PullLimits) (PullResult, error) {
	return pullFrom(ctx, n, remoteDir, paths, dest, lim)
}

// PullBy is Pull by rules that say which files are taken, and what becomes of
// files that are in their place here.
func PullBy(ctx context.Context, n *Node, remoteDir string, paths []string, dest string, rules PullRules) (PullResult, error) {
	return pullBy(ctx, n, remoteDir, paths, dest, rules)
}

func pullFrom(ctx context.Context, n syncNode, remoteDir string, paths []string, dest string, lim PullLimits) (PullResult, error) {
	return pullBy(ctx, n, remoteDir, paths, dest, PullRules{Limits: lim})
}

func pullBy(ctx context.Context, n syncNode, remoteDir string, paths []string, dest string, rules PullRules) (res PullResult, err error) {
	began := time.Now()
	p := &puller{node: n, left: rules.Limits, rules: rules, large: largeFrom, got: map[string]string{}, res: &res}
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
	node  syncNode
	dir   string
	paths []string
	root  *os.Root
	stage string     // the directory of dest in which files are written first
	lim   PullLimits // as asked
	left  PullLimits // what may still come
	rules PullRules
	large int64             // from what size on a file comes by itself
	got   map[string]string // the SHA-256 of what came, by path
	res   *PullResult

	clock  int64 // the node's, in seconds
	hasTar bool
	found  []pullItem // sorted by path
	serial int
}

// pullItem is one thing that the node says it has.
type pullItem struct {
	path  string
	kind  entryKind
	size  int64
	mtime int64
	mode  fs.FileMode
	state string // see Seen
}

// note takes one thing of the list, or says why not.
func (p *puller) note(name, state string) {
	if name == "." {
		return
	}
	item := pullItem{path: name}
	var mode uint64
	_, err := fmt.Sscanf(state, "%d %d %x", &item.size, &item.mtime, &mode)
	why := p.refusal(name)
	switch {
	case why != "":
	case err != nil || item.size < 0:
		why = fmt.Sprintf("its state is told as %.40q", state)
	default:
		item.kind, why = kindOf(mode)
	}
	if why != "" {
		p.skip(name, why)
		return
	}
	item.state = contentState(state)
	item.mode = 0o644 | fs.FileMode(mode)&0o100/0o100*0o111
	p.found = append(p.found, item)
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
func kindOf(mode uint64) (kind entryKind, why string) {
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
	for i, item := range p.found {
		if item.kind == kindLink && p.isParent(i) {
			continue // an asked path that was followed
		}
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

// isParent reports whether an asked path that is a link was followed.
func (p *puller) isParent(i int) bool {
	_, asked := slices.BinarySearch(p.paths, p.found[i].path)
	prefix := p.found[i].path + "/"
	at, _ := slices.BinarySearchFunc(p.found, prefix, func(e pullItem, s string) int { return strings.Compare(e.path, s) })
	return asked && at < len(p.found) && strings.HasPrefix(p.found[at].path, prefix)
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
