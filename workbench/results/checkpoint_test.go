package results

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/transfer"
)

// stateOf is a state as transfer.Look tells it, of a file written at a time.
func stateOf(at float64) string { return fmt.Sprintf("10 77 %.9f %.9f", at, at) }

// ckptUnits are the checkpoints of a look that found these files, with their states.
func ckptUnits(t *testing.T, dir string, files map[string]string) []*ckptUnit {
	t.Helper()
	l := newCkptLook(dir)
	for file, state := range files {
		if err := l.take(file, state); err != nil {
			t.Fatal(err)
		}
	}
	return l.units()
}

func sumOf(files map[string]string) (s transfer.Sum) {
	for file, state := range files {
		s.Add(file, state)
	}
	return s
}

func TestCheckpointsAreToldApartByNameAndSortedByAge(t *testing.T) {
	units := ckptUnits(t, "out/ckpt/", map[string]string{
		"out/ckpt/step-1/model":       stateOf(10),
		"out/ckpt/step-1/optim/state": stateOf(12),
		"out/ckpt/last.pt":            stateOf(30.5),
		"out/ckpt/step-2/model.tmp":   stateOf(30.25),
		"out/ckpt/step-2/optim":       stateOf(30),
		"out/ckpt/.step-3/model":      stateOf(40),
		"out/ckpt/step-3.pt.partial":  stateOf(40),
		"out/log":                     stateOf(50),
	})
	var got []string
	for _, u := range units {
		got = append(got, fmt.Sprintf("%s %d %v", u.name, u.files.Count, u.open))
	}
	if want := []string{"last.pt 1 false", "step-2 2 true", "step-1 2 false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestACheckpointIsWholeWhenTwoLooksFindItTheSame(t *testing.T) {
	seen := map[string]string{"ckpt/a/x": stateOf(1), "ckpt/a/y": stateOf(2)}
	first := findUnit(ckptUnits(t, "ckpt", seen), "a")
	for what, later := range map[string]map[string]string{
		"the same":     {"ckpt/a/x": stateOf(1), "ckpt/a/y": stateOf(2)},
		"one more":     {"ckpt/a/x": stateOf(1), "ckpt/a/y": stateOf(2), "ckpt/a/z": stateOf(2)},
		"one less":     {"ckpt/a/x": stateOf(1)},
		"one written":  {"ckpt/a/x": stateOf(1), "ckpt/a/y": stateOf(2.000000001)},
		"another name": {"ckpt/b/x": stateOf(1), "ckpt/b/y": stateOf(2)},
	} {
		if same := first.same(findUnit(ckptUnits(t, "ckpt", later), "a")); same != (what == "the same") {
			t.Errorf("%s: %v", what, same)
		}
	}
}

func TestARunGoesOnFromWhatIsWholeOnEveryNodeThatWrites(t *testing.T) {
	at := func(node int, name string, newest float64) savedCkpt {
		return savedCkpt{Node: node, Name: name, Newest: newest}
	}
	for _, c := range []struct {
		saved []savedCkpt
		want  string
	}{
		{nil, ""},
		{[]savedCkpt{at(0, "step-1", 1), at(0, "step-2", 2)}, "0:step-2"},
		{[]savedCkpt{at(0, "step-1", 1), at(1, "step-1", 1), at(0, "step-2", 2)}, "0:step-1 1:step-1"},
		{[]savedCkpt{at(0, "step-1", 1), at(1, "step-1", 1), at(0, "step-2", 2), at(1, "step-2", 2)}, "0:step-2 1:step-2"},
		{[]savedCkpt{at(0, "rank-0", 1), at(1, "rank-1", 2)}, "0:rank-0 1:rank-1"},
	} {
		r := ckptRecord{Saved: c.saved}
		var got []string
		for _, p := range r.restorable() {
			got = append(got, fmt.Sprintf("%d:%s", p.Node, p.Name))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("of %v: %q, want %q", c.saved, got, c.want)
		}
	}
}

// A profile may give each run a directory of its own ({run}): what the lost run has in
// its directory is not in that of the run which goes on.
func TestACheckpointIsPutIntoTheDirectoryOfTheRunThatGoesOn(t *testing.T) {
	files := map[string]string{"out/a-1/step-1": stateOf(1)}
	c := &savedCkpt{Node: 0, Name: "step-1", Files: sumOf(files)}
	units := ckptUnits(t, "out/a-1", files)
	for moved, want := range map[bool]int{false: 0, true: 1} {
		p := &ckptPut{parts: []*savedCkpt{c}, old: "out/a-1", moved: moved}
		if got := p.wanted(0, units); len(got) != want {
			t.Errorf("into another directory %v: %d are put there, want %d", moved, len(got), want)
		}
	}
}

func TestOnlyTheNewestCheckpointsOfANodeAreKept(t *testing.T) {
	var r ckptRecord
	dropped := map[string]bool{}
	add := func(node int, name string, newest float64) {
		for _, c := range r.add(savedCkpt{Node: node, Name: name, Newest: newest, Dir: fmt.Sprintf("%d/%s/%v", node, name, newest)}) {
			dropped[c.Dir] = true
		}
	}
	add(1, "step-1", 1)
	for i := range 5 {
		add(0, fmt.Sprintf("step-%d", i), float64(i))
		add(0, "last", float64(i)+0.5)
	}
	var kept []string
	for _, c := range r.Saved {
		kept = append(kept, c.Dir)
	}
	slices.Sort(kept)
	if want := []string{"0/last/4.5", "0/step-3/3", "0/step-4/4", "1/step-1/1"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if len(dropped) != 7 || dropped["0/last/4.5"] {
		t.Errorf("dropped %v", dropped)
	}
}

func TestTheAgeOfACheckpointDoesNotHangOnTheClockOfItsNode(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	seen := map[string]string{"ckpt/right": stateOf(107), "ckpt/behind": stateOf(7), "ckpt/ahead": stateOf(9000)}
	first := ckptUnits(t, "ckpt", map[string]string{"ckpt/behind": stateOf(1)})
	bound(first, nil, time.Time{}, at(100), true)
	second := ckptUnits(t, "ckpt", seen)
	bound(second, first, at(100), at(110), true)
	third := ckptUnits(t, "ckpt", seen)
	bound(third, second, at(110), at(120), true)
	for name, want := range map[string]int64{"right": 107, "behind": 100, "ahead": 110} {
		if got := findUnit(third, name).written().Unix(); got != want {
			t.Errorf("%s was written at %d, want %d", name, got, want)
		}
	}
}

// What a rank was in the middle of when it was ended stays as it is, and that is no sign
// that it is whole. What was confirmed before stays so.
func TestWhatIsSeenTheSameAfterARankWasEndedIsNotConfirmed(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	look := func(last []*ckptUnit, s int64, goesOn bool) []*ckptUnit {
		units := ckptUnits(t, "ckpt", map[string]string{"ckpt/a": stateOf(1)})
		if s > 5 {
			units = ckptUnits(t, "ckpt", map[string]string{"ckpt/a": stateOf(1), "ckpt/b": stateOf(8)})
		}
		bound(units, last, at(s-5), at(s), goesOn)
		return units
	}
	units := look(look(look(look(nil, 5, true), 10, true), 15, false), 20, false)
	if a, b := findUnit(units, "a"), findUnit(units, "b"); !a.confirmed.Equal(at(10)) || !b.confirmed.IsZero() {
		t.Errorf("a %v, b %v", a.confirmed, b.confirmed)
	}
}

// A rank that waits for a lost one leaves a file as it is, half or whole.
func TestWhatWasSeenTheSameOnlyAfterARankWasLostIsInDoubt(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, c := range []struct {
		confirmed, trouble time.Time
		want               bool
	}{{time.Time{}, time.Time{}, false}, {at(100), time.Time{}, true}, {at(100), at(110), true}, {at(100), at(101), false}, {at(100), at(90), false}, {time.Time{}, at(90), false}} {
		if got := whole(c.confirmed, c.trouble); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	r := ckptRecord{Saved: []savedCkpt{{Name: "before", Confirmed: at(50)}, {Name: "after", Node: 1, Confirmed: at(100)}, {Name: "final", Sure: true}}}
	dropped := r.distrust(at(90))
	if len(dropped) != 1 || len(r.Saved) != 2 || !slices.Equal(r.Doubtful[1], []string{"after"}) {
		t.Errorf("%+v is left, %+v dropped", r, dropped)
	}
}
