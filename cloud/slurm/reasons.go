package slurm

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/job"
)

// reasons are why a job waits, in words, by how Slurm's reason begins. What is
// not among them is told as Slurm says it. hopeless: it will not begin as it is.
var reasons = []struct {
	begins, words string
	hopeless      bool
}{
	{"Priority", "jobs with a higher priority come first", false},
	{"Resources", "the nodes that it needs are busy", false},
	{"BeginTime", "it may not begin yet", false},
	{"JobHeldUser", "it is held: scontrol release lets it go", true},
	{"JobHeldAdmin", "an administrator holds it", true},
	{"DependencyNeverSatisfied", "the job that it depends on did not end as it should", true},
	{"Dependency", "it depends on another job", false},
	{"JobArrayTaskLimit", "as many tasks of its array run as may", false},
	{"PartitionTimeLimit", "its time limit is above that of the partition", true},
	{"PartitionNodeLimit", "it asks for more nodes than a job of the partition may have, or than are up", true},
	{"PartitionDown", "the partition is down", false},
	{"PartitionInactive", "the partition is inactive", false},
	{"PartitionConfig", "no node of the partition is as it asks for", true},
	{"BadConstraints", "no node has what it asks for", true},
	{"ReqNodeNotAvail", "nodes that it needs are not available", false},
	{"Nodes required for job are DOWN, DRAINED", "the nodes that it needs are down, drained, or reserved for a higher partition", false},
	{"Nodes_required_for_job_are_DOWN,_DRAINED", "the nodes that it needs are down, drained, or reserved for a higher partition", false},
	{"NodeDown", "a node that it needs is down", false},
	{"Reservation", "it waits for its reservation", false},
	{"Licenses", "it waits for a licence", false},
	{"InvalidAccount", "its account is not valid", true},
	{"InvalidQOS", "its QOS is not valid", true},
	{"AccountNotAllowed", "its account may not use the partition", true},
	{"QOSNotAllowed", "its QOS may not be used in the partition", true},
	{"QOSMaxJobsPerUser", "you have as many jobs running as the QOS allows", false},
	{"QOSMaxGRESPerUser", "you have as many GPUs as the QOS allows", false},
	{"QOSMaxCpuPerUser", "you have as many CPUs as the QOS allows", false},
	{"QOSMaxNodePerUser", "you have as many nodes as the QOS allows", false},
	{"QOSGrp", "all who use the QOS have together as much as it allows", false},
	{"QOSMax", "it asks for more than the QOS allows now", false},
	{"QOSMin", "it asks for less than the QOS demands", true},
	{"AssocGrp", "your account has as much as it may", false},
	{"AssocMax", "it asks for more than your account may have now", false},
	{"MaxGRESPerAccount", "your account has as many GPUs as it may", false},
	{"JobLaunchFailure", "it could not be started", true},
	{"launch_failed_requeued_held", "it could not be started, and is held", true},
	{"launch failed requeued held", "it could not be started, and is held", true},
	{"Prolog", "the prolog of its nodes runs", false},
	{"Cleaning", "its nodes are being cleaned up from its last life", false},
}

// wordsOf says why a job waits.
func wordsOf(reason string) (text string, hopeless bool) {
	if reason == "" || reason == "None" {
		return "the scheduler has not looked at it yet", false
	}
	if strings.Contains(reason, "PerJob") { // QOSMaxGRESPerJob, AssocMaxNodePerJobLimit
		return fmt.Sprintf("it asks for more than one job may have (%s)", reason), true
	}
	for _, r := range reasons {
		if strings.HasPrefix(reason, r.begins) {
			return fmt.Sprintf("%s (%s)", r.words, reason), r.hopeless
		}
	}
	return reason, false
}

// The states in which a job is over. In others it waits, runs, or is about to.
var over = map[string]bool{"BOOT_FAIL": true, "CANCELLED": true, "COMPLETED": true, "DEADLINE": true, "FAILED": true,
	"NODE_FAIL": true, "OUT_OF_MEMORY": true, "PREEMPTED": true, "TIMEOUT": true, "REVOKED": true}

// The states in which it waits.
var waits = map[string]bool{"PENDING": true, "REQUEUED": true, "REQUEUE_FED": true, "REQUEUE_HOLD": true, "SPECIAL_EXIT": true,
	"RESV_DEL_HOLD": true, "SUSPENDED": false}

// seen is what one look at a job has shown.
type seen struct {
	id       string
	state    string // in Slurm's words; empty: Slurm has forgotten it
	nodes    string
	start    string // when it is expected to begin, or began
	reason   string
	restarts int
	code     int    // of the script
	signal   int    // that ended it
	by       string // who cancelled it
	behind   bool   // it was cancelled, and accounting, which knows by whom, has not heard of that
	preempt  bool   // somebody else is about to get its nodes
	unbegun  bool   // the controller gave it up, with its code 1, in a life that its script did not begin
}

func (s seen) over() bool  { return over[s.state] }
func (s seen) waits() bool { return waits[s.state] }

// runs reports whether its nodes are its own now.
func (s seen) runs() bool { return s.state != "" && !s.over() && !s.waits() }

// keeps reports whether its nodes stay its own. Those of a job that is COMPLETING are
// cleaned up, because it is over or because it is on its way back into the queue, where
// nothing says any more that it was preempted.
func (s seen) keeps() bool { return s.runs() && s.state != "COMPLETING" && !s.preempt }

// why is the reason of an end that is not the program's own, as a status has it;
// empty where the program ended by itself.
func (s seen) why() string {
	job_ := "job " + s.id
	switch s.state {
	case "TIMEOUT":
		return job.TimeLimit + "Slurm ended " + job_ + " at its time limit; machines.time asks for more"
	case "DEADLINE":
		return job.TimeLimit + "Slurm ended " + job_ + " at its deadline"
	case "OUT_OF_MEMORY":
		return job.NoMemory + "Slurm ended " + job_ + ": it used more memory than it has; machines.mem asks for more"
	case "NODE_FAIL":
		return job.Lost + "a node of " + job_ + " failed (NODE_FAIL)"
	case "BOOT_FAIL":
		return job.Lost + "a node of " + job_ + " did not boot (BOOT_FAIL)"
	case "PREEMPTED":
		return job.Lost + job_ + " was preempted: other jobs have its nodes"
	case "REVOKED":
		return job.Lost + job_ + " was taken over by another cluster (REVOKED)"
	case "CANCELLED":
		who := "somebody"
		if s.by != "" {
			who = s.by
		}
		return job.Cancelled + job_ + " was cancelled by " + who + " with scancel, not by dlwb"
	case "FAILED":
		if s.code == 0 && s.signal == 125 {
			return job.NoMemory + "Slurm ended " + job_ + ": it used more memory than it has; machines.mem asks for more"
		}
		if s.code == 0 && s.signal == 53 {
			return job.Lost + "Slurm could not begin " + job_ + " on its node: the output file, or the home directory, is not there (0:53)"
		}
		if s.unbegun {
			return job.Lost + "Slurm could not begin " + job_ + " on its nodes: it failed before its script ran there; slurmctld's log says why"
		}
	}
	return ""
}

// early is why the script of a job ended before it began anything on its nodes; empty: it
// says nothing. Of a job that has begun, these codes are those of its ranks.
func (s seen) early() string {
	job_ := "job " + s.id
	switch {
	case s.state != "FAILED" || s.signal != 0:
		return ""
	case s.code == 65:
		return job.Lost + job_ + " could not load its modules on its nodes: machines.modules"
	case s.code == 66:
		return job.Lost + job_ + " did not find its files on its nodes: is the home directory shared with them?"
	}
	return ""
}
