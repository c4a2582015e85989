package ec2

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// launch is everything that one RunInstances call says. It is the detail of
// the call's ledger entry, so that the very same call can be sent again.
type launch struct {
	Region   string `json:"region"`
	Zone     string `json:"zone"`
	Subnet   string `json:"subnet"`
	Instance string `json:"instance_type"`
	// Nodes are the nodes of the cluster that the instances will be, in the
	// order of their launch index.
	Nodes     []int             `json:"nodes"`
	Spot      bool              `json:"spot,omitempty"`
	Image     string            `json:"image"`
	Device    string            `json:"device"`
	GiB       int32             `json:"disk_gib"`
	Group     string            `json:"group"`
	Key       string            `json:"key"`
	Placement string            `json:"placement,omitempty"`
	Profile   string            `json:"instance_profile,omitempty"`
	EFA       bool              `json:"efa,omitempty"`
	Tags      map[string]string `json:"tags"`
	// UserData is the SHA-256 of the user-data. The text holds the host key
	// for the first contact and stays in the life's own directory.
	UserData string `json:"user_data_sha256"`

	// The rest says how the nodes are reached and what they cost.

	User    string      `json:"user"`
	VCPUs   int         `json:"vcpus"`
	Machine cloud.Price `json:"machine"` // of one instance
	Disk    cloud.Price `json:"disk"`    // of one GiB
	Address cloud.Price `json:"address"` // of one public address
}

// perNode is what one instance costs an hour with its disk and its address.
func (l launch) perNode() float64 {
	return l.Machine.PerHour + l.perNodeStopped() + l.Address.PerHour
}

// perNodeStopped is what its disk alone costs.
func (l launch) perNodeStopped() float64 { return float64(l.GiB) * l.Disk.PerHour }

// market is how the machines are paid, in words.
func (l launch) market() string {
	if l.Spot {
		return "spot"
	}
	return "on demand"
}

// what names the machines: "2 × g5.xlarge, spot".
func (l launch) what() string {
	return fmt.Sprintf("%d × %s, %s", len(l.Nodes), l.Instance, l.market())
}

// launchOf reads a ledger entry of kind instances.
func launchOf(e cloud.Entry) (launch, error) {
	var l launch
	if err := json.Unmarshal(e.Detail, &l); err != nil {
		return l, fmt.Errorf("the ledger entry %s can't be read: %w", e.Token, err)
	}
	return l, nil
}

// input is the call. It is the same, byte for byte, whenever it is made.
func (l launch) input(token string, userData []byte) *awsec2.RunInstancesInput {
	count := int32(len(l.Nodes))
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}
	in := &awsec2.RunInstancesInput{
		ClientToken: &token, MinCount: &count, MaxCount: &count,
		ImageId: &l.Image, InstanceType: types.InstanceType(l.Instance), KeyName: &l.Key,
		UserData:                          aws.String(base64.StdEncoding.EncodeToString(userData)),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		Placement:                         &types.Placement{AvailabilityZone: &l.Zone},
		MetadataOptions: &types.InstanceMetadataOptionsRequest{
			HttpEndpoint: types.InstanceMetadataEndpointStateEnabled,
			HttpTokens:   types.HttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1),
		},
		BlockDeviceMappings: []types.BlockDeviceMapping{{DeviceName: &l.Device, Ebs: &types.EbsBlockDevice{
			VolumeSize: &l.GiB, VolumeType: types.VolumeTypeGp3, Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true),
		}}},
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{l.networkInterface()},
	}
	if l.Placement != "" {
		in.Placement.GroupName = &l.Placement
	}
	if l.Profile != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &l.Profile}
	}
	if l.Spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot,
			SpotOptions: &types.SpotMarketOptions{SpotInstanceType: types.SpotInstanceTypeOneTime,
				InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate}}
		kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
	}
	in.TagSpecifications = specify(token, l.Tags, kinds...)
	return in
}

// networkInterface is the one of each instance. More than one for EFA would
// have to do without a public address, by which the machine is reached.
func (l launch) networkInterface() types.InstanceNetworkInterfaceSpecification {
	i := types.InstanceNetworkInterfaceSpecification{
		DeviceIndex: aws.Int32(0), SubnetId: &l.Subnet, Groups: []string{l.Group},
		AssociatePublicIpAddress: aws.Bool(true), DeleteOnTermination: aws.Bool(true),
	}
	if l.EFA {
		i.InterfaceType = aws.String("efa")
	}
	return i
}

// keepUserData writes down the user-data of a launch, before the intent: the
// call can be repeated only with the same bytes.
func keepUserData(dir, token string, b []byte) (sum string, err error) {
	if err := wholefile.Write(userDataFile(dir, token), b, 0o600); err != nil {
		return "", fmt.Errorf("keep the user-data of the launch: %w", err)
	}
	return hash(b), nil
}

// userData reads what keepUserData has written.
func userData(dir, token, sum string) ([]byte, error) {
	b, err := os.ReadFile(userDataFile(dir, token))
	if err == nil && hash(b) != sum {
		err = fmt.Errorf("%s is not what it was", userDataFile(dir, token))
	}
	if err != nil {
		return nil, fmt.Errorf("the launch %s can't be repeated as it was; take the cluster down: %w", token, err)
	}
	return b, nil
}

func userDataFile(dir, token string) string { return filepath.Join(dir, token+".user-data") }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// leaseEnd is when the lease of machines ends at the latest.
func leaseEnd(began time.Time, spec cloud.Spec) time.Time {
	if spec.Lifetime <= 0 {
		return time.Time{}
	}
	return began.Add(spec.Lifetime)
}
