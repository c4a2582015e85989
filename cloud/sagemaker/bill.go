package sagemaker

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"

	"github.com/dlwb/dlwb/cloud"
)

var _ cloud.Biller = (*Provider)(nil)

// Billed is what the job of a run has cost, as SageMaker bills it.
func (p *Provider) Billed(ctx context.Context, life cloud.Life, run string) (usd float64, final bool, err error) {
	made, _, err := entryOf(life, nameOf(run))
	if err != nil || made == nil || made.ID == "" && made.ClosedAt != nil {
		return 0, err == nil, err
	}
	r, err := ownerOf(made)
	if err != nil {
		return 0, false, err
	}
	d, err := p.enter(ctx, r)
	if err != nil {
		return 0, false, err
	}
	j, err := d.describe(ctx, r.Name)
	if err != nil || j == nil || !terminal(j) || warm(j) {
		return 0, false, err
	}
	return r.costOf(j), true, nil
}

// billedFor is for how long each machine of a job that is over is paid: while it ran,
// and while it was kept for another.
func billedFor(j *sagemaker.DescribeTrainingJobOutput) time.Duration {
	all := aws.ToInt32(j.BillableTimeInSeconds)
	if j.WarmPoolStatus != nil {
		all += aws.ToInt32(j.WarmPoolStatus.ResourceRetainedBillableTimeInSeconds)
	}
	return time.Duration(all) * time.Second
}

func (r ref) costOf(j *sagemaker.DescribeTrainingJobOutput) float64 {
	return billedFor(j).Hours() * r.PerHour
}
