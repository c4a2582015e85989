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
	way := passage{enter: enter, progress: progress, been: map[string]bool{}}
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
			way.follow(l.job)
			if !began(l.job).IsZero() || terminal(l.job) {
				return neverBegan(l.job)
			}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// passage tells the steps that a job goes through, each one also where it was over
// before anybody looked.
type passage struct {
	enter    func(step, text string)
	progress cloud.Progress
	walked   int // transitions that were told
	at, said string
	been     map[string]bool
}

// follow tells what is new.
func (p *passage) follow(j *sagemaker.DescribeTrainingJobOutput) {
	moves := j.SecondaryStatusTransitions
	for ; p.walked < len(moves); p.walked++ {
		m := moves[p.walked]
		p.tell(standing(m.Status, aws.ToString(m.StatusMessage), j.ResourceConfig))
	}
	message := ""
	if n := len(moves); n > 0 {
		message = aws.ToString(moves[n-1].StatusMessage) // it may have changed
	}
	p.tell(standing(j.SecondaryStatus, message, j.ResourceConfig))
	if !began(j).IsZero() {
		p.fill("")
	}
}

func (p *passage) tell(step, words string) {
	switch {
	case step != "" && step != p.at:
		p.fill(step)
		p.at, p.said, p.been[step] = step, words, true
		p.enter(step, words)
	case words != p.said && words != "":
		p.said = words
		p.progress(-1, words)
	}
}

// fill tells the steps before one of which SageMaker has told nothing; empty: all.
func (p *passage) fill(before string) {
	for _, step := range []string{stepQueue, stepMachines, stepImage} {
		if step == before {
			return
		}
		if !p.been[step] {
			p.been[step] = true
			p.enter(step, "SageMaker has told nothing of it")
		}
	}
}

const (
	firstLook = 200 * time.Millisecond
	lookEvery = 3 * time.Second
)

// standing is the step of a status, and why.
func standing(status types.SecondaryStatus, message string, c *types.ResourceConfig) (step, text string) {
	s, known := steps[status]
	if !known {
		return "", ""
	}
	what := "its machines"
	if c != nil {
		what = fmt.Sprintf("%d × %s", aws.ToInt32(c.InstanceCount), c.InstanceType)
	}
	text = fmt.Sprintf(s.text, what)
	if more := strings.TrimSpace(message); more != "" {
		text += " (" + more + ")"
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
	return &cloud.NeverBegan{Err: &plainError{sentence("the job failed before it began", reason), adviceOf(reason)}}
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
