package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/internal/job"
)

func wordsOf(all []job.Status) string {
	var words []string
	for _, s := range all {
		word := string(s.Kind)
		if s.Why != "" {
			word += "(" + s.Why + ")"
		}
		if s.Code != 0 {
			word += "=" + strings.TrimSpace(s.Signal+" ") + "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func ofJob(note string, suspend bool, conditions ...any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": suspend}, "status": map[string]any{"conditions": conditions}}}
	if note != "" {
		o.SetAnnotations(map[string]string{noteWhy: note})
	}
	return o
}

func holding(kind, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message}
}

func podThat(state core.ContainerState, more ...func(*core.Pod)) *core.Pod {
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "run-0"}, Status: core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "main", State: state}}}}
	for _, change := range more {
		change(p)
	}
	return p
}

func over(code int32, reason, message string) core.ContainerState {
	return core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

var longAgo = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// deleted is an object that somebody deletes, some time after longAgo.
func deleted(o *unstructured.Unstructured, after time.Duration) *unstructured.Unstructured {
	at := meta.NewTime(longAgo.Add(after))
	o.SetDeletionTimestamp(&at)
	return o
}

func endedAt(s core.ContainerState, after time.Duration) core.ContainerState {
	s.Terminated.FinishedAt = meta.NewTime(longAgo.Add(after))
	return s
}

// What became of a replica, from what one look shows.
func TestAStoryIsToldFromOneLook(t *testing.T) {
	up := core.ContainerState{Running: &core.ContainerStateRunning{}}
	r := ref{Kind: "job", Name: "x", Ranks: [][]int{{0}}}
	both := ref{Kind: "job", Name: "x", Ranks: [][]int{{0, 1}}}
	for _, k := range []struct {
		name string
		ref  ref
		look look
		want string
	}{
		{"it waits", r, look{object: ofJob("", false)}, ""},
		{"in a queue", r, look{object: ofJob("", true)}, ""},
		{"it runs", r, look{object: ofJob("", false), pod: podThat(up)}, "started"},
		{"ended well", r, look{object: ofJob("", false), pod: podThat(over(0, "Completed", ""))}, "started rank-ended ended"},
		{"stopped while it ran", r, look{object: ofJob(`{"why":"asked: x"}`, true), pod: podThat(over(143, "Error", ""))}, "started stopping(asked: x) rank-ended=TERM! ended=!"},
		{"it had ended before the stop", r, look{object: ofJob(`{"why":"peer","ended":[0]}`, true), pod: podThat(over(3, "Error", ""))}, "started rank-ended=! stopping(peer) ended=!"},
		{"memory", r, look{object: ofJob("", false), pod: podThat(over(137, "OOMKilled", ""))}, "started rank-starved=! rank-ended=KILL! ended=!"},
		{"two ranks, one of them killed", both, look{object: ofJob("", false), pod: podThat(over(1, "Error", "ranks: 0:1 1:139\n"))}, "started rank-ended=! rank-ended=SEGV! ended=!"},
		{"the queue took it back", r, look{object: ofJob("", true), pod: podThat(over(143, "Error", "")), gone: true, evict: "higher priority"}, "started waiting(higher priority)"},
		{"deadline, pods still ending", r, look{object: ofJob("", false, holding("FailureTarget", "DeadlineExceeded", "m")), pod: podThat(over(143, "Error", ""))},
			"started stopping(limit: the job had its time (limits.lifetime): m) rank-ended=TERM! ended=!"},
		{"the launcher's own deadline", r, look{object: ofJob("", false), pod: podThat(over(143, "Error", "launcher: deadline\n"))}, "started stopping(limit: the job had its time (limits.lifetime)) rank-ended=TERM! ended=!"},
		{"preempted", r, look{object: ofJob("", false), pod: podThat(over(143, "Error", ""), func(p *core.Pod) {
			p.Status.Conditions = []core.PodCondition{{Type: core.DisruptionTarget, Status: core.ConditionTrue, Reason: "PreemptionByScheduler", Message: "by p2"}}
		})}, "started stopping(lost: pod run-0 was ended: a pod of higher priority took its place: by p2) rank-ended=TERM! ended=!"},
		{"evicted before it began", r, look{object: ofJob("", false), pod: &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "run-0"}, Status: core.PodStatus{Phase: core.PodFailed, Reason: "Evicted", Message: "disk"}}}, "stopping(lost: pod run-0 was ended: Evicted: disk) ended=!"},
		{"deleted by somebody", r, look{pod: podThat(up), gone: true}, "started stopping(cancelled: the job was deleted in the cluster) ended=!"},
		{"deleted by somebody, its pod still ending", r, look{object: deleted(ofJob("", false), 0), pod: podThat(endedAt(over(0, "Completed", ""), time.Second))},
			"started stopping(cancelled: the job was deleted in the cluster) rank-ended ended"},
		{"deleted by somebody long after its own end", r, look{object: deleted(ofJob("", false), time.Minute), pod: podThat(endedAt(over(3, "Error", ""), 0))},
			"started rank-ended=! ended=!"},
		{"deleted when it was over", r, look{object: deleted(ofJob("", false, holding("Complete", "", "")), 0), pod: podThat(endedAt(over(0, "Completed", ""), time.Second))},
			"started rank-ended ended"},
		{"gone after it all went well", r, look{object: ofJob("", false, holding("Complete", "", "")), gone: true}, "rank-ended ended"},
		{"a worker that its operator ended behind the master", r, look{object: ofJob("", false, holding("Succeeded", "", "")), gone: true, pod: podThat(over(143, "Error", ""))},
			"started stopping(the job had ended well, and its operator ended what still ran) rank-ended=TERM! ended"},
		{"started again in place", r, look{object: ofJob("", false), pod: podThat(core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, func(p *core.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState = over(4, "Error", "")
		})}, "started rank-ended=! ended=!"},
	} {
		t.Run(k.name, func(t *testing.T) {
			if got := wordsOf(storyOf(k.ref, 0, k.look)); got != k.want {
				t.Errorf("%s\nnot\n%s", got, k.want)
			}
		})
	}
}

// A replica that waits once more begins once more.
func TestWhatWaitsOnceMoreBeginsOnceMore(t *testing.T) {
	first := job.Status{Kind: job.Started, Rank: -1, Time: meta.Unix(1, 0).Time}
	waits := job.Status{Kind: job.Waiting, Rank: -1}
	second := job.Status{Kind: job.Started, Rank: -1, Time: meta.Unix(9, 0).Time}
	var told []job.Status
	for _, story := range [][]job.Status{{first}, {first}, {first, waits}, {first, waits}, {second}, {second}} {
		told = append(told, unheard(told, story)...)
	}
	if got := wordsOf(told); got != "started waiting started" {
		t.Error(got)
	}
}

// What Kueue says, as a real one has said it.
func TestAQueueIsReadByItsWords(t *testing.T) {
	w := func(active bool, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queueName": "lq", "active": active}, "status": map[string]any{"conditions": conditions}}}
	}
	pending := func(reason, message string) map[string]any {
		return map[string]any{"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
	}
	for name, k := range map[string]struct {
		w     *unstructured.Unstructured
		text  string
		never string
	}{
		"new":       {w(true), "it is queued in lq", ""},
		"not yet":   {w(true, pending("Pending", "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor a10g, 1 more needed")), "1 more needed", ""},
		"never":     {w(true, pending("Pending", "couldn't assign flavors to pod set main: insufficient quota: previously considered podsets requests (0) + current podset request (8) > maximum capacity (3)")), "", "can never admit it"},
		"resource":  {w(true, pending("Pending", "couldn't assign flavors to pod set main: resource example.com/rdma unavailable in ClusterQueue")), "", "can never admit it"},
		"no queue":  {w(true, pending("Inadmissible", "LocalQueue nosuch doesn't exist")), "", "can never admit it"},
		"held":      {w(true, pending("Inadmissible", "ClusterQueue team is inactive")), "ClusterQueue team is inactive", ""},
		"reserved":  {w(true, holding("QuotaReserved", "QuotaReserved", "")), "other checks of admission", ""},
		"admitted":  {w(true, holding("QuotaReserved", "", ""), holding("Admitted", "", "The workload is admitted")), "has admitted it", ""},
		"preempted": {w(true, holding("Evicted", "Preempted", "Preempted to accommodate a workload")), "waits again: Preempted to accommodate", ""},
		"its time":  {w(false, holding("Evicted", "DeactivatedDueToMaximumExecutionTimeExceeded", "The workload is deactivated due to exceeding the maximum execution time")), "", "maximum execution time"},
	} {
		t.Run(name, func(t *testing.T) {
			at := queued(k.w)
			if never := at.never != nil; never != (k.never != "") || never && !strings.Contains(at.never.Error(), k.never) || !never && !strings.Contains(at.text, k.text) {
				t.Errorf("%q, %v", at.text, at.never)
			}
		})
	}
}

// Each refusal of a registry or a scheduler names what helps.
func TestWhatHelpsIsSaidOfPodsThatDoNotStart(t *testing.T) {
	for message, want := range map[string]string{
		"pull access denied, repository does not exist or may require authorization": "pull_secrets",
		"toomanyrequests: You have reached your pull rate limit":                     "mirror",
		"manifest unknown: manifest unknown":                                         "no such image or tag",
		"dial tcp: i/o timeout":                                                      "reach the registry",
	} {
		pod := &core.Pod{Status: core.PodStatus{InitContainerStatuses: []core.ContainerStatus{{Name: "init-pytorch", Image: "alpine:3.10",
			State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ErrImagePull", Message: message}}}}}}
		if at := pulls(pod); !strings.Contains(at.image, want) || !strings.Contains(at.text, "alpine:3.10 of container init-pytorch") {
			t.Errorf("%s: %+v", message, at)
		}
	}
	said := "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: ml}. preemption: 0/3 nodes are available"
	if got := hintOf(said); !strings.Contains(got, "machines.tolerations: ['dedicated=ml']") {
		t.Error(got)
	}
}

// told is a story in words: "started rank-ended(3) ended(3)".
func told(all []job.Status) string {
	var words []string
	for _, s := range all {
		switch s.Kind {
		case job.RankEnded, job.RankStarved, job.Ended:
			words = append(words, fmt.Sprintf("%s(%d%s)", s.Kind, s.Code, s.Signal))
		case job.Stopping, job.Waiting:
			words = append(words, fmt.Sprintf("%s(%s)", s.Kind, s.Why))
		default:
			words = append(words, string(s.Kind))
		}
	}
	return strings.Join(words, " ")
}
