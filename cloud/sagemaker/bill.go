package sagemaker

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

var _ cloud.Biller = (*Provider)(nil)

// shortest is the least time that a job is given: SageMaker takes less, and no machine
// is ready in it.
const shortest = time.Minute

// limitOf is how long a job may run: its lifetime, or what the budget pays for. keep is
// how long its machines are kept behind it, which the budget pays too.
func limitOf(spec cloud.Spec, keep time.Duration, perHour float64) (time.Duration, error) {
	limit := spec.Lifetime
	if limit <= 0 {
		limit = 24 * time.Hour
	}
	if spec.Budget > 0 {
		if perHour <= 0 {
			return 0, &plainError{fmt.Sprintf("limits.budget can't be held: the price of %s is not known", spec.Instance),
				"leave limits.budget out and set limits.lifetime; or let dlwb read the price list (pricing:GetProducts)"}
		}
		paid := cloud.LatestEnd(spec.Budget, limit+keep, perHour).After - keep
		if paid < shortest {
			return 0, unpaid(spec.Budget, keep, perHour)
		}
		limit = min(limit, paid)
	}
	if limit > longest {
		return 0, &plainError{"a training job has 28 days at most, and limits.lifetime is " + units.Duration(limit), "limits.lifetime: 672h"}
	}
	return max(limit.Truncate(time.Second), shortest), nil
}

func unpaid(budget float64, keep time.Duration, perHour float64) error {
	text := fmt.Sprintf("%s pays for less than a minute of a job at %s", units.USD(budget), units.PerHour(perHour))
	if keep > 0 {
		text += " and the " + units.Duration(keep) + " of machines.keep_alive behind it"
	}
	return &cloud.Unpaid{Err: &plainError{text, "raise limits.budget"}}
}

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
