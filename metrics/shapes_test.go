package metrics

import "testing"

// What the shape of lines says, whatever tool they are of. Each of these was read
// wrongly once.
func TestTheShapeOfLinesIsLearnt(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"a validation that a line announces (Paddle)",
			"Epoch 1/2\nstep 4/8 - loss: 0.9\nstep 8/8 - loss: 0.8\nEval begin...\nstep 2/4 - loss: 0.7\nstep 4/4 - loss: 0.6\nEval samples: 40\nEpoch 2/2\nstep 4/8 - loss: 0.5\nstep 8/8 - loss: 0.4\nEval begin...\nstep 2/4 - loss: 0.45\nstep 4/4 - loss: 0.35\nEval samples: 40\n",
			"loss step 4:0.9 8:0.8 12:0.5 16:0.4\neval/loss epoch 1:0.6 2:0.35\n"},
		{"a validation that counts other steps (Poutyne)",
			"Epoch: 1/2 Step: 4/8 loss: 0.9\nEpoch: 1/2 Step: 8/8 loss: 0.8\nEpoch: 1/2 Step: 2/4 val_loss: 0.7\nEpoch: 1/2 Step: 4/4 val_loss: 0.6\nEpoch: 2/2 Step: 4/8 loss: 0.5\nEpoch: 2/2 Step: 8/8 loss: 0.4\nEpoch: 2/2 Step: 2/4 val_loss: 0.5\nEpoch: 2/2 Step: 4/4 val_loss: 0.3\n",
			"loss step 4:0.9 8:0.8 12:0.5 16:0.4\nval/loss epoch 1:0.6 2:0.3\n"},
		{"the training goes on without a word",
			"step 10 loss 0.9\nstep 20 loss 0.8\nValidating...\nstep 30 loss 0.7\nstep 40 loss 0.6\n",
			"loss step 10:0.9 20:0.8 30:0.7 40:0.6\n"},
		{"blocks below a heading",
			"Epoch 1\n-----\n  Train:\n    loss : 0.9\n  Validation:\n    loss : 0.8\n\nEpoch 2\n-----\n  Train:\n    loss : 0.7\n  Validation:\n    loss : 0.6\n",
			"train/loss epoch 1:0.9 2:0.7\nval/loss epoch 1:0.8 2:0.6\n"},
		{"a name beside a known one in a block",
			"step 1: loss=0.9\n** Evaluation **\n  f1 = 0.5\n  exact_match = 0.4\nstep 2: loss=0.8\n** Evaluation **\n  f1 = 0.6\n  exact_match = 0.55\n",
			"loss step 1:0.9 2:0.8\neval/f1 step 1:0.5 2:0.6\neval/exact_match step 1:0.4 2:0.55\n"},
		{"batches that begin anew before their epoch is told of",
			"batch 50/100 loss 0.9\nbatch 100/100 loss 0.8\nEpoch 1 complete. Validation loss: 0.7\nbatch 50/100 loss 0.6\nbatch 100/100 loss 0.5\nEpoch 2 complete. Validation loss: 0.4\n",
			"loss step 50:0.9 100:0.8 150:0.6 200:0.5\nval/loss epoch 1:0.7 2:0.4\n"},
		{"roles are ranks",
			"[GPU 1] step 1 | loss 0.9\n[GPU 0] step 1 | loss 0.8\n[GPU 1] step 2 | loss 0.7\n[GPU 0] step 2 | loss 0.6\n",
			"loss step 1:0.8 2:0.6\n"},
		{"a rank before a bar",
			"rank1 | iter 5 | loss: 0.9\nrank0 | iter 5 | loss: 0.8\nrank0 | iter 10 | loss: 0.6\nrank1 | iter 10 | loss: 0.7\n",
			"loss step 5:0.8 10:0.6\n"},
		{"a warning quotes no value",
			"step 1: loss = 0.9\n/x/lr_scheduler.py:14: UserWarning: call it later. warnings.warn(\"loss 3.0\")\nstep 2: loss = 0.8\n",
			"loss step 1:0.9 2:0.8\n"},
		{"a drawn table",
			"┏━━━━━━━┳━━━━━━━━━━━━┓\n┃ Epoch ┃ Train loss ┃\n┡━━━━━━━╇━━━━━━━━━━━━┩\n│ 1     │ 0.9000     │\n│ 2     │ 0.8000     │\n└───────┴────────────┘\n",
			"train/loss epoch 1:0.9 2:0.8\n"},
		{"events with a key and a value",
			"{\"key\": \"train_loss\", \"value\": 0.9, \"step\": 10}\n{\"key\": \"train_loss\", \"value\": 0.8, \"step\": 20}\n",
			"train/loss step 10:0.9 20:0.8\n"},
		{"a split that a member says",
			"{\"step\": 10, \"split\": \"val\", \"loss\": 0.9}\n{\"step\": 20, \"split\": \"val\", \"loss\": 0.8}\n",
			"val/loss step 10:0.9 20:0.8\n"},
		{"brackets that are of a name (icefall)",
			"Epoch 0, batch 0, loss[loss=1.5, over 24.00 frames. ], tot_loss[loss=1.25, over 24.00 frames. ], batch size: 4\nEpoch 0, batch 10, loss[loss=0.5, over 28.00 frames. ], tot_loss[loss=0.75, over 52.00 frames. ], batch size: 4\n",
			"loss step 0:1.5 10:0.5\ntot_loss step 0:1.25 10:0.75\n"},
		{"dots behind a number", "Epoch: 1/2... Loss: 0.9...\nEpoch: 2/2... Loss: 0.8...\n", "loss epoch 1:0.9 2:0.8\n"},
		{"the seconds of a clock", "{\"ts\": 1700000000.5, \"step\": 1, \"loss\": 0.9}\n{\"ts\": 1700000003.5, \"step\": 2, \"loss\": 0.8}\n{\"ts\": 1700000007.5, \"step\": 3, \"loss\": 0.7}\n", "loss step 1:0.9 2:0.8 3:0.7\n"},
		{"thousands in brackets", "[900] Accuracy: 84.00%\n[1,000] Accuracy: 86.25%\n[1,100] Accuracy: 87.50%\n", "accuracy step 900:84 1000:86.25 1100:87.5\n"},
	} {
		t.Run(c.name, func(t *testing.T) { compareLines(t, drawn(&readText(t, c.log).Set), c.want) })
	}
}

// Lines that count and each name another thing are a list, and no curve; what counts behind them is read.
func TestAListOfThingsIsNoTraining(t *testing.T) {
	log := "Columns:\n\t1: \"age\" NUMERICAL mean:38.25 min:17 max:90 sd:13.5\n\t2: \"height\" NUMERICAL mean:1.75 min:1.4 max:2.1 sd:0.12\n\t3: \"weight\" NUMERICAL mean:70.5 min:40 max:120 sd:12.25\n" +
		"Train tree 1/40 train-loss:1.1387 valid-loss:0.7701 [total:0.05s iter:0.05s]\nTrain tree 2/40 train-loss:1.0106 valid-loss:0.6808 [total:0.05s iter:0.00s]\nTrain tree 3/40 train-loss:0.9056 valid-loss:0.6036 [total:0.05s iter:0.00s]\nTrain tree 40/40 train-loss:0.0824 valid-loss:0.0167 [total:0.12s iter:0.00s]\n"
	compareLines(t, drawn(&readText(t, log).Set), "train/loss step 1:1.1387 2:1.0106 3:0.9056 40:0.0824\nval/loss step 1:0.7701 2:0.6808 3:0.6036 40:0.0167\n")
}
