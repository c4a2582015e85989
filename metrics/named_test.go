package metrics

import (
	"strings"
	"testing"
)

func TestWhatOnePathNames(t *testing.T) {
	mlflow := "1700000000000 0.5 0\n1700000001000 nan 10\n1700000002000 0.25 20\n"
	board := "Wall time,Step,Value\n1700000000.5,0,0.5\n1700000001.5,10,0.375\n1700000002.5,20,0.25\n"
	for _, c := range []struct{ path, text, format, want string }{
		{"out/mlruns/0/0a1b/metrics/val_loss", mlflow, "mlflow", "val/loss step 0:0.5 10:NaN 20:0.25\n"},
		{"mlruns/0/0a1b/metrics/system/gpu_0_power", mlflow, "mlflow", "system/gpu_0_power step 0:0.5 10:NaN 20:0.25\n"},
		{"run-20240101-tag-train_loss.csv", board, "csv", "train/loss step 0:0.5 10:0.375 20:0.25\n"},
		{"value.csv", board, "csv", "Value step 0:0.5 10:0.375 20:0.25\n"},
		{"rows.json", `[{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]`, "json", "loss step 1:0.5 2:0.25\n"},
		{"train.log", "step 1 loss 0.5\nstep 2 loss 0.25\n", "log", "loss step 1:0.5 2:0.25\n"},
	} {
		doc, err := Read(strings.NewReader(c.text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		doc.NameBy(c.path)
		if got := drawn(&doc.Set); got != c.want || string(doc.Format) != c.format {
			t.Errorf("%s as %s:\n got %swant %s", c.path, doc.Format, got, c.want)
		}
	}
}
