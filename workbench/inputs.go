package workbench

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/inputs"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// bring brings the channels of the run, and its state, to every node.
func (d *drive) bring(ctx context.Context) (string, bool, error) {
	site := inputs.Site{Cluster: d.plan.Cluster, Nodes: d.link.nodes, Disks: d.link.disks(), Cache: filepath.Join(d.w.dir, "checksums"),
		Python: func(node int) []string { return d.inEnvironment([]string{d.data.Envs[0].Python}, node) },
		Say:    func(node int, text string) { d.say(event.StepData, node, text) },
		Warn: func(text, next string) {
			_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: text, Next: next})
		}}
	text, unchanged, err := site.Bring(ctx, d.plan.Inputs)
	if err != nil || d.plan.Profile.State == "" {
		return text, unchanged, err
	}
	state, err := site.PutState(ctx, d.plan.Profile.StateDir())
	if state != "" && text != "" {
		text += "; "
	}
	return text + state, unchanged && state == "", err
}

// nodesOfRun is how many nodes the run has; the disk of a job that lands is that of
// one machine.
func (d *drive) nodesOfRun() int { return max(len(d.link.nodes), d.plan.Nodes) }

// inputEnv makes the directories that a run expects on a node, and gives the
// variables by which it finds its inputs. Node -1 is any of those that share a disk.
func (d *drive) inputEnv(ctx context.Context, node int, n *remote.Node, run string) ([]string, error) {
	if !inputs.Given(d.plan.Profile) {
		return nil, nil
	}
	disks := d.link.disks()
	at := inputs.Place{Cluster: d.plan.Cluster, Home: d.data.Envs[max(node, 0)].Home, State: inputs.StateDir(d.plan.Cluster, disks, node),
		Results: disks.OwnDir(planning.OwnDir(d.plan.Cluster, run), max(node, 0)), Node: node, Nodes: d.nodesOfRun(), GPUs: d.data.GPUs[max(node, 0)]}
	if err := inputs.MakeDirs(ctx, n, at.Dirs()); err != nil {
		return nil, &event.Fault{What: "make the directories of the run", Node: node, Why: err.Error(), Next: sharing.RoomNext(err, node)}
	}
	return at.Env(d.plan.Inputs, d.plan.Profile.State != ""), nil
}

// stateHome brings home the state that a run has left, when its results have been
// tried.
func (l *link) stateHome(ctx context.Context, run string, results error) error {
	_, data, err := l.w.runRecord(run)
	if err != nil || data.State == "" || ctx.Err() != nil {
		return results
	}
	return errors.Join(results, inputs.StateHome(ctx, l.cluster.Name, l.nodes, l.disks(), data.State))
}
