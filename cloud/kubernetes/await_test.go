package kubernetes

import (
	"errors"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud"
)

// A job that is over while none of its pods has started has failed, in the words of
// what ended it; one whose pod has run tells its own story.
func TestAJobThatEndsBeforeItsPodsStartNeverBegan(t *testing.T) {
	for _, k := range kinds {
		if k == rayJob { // it has no conditions: TestWhyARayJobDoesNotBeginIsTold
			continue
		}
		object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}}}}}
		pod := core.Pod{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{k.indexLabel: "0"}}, Status: core.PodStatus{Phase: core.PodPending}}
		s := scene{ref: ref{Kind: k.name, Ranks: [][]int{{0}}}, object: object}
		for _, pods := range [][]core.Pod{nil, {pod}} {
			s.pods = pods
			never := new(cloud.NeverBegan)
			if got := s.stand(); !errors.As(got.never, &never) || !strings.Contains(never.Error(), "DeadlineExceeded") {
				t.Errorf("%s with %d pods: %+v", k.name, len(pods), got)
			}
		}
		pod.Status = core.PodStatus{Phase: core.PodFailed, ContainerStatuses: []core.ContainerStatus{{Name: k.container,
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 3}}}}}
		if s.pods = []core.Pod{pod}; !s.stand().begun {
			t.Errorf("%s: a pod that has run: %+v", k.name, s.stand())
		}
	}
}
