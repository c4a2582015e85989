package ec2

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
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
	Nodes []int `json:"nodes"`
	Spot  bool  `json:"spot,omitempty"`
	// Head says that it is the machine that leads the others.
	Head      bool     `json:"head,omitempty"`
	Image     string   `json:"image"`
	Device    string   `json:"device"`
	GiB       int32    `json:"disk_gib"`
	Data      []int32  `json:"data_gib,omitempty"` // of the data volumes that are made with each
	Group     string   `json:"group"`
	Groups    []string `json:"groups,omitempty"` // that were there before, in place of Group
	Key       string   `json:"key"`
	Placement string   `json:"placement,omitempty"`
	Profile   string   `json:"instance_profile,omitempty"`
	EFA       bool     `json:"efa,omitempty"`
	// Fabric are further network interfaces, for EFA alone.
	Fabric []fabricCard `json:"fabric,omitempty"`
	// Reach is the kind of way to the machines, and Way what is kept of it with
	// the nodes. Empty: by public addresses.
	Reach wayKind `json:"reach,omitempty"`
	Way   string  `json:"way,omitempty"`
	// Six says that each has an IPv6 address, by which it is reached from here and by
	// the others, and SixOnly that it has no other.
	Six     bool `json:"ipv6,omitempty"`
	SixOnly bool `json:"ipv6_only,omitempty"`
	// Reservation is that of the capacity; Block says that it is a capacity
	// block, which is paid for already.
	Reservation string            `json:"reservation,omitempty"`
	Block       bool              `json:"block,omitempty"`
	MaxPrice    float64           `json:"spot_max_price,omitempty"`
	IOPS        int32             `json:"disk_iops,omitempty"`
	Throughput  int32             `json:"disk_throughput,omitempty"`
	KMSKey      string            `json:"kms_key,omitempty"`
	Tags        map[string]string `json:"tags"`
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

// fabricCard is a network card with an interface of its own for EFA.
type fabricCard struct {
	Card   int32  `json:"card"`
	Device int32  `json:"device"`
	Kind   string `json:"kind"`
}

// private reports whether the machines get no public address.
func (l launch) private() bool { return l.Reach != "" && l.Reach != wayPublic }

// perNode is what one instance costs an hour with its disk and its address.
func (l launch) perNode() float64 {
	return l.Machine.PerHour + l.perNodeStopped() + l.Address.PerHour
}

// perNodeStopped is what its disk alone costs.
func (l launch) perNodeStopped() float64 { return (float64(l.disks()) + l.faster()) * l.Disk.PerHour }

// What a gp3 disk has without more cost, and how many GiB of disk cost as much as
// one operation a second or one MiB/s above that
// (https://aws.amazon.com/ebs/pricing/: 0.08 USD, 0.005 USD and 0.04 USD a month).
const (
	freeIOPS, freeThroughput = 3000, 125
	perIOPS, perThroughput   = 1.0 / 16, 1.0 / 2
)

// faster is what the disk's speed costs, in GiB that cost as much.
func (l launch) faster() float64 {
	return float64(max(0, l.IOPS-freeIOPS))*perIOPS + float64(max(0, l.Throughput-freeThroughput))*perThroughput
}

// market is how the machines are paid, in words.
func (l launch) market() string {
	switch {
	case l.Spot:
		return "spot"
	case l.Block:
		return "capacity block " + l.Reservation
	case l.Reservation != "":
		return "on demand, reservation " + l.Reservation
	}
	return "on demand"
}

// what names the machines: "2 × g5.xlarge, spot".
func (l launch) what() string {
	if l.Head {
		return fmt.Sprintf("%d × %s for the head, %s", len(l.Nodes), l.Instance, l.market())
	}
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
		BlockDeviceMappings: append([]types.BlockDeviceMapping{{DeviceName: &l.Device, Ebs: l.rootDisk()}}, l.dataDisks()...),
		NetworkInterfaces:   l.interfaces(),
	}
	if l.SixOnly {
		in.MetadataOptions.HttpProtocolIpv6 = types.InstanceMetadataProtocolStateEnabled
	}
	if l.Placement != "" {
		in.Placement.GroupName = &l.Placement
	}
	if l.Profile != "" {
		in.IamInstanceProfile = profileOf(l.Profile)
	}
	if l.Spot {
		kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
	}
	in.InstanceMarketOptions, in.CapacityReservationSpecification = l.marketOptions(), l.reserved()
	in.TagSpecifications = specify(token, l.Tags, kinds...)
	return in
}

// profileOf names an instance profile by its name or its ARN, in whichever
// partition: AWS refuses the one in the place of the other.
func profileOf(word string) *types.IamInstanceProfileSpecification {
	if arn.IsARN(word) {
		return &types.IamInstanceProfileSpecification{Arn: &word}
	}
	return &types.IamInstanceProfileSpecification{Name: &word}
}

// marketOptions are how the machines are paid; nil: on demand.
func (l launch) marketOptions() *types.InstanceMarketOptionsRequest {
	switch {
	case l.Block:
		return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	case !l.Spot:
		return nil
	}
	o := &types.SpotMarketOptions{SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate}
	if l.MaxPrice > 0 {
		o.MaxPrice = aws.String(strconv.FormatFloat(l.MaxPrice, 'f', -1, 64))
	}
	return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: o}
}

// reserved is the reservation that the machines use; nil: any open one that fits.
func (l launch) reserved() *types.CapacityReservationSpecification {
	if l.Reservation == "" {
		return nil
	}
	return &types.CapacityReservationSpecification{CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &l.Reservation}}
}

// rootDisk is the disk of each instance.
func (l launch) rootDisk() *types.EbsBlockDevice {
	d := &types.EbsBlockDevice{VolumeSize: &l.GiB, VolumeType: types.VolumeTypeGp3, Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}
	if l.IOPS > 0 {
		d.Iops = &l.IOPS
	}
	if l.Throughput > 0 {
		d.Throughput = &l.Throughput
	}
	if l.KMSKey != "" {
		d.KmsKeyId = &l.KMSKey
	}
	return d
}

// interfaces are those of each instance. AWS gives no public address to one that
// has several.
func (l launch) interfaces() []types.InstanceNetworkInterfaceSpecification {
	groups := l.Groups
	if len(groups) == 0 {
		groups = []string{l.Group}
	}
	first := types.InstanceNetworkInterfaceSpecification{DeviceIndex: aws.Int32(0), SubnetId: &l.Subnet, Groups: groups, DeleteOnTermination: aws.Bool(true)}
	if l.Six {
		first.Ipv6AddressCount = aws.Int32(1)
	}
	if len(l.Fabric) == 0 && !l.SixOnly {
		first.AssociatePublicIpAddress = aws.Bool(!l.private() && !l.Six)
	}
	if l.EFA {
		first.InterfaceType = aws.String("efa")
	}
	all := []types.InstanceNetworkInterfaceSpecification{first}
	for _, f := range l.Fabric {
		all = append(all, types.InstanceNetworkInterfaceSpecification{DeviceIndex: &f.Device, NetworkCardIndex: &f.Card, InterfaceType: &f.Kind,
			SubnetId: &l.Subnet, Groups: groups, DeleteOnTermination: aws.Bool(true)})
	}
	return all
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
