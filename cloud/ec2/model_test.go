package ec2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/ami"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/ec2/lifekeys"
	"github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/internal/sample"
)

// fates are the decisions of a story, one byte each. When there are no more of
// them everything goes well.
type fates struct {
	left []byte
}

func (f *fates) next() int {
	if len(f.left) == 0 {
		return 0
	}
	b := f.left[0]
	f.left = f.left[1:]
	return int(b)
}

// within is a decision between n ways, the first of which is the good one.
func (f *fates) within(n int) int { return f.next() % n }

// ec2Model is an EC2 without a network and with a virtual clock, that launches,
// shows and ends instances, and goes wrong as fate has it.
type ec2Model struct {
	client // what is not modelled panics
	*fates
	settle time.Duration
	most   int // living instances that there may ever be

	mu        sync.Mutex
	instances []*modelInstance
	tokens    map[string][]*modelInstance
	crash     func() // ends dlwb in the middle of a call
	broken    string // the promise that was broken
	launched  int
}

type modelInstance struct {
	types.Instance
	shown time.Time // from when on it is listed
	ends  time.Time // when a shutting-down one is terminated
}

func (i *modelInstance) phase(now time.Time) types.InstanceStateName {
	switch {
	case i.ends.IsZero() && now.Sub(*i.LaunchTime) < 50*time.Millisecond:
		return "pending"
	case i.ends.IsZero():
		return "running"
	case now.Before(i.ends):
		return "shutting-down"
	}
	return "terminated"
}

var errCut = &smithy.OperationError{ServiceID: "EC2", OperationName: "RunInstances", Err: io.ErrUnexpectedEOF}

func refuse(code string) error { return &smithy.GenericAPIError{Code: code, Message: "no"} }

func (m *ec2Model) RunInstances(ctx context.Context, in *awsec2.RunInstancesInput, _ ...func(*awsec2.Options)) (*awsec2.RunInstancesOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch m.within(16) {
	case 1, 2:
		return nil, refuse("InsufficientInstanceCapacity")
	case 3:
		return nil, refuse("VcpuLimitExceeded")
	case 4:
		return nil, refuse("Unsupported")
	case 5:
		return nil, refuse("RequestLimitExceeded")
	case 6:
		return nil, refuse("InternalError")
	case 7:
		return nil, refuse("InvalidGroup.NotFound")
	case 8, 9: // applied, and the reply lost
		m.launch(in)
		return nil, errCut
	case 10, 11: // the reply lost now, and applied later
		time.AfterFunc(m.settle*time.Duration(1+m.within(50))/100, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.launch(in)
		})
		return nil, errCut
	case 12: // killed before it is applied
		m.crash()
		return nil, context.Canceled
	case 13: // killed after
		m.launch(in)
		m.crash()
		return nil, context.Canceled
	case 14: // twice, as two requests
		m.launch(in)
	case 15: // the reply cut in its middle
		out := m.launch(in)
		return &awsec2.RunInstancesOutput{Instances: out[:len(out)-1]}, nil
	}
	return &awsec2.RunInstancesOutput{Instances: m.launch(in)}, nil
}

// launch applies a launch: once for each token.
func (m *ec2Model) launch(in *awsec2.RunInstancesInput) []types.Instance {
	token := aws.ToString(in.ClientToken)
	now := time.Now()
	if _, known := m.tokens[token]; !known {
		lag := m.settle * time.Duration(m.within(30)) / 100
		for n := range *in.MinCount {
			m.launched++
			i := &modelInstance{shown: now.Add(lag)}
			i.InstanceId, i.ClientToken = aws.String(fmt.Sprintf("i-%017x", m.launched)), &token
			i.AmiLaunchIndex, i.LaunchTime = aws.Int32(n), aws.Time(now)
			i.Tags = in.TagSpecifications[0].Tags
			i.PublicIpAddress, i.PrivateIpAddress = aws.String("192.0.2.1"), aws.String("10.0.0.1")
			m.instances, m.tokens[token] = append(m.instances, i), append(m.tokens[token], i)
		}
		if n := m.living(); n > m.most {
			m.broken = fmt.Sprintf("%d machines live, and %d were asked for", n, m.most)
		}
	}
	var out []types.Instance
	for _, i := range m.tokens[token] {
		out = append(out, m.view(i, now))
	}
	return out
}

func (m *ec2Model) living() int {
	n := 0
	for _, i := range m.instances {
		if i.ends.IsZero() {
			n++
		}
	}
	return n
}

func (m *ec2Model) view(i *modelInstance, now time.Time) types.Instance {
	v := i.Instance
	v.State = &types.InstanceState{Name: i.phase(now)}
	return v
}

func (m *ec2Model) DescribeInstances(ctx context.Context, in *awsec2.DescribeInstancesInput, _ ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch m.within(40) {
	case 38: // a replica that has not heard of anything
		return &awsec2.DescribeInstancesOutput{}, nil
	case 39:
		return nil, refuse("InternalError")
	}
	first, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &awsec2.DescribeInstancesOutput{}
	now := time.Now()
	for n := first; n < len(m.instances); n++ {
		if i := m.instances[n]; !now.Before(i.shown) && fitsAll(i, in.Filters) {
			out.Reservations = append(out.Reservations, types.Reservation{Instances: []types.Instance{m.view(i, now)}})
			if n+1 < len(m.instances) { // pages of one
				out.NextToken = aws.String(strconv.Itoa(n + 1))
				return out, nil
			}
		}
	}
	return out, nil
}

func fitsAll(i *modelInstance, filters []types.Filter) bool {
	for _, f := range filters {
		var have string
		switch *f.Name {
		case "instance-id":
			have = *i.InstanceId
		case "client-token":
			have = *i.ClientToken
		case "tag:" + tagLife:
			have = labels(i.Tags)[tagLife]
		case "tag:" + tagToken:
			have = labels(i.Tags)[tagToken]
		default:
			panic("the model has no filter " + *f.Name)
		}
		if !slices.Contains(f.Values, have) {
			return false
		}
	}
	return true
}

func (m *ec2Model) TerminateInstances(ctx context.Context, in *awsec2.TerminateInstancesInput, _ ...func(*awsec2.Options)) (*awsec2.TerminateInstancesOutput, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	fate := m.within(12)
	switch fate {
	case 8:
		return nil, refuse("InternalError")
	case 9:
		return nil, refuse("RequestLimitExceeded")
	case 10: // answered, and not carried out
		return &awsec2.TerminateInstancesOutput{}, nil
	}
	for _, id := range in.InstanceIds {
		m.end(id)
	}
	if fate == 11 {
		return nil, errCut
	}
	return &awsec2.TerminateInstancesOutput{}, nil
}

func (m *ec2Model) end(id string) {
	for _, i := range m.instances {
		if *i.InstanceId == id && i.ends.IsZero() {
			i.ends = time.Now().Add(80 * time.Millisecond)
		}
	}
}

// reclaim ends a machine as AWS does when it wants it back.
func (m *ec2Model) reclaim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.instances) > 0 {
		m.end(*m.instances[m.within(len(m.instances))].InstanceId)
	}
}

func (m *ec2Model) DescribeInstanceAttribute(context.Context, *awsec2.DescribeInstanceAttributeInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstanceAttributeOutput, error) {
	return &awsec2.DescribeInstanceAttributeOutput{InstanceInitiatedShutdownBehavior: &types.AttributeValue{Value: aws.String("terminate")}}, nil
}

// The rest of the account is empty.

func (m *ec2Model) DescribeVolumes(context.Context, *awsec2.DescribeVolumesInput, ...func(*awsec2.Options)) (*awsec2.DescribeVolumesOutput, error) {
	return &awsec2.DescribeVolumesOutput{}, nil
}

func (m *ec2Model) DescribeNetworkInterfaces(context.Context, *awsec2.DescribeNetworkInterfacesInput, ...func(*awsec2.Options)) (*awsec2.DescribeNetworkInterfacesOutput, error) {
	return &awsec2.DescribeNetworkInterfacesOutput{}, nil
}

func (m *ec2Model) DescribeAddresses(context.Context, *awsec2.DescribeAddressesInput, ...func(*awsec2.Options)) (*awsec2.DescribeAddressesOutput, error) {
	return &awsec2.DescribeAddressesOutput{}, nil
}

func (m *ec2Model) DescribeSpotInstanceRequests(context.Context, *awsec2.DescribeSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error) {
	return &awsec2.DescribeSpotInstanceRequestsOutput{}, nil
}

func (m *ec2Model) DescribeSecurityGroups(context.Context, *awsec2.DescribeSecurityGroupsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSecurityGroupsOutput, error) {
	return &awsec2.DescribeSecurityGroupsOutput{}, nil
}

func (m *ec2Model) DescribePlacementGroups(context.Context, *awsec2.DescribePlacementGroupsInput, ...func(*awsec2.Options)) (*awsec2.DescribePlacementGroupsOutput, error) {
	return &awsec2.DescribePlacementGroupsOutput{}, nil
}

func (m *ec2Model) DescribeKeyPairs(context.Context, *awsec2.DescribeKeyPairsInput, ...func(*awsec2.Options)) (*awsec2.DescribeKeyPairsOutput, error) {
	return &awsec2.DescribeKeyPairsOutput{}, nil
}

func (m *ec2Model) GetSpotPlacementScores(context.Context, *awsec2.GetSpotPlacementScoresInput, ...func(*awsec2.Options)) (*awsec2.GetSpotPlacementScoresOutput, error) {
	return nil, errors.New("only so many questions a day are answered")
}

// story is one life in the model: Ups that are killed, refused and repeated,
// machines that are taken back, then a healthy Up, and Down.
type story struct {
	*ec2Model
	life cloud.Life
	spec cloud.Spec
	keys lifekeys.Keys
	ups  int
}

// begin makes a dlwb that was just started: it has the ledger, and no memory.
func (s *story) begin() *up {
	p := &Provider{settle: s.settle, connect: func(context.Context, string) (client, error) { return s.ec2Model, nil }}
	u := &up{p: p, life: s.life, spec: s.spec, keys: s.keys, say: func(int, string) {}, owner: "me",
		tags: tags(s.life, "me", time.Now(), nil), sites: map[string]*site{}, images: map[[2]string]ami.Image{}}
	var offers []cloud.Offer
	for _, region := range []string{"r1", "r2"} {
		u.sites[region] = &site{group: "sg-1", key: "key", clusters: map[string]bool{"g5.xlarge": false},
			network: network{Subnets: map[string]string{region + "a": "subnet-a", region + "b": "subnet-b"}}}
		u.images[[2]string{region, "x86_64"}] = ami.Image{ID: "ami-1", Arch: "x86_64", Device: "/dev/sda1", GiB: 8, User: "ubuntu"}
		offers = append(offers, cloud.Offer{Region: region, Instance: "g5.xlarge", Arch: "x86_64", OnDemand: cloud.Price{PerHour: 1},
			Spot: cloud.Price{PerHour: 0.4}, Zones: []cloud.Zone{{Name: region + "a"}, {Name: region + "b", Spot: 0.3}}})
	}
	u.choose = func(context.Context, cloud.Spec) ([]cloud.Offer, error) { return offers, nil }
	u.lookup = func(_ context.Context, region, instance string) (cloud.Offer, error) {
		return cloud.Offer{Region: region, Instance: instance, Arch: "x86_64", OnDemand: cloud.Price{PerHour: 0.2}, Zones: []cloud.Zone{{Name: region + "a"}, {Name: region + "b"}}}, nil
	}
	u.diskPrice = func(_ context.Context, region string) cloud.Price { return catalog.DiskPrice(region) }
	return u
}

func (s *story) up() error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*s.settle)
	defer cancel()
	s.mu.Lock()
	s.crash = cancel
	s.mu.Unlock()
	c, err := s.begin().assemble(ctx)
	if err == nil && len(c) != nodesOf(s.spec) {
		return fmt.Errorf("the cluster has %d nodes, not %d", len(c), nodesOf(s.spec))
	}
	return err
}

// run tells the story; it returns what is wrong with it.
func (s *story) run() error {
	for range s.ups {
		_ = s.up()
		if s.within(3) == 2 {
			s.reclaim()
		}
	}
	downEarly := s.within(4) == 3
	if !downEarly {
		s.left = nil // from here on all goes well
		if err := s.upAfterLosses(); err != nil {
			return fmt.Errorf("a healthy up: %w", err)
		}
		if n := s.living(); n != nodesOf(s.spec) {
			return fmt.Errorf("%d machines live after a healthy up, and %d were asked for", n, nodesOf(s.spec))
		}
	}
	return s.down()
}

// upAfterLosses is an up that may meet machines that are just being taken back.
func (s *story) upAfterLosses() error {
	err := s.up()
	if errors.Is(err, errLost) {
		err = s.up()
	}
	return err
}

// down takes the life down, again until it says that it has.
func (s *story) down() error {
	var err error
	for range 5 {
		p := s.begin().p
		var receipt cloud.Receipt
		receipt, err = p.Down(context.Background(), s.life, nil)
		if err == nil {
			time.Sleep(2 * s.settle) // whatever comes late
			if n := s.living(); n > 0 || !receipt.Proven() || s.life.Ledger.(*memory).open() > 0 {
				return fmt.Errorf("down says %+v, and %d machines live", receipt, n)
			}
			return nil
		}
		if len(s.left) > 100 {
			s.left = s.left[:100]
		}
	}
	return fmt.Errorf("down: %w", err)
}

func TestALaunchThatIsRepeatedOrResumedNeverMakesMoreThanAsked(t *testing.T) {
	t.Parallel()
	dir := fastDir(t)
	life := cloud.Life{Name: "train", ID: "0123456789ab", Dir: dir}
	keys, err := lifekeys.Of(life)
	if err != nil {
		t.Fatal(err)
	}
	told, launched := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{life: life, keys: keys, ups: rapid.IntRange(1, 4).Draw(rt, "ups"),
			ec2Model: &ec2Model{fates: &fates{left: rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(rt, "fates")}, settle: 240 * time.Millisecond, tokens: map[string][]*modelInstance{}},
			spec: cloud.Spec{Count: rapid.IntRange(1, 4).Draw(rt, "count"), Lifetime: time.Hour,
				Spot: rapid.Bool().Draw(rt, "spot"), Own: &options.Machines{SpotFallback: rapid.Bool().Draw(rt, "fallback"), Head: rapid.SampledFrom([]string{"", "m5.xlarge"}).Draw(rt, "head")}}}
		s.most = nodesOf(s.spec)
		s.life.Ledger = &memory{}
		var wrong error
		synctest.Test(t, func(*testing.T) { wrong = s.run() })
		if wrong != nil || s.broken != "" {
			rt.Fatalf("%v %s\n%s", wrong, s.broken, s.life.Ledger.(*memory))
		}
		told, launched = told+1, launched+s.launched
	})
	t.Logf("%d stories, %d machines launched, never more than asked", told, launched)
	if told < sample.Part(t, fewCases, sample.Of(t, someCases, allCases, "random stories"), "random stories") {
		t.Errorf("only %d stories", told)
	}
}

// String shows a ledger.
func (l *memory) String() string {
	var b strings.Builder
	for _, e := range l.entries {
		fmt.Fprintf(&b, "%s %s id=%q open=%v %s\n", e.Kind, e.Token, e.ID, e.Open(), e.Proof)
	}
	return b.String()
}

// fastDir is a directory in memory where there is one: a launch waits for its
// disk, ten thousand would wait for minutes.
func fastDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "dlwb-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Clean(dir)
}
