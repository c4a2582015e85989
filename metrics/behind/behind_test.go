package behind

import "testing"

func TestWhetherAPlaceBeginsOrEnds(t *testing.T) {
	for line, want := range map[string]Says{
		"Epoch 3 done": Ends, "--- epoch 3 finished in 12s ---": Ends, "Completed epoch 3": Ends, "End of epoch 3": Ends, "epoch 3 took 12 s": Ends,
		"Starting epoch 3": Begins, "Epoch 3:": Begins, "After epoch 3:": Begins, "Beginning epoch 3": Begins, "== Epoch 3: ==": Begins,
		"Epoch 3": Nothing, "step 3/10": Nothing, "Epoch 3 (pending)": Nothing, "Epoch 3, endpoint": Nothing,
	} {
		if got := Of(line); got != want {
			t.Errorf("%q says %v, want %v", line, got, want)
		}
	}
}

func TestAHeadingIsBareWithOneWordAndNumbers(t *testing.T) {
	for line, want := range map[string]bool{
		"Epoch 1": true, "=== epoch 3/10 ===": true, "[ Step: 0003 ]": true, "Époque 2": true,
		"Epoch 1 done": false, "Epoch 1, 12.5 samples/s": false, "": false, "-----": false,
	} {
		if got := Bare(line); got != want {
			t.Errorf("%q is bare: %v, want %v", line, got, want)
		}
	}
}

// However long no place is told, a bounded number of lines waits for it.
func TestFewLinesWaitForAPlaceThatNeverComes(t *testing.T) {
	var o Order[int]
	waits := 0
	for i := range 10 * most {
		kept, told := o.Waits(Line[int]{Shape: uint64(i), What: i})
		if kept {
			waits++
		}
		waits -= len(told.Then) + len(told.Now) + len(told.Next)
		if waits > most {
			t.Fatalf("%d lines wait", waits)
		}
	}
	if waits != 0 || !o.Settled() {
		t.Errorf("%d lines wait for good", waits)
	}
}

// Where the first place has a beginning and an end, what stands between the two is of the place
// whose end is told behind it; what comes behind the last end is of that.
func TestWhatStandsBetweenABeginningAndAnEndIsToldBeforeItsEnd(t *testing.T) {
	var o Order[int]
	line := func(shape uint64, what int) (bool, Told[int]) {
		return o.Waits(Line[int]{Shape: shape, Of: Unsaid, What: what})
	}
	o.Place(Begins, false)
	if waits, _ := line(1, 0); waits {
		t.Error("a line of the first place waits")
	}
	o.Closes()
	if waits, _ := line(2, 1); waits {
		t.Error("a line of another form waits")
	}
	if waits, _ := line(1, 2); !waits {
		t.Error("a line behind the end does not wait for its place")
	}
	if told := o.Place(Ends, false); len(told.Next) != 1 || told.Next[0] != 2 {
		t.Errorf("the second place was told %v", told)
	}
	line(1, 3)
	if told := o.End(); len(told.Next) != 1 {
		t.Errorf("a line of a place that was not told is %v", told)
	}
	o = Order[int]{}
	o.Place(Begins, false)
	line(1, 0)
	o.Closes()
	line(1, 1)
	if told := o.Place(Begins, false); len(told.Then) != 1 || !o.Settled() {
		t.Errorf("a line before a place that begins is %v", told)
	}
}

func TestTheEndOfARunIsTold(t *testing.T) {
	for line, want := range map[string]bool{"Early stopping at epoch=28": true, "Epoch==3 early stop": true, "EarlyStopping: epoch 9": true, "epoch 3 stopped": false} {
		if Stops(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
