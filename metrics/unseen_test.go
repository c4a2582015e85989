package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// controls are the characters by which a sample writes what no editor shows.
var controls = strings.NewReplacer("␍", "\r", "␛", "\x1b", "␈", "\b", "␇", "\a")

// drawn writes all the points of all the series, one series in a line.
func drawn(set *Set) string {
	var b strings.Builder
	for _, s := range set.Series {
		axis := s.Axis()
		fmt.Fprintf(&b, "%s %s", s.Name, axis)
		for _, p := range s.XY(axis) {
			fmt.Fprintf(&b, " %v:%v", p[0], p[1])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Each sample was written from the format strings of a framework, with what a
// careful reader expects of it: these series, all their points, and no other.
func TestWhatFrameworksPrint(t *testing.T) {
	for name, text := range printed(t) {
		t.Run(name, func(t *testing.T) {
			text, want, ok := strings.Cut(text, "-- want --\n")
			if !ok {
				t.Fatal("it has no line \"-- want --\"")
			}
			doc, err := Read(strings.NewReader(text), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, drawn(&doc.Set), want)
		})
	}
}

// A line that a recipe reads gives what the scanner gives, in these samples too.
func TestRecipesReadTheSamples(t *testing.T) {
	for name, text := range printed(t) {
		text, _, _ = strings.Cut(text, "-- want --\n")
		sameWithoutRecipes(t, name, text)
	}
}

// printed are the samples by name, with their control characters.
func printed(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/unseen/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples in testdata/unseen (%v)", err)
	}
	all := map[string]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = controls.Replace(string(b))
	}
	return all
}

// compareLines tells apart what is missing and what is too much; the order of
// series is of no meaning.
func compareLines(t *testing.T, got, want string) {
	t.Helper()
	left := map[string]bool{}
	for line := range strings.Lines(want) {
		left[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(got) {
		if line = strings.TrimSpace(line); !left[line] {
			t.Errorf("not wanted: %s", line)
		}
		delete(left, line)
	}
	for line := range left {
		if line != "" {
			t.Errorf("missing:    %s", line)
		}
	}
}

// What is kept of a line is a copy: each line may come in the room of the one before.
func TestALineMayComeInTheRoomOfTheOneBefore(t *testing.T) {
	all := printed(t)
	all["titles"] = strings.Repeat("inner:\n  loss: 0.5\n  acc: 0.25\nouter:\n  loss: 0.75\n  acc: 0.125\n", 3)
	for name, text := range all {
		text, _, _ = strings.Cut(text, "-- want --\n")
		whole, parts := NewReader(nil), NewReader(nil)
		want := append(whole.Feed([]byte(text), time.Time{}), whole.End(time.Time{})...)
		room := make([]byte, 0, 1<<16)
		var got []Point
		for line := range strings.Lines(text) {
			room = append(room[:0], line...)
			got = append(got, parts.Feed(room, time.Time{})...)
			clear(room)
		}
		if got = append(got, parts.End(time.Time{})...); told(got) != told(want) {
			t.Errorf("%s: %s\nwhole: %s", name, told(got), told(want))
		}
	}
}
