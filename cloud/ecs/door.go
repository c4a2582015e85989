package ecs

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// door is the way to the services of one region.
type door struct {
	region string
	api    *awsapi.API
	ecs    *awsecs.Client
	asg    *autoscaling.Client
	ec2    *awsec2.Client
	logs   *cloudwatchlogs.Client
	iam    *iam.Client
}

// callLimit bounds one question with its repetitions.
const callLimit = time.Minute

// newDoor makes the door to a region.
func newDoor(api *awsapi.API, region string) *door {
	cfg := api.Config(region)
	return &door{region: region, api: api, ecs: awsecs.NewFromConfig(cfg), asg: autoscaling.NewFromConfig(cfg), ec2: api.EC2(region),
		logs: cloudwatchlogs.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg)}
}

// account is whose the credentials are.
func (d *door) account(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	id, err := d.api.Identity(ctx)
	if err == nil && id.Account == "" {
		err = errors.New("AWS names no account")
	}
	if err != nil {
		return "", d.explain(err)
	}
	return id.Account, nil
}

// enter opens the door to where something is, if the credentials are of its account:
// those of another see nothing there, which proves nothing.
func (p *Provider) enter(ctx context.Context, region, account string) (*door, error) {
	d, err := p.doors.Open(ctx, region)
	if err != nil {
		return nil, err
	}
	have, err := d.account(ctx)
	if err != nil {
		return nil, err
	}
	if account != "" && account != have {
		return nil, &plainError{"it is in the account " + account + ", and the credentials are of " + have, "AWS_PROFILE=… of that account"}
	}
	return d, nil
}

// regionOf is the region of a profile; empty: that of the user's configuration.
func regionOf(spec cloud.Spec) string {
	if len(spec.Regions) > 0 {
		return spec.Regions[0]
	}
	return ""
}
