package jobstory

import (
	"encoding/json"
	"fmt"

	"github.com/dlwb/dlwb/workbench/event"
)

// Search writes a trusted profile with a sweep over the argument --lr, and its train.py:
// so many steps with a pause, an expression of Python in seconds, behind each, and a loss
// that is the better the lower the rate. profile is the rest of the profile.
func (p *Project) Search(profile, sweep string, steps int, pause string) {
	p.T.Helper()
	p.Write("train.py", fmt.Sprintf(`import argparse, time
a = argparse.ArgumentParser()
a.add_argument("--lr", type=float)
lr = a.parse_args().lr
for i in range(1, %d):
    print(f"step {i} loss {lr + 1 / i:.4f}", flush=True)
    time.sleep(%s)
`, steps+1, pause))
	p.Write("dlwb.yaml", "name: jobs\n"+profile+"sweep: {metric: loss, "+sweep+"}\n")
	p.Trust("dlwb.yaml")
}

// Board is the leaderboard of the sweep.
func (p *Project) Board() (b event.SweepChanged) {
	p.T.Helper()
	if err := json.Unmarshal([]byte(p.Must("sweep", "--show", "--json")), &b); err != nil {
		p.T.Fatal(err)
	}
	return b
}
