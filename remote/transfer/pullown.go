package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/internal/units"
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

// Seen is what is below some paths of a node at one moment: the state of each
// file and link, by path. The state is a word that changes with whatever is
// written: size, inode, and both times to the nanosecond. Two states of one node can
// be compared by SameState, and by nothing else.
type Seen map[string]string

// MarshalJSON writes the paths so that they come back byte for byte.
func (s Seen) MarshalJSON() ([]byte, error) {
	return json.Marshal(namejson.Keys(s, namejson.Encode))
}

// UnmarshalJSON reads what MarshalJSON has written, also that of an earlier dlwb.
func (s *Seen) UnmarshalJSON(text []byte) error {
	var m map[string]string
	err := json.Unmarshal(text, &m)
	*s = namejson.Keys(m, namejson.Decode)
	return err
}

const (
	// seenMost is how much memory a Seen may take: that of 100,000 files with names
	// of 70 bytes.
	seenMost = 20 << 20
	// seenCosts is what a file costs besides the bytes of its name: its state, and its
	// place in the map.
	seenCosts = 136
)

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

// SameState reports whether two states of a Seen are the same. An earlier dlwb
// noted whole seconds on nodes with busybox: of such a state, no more is compared.
func SameState(a, b string) bool {
	if a == b {
		return true
	}
	if strings.Contains(a, ".") == strings.Contains(b, ".") {
		return false
	}
	return wholeSeconds(a) == wholeSeconds(b)
}

func wholeSeconds(state string) string {
	words := strings.Fields(state)
	for i, word := range words {
		words[i], _, _ = strings.Cut(word, ".")
	}
	return strings.Join(words, " ")
}

// Look takes note of what is below paths of the node's directory remoteDir.
// Paths that are not there are no error. It reads nothing of the files.
func Look(ctx context.Context, n *remote.Node, remoteDir string, paths []string) (Seen, error) {
	return lookAt(ctx, n, remoteDir, paths)
}

func lookAt(ctx context.Context, n caller, remoteDir string, paths []string) (seen Seen, err error) {
	p := &puller{node: n, left: PullLimits{MaxFiles: pullFiles}, res: &PullResult{}}
	if p.dir, err = nodeDir(remoteDir); err == nil {
		p.paths, err = cleanPaths(paths)
	}
	if err != nil || len(p.paths) == 0 {
		return Seen{}, err
	}
	err = p.list(ctx, func() func(wire.Thing) error {
		seen = Seen{}
		room := seenMost
		return func(t wire.Thing) error {
			if kind, _ := kindOf(t.Mode); kind == kindDir {
				return nil
			}
			if room -= len(t.Name) + seenCosts; room < 0 {
				return fmt.Errorf("there are more than %s, and the list of no more fits into %s: name fewer paths, or narrower ones",
					count(len(seen), "file"), units.Bytes(seenMost))
			}
			seen[t.Name] = seenState(t)
			return nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look at %s:%s: %w", n.Name(), remoteDir, err)
	}
	return seen, nil
}
