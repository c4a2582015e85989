package engine

import (
	"strings"
	"testing"
)

const hydraScript = `
import hydra
import lightning as L
@hydra.main(config_path="conf", config_name="train", version_base=None)
def main(cfg): ...
`

// What the script and its configuration have decides what is filled in.
func TestNodesAndDevicesAreFilledInWhereTheScriptHasThem(t *testing.T) {
	hydra := func(files ...string) map[string]string {
		sources := map[string]string{"src/train.py": hydraScript}
		for i := 0; i < len(files); i += 2 {
			sources[files[i]] = files[i+1]
		}
		return sources
	}
	flags := `p.add_argument("--num-nodes", type=int); p.add_argument('--devices')`
	for _, c := range []struct {
		name, command string
		sources       map[string]string
		want          string
	}{
		{"top level", "src/train.py max_epochs=5", hydra("src/conf/train.yaml", "max_epochs: 3\nnum_nodes: 1\ndevices: 1\n"), "max_epochs=5 num_nodes=2 devices=2"},
		{"nested", "src/train.py", hydra("src/conf/train.yaml", "trainer:\n  max_epochs: 3\n  num_nodes: 1\n  devices: auto\nmodel:\n  layers: 3\n"), "trainer.num_nodes=2 trainer.devices=2"},
		{"a group of the defaults list", "src/train.py", hydra("src/conf/train.yaml", "defaults:\n  - _self_\n  - trainer: ddp\n  - override hydra/launcher: basic\n", "src/conf/trainer/ddp.yaml", "num_nodes: 1\ndevices: 1\n"), "trainer.num_nodes=2 trainer.devices=2"},
		{"given", "src/train.py num_nodes=1 trainer.devices=4", hydra("src/conf/train.yaml", "num_nodes: 1\ntrainer:\n  devices: 1\n"), "train.py num_nodes=1 trainer.devices=4"},
		{"appended by the user", "src/train.py +num_nodes=2", hydra("src/conf/train.yaml", "num_nodes: 1\n"), "train.py +num_nodes=2"},
		{"no such key", "src/train.py a=1", hydra("src/conf/train.yaml", "max_epochs: 3\n"), "train.py a=1"},
		{"no configuration at hand", "src/train.py", hydra(), "train.py"},
		{"argparse", "t.py --lr 1", map[string]string{"t.py": flags}, "--lr 1 --num-nodes=2 --devices=2"},
		{"argparse, given", "t.py --num_nodes 2 --devices=1", map[string]string{"t.py": flags}, "--num_nodes 2 --devices=1"},
		{"LightningCLI", "t.py fit", map[string]string{"t.py": "cli = LightningCLI(Model)"}, "fit --trainer.num_nodes=2 --trainer.devices=2"},
		{"plain script", "t.py", map[string]string{"t.py": "Trainer(num_nodes=1)"}, "t.py"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, _ := firstArgv(t, "lightning", c.command, func(j *Job) { j.Sources, j.ProcsPerNode = c.sources, 2 })
			if got := Join(plan.Command); !strings.HasSuffix(got, c.want) {
				t.Errorf("%s, want it to end with %s", got, c.want)
			}
			if added := len(plan.Nodes[0][0].Argv) > len(strings.Fields(c.command))+1; added != (len(plan.Notes) > 0) {
				t.Errorf("the notes are %q", plan.Notes)
			}
		})
	}
}

func TestRanksOfLightningAreToldAsIfTorchrunHadStartedThem(t *testing.T) {
	plan, _ := firstArgv(t, "lightning", "t.py", func(j *Job) { j.ProcsPerNode, j.Run = 2, "r7" })
	got := strings.Join(plan.Nodes[1][1].Env, " ")
	for _, want := range []string{"WORLD_SIZE=4", "RANK=3", "LOCAL_RANK=1", "NODE_RANK=1", "GROUP_RANK=1", "MASTER_ADDR=10.0.0.1", "TORCHELASTIC_RUN_ID=r7"} {
		if !strings.Contains(" "+got+" ", " "+want+" ") {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
