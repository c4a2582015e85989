package fakeaws

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// resource is what every kind of thing in a region has. A value that is in a
// table is never changed: a changed copy is put in its place.
type resource[T any] interface {
	id() string
	labels() tags
	labelled(tags) T
}

type tags map[string]string

func (t tags) with(more tags) tags {
	if t = maps.Clone(t); t == nil {
		t = tags{}
	}
	maps.Copy(t, more)
	return t
}

// common is embedded in every kind of resource.
type common struct {
	ID   string
	Tags tags
}

func (c common) id() string   { return c.ID }
func (c common) labels() tags { return c.Tags }

// table has all things of one kind, and remembers what was so long enough to
// show it to those who look with a lag.
type table[T resource[T]] struct {
	s    *Server
	rows map[string]*row[T]
}

type row[T any] struct {
	value *T // the truth; nil: gone
	seen  []version[T]
	order int

	planted bool // it was there before any call
	touched bool // a call changed it
}

// version is what is seen from a time on.
type version[T any] struct {
	from  time.Time
	value *T
}

func newTable[T resource[T]](s *Server) *table[T] { return &table[T]{s: s, rows: map[string]*row[T]{}} }

// put makes or changes a thing. It is seen after the lag.
func (t *table[T]) put(v T) {
	t.set(v.id(), &v, t.s.opt.Lag())
	t.rows[v.id()].touched = true
}

// plant makes or changes a thing without a call; it is seen at once.
func (t *table[T]) plant(v T) {
	_, old := t.rows[v.id()]
	t.set(v.id(), &v, 0)
	if !old {
		t.rows[v.id()].planted = true
	}
}

// remove ends a thing. It is seen for the time of the lag.
func (t *table[T]) remove(id string) {
	t.set(id, nil, t.s.opt.Lag())
	t.rows[id].touched = true
}

func (t *table[T]) set(id string, v *T, lag time.Duration) {
	r, old := t.rows[id], row[T]{}
	if r == nil {
		t.s.orders++
		r = &row[T]{order: t.s.orders}
		t.rows[id] = r
		t.s.undo = append(t.s.undo, func() { delete(t.rows, id) })
	} else {
		old = *r
		t.s.undo = append(t.s.undo, func() { *r = old })
	}
	now := t.s.clock.Now()
	from := now.Add(lag)
	if n := len(r.seen); n > 0 && r.seen[n-1].from.After(from) {
		from = r.seen[n-1].from
	}
	r.value = v
	r.seen = append(trim(r.seen, now), version[T]{from, v})
}

// trim copies the versions that may still be seen.
func trim[T any](seen []version[T], now time.Time) []version[T] {
	first := 0
	for i, v := range seen {
		if !v.from.After(now) {
			first = i
		}
	}
	return slices.Clone(seen[first:])
}

// get is the truth.
func (t *table[T]) get(id string) (v T, ok bool) {
	if r := t.rows[id]; r != nil && r.value != nil {
		return *r.value, true
	}
	return v, false
}

// look is what a caller sees.
func (t *table[T]) look(id string) (v T, ok bool) {
	if r := t.rows[id]; r != nil {
		return r.look(t.s.clock.Now())
	}
	return v, false
}

func (r *row[T]) look(now time.Time) (v T, ok bool) {
	for i := len(r.seen) - 1; i >= 0; i-- {
		if seen := r.seen[i]; !seen.from.After(now) {
			if seen.value == nil {
				return v, false
			}
			return *seen.value, true
		}
	}
	return v, false
}

// usable is the truth of what a caller sees, for a call that changes it.
func (t *table[T]) usable(id string) (v T, ok bool) {
	if v, ok = t.look(id); !ok {
		return v, false
	}
	return t.get(id)
}

// all lists the truth, oldest first.
func (t *table[T]) all() []T {
	return t.list(func(r *row[T]) (v T, ok bool) {
		if r.value != nil {
			return *r.value, true
		}
		return v, false
	})
}

// listed lists what a caller sees, oldest first.
func (t *table[T]) listed() []T {
	now := t.s.clock.Now()
	return t.list(func(r *row[T]) (T, bool) { return r.look(now) })
}

func (t *table[T]) list(pick func(*row[T]) (T, bool)) []T {
	var out []T
	rows := slices.SortedFunc(maps.Values(t.rows), func(a, b *row[T]) int { return cmp.Compare(a.order, b.order) })
	for _, r := range rows {
		if v, ok := pick(r); ok {
			out = append(out, v)
		}
	}
	return out
}

// order is where a thing stands in the lists.
func (t *table[T]) order(v T) int { return t.rows[v.id()].order }

// anyTable is a table whatever it holds, for calls that take any id.
type anyTable interface {
	tagsOf(id string) (tags, bool)
	retag(id string, change func(tags) tags) bool
	ids() []string // that a caller sees
	exists(id string) bool
	touched() []string
	purge(now time.Time)
	made() []string // the ids of what calls have made, and that is
}

func (t *table[T]) tagsOf(id string) (tags, bool) {
	v, ok := t.look(id)
	if !ok {
		return nil, false
	}
	return v.labels(), true
}

func (t *table[T]) retag(id string, change func(tags) tags) bool {
	v, ok := t.usable(id)
	if ok {
		t.put(v.labelled(change(maps.Clone(v.labels()))))
	}
	return ok
}

func (t *table[T]) ids() []string {
	var ids []string
	for _, v := range t.listed() {
		ids = append(ids, v.id())
	}
	return ids
}

func (t *table[T]) exists(id string) bool { _, ok := t.get(id); return ok }

// touched lists the planted things that a call has changed or ended.
func (t *table[T]) touched() []string {
	var ids []string
	for id, r := range t.rows {
		if r.planted && r.touched {
			ids = append(ids, id)
		}
	}
	return ids
}

func (t *table[T]) made() []string {
	var ids []string
	for id, r := range t.rows {
		if !r.planted && r.value != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// purge forgets what is gone and no longer seen by anybody.
func (t *table[T]) purge(now time.Time) {
	for id, r := range t.rows {
		if r.value == nil && !r.planted && !r.seen[len(r.seen)-1].from.After(now) {
			delete(t.rows, id)
		}
	}
}
