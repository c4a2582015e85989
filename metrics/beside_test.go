package metrics

import (
	"strings"
	"testing"
)

// What stands beside values, before and behind them, whatever script prints it. Each of
// these was read wrongly once.
func TestWhatStandsBesideValuesIsUnderstood(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"the second half of a line is of its own data",
			"Epoch 1/2 | train loss 0.9 acc 0.5 | val loss 0.8 acc 0.55\nEpoch 2/2 | train loss 0.7 acc 0.6 | val loss 0.65 acc 0.62\n",
			"train/loss epoch 1:0.9 2:0.7\ntrain/acc epoch 1:0.5 2:0.6\nval/loss epoch 1:0.8 2:0.65\nval/acc epoch 1:0.55 2:0.62\n"},
		{"a split in brackets behind the name",
			"Epoch: 1 \t Loss (train): 0.9 (val): 0.8 \tAcc (train) 0.5 (val): 0.55\nEpoch: 2 \t Loss (train): 0.7 (val): 0.65 \tAcc (train) 0.6 (val): 0.62\n",
			"train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.65\ntrain/acc epoch 1:0.5 2:0.6\nval/acc epoch 1:0.55 2:0.62\n"},
		{"and close to it", "epoch=1 loss[train]=0.9 loss[test]=0.8\nepoch=2 loss[train]=0.7 loss[test]=0.6\n",
			"train/loss epoch 1:0.9 2:0.7\ntest/loss epoch 1:0.8 2:0.6\n"},
		{"before the names", "Epoch 1 (train) loss: 0.9 acc: 0.5 (val) loss: 0.8 acc: 0.55\nEpoch 2 (train) loss: 0.7 acc: 0.6 (val) loss: 0.6 acc: 0.65\n",
			"train/loss epoch 1:0.9 2:0.7\ntrain/acc epoch 1:0.5 2:0.6\nval/loss epoch 1:0.8 2:0.6\nval/acc epoch 1:0.55 2:0.65\n"},
		{"over how many a value is", "iter 100 loss (avg of 100): 0.9 acc (last 50): 0.5\niter 200 loss (avg of 100): 0.8 acc (last 50): 0.6\n",
			"loss step 100:0.9 200:0.8\nacc step 100:0.5 200:0.6\n"},
		{"the average beside the value", "Episode 10 | Reward: 27.5 | Avg Reward (last 100): 24.25\nEpisode 20 | Reward: 35.0 | Avg Reward (last 100): 30.5\n",
			"reward step 10:27.5 20:35\naverage_reward step 10:24.25 20:30.5\n"},
		{"a mark that is glued to the number", "Epoch 1 | loss 0.9 | val_loss 0.8*\nEpoch 2 | loss 0.7 | val_loss 0.85\nEpoch 3 | loss 0.6 | val_loss 0.7*\n",
			"loss epoch 1:0.9 2:0.7 3:0.6\nval/loss epoch 1:0.8 2:0.85 3:0.7\n"},
		{"a cell behind the columns", "Epoch  Train Loss  Val Loss   Val Acc\n---------------------------------\n    1      0.9000    0.8000    0.5000  (12.3s) ✓\n    2      0.7000    0.8500    0.6000  (12.4s)\n",
			"train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.85\nval/acc epoch 1:0.5 2:0.6\n"},
		{"a mark behind a line of a block", "Epoch 1/2 Summary\n=====\nTrain Loss: 0.9\nValid Loss: 0.8 (BEST)\nPESQ: 1.29 (BEST)\nEpoch 2/2 Summary\n=====\nTrain Loss: 0.7\nValid Loss: 0.85\nPESQ: 1.5 (BEST)\n",
			"train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.85\nPESQ epoch 1:1.29 2:1.5\n"},
		{"the same name twice, behind names that say their data",
			"[Epoch 01] train_loss=0.9 acc=0.5 | val_loss=0.8 acc=0.55\n[Epoch 02] train_loss=0.7 acc=0.6 | val_loss=0.65 acc=0.62\n",
			"train/loss epoch 1:0.9 2:0.7\nacc epoch 1:0.5 2:0.6\nval/loss epoch 1:0.8 2:0.65\nval/acc epoch 1:0.55 2:0.62\n"},
		{"a split that is the name of a value says nothing of the next", "Epoch 1: Train=0.9  Val=0.8  Gap=-0.1 ✓\nEpoch 2: Train=0.7  Val=0.75  Gap=+0.05\nEpoch 3: Train=0.6  Val=0.7  Gap=+0.1\n",
			"train epoch 1:0.9 2:0.7 3:0.6\nval epoch 1:0.8 2:0.75 3:0.7\nGap epoch 1:-0.1 2:0.05 3:0.1\n"},
		{"a counter that is glued to its word", "[E01] train loss 0.9 | val loss 0.8\n[E02] train loss 0.7 | val loss 0.6\n", "train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.6\n"},
		{"and behind a tag", "[KDM] ep005 | train_loss=0.9\n[KDM] ep010 | train_loss=0.7\n", "train/loss epoch 5:0.9 10:0.7\n"},
		{"what is glued elsewhere counts nothing", "step 1 loss 0.9 epoch1_acc 0.5\nstep 2 loss 0.8 epoch1_acc 0.6\n", "loss step 1:0.9 2:0.8\nepoch1_acc step 1:0.5 2:0.6\n"},
		{"a unit of a score is not of the next name", "Epoch: 1 Loss: 0.9 PSNR: 20.5 dB SSIM: 0.5\nEpoch: 2 Loss: 0.8 PSNR: 22.5 dB SSIM: 0.6\n",
			"loss epoch 1:0.9 2:0.8\npsnr epoch 1:20.5 2:22.5\nssim epoch 1:0.5 2:0.6\n"},
		{"nor of a line of its own", "Epoch 1 loss: 0.9\nAverage PSNR: 20.5 dB.\nEpoch 2 loss: 0.8\nAverage PSNR: 22.5 dB.\n", "loss epoch 1:0.9 2:0.8\naverage_psnr epoch 1:20.5 2:22.5\n"},
		{"long words before a loss", "Epoch 1/2 | Discriminator Loss: 0.9 | Generator Loss: 0.8\nEpoch 2/2 | Discriminator Loss: 0.7 | Generator Loss: 0.6\n",
			"discriminator_loss epoch 1:0.9 2:0.7\ngenerator_loss epoch 1:0.8 2:0.6\n"},
		{"splits in other tongues", "[época 001/2] treino loss=0.9 acc=50.00% | teste loss=0.8 acc=55.00% | 12.1s\n[época 002/2] treino loss=0.7 acc=60.00% | teste loss=0.6 acc=65.00% | 12.2s\n",
			"train/loss epoch 1:0.9 2:0.7\ntrain/acc epoch 1:50 2:60\ntest/loss epoch 1:0.8 2:0.6\ntest/acc epoch 1:55 2:65\n"},
		{"full-width signs", "Epoch：1/2，train_loss：0.9，val_loss＝0.8（验证集）\nEpoch：2/2，train_loss：0.7，val_loss＝0.6（验证集）\n",
			"train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.6\n"},
		{"a model that was kept", "step 10 loss 0.9\nstep 20 loss 0.8\nSaved checkpoint (loss 0.75)\n✓ Checkpoint saved to out/a.pt (loss=0.1234)\nSaving best model with acc 0.9 ...\nDone. Best loss: 0.1200 at step 30\nstep 30 loss 0.7\n",
			"loss step 10:0.9 20:0.8 30:0.7\n"},
		{"what stands before such a sentence is a value", "step 10 loss 0.9, saving model\nstep 20 loss 0.8\n",
			"loss step 10:0.9 20:0.8\n"},
		{"a model that is no model kept", "[model] step 10 loss 0.9\n[model] step 20 loss 0.8\n",
			"loss step 10:0.9 20:0.8\n"},
		{"what libraries print around a number", "step 10: loss = tf.Tensor(0.9, shape=(), dtype=float32), acc jnp.float32(0.5)\nstep 20: loss = tf.Tensor(0.8, shape=(), dtype=float32), acc jnp.float32(0.6)\n",
			"loss step 10:0.9 20:0.8\nacc step 10:0.5 20:0.6\n"},
		{"in dictionaries too", "epoch 1 | val_metrics={'f1': np.float16(0.5), 'loss': jax.Array(0.9, dtype=float32)}\nepoch 2 | val_metrics={'f1': np.float16(0.6), 'loss': jax.Array(0.8, dtype=float32)}\n",
			"val/f1 epoch 1:0.5 2:0.6\nval/loss epoch 1:0.9 2:0.8\n"},
		{"counters in round brackets", "Epoch: (0/2), Batch: (0/100), D_Loss: 0.9, G_Loss: 0.5\nEpoch: (0/2), Batch: (50/100), D_Loss: 0.8, G_Loss: 0.6\nEpoch: (1/2), Batch: (0/100), D_Loss: 0.7, G_Loss: 0.7\n",
			"d_loss step 0:0.9 50:0.8 100:0.7\ng_loss step 0:0.5 50:0.6 100:0.7\n"},
		{"a share of the run that agrees", "9/12 - 75.00%\n[train] loss: 0.9\n[test] loss: 0.8\n10/12 - 83.33%\n[train] loss: 0.7\n[test] loss: 0.6\n",
			"train/loss epoch 9:0.9 10:0.7\ntest/loss epoch 9:0.8 10:0.6\n"},
		{"arrows to values", "Epoch 1/2\n- Training:    Loss -> 0.9,   Accuracy -> 0.5\n- Validation:  Loss -> 0.8,   Accuracy -> 0.6\nEpoch 2/2\n- Training:    Loss -> 0.7,   Accuracy -> 0.55\n- Validation:  Loss -> 0.6,   Accuracy -> 0.65\n",
			"train/loss epoch 1:0.9 2:0.7\ntrain/accuracy epoch 1:0.5 2:0.55\nval/loss epoch 1:0.8 2:0.6\nval/accuracy epoch 1:0.6 2:0.65\n"},
		{"a table with a series in each row", "series,split,step,epoch,time,value,source\nloss,,10,,2026-01-02T03:04:05Z,0.9,output\nloss,,20,,2026-01-02T03:04:06Z,0.8,output\nacc,val,10,,,0.5,output\nacc,val,20,,,0.6,output\n",
			"loss step 10:0.9 20:0.8\nval/acc step 10:0.5 20:0.6\n"},
		{"objects with a series each", "{\"series\":\"loss\",\"split\":\"\",\"step\":10,\"epoch\":null,\"value\":0.9}\n{\"series\":\"loss\",\"split\":\"\",\"step\":20,\"epoch\":null,\"value\":0.8}\n",
			"loss step 10:0.9 20:0.8\n"},
	} {
		t.Run(c.name, func(t *testing.T) { compareLines(t, drawn(&readText(t, c.log).Set), c.want) })
	}
}

// The full-width signs of a line are not those of an expression of the user.
func TestAnExpressionSeesTheLineAsItIs(t *testing.T) {
	doc, err := Read(strings.NewReader("第1轮：损失＝0.5，loss：0.7\n"), []UserMetric{{Name: "mine", Regex: `损失＝(\d\.\d)`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := drawn(&doc.Set); !strings.Contains(got, "mine ") || !strings.Contains(got, ":0.5") {
		t.Errorf("the expression found %q", got)
	}
}

// Nothing of this was measured by the run that prints it.
func TestWhatIsNotOfTheRunIsNoSeries(t *testing.T) {
	for name, text := range map[string]string{
		"a checkpoint that was loaded": "Namespace(lr=0.1, loss='ce', acc_threshold=0.5, epochs=10)\nLoading checkpoint from out/best.pt (epoch 12, loss 0.1234, acc 91.2)\nLoaded weights: val_loss=0.1234, val_acc=0.912\nRestored model with PSNR: 32.10 dB\nModel parameters: 25.6M (trainable 24.1M)\n",
		"models that were kept":        "Saving model checkpoint to ./out/checkpoint-500\nSaved checkpoint (loss 0.53) at 10:03\nNew best val loss: 0.5312\nBest checkpoint saved (val_loss=0.5312)\nModel saved: acc=0.91\nEarly stopping: no improvement in val_loss (best: 0.5312)\n",
		"settings in brackets":         "config:\n  lr (default): 0.001\n  dropout (train): 0.5\n  dropout (test): 0.0\n  weight[train]=0.8\n  window (last 100): 50\nSplit: train=0.8 val=0.1 test=0.1\n",
		"steps of a script":            "step1: download the data\nstep2: unpack 3.2 GB\nstep3: 15 files\n[E01] error: file not found\n",
		"settings in full width":       "训练集：45000，验证集：5000\n配置：学习率＝0.001，批大小＝64\n用时：12.5秒\n",
	} {
		doc := readText(t, text)
		if got := drawn(&doc.Set); got != "" {
			t.Errorf("%s: %s", name, got)
		}
		if p := doc.Progress; name == "steps of a script" && p.Step+p.Steps != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
