package metrics

import (
	"strings"
	"testing"
	"time"
)

// seriesOf reads a text as the output of a run and draws its series.
func seriesOf(t *testing.T, text string) string {
	t.Helper()
	r, set := NewReader(nil), Set{}
	set.Add(r.Feed([]byte(text), time.Time{})...)
	set.Add(r.End(time.Time{})...)
	return drawn(&set)
}

// A column that goes up by the same is where a row belongs, whatever it is
// called, in a file and in the output of a run.
func TestAFirstColumnThatCountsIsNoSeries(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a word that nobody knows":        {"gen,avg\n0,4.5\n1,4.25\n2,4.0\n5,3\n", "avg step 0:4.5 1:4.25 2:4 5:3\n"},
		"by tens":                         {"tick;fitness\n10;1.5\n20;1.25\n30;1.125\n40;1\n", "fitness step 10:1.5 20:1.25 30:1.125 40:1\n"},
		"a file with a row":               {"cycle,avg\n0,4.5\n", "avg step 0:4.5\n"},
		"whole numbers that do not count": {"hits,misses\n3,4\n9,2\n4,1\n", "hits ordinal 0:3 1:9 2:4\nmisses ordinal 0:4 1:2 2:1\n"},
		"a column that says it":           {"gen,epoch,avg\n3,0,4.5\n9,1,4.25\n", "gen epoch 0:3 1:9\navg epoch 0:4.5 1:4.25\n"},
		"a score":                         {"reward,length\n1,30\n2,31\n3,40\n", "reward ordinal 0:1 1:2 2:3\nlength ordinal 0:30 1:31 2:40\n"},
		"a clock":                         {"time,loss\n1,0.5\n2,0.25\n3,0.125\n", "loss step 1:0.5 2:0.25 3:0.125\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var set Set
			if err := ReadCSV(strings.NewReader(c.text), func(p ...Point) { set.Add(p...) }); err != nil {
				t.Fatal(err)
			}
			compareLines(t, drawn(&set), c.want)
		})
	}
	for name, c := range map[string]struct{ text, want string }{
		"gaps": {"starting\ngen  nevals  avg      min\n0    30      10.5     0.25\n1    22      3.25     0.125\n2    26      0.75     0.0625\n",
			"avg step 0:10.5 1:3.25 2:0.75\nmin step 0:0.25 1:0.125 2:0.0625\n"},
		"a box": {"|  iter  |  target  |  x  |\n-------------------\n|  1  |  -7.5  |  0.25  |\n|  2  |  -1.5  |  0.5  |\n|  3  |  -6.5  |  0.75  |\n",
			"target step 1:-7.5 2:-1.5 3:-6.5\nx step 1:0.25 2:0.5 3:0.75\n"},
		"a target that stays": {"step  target  score\n1     0.9     0.25\n2     0.9     0.5\n3     0.9     0.75\n", "score step 1:0.25 2:0.5 3:0.75\n"},
	} {
		t.Run(name, func(t *testing.T) { compareLines(t, seriesOf(t, c.text), c.want) })
	}
}

// What one rank wrote before another wrote into its line counts when it is whole.
func TestTwoRanksInOneLineAreNeverMixed(t *testing.T) {
	const before, behind = "[rank 0] step 2: loss 0.5\n[rank 1] step 2: loss 0.25\n", "[rank 1] step 6: loss 0.0625\n[rank 0] step 6: loss 0.125\n"
	for name, c := range map[string]struct{ text, want string }{
		"whole":             {"[rank 0] step 4: loss 0.375[rank 1] step 4: loss 0.75\n\n", "loss step 2:0.5 4:0.375 6:0.125\n"},
		"cut":               {"[rank 0] step 4: loss 0.3[rank 1] step 4: loss 0.75\n75\n", "loss step 2:0.5 6:0.125\n"},
		"cut before":        {"[rank 0] step 4: [rank 1] step 4: loss 0.75\nloss 0.375\n", "loss step 2:0.5 4:0.375 6:0.125\n"},
		"the other first":   {"[rank 1] step 4: loss 0.75[rank 0] step 4: loss 0.375\n\n", "loss step 2:0.5 4:0.375 6:0.125\n"},
		"three":             {"[rank 0] step 4: loss 0.375[rank 2] step 4: loss 9.5[rank 1] step 4: loss 0.75\n\n\n", "loss step 2:0.5 4:0.375 6:0.125\n"},
		"three, one is cut": {"[rank 0] step 4: loss 0.3[rank 2] step 4: loss 9.5[rank 1] step 4: loss 0.75\n\n75\n", "loss step 2:0.5 6:0.125\n"},
		"named":             {"[rank 0] step 4: loss 0.375 as [rank 1] has\n", "loss step 2:0.5 4:0.375 6:0.125\n"},
	} {
		t.Run(name, func(t *testing.T) { compareLines(t, seriesOf(t, before+c.text+behind), c.want) })
	}
	for _, text := range []string{
		"0: step 1 loss 0.5\n1: step 1 loss 0.25\n0: step 2 loss 0.41: step 2 loss 0.75\n\n0: step 3 loss 0.125\n",
		"step 1 loss 0.5\nstep 2 loss 0.4step 2 loss 0.75\n\nstep 3 loss 0.125\n",
	} {
		compareLines(t, seriesOf(t, text), "loss step 1:0.5 3:0.125\n")
	}
}

// A bar whose title is a count and no word is of so many epochs.
func TestATitleThatIsACountIsTheEpoch(t *testing.T) {
	var b strings.Builder
	for _, epoch := range []string{
		"0/2(t):  50%|█| 1/2 [00:00<00:00, 2it/s, running_loss=1.5]␍0/2(t): 100%|█| 2/2 [00:00<00:00, 2it/s, loss=1.25, running_loss=1.5]\n",
		"1/2(t):  50%|█| 1/2 [00:00<00:00, 2it/s, running_loss=1.125]␍1/2(t): 100%|█| 2/2 [00:00<00:00, 2it/s, loss=1, running_loss=1.125]\n",
	} {
		b.WriteString(controls.Replace(epoch))
	}
	compareLines(t, seriesOf(t, b.String()), "running_loss epoch 0:1.5 1:1.125\nloss step 2:1.25 4:1\n")
}

// Below a line that only counts, what lines of a name and a number alone say is of
// that place, when it moves; a learning rate and whole numbers are settings.
func TestLinesBelowACountAreOfIt(t *testing.T) {
	var b strings.Builder
	for i, v := range []string{"4.25", "2.5", "3.125", "1.5"} {
		n := string(rune('1' + i))
		b.WriteString("Iteration No: " + n + " ended. The search goes on.\nTime taken: 0.0" + n + "\nEnergy obtained: " + v + "\nlearning rate: 0.1\nEvaluations: " + n + "0\ndone\nDrift: " + v + "\n")
	}
	compareLines(t, seriesOf(t, b.String()), "Energy_obtained step 1:4.25 2:2.5 3:3.125 4:1.5\n")
}

// What a study says of its trials counts them; what was tried in them is settings.
func TestTrialsAreCountedAndWhatWasTriedIsNoSeries(t *testing.T) {
	var b strings.Builder
	for i, v := range []string{"4.25", "2.5", "3.125", "1.5"} {
		b.WriteString("[I 2024-01-02 03:04:05,678] Trial " + string(rune('0'+i)) + " finished with value: " + v + " and parameters: {'lr': " + v + ", 'dropout': 0." + string(rune('1'+i)) + "}. Best is trial 0 with value: 1.5.\n")
	}
	compareLines(t, seriesOf(t, b.String()), "value step 0:4.25 1:2.5 2:3.125 3:1.5\n")
	compareLines(t, seriesOf(t, "started with value: 3.5\nstopped with value: 4.5\n"), "")
}
