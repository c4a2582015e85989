package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// A column that has the time of each row says when, not how well.
func TestATimeOfTheDayIsNoSeries(t *testing.T) {
	for _, name := range []string{"time", "ts", "created_at", "unix_time", "date", "_timestamp", "train/timestamp"} {
		for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
			var rows, table strings.Builder
			fmt.Fprintf(&table, "step,loss,%s\n", name)
			for i := range 5 {
				fmt.Fprintf(&rows, "{\"step\": %d, \"loss\": %g, %q: %.0f}\n", i, 2-float64(i)/10, name, (1.7e9+float64(i))*unit)
				fmt.Fprintf(&table, "%d,%g,%.0f\n", i, 2-float64(i)/10, (1.7e9+float64(i))*unit)
			}
			for _, text := range []string{rows.String(), table.String()} {
				doc, err := Read(strings.NewReader(text), nil, nil)
				if err != nil || len(doc.Set.Series) != 1 || doc.Set.Series[0].Name != "loss" {
					t.Errorf("%s: %v (%v)", strings.SplitN(text, "\n", 3)[1], doc.Set.Series, err)
				}
			}
		}
	}
	doc, err := Read(strings.NewReader("{\"step\": 0, \"loss\": 2, \"time\": 0.5}\n{\"step\": 1, \"loss\": 1, \"time\": 0.25}\n"), nil, nil)
	if err != nil || len(doc.Set.Series) != 2 {
		t.Errorf("how long a step took: %v (%v)", doc.Set.Series, err)
	}
}

// Steps are written in groups of three as other numbers are.
func TestStepsInGroupsOfThree(t *testing.T) {
	var text strings.Builder
	for i := 500; i < 3000; i += 500 {
		step := fmt.Sprint(i)
		if i >= 1000 {
			step = step[:1] + "," + step[1:]
		}
		fmt.Fprintf(&text, "[%s/10,000] loss: 2.%d\n", step, 900-i/10)
	}
	doc, err := Read(strings.NewReader(text.String()), nil, nil)
	if err != nil || len(doc.Set.Series) != 1 || doc.Set.Series[0].Axis() != AxisStep {
		t.Fatalf("%v (%v)", doc.Set.Series, err)
	}
	if xy := doc.Set.Series[0].XY(AxisStep); xy[4][0] != 2500 {
		t.Errorf("%v", xy)
	}
}

// A split that a name begins with in camelCase is one, in a log and in a file.
func TestASplitInCamelCase(t *testing.T) {
	for _, text := range []string{"Epoch 1 TrainLoss: 2.5 valLoss: 3.5 testAUC=0.5\nEpoch 2 TrainLoss: 1.5 valLoss: 2.5 testAUC=0.75\n",
		"epoch,TrainLoss,valLoss,testAUC\n1,2.5,3.5,0.5\n2,1.5,2.5,0.75\n"} {
		doc, err := Read(strings.NewReader(text), nil, nil)
		var names []string
		for _, s := range doc.Set.Series {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != "train/loss val/loss test/auc" {
			t.Errorf("%q (%v)", got, err)
		}
	}
}
