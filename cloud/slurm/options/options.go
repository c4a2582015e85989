// Package options describes the provider of jobs on a Slurm cluster.
package options

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/pattern"
)

// Machines are the options that only jobs of Slurm have.
type Machines struct {
	Login      string // user@host of the login node; empty: this machine is one
	Partition  string
	Account    string
	QOS        string
	Time       string // as sbatch has it, or as 4h30m
	GPUs       int    // on each node
	GPUType    string // as GRES calls it
	CPUs       int    // on each node
	Memory     string // of each node, as sbatch has it
	Constraint string
	Modules    string   // with commas between them
	Sbatch     []string // more options
	NoRequeue  bool
}

// Provider is the description.
var Provider = about.Provider{
	Name:    "slurm",
	Also:    []string{"sbatch", "hpc"},
	Doc:     "jobs in the queue of a Slurm cluster, handed in on its login node",
	Traits:  about.Traits{RanksOnly: true, Serves: true, Deadline: true},
	Keys:    []string{"machines.image"},
	Options: table,
	New:     func() any { return new(Machines) },
	Check:   check,
	Effects: effects,
}

var table = []about.Option{
	{Key: "machines.login", Asked: true, Also: []string{"login_node", "frontend"},
		Doc: "The login node, as `host` or `user@host`, with names of `~/.ssh/config` too; without it, dlwb runs on the login node itself. `ssh:host` reaches it by your own ssh, over the connection that this keeps open: where a login needs a second factor.", Example: "ada@login.cluster.edu",
		Place: about.In(func(m *Machines) *string { return &m.Login })},
	{Key: "machines.partition", Asked: true, Also: []string{"queue"},
		Doc: "The partition; without it, the cluster's default one.", Example: "gpu",
		Place: about.In(func(m *Machines) *string { return &m.Partition })},
	{Key: "machines.account", Asked: true, Also: []string{"project_account"},
		Doc: "The account that the job is charged to; without it, your default one.", Example: "lab",
		Place: about.In(func(m *Machines) *string { return &m.Account })},
	{Key: "machines.qos",
		Doc: "The quality of service; without it, your default one.", Example: "normal",
		Place: about.In(func(m *Machines) *string { return &m.QOS })},
	{Key: "machines.time", Asked: true, Also: []string{"walltime", "time_limit"},
		Doc: "The time limit, as `4h30m` or as sbatch has it (`1-12:00:00`, minutes); without it, `limits.lifetime` where the profile has that, else what the partition gives by itself. The shorter of the two counts.", Example: "4h",
		Place: about.In(func(m *Machines) *string { return &m.Time })},
	{Key: "machines.gpus", Asked: true, Kind: about.Count, Min: 0, Max: 64, Default: "0", Also: []string{"gpus_per_node", "gres"},
		Doc: "How many GPUs each node gets; 0: none.", Example: "4",
		Place: about.In(func(m *Machines) *int { return &m.GPUs })},
	{Key: "machines.gpu_type",
		Doc: "The type of these GPUs, as the cluster's GRES calls it; without it, any.", Example: "a100",
		Place: about.In(func(m *Machines) *string { return &m.GPUType })},
	{Key: "machines.cpus", Kind: about.Count, Min: 0, Max: 4096, Default: "0", Also: []string{"cpus_per_task", "cores"},
		Doc: "How many CPUs each node gets; 0: what the cluster gives by itself.", Example: "16",
		Place: about.In(func(m *Machines) *int { return &m.CPUs })},
	{Key: "machines.mem", Also: []string{"ram"},
		Doc: "The memory of each node, as sbatch has it; without it, what the cluster gives by itself.", Example: "64G",
		Place: about.In(func(m *Machines) *string { return &m.Memory })},
	{Key: "machines.constraint", Also: []string{"features"},
		Doc: "Features that the nodes must have, as sbatch has it.", Example: "a100&nvlink",
		Place: about.In(func(m *Machines) *string { return &m.Constraint })},
	{Key: "machines.modules", Asked: true, Also: []string{"module"},
		Doc: "Modules that are loaded before the environment is set up and before the ranks start, with commas between them.", Example: "python/3.11,cuda/12.4",
		Place: about.In(func(m *Machines) *string { return &m.Modules })},
	{Key: "machines.sbatch", Kind: about.Words, Also: []string{"sbatch_options", "extra"},
		Doc: "More options of sbatch that the site asks for, each as `--name=value`. Where GPUs are asked for here (`--gres`, `--gpus…`), `machines.gpus` says how many a node gets and asks for none.", Example: "[--reservation=lab, '--gpus-per-node=a100:4']",
		Place: about.In(func(m *Machines) *[]string { return &m.Sbatch })},
	{Key: "machines.no_requeue", Kind: about.Flag, Default: "false",
		Doc: "Whether a job that was preempted, or whose node failed, is not put into the queue again.", Example: "true",
		Place: about.In(func(m *Machines) *bool { return &m.NoRequeue })},
}

// effects are where the job goes.
func effects(own any) []about.Effect {
	m := about.Own[Machines](own)
	where := "this machine"
	var all []about.Effect
	if name, own := ownssh.Cut(m.Login); own {
		where = name
		all = append(all, about.Effect{Kind: about.Connects, Text: where + " by your own ssh, with what its configuration says of it"})
	} else if m.Login != "" {
		where = m.Login
		all = append(all, about.Effect{Kind: about.Connects, Text: where + " by ssh; known_hosts, or you, vouch for the host key"})
	}
	text := "a job in the queue of Slurm, handed in on " + where
	if m.Account != "" {
		text += fmt.Sprintf(", charged to the account %s", m.Account)
	}
	if len(m.Sbatch) > 0 {
		text += ", with " + strings.Join(m.Sbatch, " ")
	}
	if m.Modules != "" {
		text += ", with the modules " + m.Modules
	}
	return append(all, about.Effect{Kind: about.Runs, Text: text})
}

// dlwbs are options of sbatch that dlwb gives itself: with others its job would not be
// found, not be read, or be another.
var dlwbs = strings.Fields("output error input chdir nodes ntasks ntasks-per-node array export export-file get-user-env parsable wrap job-name comment " +
	"requeue no-requeue open-mode kill-on-invalid-dep test-only wait clusters uid gid cluster-constraint")

// form is an option in its long form, of which no shell makes anything else.
var form = pattern.New(`^--[a-z][a-z-]*(=[A-Za-z0-9_.,:;@%/+*&|!()\[\]=-]+)?$`)

func check(own any) (faults []about.Fault) {
	if name, is := ownssh.Cut(about.Own[Machines](own).Login); is && !ownssh.Plain(name) {
		faults = append(faults, about.Fault{Key: "machines.login", Why: fmt.Sprintf("%q is no machine for ssh", name), Next: "write it as ssh:host or ssh:user@host; a port is said in ~/.ssh/config"})
	}
	for _, word := range about.Own[Machines](own).Sbatch {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch {
		case !form.MatchString(word):
			faults = append(faults, about.Fault{Key: "machines.sbatch", Why: fmt.Sprintf("%q is no option of sbatch in its long form", word), Next: "write it as --name=value"})
		case slices.Contains(dlwbs, name):
			faults = append(faults, about.Fault{Key: "machines.sbatch", Why: "--" + name + " is dlwb's own", Next: "leave it out"})
		}
	}
	return faults
}
