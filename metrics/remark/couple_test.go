package remark

import (
	"fmt"
	"testing"

	"github.com/dlwb/dlwb/metrics/lexis"
)

func TestValuesWhoseNamesShareWordsAreToldApart(t *testing.T) {
	data := func(word string) string {
		return map[string]string{"train": "train", "val": "val", "tr": "train", "va": "val"}[word]
	}
	for line, want := range map[string]string{
		"mean/median reward 12.1/11.8, x":         "mean reward=12.1 median reward=11.8",
		"Loss (Train/Val) = 0.5 / 0.6 | y":        "train Loss=0.5 val Loss=0.6",
		"loss[tr/va] 0.5/0.6":                     "train loss=0.5 val loss=0.6",
		"train/val accuracy 85.0%/87.5%":          "train accuracy=85 val accuracy=87.5",
		"(train_loss, val_loss): (0.5, 0.6)":      "train_loss=0.5 val_loss=0.6",
		"[loss, acc] = [0.5, 0.8]":                "loss=0.5 acc=0.8",
		"Gen/Dis Loss: 0.3318/-0.0001":            "gen Loss=0.3318 dis Loss=-0.0001",
		"Loss (D/G): 0.7/1.2":                     "d Loss=0.7 g Loss=1.2",
		"MbTrain/Valid ACC: 0.950/0.901":          "mbtrain ACC=0.95 valid ACC=0.901",
		"Good/Bad score: 3/10":                    "",
		"train/val loss: 0.5":                     "",
		"train/val loss: 0.5/0.6/0.7":             "",
		"input/output size 12/14":                 "",
		"Loss (per/step) = 0.5 / 0.6":             "",
		"(train_loss, val_loss): (0.5, 0.6, 0.7)": "",
		"(train, val): (800, 200)":                "",
		"batch/total time: 0.1234 / 12":           "",
		"D(G(z)): 0.3 / 0.05":                     "",
		"val/loss 0.5 / 0.6":                      "",
		"train/val loss: 2024/01/02":              "",
	} {
		got := ""
		start, end := lexis.NextKey(line, 0)
		if c, ok := Coupled(line, start, end, data); ok {
			for i, name := range c.Names {
				f, _ := lexis.Number(line, c.At[i])
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("%s=%v", name, f.Value)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestItemsAndTitlesAreTold(t *testing.T) {
	for line, want := range map[string]string{
		"  - loss: 0.5":              " loss: 0.5",
		"+ global correct: 71.2%":    " global correct: 71.2%",
		"- 0.5 loss":                 "- 0.5 loss",
		" * Acc@1 71.2 Acc@5 90.1":   " * Acc@1 71.2 Acc@5 90.1",
		"--- loss: 0.5":              "--- loss: 0.5",
		"  - loss: 0.5, accuracy: 1": "  - loss: 0.5, accuracy: 1",
	} {
		if got := BehindBullet(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"  Inner loop:": "inner loop", "Results": "", "epoch 3:": "", "loss: 0.5": "", "what a line of prose says:": "", ":": "",
	} {
		if got := Title(line); got != want {
			t.Errorf("the title of %q is %q, want %q", line, got, want)
		}
	}
}

func TestASentenceMeasuresNothing(t *testing.T) {
	for text, want := range map[string]bool{
		"phase finished in 0m 12s": true, "on 4 devices": true,
		"loss 0.5 acc 0.8": false, "loss: 0.5": false, "epoch 3": false, "done": false, "| loss 0.5": false, "lr=1": false,
	} {
		if IsSentence(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestHowManyOfWhatWasFoundIsRead(t *testing.T) {
	for line, want := range map[string]string{
		"(k=20): 0.5": "20", " (10)": "", "(top = 5)": "5", "(train)": "", "(k=x)": "", "(0.5)": "", "(": "", "()": "", "(=5)": "", "": "", " ": "",
		"(a long word that is none 5": "", "(k=5": "",
	} {
		if many, end := At(line, 0); many != want || (end == 0) != (want == "") {
			t.Errorf("%q: %q up to %d, want %q", line, many, end, want)
		}
	}
}
