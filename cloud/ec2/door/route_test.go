package door

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestARouteOfIPv6AloneLeadsNobodyToAnIPv4Address(t *testing.T) {
	gate := aws.String("igw-1")
	for cidr, want := range map[string]bool{"4": true, "6": false} {
		r := types.Route{GatewayId: gate, State: types.RouteStateActive}
		if cidr == "4" {
			r.DestinationCidrBlock = aws.String("0.0.0.0/0")
		} else {
			r.DestinationIpv6CidrBlock = aws.String("::/0")
		}
		if outward(r) != want || outwardBySix(r) == want {
			t.Errorf("IPv%s: %v, %v", cidr, outward(r), outwardBySix(r))
		}
		r.GatewayId, r.EgressOnlyInternetGatewayId = nil, aws.String("eigw-1")
		if outward(r) || outwardBySix(r) {
			t.Errorf("IPv%s: in by a gateway that only leads out", cidr)
		}
	}
}
