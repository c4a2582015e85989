package door

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestSubnetsOfIPv6AloneAreLeftOutAndNamedWhereThereIsNoOther(t *testing.T) {
	six := types.Subnet{SubnetId: aws.String("subnet-6"), Ipv6Native: aws.Bool(true)}
	both := types.Subnet{SubnetId: aws.String("subnet-46"), Ipv6Native: aws.Bool(false)}
	silent := types.Subnet{SubnetId: aws.String("subnet-4")} // an endpoint that does not tell
	left, err := WithIPv4([]types.Subnet{six, both, silent}, "us-east-1")
	if err != nil || len(left) != 2 || aws.ToString(left[0].SubnetId) != "subnet-46" || aws.ToString(left[1].SubnetId) != "subnet-4" {
		t.Errorf("%v %v", left, err)
	}
	if _, err := WithIPv4([]types.Subnet{six}, "us-east-1"); err == nil || !strings.Contains(err.Error(), "subnet-6 in us-east-1") || !strings.Contains(err.Error(), "machines.subnet") {
		t.Error(err)
	}
}

func TestARouteOfIPv6AloneLeadsNobodyToAnIPv4Address(t *testing.T) {
	gate := aws.String("igw-1")
	for cidr, want := range map[string]bool{"4": true, "6": false} {
		r := types.Route{GatewayId: gate, State: types.RouteStateActive}
		if cidr == "4" {
			r.DestinationCidrBlock = aws.String("0.0.0.0/0")
		} else {
			r.DestinationIpv6CidrBlock = aws.String("::/0")
		}
		if outward(r) != want {
			t.Errorf("IPv%s: %v", cidr, !want)
		}
	}
}
