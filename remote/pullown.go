package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// PullRules say what a Pull takes and where it puts it.
type PullRules struct {
	Limits PullLimits
	// Own tells whether a file or link is to be taken; nil: all are. State is
	// as in Seen. With it directories are made only for what is taken.
	Own func(path, state string) bool
	// Placed is what earlier Pulls into the same directory left there, by the
	// path on the node. It is added to. With it a file here is replaced only
	// while it is as one of those Pulls left it; else what comes gets another
	// name, with Mark in it. Nil: what is here is replaced.
	Placed map[string]Placed
	Mark   string
}

// Placed is a file or link that a Pull put into a directory of this machine.
type Placed struct {
	As    string    `json:"as"` // below the directory
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime"`
}

// Seen is what is below some paths of a node at one moment: the state of each
// file and link, by path. The state is a word that changes with whatever is
// written: size, inode, and both times to the nanosecond (busybox's stat tells
// whole seconds). Two states of one node can be compared for being the same, and nothing else.
type Seen map[string]string

// seenFiles is how many files one look takes note of.
const seenFiles = 1_000_000

// Look takes note of what is below paths of the node's directory remoteDir.
// Paths that are not there are no error. It reads nothing of the files.
func Look(ctx context.Context, n *Node, remoteDir string, paths []string) (Seen, error) {
	return lookAt(ctx, n, remoteDir, paths)
}

func lookAt(ctx context.Context, n syncNode, remoteDir string, paths []string) (Seen, error) {
	limits := PullLimits{MaxFiles: seenFiles}
	p := &puller{node: n, lim: limits, left: limits, res: &PullResult{}}
	var err error
	if p.dir, err = nodeDir(remoteDir); err == nil {
		p.paths, err = cleanPaths(paths)
	}
	seen := Seen{}
	if err != nil || len(p.paths) == 0 {
		return seen, err
	}
	if err := p.list(ctx); err != nil {
		return nil, fmt.Errorf("look at %s:%s: %w", n.Name(), remoteDir, err)
	}
	for i, item := range p.found {
		if item.kind != kindDir && !(item.kind == kindLink && p.isParent(i)) {
			seen[item.path] = item.state
		}
	}
	return seen, nil
}

// contentState is what of a line of list.sh tells one content from another:
// all but the time in whole seconds and the mode.
func contentState(line string) string {
	words := strings.Fields(line)
	if len(words) < 4 {
		return line
	}
	return words[0] + " " + strings.Join(words[3:], " ")
}

// whereIs is where in dest a file of the node is, or would be.
func (p *puller) whereIs(name string) string {
	if r, ok := p.rules.Placed[name]; ok && p.asLeft(r) {
		return r.As
	}
	return name
}

// asLeft reports whether what a Pull placed is still there as it was left.
func (p *puller) asLeft(r Placed) bool {
	info, err := p.root.Lstat(r.As)
	return err == nil && info.Size() == r.Size && info.ModTime().Equal(r.MTime)
}

// remember notes what is now in dest for a file of the node.
func (p *puller) remember(name, at string) {
	if p.rules.Placed == nil {
		return
	}
	if info, err := p.root.Lstat(at); err == nil {
		p.rules.Placed[name] = Placed{As: at, Size: info.Size(), MTime: info.ModTime()}
	}
}

// mostNames is how many names are tried for a file whose own is taken.
const mostNames = 1000

// placeFor is where in dest a file that has come belongs. What somebody else
// put there, or changed, is not replaced.
func (p *puller) placeFor(name string) (string, error) {
	at := p.whereIs(name)
	r, ours := p.rules.Placed[name]
	if p.rules.Placed == nil || ours && r.As == at && p.asLeft(r) {
		return at, nil
	}
	for n := 1; n < mostNames; n++ {
		if _, err := p.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			if at != name {
				p.res.Moved = append(p.res.Moved, nameText(name)+": there is another file of that name; it is "+nameText(at))
			}
			return at, nil
		}
		at = markedName(name, p.rules.Mark, n)
	}
	return "", fmt.Errorf("%d other files of its name are there", mostNames)
}

// markedName is another name for a file: model.pt becomes model.MARK.pt, then
// model.MARK-2.pt.
func markedName(name, mark string, n int) string {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	if ext == base {
		ext = ""
	}
	if n > 1 {
		mark = fmt.Sprintf("%s-%d", mark, n)
	}
	return dir + strings.TrimSuffix(base, ext) + "." + mark + ext
}
