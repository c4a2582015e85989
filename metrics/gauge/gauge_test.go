package gauge

import "testing"

// Bars count before, behind and inside their pictures, or in percent alone.
func TestBarsAreReadWhereverTheyCount(t *testing.T) {
	for text, want := range map[string]Bar{
		" [=== 2/40 ==>.......]  Loss: 1.67":                             {N: 2, Total: 40, Body: "  Loss: 1.67", Whole: true},
		"Training:  25% |█████     | Accuracy: 0.71":                     {Title: "Training", N: 25, Total: 100, Body: " Accuracy: 0.71", Whole: true, Share: true},
		"Epoch 1/2 4/40 |###    | loss: 1.4 ETA: 0:00:01":                {Title: "Epoch 1/2", N: 4, Total: 40, Body: " loss: 1.4 ETA: 0:00:01"},
		" 10% (4 of 40) |##      | loss: 1.4":                            {N: 4, Total: 40, Body: " loss: 1.4"},
		"Epoch 1/2 |███    | ▂▄▆ 4/40 [10%] in 0s (~1s, 5.1/s) loss=1.4": {Title: "Epoch 1/2", N: 4, Total: 40, Body: " loss=1.4"},
		"loss 1.4:  10%|#    | 4/40 [00:01<00:09,  4.0it/s]":             {Title: "loss 1.4", N: 4, Total: 40, Body: "00:01<00:09,  4.0it/s"},
	} {
		if got, ok := Read(text); !ok || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"| epoch | loss |", "acc 40% | loss | 0.5 |", "[INFO] 2/40 done", "step 4 | loss 0.5 | lr 0.1", "Epoch: 1/4 Step: 1/8  12.50% |██  |ETA: 0.09s loss: 1.1"} {
		if got, ok := Read(text); ok {
			t.Errorf("%q is a bar: %+v", text, got)
		}
	}
}

// What changes in a title with each frame makes no other bar of it.
func TestATitleThatCountsIsOneTitle(t *testing.T) {
	for title, n := range map[string]float64{"GEN 3": 3, "GEN 4": 3, "GEN": 3} {
		if got := Uncounted(title, n); got != "GEN" {
			t.Errorf("%q at %v is %q", title, n, got)
		}
	}
	if got := Uncounted("Fold 2", 30); got != "Fold 2" {
		t.Errorf("a fold is %q", got)
	}
	if Form("loss 0.51") != Form("loss -0.4") {
		t.Error("the values of a title tell bars apart")
	}
}
