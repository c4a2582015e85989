package goal

import "testing"

func TestOfAQuantityItIsKnownWhichWayIsBetter(t *testing.T) {
	for want, names := range map[Goal][]string{
		Least: {
			"loss", "val/loss", "val/loss_epoch", "loss_cls", "train/map_loss", "ppl", "perplexity", "test/wer", "val/wer", "eval/mse",
			"Loss/train", "trainloss",
		},
		Most: {
			"val/acc", "val/acc@1", "acc@1", "val/top5", "bbox_mAP", "map50-95", "val/f1_macro", "bleu4", "loss_acc", "episode_reward", "rollout/ep_rew_mean", "Accuracy/test",
		},
		None: {"lr", "tokens/s", "samples/s", "samples_per_second", "grad_norm", "epoch_time", "throughput", "fps", "std_reward", "loss_scale", "losses/entropy", "train", ""},
	} {
		for _, name := range names {
			if got := Of(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	if !Least.Better(1, 2) || Least.Better(2, 1) || !Most.Better(2, 1) || None.Better(1, 2) || None.Better(2, 1) {
		t.Error("the better one of two values is another one")
	}
}
