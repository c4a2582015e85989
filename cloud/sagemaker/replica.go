package sagemaker

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
)

// replica is a host of a training job: algo-1 is the first.
type replica struct {
	p      *Provider
	life   cloud.Life
	ref    ref
	number int
}

var _ job.Replica = (*replica)(nil)

func (r *replica) door(ctx context.Context) (*door, error) { return r.p.enter(ctx, r.ref) }

func (r *replica) mine() []int { return r.ref.Ranks[r.number] }

// story looks once. early: the job is over, and its host may still tell how its ranks
// ended.
func (r *replica) story(ctx context.Context) (all []job.Status, state job.State, early bool, err error) {
	d, err := r.door(ctx)
	if err != nil {
		return nil, job.State{Phase: job.Unknown}, false, err
	}
	l, err := d.see(ctx, r.ref.Name)
	if err != nil {
		return nil, job.State{Phase: job.Unknown}, false, err
	}
	if l == nil {
		return nil, job.State{Phase: job.Absent, Why: "SageMaker has no such job"}, false, nil
	}
	var ends map[int]int
	if terminal(l.job) && l.job.TrainingJobStatus != types.TrainingJobStatusStopped && r.ref.Told && !began(l.job).IsZero() {
		if ends, err = r.endsOf(ctx, d); err != nil {
			return nil, job.State{Phase: job.Unknown}, false, err
		}
		early = ends == nil && time.Since(l.over) < lateLimit
	}
	all = storyOf(r.ref, r.number, l.job, l.why, ends)
	return all, stateOf(all, l.job), early, nil
}

// State looks once.
func (r *replica) State(ctx context.Context) (job.State, error) {
	_, state, early, err := r.story(ctx)
	if early {
		state.Phase, state.Ranks = job.Running, map[int]job.Exit{}
	}
	return state, err
}

// WatchStatus tells the story as it becomes known, by looking.
func (r *replica) WatchStatus(ctx context.Context, sink func(job.Status) error, looked func(job.State)) error {
	told := 0
	for wait := firstLook; ; wait = min(wait*2, lookEvery) {
		all, state, early, err := r.story(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err == nil && !early:
			looked(state)
			for ; told < len(all); told++ {
				if err := sink(all[told]); err != nil || all[told].Kind == job.Ended {
					return err
				}
			}
			if state.Phase == job.Absent {
				return &job.UnrecordedError{State: state, Err: &plainError{state.Why, ""}}
			}
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// Stop ends the whole job, whichever of its hosts is asked, and notes why in a tag of
// the job. SageMaker gives the containers two minutes after SIGTERM, and then takes
// the output home: the job may be stopping for longer than the grace.
func (r *replica) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	d, err := r.door(ctx)
	if err != nil {
		return 0, err
	}
	if err := d.stop(ctx, r.life, r.ref.Name, why); err != nil {
		return len(r.mine()), err
	}
	for until := time.Now().Add(grace + stopLimit); ; {
		l, err := d.see(ctx, r.ref.Name)
		if err == nil && (l == nil || terminal(l.job) || l.job.SecondaryStatus == types.SecondaryStatusUploading) {
			return 0, nil
		}
		if time.Now().After(until) {
			return len(r.mine()), err
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return len(r.mine()), err
		}
	}
}

// stopLimit is what SageMaker itself gives a container.
const stopLimit = 2 * time.Minute

// stop asks SageMaker to end a job of a life that has not ended. That the reason can't be noted
// keeps nobody from stopping what costs money.
func (d *door) stop(ctx context.Context, life cloud.Life, name, why string) error {
	j, err := d.describe(ctx, name)
	if err != nil || j == nil || terminal(j) {
		return err
	}
	if err := d.ours(ctx, life, name, aws.ToString(j.TrainingJobArn)); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if !stops(j) && why != "" {
		_, _ = d.sm.AddTags(call, &sagemaker.AddTagsInput{ResourceArn: j.TrainingJobArn, Tags: []types.Tag{{Key: aws.String(tagWhy), Value: aws.String(tagText(why))}}})
	}
	defer d.forget(name)
	if j.TrainingJobStatus == types.TrainingJobStatusStopping {
		return nil
	}
	_, err = d.sm.StopTrainingJob(call, &sagemaker.StopTrainingJobInput{TrainingJobName: &name})
	if code, says := awsapi.CodeOf(err); code == "ValidationException" && strings.Contains(says, "status") || absent(err) {
		return nil // it has just ended
	}
	return d.explain(err)
}

// whyFrom is dlwb's note of a stop among the tags of a job.
func whyFrom(tags map[string]string) string { return tags[tagWhy] }

// Reach tells whether SageMaker can be asked.
func (r *replica) Reach(ctx context.Context, news func(connected bool, why string)) {
	job.Reach(ctx, func(ctx context.Context) error {
		d, err := r.door(ctx)
		if err == nil {
			_, err = d.see(ctx, r.ref.Name)
		}
		return err
	}, news)
}
