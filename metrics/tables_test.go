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
