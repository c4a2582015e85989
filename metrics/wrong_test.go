package metrics

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// curve is the values of a series of a log, in order; "none" when it is not there.
func curve(t *testing.T, log, name string) string {
	t.Helper()
	doc, err := Read(strings.NewReader(log), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Set.Series {
		if s.Name == name {
			return fmt.Sprint(s.XY(s.Axis()))
		}
	}
	return "none"
}

// kerasFrames is what Keras prints of two epochs: the first without a length,
// as of a generator, frame by frame.
func kerasFrames(unknown, frame string) string {
	var b strings.Builder
	for epoch := 1; epoch <= 2; epoch++ {
		fmt.Fprintf(&b, "Epoch %d/2\n", epoch)
		for n := 1; n <= 10; n++ {
			form := frame
			if epoch == 1 && n < 10 {
				form = unknown
			}
			fmt.Fprintf(&b, "\r"+form, n, float64(epoch)+0.1*float64(n))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestOfKerasBarTheLastFrameOfAnEpochCounts(t *testing.T) {
	for name, log := range map[string]string{
		"keras 2": kerasFrames("%7d/Unknown - 1s 10ms/step - loss: %.4f", "%2d/10 [===>.......] - ETA: 1s - loss: %.4f"),
		"keras 3": kerasFrames("\x1b[1m%7d\x1b[0m/\x1b[1mUnknown\x1b[0m \x1b[1m1s\x1b[0m 10ms/step - loss: %.4f",
			"\x1b[1m%2d/10\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 10ms/step - loss: %.4f"),
	} {
		if got := curve(t, log, "loss"); got != "[[1 2] [2 3]]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAValidationThatIsToldTwiceIsOnePoint(t *testing.T) {
	log := "Epoch 1: train_loss 0.9\nValidation epoch 1: loss 0.8\nval_loss: 0.8\nEpoch 2: train_loss 0.7\nValidation epoch 2: loss 0.6\nval_loss: 0.6\n"
	if got := curve(t, log, "val/loss"); got != "[[1 0.8] [2 0.6]]" {
		t.Error(got)
	}
}

func TestWhatIsEvaluatedIsNotTheTrainings(t *testing.T) {
	log := "Epoch 1 (train)1.4s: train loss = 0.47\nEpoch 2 (train)0.8s + (eval)0.4s: train loss = 0.22 = (mf)0.21 + (embed)0.01, recall = 0.16303, ndcg = 0.35414\n" +
		"Epoch 3 (train)0.7s: train loss = 0.21\nEpoch 4 (train)0.8s + (eval)0.2s: train loss = 0.18 = (mf)0.17 + (embed)0.01, recall = 0.17857, ndcg = 0.38568\n"
	doc, err := Read(strings.NewReader(log), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, drawn(&doc.Set), "train/loss epoch 1:0.47 2:0.22 3:0.21 4:0.18\neval/recall epoch 2:0.16303 4:0.17857\neval/ndcg epoch 2:0.35414 4:0.38568\n")
}

// Of two that print the same names under one step, in an order that changes,
// only one counts.
func TestWhoPrintsIsNeverMixed(t *testing.T) {
	for name, form := range map[string]string{
		"brackets":                       "step %[2]d/40 loss %.2[3]f [rank %[1]d]",
		"parentheses":                    "step %[2]d/40 loss %.2[3]f (rank=%[1]d)",
		"key":                            "step %[2]d/40 loss %.2[3]f, rank: %[1]d",
		"words":                          "step %[2]d/40 loss %.2[3]f on local rank %[1]d",
		"JSON":                           `{"step": %[2]d, "loss": %.2[3]f, "rank": %[1]d}`,
		"colour":                         "\x1b[3%[1]dmtrainer  |\x1b[0m step %[2]d/40 loss %.2[3]f",
		"a line's colour":                "\x1b[3%[1]dmstep %[2]d/40 loss %.2[3]f\x1b[0m",
		"colour, one name with a number": "\x1b[3%[1]dmtrainer-1  | \x1b[0mstep %[2]d/40 loss %.2[3]f",
	} {
		var b strings.Builder
		want, random := []string{}, rand.New(rand.NewPCG(1, 2))
		for step := 1; step <= 40; step++ {
			order := []int{0, 1}
			if step > 1 && random.IntN(2) == 0 {
				order = []int{1, 0}
			}
			for _, rank := range order {
				fmt.Fprintf(&b, form+"\n", rank, step, 1/float64(step)+float64(rank))
			}
			want = append(want, fmt.Sprintf("[%d %.2f]", step, 1/float64(step)))
		}
		got := strings.ReplaceAll(curve(t, b.String(), "loss"), " 1]", " 1.00]")
		for _, p := range want {
			if !strings.Contains(got, strings.TrimSuffix(strings.TrimRight(p, "0]"), ".")) {
				t.Errorf("%s: no %s in %s", name, p, got)
				break
			}
		}
	}
	if got := curve(t, "step 1 loss 0.5 mean rank 12\nstep 2 loss 0.4 mean rank 9\nstep 3 loss 0.3 mean rank 10\n", "loss"); got != "[[1 0.5] [2 0.4] [3 0.3]]" {
		t.Errorf("a rank that is a value: %s", got)
	}
}

func TestARunIsNotFurtherThanItSays(t *testing.T) {
	for _, c := range []struct {
		name, log string
		share     float64
		known     bool
	}{
		{"an epoch has only begun", "Epoch 1/3\n", 0, true},
		{"and the last one", "Epoch 1/2\nloss: 0.5\nEpoch 2/2\n", 0.5, true},
		{"it is over", "Epoch 1/2\n10/10 [====] - 1s - loss: 0.5\nEpoch 2/2\n10/10 [====] - 1s - loss: 0.4\nEpoch 3/3\n", 2. / 3, true},
		{"with its values", "Epoch 1/2 loss: 0.5\nEpoch 2/2 loss: 0.4\n", 1, true},
		{"a download is no training", "100%|████| 170498071/170498071 [00:05<00:00, 31084541.21it/s]\ntrain loss 0.5 val acc 0.5\n", 0, false},
		{"nor while it lasts", " 50%|██  | 85M/170M [00:05<00:00, 31.2MB/s]\n", 0, false},
		{"a bar over the run beside lines of epochs", " 50%|██  | 10/20 [00:05<00:05, 1.0it/s]\n{'loss': 0.4, 'learning_rate': 1e-05, 'epoch': 0.5}\n", 0.5, true},
		{"no total", "step 20 loss 0.5\n", 0, false},
		{"past what it said", "step 20/20 loss 0.5\nEpoch 2/1\n", 1, true},
	} {
		r := NewReader(nil)
		r.Feed([]byte(c.log), r.at)
		r.End(r.at)
		if share, known := r.Progress().Share(); share != c.share || known != c.known {
			t.Errorf("%s: %v, %v (%+v)", c.name, share, known, r.Progress())
		}
	}
}

func TestTheFirstHostOfSageMakerCounts(t *testing.T) {
	log := "\x1b[32malgo-2-zr5n1_1  |\x1b[0m step 1 loss 2.5\n\x1b[36malgo-1-zr5n1_1  |\x1b[0m step 1 loss 2.0\n" +
		"\x1b[32malgo-2-zr5n1_1  |\x1b[0m step 2 loss 1.5\n\x1b[36malgo-1-zr5n1_1  |\x1b[0m step 2 loss 1.0\n"
	if got := curve(t, log, "loss"); got != "[[1 2] [2 1]]" {
		t.Error(got)
	}
}

func TestSourceCodeThatIsPrintedIsNoValidation(t *testing.T) {
	code := "    # wait on step 3\n    val_loss = 0\n    with torch.no_grad():\n        val_loss += model(x)\n    val_loss /= steps\n"
	if got := curve(t, code+"step:0/20 val_loss:10.8258 train_time:0ms\nstep:10/20 val_loss:5.5 train_time:9ms\n", "val/loss"); got != "[[0 10.8258] [10 5.5]]" {
		t.Error(got)
	}
}

// Lines tell of an epoch, and a dictionary tells it again.
func TestWhatADictionaryTellsAgainIsOnePoint(t *testing.T) {
	log := ""
	for epoch, acc := range []string{"82.5", "85.0", "85.0"} {
		log += fmt.Sprintf("epoch -> %d.000000\nvalid_acc -> %s00000\n__log__:{\"epoch\": %d, \"valid_acc\": %s}\n", epoch, acc, epoch, acc)
	}
	if got := curve(t, log, "val/acc"); got != "[[0 82.5] [1 85] [2 85]]" {
		t.Error(got)
	}
}

// What is written over more than once in one step is told by its last frame.
func TestOfAStepThatIsWrittenOverTheLastFrameCounts(t *testing.T) {
	log := "Iter: 0\rIter: 0\tloss: 0.9\rIter: 0\tloss: 0.8\rIter: 0\tloss: 0.7\tval_loss: 0.75\nIter: 1\rIter: 1\tloss: 0.6\rIter: 1\tloss: 0.5\tval_loss: 0.55\n"
	if got := curve(t, log, "loss"); got != "[[0 0.7] [1 0.5]]" {
		t.Error(got)
	}
}

// A row of pairs keeps what it names, also where a setting is the first of it.
func TestRowsBelowACountAreOfThatPlace(t *testing.T) {
	log := ""
	for epoch := 1; epoch <= 3; epoch++ {
		log += fmt.Sprintf("Epoch %d\nlr: 0.%d, loss: 1.%d\nent: 2.%d, gap: 3.%d\n", epoch, 9-epoch, 9-epoch, epoch*epoch, 9-epoch*epoch)
	}
	for name, want := range map[string]string{"lr": "[[1 0.8] [2 0.7] [3 0.6]]", "loss": "[[1 1.8] [2 1.7] [3 1.6]]", "ent": "[[1 2.1] [2 2.4] [3 2.9]]"} {
		if got := curve(t, log, name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestACountBetweenDashesBehindADateIsAStep(t *testing.T) {
	log := ""
	for i := 1; i <= 4; i++ {
		log += fmt.Sprintf("INFO - 05/01/20 10:00:0%d - 0:00:0%d - %7d - 1%d.57 sent/s - MLM-en:  %d.5\n", i, i, i*5, i, 9-i*i%5)
	}
	if got := curve(t, log, "MLM-en"); got != "[[5 8.5] [10 5.5] [15 5.5] [20 8.5]]" {
		t.Error(got)
	}
}

func TestWhatIsHeldOutValidates(t *testing.T) {
	log := "Iteration 1: training logprob -5.1e+02, heldout UAS 58.67%, LAS 57.67%\nIteration 2: training logprob -3.5e+02, heldout UAS 76.67%, LAS 75.67%\nIteration 3: training logprob -3.1e+02, heldout UAS 77.67%, LAS 75.97%\n"
	if got := curve(t, log, "val/LAS"); got != "[[1 57.67] [2 75.67] [3 75.97]]" {
		t.Error(got)
	}
}
