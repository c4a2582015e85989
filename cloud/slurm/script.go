package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/modules"
)

// order is a job as sbatch is asked for it.
type order struct {
	run, life, home string
	agent           string // its path on the shared disk
	nodes           int
	resumes         bool // a life after the first is begun with run.resume
	port            int  // 0: one is made of the job's number
	ports           int  // that the ranks of a node use from there on; 0: one
	time            string
	options.Machines
}

func orderOf(j cloud.Job, life, home, agent string) order {
	o := order{run: j.Run, life: life, home: home, agent: agent, nodes: j.Replicas, Machines: about.Own[options.Machines](j.Spec.Own)}
	if d, _, err := timeOf(j.Spec); err == nil && d > 0 {
		o.time = slurmTime(d)
	}
	return o
}

// timeOf is the time limit that a profile asks for, and the key that says so; 0: the
// partition's.
func timeOf(spec cloud.Spec) (d time.Duration, key string, err error) {
	d, err = wantedTime(about.Own[options.Machines](spec.Own).Time)
	if err != nil {
		return 0, "machines.time", err
	}
	if spec.LifetimeAsked && spec.Lifetime > 0 && (d == 0 || spec.Lifetime < d) {
		return spec.Lifetime, "limits.lifetime", nil
	}
	return d, "machines.time", nil
}

// endless is an order that a partition without a limit would let run for ever: it gets
// the lifetime that every profile has.
func (o order) endless(spec cloud.Spec, p partition) order {
	if o.time == "" && p.most == 0 && p.usual == 0 && spec.Lifetime > 0 {
		o.time = slurmTime(spec.Lifetime)
	}
	return o
}

// passed are the variables of the user's that a job gets: what a shell there had
// set besides is no part of the run.
const passed = "HOME,USER,LOGNAME,SHELL,PATH,LANG"

// requests are the options of sbatch, without those that name files.
func (o order) requests() []string {
	all := []string{"--job-name=" + nameOf(o.run), "--comment=dlwb:" + o.run + ":" + o.life,
		fmt.Sprintf("--nodes=%d", o.nodes), fmt.Sprintf("--ntasks=%d", o.nodes), "--ntasks-per-node=1"}
	add := func(format, value string) {
		if value != "" {
			all = append(all, fmt.Sprintf(format, value))
		}
	}
	add("--partition=%s", o.Partition)
	add("--account=%s", o.Account)
	add("--qos=%s", o.QOS)
	add("--time=%s", o.time)
	asksGPUs := slices.ContainsFunc(o.Sbatch, func(w string) bool { return strings.HasPrefix(w, "--gres=") || strings.HasPrefix(w, "--gpus") })
	if o.GPUs > 0 && !asksGPUs {
		kind := ""
		if o.GPUType != "" {
			kind = ":" + o.GPUType
		}
		add("--gres=gpu%s", fmt.Sprintf("%s:%d", kind, o.GPUs))
	}
	if o.CPUs > 0 {
		add("--cpus-per-task=%s", fmt.Sprint(o.CPUs))
	}
	add("--mem=%s", o.Memory)
	add("--constraint=%s", o.Constraint)
	requeue := "--requeue"
	if o.NoRequeue {
		requeue = "--no-requeue"
	}
	return append(append(all, o.Sbatch...), requeue, "--open-mode=append", "--kill-on-invalid-dep=yes", "--export="+passed)
}

// plain are options of srun for a task that is no program of MPI and is bound by nobody:
// where a site's default for MPI is PMIx, the ranks would believe that they are of its
// world; where it binds tasks, all ranks of a node would share the first core.
const plain = "--mpi=none --cpu-bind=none"

// stepVariables tell a program that it is a task of a step, of which there is one
// for each node. The ranks are told their places by the engine, and a framework
// that believed these would count nodes as ranks.
const stepVariables = "SLURM_NTASKS SLURM_NPROCS SLURM_PROCID SLURM_LOCALID SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE " +
	"SLURM_STEP_NUM_TASKS SLURM_STEP_TASKS_PER_NODE SLURM_GTIDS SLURM_NODEID"

// body is what the script does. It may be started more than once: each time that the
// job was put back into the queue. A controller that died before its disk had it that
// the job runs begins it again too, with the same restart count: then its life is the
// next that nobody has begun. Another job of the same run ends at once.
const body = `
dir=@DIR@
cd "$dir" || { echo "dlwb: $dir is not on $(hostname): is the home directory shared?" >&2; exit 66; }
[ ! -e revoked ] || { echo "dlwb: this job was given up before it came into the queue" >&2; exit 75; }
life=${SLURM_RESTART_COUNT:-0}
until mkdir "begun-$life"; do
    [ "$(cat "begun-$life/job")" = "$SLURM_JOB_ID" ] || { echo "dlwb: this job was begun already" >&2; exit 75; }
    life=$((life + 1))
done
echo "$SLURM_JOB_ID" >"begun-$life/job"
for v in $(env | sed -n 's/^\(SBATCH_[A-Z0-9_]*\|SRUN_[A-Z0-9_]*\|SLURM_EXPORT_ENV\|SLURM_CPU_BIND[A-Z_]*\)=.*/\1/p'); do unset "$v"; done
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ','); hosts=${hosts%,}
port=$((@PORT@))
@MODULES@
# The step ends by a signal, or by itself: what comes behind it must run.
trap : TERM
# One task for each node: dlwb's agent, which starts the ranks there. They need not end
# together, whatever the site has for that (WaitTime).
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 @CPUS@` + plain + ` --kill-on-bad-exit=1 --wait=0 --export=ALL \
    sh -c 'node=$SLURM_NODEID; unset @UNSET@; exec "$0" part "$1.n$node" "$2" "$3" "$4"' \
    @AGENT@ @PARTS@ "$life" "$hosts" "$port"
code=$?
echo "$code $(date +%s)" >"end-$life.tmp" && mv "end-$life.tmp" "end-$life"
# What is preempted and ends in time would count as ended, and not be put back into the queue.
case @REQUEUE@:$(scontrol --oneliner show job "$SLURM_JOB_ID" 2>/dev/null) in
yes:*" PreemptTime="[0-9]*) [ "$code" = 0 ] || [ -e stop ] || scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit "$code"
`

// script is the batch script of a job.
func (o order) script() string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, r := range o.requests() {
		fmt.Fprintf(&b, "#SBATCH %s\n", r)
	}
	dir := jobDir(o.home, o.run)
	fmt.Fprintf(&b, "#SBATCH --output=\"%s\"\n#SBATCH --chdir=\"%s\"\n", asPattern(dir+"/slurm.log"), o.home)
	// Jobs that follow each other may share a node: each has ports of its own. So has a
	// later life, which those of its earlier ones may not have left yet.
	port, cpus, requeue := fmt.Sprintf("20000 + (SLURM_JOB_ID + 499 * life) * %d %% 10000", max(o.ports, 1)), "", "yes"
	if o.port != 0 {
		port = fmt.Sprint(o.port)
	}
	if o.CPUs > 0 {
		cpus = fmt.Sprintf("--cpus-per-task=%d ", o.CPUs)
	}
	if o.NoRequeue {
		requeue = "no"
	}
	b.WriteString(strings.NewReplacer("@DIR@", words(dir), "@PORT@", port, "@MODULES@", modules.Line(modulesOf(o.Machines)), "@CPUS@", cpus, "@UNSET@", stepVariables,
		"@AGENT@", words(o.agent), "@PARTS@", words(o.home+"/.dlwb/runs/"+o.run), "@REQUEUE@", requeue).Replace(body))
	return b.String()
}

// asPattern is a path as sbatch reads it: with a percent sign it begins a pattern.
func asPattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
