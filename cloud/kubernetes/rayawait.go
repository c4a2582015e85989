package kubernetes

import (
	"errors"
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"

	"github.com/dlwb/dlwb/cloud"
)

// rayStand says where a RayJob stands: its cluster comes up whole before the driver is
// handed in.
func (s scene) rayStand() standing {
	status := rayStatusOf(s.object)
	live := map[string]*core.Pod{}
	var driver *core.Pod
	for i := range s.pods {
		switch pod := &s.pods[i]; {
		case pod.Labels[labelPart] == partDriver:
			driver = pod
		case pod.DeletionTimestamp == nil:
			live[pod.Name] = pod
		}
	}
	switch {
	case begun(driver, rayJob.container), status.Job != "" && status.Job != "PENDING":
		return standing{step: stepStart, begun: true}
	case status.over():
		why := status.why()
		if _, said, is := strings.Cut(why, ": "); is {
			why = said
		}
		return standing{never: &cloud.NeverBegan{Err: errors.New("the job ended before its driver had begun: " + why)}}
	case len(live) == 0:
		return s.withoutPods()
	}
	started := 0
	for _, pod := range live {
		c := containerOf(pod, rayJob.container)
		if end := ending(c); end != nil && c.State.Running == nil {
			return failsToStart(pod, end)
		}
		if begun(pod, rayJob.container) {
			started++
		}
	}
	switch {
	case started < len(s.ref.Ranks):
		return s.withPods(rayJob, live, started)
	case driver == nil:
		return standing{step: stepStart, text: "all pods run, and Ray comes up in them"}
	}
	if at := pulls(driver); at.text != "" {
		return at
	}
	if why := unschedulable(driver); why != "" {
		return standing{step: stepStart, text: why}
	}
	return standing{step: stepStart, text: "Ray is up, and the driver is being handed in"}
}

// failsToStart is a pod of a cluster whose container ends before the driver is there. What
// the launcher says holds for each start; anything else may be another the next time.
func failsToStart(pod *core.Pod, end *core.ContainerStateTerminated) standing {
	text := fmt.Sprintf("%s: Ray does not come up, its container ended with code %d", pod.Name, end.ExitCode)
	if said, is := strings.CutPrefix(strings.TrimSpace(end.Message), "launcher: "); is {
		return standing{step: stepStart, never: &apiError{text: pod.Name + ": " + said, next: "machines.image is one with Ray, tar and sh: such as rayproject/ray"}}
	}
	if end.Reason == "OOMKilled" {
		text += " for lack of memory (machines.mem)"
	}
	return standing{step: stepStart, text: sentence(text+", and is started again", end.Message)}
}
