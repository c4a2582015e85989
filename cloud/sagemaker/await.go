package sagemaker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/waits"
)

// steps are where a job stands, by the word that SageMaker has for it.
var steps = map[types.SecondaryStatus]struct{ step, text string }{
	types.SecondaryStatusStarting:                 {stepQueue, "SageMaker looks for %s; that takes some minutes, and longer where there is no room"},
	types.SecondaryStatusPending:                  {stepQueue, "it waits for %s"},
	types.SecondaryStatusLaunchingMlInstances:     {stepMachines, "%s are started; usually 2 to 4 minutes"},
	types.SecondaryStatusPreparingTrainingStack:   {stepMachines, "%s are made ready"},
	types.SecondaryStatusInterrupted:              {stepQueue, "its spot machines were taken back; it waits for %s"},
	types.SecondaryStatusRestarting:               {stepMachines, "%s are started again"},
	types.SecondaryStatusDownloading:              {stepImage, "the channels are copied to %s"},
	types.SecondaryStatusDownloadingTrainingImage: {stepImage, "the image comes to %s; 2 to 5 minutes for AWS's own"},
}

// Await looks at the job until its containers have begun, or it is over.
func (p *Provider) Await(ctx context.Context, _ cloud.Life, text string, enter func(step, text string), progress cloud.Progress) error {
	r, err := readRef(text)
	if err != nil {
		return err
	}
	d, err := p.enter(ctx, r)
	if err != nil {
		return err
	}
	at, said := "", ""
	for wait := firstLook; ; wait = min(wait*2, lookEvery) {
		l, err := d.see(ctx, r.Name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err != nil:
			progress(-1, "SageMaker can't be asked: "+err.Error())
		case l == nil:
			return fmt.Errorf("there is no training job %s in %s", r.Name, r.Region)
		default:
			step, words := standing(l.job)
			if step != "" && step != at {
				at, said = step, words
				enter(step, words)
			} else if words != said && words != "" {
				said = words
				progress(-1, words)
			}
			if !began(l.job).IsZero() || terminal(l.job) {
				return neverBegan(l.job)
			}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

const (
	firstLook = 200 * time.Millisecond
	lookEvery = 3 * time.Second
)

// standing is the step in which a job is, and why.
func standing(j *sagemaker.DescribeTrainingJobOutput) (step, text string) {
	s, known := steps[j.SecondaryStatus]
	if !known {
		return "", ""
	}
	what := "its machines"
	if c := j.ResourceConfig; c != nil {
		what = fmt.Sprintf("%d × %s", aws.ToInt32(c.InstanceCount), c.InstanceType)
	}
	text = fmt.Sprintf(s.text, what)
	if n := len(j.SecondaryStatusTransitions); n > 0 {
		if more := strings.TrimSpace(aws.ToString(j.SecondaryStatusTransitions[n-1].StatusMessage)); more != "" {
			text += " (" + more + ")"
		}
	}
	return s.step, text
}

// neverBegan is the error of a job that failed before its containers began; one that
// was stopped tells so by its replicas.
func neverBegan(j *sagemaker.DescribeTrainingJobOutput) error {
	if j.TrainingJobStatus != types.TrainingJobStatusFailed || !began(j).IsZero() {
		return nil
	}
	reason := aws.ToString(j.FailureReason)
	return &plainError{sentence("the job failed before it began", reason), adviceOf(reason)}
}

// adviceOf is what to do about a failure, by SageMaker's words.
func adviceOf(reason string) string {
	low := strings.ToLower(reason)
	switch {
	case strings.Contains(low, "capacityerror"), strings.Contains(low, "insufficient capacity"):
		return "another type or region, spot with machines.max_wait, or later"
	case strings.Contains(low, "image") && strings.Contains(low, "not found"), strings.Contains(low, "cannot find image"):
		return "look at machines.image: its repository and tag, in the region of the job"
	case strings.Contains(low, "access denied"), strings.Contains(low, "no permission"), strings.Contains(low, "not authorized"):
		return "the role lacks that right: dlwb plan shows what it needs"
	case strings.Contains(low, "no s3 objects found"), strings.Contains(low, "data download"):
		return "look at machines.channels: is anything there?"
	}
	return "dlwb logs shows what there is of its output"
}
