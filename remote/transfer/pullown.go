package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
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
	// Patience is for how long a node that can't be reached, or whose connection is
	// lost, is tried again while nothing comes. Zero: less than a minute, and not at
	// all one that can't be reached when the Pull begins.
	Patience time.Duration
}

// Placed is a file or link that a Pull put into a directory of this machine.
type Placed struct {
	As    string    `json:"as"` // below the directory
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime"`
}

// seenState is the state of a thing as GNU stat prints "%s %i %.9Y %.9Z": what was
// noted of a node by an earlier dlwb has that form.
func seenState(t wire.Thing) string {
	return fmt.Sprintf("%d %d %s %s", t.Size, t.Inode, secondsOf(t.MTime), secondsOf(t.Changed))
}

func secondsOf(t wire.Time) string {
	if t.Sec >= 0 || t.Nano == 0 {
		return fmt.Sprintf("%d.%09d", t.Sec, t.Nano)
	}
	return fmt.Sprintf("-%d.%09d", -(t.Sec + 1), 1e9-t.Nano)
}

// Each takes note of what is below paths of the node's directory remoteDir: take is
// given the path of each file and link there, and its state, a word that changes with
// whatever is written: size, inode, and both times to the nanosecond. Paths that are
// not there are no error. It reads nothing of the files, and keeps nothing of what was
// taken. Where the connection is lost on the way, all is told once more, to the take
// that anew gives then. An error of take ends it.
func Each(ctx context.Context, n *remote.Node, remoteDir string, paths []string, anew func() (take func(path, state string) error)) error {
	return eachOf(ctx, n, remoteDir, paths, anew)
}

func eachOf(ctx context.Context, n caller, remoteDir string, paths []string, anew func() (take func(path, state string) error)) (err error) {
	p := &puller{node: n, left: PullLimits{MaxFiles: pullFiles}, res: &PullResult{}}
	if p.dir, err = nodeDir(remoteDir); err == nil {
		p.paths, err = cleanPaths(paths)
	}
	if err != nil || len(p.paths) == 0 {
		return err
	}
	err = p.list(ctx, func() func(wire.Thing) error {
		take := anew()
		return func(t wire.Thing) error {
			if kind, _ := kindOf(t.Mode); kind == kindDir {
				return nil
			}
			return take(t.Name, seenState(t))
		}
	})
	if err != nil {
		return fmt.Errorf("look at %s:%s: %w", n.Name(), remoteDir, err)
	}
	return nil
}
