package fakeaws

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func start2(t *testing.T) *sts.Client {
	t.Helper()
	return sts.NewFromConfig(must(config.LoadDefaultConfig(t.Context()))(t))
}

// crew is a Booter that writes down what it is told.
type crew struct {
	mu   sync.Mutex
	log  []string
	last *Instance
	fail error
	hold chan struct{} // not nil: a boot ends when it is closed
}

func (c *crew) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

func (c *crew) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.log, ", ")
}

func (c *crew) Boot(i *Instance) (*Machine, error) {
	c.note("boot %d", i.Boots)
	c.mu.Lock()
	c.last = i
	c.mu.Unlock()
	if c.hold != nil {
		<-c.hold
	}
	return &Machine{PublicIP: fmt.Sprintf("127.0.0.%d", 2+i.Boots), PrivateIP: "127.0.1.1"}, c.fail
}

func (c *crew) Halt(_ string, keepDisk bool)                { c.note("halt %v", keepDisk) }
func (c *crew) Remove(string)                               { c.note("remove") }
func (c *crew) Notice(_ string, action string, _ time.Time) { c.note("notice %s", action) }

func TestEachInstanceHasAMachine(t *testing.T) {
	c := &crew{}
	r := start(t, Options{Boot: c})
	ctx := t.Context()
	must(r.ec2.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: aws.String("k"), PublicKeyMaterial: []byte(publicKey)}))(t)
	id := r.launch(1, func(in *ec2.RunInstancesInput) {
		in.UserData, in.KeyName = aws.String("aGk="), aws.String("k")
	})[0]
	until(t, "running", func() bool { return r.states(id) == "running" })
	same(t, "told", fmt.Sprint(c.last.ID == id, string(c.last.UserData), c.last.PublicKey == publicKey, c.last.Region, c.last.Zone),
		"truehitrueus-east-1us-east-1a")
	i := r.describe(id)[0]
	same(t, "addresses", *i.PublicIpAddress+" "+*i.PrivateIpAddress, "127.0.0.2 127.0.1.1")
	must(r.ec2.StopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{id}}))(t)
	until(t, "stopped", func() bool { return r.states(id) == "stopped" })
	must(r.ec2.StartInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}}))(t)
	until(t, "running", func() bool { return r.states(id) == "running" })
	same(t, "address after the start", *r.describe(id)[0].PublicIpAddress, "127.0.0.3")
	must(r.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
	until(t, "terminated", func() bool { return r.states(id) == "terminated" })
	same(t, "the booter's work", c.all(), "boot 0, halt true, boot 1, halt false, remove")
}

func TestAnInstanceIsPendingUntilItsMachineIsUp(t *testing.T) {
	c := &crew{hold: make(chan struct{})}
	r := start(t, Options{Boot: c})
	id := r.launch(1)[0]
	r.Advance(time.Hour)
	same(t, "state", r.states(id), "pending")
	must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
	r.Advance(time.Hour)
	same(t, "state", r.states(id), "shutting-down")
	close(c.hold)
	until(t, "terminated", func() bool { return r.states(id) == "terminated" })
}

func TestAMachineThatDoesNotBootEndsItsInstance(t *testing.T) {
	c := &crew{fail: errors.New("no")}
	r := start(t, Options{Boot: c})
	id := r.launch(1)[0]
	until(t, "terminated", func() bool { return r.states(id) == "terminated" })
	same(t, "reason", *r.describe(id)[0].StateReason.Code, "Server.InternalError")
	same(t, "left", len(r.Left()), 0)
}

func TestTheGuestsOwnPowerOffStopsOrTerminates(t *testing.T) {
	c := &crew{}
	r := start(t, Options{Boot: c})
	for behaviour, want := range map[string]string{"terminate": "terminated", "stop": "stopped"} {
		id := r.launch(1, func(in *ec2.RunInstancesInput) {
			if behaviour == "stop" {
				in.InstanceInitiatedShutdownBehavior = ""
			}
		})[0]
		until(t, "running", func() bool { return r.states(id) == "running" })
		c.last.PowerOff()
		until(t, want, func() bool { return r.states(id) == want })
		i := r.describe(id)[0]
		same(t, "reason", *i.StateReason.Code, "Client.InstanceInitiatedShutdown")
		same(t, "transition", aws.ToString(i.StateTransitionReason), "")
	}
	same(t, "left", len(r.Left()), 3) // the stopped one, its disk and its interface
}

func TestASpotInstanceIsReclaimedAfterTheNotice(t *testing.T) {
	c := &crew{}
	r := start(t, Options{Boot: c})
	id := r.launch(1, spot)[0]
	until(t, "running", func() bool { return r.states(id) == "running" })
	r.Reclaim(id, 2*time.Minute)
	r.Advance(time.Minute)
	same(t, "after a minute", r.states(id), "running")
	r.Advance(time.Minute)
	until(t, "terminated", func() bool { return r.states(id) == "terminated" })
	i := r.describe(id)[0]
	same(t, "reason", *i.StateReason.Code, "Server.SpotInstanceTermination")
	same(t, "request", *must(r.ec2.DescribeSpotInstanceRequests(t.Context(), &ec2.DescribeSpotInstanceRequestsInput{}))(t).SpotInstanceRequests[0].Status.Code,
		"instance-terminated-no-capacity")
	same(t, "the booter's work", c.all(), "boot 0, notice terminate, halt false, remove")
	other := r.launch(1)[0]
	r.Crash(other)
	until(t, "terminated", func() bool { return r.states(other) == "terminated" })
}

// A server that is closed has no machines left, and none in the making.
func TestCloseEndsAllMachines(t *testing.T) {
	c := &crew{}
	r := start(t, Options{Boot: c})
	r.launch(3)
	r.Close()
	log := c.all()
	same(t, "halted", strings.Count(log, "halt false"), 3)
	same(t, "removed", strings.Count(log, "remove"), 3)
}

func TestManyCallersAtOnce(t *testing.T) {
	r := start(t, Options{Boot: &crew{}, Lag: func() time.Duration { return time.Millisecond }, ReplyDelay: time.Millisecond})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				out, err := r.run(r.order(2))
				if err != nil {
					t.Error(err)
					return
				}
				ids := []string{*out.Instances[0].InstanceId, *out.Instances[1].InstanceId}
				time.Sleep(5 * time.Millisecond)
				if _, err := r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids}); err != nil {
					t.Error(err)
				}
				if _, err := r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
					t.Error(err)
				}
				r.Left()
				r.Spent()
			}
		})
	}
	wg.Wait()
	same(t, "launched", r.Launched(), 80)
	until(t, "the end of all", func() bool { return len(r.Left()) == 0 })
}

func TestTheClockMayRunFaster(t *testing.T) {
	r := start(t, Options{Speed: 1000, Pending: 20 * time.Second, Boot: &crew{}})
	id := r.launch(1)[0]
	began := time.Now()
	until(t, "running", func() bool { return r.states(id) == "running" })
	if took := time.Since(began); took > 19*time.Second {
		t.Errorf("20 virtual seconds took %s", took)
	}
	r.Reclaim(id, time.Hour)
	until(t, "the end", func() bool { return r.states(id) == "terminated" })
}

func BenchmarkServer(b *testing.B) {
	for b.Loop() {
		New(Options{}).Close()
	}
}
