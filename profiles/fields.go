package profiles

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/remote/engine"
)

// Field describes one key of a profile. The table of them is the only place
// that knows the keys: the reader, the writer, the JSON schema and the
// reference page are made from it.
type Field struct {
	Key         string // "machines.count"
	Type        *Type
	Default     string   // as it would be written; empty: none
	Allowed     []string // for a choice
	Min, Max    int64    // for counts, and for durations in seconds
	Providers   []string // that know the key; nil: all. From the table of providers
	Offered     []string // of Allowed, what is named to somebody who wrote another word; nil: all
	RequiredFor []string // providers that need it, from their table; {"*"}: all
	Also        []string // what people write instead of the last word of the key
	Doc         string   // one sentence
	Example     string   // a value, as YAML

	// ref gives the place of the value in a profile; the type knows what
	// kind of pointer it is.
	ref func(*Profile) any
}

// Group is a key that holds other keys.
type Group struct{ Key, Doc string }

// Providers are the providers that a profile may name.
var Providers = providers.Names()

// Usable are those of them that this dlwb has; a test of the command line holds
// it. The format is wider than any one dlwb.
var Usable = providers.Usable()

// Engines are the engines that a profile may name.
var Engines = engine.Choices()

// Groups are the keys that hold other keys, in the order of the reference.
var Groups = []Group{
	{"", "What the experiment is called and where it runs."},
	{"machines", "Which machines are wanted, and how many."},
	{"machines.instance", "Machines by what they must have, instead of by the name of their type."},
	{"environment", "Where Python comes from on a node: `system`, or one of the keys below."},
	{"code", "What is copied to the nodes. `.gitignore` and `.dlwbignore` are honoured; files that look like secrets are held back, whatever these say (docs/sync.md)."},
	{"run", "The training command."},
	{"sweep", "A search over parameters, for `dlwb sweep`: the command is run once for each trial, several at once on the nodes of one cluster. " +
		"With `slurm`, `kubernetes` and `sagemaker` each trial is a job, and `sweep.parallel` of them are there at once; with `ecs` each is a job that has all machines, one after the other. A trial finds its parameters in DLWB_PARAM_NAME, its number in DLWB_TRIAL, and behind the command as `sweep.args` says; " +
		"where `{NAME}` of a parameter stands in `run.command`, its value is put there instead."},
	{"results", "What is brought home, and where to: of the files below `results.paths` those that the run wrote, and no others. " +
		"`{run}` in a path, in `run.command` and in `run.env` stands for the id of the run. What a rank writes to the directory that the variable " +
		"`DLWB_RESULTS` names, which is new for each run, comes home from every node without being named here."},
	{"limits", "What ends a run or a cluster that costs too much or does nothing. `dlwb plan` names the limits that nothing acts on."},
}

// Fields are all keys of a profile, in the order in which they are written:
// those in the table below, and the options of each provider from its own.
var Fields = withOptions(common, providers.All)

// common are the keys that no provider has for itself.
var common = []*Field{
	{Key: "name", Type: nameType, Doc: "The name of the experiment; without it, the name of the profile's directory.",
		Example: "charlm", ref: func(p *Profile) any { return &p.Name }},
	{Key: "provider", Type: choiceType, Allowed: Providers, Offered: Usable, Default: providers.Default().Name, Also: []string{"cloud", "backend"},
		Doc: "Where the machines come from.", Example: providers.Priced()[0], ref: func(p *Profile) any { return &p.Provider }},

	{Key: "machines.region", Type: regionsType, Also: []string{"regions", "zone"},
		Doc: "The region, or several that are tried in order.", Example: "[us-east-1, us-west-2]",
		ref: func(p *Profile) any { return &p.Machines.Regions }},
	{Key: "machines.instance", Type: instanceType,
		Also: []string{"type", "instance_type", "machine"},
		Doc:  "The instance type, or a mapping that says what the machine must have.", Example: "g5.xlarge",
		ref: func(p *Profile) any { return &p.Machines.Instance }},
	{Key: "machines.instance.gpu", Type: modelsType, Also: []string{"model"},
		Doc: "The GPU model, or several of which any will do.", Example: "A10G|L4",
		ref: func(p *Profile) any { return &p.Machines.Need.GPU }},
	{Key: "machines.instance.gpus", Type: countType, Min: 0, Max: 64,
		Doc: "How many GPUs a machine must have.", Example: "4", ref: func(p *Profile) any { return &p.Machines.Need.GPUs }},
	{Key: "machines.instance.memory", Type: leastSizeType,
		Doc: "How much memory each GPU must have, at least.", Example: `">=24GB"`,
		ref: func(p *Profile) any { return &p.Machines.Need.Memory }},
	{Key: "machines.instance.max_price", Type: priceType, Also: []string{"price"},
		Doc: "What a machine may cost per hour, in US dollars. Without it no fallback costs more than twice as much as the first choice.", Example: "1.50",
		ref: func(p *Profile) any { return &p.Machines.Need.MaxPrice }},
	{Key: "machines.count", Type: countType, Min: 1, Max: 1000, Default: "1", Also: []string{"nodes", "number", "size"},
		Doc: "How many nodes; with the hosts provider, all hosts when not given.", Example: "2",
		ref: func(p *Profile) any { return &p.Machines.Count }},
	{Key: "machines.spot", Type: flagType, Default: "false", Also: []string{"preemptible"},
		Doc: "Whether to use spare capacity, which is cheaper and may be taken away.", Example: "true",
		ref: func(p *Profile) any { return &p.Machines.Spot }},
	{Key: "machines.image", Type: textType, Also: []string{"ami"},
		Doc: "The machine image: an alias such as `pytorch`, or an id; of jobs, the image that their ranks run in; on SageMaker and ECS also a Dockerfile in the code directory, with `machines.repository`. With Slurm one of apptainer: the path of a file, or an address such as `docker://pytorch/pytorch:latest`.", Example: "pytorch",
		ref: func(p *Profile) any { return &p.Machines.Image }},
	{Key: "machines.disk", Type: sizeType, Also: []string{"storage", "volume"},
		Doc: "The size of the disk of a node.", Example: "200GB", ref: func(p *Profile) any { return &p.Machines.Disk }},

	{Key: "environment", Type: systemType, Default: "system",
		Doc: "`system` uses the Python that is on the node, or a mapping says how to make another.", Example: "system",
		ref: func(p *Profile) any { return &p.Environment }},
	{Key: "environment.venv", Type: kindType, Also: []string{"pip", "requirements"},
		Doc: "A virtual environment with the packages of this requirements file, or the dependencies of this pyproject.toml, which lies in the code directory; by uv where the node has it, else by pip.", Example: "requirements.txt",
		ref: func(p *Profile) any { return &p.Environment }},
	{Key: "environment.conda", Type: kindType, Doc: "A conda environment made from this file (`.yml`, `.yaml`), which lies in the code directory, by micromamba, mamba or conda, whichever the node has; without one, micromamba is fetched. Any other word is the name, or the path, of an environment that is on the nodes already: it is used as it is.",
		Example: "environment.yml", ref: func(p *Profile) any { return &p.Environment }},
	{Key: "environment.docker", Type: kindType, Also: []string{"image", "container"},
		Doc: "The ranks run in containers of this image, or of one that is built on the node from a Dockerfile or an environment.yml in the code directory; by docker or podman, whichever answers.", Example: "pytorch/pytorch:latest",
		ref: func(p *Profile) any { return &p.Environment }},
	{Key: "environment.python", Type: wordType, Also: []string{"interpreter"},
		Doc:     "The interpreter to start from: a path, a name, or a version such as `3.12`, which uv installs on nodes that lack it; without it, the first python3 that has PyTorch, else the first.",
		Example: `"3.12"`, ref: func(p *Profile) any { return &p.Environment.Python }},
	{Key: "environment.optional", Type: flagType, Default: "false",
		Doc:     "Whether the run goes on with the Python that is there when the environment can't be made.",
		Example: "true", ref: func(p *Profile) any { return &p.Environment.Optional }},
	{Key: "environment.before", Type: textsType, Also: []string{"setup", "setup_commands"},
		Doc:     "Lines of shell that run on every node before the environment is made, in one login shell, again only when something of the environment changed. The code is not there yet.",
		Example: "[sudo apt-get install -y libsndfile1]", ref: func(p *Profile) any { return &p.Environment.Before }},
	{Key: "environment.after", Type: textsType, Also: []string{"post"},
		Doc:     "Lines of shell that run on every node after the environment is made, with it on the PATH.",
		Example: `["python -m nltk.downloader punkt"]`, ref: func(p *Profile) any { return &p.Environment.After }},
	{Key: "environment.mounts", Type: textsType, Also: []string{"volumes"},
		Doc:     "With `docker` alone: what of the node a container sees besides the code, as PATH or PATH:INSIDE, either with `:ro`.",
		Example: "[/data, /scratch/imagenet:/imagenet:ro]", ref: func(p *Profile) any { return &p.Environment.Mounts }},

	{Key: "code.dir", Type: dirType, Default: ".", Also: []string{"path", "directory", "root"},
		Doc: "The directory that is copied, relative to the profile's own. It lies there or below, links resolved, unless you allow another place: `--allow-code`, or your own settings.", Example: "src", ref: func(p *Profile) any { return &p.Code.Dir }},
	{Key: "code.exclude", Type: textsType, Also: []string{"ignore"}, Doc: "What is not copied, as patterns of .gitignore.",
		Example: `[data/, "*.ckpt"]`, ref: func(p *Profile) any { return &p.Code.Exclude }},

	{Key: "data", Type: channelsType, Also: []string{"inputs", "input_data", "channels", "datasets", "dataset", "file_mounts"},
		Doc: "The inputs of the training, each in a directory of its own on every node. The command finds it in the variable DLWB_CHANNEL_NAME (and SM_CHANNEL_NAME). " +
			"What lies on this machine is copied like the code, what has an address (https, or s3://bucket/prefix, which is listed with your AWS credentials and read by signed addresses) is fetched by node 0, and the nodes pass it on: no more than `most` of the channel says, and never the last of the disk; a connection that is lost is gone on with; what is unchanged is not sent again. " +
			"What lies here lies in the profile's own directory, unless you allow another place as for `code.dir`.",
		Example: `{train: datasets/digits, labels: {from: "https://example.org/labels.csv", sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}`,
		ref:     func(p *Profile) any { return &p.Data }},
	{Key: "state", Type: homeType, Also: []string{"state_dir"},
		Doc: "A directory here, inside that of the profile, for what survives runs. On each node the command finds its own in DLWB_STATE (and SSM_STATE); after every run it is brought to STATE/nodeN, " +
			"and new machines get it from there.",
		Example: "state", ref: func(p *Profile) any { return &p.State }},
	{Key: "after", Type: afterType, Also: []string{"needs", "depends_on", "previous"},
		Doc:     "Profiles that `dlwb chain` runs before this one, unless they are done and unchanged. The results of each are a channel named like its profile.",
		Example: "prepare.yaml", ref: func(p *Profile) any { return &p.After }},

	{Key: "run.engine", Type: choiceType, Allowed: Engines, Default: engine.Auto, Also: []string{"launcher"},
		Doc: "What starts the ranks; `" + engine.Auto + "` is " + engine.AutoIs + ".", Example: Engines[1],
		ref: func(p *Profile) any { return &p.Run.Engine }},
	{Key: "run.command", Type: commandType, RequiredFor: []string{"*"}, Also: []string{"cmd", "script", "entrypoint", "args"},
		Doc: "The training command, run in the code directory; a .py file is run with the environment's Python.", Example: "train.py --epochs 10",
		ref: func(p *Profile) any { return &p.Run.Command }},
	{Key: "run.env", Type: envType, Also: []string{"environment", "variables"},
		Doc: "Environment variables of the command; a secret is a reference, `${env:NAME}`, to a variable of the shell that starts dlwb.", Example: `{WANDB_API_KEY: "${env:WANDB_API_KEY}"}`,
		ref: func(p *Profile) any { return &p.Run.Env }},
	{Key: "run.procs_per_node", Type: countType, Min: 0, Max: 256, Default: "0", Also: []string{"nproc_per_node", "procs", "processes"},
		Doc: "How many ranks a node runs; 0 means one per GPU, and one on a node without GPUs.", Example: "2",
		ref: func(p *Profile) any { return &p.Run.ProcsPerNode }},
	{Key: "run.master_port", Type: countType, Min: 0, Max: 65535, Default: "0", Also: []string{"port"},
		Doc: "The port on node 0 where the ranks meet; 0 means a free one.", Example: "29500",
		ref: func(p *Profile) any { return &p.Run.MasterPort }},
	{Key: "run.rendezvous", Type: choiceType, Allowed: []string{engine.RendezvousStatic, engine.RendezvousC10d}, Also: []string{"rdzv_backend", "rdzv"},
		Doc:     "How the nodes find each other (" + having("run.rendezvous") + "): `static`, without the key, gives each node its ranks, `c10d` lets the launchers deal them out, which elasticity needs.",
		Example: engine.RendezvousC10d, ref: func(p *Profile) any { return &p.Run.Rendezvous }},
	{Key: "run.min_nodes", Type: countType, Min: 0, Max: 1000, Default: "0", Also: []string{"nnodes", "elastic"},
		Doc:     "With how few nodes the run may go on (" + having("run.min_nodes") + "); 0 means that all are needed. It brings `rendezvous: c10d` with it.",
		Example: "1", ref: func(p *Profile) any { return &p.Run.MinNodes }},
	{Key: "run.restarts", Type: countType, Min: 0, Max: 1000, Default: "0", Also: []string{"max_restarts", "restart"},
		Doc: "How often all ranks are started again after one has failed: by dlwb while it is attached, from the newest whole checkpoint in `results.checkpoints`; " +
			"without that key, and with `run.min_nodes`, by the launcher itself where it can (" + having("run.restarts") + "), and the script goes on from its own checkpoint. Jobs and trials have the launcher alone.",
		Example: "3", ref: func(p *Profile) any { return &p.Run.Restarts }},
	{Key: "run.parameter_servers", Type: countType, Min: 0, Max: 1000, Default: "0", Also: []string{"ps", "num_ps"},
		Doc:     "How many nodes, from the last one, hold parameters instead of training (" + having("run.parameter_servers") + ").",
		Example: "1", ref: func(p *Profile) any { return &p.Run.ParameterServers }},
	{Key: "run.evaluator", Type: flagType, Default: "false",
		Doc:     "Whether the last node that trains evaluates instead (" + having("run.evaluator") + ").",
		Example: "true", ref: func(p *Profile) any { return &p.Run.Evaluator }},
	{Key: "run.grace", Type: durationType, Default: "10s", Min: 0, Max: 3600,
		Doc: "How long a rank that is told to stop may take before it is killed, whatever ends the run; a run keeps the one that it was launched with. Where a service ends the ranks it has its own: SageMaker 2 minutes, Ray on ECS 30 s.", Example: "30s",
		ref: func(p *Profile) any { return &p.Run.Grace }},

	{Key: "run.on_notice", Type: commandType, Also: []string{"hook"},
		Doc: "What a node runs in the code directory when it is about to be taken away, before the ranks get TERM.", Example: "touch save-now",
		ref: func(p *Profile) any { return &p.Run.OnNotice }},
	{Key: "run.resume", Type: commandType, Also: []string{"resume_args"},
		Doc: "What is added to the command when it is launched again: after machines were replaced, a rank has failed, or a queue has put the job back and starts it once more. `{checkpoint}` is the path of the newest whole checkpoint (also in DLWB_CHECKPOINT); where there is none, or a queue starts the job, nothing is added.", Example: "--resume {checkpoint}",
		ref: func(p *Profile) any { return &p.Run.Resume }},

	{Key: "sweep.method", Type: choiceType, Allowed: []string{"grid", "list", "random"}, Default: "grid", Also: []string{"search", "strategy"},
		Doc: "`grid`: every combination; `list`: those in `sweep.list`; `random`: drawn with `sweep.seed`.", Example: "random", ref: func(p *Profile) any { return &p.Sweep.Method }},
	{Key: "sweep.parameters", Type: parametersType, Also: []string{"params", "space", "config"},
		Doc: "What is varied.", Example: "{lr: [0.1, 0.01], layers: [2, 4]}", ref: func(p *Profile) any { return &p.Sweep.Parameters }},
	{Key: "sweep.list", Type: settingsType, Also: []string{"settings", "configs"},
		Doc: "The trials of the method list.", Example: "[{lr: 0.1, layers: 2}, {lr: 0.01, layers: 4}]", ref: func(p *Profile) any { return &p.Sweep.List }},
	{Key: "sweep.trials", Type: countType, Min: 0, Max: MostTrials, Default: "0", Also: []string{"num_samples", "max_trials", "run_cap", "samples"},
		Doc: "How many trials there are at most; 0 means all of a grid or a list.", Example: "12", ref: func(p *Profile) any { return &p.Sweep.Trials }},
	{Key: "sweep.seed", Type: countType, Min: 0, Max: 1 << 31, Default: "0",
		Doc: "What a random search is drawn with: the same seed draws the same trials.", Example: "42", ref: func(p *Profile) any { return &p.Sweep.Seed }},
	{Key: "sweep.metric", Type: textType, Also: []string{"objective", "monitor"},
		Doc: "The series that trials are compared by, as `dlwb metrics` names it or as the training prints it; its last value counts.", Example: "val/loss", ref: func(p *Profile) any { return &p.Sweep.Metric }},
	{Key: "sweep.mode", Type: choiceType, Allowed: []string{"min", "max"}, Default: "min", Also: []string{"goal", "direction"},
		Doc: "Whether the smallest or the greatest value is the best.", Example: "max", ref: func(p *Profile) any { return &p.Sweep.Mode }},
	{Key: "sweep.parallel", Type: countType, Min: 0, Max: 1000, Default: "0", Also: []string{"max_concurrent_trials", "concurrency"},
		Doc: "How many trials run at once; 0 means as many as the nodes and their GPUs have room for, and 4 where each trial is a job of its own.", Example: "4", ref: func(p *Profile) any { return &p.Sweep.Parallel }},
	{Key: "sweep.nodes", Type: countType, Min: 1, Max: 1000, Default: "1",
		Doc: "How many nodes a trial has.", Example: "2", ref: func(p *Profile) any { return &p.Sweep.Nodes }},
	{Key: "sweep.gpus", Type: countType, Min: 0, Max: 64, Default: "0", Also: []string{"gpus_per_trial"},
		Doc:     "How many GPUs a trial of one node has; trials share a node that has more. 0 means all of the node's. A node without GPUs has one trial at a time.",
		Example: "1", ref: func(p *Profile) any { return &p.Sweep.GPUs }},
	{Key: "sweep.args", Type: argumentsType, Also: []string{"arguments", "template"},
		Doc:     "How each parameter that has no place in `run.command` is written behind it; without the key `--{name}={value}`, with `none` it is not.",
		Example: `"{name}={value}"`, ref: func(p *Profile) any { return &p.Sweep.Arguments }},
	{Key: "sweep.stop", Type: choiceType, Allowed: []string{"none", "median", "halving"}, Default: "none", Also: []string{"early_stop", "scheduler"},
		Doc: "Which trials are ended early: with `median` one whose best value so far is worse than the median of the others at the same number of values; " +
			"with `halving` all but the better half, at `sweep.warmup` values and at each doubling of it.",
		Example: "median", ref: func(p *Profile) any { return &p.Sweep.Stop }},
	{Key: "sweep.warmup", Type: countType, Min: 1, Max: 1_000_000, Default: "5", Also: []string{"grace_period", "min_iter"},
		Doc: "How many values of the metric a trial has before it may be ended early.", Example: "10", ref: func(p *Profile) any { return &p.Sweep.Warmup }},

	{Key: "metrics", Type: metricsType, Also: []string{"metric"},
		Doc:     "Values that are not found by themselves: a name, and a regular expression with one group.",
		Example: `{val/acc: 'top-1 (\d+\.\d+)'}`, ref: func(p *Profile) any { return &p.Metrics }},

	{Key: "results.paths", Type: pathsType, Also: []string{"path", "outputs", "files"},
		Doc: "What is brought home from node 0, relative to the code directory.", Example: "[outputs/]",
		ref: func(p *Profile) any { return &p.Results.Paths }},
	{Key: "results.to", Type: homeType, Also: []string{"dest", "destination", "local", "into"},
		Doc: "The directory here that results are brought to, relative to the profile and inside its directory; `{run}` stands for the id of the run. " +
			"Without it they go to dlwb's record of the run. A file that is there and is not of the run stays: what comes gets the run's id in its name.",
		Example: `"results/{run}"`, ref: func(p *Profile) any { return &p.Results.To }},
	{Key: "results.s3", Type: s3Type, Also: []string{"bucket"}, Doc: "Where results and checkpoints are kept in S3 besides: dlwb sends what came home, with your own AWS credentials. With `ecs` the run itself writes there, to the address in DLWB_OUTPUT, and what is there comes home.", Example: "s3://bucket/prefix",
		ref: func(p *Profile) any { return &p.Results.S3 }},
	{Key: "results.checkpoints", Type: pathType, Also: []string{"checkpoint", "ckpt"},
		Doc: "The directory in which the training writes its checkpoints and nothing else, relative to the code directory. While a run is watched the newest whole one is brought home " +
			"(whole: two looks some seconds apart find the same files, sizes and times, and no name begins with a dot or ends like `.tmp`), and after machines were replaced or a rank has failed it is put on the nodes before the command is launched again.", Example: "outputs/ckpt",
		ref: func(p *Profile) any { return &p.Results.Checkpoints }},

	{Key: "limits.budget", Type: moneyType, Also: []string{"cost", "price"}, Doc: "What the cluster may cost in all.", Example: "20USD",
		ref: func(p *Profile) any { return &p.Limits.Budget }},
	{Key: "limits.lifetime", Type: durationType, Default: "1d", Min: 60, Max: 3600 * 24 * 365, Also: []string{"timeout", "max_time"},
		Doc: "How long the cluster may live.", Example: "12h", ref: func(p *Profile) any { return &p.Limits.Lifetime }},
	{Key: "limits.idle", Type: durationType, Default: "1h", Min: 60, Max: 3600 * 24 * 365, Doc: "How long the cluster may do nothing.",
		Example: "30m", ref: func(p *Profile) any { return &p.Limits.Idle }},
	{Key: "limits.stall", Type: durationType, Default: "30m", Min: 1, Max: 3600 * 24 * 365, Also: []string{"hang"},
		Doc: "How long no rank may print anything before the run counts as hung.", Example: "2h",
		ref: func(p *Profile) any { return &p.Limits.Stall }},
	{Key: "limits.lost", Type: durationType, Default: "2m", Min: 30, Max: 3600 * 24 * 365, Also: []string{"unreachable", "dead", "node_timeout"},
		Doc: "How long a node may not be heard of, while other nodes of the run are, before the run is ended without it: what can be reached is stopped, " +
			"and the verdict names the node and its ranks. Whether it still runs is not known then, and it is not counted as gone. Where no node is heard of, " +
			"nothing is ended: this machine's own network may be away. Results that don't come home are tried for as long, too.", Example: "10m",
		ref: func(p *Profile) any { return &p.Limits.Lost }},
	{Key: "limits.log", Type: sizeType, Default: "4GiB", Also: []string{"log_size", "logs"},
		Doc: "How much of each rank's log is kept on its node, in segments of 64 MiB (two at least). The oldest are dropped first; " +
			"what dlwb has read by then is kept here, and what it has not is told as missing.",
		Example: "20GB", ref: func(p *Profile) any { return &p.Limits.Log }},

	{Key: "limits.replacements", Type: countType, Min: 0, Max: 100, Default: "3", Also: []string{"retries"},
		Doc: "How often spot machines that were taken away are replaced and the run is launched again.", Example: "5",
		ref: func(p *Profile) any { return &p.Limits.Replacements }},

	{Key: "forward", Type: forwardType, Also: []string{"forwards", "ports", "tunnel"},
		Doc: "What of node 0 is reached from here: `jupyter`, `tensorboard`, `PORT/http` for an HTTP server, which only a browser that you let in may use, or a raw `PORT`; with `node1:` before it, of that node.", Example: "[tensorboard, 8265/http]",
		ref: func(p *Profile) any { return &p.Forward }},
}

// having names the engines that have an option.
func having(key string) string { return "engine " + strings.Join(engine.Having(key), ", ") }

var (
	fieldByKey = map[string]*Field{}
	groupByKey = map[string]Group{}
	// keysOf are the last words of the keys of each group, in table order.
	keysOf = map[string][]string{}
	// table is Fields, for what reads values: the table itself knows who does.
	table []*Field
)

func init() {
	table = Fields
	for _, g := range Groups {
		groupByKey[g.Key] = g
	}
	for _, f := range Fields {
		fieldByKey[f.Key] = f
		f.Providers = providers.Having(f.Key)
		if f.RequiredFor == nil {
			f.RequiredFor = providers.Needing(f.Key)
		}
		for key := f.Key; key != ""; key = parent(key) {
			if g := parent(key); !slices.Contains(keysOf[g], last(key)) {
				keysOf[g] = append(keysOf[g], last(key))
			}
		}
	}
}

func parent(key string) string {
	return key[:max(strings.LastIndexByte(key, '.'), 0)]
}

func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func join(group, word string) string {
	if group == "" {
		return word
	}
	return group + "." + word
}

// isGroup reports whether a key holds other keys.
func isGroup(key string) bool {
	_, ok := groupByKey[key]
	return ok
}
