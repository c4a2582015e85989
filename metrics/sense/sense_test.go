package sense

import "testing"

func TestANameSaysWhatKindOfNumberStandsBesideIt(t *testing.T) {
	for name, want := range map[string]Kind{
		"loss": Score, "loss_cls": Score, "top-1_acc": Score, "top-5": Weak, "rank-1": Weak, "rank": Never, "error": Weak, "lr": Measure,
		"accuracy-highest": Never, "best_acc": Never, "prerun_loss": Never, "epoch": Never, "tot_mins": Never, "perceptual": Unknown,
		"loss_batch": Score, "batch": Never, "batch_index": Never, "step_idx": Never, "rand_index": Unknown,
	} {
		if got := Of(name); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
}
