package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// downLimit bounds the wait for a job to end: its containers have two minutes, and
// then its output is taken home.
const downLimit = 10 * time.Minute

// Down ends the jobs of a life, and then removes the code that they were given. What
// they have left as output and checkpoints stays.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	r := cloud.Receipt{Cluster: life.Name, Provider: p.Kind(), Lived: cloud.Lived(life.Began, time.Now())}
	entries, err := life.Ledger.Entries()
	if err != nil {
		return r, err
	}
	p.stopAll(ctx, life, entries)
	over := map[string]bool{}
	var all error
	for _, kind := range []string{kindJob, kindCode} {
		for i := range entries {
			e := &entries[i]
			if e.Kind != kind {
				continue
			}
			res, err := p.remove(ctx, life, e, over, progress)
			all = errors.Join(all, err)
			r.Resources = append(r.Resources, res)
			r.Cost += res.Cost
			if kind == kindJob && res.State != cloud.Gone {
				r.ProcessesLeft++
			}
		}
	}
	images(entries, progress)
	return r, all
}

// stopAll asks SageMaker to end the jobs of a life, where there are several, before any
// of them is waited for: each costs until it ends. What fails is told by remove, which
// asks again.
func (p *Provider) stopAll(ctx context.Context, life cloud.Life, entries []cloud.Entry) {
	var jobs []*cloud.Entry
	for i := range entries {
		if e := &entries[i]; e.Kind == kindJob && e.Open() {
			jobs = append(jobs, e)
		}
	}
	if len(jobs) < 2 {
		return
	}
	for _, e := range jobs {
		r, err := ownerOf(e)
		if err != nil {
			continue
		}
		if d, err := p.enter(ctx, r); err == nil {
			_ = d.stop(ctx, life, r.Name, whyDown)
		}
	}
}

// whyDown is why Down stops a job.
const whyDown = "asked: the cluster was taken down"

// remove removes what one entry of the ledger stands for. over are the jobs that are
// proven to have ended: the code of others stays.
func (p *Provider) remove(ctx context.Context, life cloud.Life, e *cloud.Entry, over map[string]bool, progress cloud.Progress) (cloud.Resource, error) {
	res := cloud.Resource{Kind: e.Kind, ID: e.ID, State: cloud.Unknown, Lived: cloud.Lived(e.IntentAt, time.Now())}
	r, err := ownerOf(e)
	if res.ID == "" {
		res.ID = e.Token
	}
	var d *door
	if err == nil {
		d, err = p.enter(ctx, r)
	}
	if err != nil {
		res.Proof = err.Error()
		if e.Kind == kindJob {
			over[r.Name] = false
		}
		return res, err
	}
	if e.Kind == kindJob {
		res.ID = r.Name
		err = d.endJob(ctx, life, e, r, &res, progress)
		over[r.Name] = res.State == cloud.Gone
		return res, err
	}
	if ended, asked := over[r.Name]; asked && !ended {
		res.State, res.Proof = cloud.Alive, "its job has not ended, and may need it"
		return res, nil
	}
	return res, d.removeCode(ctx, life, e, r, &res)
}

// endJob ends a job and proves it. The entry of one that was never made is closed
// when it would be seen by now.
func (d *door) endJob(ctx context.Context, life cloud.Life, e *cloud.Entry, r ref, res *cloud.Resource, progress cloud.Progress) error {
	there, err := d.sight(ctx, life, e)
	if whose := new(whoseError); errors.As(err, &whose) {
		// SageMaker has each name once: where a job of ours has ended under it, or one
		// of somebody else's, nothing of ours lives.
		if j, look := d.describe(ctx, r.Name); look == nil && j != nil && terminal(j) && !warm(j) {
			return d.closeJob(life, e, r, j, res, progress)
		}
	}
	if err != nil {
		res.Proof = err.Error()
		return err
	}
	if !there {
		res.State, res.Proof = cloud.Gone, "SageMaker has no job of that name: it was never made"
		if e.ID != "" {
			res.Proof = e.Proof // it has proven that already
		}
		return closeEntry(life, e, res.Proof)
	}
	if err := d.stop(ctx, life, r.Name, whyDown); err != nil {
		res.State, res.Proof = cloud.Alive, err.Error()
		return err
	}
	for until, said := time.Now().Add(downLimit), ""; ; {
		j, err := d.describe(ctx, r.Name)
		if err != nil {
			res.Proof = err.Error()
			return err
		}
		if j != nil && terminal(j) && !warm(j) {
			return d.closeJob(life, e, r, j, res, progress)
		}
		if j != nil && terminal(j) {
			if err := d.cool(ctx, r.Name); err != nil {
				res.State, res.Proof = cloud.Alive, err.Error()
				return err
			}
		}
		if text := stateText(j); text != said {
			said = text
			progress(-1, "job "+r.Name+": "+text)
		}
		res.State, res.Proof = cloud.Alive, "SageMaker says "+said
		if time.Now().After(until) {
			return fmt.Errorf("job %s has not ended within %s", r.Name, downLimit)
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func stateText(j *sagemaker.DescribeTrainingJobOutput) string {
	switch {
	case j == nil:
		return "nothing"
	case warm(j):
		return fmt.Sprintf("%s, and its machines stay for another", j.TrainingJobStatus)
	}
	return fmt.Sprintf("%s (%s)", j.TrainingJobStatus, j.SecondaryStatus)
}

// closeJob puts the proof on record.
func (d *door) closeJob(life cloud.Life, e *cloud.Entry, r ref, j *sagemaker.DescribeTrainingJobOutput, res *cloud.Resource, progress cloud.Progress) error {
	res.State, res.Proof = cloud.Gone, "SageMaker says "+string(j.TrainingJobStatus)
	if billed := billedFor(j); billed > 0 {
		res.Proof += fmt.Sprintf("; %s are billed", units.Seconds(billed.Seconds()))
		res.Cost = r.costOf(j)
	}
	if saved := savedBy(j); saved != "" {
		progress(-1, saved)
	}
	if j.TrainingJobStatus == types.TrainingJobStatusCompleted && j.ModelArtifacts != nil && aws.ToString(j.ModelArtifacts.S3ModelArtifacts) != "" {
		progress(-1, "the model stays at "+aws.ToString(j.ModelArtifacts.S3ModelArtifacts))
	}
	return closeEntry(life, e, res.Proof)
}

func closeEntry(life cloud.Life, e *cloud.Entry, proof string) error {
	if !e.Open() {
		return nil
	}
	return life.Ledger.Close(e.Token, proof)
}

// warm reports whether the machines of a job that is over are kept, and cost. Those
// that another job has taken over are that job's.
func warm(j *sagemaker.DescribeTrainingJobOutput) bool {
	return j.WarmPoolStatus != nil && j.WarmPoolStatus.Status == types.WarmPoolResourceStatusAvailable
}

// cool gives the machines of a warm pool back.
func (d *door) cool(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := d.sm.UpdateTrainingJob(ctx, &sagemaker.UpdateTrainingJobInput{TrainingJobName: &name, ResourceConfig: &types.ResourceConfigForUpdate{KeepAlivePeriodInSeconds: aws.Int32(0)}})
	return d.explain(err)
}

// removeCode removes the objects of a run and looks whether any is left.
func (d *door) removeCode(ctx context.Context, life cloud.Life, e *cloud.Entry, r ref, res *cloud.Resource) error {
	res.ID = "s3://" + r.Bucket + "/" + r.Prefix
	for range 3 {
		left, err := d.removeOnce(ctx, r)
		if code, _ := awsapi.CodeOf(err); code == "NoSuchBucket" {
			left, err = 0, nil
		}
		if err != nil {
			res.Proof = err.Error()
			return d.explainS3(r.Bucket, err)
		}
		if left == 0 {
			res.State, res.Proof = cloud.Gone, "S3 lists nothing below it"
			return closeEntry(life, e, res.Proof)
		}
	}
	res.State, res.Proof = cloud.Alive, "S3 still lists objects below it"
	return nil
}

// removeOnce removes what is listed, and says how much that was.
func (d *door) removeOnce(ctx context.Context, r ref) (found int, err error) {
	client := d.bucket()
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &r.Bucket, Prefix: &r.Prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, err
		}
		for _, o := range page.Contents {
			found++
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &r.Bucket, Key: o.Key}); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}
