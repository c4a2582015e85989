package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// rayStatus is what a RayJob says of itself.
type rayStatus struct {
	Deployment string // of KubeRay: "", Initializing, Running, Complete, Failed, Suspended, …
	Job        string // of Ray: "", PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED
	Reason     string
	Message    string
	Cluster    string // the name of the RayCluster
	Ended      time.Time
}

func rayStatusOf(o *unstructured.Unstructured) (s rayStatus) {
	if o == nil {
		return s
	}
	text := func(path ...string) string {
		v, _, _ := unstructured.NestedString(o.Object, append([]string{"status"}, path...)...)
		return v
	}
	s = rayStatus{text("jobDeploymentStatus"), text("jobStatus"), text("reason"), text("message"), text("rayClusterName"), time.Time{}}
	for _, at := range []string{text("rayJobInfo", "endTime"), text("endTime")} {
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			s.Ended = t
			break
		}
	}
	return s
}

// over reports whether the driver has ended, or will never begin. Ray's own word is
// enough: KubeRay takes its time to agree.
func (s rayStatus) over() bool {
	return slices.Contains([]string{"SUCCEEDED", "FAILED", "STOPPED"}, s.Job) ||
		slices.Contains([]string{"Complete", "Failed", "ValidationFailed"}, s.Deployment)
}

// well reports whether the driver has ended well.
func (s rayStatus) well() bool { return s.Job == "SUCCEEDED" }

var rayExit = pattern.New(`failed with exit code (-?[0-9]+)`)

// exit is the code of the driver; false: nobody says.
func (s rayStatus) exit() (int, bool) {
	if s.well() {
		return 0, true
	}
	m := rayExit.FindStringSubmatch(s.Message)
	if s.Job != "FAILED" || m == nil {
		return 0, false
	}
	code, err := strconv.Atoi(m[1])
	if code < 0 { // ended by a signal
		code = 128 - code
	}
	return code, err == nil
}

// why is why the service ended the job; empty: it did not.
func (s rayStatus) why() string {
	_, exited := s.exit()
	switch {
	case exited || !s.over():
		return ""
	case s.Reason == "DeadlineExceeded":
		return job.TimeLimit + "the job had its time (limits.lifetime): " + s.Message
	case s.Job == "STOPPED":
		return job.Cancelled + "somebody stopped the job by Ray's own means"
	case s.Reason == "PreRunningDeadlineExceeded":
		return job.Failed + "not all of its pods came up in time, and KubeRay gave it up: " + s.Message
	case s.Reason == "SubmissionFailed":
		return job.Failed + "the driver could not be handed to Ray, or was lost with its head: " + s.Message
	}
	return job.Failed + "KubeRay says: " + sentence(s.Reason, s.Message)
}

// finishedRay tells how a RayJob says that it ended, as the condition of another kind
// does.
func finishedRay(o *unstructured.Unstructured) (c condition, over bool) {
	s := rayStatusOf(o)
	if !s.over() {
		return c, false
	}
	c = condition{Type: "Failed", Status: "True", Reason: s.Reason, Message: s.Message}
	if s.well() {
		c.Type = "Complete"
	}
	return c, true
}

// losses are what became of pods of a RayJob, by their names: KubeRay replaces those
// that are lost.
type losses struct {
	Starved map[string]bool   `json:"starved,omitempty"`
	Taken   map[string]string `json:"taken,omitempty"`
}

// add takes in what pods tell, and reports whether that is new.
func (l *losses) add(pods []core.Pod) (news bool) {
	for i := range pods {
		pod := &pods[i]
		if end := ending(containerOf(pod, rayJob.container)); end != nil && end.Reason == "OOMKilled" && !l.Starved[pod.Name] {
			if l.Starved == nil {
				l.Starved = map[string]bool{}
			}
			l.Starved[pod.Name], news = true, true
		}
		if why := taken(pod); why != "" && l.Taken[pod.Name] == "" {
			if l.Taken == nil {
				l.Taken = map[string]string{}
			}
			l.Taken[pod.Name], news = why, true
		}
	}
	return news
}

// rayStory is what became of a replica of a RayJob. Its driver ends when Ray says so; the
// pods of workers are nothing that ends by itself.
func rayStory(r ref, number int, l look) (all []job.Status) {
	add := func(s job.Status) { all = append(all, s) }
	if c := containerOf(l.pod, rayJob.container); c != nil && (c.State.Running != nil || ending(c) != nil) {
		add(job.Status{Time: startOf(c), Kind: job.Started, Rank: -1})
	}
	s := rayStatusOf(l.object)
	note, stopped := stopOf(l.object)
	if suspended(l.object) && !stopped && !s.over() {
		if !l.gone {
			return all
		}
		why := l.evict
		if why == "" {
			why = "the job was suspended"
		}
		return append(all, job.Status{Kind: job.Waiting, Rank: -1, Why: why})
	}
	deleted := l.object == nil || l.object.GetDeletionTimestamp() != nil && l.gone
	if !s.over() && !deleted {
		if stopped {
			add(job.Status{Kind: job.Stopping, Rank: -1, Why: note.Why})
		}
		return all
	}
	code, exited := s.exit()
	why := s.why()
	switch {
	case stopped:
		why = note.Why
	case s.well():
	case !s.over():
		why = job.Cancelled + "the job was deleted in the cluster"
	case s.Reason == "SubmissionFailed" && len(l.lost.Starved)+len(l.lost.Taken) == 0:
		why += lastLine(ending(containerOf(l.pod, rayJob.container)))
	case !exited && len(l.lost.Starved) > 0:
		why = job.NoMemory + "pod " + anyOf(l.lost.Starved) + " ran out of memory (machines.mem)"
	case len(l.lost.Taken) > 0:
		pod := anyOf(l.lost.Taken)
		why = job.Lost + wasEnded(pod, l.lost.Taken[pod])
	}
	if why != "" {
		add(job.Status{Time: s.Ended, Kind: job.Stopping, Rank: -1, Why: why})
	}
	if number > 0 {
		return append(all, job.Status{Time: s.Ended, Kind: job.Ended, Rank: -1})
	}
	if !exited {
		code = 143
	}
	if exited && code != 0 && len(l.lost.Starved) > 0 {
		add(job.Status{Time: s.Ended, Kind: job.RankStarved, Rank: 0, Code: 1})
	}
	add(job.Status{Time: s.Ended, Kind: job.RankEnded, Rank: 0, Code: code, Signal: job.SignalOf(code)})
	return append(all, job.Status{Time: s.Ended, Kind: job.Ended, Rank: -1, Code: code})
}

// lastLine is the last line that the pod printed that hands the driver in, as its status has
// it where it failed.
func lastLine(end *core.ContainerStateTerminated) string {
	if end == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(end.Message), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// anyOf is the first key of a map, in their order.
func anyOf[V any](of map[string]V) string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	return slices.Min(names)
}

func (r *replica) lossFile() string { return filepath.Join(r.life.Dir, r.ref.Name+".lost.json") }

// lossesOf are what pods tell now, with what was noted before. Only the watch of the
// driver writes the note: one is enough.
func (r *replica) lossesOf(pods []core.Pod) losses {
	var l losses
	if text, err := os.ReadFile(r.lossFile()); err == nil {
		_ = json.Unmarshal(text, &l) // half a note is none
	}
	if news := l.add(pods); news && r.number == 0 {
		if text, err := json.Marshal(l); err == nil {
			_ = wholefile.Write(r.lossFile(), text, 0o600)
		}
	}
	return l
}

func (r *replica) endFile() string { return filepath.Join(r.life.Dir, r.ref.Name+".end.json") }

// keptEnd keeps how a RayJob has ended, and gives that where the job is gone.
func (r *replica) keptEnd(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		kept := &unstructured.Unstructured{}
		text, err := os.ReadFile(r.endFile())
		if err != nil || kept.UnmarshalJSON(text) != nil {
			return nil
		}
		return kept
	}
	if !rayStatusOf(o).over() || r.number != 0 {
		return o
	}
	if _, err := os.Stat(r.endFile()); err == nil {
		return o
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"status": o.Object["status"]}}
	kept.SetAPIVersion(o.GetAPIVersion())
	kept.SetKind(o.GetKind())
	kept.SetName(o.GetName())
	kept.SetAnnotations(o.GetAnnotations())
	if text, err := kept.MarshalJSON(); err == nil {
		_ = wholefile.Write(r.endFile(), text, 0o600)
	}
	return o
}
