package remark

import "testing"

func TestAnObjectOfSettingsIsTold(t *testing.T) {
	for line, want := range map[string]bool{
		"Namespace(epochs=10, lr=0.1)":                                                             true,
		"args: Namespace(lr=0.1, loss=0.5)":                                                        true,
		"INFO - Config(lr=0.001, epoch=200, seed=1, optimizer='adam', amp=False)":                  true,
		"Result(loss=0.5, acc=0.9)":                                                                false,
		"TrainOutput(global_step=500, training_loss=0.3, metrics={'train_loss': 0.3, 'epoch': 1})": false,
		"epoch 3 (best=2): loss=0.5 acc=0.9 f1=0.8 split='val' lr=0.1":                             false,
		"epoch 3 Adam(lr=0.1, name='x', fused=None) loss=0.5 acc=0.9 f1=0.8":                       false,
		"Adam(lr=0.1, betas=(0.9, 0.999), eps=1e-08, foreach=None, amsgrad=False":                  true,
		"args = Namespace(lr=0.1, sizes=(3, 4))":                                                   true,
		"Namespace(lr=0.1) loss=0.5":                                                               false,
		"Loss (train): 0.5":                                                                        false,
		"loss=0.5 (lr=0.1":                                                                         false,
		"":                                                                                         false,
		"(":                                                                                        false,
		"A(":                                                                                       false,
		"A(=":                                                                                      false,
	} {
		if got := IsSettings(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestACallInSourceCodeIsNoOutput(t *testing.T) {
	for line, want := range map[string]bool{
		`    wandb.log({"acc": 0.5}, step=1)`:    true,
		`run.log_metric({'loss': 0.5})`:          true,
		`OrderedDict({'loss': 0.5})`:             false,
		`collections.OrderedDict({'loss': 0.5})`: false,
		`metrics({'loss': 0.5})`:                 false,
		`step 3: wandb.log({'loss': 0.5})`:       false,
		`my.log({'loss': 0.5}) and then some`:    false,
		`epoch 1: {'loss': 0.5}`:                 false,
	} {
		if got := IsCall(line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestABestValueStandsAlone(t *testing.T) {
	for line, want := range map[string]string{
		"Best rmse score: 0.5":        "rmse score",
		"  best val acc = 0.5":        "val acc",
		"Best epoch 3, val loss: 0.5": "",
		"Best: 0.5":                   "",
		"The best score: 0.5":         "",
	} {
		if start, end, _ := BestAlone(line, 0); line[start:end] != want {
			t.Errorf("%s: %q", line, line[start:end])
		}
	}
}
