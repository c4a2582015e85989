package ec2

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/options"
)

// A subnet with a way to the internet for IPv6 only is found by the plan and not by
// waiting for machines that nobody reaches.
func TestMotoASubnetWithoutAWayForIPv4IsFoundByThePlan(t *testing.T) {
	motoEnv(t, moto(t))
	p := New(Options{Dir: t.TempDir()})
	c, err := p.connect(t.Context(), "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	ec2, ctx := c.(*awsec2.Client), t.Context()
	vpc, err := ec2.CreateVpc(ctx, &awsec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16"), AmazonProvidedIpv6CidrBlock: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	id := vpc.Vpc.VpcId
	gate, err := ec2.CreateInternetGateway(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	way := gate.InternetGateway.InternetGatewayId
	if _, err := ec2.AttachInternetGateway(ctx, &awsec2.AttachInternetGatewayInput{VpcId: id, InternetGatewayId: way}); err != nil {
		t.Fatal(err)
	}
	tables, err := ec2.DescribeRouteTables(ctx, &awsec2.DescribeRouteTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables.RouteTables {
		if aws.ToString(table.VpcId) == *id {
			if _, err := ec2.CreateRoute(ctx, &awsec2.CreateRouteInput{RouteTableId: table.RouteTableId, DestinationIpv6CidrBlock: aws.String("::/0"), GatewayId: way}); err != nil {
				t.Fatal(err)
			}
		}
	}
	both, err := ec2.CreateSubnet(ctx, &awsec2.CreateSubnetInput{VpcId: id, CidrBlock: aws.String("10.9.1.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	spec := cloud.Spec{Name: "train", Count: 1, Regions: []string{"us-east-1"}, Instance: "g5.xlarge", Own: &options.Machines{Subnet: aws.ToString(both.Subnet.SubnetId)}}
	if f := findingOf(t, p.Check(ctx, spec), "network"); f.OK || !strings.Contains(f.Text, "no route to an internet gateway") {
		t.Errorf("%+v", f)
	}
}
