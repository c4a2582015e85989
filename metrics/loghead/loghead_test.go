package loghead

import "testing"

// What loggers write before a message is passed, and no part of the message.
func TestAHeadEndsWhereTheMessageBegins(t *testing.T) {
	for head, message := range map[string]string{
		"2023-01-01 12:00:01,125 ":                             "reward: 0.43  spl: 0.27  success: 0.27",
		"2023-01-01 12:00:02,125 ":                             "train loss 0.5 error 0.3",
		"2023-01-01 12:00:01,125 - INFO - joeynmt.training - ": "Epoch 1, Step: 100",
		"01 Jan 12:00    INFO  ":                               "valid result:",
		"2024-05-01 12:30:45 info ":                            "loss: 0.5",
		"2021-02-01 10:00:04.950000: I evaluation.py:338] ":    "Evaluation result for step 500: loss = 0.5",
		"[ Mon Mar  4 10:00:30 2019 ] ":                        "Eval epoch: 0",
		"[INFO] 2024-05-01 12:30:45,123 trainer.py:12 | ":      "Epoch | Loss",
		"[INFO] 2024-05-01 12:30:45,123 ":                      "v1.5:12 loss 0.5",
		"10/01 10:00:11 PM ":                                   "train_nelbo 0.8",
	} {
		if at := Of(head + message); at != len(head) && at != len(head)-1 {
			t.Errorf("of %q the message is %q", head+message, (head + message)[at:])
		}
	}
}
