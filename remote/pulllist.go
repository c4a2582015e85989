package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

// What a listing may have at most. It is read as it comes: whatever a node
// sends, no more of it is held than what is told of that many files.
const (
	// listedPerFile is how many things may be listed for each file that may be
	// fetched: of those that are here already there may be more.
	listedPerFile = 4
	// pathBytes is what their paths may have on average.
	pathBytes = 640
	// listBytes is what all of them may have.
	listBytes = 256 << 20
)

// list asks what there is.
func (p *puller) list(ctx context.Context) error {
	return p.persist(ctx, func() error { return p.listOnce(ctx) })
}

func (p *puller) listOnce(ctx context.Context) error {
	request := wire.ListRequest{Dir: p.dir, Paths: p.paths}
	s, done, err := p.begin(ctx, wire.List, request)
	if err != nil {
		return err
	}
	defer done()
	p.found, p.res.Skipped, p.clock = nil, nil, 0
	l := &listing{p: p, missing: make([]bool, len(p.paths)), most: listedPerFile * max(p.left.MaxFiles, 1000)}
	l.bytes = min(listBytes, 1<<20+int64(p.left.MaxFiles)*pathBytes)
	for {
		var page wire.ListPage
		if err := s.Recv(&page); errors.Is(err, io.EOF) {
			l.end()
			return nil
		} else if err != nil {
			return bulk.Lost(err)
		}
		if err := l.take(page); err != nil {
			return err
		}
	}
}

// listing is what comes of a list, within its bounds.
type listing struct {
	p       *puller
	missing []bool // of the asked paths
	noted   int
	most    int
	bytes   int64 // what names may still have
}

func (l *listing) take(page wire.ListPage) error {
	p := l.p
	if p.clock == 0 {
		p.clock = page.Clock
	}
	for _, n := range page.Missing {
		if n < 0 || n >= len(l.missing) {
			return wire.Brokenf("its list has no path %d", n)
		}
		l.missing[n] = true
	}
	if err := l.room(""); err != nil { // an empty page counts too
		return err
	}
	for _, t := range page.Things {
		if err := l.room(t.Name); err != nil {
			return err
		}
		p.note(t)
	}
	for _, u := range page.Unread {
		if err := l.room(u.Name); err != nil {
			return err
		}
		p.skip(u.Name, "it can't be looked at: "+lastWords([]byte(u.Why)))
	}
	return nil
}

// room holds one more thing against the bounds.
func (l *listing) room(name string) error {
	p := l.p
	if l.noted++; l.noted > l.most {
		return p.limit(name, "its list has more than "+count(l.most, "thing"))
	}
	if len(name) > wire.NameMost {
		return wire.Brokenf("its list has a name of %d bytes: %.60q", len(name), name)
	}
	if l.bytes -= int64(len(name)); l.bytes < 0 {
		return fmt.Errorf("its list has more than %s", units.Bytes(min(listBytes, 1<<20+int64(p.lim.MaxFiles)*pathBytes)))
	}
	return nil
}

// end puts what came in order.
func (l *listing) end() {
	p := l.p
	p.res.Missing = nil
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
}
