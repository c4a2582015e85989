package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/again"
	"github.com/dlwb/dlwb/workbench/atnode"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/naming"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/rankport"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// up brings the machines up and reaches them.
func (d *drive) up(ctx context.Context) (string, bool, error) {
	provider, err := d.w.provider(d.plan.Provider)
	if err != nil {
		return "", false, err
	}
	known := len(d.data.Cluster.Nodes) == d.plan.Nodes
	if n := len(d.data.Cluster.Nodes); n > 0 && !known {
		return "", false, &event.Fault{What: "use cluster " + d.plan.Cluster, Node: -1,
			Why:  fmt.Sprintf("it has %s and the profile asks for %d", units.Count(n, "node"), d.plan.Nodes),
			Next: "dlwb down " + d.plan.Cluster + ", then again"}
	}
	life, err := d.w.lifeOf(d.record)
	if err != nil {
		return "", false, err
	}
	spec := planning.Spec(d.plan.Profile)
	spec.Held = d.w.heldOf(d.record.Name)
	c, err := provider.Up(ctx, life, spec, func(node int, text string) { d.say(event.StepCluster, node, text) })
	if err != nil {
		return "", false, &event.Fault{What: "bring up the cluster", Node: -1, Why: err.Error(), Next: event.NextOf(err)}
	}
	for _, text := range c.Notices {
		_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: text})
	}
	c.Notices = nil
	c = remember(c, d.data.Cluster)
	if !reflect.DeepEqual(c, d.data.Cluster) {
		d.w.unlink(c.Name) // an older address is no use
	}
	d.data.Cluster = c
	if err := d.saveData(); err != nil {
		return "", false, err
	}
	if d.link, err = d.w.open(d.record); err != nil {
		return "", false, err
	}
	if err := d.firstContact(ctx); err != nil {
		return "", false, err
	}
	if err := d.w.connect(ctx, d.link); err != nil {
		return "", false, err
	}
	if err := d.findWays(ctx); err != nil {
		return "", false, err
	}
	c = d.data.Cluster
	d.w.observe(d.s, d.link)
	if err := d.w.publish(d.s, clusterUp(c)); err != nil {
		return "", false, err
	}
	d.keepActive()
	return fmt.Sprintf("%s, ssh answers", units.Count(len(c.Nodes), "node")), known, nil
}

func clusterUp(c cloud.Cluster) event.ClusterUp {
	return event.ClusterUp{Provider: c.Provider, Region: c.Region, Zone: c.Zone, Instance: c.Instance, Spot: c.Spot,
		Nodes: c.Nodes, PricePerHour: c.PricePerHour, Costs: c.Costs, Ends: c.ExpiresAt, Lacks: c.Lacks}
}

// prepare sets up Python on every node.
func (d *drive) prepare(ctx context.Context) (string, bool, error) {
	spec, err := d.filledSpec(ctx)
	if err != nil {
		return "", false, err
	}
	spec.Group = atnode.Wheels(d.link.nodes, traits(d.plan.Provider).SharedUplink)
	defer spec.Group.Close(context.WithoutCancel(ctx))
	results, err := d.prepareNodes(ctx, spec)
	if err != nil {
		return "", false, err
	}
	d.data.Envs = results
	if d.data.GPUs, err = d.countGPUs(ctx); err != nil {
		return "", false, err
	}
	notes := append(results[0].Notes, d.mended(results)...)
	if err := d.saveData(); err != nil {
		return "", false, err
	}
	for _, note := range notes {
		_ = d.w.publish(d.s, event.Noticed{Level: "info", Text: note})
	}
	return results[0].Text, !slices.ContainsFunc(results, func(r environment.Result) bool { return !r.Skipped }), nil
}

// mended is what to tell of a fault of PyTorch that is worked around: once for a
// cluster, and to those whose code imports it.
func (d *drive) mended(results []environment.Result) []string {
	r := results[0]
	if r.Mended == "" || r.Mended == d.data.Mended || !planning.ImportsTorch(d.plan.Profile) {
		return nil
	}
	d.data.Mended = r.Mended
	return []string{r.Mended}
}

// filledSpec is what the profile asks for, with the file that it is made from. An
// image is built from the code: that comes to the nodes first.
func (d *drive) filledSpec(ctx context.Context) (environment.Spec, error) {
	spec := d.environmentSpec()
	if d.plan.Profile.EnvironmentFile() == "" {
		return spec, nil
	}
	content, err := d.w.plans.Requirements(d.plan.Profile)
	if err != nil {
		return spec, &event.Fault{What: "read the file of the environment", Node: -1, Why: err.Error()}
	}
	spec.Content = content
	if spec.Kind == environment.Docker {
		_, _, err = d.syncIn(ctx, event.StepEnvironment)
	}
	return spec, err
}

// prepareNodes makes the environment of every node. One that fails does not end
// what the others are at: that is of use for the next try, and each failure is told.
func (d *drive) prepareNodes(ctx context.Context, spec environment.Spec) ([]environment.Result, error) {
	results := make([]environment.Result, len(d.link.nodes))
	failures := make([]*environment.Failure, len(d.link.nodes))
	prepare := func(ctx context.Context, i int, spec environment.Spec) error {
		if own := d.data.Cluster.Nodes[i].Python; own != "" {
			spec.Python = own
		}
		spec.Modules = slices.Concat(d.modules, d.data.Cluster.Nodes[i].Modules)
		r, err := environment.Prepare(ctx, atnode.Runner{Node: d.link.nodes[i]}, spec, func(text string) { d.say(event.StepEnvironment, i, text) })
		results[i] = r
		if errors.As(err, &failures[i]) {
			d.say(event.StepEnvironment, i, "failed: "+failures[i].Why)
			return nil
		}
		return err
	}
	if err := d.link.disks().Prepare(ctx, d.link.nodes, spec, prepare); err != nil {
		return nil, err
	}
	if fault := sharing.Fault(failures, d.w.called(d.s.life, nil)); fault != nil {
		return nil, fault
	}
	return results, nil
}

// countGPUs asks each node how many GPUs it has for this cluster. Nodes that are
// processes of this machine share its GPUs, unless theirs are simulated.
func (d *drive) countGPUs(ctx context.Context) ([]int, error) {
	if traits(d.plan.Provider).SharedHost {
		return d.hereGPUs(ctx), nil
	}
	gpus := make([]int, len(d.link.nodes))
	err := d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		if own := d.data.Cluster.Nodes[i].GPUs; own != nil {
			gpus[i] = len(own)
			return nil
		}
		if d.data.Cluster.Nodes[i].Head {
			return nil
		}
		r, err := n.Exec(ctx, remote.Cmd{Line: "nvidia-smi -L 2>/dev/null | grep -c '^GPU '"})
		gpus[i], _ = strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
		return err
	})
	return gpus, err
}

// hereGPUs is how many GPUs each node on this machine has.
func (d *drive) hereGPUs(ctx context.Context) []int {
	nodes := d.data.Cluster.Nodes
	gpus := make([]int, len(nodes))
	for i, n := range nodes {
		gpus[i] = n.SimulatedGPUs
	}
	if slices.ContainsFunc(gpus, func(n int) bool { return n > 0 }) {
		return gpus
	}
	return slices.Repeat([]int{planning.ShareOfGPUs(ctx, len(nodes))}, len(nodes))
}

// launch starts every rank. The run is on record before the first one starts,
// and before that nobody else may watch: a run that is being started looks like
// one whose dlwb was killed.
func (d *drive) launch(ctx context.Context) (_ string, _ bool, err error) {
	if d.watch, err = d.w.locks.ClaimSoon(ctx, d.plan.Cluster, locks.Watch); err != nil {
		return "", false, err
	}
	return d.launchAs(ctx, naming.NewRun(d.plan.Name))
}

// launchAs is launch for a run whose id is known, by whoever holds the watch.
func (d *drive) launchAs(ctx context.Context, id string) (_ string, _ bool, err error) {
	if err := d.goOn(ctx, id); err != nil {
		return "", false, err
	}
	made, err := d.engine(ctx, id)
	if err != nil {
		return "", false, err
	}
	again.Fill(made, d.ckpts)
	d.engineName = made.Engine
	env := d.data.Envs[0]
	data := runData{
		Ranks: planning.RankInfos(made), Nodes: len(d.link.nodes), Python: env.Python, Forward: d.plan.Profile.Forward,
		Results: planning.OfRun(d.plan.Results, id), OwnDir: planning.OwnDir(d.plan.Cluster, id),
		Checkpoints: planning.OfRun([]string{d.plan.Profile.Results.Checkpoints}, id)[0],
		Again:       d.trial == nil && planning.RestartsHere(d.plan.Profile, made.Engine) > 0, S3: d.plan.Profile.Results.S3,
		Leads: made.Leads, State: d.plan.Profile.StateDir(), Trial: d.trial, Key: d.goal.Key,
		Stall: d.plan.Profile.Limits.Stall.Seconds(), Lost: d.plan.Profile.Limits.Lost.Seconds(), Grace: planning.Grace(d.plan.Profile).Seconds(), RankAtFault: -1, NodeAtFault: -1, PricePerHour: d.data.Cluster.PricePerHour,
	}
	for _, m := range d.plan.Profile.Metrics {
		data.Metrics = append(data.Metrics, [2]string{m.Name, m.Regex})
	}
	if err := os.MkdirAll(d.w.runDir(id), 0o700); err != nil {
		return "", false, err
	}
	if data.To, err = d.plan.Profile.ResultsTo(id); err != nil {
		return "", false, err
	}
	if err := d.w.results.NoteBefore(ctx, d.link.site(d.s, nil), id, data.Results); err != nil {
		return "", false, err
	}
	run := store.Run{
		ID: id, Cluster: d.plan.Cluster, Life: d.s.life, Profile: d.plan.Name, Engine: made.Engine,
		Command: d.plan.Profile.Run.Command, WorldSize: made.WorldSize, StartedAt: now(), Dir: d.w.runDir(id),
	}
	if err := d.w.putRun(run, data); err != nil {
		return "", false, err
	}
	d.s.run = id
	d.keepRecipe(id, data, made.Engine)
	if err = d.startRanks(ctx, id, made); err == nil {
		err = d.w.publish(d.s, event.RunStarted{
			Engine: made.Engine, WorldSize: made.WorldSize, Nodes: data.Nodes,
			Command: run.Command, Python: env.Python, Ranks: data.Ranks,
		})
	}
	if err != nil {
		d.w.abandon(d.s, d.link, run, data, err)
		return "", false, err
	}
	d.outcome.Run = id
	text := fmt.Sprintf("%s, world size %d on %s", made.Engine, made.WorldSize, units.Count(data.Nodes, "node"))
	return text, false, d.setPhase(event.PhaseReady)
}

// goOn puts what the run goes on from on the nodes, and adds to its command what the
// profile has for that. The plan stays as it was made.
func (d *drive) goOn(ctx context.Context, id string) (err error) {
	if d.lostRun == "" {
		return nil
	}
	p := d.plan.Profile
	if p.Results.Checkpoints != "" {
		d.ckpts, err = d.w.results.PutBack(ctx, d.link.site(d.s, nil), id, d.lostRun, p.Results.Checkpoints)
	}
	if d.command == "" {
		d.command = p.Run.Command
	}
	own := *p
	own.Run.Command = planning.Command(d.command, p.Run.Resume, len(d.ckpts) > 0)
	d.plan.Profile = &own
	return err
}

// engine makes the plan of every rank from what is known of the nodes now.
func (d *drive) engine(ctx context.Context, id string) (engine.Plan, error) {
	env := d.data.Envs[0]
	nodes := make([]engine.Node, len(d.link.nodes))
	for i, n := range d.data.Cluster.Nodes {
		nodes[i] = engine.Node{Host: n.PeerHost, Interface: n.Interface, GPUs: d.data.GPUs[i], Head: n.Head}
	}
	site := planning.Site{Nodes: nodes, Python: env.Python, Torch: env.Torch != "", OldTorch: env.Mended != "", Run: id, PortIs: "PORT", Trial: d.trial != nil, Threads: d.threads(ctx),
		Sources: planning.Sources(d.plan.Profile)}
	var err error
	if site.NoMPI, err = d.withoutMPI(ctx, id); err != nil {
		return engine.Plan{}, err
	}
	draft, err := planning.LayRanks(d.plan.Profile, site)
	if err != nil {
		return draft, err
	}
	site.PortIs = ""
	ask := rankport.Ask{Want: d.plan.Profile.Run.MasterPort, Span: draft.Ports}
	for _, env := range d.data.Envs {
		ask.Pythons = append(ask.Pythons, env.Python)
	}
	if site.Port, err = rankport.Choose(ctx, d.link.each, ask); err != nil {
		return draft, err
	}
	return planning.LayRanks(d.plan.Profile, site)
}

// withoutMPI asks the first node whether Horovod can't use MPI there, where that matters.
func (d *drive) withoutMPI(ctx context.Context, id string) (bool, error) {
	if !planning.AsksOfMPI(d.plan.Profile) {
		return false, nil
	}
	r, err := d.link.nodes[0].Exec(ctx, remote.Cmd{Line: planning.HorovodLine(d.plan.Profile, d.data.Envs[0], id)})
	return planning.WithoutMPI(r.Stdout), err
}

// threads is how many cores the ranks of one node may use together.
func (d *drive) threads(ctx context.Context) int {
	at := max(0, slices.IndexFunc(d.data.Cluster.Nodes, func(n cloud.Node) bool { return !n.Head }))
	r, err := d.link.nodes[at].Exec(ctx, remote.Cmd{Line: "getconf _NPROCESSORS_ONLN"})
	n, _ := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
	if err != nil || n < 1 {
		return 0
	}
	if traits(d.plan.Provider).SharedHost {
		n /= max(len(d.link.nodes), d.beside) // they are all this machine
	}
	return max(n, 1)
}

// startRanks launches what each node runs, on all nodes at once.
func (d *drive) startRanks(ctx context.Context, id string, made engine.Plan) error {
	p := d.plan.Profile
	onNotice, err := engine.Split(p.Run.OnNotice)
	if err != nil {
		return &event.Fault{What: "read run.on_notice", Node: -1, Why: err.Error()}
	}
	disks := d.link.disks()
	return d.link.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		given, err := d.inputEnv(ctx, i, n, id)
		if err != nil {
			return err
		}
		l := remote.Launch{
			RunID: disks.Run(i, id), Called: id, Dir: planning.RemoteCode(d.plan.Cluster),
			Results: disks.OwnDir(planning.OwnDir(d.plan.Cluster, id), i), Grace: planning.Grace(p), LogMost: p.Limits.Log,
			Peers: d.link.peers(i), CalledAt: disks.Runs(id), OnNotice: planning.OfRun(onNotice, id), Restarts: made.Restarts, Leads: made.Leads && i == 0,
			Files: []remote.File{{Name: "life", Text: d.data.Life + "\n"}}, // whose it is, on a machine that others use too
			Env:   engine.MergeEnv(d.gpuEnv(i), d.data.Envs[i].Env, again.Env(d.data.Envs[i].Home+"/"+planning.RemoteCode(d.plan.Cluster), d.ckpts[i]), given, planning.Environ(planning.EnvOfRun(p.Run.Env, id), true)),
		}
		for _, proc := range made.Nodes[i] {
			started := remote.Proc{Name: proc.Name, Ranks: proc.Ranks, Env: disks.Words(proc.Env, i, id),
				Argv: d.inEnvironment(disks.Words(proc.Argv, i, id), i), Log: proc.Log, Helper: proc.Helper}
			if a := proc.After; a != nil {
				started.After = &remote.Ready{What: a.What, Argv: d.inEnvironment(disks.Words(a.Argv, i, id), i), Limit: a.Limit}
			}
			l.Procs = append(l.Procs, started)
		}
		if i < len(made.Files) {
			for _, f := range made.Files[i] {
				l.Files = append(l.Files, remote.File(f))
			}
		}
		if err := n.Launch(ctx, l); err != nil {
			return &event.Fault{What: "start the ranks", Node: i, Why: err.Error(), Next: sharing.RoomNext(err, i)}
		}
		return nil
	})
}

// inEnvironment is a command as a node runs it: in its container where there is one,
// with its own interpreter.
func (d *drive) inEnvironment(argv []string, node int) []string {
	return append(slices.Clone(d.data.Envs[node].Wrap), planning.OwnPython(argv, d.data.Envs[0].Python, d.data.Envs[node].Python)...)
}

// gpuEnv says which GPUs the ranks of a node may use: those that the profile
// names, or for each node of a local cluster its own share of the machine's real
// ones, so that no two ranks meet on one.
func (d *drive) gpuEnv(node int) []string {
	if own := d.data.Cluster.Nodes[node].GPUs; own != nil {
		// Else CUDA numbers them by speed, and nvidia-smi by place.
		return []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + units.Numbers(own)}
	}
	if !traits(d.plan.Provider).SharedHost || d.data.Cluster.Nodes[node].SimulatedGPUs > 0 {
		return nil
	}
	share := make([]int, d.data.GPUs[node])
	for i := range share {
		share[i] = node*len(share) + i
	}
	return []string{"CUDA_VISIBLE_DEVICES=" + units.Numbers(share)}
}
