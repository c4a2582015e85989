package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// What bars and lines were read as, wrongly, before: each case is what was printed,
// a series of it, and its points.
func TestBarsAndLinesSayWhatTheySay(t *testing.T) {
	for name, c := range map[string]struct{ log, series, want string }{
		"a loop that tells of a step and then counts it": {
			"Epoch 1:   0%|    | 0/3 [00:00<?, ?it/s]\rEpoch 1:   0%|    | 0/3 [00:00<?, ?it/s, loss=3.5]\rEpoch 1:  33%|█   | 1/3 [00:00<00:00, 9.1it/s, loss=3.5]\rEpoch 1:  33%|█   | 1/3 [00:00<00:00, 9.1it/s, loss=2.5]\r" +
				"Epoch 1:  67%|██  | 2/3 [00:00<00:00, 9.1it/s, loss=2.5]\rEpoch 1:  67%|██  | 2/3 [00:00<00:00, 9.1it/s, loss=1.5]\rEpoch 1: 100%|███| 3/3 [00:00<00:00, 9.1it/s, loss=1.5]\n",
			"loss", "[[1 3.5] [2 2.5] [3 1.5]]"},
		"one that counts and then tells": {
			"  0%|    | 0/3 [00:00<?, ?it/s]\r 33%|█   | 1/3 [00:00<00:00, 9.1it/s, loss=3.5]\r 67%|██  | 2/3 [00:00<00:00, 9.1it/s, loss=2.5]\r100%|███| 3/3 [00:00<00:00, 9.1it/s, loss=1.5]\n",
			"loss", "[[1 3.5] [2 2.5] [3 1.5]]"},
		"of a bar only the end, and a line behind it": {
			strings.Repeat("run - Going into epoch 1\n100% 7/7 [00:07<00:00,  1.00s/it, train_loss=0.51]\nlog - Epoch: 1, train loss: 5.10e-01 - valid loss: 0.7\n", 1) +
				"run - Going into epoch 2\n100% 7/7 [00:07<00:00,  1.04it/s, train_loss=0.41]\nlog - Epoch: 2, train loss: 4.10e-01 - valid loss: 0.6\n",
			"train/loss", "[[1 0.51] [2 0.41]]"},
		"what rich wraps below its bar": {
			"Epoch 1/3  ━━━━━━━━ 4/8 0:00:00 • 0:00:01 15.6it/s val_loss: 0.614\n                                                     val_acc: 0.785\nEpoch 1/3  ━━━━━━━━ 8/8 0:00:00 • 0:00:01 15.6it/s val_loss: 0.514\n                                                     val_acc: 0.785\n",
			"val/acc", "[[1 0.785] [1 0.785]]"},
		"the rate of an epoch": {
			"0: TRAIN [0][10/30] Tok/s 9000 (9100) Loss 3.5 (3.6)\n0: TRAIN [0][20/30] Tok/s 9001 (9100) Loss 3.4 (3.5)\nEpoch: 0 Training tok/s: 73172\n",
			"tok/s_epoch", "none"},
		"an average that has its name": {"step 10/90 | loss: 9.1 (avg 9.5) | ppl: 9167.3\nstep 20/90 | loss: 8.1 (avg 8.9) | ppl: 3372.3\n", "avg", "none"},
		"brackets with letters":        {"[E 1/2][B 1/2] loss 2.5\n[E 1/2][B 2/2] loss 1.5\n[E 2/2][B 1/2] loss 1.4\n[E 2/2][B 2/2] loss 1.1\n", "loss", "[[1 2.5] [2 1.5] [3 1.4] [4 1.1]]"},
		"a target":                     {"accuracy target: 0.95\n", "accuracy_target", "none"},
		"an event that is an evaluation": {`{"event": "train_step", "step": 10, "loss": 3.5}` + "\n" + `{"event": "eval", "step": 10, "loss": 2.5}` + "\n" + `{"event": "train_step", "step": 20, "loss": 3.1}` + "\n" + `{"event": "eval", "step": 20, "loss": 2.1}` + "\n",
			"loss", "[[10 3.5] [20 3.1]]"},
		"two hosts by colour": {
			"\x1b[35mTrain Epoch: 1 [64/300 (21%)] Loss: 2.5\x1b[0m\n\x1b[34mTrain Epoch: 1 [64/300 (21%)] Loss: 2.6\x1b[0m\n\x1b[34mTest set: Average loss: 0.3237\n\x1b[0m\n\x1b[35mTest set: Average loss: 0.3237\n\x1b[0m\n",
			"test/loss", "[[1 0.3237]]"},
		"a block whose names say of what": {"=> Epoch 1 | 5 iterations\n   train/ce   : 0.8123\n   train/top1 : 71.23\n=> Epoch 2 | 5 iterations\n   train/ce   : 0.6123\n   train/top1 : 79.23\n", "train/ce", "[[1 0.8123] [2 0.6123]]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := curve(t, c.log, c.series); got != c.want {
				t.Errorf("%s is %s, want %s", c.series, got, c.want)
			}
		})
	}
}

// A bar without values says in its title which epoch what is printed behind it is of,
// in the same line or below.
func TestATitleOfABarPlacesWhatIsPrintedBehindIt(t *testing.T) {
	for _, behind := range []string{"\nloss: %.4f, val_loss: %.4f\n", " - loss: %.4f - val_loss: %.4f\n", "\rtrain: loss %.4f - val: loss %.4f\n"} {
		for _, first := range []int{0, 1} {
			var text strings.Builder
			for i := range 6 {
				fmt.Fprintf(&text, "Epoch %d/50:   0%%|          | 0/20 [00:00<?, ?it/s]\rEpoch %d/50: 100%%|##########| 20/20 [00:10<00:00, 1.9it/s]"+behind, i+first, i+first, 2-float64(i)/10, 3-float64(i)/10)
			}
			doc, err := Read(strings.NewReader(text.String()), nil, nil)
			if err != nil || len(doc.Set.Series) != 2 {
				t.Fatalf("%q: %v (%v)", behind, doc.Set.Series, err)
			}
			for _, s := range doc.Set.Series {
				if xy := s.XY(AxisEpoch); s.Axis() != AxisEpoch || len(xy) != 6 || xy[5][0] != float64(5+first) {
					t.Errorf("%q from %d: %s is at %v", behind, first, s.Name, xy)
				}
			}
		}
	}
}
