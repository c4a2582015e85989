//go:build unix

package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
)

// shellNode is a node without ssh: its commands run here, under a shell of our
// choice and with only the tools of our choice.
type shellNode struct {
	name, home string
	shell      []string
	path       string
	execs      atomic.Int64
	received   atomic.Int64 // bytes of stdin
	cut        atomic.Int64 // when not 0: stdin ends after so many bytes
	whole      atomic.Int64 // so many commands are spared that
}

func (n *shellNode) Name() string { return n.name }

func (n *shellNode) Exec(ctx context.Context, c Cmd) (Result, error) {
	n.execs.Add(1)
	cmd := exec.CommandContext(ctx, n.shell[0], append(n.shell[1:], "-c", c.Line)...)
	cmd.Dir = n.home
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + n.path}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stdin != nil {
		in := c.Stdin
		if cut := n.cut.Load(); cut > 0 && n.execs.Load() > n.whole.Load() {
			in = io.LimitReader(in, cut)
		}
		cmd.Stdin = io.TeeReader(in, countTo{&n.received})
	}
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return Result{ExitCode: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: stderr.Bytes()}, err
}

type countTo struct{ n *atomic.Int64 }

func (c countTo) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

func (n *shellNode) SFTP(context.Context) (*sftp.Client, error) {
	here, there := newPipes()
	server, err := sftp.NewServer(there, sftp.WithServerWorkingDirectory(n.home))
	if err != nil {
		return nil, err
	}
	go func() {
		_ = server.Serve()
		_ = there.Close()
	}()
	return sftp.NewClientPipe(here.Reader, here.WriteCloser)
}

type pipeEnd struct {
	io.Reader
	io.WriteCloser
}

func newPipes() (a, b pipeEnd) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return pipeEnd{r1, w2}, pipeEnd{r2, w1}
}

// shellsOfNodes are the systems that a node may be.
func shellsOfNodes(t testing.TB) map[string]func(testing.TB) *shellNode {
	t.Helper()
	node := func(path string, shell ...string) func(testing.TB) *shellNode {
		return func(t testing.TB) *shellNode {
			return &shellNode{name: "node0", home: t.TempDir(), shell: shell, path: path}
		}
	}
	all := map[string]func(testing.TB) *shellNode{"sh": node(os.Getenv("PATH"), "/bin/sh")}
	for _, name := range []string{"dash", "bash"} {
		if p, err := exec.LookPath(name); err == nil {
			all[name] = node(os.Getenv("PATH"), p)
		}
	}
	if box, err := exec.LookPath("busybox"); err == nil {
		all["busybox"] = node(busyboxTools(t, box, true), box, "sh")
		all["busybox without tar"] = node(busyboxTools(t, box, false), box, "sh")
	}
	return all
}

// busyboxTools is a directory with busybox's tools and nothing else.
func busyboxTools(t testing.TB, box string, withTar bool) string {
	t.Helper()
	dir := t.TempDir()
	names, err := exec.Command(box, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name == "tar" && !withTar {
			continue
		}
		if err := os.Symlink(box, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const codeDir = "dlwb/c/code"

func (n *shellNode) code(parts ...string) string {
	return filepath.Join(append([]string{n.home, codeDir}, parts...)...)
}

func syncTest(t testing.TB, dir string, nodes ...syncNode) SyncResult {
	t.Helper()
	res, err := syncNodes(t.Context(), nodes, scanTest(t, dir), codeDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// dirText describes everything in a directory: what a test compares.
func dirText(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%q", rel)
		switch {
		case d.IsDir():
			line += " dir"
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(p)
			line += " -> " + target
		default:
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if len(text) > 99 {
				text = fmt.Appendf(nil, "%x", sha256.Sum256(text))
			}
			line += fmt.Sprintf(" %o %d %q", info.Mode().Perm(), info.ModTime().Unix(), text)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func wantSame(t testing.TB, n *shellNode, dir string) {
	t.Helper()
	if got, want := dirText(t, n.code()), dirText(t, dir); got != want {
		t.Errorf("the node has\n%s\nwant\n%s", got, want)
	}
}

// oddProject has what names and trees can have.
var oddProject = map[string]string{
	"train.py": "print(1)\n", "-rf": "dash", "a b/c d": "space", "new\nline/x\ny": "newline", "ünï/cödé": "unicode",
	"\xff\xfe/\x01": "bytes", "empty/": "", "it's/$(x)`y`\"\\": "shell", "d/e/f/g": "deep", "in": "-> d/e", "d/e/up": "-> ../../train.py",
	"dangling": "-> nothing", "zero": "", "big": strings.Repeat("0123456789abcdef", 20_000), "*": "star", "~": "tilde",
	strings.Repeat("long-directory-name/", 12) + strings.Repeat("n", 200): "long", "a\\nb": "backslash",
}

func TestSyncOnEveryShell(t *testing.T) {
	for name, make := range shellsOfNodes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, n := t.TempDir(), make(t)
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
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// syncNothing checks that a sync without changes is one small round trip.
func syncNothing(t *testing.T, dir string, n *shellNode) {
	t.Helper()
	n.execs.Store(0)
	n.received.Store(0)
	res := syncTest(t, dir, n)
	if n.execs.Load() != 1 || n.received.Load() != 0 || res.Changed != 0 || res.Nodes != 1 {
		t.Errorf("%d commands, %d bytes and %q where nothing changed", n.execs.Load(), n.received.Load(), res)
	}
}

// syncAgain checks what one change, one removal, one mode and one touch cost.
func syncAgain(t *testing.T, dir string, n *shellNode) {
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
func syncSwaps(t *testing.T, dir string, n *shellNode) {
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

func newShellNode(t testing.TB) *shellNode { return shellsOfNodes(t)["sh"](t) }

func TestWhatWasEditedOnTheNodeIsNotLost(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
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
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, oddProject)
	syncTest(t, dir, n)
	check(t, os.RemoveAll(n.code()))
	syncTest(t, dir, n)
	wantSame(t, n, dir)
}

func TestAStreamThatBreaksOffChangesNothingAndTheNextOneDoesAll(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, map[string]string{"a": "1", "b": "1"})
	syncTest(t, dir, n)
	before := dirText(t, n.code())
	writeFiles(t, dir, map[string]string{"a": "2", "new/c": strings.Repeat("x", 3000), "d": "-> a"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	for cut := int64(1); cut < 12_000; cut += 1021 {
		n.cut.Store(cut)
		_, err := syncNodes(t.Context(), []syncNode{n}, scanTest(t, dir), codeDir, nil)
		if err == nil || !strings.Contains(err.Error(), "node0") {
			t.Errorf("cut after %d bytes, the error is %v", cut, err)
		}
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

// TestASyncThatIsStoppedHalfWayKnowsItsFilesAgain stops it while it renames.
func TestASyncThatIsStoppedHalfWayKnowsItsFilesAgain(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, map[string]string{"a/x": "1", "b/x": "1", "c/x": "1"})
	syncTest(t, dir, n)
	writeFiles(t, dir, map[string]string{"a/x": "22", "b/x": "22", "c/x": "22", "a/new": "22"})
	stop := t.TempDir()
	mv, err := exec.LookPath("mv")
	check(t, err)
	check(t, os.WriteFile(filepath.Join(stop, "mv"), []byte("#!/bin/sh\ncase $* in *./b/) echo 'mv: power failed' >&2; exit 1;; esac\nexec "+mv+" \"$@\"\n"), 0o755))
	path := n.path
	n.path = stop + ":" + path
	_, err = syncNodes(t.Context(), []syncNode{n}, scanTest(t, dir), codeDir, nil)
	if err == nil || !strings.Contains(err.Error(), "power failed") {
		t.Fatalf("error is %v", err)
	}
	if got, _ := os.ReadFile(n.code("a/x")); string(got) != "22" {
		t.Fatalf("a/x is %q; the test did not stop half-way", got)
	}
	if found := halfDone(n); len(found) != 0 {
		t.Errorf("%q is left of the stopped sync", found)
	}
	n.path = path
	res := syncTest(t, dir, n)
	if len(res.MadeWay)+len(res.Edited) != 0 {
		t.Errorf("files of the stopped sync were taken for somebody's edits: %q %q", res.MadeWay, res.Edited)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

func TestManyFilesGoInSeveralStreamsThatAreWholeEach(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	for name, size := range map[string]int{"a": 400, "b": 400, "c": 2000, "d/e": 1, "d/f": 999} {
		writeFiles(t, dir, map[string]string{name: strings.Repeat("x", size)})
	}
	tree := scanTest(t, dir)
	tree.part = 1000
	res, err := syncNodes(t.Context(), []syncNode{n}, tree, codeDir, nil)
	check(t, err)
	if n.execs.Load() != 4 || res.Files != 5 {
		t.Errorf("%d commands for %q, want one to look and three streams", n.execs.Load(), res)
	}
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
	writeFiles(t, dir, map[string]string{"a": "2", "c": strings.Repeat("y", 1000), "d/f": "2"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	tree = scanTest(t, dir)
	tree.part = 1000
	n.cut.Store(5000)
	n.whole.Store(n.execs.Load() + 2) // to look, and the first stream
	res, err = syncNodes(t.Context(), []syncNode{n}, tree, codeDir, nil)
	if err == nil || res.Changed != 1 {
		t.Errorf("the second stream was to be cut: %v", err)
	}
	n.cut.Store(0)
	res = syncTest(t, dir, n)
	wantSame(t, n, dir)
	syncNothing(t, dir, n)
}

func TestAFileThatChangesWhileItIsSentIsSentAsItIsThen(t *testing.T) {
	dir, n := t.TempDir(), newShellNode(t)
	writeFiles(t, dir, map[string]string{"a": "first", "b": "first"})
	tree := scanTest(t, dir)
	check(t, tree.hash(t.Context()))
	writeFiles(t, dir, map[string]string{"a": "then longer"})
	check(t, os.Remove(filepath.Join(dir, "b")))
	res, err := syncNodes(t.Context(), []syncNode{n}, tree, codeDir, nil)
	check(t, err)
	wantSame(t, n, dir)
	if res.Files != 1 || res.Bytes != int64(len("then longer")) {
		t.Errorf("result %q", res)
	}
}

func TestSyncNamesTheNodeThatFailsAndDoesTheOthers(t *testing.T) {
	dir, good, bad := t.TempDir(), newShellNode(t), newShellNode(t)
	bad.name = "node1"
	writeFiles(t, dir, map[string]string{"a": "1"})
	writeFiles(t, bad.home, map[string]string{"dlwb": "a file where a directory must be"})
	res, err := syncNodes(t.Context(), []syncNode{good, bad}, scanTest(t, dir), codeDir, nil)
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

func TestAnswersThatMakeNoSenseAreRefused(t *testing.T) {
	for _, text := range []string{"", "Welcome!\nsame\n", "differs\n", "differs tar\n5\nabc", "differs\n-1\n", "differs\nx\n"} {
		if _, err := parseView(text); err == nil {
			t.Errorf("%q is taken for an answer", text)
		}
	}
}

func FuzzAnswersOfANode(f *testing.F) {
	m := manifest{"a\nb": {kind: kindFile, mode: 0o644, size: 1, value: "x"}, "d": {kind: kindDir}}
	f.Add("differs dir tar\n" + fmt.Sprint(len(m.String())) + "\n" + m.String() + "0\n0\n1 2 3 .//a\nb\n")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseView(text)
		if err != nil {
			return
		}
		for p := range v.have {
			if !localPath(p) {
				t.Errorf("a manifest with the path %q is accepted", p)
			}
		}
		planSync(&Tree{}, manifest{}, v)
	})
}

func TestManifestsAreReadAsTheyWereWritten(t *testing.T) {
	m := manifest{
		"a\nb \"": {kindFile, 0o755, 12, time.Unix(0, 5), "00ff"}, "\xff": {kind: kindLink, mode: 0o777, value: "a\nb"}, "d e": {kind: kindDir},
	}
	got := parseManifest(m.String())
	if fmt.Sprint(got) != fmt.Sprint(m) {
		t.Errorf("got %v, want %v", got, m)
	}
	if broken := parseManifest(strings.Replace(m.String(), "00ff", "00fe", 1)); len(broken) != 0 {
		t.Errorf("a manifest with a wrong digest is believed: %v", broken)
	}
}
