package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// A line of names is a header when the lines behind it are rows of it: no word
// has to be known.
func TestATableIsKnownByItsForm(t *testing.T) {
	for name, head := range map[string]string{
		"by wide gaps": "  ep       obj      qerr     wall\n--------------------------------\n",
		"by bars":      "| ep | obj | qerr | wall |\n|---:|----:|-----:|-----:|\n",
		"by commas":    "ep,obj,qerr,wall\n",
	} {
		text := "Using 4 of 8 cores\n" + head
		for e := 1; e <= 4; e++ {
			cells := []string{fmt.Sprint(e), fmt.Sprintf("%.3f", 3/float64(e)), fmt.Sprintf("%.4f", .3/float64(e)), fmt.Sprintf("%.1fs", 1.7*float64(e))}
			switch name {
			case "by bars":
				text += "| " + strings.Join(cells, " | ") + " |\n"
			case "by commas":
				text += strings.Join(cells, ",") + "\n"
			default:
				text += fmt.Sprintf("%4s %9s %9s %8s\n", cells[0], cells[1], cells[2], cells[3])
			}
		}
		t.Run(name, func(t *testing.T) {
			compareLines(t, drawnOf(t, []byte("step by step\n"+text)), "obj epoch 1:3 2:1.5 3:1 4:0.75\nqerr epoch 1:0.3 2:0.15 3:0.1 4:0.075\n")
		})
	}
	if got := drawnOf(t, []byte("name  size  mode\n0  conv  train\n1  3.5  eval\nmodel  layers  params\n1  20  400\n2  20  500\n3  20  900\n")); got != "" {
		t.Errorf("of a summary of a model: %s", got)
	}
}

func TestFilesOfNumbersAreReadByTheirForm(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"semicolons":     {"Step;Loss;LR\n0;1.5;0.001\n100;0.75;0.0005\n", "Loss step 0:1.5 100:0.75\nLR step 0:0.001 100:0.0005\n"},
		"tabs":           {"epoch\ttrain_loss\n1\t1.5\n2\t0.75\n", "train/loss epoch 1:1.5 2:0.75\n"},
		"list of rows":   {"[{\"epoch\": 1, \"loss\": 1.5},\n {\"epoch\": 2,\n  \"loss\": 0.75}]\n", "loss epoch 1:1.5 2:0.75\n"},
		"lists by name":  {`{"loss": [1.5, 0.75], "val_loss": [1.6, 0.8]}`, "loss epoch 0:1.5 1:0.75\nval/loss epoch 0:1.6 1:0.8\n"},
		"batches":        {"{\"epoch\": 1, \"batch\": 50, \"loss\": 3}\n{\"epoch\": 1, \"batch\": 100, \"loss\": 2}\n{\"epoch\": 2, \"batch\": 50, \"loss\": 1}\n", "loss step 50:3 100:2 150:1\n"},
		"a list of text": {"[\"a\", \"b\"]\n", ""},
	} {
		t.Run(name, func(t *testing.T) { compareLines(t, drawnOf(t, []byte(c.text)), c.want) })
	}
}

// A table that a logger printed has a head before each of its lines, and is the same table.
func TestATableBehindTheHeadsOfALogger(t *testing.T) {
	tables := map[string]string{
		"gaps":  "Epoch   Train Loss   Val Loss\n-----   ----------   --------\n    1       0.9000     0.8000\n    2       0.7000     0.6000\n    3       0.5000     0.4000\n",
		"walls": "| Epoch | Train Loss | Val Loss |\n|-------|------------|----------|\n| 1 | 0.9000 | 0.8000 |\n| 2 | 0.7000 | 0.6000 |\n| 3 | 0.5000 | 0.4000 |\n",
		"frame": "+-------+------------+----------+\n| Epoch | Train Loss | Val Loss |\n+-------+------------+----------+\n| 1 | 0.9000 | 0.8000 |\n| 2 | 0.7000 | 0.6000 |\n| 3 | 0.5000 | 0.4000 |\n+-------+------------+----------+\n",
		"guess": "Gen    Best      Spread\n-----------------------\n  1    0.9000    0.8000\n  2    0.7000    0.6000\n  3    0.5000    0.4000\n",
	}
	for name, table := range tables {
		want := "train/loss epoch 1:0.9 2:0.7 3:0.5\nval/loss epoch 1:0.8 2:0.6 3:0.4\n"
		if name == "guess" {
			want = "Best step 1:0.9 2:0.7 3:0.5\nSpread step 1:0.8 2:0.6 3:0.4\n"
		}
		for _, head := range []string{"", "2024-05-01 12:00:00,123 INFO ", "INFO:root:", "[2024-05-01 12:00:00] ", "2024-05-01 12:00:00,123 - trainer - INFO - ", "[MyTrainer] "} {
			t.Run(name+" "+head, func(t *testing.T) {
				log := head + strings.ReplaceAll(strings.TrimSuffix(table, "\n"), "\n", "\n"+head) + "\n"
				compareLines(t, drawn(&readText(t, log).Set), want)
			})
		}
	}
}

// A first cell that looks like a logger's head is a cell where the header has no head.
func TestATimeInTheFirstCellIsNoHead(t *testing.T) {
	log := "timestamp              iterations   loss     rmse\n2024-01-01 10:00:00    1            0.9000   0.8000\n2024-01-01 10:00:01    2            0.7000   0.6000\n2024-01-01 10:00:02    3            0.5000   0.4000\n"
	compareLines(t, drawn(&readText(t, log).Set), "loss step 1:0.9 2:0.7 3:0.5\nrmse step 1:0.8 2:0.6 3:0.4\n")
}
