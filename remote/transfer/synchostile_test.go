//go:build linux

package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/agentbuilt"
	"github.com/dlwb/dlwb/remote/wire"
)

// A node that lies costs an error and changes nothing here.
func TestANodeThatLiesAboutWhatItHasIsAnError(t *testing.T) {
	sum := wire.Bytes(bytes.Repeat([]byte{7}, sha256.Size))
	entry := func(path string) wire.SyncEntry {
		return wire.SyncEntry{Path: wire.Bytes(path), Kind: wire.SyncFile, Mode: 0o644, Value: sum}
	}
	negative := entry("a")
	negative.Size = -1
	short := entry("a")
	short.Value = "x"
	for name, views := range map[string][]any{
		"outside":        {wire.SyncView{Entries: []wire.SyncEntry{entry("../x")}}},
		"absolute":       {wire.SyncView{Entries: []wire.SyncEntry{entry("/etc/x")}}},
		"negative":       {wire.SyncView{Entries: []wire.SyncEntry{negative}}},
		"no checksum":    {wire.SyncView{Entries: []wire.SyncEntry{short}}},
		"odd outside":    {wire.SyncView{Odd: []wire.SyncOdd{{Now: entry("a/../../b")}}}},
		"other message":  {"hello"},
		"ends early":     {wire.SyncView{More: true}},
		"ends at once":   {},
		"wrong answer":   {wire.SyncView{}, wire.SyncAnswer{Chunks: &wire.SyncChunks{}}},
		"lacks too much": {wire.SyncView{}, wire.SyncAnswer{Done: &wire.SyncDone{Lacks: []int{-1}}}},
		"lacks others":   {wire.SyncView{}, wire.SyncAnswer{Done: &wire.SyncDone{Lacks: []int{1 << 40}}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, n := t.TempDir(), newIntakeNode(t)
			writeFiles(t, dir, map[string]string{"a": "1"})
			n.service = func(ctx context.Context, s *wire.Stream) error {
				var look wire.SyncLook
				if err := s.Recv(&look); err != nil {
					return err
				}
				for _, v := range views {
					if err := s.Send(v); err != nil {
						return err
					}
				}
				var step wire.SyncStep
				for len(views) > 1 && s.Recv(&step) == nil { // as one that listens
				}
				return nil
			}
			if _, err := syncNodes(testContext(t), []syncPeer{n}, scanTest(t, dir), codeDir, nil); err == nil {
				t.Error("there is no error")
			}
		})
	}
}

func TestANodeThatNeverStopsTellingIsGivenUp(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"a": "1"})
	told := 0
	n.service = func(ctx context.Context, s *wire.Stream) error {
		for {
			list := make([]wire.SyncOdd, 20_000)
			for i := range list {
				list[i].Now.Path = wire.Bytes(fmt.Sprintf("%d/%d", told, i))
			}
			told++
			if err := s.Send(wire.SyncView{Odd: list, More: true}); err != nil {
				return err
			}
		}
	}
	_, err := syncNodes(testContext(t), []syncPeer{n}, scanTest(t, dir), codeDir, nil)
	if err == nil || !strings.Contains(err.Error(), "no project can have") {
		t.Errorf("%v", err)
	}
	n.serving.Wait()
	if most := toldMost/20_000 + 100; told > most {
		t.Errorf("it was listened to %d times", told)
	}
}

// An agent that is killed in the middle leaves a node from which the next sync
// goes on.
func TestAnAgentThatIsKilledLeavesNothingThatTheNextOneTrips(t *testing.T) {
	path, err := agentbuilt.Path(t.TempDir())
	check(t, err)
	dir, n := t.TempDir(), newIntakeNode(t)
	writeFiles(t, dir, map[string]string{"a/old": "1", "b": "1"})
	syncTest(t, dir, n)
	writeFiles(t, dir, map[string]string{"a/large": noise(1, 8_000_000), "a/old": "22", "c": "1"})
	for _, after := range []int64{1, 100_000, 1_000_000, 4_000_000, 7_900_000} {
		cmd := exec.Command(path, "serve", "x", "y")
		cmd.Env = append(os.Environ(), "HOME="+n.home)
		p := &processNode{intakeNode: n, cmd: cmd, after: after}
		if _, err := syncNodes(testContext(t), []syncPeer{p}, scanTest(t, dir), codeDir, nil); err == nil {
			t.Fatalf("the agent was killed after %d bytes, and there is no error", after)
		}
		if text, _ := os.ReadFile(n.code("a/old")); string(text) != "1" {
			t.Fatalf("a/old is %q before all has come", text)
		}
	}
	res := syncTest(t, dir, n)
	wantSame(t, n, dir)
	if len(res.MadeWay)+len(res.Edited) > 0 {
		t.Errorf("files of a killed sync were taken for somebody's edits: %q %q", res.MadeWay, res.Edited)
	}
	syncNothing(t, dir, n)
}

// processNode is a node whose agent is a process, which is killed when it was
// sent so much.
type processNode struct {
	*intakeNode
	cmd   *exec.Cmd
	after int64
	sent  int64
}

func (p *processNode) talk(ctx context.Context, service string, request any) (talking, func(error) error, error) {
	in, err := p.cmd.StdinPipe()
	check(p.t, err)
	out, err := p.cmd.StdoutPipe()
	check(p.t, err)
	check(p.t, p.cmd.Start())
	hello := wire.Hello("x", "y")
	got := make([]byte, len(hello))
	for i := range got {
		_, err := out.Read(got[i : i+1])
		check(p.t, err)
	}
	session, err := wire.Dial(pipeEnds{out, in})
	check(p.t, err)
	p.t.Cleanup(func() { _ = session.Close() })
	st, err := session.Call(ctx, service, request)
	check(p.t, err)
	return &killingTalk{st, p}, func(err error) error { return err }, nil
}

type pipeEnds struct {
	out interface {
		Read(p []byte) (int, error)
		Close() error
	}
	in interface {
		Write(p []byte) (int, error)
		Close() error
	}
}

func (e pipeEnds) Read(p []byte) (int, error)  { return e.out.Read(p) }
func (e pipeEnds) Write(p []byte) (int, error) { return e.in.Write(p) }
func (e pipeEnds) Close() error                { _ = e.out.Close(); return e.in.Close() }

type killingTalk struct {
	talking
	p *processNode
}

func (k *killingTalk) SendEncoded(data []byte) error {
	if k.p.sent += int64(len(data)); k.p.sent > k.p.after && k.p.cmd.ProcessState == nil {
		_ = k.p.cmd.Process.Kill()
		_ = k.p.cmd.Wait()
	}
	return k.talking.SendEncoded(data)
}

// What an older dlwb has put on a node is known to this one.
func TestANodeThatAnOlderDlwbSyncedGoesOn(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	files := map[string]string{"same": "1", "edited": "1", "changed": "1", "gone": "1", "d/e\n\xff": "1"}
	writeFiles(t, dir, files)
	writeFiles(t, n.code(), files)
	tree := scanTest(t, dir)
	check(t, tree.hash(t.Context()))
	var text strings.Builder
	text.WriteString("dlwb-manifest-1 0000\n")
	for _, e := range tree.entries {
		value, nanos := e.sum, e.mtime.UnixNano()
		if e.kind == kindDir {
			value, nanos = "", 0
		}
		mode := e.mode
		if e.kind == kindDir {
			mode = 0
		}
		fmt.Fprintf(&text, "%c %o %d %d %q %q\n", e.kind, mode, e.size, nanos, value, e.path)
	}
	state := filepath.Join(n.home, ".dlwb/sync", shortHash("./"+codeDir))
	writeFiles(t, state, map[string]string{"manifest": text.String(), "seen": "x", "names": "x", "chunks.00": "x"})
	writeFiles(t, n.code(), map[string]string{"edited": "2"})
	writeFiles(t, dir, map[string]string{"changed": "3"})
	check(t, os.Remove(filepath.Join(dir, "gone")))
	res := syncTest(t, dir, n)
	if res.Files != 1 || res.Removed != 1 || len(res.Edited) != 1 || len(res.MadeWay) != 0 {
		t.Errorf("%v, edited %q, moved aside %q", res, res.Edited, res.MadeWay)
	}
	if left, _ := os.ReadDir(state); len(left) > 2 {
		t.Errorf("%v is left of the older records", left)
	}
	writeFiles(t, dir, map[string]string{"edited": "2"})
	there, err := os.Stat(n.code("edited")) // equal content keeps its time there, and a second may lie between
	check(t, err)
	check(t, os.Chtimes(filepath.Join(dir, "edited"), there.ModTime(), there.ModTime()))
	syncTest(t, dir, n)
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

// A link that leads out of the code directory is never followed.
func TestNothingIsWrittenThroughALinkThatLeadsOut(t *testing.T) {
	dir, n, outside := t.TempDir(), newIntakeNode(t), t.TempDir()
	writeFiles(t, dir, map[string]string{"data/x": "1", "a": "1"})
	writeFiles(t, outside, map[string]string{"x": "of somebody else"})
	check(t, os.MkdirAll(n.code(), 0o755))
	check(t, os.Symlink(outside, n.code("data")))
	res := syncTest(t, dir, n)
	wantSame(t, n, dir)
	if text, _ := os.ReadFile(filepath.Join(outside, "x")); string(text) != "of somebody else" || len(res.MadeWay) != 1 {
		t.Errorf("x is %q, and %q had to make way", text, res.MadeWay)
	}
	// The directory becomes such a link between two syncs.
	check(t, os.RemoveAll(n.code("data")))
	check(t, os.Symlink(outside, n.code("data")))
	writeFiles(t, dir, map[string]string{"data/x": "2", "data/y": "2"})
	syncTest(t, dir, n)
	wantSame(t, n, dir)
	if text, _ := os.ReadFile(filepath.Join(outside, "x")); string(text) != "of somebody else" || exists(filepath.Join(outside, "y")) {
		t.Errorf("x is %q", text)
	}
}

// Two of dlwb may sync the same directory at the same time.
func TestTwoSyncsOfOneDirectoryAtATimeBothSucceed(t *testing.T) {
	dir, n := t.TempDir(), newIntakeNode(t)
	for i := range 300 {
		writeFiles(t, dir, map[string]string{fmt.Sprintf("d%d/f%d", i%9, i): fmt.Sprint("text ", i)})
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		tree := scanTest(t, dir)
		go func() {
			_, err := syncNodes(testContext(t), []syncPeer{n}, tree, codeDir, nil)
			errs <- err
		}()
	}
	for range cap(errs) {
		check(t, <-errs)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
	if kept, _ := filepath.Glob(filepath.Join(n.home, ".dlwb/kept/*")); len(kept) > 0 {
		t.Errorf("%q had to make way for itself", kept)
	}
}

func FuzzAnswersOfANode(f *testing.F) {
	e := wire.SyncEntry{Path: "a\nb", Kind: wire.SyncFile, Mode: 0o644, Size: 1, Value: wire.Bytes(make([]byte, sha256.Size))}
	good, err := wire.Frame(wire.SyncView{Entries: []wire.SyncEntry{e}, Odd: []wire.SyncOdd{{Now: e, Ours: true}}, More: true})
	check(f, err)
	f.Add(append(good, good...))
	f.Fuzz(func(t *testing.T, text []byte) {
		v := &nodeView{have: manifest{}, odd: map[string]wire.SyncOdd{}, parts: map[wire.Bytes]int64{}}
		for from := bufio.NewReader(bytes.NewReader(text)); ; {
			var part wire.SyncView
			if wire.ReadFrame(from, &part) != nil || !v.take(part, 1000) {
				break
			}
		}
		tree := &Tree{entries: []*treeEntry{{path: "a", kind: kindDir}, {path: "a/b", kind: kindLink, link: "c"}}}
		p := planSync(tree, tree.manifest(), v)
		for _, list := range [][]string{p.remove, p.rmdirs, p.aside, p.edited} {
			for _, name := range list {
				if !localPath(name) {
					t.Errorf("the plan is about %q", name)
				}
			}
		}
	})
}
