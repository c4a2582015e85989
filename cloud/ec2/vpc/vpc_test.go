package vpc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// answers are subnets that AWS shows.
type answers struct {
	API
	all []types.Subnet
}

// DescribeSubnets shows them.
func (a answers) DescribeSubnets(context.Context, *awsec2.DescribeSubnetsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSubnetsOutput, error) {
	return &awsec2.DescribeSubnetsOutput{Subnets: a.all}, nil
}

// A subnet of which AWS does not say where it is, is there all the same: what is not
// known is its zone.
func TestASubnetWithoutAZoneIsDoubtAndNotNone(t *testing.T) {
	bare := types.Subnet{SubnetId: aws.String("subnet-1"), VpcId: aws.String("vpc-1")}
	_, err := Subnets(t.Context(), answers{all: []types.Subnet{bare}}, "us-east-1", "", "subnet-1")
	var p *awsapi.Problem
	if !errors.As(err, &p) || !p.Doubtful() || !strings.Contains(p.Cause, "in which zone subnet-1 is") || !strings.Contains(p.Next, "aws ec2 describe-subnets --region us-east-1 --subnet-ids subnet-1") {
		t.Errorf("%+v", err)
	}
	whole := bare
	whole.SubnetId, whole.AvailabilityZone = aws.String("subnet-2"), aws.String("us-east-1b")
	if all, err := Subnets(t.Context(), answers{all: []types.Subnet{bare, whole}}, "us-east-1", "vpc-1", ""); err != nil || len(all) != 1 || aws.ToString(all[0].SubnetId) != "subnet-2" {
		t.Errorf("%v %v", all, err)
	}
}
