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
