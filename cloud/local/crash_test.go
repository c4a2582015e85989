//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// partial are the states in which an Up, a Down or a node can have been
// interrupted. Each makes one in the directory of cluster c.
var partial = []struct {
	name string
	make func(t *testing.T, p *Provider, dir string)
}{
	{"only the directory", func(t *testing.T, _ *Provider, dir string) { mkdir(t, dir) }},
	{"half an intent", func(t *testing.T, _ *Provider, dir string) {
		mkdir(t, dir)
		write(t, filepath.Join(dir, intentFile+tempSuffix), `{"name":`)
	}},
	{"only the intent", func(t *testing.T, _ *Provider, dir string) { intend(t, dir) }},
	{"half a key", func(t *testing.T, _ *Provider, dir string) {
		intend(t, dir)
		write(t, filepath.Join(dir, keyFile+tempSuffix), "-----BEGIN")
	}},
	{"a key and a node without anything", func(t *testing.T, _ *Provider, dir string) {
		intend(t, dir)
		if _, err := makeKey(filepath.Join(dir, keyFile), "c"); err != nil {
			t.Fatal(err)
		}
		mkdir(t, nodeDir(dir, 0))
	}},
	{"a prepared node that was not started", func(t *testing.T, p *Provider, dir string) {
		if err := p.prepare(nodeDir(dir, 1), intend(t, dir), 1); err != nil {
			t.Fatal(err)
		}
	}},
	{"one node that runs and has not said so", func(t *testing.T, p *Provider, dir string) {
		up(t, p, 2, 0)
		if err := os.Remove(filepath.Join(nodeDir(dir, 1), servingFile)); err != nil {
			t.Fatal(err)
		}
		kill9(t, pidOf(t, p, 0))
		// The node holds its lock and nobody knows where it listens: that
		// can't be mended, it has to be ended for Up to succeed.
		endSilentNode(t, dir, 1)
	}},
	{"all nodes killed", func(t *testing.T, p *Provider, _ string) {
		up(t, p, 2, 0)
		kill9(t, pidOf(t, p, 0))
		kill9(t, pidOf(t, p, 1))
	}},
	{"half a serving note", func(t *testing.T, p *Provider, dir string) {
		up(t, p, 2, 0)
		kill9(t, pidOf(t, p, 0))
		write(t, filepath.Join(nodeDir(dir, 0), servingFile), "{")
	}},
	{"a down that had only begun", func(t *testing.T, p *Provider, dir string) {
		up(t, p, 2, 0)
		in, err := readIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		in.Ending = true
		if err := in.write(dir); err != nil {
			t.Fatal(err)
		}
	}},
	{"a down that had removed the nodes", func(t *testing.T, _ *Provider, dir string) {
		in := intend(t, dir)
		in.Ending = true
		if err := in.write(dir); err != nil {
			t.Fatal(err)
		}
	}},
}

func TestWhateverWasInterruptedUpFinishesAndDownRemoves(t *testing.T) {
	t.Parallel()
	for _, state := range partial {
		t.Run(state.name+", then up", func(t *testing.T) {
			p := provider(t)
			state.make(t, p, filepath.Join(p.dir, "c"))
			if _, err := p.List(); err != nil {
				t.Errorf("list: %v", err)
			}
			c := up(t, p, 2, 0)
			want(t, p, c, cloud.Alive, cloud.Alive)
			down(t, p)
		})
		t.Run(state.name+", then down", func(t *testing.T) {
			p := provider(t)
			dir := filepath.Join(p.dir, "c")
			state.make(t, p, dir)
			in, _ := readIntent(dir)
			down(t, p)
			if in.ID == "" {
				return
			}
			if left, err := membersOf(in.ID)(); err != nil || len(left) > 0 {
				t.Errorf("processes are left: %+v %v", left, err)
			}
		})
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func intend(t *testing.T, dir string) intent {
	t.Helper()
	mkdir(t, dir)
	in, err := newIntent(cloud.Spec{Name: "c", Count: 2})
	if err == nil {
		err = in.write(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func endSilentNode(t *testing.T, dir string, i int) {
	t.Helper()
	in, err := readIntent(dir)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := membersOf(in.ID)()
	if err != nil || len(mine) != 1 {
		t.Fatalf("%v %+v", err, mine)
	}
	if state, why := probe(t.Context(), dir, i); state != cloud.Unknown {
		t.Errorf("a node that may be about to listen is %s: %s", state, why)
	}
	kill9(t, mine[0].pid)
}

func TestAStarterKilledAtAnyMomentLeavesWhatUpFinishes(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for i := range 12 {
		name := "k" + strconv.Itoa(i)
		starter := exec.Command(p.exe, starterCommand, p.dir, name, "2")
		if err := starter.Start(); err != nil {
			t.Fatal(err)
		}
		// Not a wait for something, but the moment of the kill.
		time.Sleep(time.Duration(i) * 15 * time.Millisecond)
		_ = starter.Process.Kill()
		_ = starter.Wait()
		if i%2 == 0 {
			c, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: name, Count: 2}, nil)
			if err != nil {
				t.Fatalf("killed after %d ms: %v", i*15, err)
			}
			want(t, p, c, cloud.Alive, cloud.Alive)
		}
		if r, err := p.Down(t.Context(), cloud.Life{Name: name}, nil); err != nil || !r.Proven() {
			t.Fatalf("killed after %d ms: %v %+v", i*15, err, r)
		}
	}
}

func TestTheReceiptCountsWhatIsThereWhenItLooks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(provider(t).dir, "c")
	in := intend(t, dir)
	mkdir(t, filepath.Join(nodeDir(dir, 1), homeDir))
	stray := exec.Command("sleep", "1000")
	stray.Env = append(os.Environ(), cookieName+"="+in.ID, "DLWB_NODE=1")
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stray.Process.Kill(); _ = stray.Wait() }()
	var r cloud.Receipt
	eventually(t, "the stray process is counted", func() bool {
		r = cloud.Receipt{}
		fill(&r, dir, in, survey(dir, in), nil)
		return r.ProcessesLeft == 1
	})
	// The cluster's directory, its intent, node1 and its home.
	if r.FilesLeft != 4 || r.Proven() {
		t.Errorf("the receipt: %+v", r)
	}
	if last := r.Resources[len(r.Resources)-1]; last.State != cloud.Alive || last.ID != fmt.Sprintf("pid %d (sleep)", stray.Process.Pid) || last.Node != "node1" {
		t.Errorf("the stray process: %+v", last)
	}
}

func TestDownTouchesNothingThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "precious"), "kept")
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	sh(t, login(t, c, 0), `ln -s '`+outside+`' link; ln -s '`+outside+`/precious' file; mkdir -p a/b/c && touch a/b/c/f && chmod 500 a/b/c && chmod 100 a/b && chmod 0 a`)
	bystander := exec.Command("sleep", "1000")
	bystander.Dir = filepath.Join(nodeDir(filepath.Join(p.dir, "c"), 0), homeDir)
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	defer os.Chmod(outside, 0o700) //nolint:errcheck // so that it can be removed
	mkdir(t, filepath.Join(p.dir, "other"))
	write(t, filepath.Join(p.dir, "other", "precious"), "kept")
	defer os.RemoveAll(filepath.Join(p.dir, "other"))
	down(t, p)
	if !running(bystander.Process.Pid) {
		t.Error("down ended a process that only stood in its directory")
	}
	for _, path := range []string{filepath.Join(outside, "precious"), filepath.Join(p.dir, "other", "precious")} {
		if b, err := os.ReadFile(path); err != nil || string(b) != "kept" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if fi, err := os.Stat(outside); err != nil || fi.Mode().Perm() != 0o500 {
		t.Errorf("a link led the removal out: %v %v", fi, err)
	}
	for _, name := range []string{"other", "../c", "", ".", "a/b"} {
		if r, err := p.Down(t.Context(), cloud.Life{Name: name}, nil); err == nil {
			t.Errorf("down of %q: %+v", name, r)
		}
		if _, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: name, Count: 1}, nil); err == nil {
			t.Errorf("up of %q worked", name)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "other", "precious")); err != nil {
		t.Error(err)
	}
}

func TestATreeWithoutPermissionsIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	mkdir(t, filepath.Join(dir, "a", "b"))
	write(t, filepath.Join(dir, "a", "b", "f"), "x")
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/b", "a", "."} {
		if err := os.Chmod(filepath.Join(dir, d), 0); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.Stat(outside)
	if err := loosen(dir); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"a/b", "a", "."} {
		if fi, err := os.Stat(filepath.Join(dir, d)); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", d, fi, err)
		}
	}
	if after, err := os.Stat(outside); err != nil || after.Mode() != before.Mode() {
		t.Errorf("a link led out of the tree: %v %v", after, err)
	}
	if err := removeTree(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestDownRefusesToRunOnTheClusterItself(t *testing.T) {
	p := provider(t)
	up(t, p, 1, 0)
	in, err := readIntent(filepath.Join(p.dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	os.Setenv(cookieName, in.ID)
	_, err = p.Down(t.Context(), cloud.Life{Name: "c"}, nil)
	os.Unsetenv(cookieName)
	if err == nil || !strings.Contains(err.Error(), "from outside") {
		t.Errorf("down from within: %v", err)
	}
}

func TestANodeThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p := provider(t)
	dir := filepath.Join(p.dir, "c")
	intend(t, dir)
	mkdir(t, nodeDir(dir, 0))
	write(t, filepath.Join(nodeDir(dir, 0), hostKeyFile), "broken")
	_, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 2}, nil)
	if err == nil || !strings.Contains(err.Error(), "node0") || !strings.Contains(err.Error(), hostKeyFile) {
		t.Errorf("up with a broken host key: %v", err)
	}
	p.exe = "/bin/false"
	if err := os.Remove(filepath.Join(nodeDir(dir, 0), hostKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err = p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 2}, nil); err == nil || !strings.Contains(err.Error(), "ended before it listened") {
		t.Errorf("up with a binary that ends at once: %v", err)
	}
}
