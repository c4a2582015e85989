package options

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/internal/nearword"
)

// Machines are the options that only training jobs have.
type Machines struct {
	Role   string // by name or ARN
	Bucket string // for the code; empty: the account's bucket of SageMaker
	Output string // s3://…, where the model goes; empty: below the bucket
	// Repository of ECR gets the image that is built from a Dockerfile.
	Repository string
	// Estimator starts the script as the framework's estimator of the official SDK
	// does: the container's own toolkit reads it and its hyperparameters. Empty:
	// dlwb starts the ranks in any image.
	Estimator    string
	Distribution string
	MPIProcesses int
	MPIOptions   []string
	// Hyper are hyperparameters besides those of the command.
	Hyper map[string]string
	// Channels are in the short form that ParseChannel reads.
	Channels       []string
	InputMode      string
	Checkpoints    string // s3://…
	CheckpointPath string
	MaxWait        string // with spot: for the machines and the run together
	KeepAlive      string // of a warm pool
	Retries        int
	Subnet         string
	Groups         []string
	Isolated       bool
	Encrypted      bool
	KMSKey         string
	RemoteDebug    bool // Systems Manager gives shells and ports of the containers
	Tags           map[string]string
}

// The frameworks whose containers have a toolkit that reads script mode.
const (
	PyTorch    = "pytorch"
	TensorFlow = "tensorflow"
)

// Estimators are the words of machines.estimator.
var Estimators = []string{PyTorch, TensorFlow}

// The ways in which a toolkit starts ranks.
const (
	TorchDistributed = "torch_distributed"
	PyTorchDDP       = "pytorchddp"
	MPI              = "mpi"
	DataParallel     = "smdistributed"
	ParameterServer  = "parameter_server"
	Mirrored         = "multi_worker_mirrored"
)

// Distributions are the words of machines.distribution.
var Distributions = []string{TorchDistributed, PyTorchDDP, MPI, DataParallel, ParameterServer, Mirrored}

// DefaultCheckpoints is where a container has its checkpoints.
const DefaultCheckpoints = "/opt/ml/checkpoints"

var table = []about.Option{
	{Key: "machines.execution_role", Also: []string{"sagemaker_role"},
		Doc: "The IAM role that the job has: its name or ARN. `dlwb plan` says what it may not do.", Example: "SageMakerTraining",
		Place: about.In(func(m *Machines) *string { return &m.Role })},
	{Key: "machines.bucket", Asked: true, Also: []string{"s3_bucket", "default_bucket"},
		Doc: "The S3 bucket, in the region of the job, through which the code goes; without it, `sagemaker-REGION-ACCOUNT`, as the official SDK has it.", Example: "ml-lab",
		Place: about.In(func(m *Machines) *string { return &m.Bucket })},
	{Key: "machines.output", Also: []string{"output_path"},
		Doc: "Where in S3 the model and the output go, each job below its name; without it, `dlwb/output` in the bucket.", Example: "s3://ml-lab/models",
		Place: about.In(func(m *Machines) *string { return &m.Output })},
	about.Repository(func(m *Machines) *string { return &m.Repository }),
	{Key: "machines.estimator", Also: []string{"script_mode", "framework"},
		Doc: "Starts the script as an estimator of the official SDK does (`pytorch`, `tensorflow`): the toolkit in the image reads `sagemaker_program` and the hyperparameters. " +
			"Without it, dlwb starts the ranks itself, in any image that has Python.", Example: PyTorch,
		Place: about.In(func(m *Machines) *string { return &m.Estimator })},
	{Key: "machines.distribution",
		Doc: "How the toolkit starts the ranks: `torch_distributed`, `pytorchddp`, `mpi`, `smdistributed` (data parallel), `parameter_server`, `multi_worker_mirrored`. " +
			"Without it, what fits `run.engine`.", Example: TorchDistributed,
		Place: about.In(func(m *Machines) *string { return &m.Distribution })},
	{Key: "machines.mpi_processes", Kind: about.Count, Min: 0, Max: 1024, Default: "0", Also: []string{"processes_per_host"},
		Doc: "How many processes MPI starts on each machine; 0 means one.", Example: "8",
		Place: about.In(func(m *Machines) *int { return &m.MPIProcesses })},
	{Key: "machines.mpi_options", Kind: about.Words, Also: []string{"custom_mpi_options"},
		Doc: "Options for mpirun, also of data parallel.", Example: "[-x, NCCL_DEBUG=INFO]",
		Place: about.In(func(m *Machines) *[]string { return &m.MPIOptions })},
	{Key: "machines.hyperparameters", Kind: about.Pairs, Also: []string{"hyper_parameters"},
		Doc: "Hyperparameters besides those of `run.command`: with an estimator, `--NAME VALUE` behind the script's own words.", Example: "{epochs: \"3\"}",
		Place: about.In(func(m *Machines) *map[string]string { return &m.Hyper })},
	{Key: "machines.channels", Kind: about.Words, Also: []string{"inputs", "channel"},
		Doc: "What the job reads, each as `NAME=s3://bucket/prefix`, `NAME=efs/ID/dir` or `NAME=fsx/ID/dir`; words behind it, with commas: " +
			"`file`, `fastfile`, `pipe`, `sharded` (each machine has a part of the objects), `gzip`, `manifest`, `rw`. It is at `/opt/ml/input/data/NAME`.",
		Example: "['train=s3://ml-lab/train,fastfile,sharded', 'imagenet=fsx/fs-0123456789abcdef0/fsx/imagenet']",
		Place:   about.In(func(m *Machines) *[]string { return &m.Channels })},
	{Key: "machines.input_mode",
		Doc: "How channels are read that don't say it: `file` (copied before the start), `fastfile`, `pipe`.", Example: FastFile,
		Place: about.In(func(m *Machines) *string { return &m.InputMode })},
	{Key: "machines.checkpoints", Also: []string{"checkpoint_s3_uri"},
		Doc: "Where in S3 checkpoints are kept while the job runs; what is there when it starts is there for it to go on from.", Example: "s3://ml-lab/checkpoints/charlm",
		Place: about.In(func(m *Machines) *string { return &m.Checkpoints })},
	{Key: "machines.checkpoint_path", Also: []string{"checkpoint_local_path"},
		Doc: "Where the container has its checkpoints; without it, `" + DefaultCheckpoints + "`.", Example: DefaultCheckpoints,
		Place: about.In(func(m *Machines) *string { return &m.CheckpointPath })},
	{Key: "machines.max_wait",
		Doc: "With spot: how long the job may wait for machines and run, together; without it, twice `limits.lifetime`.", Example: "36h",
		Place: about.In(func(m *Machines) *string { return &m.MaxWait })},
	{Key: "machines.keep_alive", Asked: true, Also: []string{"warm_pool", "keep_alive_period"},
		Doc: "How long the machines stay for the next job after this one, up to 1h; they are paid for. Not with spot.", Example: "30m",
		Place: about.In(func(m *Machines) *string { return &m.KeepAlive })},
	{Key: "machines.retries", Kind: about.Count, Min: 0, Max: 30, Default: "0", Also: []string{"max_retry_attempts"},
		Doc: "How often SageMaker tries again after a fault of its own (InternalServerError).", Example: "2",
		Place: about.In(func(m *Machines) *int { return &m.Retries })},
	{Key: "machines.subnet", Asked: true, Also: []string{"subnets"}, Doc: "The subnet of the machines, by id; EFS and FSx need it.", Example: "subnet-0123456789abcdef0",
		Place: about.In(func(m *Machines) *string { return &m.Subnet })},
	{Key: "machines.security_groups", Kind: about.Words, Doc: "The security groups of the machines.", Example: "[sg-0123456789abcdef0]",
		Place: about.In(func(m *Machines) *[]string { return &m.Groups })},
	{Key: "machines.network_isolation", Kind: about.Flag, Default: "false",
		Doc: "Whether the containers are without any network but that between them.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.Isolated })},
	{Key: "machines.encrypt_traffic", Kind: about.Flag, Default: "false",
		Doc: "Whether what the machines send each other is encrypted; training gets slower by it.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.Encrypted })},
	{Key: "machines.kms_key", Doc: "The KMS key that disks and output are encrypted with.", Example: "alias/training",
		Place: about.In(func(m *Machines) *string { return &m.KMSKey })},
	{Key: "machines.remote_debug", Kind: about.Flag, Default: "false", Also: []string{"enable_remote_debug"},
		Doc: "Whether Systems Manager lets you into the containers: `dlwb ssh` and `dlwb forward` work while the job trains. The role needs `ssmmessages`, you need `ssm:StartSession`, " +
			"and this machine AWS's session-manager-plugin.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.RemoteDebug })},
	{Key: "machines.tags", Kind: about.Pairs, Doc: "Tags for everything that is made, besides dlwb's own.", Example: "{project: charlm}",
		Place: about.In(func(m *Machines) *map[string]string { return &m.Tags })},
}

// check tells what is wrong with the options.
func check(own any) (faults []about.Fault) {
	m := about.Own[Machines](own)
	add := func(key string, err error, next string) {
		if err != nil {
			faults = append(faults, about.Fault{Key: "machines." + key, Why: err.Error(), Next: next})
		}
	}
	add("estimator", oneOf(m.Estimator, Estimators), strings.Join(Estimators, ", "))
	add("distribution", oneOf(m.Distribution, Distributions), strings.Join(Distributions, ", "))
	add("input_mode", oneOf(m.InputMode, Modes), strings.Join(Modes, ", "))
	if m.Distribution != "" && m.Estimator == "" {
		add("distribution", fmt.Errorf("%s is how the toolkit of an image starts ranks, and without machines.estimator dlwb starts them", m.Distribution),
			"add machines.estimator, or leave it out and set run.engine")
	}
	if m.RemoteDebug && m.Isolated {
		add("remote_debug", errors.New("containers without a network can't be entered: the agent of Systems Manager in them calls out"),
			"leave out machines.network_isolation or machines.remote_debug")
	}
	for key, text := range map[string]string{"output": m.Output, "checkpoints": m.Checkpoints} {
		if text != "" {
			_, _, err := S3(text)
			add(key, err, "such as s3://bucket/prefix")
		}
	}
	names := map[string]bool{}
	for _, text := range m.Channels {
		c, err := ParseChannel(text)
		add("channels", err, "such as train=s3://bucket/prefix,fastfile")
		if err == nil && names[c.Name] {
			add("channels", fmt.Errorf("there are two channels %s", c.Name), "give each a name of its own")
		}
		if names[c.Name] = true; err == nil && c.FileSystem != "" && (m.Subnet == "" || len(m.Groups) == 0) {
			add("channels", fmt.Errorf("channel %s is a file system, which only machines in its network reach", c.Name), "set machines.subnet and machines.security_groups")
		}
	}
	for key, text := range map[string]string{"max_wait": m.MaxWait, "keep_alive": m.KeepAlive} {
		if text != "" {
			d, err := time.ParseDuration(text)
			if err == nil && (d <= 0 || key == "keep_alive" && d > time.Hour) {
				err = fmt.Errorf("%s is no time that may be asked for", text)
			}
			add(key, err, "such as 30m")
		}
	}
	slices.SortFunc(faults, func(a, b about.Fault) int { return strings.Compare(a.Key+a.Why, b.Key+b.Why) })
	return faults
}

func oneOf(word string, words []string) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	if near := nearword.Nearest(word, words); near != "" {
		return fmt.Errorf("there is no %q: did you mean %s?", word, near)
	}
	return fmt.Errorf("there is no %q", word)
}

// Wait is MaxWait as a time; 0: not given.
func (m Machines) Wait() time.Duration { return durationOf(m.MaxWait) }

// Keep is KeepAlive as a time.
func (m Machines) Keep() time.Duration { return durationOf(m.KeepAlive) }

func durationOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	add := func(kind string, unusual bool, format string, args ...any) {
		all = append(all, about.Effect{Kind: kind, Unusual: unusual, Text: fmt.Sprintf(format, args...)})
	}
	add(about.Runs, true, "in containers that have the rights of the IAM role %s", m.Role)
	where := m.Bucket
	if where == "" {
		where = "your account's bucket of SageMaker"
	}
	add(about.Sends, false, "the code, and the values of run.env, to %s in S3", where)
	all = append(all, about.Builds(m.Repository)...)
	if m.Output != "" {
		add(about.Sends, true, "the model and the output to %s", m.Output)
	}
	if m.Checkpoints != "" {
		add(about.Sends, true, "checkpoints to %s", m.Checkpoints)
	}
	if m.KeepAlive != "" {
		add(about.Pays, true, "the machines stay for %s after the job, and cost", m.KeepAlive)
	}
	if m.RemoteDebug {
		add(about.Runs, true, "shells in its containers, for everybody in the account who may start sessions of Systems Manager")
	}
	for _, text := range m.Channels {
		if c, err := ParseChannel(text); err == nil {
			add(about.Reads, true, "channel %s: %s", c.Name, c.Where())
		}
	}
	return all
}
