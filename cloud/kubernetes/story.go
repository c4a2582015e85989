package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud/kubernetes/helpers"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
)

// look is what was seen of one replica at one time.
type look struct {
	object *unstructured.Unstructured // of the job; nil: it is gone
	pod    *core.Pod                  // the newest; one that is gone as it was seen last
	gone   bool                       // there is no pod any more
	lost   losses                     // of a RayJob
	evict  string                     // why the queue took it back, where that is known
}

// storyOf is what became of a replica, in order, told from one look. It is pure:
// the same look gives the same story to whoever looks.
func storyOf(r ref, number int, l look) (all []job.Status) {
	k := kindNamed(r.Kind)
	if k == rayJob {
		return rayStory(r, number, l)
	}
	add := func(s job.Status) { all = append(all, s) }
	c := containerOf(l.pod, k.container)
	end := ending(c)
	if c != nil && (c.State.Running != nil || end != nil) {
		add(job.Status{Time: startOf(c), Kind: job.Started, Rank: -1})
	}
	note, stopped := stopOf(l.object)
	over := end != nil || l.gone || l.pod != nil && l.pod.Status.Phase == core.PodFailed
	if suspended(l.object) && !stopped {
		if !over {
			return all
		}
		why := l.evict
		if why == "" {
			why = "the job was suspended"
		}
		return append(all, job.Status{Kind: job.Waiting, Rank: -1, Why: why})
	}
	early := slices.Contains(note.Ended, number) // it had ended before it was stopped
	why := whyStopped(l, end, note, stopped, len(r.Ranks[number]))
	if why == "" && tidied(l, end) {
		why = "the job had ended well, and its operator ended what still ran"
	}
	if why != "" && !early {
		add(job.Status{Time: timeOfEnd(end), Kind: job.Stopping, Rank: -1, Why: why})
	}
	if !over {
		return all
	}
	all = append(all, endsOf(r.Ranks[number], l, end)...)
	if last := &all[len(all)-1]; tidied(l, end) {
		last.Code = 0
	}
	if early {
		all = slices.Insert(all, len(all)-1, job.Status{Time: timeOfEnd(end), Kind: job.Stopping, Rank: -1, Why: note.Why})
	}
	return all
}

// tidied reports whether a replica was ended because the job had ended well: an
// operator does that to workers when the master is through.
func tidied(l look, end *core.ContainerStateTerminated) bool {
	c, over := finished(l.object)
	return over && c.Type != "Failed" && end != nil && (end.ExitCode == 128+15 || end.ExitCode == 128+9) &&
		(l.gone || l.pod != nil && l.pod.DeletionTimestamp != nil)
}

// endsOf are the ends of the ranks of a replica that is over, and its own.
func endsOf(ranks []int, l look, end *core.ContainerStateTerminated) (all []job.Status) {
	if end == nil {
		code := 143 // it went with its pod, and nobody saw how
		if c, is := finished(l.object); is && c.Type != "Failed" {
			code = 0
			for _, rank := range ranks {
				all = append(all, job.Status{Kind: job.RankEnded, Rank: rank})
			}
		}
		return append(all, job.Status{Kind: job.Ended, Rank: -1, Code: code})
	}
	at, said := end.FinishedAt.Time, ranksSaid(end.Message)
	for _, rank := range ranks {
		code, known := said[rank]
		if !known {
			code = int(end.ExitCode)
		}
		if end.Reason == "OOMKilled" && code != 0 {
			all = append(all, job.Status{Time: at, Kind: job.RankStarved, Rank: rank, Code: 1})
		}
		all = append(all, job.Status{Time: at, Kind: job.RankEnded, Rank: rank, Code: code, Signal: job.SignalOf(code)})
	}
	return append(all, job.Status{Time: at, Kind: job.Ended, Rank: -1, Code: int(end.ExitCode)})
}

// ranksSaid reads what the launcher of several ranks leaves behind.
func ranksSaid(message string) map[int]int {
	_, list, _ := strings.Cut(message, "ranks: ")
	return pack.Ends(list)
}

// whyStopped is why somebody ended the replica; empty: nobody did.
func whyStopped(l look, end *core.ContainerStateTerminated, note stopNote, stopped bool, ranks int) string {
	if stopped {
		return note.Why
	}
	if c := conditionOf(l.object, "Failed", "FailureTarget"); c.Reason == "DeadlineExceeded" || strings.Contains(c.Message, "longer than specified deadline") {
		return job.TimeLimit + "the job had its time (limits.lifetime): " + c.Message
	}
	if end != nil && strings.HasPrefix(end.Message, "launcher: deadline") {
		return job.TimeLimit + "the job had its time (limits.lifetime)"
	}
	if why := taken(l.pod); why != "" {
		return job.Lost + wasEnded(l.pod.Name, why)
	}
	if l.gone && l.object == nil || beingDeleted(l, end) {
		return job.Cancelled + "the job was deleted in the cluster"
	}
	if end == nil {
		return ""
	}
	why := helpers.Ended(l.pod.Name, end.Message, int(end.ExitCode), ranks)
	switch {
	case why == "" && helpers.Told(end.Message):
		return "its pod was told to end"
	case why == "":
		return ""
	case end.Reason == "OOMKilled":
		return job.NoMemory + "pod " + l.pod.Name + " ran out of memory (machines.mem)"
	}
	return job.Failed + why
}

// beingDeleted reports whether somebody deletes the job, and the replica did not come to
// its own end before: the object stays until its pods are gone.
func beingDeleted(l look, end *core.ContainerStateTerminated) bool {
	if l.object == nil || l.object.GetDeletionTimestamp() == nil {
		return false
	}
	if _, over := finished(l.object); over {
		return false
	}
	return end == nil || !end.FinishedAt.Time.Before(l.object.GetDeletionTimestamp().Time)
}

// taken says why a pod was taken away; empty: it was not.
func taken(pod *core.Pod) string {
	if pod == nil {
		return ""
	}
	words := map[string]string{
		"PreemptionByScheduler":  "a pod of higher priority took its place",
		"DeletionByTaintManager": "its node was tainted",
		"EvictionByEvictionAPI":  "its node was drained",
		"DeletionByPodGC":        "its node is gone",
		"TerminationByKubelet":   "its node ran short",
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue && words[c.Reason] != "" {
			return sentence(words[c.Reason], c.Message, pod.Status.Message)
		}
	}
	switch pod.Status.Reason {
	case "Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "Shutdown", "OutOfcpu", "OutOfmemory", "UnexpectedAdmissionError":
		return sentence(pod.Status.Reason, pod.Status.Message)
	}
	return ""
}

// wasEnded says that a pod was ended from outside, and why.
func wasEnded(pod, why string) string { return "pod " + pod + " was ended: " + why }

// sentence joins what is said with colons, without what is empty or said twice.
func sentence(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(said, part) {
			said = append(said, part)
		}
	}
	return strings.Join(said, ": ")
}

func startOf(c *core.ContainerStatus) time.Time {
	if end := ending(c); end != nil {
		return end.StartedAt.Time
	}
	return c.State.Running.StartedAt.Time
}

func timeOfEnd(end *core.ContainerStateTerminated) time.Time {
	if end == nil {
		return time.Time{}
	}
	return end.FinishedAt.Time
}

// stateOf is one look as a state.
func stateOf(r ref, number int, l look) job.State {
	state := job.State{Phase: job.Absent, Ranks: map[int]job.Exit{}}
	for _, s := range storyOf(r, number, l) {
		switch s.Kind {
		case job.Started:
			state.Begun, state.Phase = true, job.Running
		case job.RankEnded:
			state.Ranks[s.Rank] = job.Exit{Code: s.Code, Signal: s.Signal, End: s.Time}
		case job.Ended:
			state.Phase = job.Over
		}
	}
	if state.Phase == job.Absent {
		if l.object == nil {
			state.Why = "there is no such job in the cluster"
		} else {
			state.Phase, state.Why = job.Running, "its pod has not started" // it waits
		}
		if l.pod != nil {
			state.Why = fmt.Sprintf("pod %s is %s", l.pod.Name, l.pod.Status.Phase)
		}
	}
	return state
}
