// Package transfer moves files between this machine and nodes: a project there by
// Scan and Sync, results back by Pull, checkpoints there by Put, and what one node
// has to the others by Share. What a project is, which of it is ignored and which
// is held back as a secret, is found out here alone; a node is asked by the Call
// and the Ask of package remote.
package transfer

import (
	"cmp"
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
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
)

// What a Pull takes at most when its limits do not say otherwise.
const (
	pullFiles = 250_000
	pullBytes = 100e9
)

// PullLimits bound what one Pull takes from a node; zero means 250,000 files,
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
	return fmt.Sprintf("pull from %s stopped before %s: %s; what came so far is kept; pull fewer paths, or narrower ones", e.Node, nameText(e.Path), e.Why)
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
	// Unfetched counts files, of those, that are on the node only: it could not
	// read them, or they did not come whole.
	Unfetched int
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
func Pull(ctx context.Context, n *remote.Node, remoteDir string, paths []string, dest string, lim PullLimits) (PullResult, error) {
	return pullBy(ctx, n, remoteDir, paths, dest, PullRules{Limits: lim})
}

// PullBy is Pull by rules that say which files are taken, and what becomes of
// files that are in their place here.
func PullBy(ctx context.Context, n *remote.Node, remoteDir string, paths []string, dest string, rules PullRules) (PullResult, error) {
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
	p.met = rules.Patience > 0
	if p.paths, err = cleanPaths(paths); err != nil {
		return res, err
	}
	if len(p.paths) == 0 {
		return res, nil
	}
	p.dest = dest
	defer p.close()
	var limit error
	err = p.list(ctx, func() func(wire.Thing) error {
		p.wanted.close()
		limit, p.ahead, p.wanted = nil, p.left, p.newList()
		res.Others, res.Unchanged, p.modes = 0, 0, dirModes{}
		return func(t wire.Thing) error {
			if limit = p.consider(t); limit != nil {
				return errEnoughListed
			}
			return nil
		}
	})
	if err == nil && p.wanted.count > 0 {
		err = p.take(ctx)
	}
	return res, cmp.Or(err, limit)
}

// open makes and opens the directory here.
func (p *puller) open() (err error) {
	if p.root != nil {
		return nil
	}
	if err = os.MkdirAll(p.dest, 0o755); err == nil {
		p.root, err = os.OpenRoot(p.dest)
	}
	return err
}

func (p *puller) close() {
	p.wanted.close()
	if p.stage != "" {
		_ = p.root.RemoveAll(p.stage)
	}
	if p.root != nil {
		_ = p.root.Close()
	}
}

// openStage makes the directory for what is not finished.
func (p *puller) openStage() error {
	if p.stage != "" {
		return nil
	}
	p.clearStale()
	stage := stagePrefix + randomWord()
	err := p.root.Mkdir(stage, 0o700)
	if err == nil {
		p.stage = stage
	}
	return err
}

func (p *puller) newList() *thingList {
	return &thingList{spill: func() (*os.File, error) {
		if err := p.openStage(); err != nil {
			return nil, err
		}
		p.serial++
		return p.root.OpenFile(fmt.Sprintf("%s/list%d", p.stage, p.serial), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}}
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
	dest  string
	root  *os.Root   // of dest; nil: nothing was there that may come
	stage string     // the directory of dest in which files are written first; empty: not made yet
	lim   PullLimits // as asked
	left  PullLimits // what may still come
	ahead PullLimits // what may still be wanted
	rules PullRules
	res   *PullResult

	met    bool       // the node has answered
	moved  int64      // what has come so far: when it grows, a try was not in vain
	clock  int64      // the node's, in seconds
	wanted *thingList // files and links to be fetched
	serial int
	made   string // the directory that a file was last placed in
	modes  dirModes
	// allowed are the permissions that a new file may have here.
	allowed fs.FileMode
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

// miss is skip for a file that should have come.
func (p *puller) miss(name, why string) {
	p.res.Unfetched++
	p.skip(name, why)
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

// consider takes note of a file or link that is to be fetched, and makes a
// directory. The error is a limit.
func (p *puller) consider(t wire.Thing) error {
	kind, _ := kindOf(t.Mode)
	if kind == kindDir {
		p.modes.note(t)
	}
	if p.rules.Own != nil {
		if kind == kindDir {
			return nil // it is made when a file of it is taken
		}
		if !p.rules.Own(t.Name, seenState(t)) {
			p.res.Others++
			return nil
		}
	}
	if err := p.open(); err != nil {
		return err
	}
	if kind == kindFile && p.isHere(t) {
		p.res.Unchanged++
		return nil
	}
	p.ahead.MaxFiles--
	if kind == kindFile {
		p.ahead.MaxBytes -= t.Size
	}
	switch {
	case p.ahead.MaxFiles < 0:
		return p.limit(t.Name, "more than "+count(p.lim.MaxFiles, "file"))
	case p.ahead.MaxBytes < 0:
		return p.limit(t.Name, "more than "+units.Bytes(p.lim.MaxBytes))
	case kind == kindDir:
		if err := p.makeDir(t.Name); err != nil {
			p.skip(t.Name, "here: "+err.Error())
		}
	default:
		err := p.wanted.add(t)
		if errors.Is(err, errListFull) {
			return p.limit(t.Name, fmt.Sprintf("the list of more than %s does not fit into %s", count(p.wanted.count, "file"), units.Bytes(listMost)))
		}
		return err
	}
	return nil
}

func (p *puller) limit(name, why string) error {
	return &LimitError{Node: p.node.Name(), Path: name, Why: why}
}

// isHere reports whether a file was fetched by an earlier Pull. Times there
// count in seconds; one that carries nanoseconds here is not to be relied on.
func (p *puller) isHere(t wire.Thing) bool {
	at := p.whereIs(t.Name)
	info, err := p.root.Lstat(at)
	is := err == nil && info.Mode().IsRegular() && info.Size() == t.Size && info.ModTime().Equal(writtenAt(t))
	if is {
		p.remember(t.Name, at)
	}
	return is
}
