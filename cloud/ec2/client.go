package ec2

import (
	"context"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
)

// client is what this package calls of EC2 in one region; tests put a model in
// its place.
type client interface {
	machines
	networks
	leftovers

	GetConsoleOutput(context.Context, *awsec2.GetConsoleOutputInput, ...func(*awsec2.Options)) (*awsec2.GetConsoleOutputOutput, error)
	GetSpotPlacementScores(context.Context, *awsec2.GetSpotPlacementScoresInput, ...func(*awsec2.Options)) (*awsec2.GetSpotPlacementScoresOutput, error)
	DescribeCapacityReservations(context.Context, *awsec2.DescribeCapacityReservationsInput, ...func(*awsec2.Options)) (*awsec2.DescribeCapacityReservationsOutput, error)
	DescribeImages(context.Context, *awsec2.DescribeImagesInput, ...func(*awsec2.Options)) (*awsec2.DescribeImagesOutput, error)
	DescribeRegions(context.Context, *awsec2.DescribeRegionsInput, ...func(*awsec2.Options)) (*awsec2.DescribeRegionsOutput, error)
}

// machines are the calls that make, show and end instances.
type machines interface {
	RunInstances(context.Context, *awsec2.RunInstancesInput, ...func(*awsec2.Options)) (*awsec2.RunInstancesOutput, error)
	DescribeInstances(context.Context, *awsec2.DescribeInstancesInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error)
	TerminateInstances(context.Context, *awsec2.TerminateInstancesInput, ...func(*awsec2.Options)) (*awsec2.TerminateInstancesOutput, error)
	StopInstances(context.Context, *awsec2.StopInstancesInput, ...func(*awsec2.Options)) (*awsec2.StopInstancesOutput, error)
	StartInstances(context.Context, *awsec2.StartInstancesInput, ...func(*awsec2.Options)) (*awsec2.StartInstancesOutput, error)
	DescribeInstanceAttribute(context.Context, *awsec2.DescribeInstanceAttributeInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstanceAttributeOutput, error)
	ModifyInstanceAttribute(context.Context, *awsec2.ModifyInstanceAttributeInput, ...func(*awsec2.Options)) (*awsec2.ModifyInstanceAttributeOutput, error)
}

// networks are the calls for what instances need around them.
type networks interface {
	DescribeVpcs(context.Context, *awsec2.DescribeVpcsInput, ...func(*awsec2.Options)) (*awsec2.DescribeVpcsOutput, error)
	DescribeInstanceConnectEndpoints(context.Context, *awsec2.DescribeInstanceConnectEndpointsInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstanceConnectEndpointsOutput, error)
	DescribeSubnets(context.Context, *awsec2.DescribeSubnetsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSubnetsOutput, error)
	DescribeRouteTables(context.Context, *awsec2.DescribeRouteTablesInput, ...func(*awsec2.Options)) (*awsec2.DescribeRouteTablesOutput, error)
	CreateSecurityGroup(context.Context, *awsec2.CreateSecurityGroupInput, ...func(*awsec2.Options)) (*awsec2.CreateSecurityGroupOutput, error)
	DescribeSecurityGroups(context.Context, *awsec2.DescribeSecurityGroupsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSecurityGroupsOutput, error)
	AuthorizeSecurityGroupIngress(context.Context, *awsec2.AuthorizeSecurityGroupIngressInput, ...func(*awsec2.Options)) (*awsec2.AuthorizeSecurityGroupIngressOutput, error)
	AuthorizeSecurityGroupEgress(context.Context, *awsec2.AuthorizeSecurityGroupEgressInput, ...func(*awsec2.Options)) (*awsec2.AuthorizeSecurityGroupEgressOutput, error)
	RevokeSecurityGroupIngress(context.Context, *awsec2.RevokeSecurityGroupIngressInput, ...func(*awsec2.Options)) (*awsec2.RevokeSecurityGroupIngressOutput, error)
	RevokeSecurityGroupEgress(context.Context, *awsec2.RevokeSecurityGroupEgressInput, ...func(*awsec2.Options)) (*awsec2.RevokeSecurityGroupEgressOutput, error)
	DeleteSecurityGroup(context.Context, *awsec2.DeleteSecurityGroupInput, ...func(*awsec2.Options)) (*awsec2.DeleteSecurityGroupOutput, error)
	ImportKeyPair(context.Context, *awsec2.ImportKeyPairInput, ...func(*awsec2.Options)) (*awsec2.ImportKeyPairOutput, error)
	DescribeKeyPairs(context.Context, *awsec2.DescribeKeyPairsInput, ...func(*awsec2.Options)) (*awsec2.DescribeKeyPairsOutput, error)
	DeleteKeyPair(context.Context, *awsec2.DeleteKeyPairInput, ...func(*awsec2.Options)) (*awsec2.DeleteKeyPairOutput, error)
	CreatePlacementGroup(context.Context, *awsec2.CreatePlacementGroupInput, ...func(*awsec2.Options)) (*awsec2.CreatePlacementGroupOutput, error)
	DescribePlacementGroups(context.Context, *awsec2.DescribePlacementGroupsInput, ...func(*awsec2.Options)) (*awsec2.DescribePlacementGroupsOutput, error)
	DeletePlacementGroup(context.Context, *awsec2.DeletePlacementGroupInput, ...func(*awsec2.Options)) (*awsec2.DeletePlacementGroupOutput, error)
}

// leftovers are the calls for what instances may leave behind.
type leftovers interface {
	AttachVolume(context.Context, *awsec2.AttachVolumeInput, ...func(*awsec2.Options)) (*awsec2.AttachVolumeOutput, error)
	DescribeVolumes(context.Context, *awsec2.DescribeVolumesInput, ...func(*awsec2.Options)) (*awsec2.DescribeVolumesOutput, error)
	DeleteVolume(context.Context, *awsec2.DeleteVolumeInput, ...func(*awsec2.Options)) (*awsec2.DeleteVolumeOutput, error)
	DescribeNetworkInterfaces(context.Context, *awsec2.DescribeNetworkInterfacesInput, ...func(*awsec2.Options)) (*awsec2.DescribeNetworkInterfacesOutput, error)
	DeleteNetworkInterface(context.Context, *awsec2.DeleteNetworkInterfaceInput, ...func(*awsec2.Options)) (*awsec2.DeleteNetworkInterfaceOutput, error)
	DescribeAddresses(context.Context, *awsec2.DescribeAddressesInput, ...func(*awsec2.Options)) (*awsec2.DescribeAddressesOutput, error)
	ReleaseAddress(context.Context, *awsec2.ReleaseAddressInput, ...func(*awsec2.Options)) (*awsec2.ReleaseAddressOutput, error)
	DescribeSpotInstanceRequests(context.Context, *awsec2.DescribeSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error)
	CancelSpotInstanceRequests(context.Context, *awsec2.CancelSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.CancelSpotInstanceRequestsOutput, error)
}
