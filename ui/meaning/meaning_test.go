package meaning

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a chart is of says no part of a name alone: loss is with loss, wherever
// the word for the data stands.
func TestANameSaysWhatItIsOf(t *testing.T) {
	for want, names := range map[string][]string{
		"loss": {"Loss/train", "Loss/test", "val_loss", "train/loss", "eval_loss", "loss", "valid loss", "test/Loss", "loss_epoch",
			"train_loss_step", "train_loss_epoch", "trainLoss", "ValidLoss", "validation.loss", "val/0/loss", "val_loss/dataloader_idx_1", "total_loss",
			"running_loss", "batch loss", "metrics/loss", "loss/train/total"},
		"accuracy":      {"Accuracy/train", "Accuracy/test", "val/acc", "train_accuracy", "acc", "mean accuracy", "val_acc_epoch", "valAcc"},
		"box loss":      {"train/box_loss", "val/box_loss"},
		"grad norm":     {"grad_norm", "train/grad_norm"},
		"actor loss":    {"actor/loss"},
		"top5":          {"val/top5"},
		"val":           {"val"},
		"tokens s":      {"tokens/s"},
		"memory 0 %":    {"memory/0 %"},
		"epoch/train":   {"epoch/train"},
		"step time":     {"step_time", "train/step_time"},
		"batch size":    {"batch_size"},
		"mean":          {"mean"},
		"accuracy 1":    {"acc@1", "val/acc@1"},
		"accuracy 5":    {"acc@5"},
		"map50":         {"metrics/mAP50", "val/mAP50"},
		"map50 95":      {"metrics/mAP50-95"},
		"loss scale":    {"loss_scale", "train/loss_scale"},
		"mnli accuracy": {"eval_mnli_accuracy"},
	} {
		for _, name := range names {
			if got := Of(name); got != want {
				t.Errorf("%s is of %q, want %q", name, got, want)
			}
		}
	}
}

func TestChartsAreOfWhatBelongsTogether(t *testing.T) {
	for about, want := range map[string]string{
		"tags of TensorBoard":     "Loss/train Loss/test | Accuracy/train Accuracy/test",
		"Lightning":               "train_loss_step train_loss_epoch val_loss | val_acc | lr-Adam",
		"a loader for each data":  "train/loss val/0/loss val/1/loss | val/0/acc val/1/acc",
		"a data set for each":     "loss eval_loss eval_mnli_loss eval_qqp_loss | eval_mnli_accuracy eval_qqp_accuracy | eval_qqp_f1",
		"scores of data sets":     "train_loss | eval_mnli_accuracy eval_qqp_accuracy",
		"classes":                 "val/loss | val/AP_car val/AP_person val/AP | val/iou/road val/iou/sky",
		"parts of a loss":         "train/box_loss val/box_loss | train/cls_loss val/cls_loss | metrics/mAP50",
		"parts of a model":        "actor/loss | critic/loss | entropy",
		"two ways of one top":     "val/loss | val/acc@1 val/acc@5",
		"words with blanks, dots": "train loss validation.loss | learning rate",
		"loss and its scale":      "loss val/loss | loss_scale",
		"names in other letters":  "损失/train 损失/val | 准确率",
		"no score":                "step_time | epoch_time | memory/0 % | memory/1 %",
	} {
		var names []string
		for g := range strings.SplitSeq(want, " | ") {
			switch about {
			case "words with blanks, dots":
				names = append(names, strings.SplitAfter(strings.ReplaceAll(g, "loss val", "loss\x00val"), "\x00")...)
			case "no score":
				names = append(names, g)
			default:
				names = append(names, strings.Fields(g)...)
			}
		}
		for i := range names {
			names[i] = strings.TrimRight(names[i], "\x00")
		}
		var got []string
		for _, g := range Groups(names) {
			var of []string
			for _, i := range g {
				of = append(of, names[i])
			}
			got = append(got, strings.Join(of, " "))
		}
		if s := strings.Join(got, " | "); s != want {
			t.Errorf("%s:\n got  %s\n want %s", about, s, want)
		}
	}
}

func TestNoChartHasMoreCurvesThanNumbers(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("val/%d/loss", i))
	}
	groups := Groups(names)
	if len(groups) != 5 || len(groups[0]) != mostTogether || groups[1][0] != mostTogether {
		t.Errorf("%v", groups)
	}
}

func TestDataThatIsNotTrainedOnIsKnownByAnyWordOfAName(t *testing.T) {
	for name, want := range map[string]string{"val/loss": "val", "Loss/test": "test", "eval_mnli_accuracy": "eval", "lossVal": "val", "loss": "",
		"train/loss": "", "Accuracy/train": "", "value_loss": "", "latest": "", "contest/score": ""} {
		if got := HeldOut(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Whatever the names, each is in one chart, and in no other.
func TestEachSeriesIsInOneChart(t *testing.T) {
	part := rapid.SampledFrom([]string{"loss", "val", "/", "_", "train", "acc", "1", "@", "mnli", " ", "é", "\x00", "X", "step", "epoch", "."})
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "")
		}), 0, 30).Draw(t, "names")
		seen := map[int]int{}
		for _, g := range Groups(names) {
			for _, i := range g {
				seen[i]++
			}
		}
		for i := range names {
			if seen[i] != 1 {
				t.Fatalf("%q is in %d charts", names[i], seen[i])
			}
		}
	})
}
