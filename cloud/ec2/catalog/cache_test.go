package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWhatCannotBeReadIsNotOnTheShelf(t *testing.T) {
	now := time.Now()
	for name, text := range map[string]string{
		"cut off":         `{"version":2,"at":"2026-01-01T00:00:00Z","val`,
		"another version": `{"version":99,"at":"2026-01-01T00:00:00Z","value":7}`,
		"from the future": `{"version":2,"at":"2999-01-01T00:00:00Z","value":7}`,
		"another thing":   `{"version":2,"at":"2026-01-01T00:00:00Z","value":"x"}`,
		"empty":           ``,
	} {
		s := shelf{dir: t.TempDir(), now: func() time.Time { return now }, silence: &silence{}, wait: usualPatience}
		if err := os.WriteFile(filepath.Join(s.dir, "n.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, found := take[int](s, "n"); found {
			t.Errorf("%s: %+v was taken", name, got)
		}
		a := ask(context.Background(), s, part{name: "n"}, time.Hour, func(context.Context) (int, error) { return 0, errors.New("no") })
		if a.ok || a.value != 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestAnAnswerIsKeptWholeAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := shelf{dir: dir, now: time.Now, silence: &silence{}, wait: usualPatience}
	a := ask(context.Background(), s, part{name: "n"}, time.Hour, func(context.Context) (int, error) { return 7, nil })
	if got, found := take[int](s, "n"); !a.ok || !found || got.Value != 7 {
		t.Errorf("%+v, %+v", a, got)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if info, _ := os.Stat(filepath.Join(dir, "n.json")); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestAShelfThatCannotBeWrittenToFailsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := shelf{dir: filepath.Join(file, "below"), now: time.Now, silence: &silence{}, wait: usualPatience}
	a := ask(context.Background(), s, part{name: "n"}, time.Hour, func(context.Context) (int, error) { return 7, nil })
	if !a.ok || a.value != 7 || a.err != nil {
		t.Errorf("%+v", a)
	}
}
