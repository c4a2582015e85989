package sagemaker

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// door is the way to the services of one region.
type door struct {
	region string
	api    *awsapi.API
	sm     *sagemaker.Client
	logs   *cloudwatchlogs.Client
	iam    *iam.Client
	watch  *cloudwatch.Client

	mu    sync.Mutex
	looks map[string]*look // by the name of the job
}

// look is what was seen of a job last; many ask at once, and one look serves them.
type look struct {
	mu   sync.Mutex
	at   time.Time
	job  *sagemaker.DescribeTrainingJobOutput
	why  string // dlwb's own note of a stop
	over time.Time
}

// newDoor makes the door to a region.
func newDoor(api *awsapi.API, region string) *door {
	cfg := api.Config(region)
	return &door{region: region, api: api, sm: sagemaker.NewFromConfig(cfg), logs: cloudwatchlogs.NewFromConfig(cfg),
		iam: iam.NewFromConfig(cfg), watch: cloudwatch.NewFromConfig(cfg), looks: map[string]*look{}}
}

// bucket is the client for S3. Another endpoint than AWS's has buckets in its
// paths: it has no names in DNS.
func (d *door) bucket() *s3.Client {
	return s3.NewFromConfig(d.api.Config(d.region), func(o *s3.Options) { o.UsePathStyle = aws.ToString(o.BaseEndpoint) != "" })
}

// callLimit bounds one question with its repetitions.
const callLimit = time.Minute

// freshFor is how long a look at a job serves others.
const freshFor = time.Second

// see looks at a job; nil: there is none of that name.
func (d *door) see(ctx context.Context, name string) (*look, error) {
	d.mu.Lock()
	l := d.looks[name]
	if l == nil {
		l = &look{}
		d.looks[name] = l
	}
	d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.job != nil && (time.Since(l.at) < freshFor || !l.over.IsZero() && time.Since(l.at) < time.Minute) {
		return l.copy(), nil
	}
	job, err := d.describe(ctx, name)
	if err != nil || job == nil {
		return nil, err
	}
	if stops(job) && l.why == "" {
		l.why = d.whyOf(ctx, aws.ToString(job.TrainingJobArn))
	}
	if l.job, l.at = job, time.Now(); terminal(job) && l.over.IsZero() {
		l.over = l.at
	}
	return l.copy(), nil
}

func (l *look) copy() *look { return &look{at: l.at, job: l.job, why: l.why, over: l.over} }

// forget makes the next look a new one.
func (d *door) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.looks, name)
}

// describe asks for a job; nil: there is none of that name.
func (d *door) describe(ctx context.Context, name string) (*sagemaker.DescribeTrainingJobOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := d.sm.DescribeTrainingJob(ctx, &sagemaker.DescribeTrainingJobInput{TrainingJobName: &name})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, d.explain(err)
	}
	return out, nil
}

// whyOf reads why dlwb stopped a job; empty: it did not, or nobody may see it.
func (d *door) whyOf(ctx context.Context, arn string) string {
	tags, err := d.tagsOf(ctx, arn)
	if err != nil {
		return ""
	}
	return whyFrom(tags)
}

// tagsOf are the tags of a job.
func (d *door) tagsOf(ctx context.Context, arn string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	all := map[string]string{}
	pages := sagemaker.NewListTagsPaginator(d.sm, &sagemaker.ListTagsInput{ResourceArn: &arn})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, d.explain(err)
		}
		for _, t := range page.Tags {
			all[aws.ToString(t.Key)] = aws.ToString(t.Value)
		}
	}
	return all, nil
}
