package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

const (
	// listedPerFile is how many things a node may tell of for each file that may be
	// fetched. Those that are here already cost nothing.
	listedPerFile = 4
	// nameMost is how long their names may be on average.
	nameMost = 1 << 10
)

// errEnoughListed ends a listing of which no more is wanted.
var errEnoughListed = errors.New("no more is wanted")

// list asks what there is. Where the connection is lost it is asked again, and
// anew gives who takes it then.
func (p *puller) list(ctx context.Context, anew func() (take func(wire.Thing) error)) error {
	return p.persist(ctx, func() error { return p.listOnce(ctx, anew()) })
}

func (p *puller) listOnce(ctx context.Context, take func(wire.Thing) error) error {
	s, done, err := p.begin(ctx, wire.List, wire.ListRequest{Dir: p.dir, Paths: p.paths})
	if err != nil {
		return err
	}
	defer done()
	p.res.Skipped, p.res.Unfetched, p.clock = nil, 0, 0
	l := &listing{p: p, take: take, missing: make([]bool, len(p.paths)), most: listedPerFile * max(p.left.MaxFiles, 1000)}
	l.bytes = int64(l.most) * nameMost
	for err == nil {
		var page wire.ListPage
		if err = s.Recv(&page); err == nil {
			err = l.page(page)
		} else if !errors.Is(err, io.EOF) {
			err = bulk.Lost(err)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errEnoughListed) {
		l.end()
		return nil
	}
	return err
}

// listing is a list that comes, within its bounds. It is read as it comes: no more of
// it is held than what is wanted.
type listing struct {
	p       *puller
	take    func(wire.Thing) error
	missing []bool // of the asked paths
	noted   int
	most    int
	bytes   int64 // what names may still have
}

func (l *listing) page(page wire.ListPage) error {
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
		if err := l.thing(t); err != nil {
			return err
		}
	}
	for _, u := range page.Unread {
		if err := l.room(u.Name); err != nil {
			return err
		}
		p.miss(u.Name, "it can't be looked at: "+lastWords([]byte(u.Why)))
	}
	return nil
}

// thing hands one thing over, or says why not.
func (l *listing) thing(t wire.Thing) error {
	if err := l.room(t.Name); err != nil || t.Name == "." {
		return err
	}
	_, why := kindOf(t.Mode)
	if refused := l.p.refusal(t.Name); refused != "" {
		why = refused
	} else if t.Size < 0 {
		why = fmt.Sprintf("its size is told as %d", t.Size)
	}
	if why != "" {
		l.p.skip(t.Name, why)
		return nil
	}
	return l.take(t)
}

// room holds one more thing against the bounds.
func (l *listing) room(name string) error {
	if len(name) > wire.NameMost {
		return wire.Brokenf("its list has a name of %d bytes: %.60q", len(name), name)
	}
	if l.noted++; l.noted > l.most {
		return l.p.limit(name, "its list has more than "+count(l.most, "thing"))
	}
	if l.bytes -= int64(len(name)); l.bytes < 0 {
		return l.p.limit(name, "its list has more than "+units.Bytes(int64(l.most)*nameMost))
	}
	return nil
}

// end puts what was said in order.
func (l *listing) end() {
	p := l.p
	p.res.Missing = nil
	for i, missing := range l.missing {
		if missing {
			p.res.Missing = append(p.res.Missing, p.paths[i])
		}
	}
	slices.Sort(p.res.Skipped)
	p.res.Skipped = slices.Compact(p.res.Skipped)
}
