package metrics

import (
	"strings"
	"testing"
)

// A progress.csv as Ray 2.60 writes it for a trial.
const rayProgress = `epoch,loss,val_loss,val_acc,timestamp,checkpoint_dir_name,done,training_iteration,trial_id,date,time_this_iter_s,time_total_s,pid,hostname,node_ip,time_since_restore,iterations_since_restore,config/lr,config/momentum
1,1.2937281131744385,1.1031250953674316,0.7003366947174072,1795551350,,False,1,4e4c5_00005,2026-11-24_20-15-50,51.35,51.35,2508,vm,127.0.0.1,51.35,1,0.3,0.5
2,0.24927102029323578,0.3136785328388214,0.9124578833580017,1795551351,,True,2,4e4c5_00005,2026-11-24_20-15-51,0.28,51.63,2508,vm,127.0.0.1,51.63,2,0.3,0.5
`

func TestATrialOfRayTuneIsItsMetricsAndItsConfiguration(t *testing.T) {
	var names []string
	err := ReadCSV(strings.NewReader(rayProgress), func(points ...Point) {
		for _, p := range points {
			if !strings.Contains(strings.Join(names, " ")+" ", p.Name+" ") {
				names = append(names, p.Name)
			}
		}
	})
	if got := strings.Join(names, " "); err != nil || got != "loss val/loss val/acc config/lr config/momentum" {
		t.Errorf("%v: %s", err, got)
	}
	n := fileNames{}
	for event, csv := range map[string]string{"ray/tune/val_loss": "val_loss", "ray/tune/info/learner/lr": "info/learner/lr"} {
		if n.name(event) != n.name(csv) {
			t.Errorf("%s is %s in the event file, and %s in the CSV", event, n.name(event), n.name(csv))
		}
	}
}
