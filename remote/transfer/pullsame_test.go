//go:build linux

package transfer

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is on record of a pull goes through JSON before the next one.
func TestAFileWhoseNameIsNoUTF8ComesHomeOnce(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"r\xe9sum\xe9.pt": "1", "\xff\xfe/\x80": "2", "\xff": "3", "\xfe": "4", "in": "-> r\xe9sum\xe9.pt"})
	makeOld(t, n.code())
	before, err := lookAt(t.Context(), n, n.code(), []string{"out"})
	check(t, err)
	text, err := before.MarshalBinary()
	check(t, err)
	var again Seen
	check(t, again.UnmarshalBinary(text))
	states := statesOf(t, n, "out")
	for what, seen := range map[string]Seen{"this dlwb": again, "an earlier one": earlierSeen(t, states)} {
		for path, state := range states {
			if !seen.Holds(path, state) || seen.Holds(path, state+"0") || seen.Len() != 5 {
				t.Errorf("%q as %q is not read back of %d files that %s wrote", path, state, seen.Len(), what)
			}
		}
	}
	res := pullTest(t, n, dest, "out")
	if res.Files != 5 || dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
		t.Errorf("%v, skipped %q; here is\n%s", res, res.Skipped, dirText(t, dest))
	}
	if res = pullTest(t, n, dest, "out"); res.Files != 0 || res.Unchanged != 5 {
		t.Errorf("the second time %v", res)
	}
}

func TestWhatIsPrivateOnANodeIsPrivateHere(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	n, dest := newAgentNode(t), t.TempDir()
	for name, mode := range map[string]fs.FileMode{
		"secret": 0o600, "keys/deep/key": 0o640, "shared": 0o664, "program": 0o755, "own program": 0o700, "read-only": 0o444, "raised": 0o755 | fs.ModeSetuid | fs.ModeSetgid,
	} {
		writeFiles(t, n.code("out"), map[string]string{name: strings.Repeat(name, 1000)})
		check(t, os.Chmod(n.code("out", name), mode))
	}
	writeFiles(t, n.code("out"), map[string]string{"huge": entropy(5 << 20)})
	check(t, os.Chmod(n.code("out/huge"), 0o600))
	check(t, os.Chmod(n.code("out/keys"), 0o700))
	check(t, os.Chmod(n.code("out/keys/deep"), 0o750))
	check(t, os.Chmod(n.code("out"), 0o777))
	makeOld(t, n.code())
	for _, own := range []func(string, string) bool{nil, func(string, string) bool { return true }} {
		check(t, os.RemoveAll(filepath.Join(dest, "out")))
		_, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, PullRules{Own: own})
		check(t, err)
		for name, want := range map[string]fs.FileMode{
			"": 0o755, "secret": 0o600, "keys": 0o700, "keys/deep": 0o750, "keys/deep/key": 0o640, "shared": 0o644, "program": 0o755, "own program": 0o700, "read-only": 0o644, "raised": 0o755, "huge": 0o600,
		} {
			info, err := os.Stat(filepath.Join(dest, "out", name))
			check(t, err)
			if got := info.Mode() &^ fs.ModeDir; got != want {
				t.Errorf("%q has the mode %o, want %o", name, got, want)
			}
		}
	}
	back := newAgentNode(t)
	check(t, putOn(t.Context(), back, filepath.Join(dest, "out"), back.home, "aside"))
	for name, want := range map[string]fs.FileMode{"secret": 0o600, "keys": 0o700, "keys/deep": 0o750} {
		if info, err := os.Stat(filepath.Join(back.home, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("put back, %q: %v, %v", name, info, err)
		}
	}
}

func TestHolesInAFileStayHoles(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	const size = 64 << 20
	check(t, os.MkdirAll(n.code("out"), 0o755))
	for name, at := range map[string]int64{"big": 40<<20 + 123, "end": size - 1, "empty": -1} {
		f, err := os.Create(n.code("out", name))
		check(t, err)
		if at >= 0 {
			_, err = f.WriteAt([]byte("x"), at)
		}
		check(t, errors.Join(err, f.Truncate(size), f.Close()))
	}
	f, err := os.Create(n.code("out/small"))
	check(t, err)
	check(t, errors.Join(f.Truncate(1<<20), f.Close()))
	makeOld(t, n.code())
	n.cut.Store(10_000) // in the middle of one
	pullTest(t, n, dest, "out")
	back := newAgentNode(t)
	check(t, putOn(t.Context(), back, filepath.Join(dest, "out"), back.home, "aside"))
	for _, dir := range []string{filepath.Join(dest, "out"), back.home} {
		for _, name := range []string{"big", "end", "empty", "small"} {
			if a, b := contentSum(t, n.code("out", name)), contentSum(t, filepath.Join(dir, name)); a != b {
				t.Errorf("%s in %s is not what it was", name, dir)
			}
			there, err := os.Stat(n.code("out", name))
			check(t, err)
			info, err := os.Stat(filepath.Join(dir, name))
			check(t, err)
			if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 1<<20 {
				t.Errorf("%s takes %d bytes in %s", name, used, dir)
			}
			if info.Size() != there.Size() || !info.ModTime().Equal(there.ModTime()) {
				t.Errorf("%s has %d bytes and the time %v in %s", name, info.Size(), info.ModTime(), dir)
			}
		}
	}
}

func contentSum(t *testing.T, path string) [32]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	return sha256.Sum256(text)
}

// A Pull that fails here, as on a full disk, keeps no room for what it had of a file.
func TestAPullThatFailsHereLeavesNoPart(t *testing.T) {
	// In a process of its own: the limit below is of all its files, also of that in
	// which go test has noted what was read.
	if os.Getenv("DLWB_TEST_FAILS_HERE") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestAPullThatFailsHereLeavesNoPart$")
		c.Env = append(os.Environ(), "DLWB_TEST_FAILS_HERE=1")
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return
	}
	n := newAgentNode(t)
	writeFiles(t, n.code("out"), map[string]string{"a": entropy(50_000), "big": entropy(9 << 20)})
	makeOld(t, n.code())
	dest := t.TempDir()
	_, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, PullRules{Limits: PullLimits{MaxBytes: 9 << 20}})
	if limit := new(LimitError); !errors.As(err, &limit) {
		t.Fatalf("the error is %v", err)
	}
	nothingLeft(t, dest)

	// This process may write no more than 5 MB into a file.
	var was syscall.Rlimit
	check(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	signal.Ignore(syscall.SIGXFSZ)
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 5 << 20, Max: was.Max}))
	_, err = pullBy(t.Context(), n, n.code(), []string{"out"}, dest, PullRules{})
	check(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("the error is %v", err)
	}
	nothingLeft(t, dest)
	if res := pullTest(t, n, dest, "out"); res.Unchanged != 1 || res.Files != 1 {
		t.Errorf("then %v", res)
	}

}
