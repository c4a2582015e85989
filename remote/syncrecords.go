package remote

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// record is a file that tells a node what to do with a batch, or what to write
// down about it.
type record struct{ name, text string }

// records are those of a batch, after which the node has what have says.
func (s *nodeSync) records(b *batch, have manifest, script string) []record {
	var sent, files []string
	for _, e := range b.send {
		sent = append(sent, e.path)
	}
	for p, e := range have {
		if e.kind != kindDir {
			files = append(files, p)
		}
	}
	slices.Sort(files)
	list := s.short(have)
	if list == nil {
		list = []record{{"manifest", have.String()}, {"names", namesList(files)}, {"keep", s.keepStates(b, files)}}
	} else if !sameFiles(s.view.have, have) {
		list = append(list, record{"names", namesList(files)})
	}
	for _, e := range b.send {
		if f := s.placed[e.path]; f != nil && f.cutList() != nil {
			list = append(list, record{"chunks." + e.sum, chunkText(f.cutList())})
		}
	}
	return append(list, record{"sent", namesList(sent)}, record{"apply", applyScript + script + s.largeCalls(b) + b.script()})
}

// largeCalls are the calls of apply.sh that take large files in.
func (s *nodeSync) largeCalls(b *batch) string {
	var calls strings.Builder
	for _, e := range b.send {
		if f := s.placed[e.path]; f != nil {
			when := e.mtime.UTC().Format("200601021504.05")
			calls.WriteString(Quote("large", f.word, e.path, fmt.Sprintf("%o", e.mode), when) + "\n")
		}
	}
	return calls.String()
}

func writeRecords(to sink, records []record) error {
	for _, r := range records {
		meta := &treeEntry{mode: 0o600, size: int64(len(r.text))}
		if err := to.file(r.name, meta, strings.NewReader(r.text)); err != nil {
			return err
		}
	}
	return nil
}

// shortFrom is how many entries a project has at least for its records to be
// sent as what changes in them: below, they are a few packets.
const shortFrom = 100

// short is the records as what changes in those that lie on the node; nil
// where that is not possible, or no gain.
func (s *nodeSync) short(have manifest) []record {
	had := s.view.have
	if s.long || s.view.halfway || !s.view.has("awk") || !s.view.has("stat") || !s.view.has("dir") || len(had) < shortFrom {
		return nil
	}
	var less, more, drop strings.Builder
	changed := 0
	differs := func(p string, now manifestEntry, is bool) bool {
		before, was := had[p]
		return is != was || !before.equal(now)
	}
	for p, e := range had {
		if now, is := have[p]; differs(p, now, is) {
			changed++
			less.WriteString(strconv.Quote(p) + "\n")
			if e.kind != kindDir {
				drop.WriteString(p + "\n")
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(have)) {
		if strings.Contains(p, "\n") {
			return nil
		}
		if differs(p, have[p], true) {
			changed++
			more.WriteString(have[p].line(p))
		}
	}
	if strings.Contains(drop.String(), "\n\n") || changed > len(had)/2 {
		return nil
	}
	s.shortened = true
	first := s.want.title
	if !have.same(s.want.manifest) {
		first = title(have).title
	}
	return []record{
		{"first", first + "\n"}, {"less", less.String()}, {"more", more.String()},
		{"drop", drop.String()}, {"count", fmt.Sprintln(len(have) + 1)},
	}
}

// sameFiles reports whether two manifests are of the same files and links.
func sameFiles(a, b manifest) bool {
	within := func(a, b manifest) bool {
		for p, e := range a {
			if o, ok := b[p]; e.kind != kindDir && (!ok || o.kind == kindDir) {
				return false
			}
		}
		return true
	}
	return within(a, b) && within(b, a)
}

// keepStates is in what states dlwb saw the files that this batch leaves alone.
func (s *nodeSync) keepStates(b *batch, files []string) string {
	replaced := map[string]bool{}
	for _, e := range b.send {
		replaced[e.path] = true
	}
	var lines strings.Builder
	for _, p := range files {
		states := s.view.states[p]
		if now := s.view.now[p]; s.view.state(p) == untouched && len(now) > 0 {
			states = now
		}
		for _, state := range states {
			if !replaced[p] {
				lines.WriteString(state + statMark + p + "\n")
			}
		}
	}
	return lines.String()
}
