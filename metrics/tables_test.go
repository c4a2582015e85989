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
		for _, head := range []string{"", "2024-05-01 12:00:00,123 INFO ", "INFO:root:", "[2024-05-01 12:00:00] ", "2024-05-01 12:00:00,123 - trainer - INFO - ", "[INFO] 2024-05-01 12:00:00,123 trainer.py:12 | ", "[MyTrainer] "} {
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

// Rows may begin with a label that no column names, and of the columns the one counts that is called
// so: the clock, what an attempt is numbered by, and how long it took are no series.
func TestTheColumnThatCountsMayStandBehindAnother(t *testing.T) {
	clocks := [...]string{"12:30:05", "12:30:06", "12:30:08", "12:30:09"}
	values := [...]string{"4.0233", "2.7543", "2.5289", "1.9516"}
	for _, c := range []struct{ name, header, row string }{
		{"a name before the count", "      Step     Time          Energy          fmax\n", "BFGS:    %d %s        %s        %s\n"},
		{"a name and one blank", "      Step     Time  Energy  fmax\n", "BFGS: %d %s %s %s\n"},
		{"a number of the attempt", "  Run   Step      Elapsed     Energy     fmax\n", "    1     %d     %s     %s     %s\n"},
		{"walls", "| Run | Step | Elapsed | Energy | fmax |\n|-----|------|---------|--------|------|\n", "| 1 | %d | %s | %s | %s |\n"},
		{"nothing before it", "  Step     Time     Energy     fmax\n", "     %d     %s     %s     %s\n"},
	} {
		for _, head := range []string{"", "2024-05-01 12:00:00,123 INFO "} {
			t.Run(c.name+" "+head, func(t *testing.T) {
				log := c.header
				for i, v := range values {
					log += fmt.Sprintf(c.row, i+1, clocks[i], v, "0.5"+v[4:])
				}
				log = head + strings.ReplaceAll(strings.TrimSuffix(log, "\n"), "\n", "\n"+head) + "\n"
				compareLines(t, drawn(&readText(t, log).Set), "Energy step 1:4.0233 2:2.7543 3:2.5289 4:1.9516\nfmax step 1:0.533 2:0.543 3:0.589 4:0.516\n")
			})
		}
	}
}

// A number and a colon before the cells count, though no column is named for them.
func TestANumberBeforeTheCellsCounts(t *testing.T) {
	log := "     pcost       dcost       gap    pres   dres\n 0: -4.1109e+00 -1.1304e+01  6e+01  5e+00  2e-16\n 1: -1.8189e+00 -8.0359e+00  6e+00  8e-16  3e-16\n 2: -2.2825e+00 -2.7768e+00  5e-01  3e-16  3e-16\n"
	compareLines(t, drawn(&readText(t, log).Set), "pcost step 0:-4.1109 1:-1.8189 2:-2.2825\ndcost step 0:-11.304 1:-8.0359 2:-2.7768\ngap step 0:60 1:6 2:0.5\npres step 0:5 1:8e-16 2:3e-16\ndres step 0:2e-16 1:3e-16 2:3e-16\n")
}

// What stands behind a thing in each row is no curve of that thing's number, and a list of things none.
func TestRowsOfThingsStayUnread(t *testing.T) {
	for name, log := range map[string]string{
		"layers":    "layer   step   mean   std\n 0   1   0.51   0.9\n 1   1   0.42   0.8\n 2   1   0.33   0.7\n",
		"durations": "Phase:   wait   run   total\nload:  0.5 0.7 1.2\nfit:  1.5 0.2 1.7\nsave:  0.1 0.3 0.4\n",
	} {
		t.Run(name, func(t *testing.T) { compareLines(t, drawn(&readText(t, log).Set), "") })
	}
}
