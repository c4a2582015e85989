package boot

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/remote"
)

// account is a fake EC2 whose instances are machines.
func account(t *testing.T, r *Rig) (*fakeaws.Server, *ec2.Client) {
	t.Helper()
	s := fakeaws.New(fakeaws.Options{Boot: r})
	t.Cleanup(s.Close)
	for _, entry := range s.Env() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	api, err := awsapi.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, api.EC2("us-east-1")
}

// runInstances launches machines whose user-data is that of m.
func runInstances(t *testing.T, client *ec2.Client, m *machine, count int32, market *types.InstanceMarketOptionsRequest) []string {
	t.Helper()
	if _, err := client.ImportKeyPair(t.Context(), &ec2.ImportKeyPairInput{
		KeyName: aws.String("pair"), PublicKeyMaterial: []byte(m.instance.PublicKey)}); err != nil {
		t.Fatal(err)
	}
	out, err := client.RunInstances(t.Context(), &ec2.RunInstancesInput{
		MinCount: aws.Int32(count), MaxCount: aws.Int32(count), InstanceType: types.InstanceTypeG5Xlarge,
		ImageId:                           aws.String("resolve:ssm:/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.9-ubuntu-24.04/latest/ami-id"),
		KeyName:                           aws.String("pair"),
		UserData:                          aws.String(base64.StdEncoding.EncodeToString(m.instance.UserData)),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		InstanceMarketOptions:             market,
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	return ids
}

// seen waits until an instance is in a state, and returns how it is then.
func seen(t *testing.T, client *ec2.Client, id string, state types.InstanceStateName) types.Instance {
	t.Helper()
	var found types.Instance
	eventually(t, id+" is "+string(state), func() bool {
		out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		found = out.Reservations[0].Instances[0]
		return found.State.Name == state
	})
	return found
}

func (m *machine) at(r *Rig, i types.Instance) *machine {
	at := *m
	at.instance.ID = aws.ToString(i.InstanceId)
	at.addr = r.sshAt(aws.ToString(i.PublicIpAddress))
	at.private = r.sshAt(aws.ToString(i.PrivateIpAddress))
	return &at
}

func TestAnInstanceLivesAsAMachine(t *testing.T) {
	r := newRig(t, Options{})
	s, client := account(t, r)
	owner := describe(t, r, rotate)
	ids := runInstances(t, client, owner, 2, nil)
	first := owner.at(r, seen(t, client, ids[0], types.InstanceStateNameRunning))
	second := owner.at(r, seen(t, client, ids[1], types.InstanceStateNameRunning))
	n, other := first.connect(t), second.connect(t)
	sh(t, n, "echo saved >file")

	if _, err := client.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: ids[:1]}); err != nil {
		t.Fatal(err)
	}
	if stopped := seen(t, client, ids[0], types.InstanceStateNameStopped); stopped.PublicIpAddress != nil {
		t.Errorf("a stopped instance has the address %s", *stopped.PublicIpAddress)
	}
	eventually(t, "it refuses", func() bool { return refused(first.addr) })
	if _, err := client.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: ids[:1]}); err != nil {
		t.Fatal(err)
	}
	again := owner.at(r, seen(t, client, ids[0], types.InstanceStateNameRunning))
	if again.addr == first.addr || again.private != first.private {
		t.Errorf("the addresses were %s, %s and are %s, %s", first.addr, first.private, again.addr, again.private)
	}
	n = again.connect(t)
	if got := sh(t, n, "cat file"); got != "saved" {
		t.Errorf("its file says %q", got)
	}

	_, _ = n.Exec(t.Context(), remote.Cmd{Line: "sudo -n shutdown -h now"}) // it may not live to see the end of that
	gone := seen(t, client, ids[0], types.InstanceStateNameTerminated)
	if why := aws.ToString(gone.StateReason.Code); why != "Client.InstanceInitiatedShutdown" {
		t.Errorf("it is terminated because of %q", why)
	}
	if got := sh(t, other, "echo still here"); got != "still here" {
		t.Errorf("the other said %q", got)
	}
	if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids[1:]}); err != nil {
		t.Fatal(err)
	}
	seen(t, client, ids[1], types.InstanceStateNameTerminated)
	if _, err := client.DeleteKeyPair(t.Context(), &ec2.DeleteKeyPairInput{KeyName: aws.String("pair")}); err != nil {
		t.Fatal(err)
	}
	if left := s.Left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	eventually(t, "both machines are gone", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return r.find(id) != nil })
	})
}

func TestASpotInstanceLearnsThatItIsTakenBack(t *testing.T) {
	r := newRig(t, Options{})
	s, client := account(t, r)
	owner := describe(t, r, "write_files:\n- {path: /var/lib/dlwb/settings, content: 'http://169.254.169.254'}\n")
	ids := runInstances(t, client, owner, 1, &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot})
	m := owner.at(r, seen(t, client, ids[0], types.InstanceStateNameRunning))
	n := m.connect(t)
	s.Reclaim(ids[0], 2*time.Second)
	g := r.find(ids[0])
	g.mu.Lock()
	told := g.notice
	g.mu.Unlock()
	if told == nil || told.Action != "terminate" {
		t.Errorf("it was told %v", told)
	}
	seen(t, client, ids[0], types.InstanceStateNameTerminated)
	eventually(t, "it is not reached any more", func() bool {
		var gone *remote.UnreachableError
		return errors.As(n.Connect(t.Context()), &gone)
	})
}
