package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
)

// What a listing may have at most. It is read as it comes: whatever a node
// sends, no more of it is held than what is told of that many files.
const (
	// listedPerFile is how many things may be listed for each file that may be
	// fetched: of those that are here already there may be more.
	listedPerFile = 4
	// pathBytes is what their paths may have on average.
	pathBytes = 640
	// pathMost is the longest path of common systems (PATH_MAX), with room.
	pathMost = 8 << 10
)

// list asks what there is.
func (p *puller) list(ctx context.Context) error {
	l := &listing{p: p, missing: make([]bool, len(p.paths)), most: listedPerFile * max(p.left.MaxFiles, 1000)}
	capped := &cappedWriter{to: l, left: min(viewMost, 1<<20+int64(p.left.MaxFiles)*pathBytes)}
	line := Quote(append([]string{"sh", "-c", listScript, "dlwb", p.dir}, p.paths...)...)
	res, err := execTo(ctx, p.node, Cmd{Line: line, Quiet: transferLimit}, capped)
	switch {
	case l.err != nil:
		return l.err
	case capped.over:
		return fmt.Errorf("its list has more than %s", units.Bytes(1<<20+int64(p.lim.MaxFiles)*pathBytes))
	case err != nil:
		return err
	case res.ExitCode != 0:
		return errors.New("list what is there: " + lastWords(res.Stderr))
	}
	return l.end()
}

// listing reads the answer of list.sh as it comes: the clock and the tools,
// what is missing, and then the state of each thing, as in parseStats.
type listing struct {
	p       *puller
	part    []byte // what is not read yet
	begun   bool   // the list itself has begun
	missing []bool // of the asked paths
	noted   int
	most    int
	err     error
}

var listMark = []byte(statMark)

// Write takes in what the node says.
func (l *listing) Write(text []byte) (int, error) {
	l.part = append(l.part, text...)
	if !l.begun {
		l.err = l.head()
	}
	if l.err == nil && l.begun {
		l.err = l.items()
	}
	if l.err == nil && len(l.part) > pathMost+len(text) {
		l.err = fmt.Errorf("the node's list has a line of more than %d bytes: %.60q", pathMost, l.part)
	}
	return len(text), l.err
}

// head reads the lines before the list, as far as they are there.
func (l *listing) head() error {
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return nil
		}
		l.part = rest
		words := strings.Fields(string(line))
		n, err := 0, errors.New("no number")
		if len(words) == 2 && words[0] == "missing" {
			n, err = strconv.Atoi(words[1])
		}
		switch {
		case l.p.clock == 0 && len(words) >= 2 && words[0] == "now":
			if l.p.clock, err = strconv.ParseInt(words[1], 10, 64); err != nil || l.p.clock == 0 {
				return l.strange(line)
			}
			l.p.hasTar = slices.Contains(words, "tar")
		case l.p.clock == 0:
			return l.strange(line)
		case string(line) == "list":
			l.begun = true
			return nil
		case err != nil || n < 1 || n > len(l.missing):
			return fmt.Errorf("the node's list has the line %.60q", line)
		default:
			l.missing[n-1] = true
		}
	}
}

func (l *listing) strange(text []byte) error {
	return fmt.Errorf("the node answered %.60q instead of a list; does its login shell print something?", text)
}

// items notes each thing that is known to be whole: behind it another begins.
func (l *listing) items() error {
	for {
		at := bytes.Index(l.part, listMark)
		if at < 0 {
			return nil
		}
		name := l.part[at+len(listMark):]
		next := bytes.Index(name, listMark)
		if next < 0 {
			return nil
		}
		end := bytes.LastIndexByte(name[:next], '\n')
		if end < 0 {
			return fmt.Errorf("the node's list has the line %.60q", l.part)
		}
		if err := l.note(l.part[:at], name[:end]); err != nil {
			return err
		}
		l.part = name[end+1:]
	}
}

func (l *listing) note(state, name []byte) error {
	if l.noted++; l.noted > l.most {
		return l.p.limit(string(name), "its list has more than "+count(l.most, "thing"))
	}
	l.p.note(strings.TrimPrefix(string(name), "./"), string(state[bytes.LastIndexByte(state, '\n')+1:]))
	return nil
}

// end takes in the last thing, when the node has said all.
func (l *listing) end() error {
	if !l.begun {
		return l.strange(l.part)
	}
	if state, name, ok := bytes.Cut(bytes.TrimSuffix(l.part, []byte("\n")), listMark); ok {
		if err := l.note(state, name); err != nil {
			return err
		}
	}
	p := l.p
	for i, missing := range l.missing {
		if missing {
			p.res.Missing = append(p.res.Missing, p.paths[i])
		}
	}
	// What is asked for twice, as a directory and what is in it, is listed twice.
	slices.SortStableFunc(p.found, func(a, b pullItem) int { return strings.Compare(a.path, b.path) })
	p.found = slices.CompactFunc(p.found, func(a, b pullItem) bool { return a.path == b.path })
	slices.Sort(p.res.Skipped)
	p.res.Skipped = slices.Compact(p.res.Skipped)
	return nil
}
