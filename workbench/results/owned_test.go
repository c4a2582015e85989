package results

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// notedEarlier is what an earlier dlwb wrote down, read back.
func notedEarlier(t *testing.T, files map[string]string) *noted {
	t.Helper()
	text, err := json.Marshal(map[string]any{"paths": []string{"out"}, "files": files})
	at := filepath.Join(t.TempDir(), "before.json")
	if err == nil {
		err = os.WriteFile(at, text, 0o600)
	}
	var b noted
	if err == nil {
		err = b.read(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

// An earlier dlwb noted whole seconds on nodes whose stat is busybox's.
func TestWhatAnEarlierVersionNotedTellsWhoseAFileIs(t *testing.T) {
	before := notedEarlier(t, map[string]string{
		"out/whole": "5 7 10 11", "out/exact": "5 8 10.000000001 11.000000001", "out/rewritten": "5 9 10 11", "out/later": "5 10 10 11",
	})
	o := &ownership{before: before, after: notedEarlier(t, map[string]string{"out/mine": "5 11 20 21", "out/theirs": "5 12 20 21"}), next: "b"}
	for file, c := range map[string]struct {
		state string
		own   bool
	}{
		"out/whole":     {"5 7 10.123456789 11.123456789", false},
		"out/exact":     {"5 8 10.000000001 11.000000001", false},
		"out/rewritten": {"5 9 12.000000001 12.000000001", false}, // by the next run, or a later one
		"out/mine":      {"5 11 20.500000000 21.500000000", true},
		"out/theirs":    {"5 12 20.500000000 22.500000000", false},
		"elsewhere":     {"5 13 20.500000000 22.500000000", true},
	} {
		if got := o.owns(file, c.state); got != c.own {
			t.Errorf("%s with %q is the run's own: %v", file, c.state, got)
		}
	}
	if o.rewritten != 2 {
		t.Errorf("%d files were rewritten", o.rewritten)
	}
	o.after = nil
	if !o.owns("out/rewritten", "5 9 12.000000001 12.000000001") || o.owns("out/later", "5 10 10.9 11.9") {
		t.Error("without a later run, what was written since the launch is the run's own, and nothing else")
	}
}

func TestWhatWasNotedIsReadBack(t *testing.T) {
	at := filepath.Join(t.TempDir(), "before.json")
	b := *notedEarlier(t, map[string]string{"out/a\nb": "5 7 10.5 11.5", "out/c": "5 8 10.5 11.5"})
	b.Paths = []string{"out", "ü\nx"}
	var again noted
	if err := b.write(at); err != nil {
		t.Fatal(err)
	}
	if err := again.read(at); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("%+v is read back as %+v, %v", b, again, err)
	}
}
