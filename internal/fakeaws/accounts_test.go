package fakeaws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// What real accounts have besides a default VPC: networks of their own, endpoints,
// and reserved capacity.
func TestAccountsHaveVPCsEndpointsAndReservations(t *testing.T) {
	r := start(t, Options{Regions: []Region{{Name: "us-east-1",
		VPCs:         []VPC{{Name: "lab", Endpoint: true, Subnets: []Subnet{{Name: "in", Zone: "b", Private: true}, {Name: "out", Zone: "a"}}}},
		Reservations: []Reservation{{ID: "cr-0aaaaaaaaaaaaaaaa", Type: "c5.large", Zone: "a", Count: 1}}}}})
	ctx := t.Context()
	vpcs := must(r.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: []types.Filter{filter("tag:Name", "lab")}}))(t).Vpcs
	if len(vpcs) != 1 || *vpcs[0].VpcId != VPCID("us-east-1", "lab") || *vpcs[0].CidrBlock != "10.0.0.0/16" {
		t.Fatalf("%+v", vpcs)
	}
	subnets := must(r.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("tag:Name", "in"), filter("vpc-id", *vpcs[0].VpcId)}}))(t).Subnets
	if len(subnets) != 1 || *subnets[0].AvailabilityZone != "us-east-1b" || *subnets[0].DefaultForAz {
		t.Fatalf("%+v", subnets)
	}
	if all := must(r.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("default-for-az", "true")}}))(t).Subnets; len(all) != 3 {
		t.Errorf("%d default subnets", len(all))
	}
	ends := must(r.ec2.DescribeInstanceConnectEndpoints(ctx, &ec2.DescribeInstanceConnectEndpointsInput{
		Filters: []types.Filter{filter("vpc-id", *vpcs[0].VpcId), filter("state", "create-complete")}}))(t).InstanceConnectEndpoints
	if len(ends) != 1 || *ends[0].InstanceConnectEndpointId != EndpointID("us-east-1", "lab") || ends[0].SecurityGroupIds[0] != EndpointGroup("us-east-1", "lab") || *ends[0].DnsName == "" {
		t.Fatalf("%+v", ends)
	}

	reserve := func(in *ec2.RunInstancesInput) {
		in.CapacityReservationSpecification = &types.CapacityReservationSpecification{
			CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: aws.String("cr-0aaaaaaaaaaaaaaaa")}}
		in.Placement = &types.Placement{AvailabilityZone: aws.String("us-east-1a")}
	}
	left := func() int32 {
		return *must(r.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{}))(t).CapacityReservations[0].AvailableInstanceCount
	}
	same(t, "left before", left(), 1)
	r.launch(1, reserve)
	same(t, "left after", left(), 0)
	_, err := r.run(r.order(1, reserve))
	r.refuses("ReservationCapacityExceeded", err)
	_, err = r.run(r.order(1, reserve, func(in *ec2.RunInstancesInput) { in.Placement.AvailabilityZone = aws.String("us-east-1b") }))
	r.refuses("InvalidParameterValue", err)
	_, err = r.run(r.order(1, func(in *ec2.RunInstancesInput) {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	}))
	r.refuses("InvalidParameterCombination", err)
}
