//go:build linux

package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What comes takes its place, what somebody else put there stays, and what came before
// is replaced by what it became.
func TestWhatIsGatheredTakesNobodysPlace(t *testing.T) {
	dest := t.TempDir()
	lay := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dest, name)), 0o755), os.WriteFile(filepath.Join(dest, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v, not %q", name, text, err, want)
		}
	}
	lay("out/mine.txt", "the user's")
	placed := map[string]Placed{}
	gather := func(text string) PullResult {
		t.Helper()
		res, err := Gather(dest, PullRules{Placed: placed, Mark: "run"}, func(into *os.Root) error {
			return errors.Join(into.Mkdir("out", 0o755), into.WriteFile("out/new.txt", []byte(text), 0o644), into.WriteFile("out/mine.txt", []byte("the run's"), 0o644),
				into.Mkdir(".git", 0o755), into.WriteFile(".git/config", []byte("x"), 0o644), into.Symlink("new.txt", "out/in"), into.Symlink("../../etc", "out/away"))
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := gather("one"); res.Files != 3 || len(res.Moved) != 1 || len(res.Skipped) != 2 {
		t.Errorf("%+v", res)
	}
	holds("out/new.txt", "one")
	holds("out/mine.txt", "the user's")
	holds("out/mine.run.txt", "the run's")
	if res := gather("one"); res.Files != 0 || res.Unchanged != 3 {
		t.Errorf("again: %+v", res)
	}
	if res := gather("two!"); res.Files != 1 {
		t.Errorf("anew: %+v", res)
	}
	holds("out/new.txt", "two!")
	if _, err := os.Lstat(filepath.Join(dest, "out/away")); err == nil {
		t.Error("a link that leads out is there")
	}
	nothingLeft(t, dest)
}

// What had come when it broke off is kept, and the error is told.
func TestWhatHadComeWhenItBrokeOffIsKept(t *testing.T) {
	dest, broke := t.TempDir(), errors.New("broke off")
	res, err := Gather(dest, PullRules{Placed: map[string]Placed{}, Mark: "run"}, func(into *os.Root) error {
		return errors.Join(into.WriteFile("a", []byte("a"), 0o644), broke)
	})
	if !errors.Is(err, broke) || res.Files != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}
