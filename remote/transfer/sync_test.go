//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/agent/intake"
	"github.com/dlwb/dlwb/remote/wire"
)

// intakeNode is a node whose agent runs in this process.
type intakeNode struct {
	t          testing.TB
	name, home string
	calls      atomic.Int64
	received   atomic.Int64   // bytes that came from here
	cut        atomic.Int64   // when not 0: the connection ends after so many bytes
	line       int64          // when not 0: how many bytes a second it takes
	serving    sync.WaitGroup // calls that have not ended
	service    func(ctx context.Context, s *wire.Stream) error
}

func newIntakeNode(t testing.TB) *intakeNode {
	n := &intakeNode{t: t, name: "node0", home: t.TempDir()}
	n.service = func(ctx context.Context, s *wire.Stream) error { return intake.Serve(ctx, n.home, s) }
	return n
}

func (n *intakeNode) Name() string { return n.name }

func (n *intakeNode) code(parts ...string) string {
	return filepath.Join(append([]string{n.home, codeDir}, parts...)...)
}

// countedConn counts what is written, and ends when it is too much.
type countedConn struct {
	net.Conn
	n *intakeNode
}

func (c countedConn) Write(p []byte) (int, error) {
	if most := c.n.cut.Load(); most > 0 && c.n.received.Load()+int64(len(p)) > most {
		_ = c.Conn.Close()
		return 0, io.ErrClosedPipe
	}
	c.n.received.Add(int64(len(p)))
	if c.n.line > 0 {
		time.Sleep(time.Duration(int64(len(p)) * int64(time.Second) / c.n.line))
	}
	return c.Conn.Write(p)
}

func (n *intakeNode) talk(ctx context.Context, service string, request any) (talking, func(error) error, error) {
	n.calls.Add(1)
	here, there := net.Pipe()
	agent, err := wire.Answer(there)
	if err != nil {
		return nil, nil, err
	}
	n.serving.Go(func() {
		s, err := agent.Accept()
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var name string
		_ = s.Recv(&name)
		if s.End(n.service(ctx, s)) != nil {
			s.Reset()
		}
		s.Close()
	})
	session, err := wire.Dial(countedConn{here, n})
	if err != nil {
		return nil, nil, err
	}
	st, err := session.Call(ctx, service, request)
	n.t.Cleanup(func() { _, _ = session.Close(), agent.Close() })
	lost := func(err error) error {
		if err == nil || errors.As(err, new(*wire.Fault)) {
			return err
		}
		return &remote.LostError{Name: n.name, What: "sync", Err: err}
	}
	return st, lost, err
}

func syncTest(t testing.TB, dir string, nodes ...syncPeer) SyncResult {
	t.Helper()
	res, err := syncNodes(t.Context(), nodes, scanTest(t, dir), codeDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func wantSame(t testing.TB, n *intakeNode, dir string) {
	t.Helper()
	n.serving.Wait()
	if got, want := dirText(t, n.code()), dirText(t, dir); got != want {
		t.Errorf("the node has\n%s\nwant\n%s", got, want)
	}
}

func TestASyncBringsWhatAProjectCanHave(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, oddProject)
	check(t, os.Chmod(filepath.Join(dir, "train.py"), 0o755))
	res := syncTest(t, dir, n)
	wantSame(t, n, dir)
	if res.Files != 17 || res.Changed != 1 {
		t.Errorf("the first sync says %v, want 17 files", res)
	}
	syncNothing(t, dir, n)
	syncAgain(t, dir, n)
	syncSwaps(t, dir, n)
}

// syncNothing checks that a sync without changes is one small round trip.
func syncNothing(t *testing.T, dir string, n *intakeNode) {
	t.Helper()
	n.calls.Store(0)
	n.received.Store(0)
	res := syncTest(t, dir, n)
	if n.calls.Load() != 1 || n.received.Load() > 400 || res.Changed != 0 || res.Nodes != 1 {
		t.Errorf("%d commands, %d bytes and %q where nothing changed", n.calls.Load(), n.received.Load(), res)
	}
}

// syncAgain checks what one change, one removal, one mode and one touch cost.
func syncAgain(t *testing.T, dir string, n *intakeNode) {
	t.Helper()
	writeFiles(t, dir, map[string]string{"train.py": "print(2)\n"})
	check(t, os.Chmod(filepath.Join(dir, "zero"), 0o700))
	check(t, os.Remove(filepath.Join(dir, "-rf")))
	check(t, os.RemoveAll(filepath.Join(dir, "a b")))
	check(t, os.Remove(filepath.Join(dir, "in")))
	writeFiles(t, dir, map[string]string{"in": "-> d"})
	writeFiles(t, n.code(), map[string]string{"outputs/model.pt": "weights"})
	res := syncTest(t, dir, n)
	if res.Files != 3 || res.Removed != 2 || res.Bytes != 9 || len(res.Edited)+len(res.MadeWay) != 0 {
		t.Errorf("three changes and two removals say %q, %q, %q", res, res.Edited, res.MadeWay)
	}
	if text, err := os.ReadFile(n.code("outputs/model.pt")); string(text) != "weights" {
		t.Errorf("what dlwb did not put there is %q, %v", text, err)
	}
	check(t, os.RemoveAll(n.code("outputs")))
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

// syncSwaps checks that directories, files and links may become one another.
func syncSwaps(t *testing.T, dir string, n *intakeNode) {
	t.Helper()
	for _, name := range []string{"d", "train.py", "in", "zero", "ünï"} {
		check(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	writeFiles(t, dir, map[string]string{"d": "now a file", "train.py/x": "now a directory", "in/x": "a link became a directory", "zero": "-> d", "ünï": "-> empty"})
	res := syncTest(t, dir, n)
	if len(res.Edited)+len(res.MadeWay) != 0 {
		t.Errorf("swaps moved something aside: %q %q", res.Edited, res.MadeWay)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

func TestWhatWasEditedOnTheNodeIsNotLost(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, n.code(), map[string]string{"mine": "of the user", "x/y": "of the user"})
	writeFiles(t, dir, map[string]string{"mine": "of the laptop", "x": "a file", "a": "1", "b": "1", "c": "1", "d": "1"})
	res := syncTest(t, dir, n)
	if want := []string{"node0: mine", "node0: x"}; !slices.Equal(res.MadeWay, want) {
		t.Errorf("moved aside: %q, want %q", res.MadeWay, want)
	}
	wantSame(t, n, dir)
	writeFiles(t, n.code(), map[string]string{"a": "edited", "b": "edited", "c": "edited"})
	check(t, os.Remove(n.code("d")))
	writeFiles(t, dir, map[string]string{"b": "2"})
	check(t, os.Remove(filepath.Join(dir, "c")))
	res = syncTest(t, dir, n)
	if want := []string{"node0: a"}; !slices.Equal(res.Edited, want) {
		t.Errorf("edited: %q, want %q", res.Edited, want)
	}
	slices.Sort(res.MadeWay)
	if want := []string{"node0: b", "node0: c"}; !slices.Equal(res.MadeWay, want) || res.Files != 2 {
		t.Errorf("%q moved aside %q, want %q and 2 files: b, and d that was missing", res, res.MadeWay, want)
	}
	if res = syncTest(t, dir, n); res.Changed != 0 || len(res.Edited) != 1 {
		t.Errorf("after that: %q, edited %q; want nothing and a", res, res.Edited)
	}
	writeFiles(t, dir, map[string]string{"a": "2"})
	if res = syncTest(t, dir, n); len(res.MadeWay) != 1 {
		t.Errorf("the edited file was replaced without being kept: %q", res.MadeWay)
	}
	wantSame(t, n, dir)
	kept := dirText(t, filepath.Join(n.home, ".dlwb/kept"))
	if strings.Count(kept, `"edited"`) != 3 || strings.Count(kept, `"of the user"`) != 2 {
		t.Errorf("kept is\n%s", kept)
	}
	syncNothing(t, dir, n)
}

func TestACodeDirectoryThatWasRemovedIsFilledAgain(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, oddProject)
	syncTest(t, dir, n)
	check(t, os.RemoveAll(n.code()))
	syncTest(t, dir, n)
	wantSame(t, n, dir)
}

func TestAStreamThatBreaksOffChangesNothingAndTheNextOneDoesAll(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"a": "1", "b": "1"})
	syncTest(t, dir, n)
	before := dirText(t, n.code())
	writeFiles(t, dir, map[string]string{"a": "2", "new/c": noise(4, 13_000), "d": "-> a"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	for cut := int64(1); cut < 12_000; cut += 1021 {
		n.cut.Store(cut)
		_, err := syncNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), codeDir, nil)
		if err == nil || !strings.Contains(err.Error(), "node0") {
			t.Errorf("cut after %d bytes, the error is %v", cut, err)
		}
		n.serving.Wait() // it cleans up by itself
		if got := dirText(t, n.code()); got != before {
			t.Fatalf("cut after %d bytes, the node has\n%s\nwant\n%s", cut, got, before)
		}
	}
	n.cut.Store(0)
	res := syncTest(t, dir, n)
	wantSame(t, n, dir)
	if res.Files != 3 || res.Removed != 1 || len(res.MadeWay) != 0 {
		t.Errorf("the next sync says %q, moved aside %q", res, res.MadeWay)
	}
}

func TestManyFilesGoInSeveralStreamsThatAreWholeEach(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	for name, size := range map[string]int{"a": 400, "b": 400, "c": 2000, "d/e": 1, "d/f": 999} {
		writeFiles(t, dir, map[string]string{name: strings.Repeat("x", size)})
	}
	tree := scanTest(t, dir)
	tree.part = 1000
	var said tells
	res, err := syncNodes(t.Context(), []syncPeer{n}, tree, codeDir, said.tell)
	check(t, err)
	if n.calls.Load() != 1 || res.Files != 5 || !said.has("(part 3 of 3)") {
		t.Errorf("%d calls for %q, want one with three batches", n.calls.Load(), res)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
	writeFiles(t, dir, map[string]string{"a": "2", "c": noise(3, 1000), "d/f": "2"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	tree = scanTest(t, dir)
	tree.part = 1000
	n.cut.Store(n.received.Load() + 1500) // within the second batch
	res, err = syncNodes(t.Context(), []syncPeer{n}, tree, codeDir, nil)
	if err == nil || res.Changed != 1 {
		t.Errorf("the second stream was to be cut: %v", err)
	}
	n.cut.Store(0)
	res = syncTest(t, dir, n)
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

// Source code that does not repeat itself within a few KB is halved on a slow line,
// where the fastest compression finds nothing to save.
func TestOnASlowLineLessIsSent(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	n.line = 10e6
	seed := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 4000)
	for i := range words {
		words[i] = strconv.FormatUint(seed.Uint64(), 36)[:3+seed.IntN(6)]
	}
	for i := range 400 {
		var text strings.Builder
		for text.Len() < 20_000 {
			text.WriteString(words[min(seed.IntN(len(words)), seed.IntN(len(words)))] + " ")
		}
		writeFiles(t, dir, map[string]string{fmt.Sprintf("module_%d.py", i): text.String()})
	}
	res := syncTest(t, dir, n)
	wantSame(t, n, dir)
	if res.Bytes < 8_000_000 || res.Wire > res.Bytes*7/10 {
		t.Errorf("%d bytes were sent for %d", res.Wire, res.Bytes)
	}
}

func TestThePaceOfALineSaysWhatItIsWorth(t *testing.T) {
	frames := func(p *pace, better bool, n int, rate float64) bool {
		for range n {
			better = p.better(better, 256<<10, time.Duration(float64(256<<10)/rate*float64(time.Second)))
		}
		return better
	}
	for _, c := range []struct {
		name        string
		was, become bool
		rates       []float64
	}{
		{"a slow line", false, true, []float64{12e6}},
		{"a fast one", false, false, []float64{100e6}},
		{"buffers take the first of it", false, true, []float64{1e9, 12e6, 12e6}},
		{"a far node on a fast line", true, false, []float64{500e6, 500e6}},
		{"between the two it stays", true, true, []float64{40e6, 40e6, 40e6}},
		{"between the two it stays, the other way", false, false, []float64{40e6, 40e6, 40e6}},
	} {
		p, better := &pace{}, c.was
		for _, rate := range c.rates {
			better = frames(p, better, 4, rate)
		}
		if better != c.become {
			t.Errorf("%s: %v", c.name, better)
		}
	}
}

func TestAFileThatChangesWhileItIsSentIsSentAsItIsThen(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"a": "first", "b": "first"})
	tree := scanTest(t, dir)
	check(t, tree.hash(t.Context()))
	writeFiles(t, dir, map[string]string{"a": "then longer"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	res, err := syncNodes(t.Context(), []syncPeer{n}, tree, codeDir, nil)
	check(t, err)
	wantSame(t, n, dir)
	if res.Files != 1 || res.Bytes != int64(len("then longer")) {
		t.Errorf("result %q", res)
	}
}

func TestSyncNamesTheNodeThatFailsAndDoesTheOthers(t *testing.T) {
	dir, good, bad := t.TempDir(), newIntakeNode(t), newIntakeNode(t)
	bad.name = "node1"
	writeFiles(t, dir, map[string]string{"a": "1"})
	writeFiles(t, bad.home, map[string]string{"dlwb": "a file where a directory must be"})
	res, err := syncNodes(t.Context(), []syncPeer{good, bad}, scanTest(t, dir), codeDir, nil)
	if err == nil || !strings.Contains(err.Error(), "sync to node1:./dlwb/c/code: ") || !strings.Contains(err.Error(), "; a file there stands") {
		t.Errorf("error is %v", err)
	}
	if strings.Contains(fmt.Sprint(err), "node0") || res.Changed != 1 {
		t.Errorf("the good node: %v, %v", res, err)
	}
	wantSame(t, good, dir)
}

func TestCodeDirectoriesThatWouldBeDangerousAreRefused(t *testing.T) {
	for _, dir := range []string{"", "~", "~/", ".", "/", "..", "../x", "a/../..", "x\ny"} {
		if _, err := nodeDir(dir); err == nil {
			t.Errorf("%q is accepted", dir)
		}
	}
	for dir, want := range map[string]string{"~/a": "./a", "a/b/": "./a/b", "/x//y": "/x/y", "-x": "./-x"} {
		if got, err := nodeDir(dir); got != want || err != nil {
			t.Errorf("%q becomes %q (%v), want %q", dir, got, err, want)
		}
	}
}

func TestWhereTheLineIsSlowAllIsTriedForWhatItSaves(t *testing.T) {
	half := strings.Repeat("a text that says the same again\n", 8<<10)
	text := []byte(half + entropy(64<<10) + half)
	p := &parcel{}
	if _, size := p.shrink(text); size != 0 {
		t.Error("on a fast line the middle does not tell")
	}
	p.better.Store(true)
	if packed, size := p.shrink(text); size != len(text) || len(packed) > len(text)/2 {
		t.Errorf("on a slow line %d bytes of %d are sent", len(packed), len(text))
	}
}
