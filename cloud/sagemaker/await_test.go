package sagemaker

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"
)

// A step that was over before anybody looked is told, also one of which SageMaker tells
// nothing (it has no word for the start of machines any more), and each only once.
func TestAStepThatWasOverBeforeALookIsTold(t *testing.T) {
	at := time.Now()
	move := func(status types.SecondaryStatus) types.SecondaryStatusTransition {
		return types.SecondaryStatusTransition{Status: status, StartTime: &at, StatusMessage: aws.String(string(status))}
	}
	for name, c := range map[string]struct {
		looks [][]types.SecondaryStatus
		want  []string
	}{
		"all at one look":     {[][]types.SecondaryStatus{{"Starting", "Downloading", "Training"}}, []string{stepQueue, stepImage, stepMachines}},
		"one after the other": {[][]types.SecondaryStatus{{"Starting"}, {"Starting", "LaunchingMLInstances"}, {"Starting", "LaunchingMLInstances", "Downloading"}}, []string{stepQueue, stepMachines, stepImage}},
		"taken back":          {[][]types.SecondaryStatus{{"Starting", "Interrupted", "Starting", "Downloading", "Training"}}, []string{stepQueue, stepMachines, stepImage}},
		"no transitions":      {[][]types.SecondaryStatus{{}}, nil},
		"a word of next year": {[][]types.SecondaryStatus{{"Starting", "WarmingUp"}}, []string{stepQueue}},
	} {
		var told []string
		p := passage{been: map[string]bool{}, enter: func(step, _ string) { told = append(told, step) }, progress: func(int, string) {}}
		for _, look := range c.looks {
			j := &sagemaker.DescribeTrainingJobOutput{}
			for _, status := range look {
				j.SecondaryStatusTransitions = append(j.SecondaryStatusTransitions, move(status))
				j.SecondaryStatus = status
			}
			p.follow(j)
			p.follow(j)
		}
		slices.Sort(told)
		want := slices.Sorted(slices.Values(c.want))
		if !slices.Equal(told, want) {
			t.Errorf("%s: told is %q, want %q", name, told, want)
		}
	}
}
