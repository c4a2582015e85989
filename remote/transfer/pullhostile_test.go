//go:build linux

package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/remote/agent/outlet"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
	"github.com/fxamacker/cbor/v2"
)

// agentService is a service as the agent has it, for a node that has others.
func agentService(t testing.TB, n *agentNode, name string) func(*wire.Stream) error {
	return map[string]func(*wire.Stream) error{
		wire.List:  func(s *wire.Stream) error { return outlet.List(t.Context(), s) },
		wire.Fetch: func(s *wire.Stream) error { return outlet.Fetch(t.Context(), s) },
	}[name]
}

// thing is a file of the list, unless its mode says otherwise.
func thing(name string, size int64, mode ...uint32) wire.Thing {
	t := wire.Thing{Name: name, Size: size, Mode: 0o100644, MTime: wire.Time{Sec: 1}}
	if len(mode) > 0 {
		t.Mode = mode[0]
	}
	return t
}

// lists answers with a list.
func lists(pages ...wire.ListPage) func(*wire.Stream) error {
	return func(s *wire.Stream) error {
		var r wire.ListRequest
		if err := s.Recv(&r); err != nil {
			return err
		}
		for _, page := range pages {
			if err := s.Send(page); err != nil {
				return err
			}
		}
		return nil
	}
}

// sends answers with packs, whatever is asked for.
func sends(packs ...pack) func(*wire.Stream) error {
	return func(s *wire.Stream) error {
		var r wire.FetchRequest
		if err := s.Recv(&r); err != nil {
			return err
		}
		for _, pk := range packs {
			if err := pk.send(s); err != nil {
				return err
			}
		}
		return nil
	}
}

func sumOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// pack is a wire.Pack with what follows it.
type pack struct {
	data  []byte
	Full  int
	Parts []wire.Part
}

func (p pack) send(s bulk.Call) error {
	err := s.Send(wire.Pack{Parts: p.Parts, Len: len(p.data), Full: p.Full})
	if err == nil {
		_, err = s.Raw().Write(p.data)
	}
	return err
}

// whole is a pack with one file.
func whole(text string) pack {
	return pack{data: []byte(text), Parts: []wire.Part{{N: len(text), End: &wire.End{Sum: sumOf(text), MTime: 1}}}}
}

func TestAListThatLiesReachesNothing(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "dest")
	writeFiles(t, dest, map[string]string{"src/x": "mine", "mine": "mine", "out/linked": "-> ../src", "out/f/": ""})
	n := newAgentNode(t)
	n.answer[wire.List] = lists(wire.ListPage{Clock: 100, Things: []wire.Thing{
		thing("../x", 4), thing("/etc/x", 4), thing("out/../x", 4), thing("out/./x", 4), thing("out//x", 4), thing("other", 4), thing("", 4), thing("out/", 4), thing("outer", 4), thing("mine", 4),
		thing("out/minus", -5), thing("out/kind", 1, 0o170644), thing("out/.GIT/hooks", 4), thing("out/.git", 4, 0o40755), thing("out/.dlwb-x", 4), thing("out/nul\x00l", 4),
		thing("out/linked/made", 0, 0o40755), thing("out/linked/x", 4), thing("out/f", 4), thing("out/e", 4), thing("out/e", 4),
	}})
	n.answer[wire.Fetch] = sends(whole("evil"), whole("evil"), whole("evil"), whole("evil"))
	res, err := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, PullRules{})
	check(t, err)
	want := `"mine" 644 "mine"
"out" dir
"out/e" 644 "evil"
"out/f" dir
"out/linked" -> ../src
"src" dir
"src/x" 644 "mine"`
	if got := withoutTimes(dirText(t, dest)); got != want {
		t.Errorf("here is\n%s\nwant\n%s", got, want)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dest)); len(entries) != 1 {
		t.Errorf("something was written outside: %v", entries)
	}
	if len(res.Skipped) != 19 || res.Files != 2 {
		t.Errorf("%v, %d skipped %q", res, len(res.Skipped), res.Skipped)
	}
}

func TestWhatANodeSendsIsHeldAgainstWhatWasAskedFor(t *testing.T) {
	end := func(e wire.End) pack { return pack{Parts: []wire.Part{{End: &e}}} }
	for name, c := range map[string]struct {
		packs []pack
		says  string
	}{
		"one more":            {[]pack{whole("1"), whole("2"), end(wire.End{Link: "a"}), whole("3")}, "what it was not asked for"},
		"data behind the end": {[]pack{whole("1"), whole("2"), end(wire.End{Link: "a"}), {data: []byte("x"), Parts: []wire.Part{{N: 1}}}}, "what it was not asked for"},
		"one less":            {[]pack{whole("1"), whole("2")}, "did not send the last 1 file"},
		"a head":              {[]pack{{Parts: []wire.Part{{Head: &wire.Head{Name: "../x"}}}}}, "what it was not asked for"},
		"a file for a link":   {[]pack{whole("1"), whole("2"), whole("3")}, "what it was not asked for"},
		"too much":            {[]pack{whole(strings.Repeat("x", 101))}, "more than 100 B"},
		"lengths":             {[]pack{{data: []byte("x"), Parts: []wire.Part{{N: 2}}}}, "no pack"},
		"less than nothing":   {[]pack{{data: []byte("x"), Parts: []wire.Part{{N: -1}}}}, "no pack"},
		"bytes of no part":    {[]pack{{data: []byte("x")}}, "no pack"},
		"a bomb":              {[]pack{{data: []byte("x"), Full: 1 << 30}}, "no pack"},
		"no zstd":             {[]pack{{data: []byte("x"), Full: 10}}, "no pack"},
	} {
		t.Run(name, func(t *testing.T) {
			n, dest := newAgentNode(t), t.TempDir()
			n.answer[wire.List] = lists(wire.ListPage{Clock: 100, Things: []wire.Thing{thing("out/a", 1), thing("out/b", 1), thing("out/l", 1, 0o120777)}})
			n.answer[wire.Fetch] = sends(c.packs...)
			_, err := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, PullRules{Limits: PullLimits{MaxBytes: 100}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
			nothingLeft(t, dest)
		})
	}
}

func TestAWrongChecksumAndLinksOutAreNotTaken(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, dest, map[string]string{"out/a": "before"})
	n.answer[wire.List] = lists(wire.ListPage{Clock: 100, Things: []wire.Thing{thing("out/a", 4), thing("out/big", 10<<20), thing("out/l", 1, 0o120777), thing("out/m", 1, 0o120777)}})
	bad := pack{data: []byte("evil"), Parts: []wire.Part{{N: 4, End: &wire.End{Sum: sumOf("good"), MTime: 1}}}}
	link := func(to string) pack { return pack{Parts: []wire.Part{{End: &wire.End{Link: to}}}} }
	asked := 0
	n.answer[wire.Fetch] = func(s *wire.Stream) error {
		if asked++; asked == 1 {
			return sends(bad, bad, link("../../evil"), link("sub/../../../x"))(s)
		}
		return sends(bad, bad)(s)
	}
	res, err := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, PullRules{})
	check(t, err)
	text := strings.Join(res.Skipped, "\n")
	for _, want := range []string{"out/a: what came is not what the node read of it", "out/big: what came is not", "out/l: a link that points out", "out/m: a link that points out"} {
		if !strings.Contains(text, want) {
			t.Errorf("it is not told that %s:\n%s", want, text)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(dest, "out/a")); string(got) != "before" || res.Files != 0 || asked != 2 {
		t.Errorf("out/a is %q, %v, asked %d times", got, res, asked)
	}
	nothingLeft(t, dest)
}

func TestPullEndsAListThatDoesNotEnd(t *testing.T) {
	name := strings.Repeat("n", 4000)
	for what, c := range map[string]struct {
		page func(i int) wire.ListPage
		says string
	}{
		"things": {func(i int) wire.ListPage {
			return wire.ListPage{Things: []wire.Thing{thing("out/"+string(rune('a'+i%26)), 1, 0o10644), thing("out/x", 1, 0o10644)}}
		}, "its list has more than 4,000 things"},
		"names": {func(int) wire.ListPage { return wire.ListPage{Things: []wire.Thing{thing("out/"+name, 1, 0o10644)}} }, "its list has more than"},
		"a name": {func(int) wire.ListPage {
			return wire.ListPage{Things: []wire.Thing{thing("out/"+strings.Repeat(name, 3), 1)}}
		}, "a name of 12004 bytes"},
		"nothing":   {func(int) wire.ListPage { return wire.ListPage{} }, "its list has more than 4,000 things"},
		"unread":    {func(int) wire.ListPage { return wire.ListPage{Unread: []wire.Unread{{Name: "x", Why: "y"}}} }, "its list has more than 4,000 things"},
		"a missing": {func(int) wire.ListPage { return wire.ListPage{Missing: []int{1}} }, "has no path 1"},
		"missing":   {func(int) wire.ListPage { return wire.ListPage{Missing: []int{0}} }, "its list has more than 4,000 things"},
	} {
		t.Run(what, func(t *testing.T) {
			n := newAgentNode(t)
			n.answer[wire.List] = func(s *wire.Stream) error {
				for i := 0; ; i++ {
					if err := s.Send(c.page(i)); err != nil {
						return err
					}
				}
			}
			_, err := pullBy(t.Context(), n, codeDir, []string{"out"}, t.TempDir(), PullRules{Limits: PullLimits{MaxFiles: 1000}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// manyFiles is a page of files that no page had before, with long names.
func manyFiles(page int) (p wire.ListPage) {
	p.Clock = 100
	for i := range wire.PageMost {
		name := sumOf(fmt.Sprint(page, i))
		p.Things = append(p.Things, thing(fmt.Sprintf("out/%x", name), 1))
	}
	return p
}

// heapMost watches the heap, with what nobody has collected yet.
func heapMost() (look func(), most func() int64) {
	runtime.GC()
	use := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	before, top := use(), int64(0)
	return func() { top = max(top, use()-before) }, func() int64 { return top }
}

func TestAListOfFilesWithoutEndCostsLittle(t *testing.T) {
	for what, ask := range map[string]func(*agentNode) error{
		"pull": func(n *agentNode) error {
			_, err := pullBy(t.Context(), n, codeDir, []string{"out"}, t.TempDir(), PullRules{Limits: PullLimits{MaxFiles: 1e9}})
			return err
		},
		"look": func(n *agentNode) error {
			_, err := lookAt(t.Context(), n, codeDir, []string{"out"})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			n := newAgentNode(t)
			look, most := heapMost()
			n.answer[wire.List] = func(s *wire.Stream) error {
				for page := 0; ; page++ {
					if page%10 == 0 {
						look()
					}
					if err := s.Send(manyFiles(page)); err != nil {
						return nil
					}
				}
			}
			n.answer[wire.Fetch] = func(s *wire.Stream) error {
				for s.Recv(&wire.FetchPage{}) == nil {
					look()
				}
				return wire.Faultf(wire.Failed, "no more")
			}
			err := ask(n)
			look()
			if err == nil || most() > raceCosts*50<<20 {
				t.Errorf("%v; it took %d MB", err, most()>>20)
			}
			t.Logf("%v; it took %d MB", err, most()>>20)
		})
	}
}

func TestALookHoldsTheFilesOfABigHome(t *testing.T) {
	n, honest := newAgentNode(t), 390_000
	name := func(i int) string { return fmt.Sprintf("out/run-7/checkpoints/part-%06d.json", i) }
	listed := func(i int) wire.Thing {
		file := thing(name(i), int64(i)*1e3, 0o100644)
		file.Inode, file.MTime.Nano = uint64(i), 7
		return file
	}
	listing := honest
	n.answer[wire.List] = func(s *wire.Stream) error {
		for page := (wire.ListPage{}); listing > 0; page.Things = nil {
			for len(page.Things) < wire.PageMost && listing > 0 {
				listing--
				page.Things = append(page.Things, listed(listing))
			}
			if err := s.Send(page); err != nil {
				return err
			}
		}
		return nil
	}
	seen, err := lookAt(t.Context(), n, codeDir, []string{"out"})
	check(t, err)
	if seen.Len() != honest {
		t.Errorf("%d files were seen", seen.Len())
	}
	for i := 0; i < honest; i += 999 {
		later := listed(i)
		later.Changed.Nano++
		if !seen.Holds(name(i), seenState(listed(i))) || seen.Holds(name(i), seenState(later)) || seen.Holds(name(i+1), seenState(listed(i))) {
			t.Fatalf("file %d is not told from others", i)
		}
	}
	listing = 2 * honest
	if _, err = lookAt(t.Context(), n, codeDir, []string{"out"}); err == nil || !strings.Contains(err.Error(), "more than 39") {
		t.Errorf("of more: %v", err)
	}
}

func TestManyFilesFitIntoAList(t *testing.T) {
	dir, honest := t.TempDir(), 250_000
	all := &thingList{spill: func() (*os.File, error) { return os.Create(filepath.Join(dir, "list")) }}
	defer all.close()
	name := func(i int) string { return fmt.Sprintf("out/run-7/%x/part-%06d.json", sumOf(fmt.Sprint(i))[:8], i) }
	for i := range honest {
		file := thing(name(i), int64(i)*1e6, 0o100755)
		file.MTime.Sec = -1.8e9
		if err := all.add(file); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	r := thingReader{list: all}
	for i := range honest {
		got, ok, err := r.next()
		check(t, err)
		if want := int64(i) * 1e6; !ok || got.Name != name(i) || got.Size != want || got.Mode != 0o100755 ||
			got.MTime.Sec != -1.8e9 || r.left() != honest-i-1 {
			t.Fatalf("file %d is read as %+v, %v; %d are left", i, got, ok, r.left())
		}
	}
	if more, ok, err := r.next(); ok || err != nil {
		t.Errorf("behind the last one there is %+v, %v", more, err)
	}
	all.close()
	again := thingReader{list: all}
	for range honest {
		if _, ok, err := again.next(); err != nil {
			return
		} else if !ok {
			break
		}
	}
	t.Error("a list that can't be read has an end as any")
}

func TestWhatIsAskedForTwiceIsListedOnce(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code(), map[string]string{"a/b/f": "1", "a/c": "2"})
	res, err := pullBy(t.Context(), n, n.code(), []string{"a", "a/b", "a/b/f", "none"}, dest, PullRules{})
	check(t, err)
	if res.Files != 2 || res.Unchanged != 0 || len(res.Missing) != 1 {
		t.Errorf("%+v", res)
	}
}

func TestAnAgentThatSendsNothingForEverIsGivenUp(t *testing.T) {
	n := newAgentNode(t)
	n.answer[wire.List] = lists(wire.ListPage{Clock: 100, Things: []wire.Thing{thing("out/a", 1)}})
	n.answer[wire.Fetch] = func(s *wire.Stream) error {
		for {
			if err := (pack{Parts: []wire.Part{{}}}).send(s); err != nil {
				return err
			}
		}
	}
	_, err := pullBy(t.Context(), n, codeDir, []string{"out"}, t.TempDir(), PullRules{})
	if err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("the error is %v", err)
	}
}

func TestAWordOfTheAgentIsTheReason(t *testing.T) {
	n := newAgentNode(t)
	n.answer[wire.List] = func(s *wire.Stream) error { return wire.Faultf(wire.Failed, "the disk is gone") }
	_, err := pullBy(t.Context(), n, codeDir, []string{"out"}, t.TempDir(), PullRules{})
	if fault := new(wire.Fault); !errors.As(err, &fault) || !strings.Contains(err.Error(), "the disk is gone") || !strings.Contains(err.Error(), "node0") {
		t.Errorf("the error is %v", err)
	}
}

// FuzzWhatANodeSends plays a node that answers with any messages.
func FuzzWhatANodeSends(f *testing.F) {
	encode := func(v any) []byte {
		b, err := cbor.Marshal(v)
		check(f, err)
		return b
	}
	f.Add(encode(wire.ListPage{Clock: 1, Things: []wire.Thing{thing("out/a", 1), thing("out/l", 1, 0o120777)}}),
		encode(wire.Pack{Len: 1, Parts: whole("x").Parts}), []byte("x"), encode(wire.Pack{Parts: []wire.Part{{End: &wire.End{Link: ".."}}}}))
	f.Add(encode(wire.ListPage{Things: []wire.Thing{thing("out/../../a", 1)}}), encode(wire.Pack{Len: 1, Parts: whole("x").Parts}), []byte("x"), []byte{0xa0})
	f.Fuzz(func(t *testing.T, list, one, data, two []byte) {
		above := t.TempDir()
		dest := filepath.Join(above, "dest")
		n := newAgentNode(t)
		defer n.close()
		n.answer[wire.List] = func(s *wire.Stream) error { return s.Send(cbor.RawMessage(list)) }
		n.answer[wire.Fetch] = func(s *wire.Stream) error {
			err := s.Send(cbor.RawMessage(one))
			_, _ = s.Raw().Write(data)
			return errors.Join(err, s.Send(cbor.RawMessage(two)))
		}
		n.stay = true
		res, _ := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, PullRules{Limits: PullLimits{10, 1000}})
		entries, err := os.ReadDir(above)
		check(t, err)
		inside, _ := os.ReadDir(dest)
		for _, e := range inside {
			if e.Name() != "out" {
				t.Errorf("%q was written", e.Name())
			}
		}
		if len(entries) > 1 || res.Files > 10 || res.Bytes > 1000 {
			t.Errorf("outside: %v; %v", entries, res)
		}
	})
}
